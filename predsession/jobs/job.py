"""One job: from its uuid to its results, in order and counted.

Invariants: results come in the order of the images that were sent, and nothing else ties the two together
(docs/protocol.md, "Matching"). So on a stock server, where a pop whose answer is lost takes results with
it, everything after a lost answer is held back until the count at the end shows whether it was complete;
if it was not, the images it might belong to are sent again. With ``ack`` a lost answer is asked for again,
and so is one that cannot be: a gap in its numbers, a number too many.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from predsession import errors
from predsession.http.retry import Failure
from predsession.jobs.forgotten import seems_forgotten
from predsession.jobs.pace import PollPace
from predsession.jobs.shared import Shared
from predsession.wire import calls
from predsession.wire.calls import Call
from predsession.wire.httpreply import Reply, is_unknown_job
from predsession.wire.jsontypes import JSONObject
from predsession.wire.replies import JobState, parse_job
from predsession.wire.stages import Stage

log = logging.getLogger(__name__)

LONG_POLL = 5.0
"""Seconds a server with ``wait`` may hold an answer; never more than half the read timeout."""
POP_LIMIT = 64
"""Results asked for at once, where the server has ``ack``."""
LOST_IN_A_ROW = 5
"""Pops that may fail, or bring what cannot be, one after the other."""


class JobReader:
    """Reads one job to its end.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    uuid : str
        The job.
    expected : int or None
        Results that must come; None where only the server knows.
    identified : bool
        Whether each result tells what it belongs to (frames, ids), so that a lost answer leaves a gap that is
        seen, and nothing need be held back.
    again : bool
        Whether these items are run again because answers were lost. On a stock server the end is then waited
        for with calls that take nothing, and all is popped at once: one answer that may be lost, not many.
    start : int
        How many results somebody else has dealt with already.
    most : int or None
        How many results can be new, where that is another number than `expected`: a job that only repeats
        what it has sent stands still.
    """

    def __init__(
        self,
        shared: Shared,
        uuid: str,
        *,
        expected: int | None,
        identified: bool = False,
        again: bool = False,
        start: int = 0,
        most: int | None = None,
    ) -> None:
        self.uuid = uuid
        self.state: JobState | None = None
        """The last answer."""
        self.expired: bool = False
        """Whether the server no longer knows the job."""
        self.miscounted: errors.ProtocolError | None = None
        """How a stock server's results do not fit the images; nothing tells then which belongs to which."""
        self._shared = shared
        self._expected = expected
        self._identified = identified
        self._again = again
        self._acked = False
        self._received = start
        self._handled = start
        self._most = expected if most is None else most
        self._out_of_turn: set[int] = set()
        self._lock = threading.Lock()
        self._began_at = 0.0
        self._changed_at = 0.0
        self._seen: tuple[str, int | None, int] = ("", None, 0)
        shared.uuid = uuid
        shared.reader = self

    def results(self) -> Iterator[list[JSONObject]]:
        """Yield results as they come, each once and in order, until the job is over.

        Yields
        ------
        list of mapping
            One or more result items. The list is the receiver's: emptied, it leaves no item in memory, and a
            stock server may answer thousands at once.

        Raises
        ------
        ProtocolError
            If a server with ``ack`` goes on sending what cannot be.
        JobTimeoutError
            If nothing changes for too long.
        """
        self._began_at = self._changed_at = self._shared.clock.now()
        self._acked = "ack" in self._shared.facts.info().features
        groups = self._read_acked() if self._acked else self._read_stock()
        while True:
            with self._shared.counters.timed("seconds_wait"):
                group = next(groups, None)
            if group is None:
                return
            self._received += len(group)
            yield group

    @property
    def received(self) -> int:
        """How many results have been yielded."""
        return self._received

    def _exceeds(self, more: int) -> bool:
        """Whether so many more results would be too many."""
        return self._expected is not None and self._received + more > self._expected

    def _wrong_count(self, came: int) -> errors.ProtocolError:
        """Make the error for results that are too many or too few."""
        return errors.ProtocolError(f"job {self.uuid} answered {came} results for {self._expected} items")

    def handled_by_caller(self, number: int) -> Callable[[], None] | None:
        """Return what is to be called once the caller has dealt with a result; None where nobody asks."""
        return partial(self.handle, number) if self._acked else None

    def handle(self, number: int) -> None:
        """Note that a result needs to be kept by the server no longer."""
        with self._lock:
            self._out_of_turn.add(number)
            while self._handled + 1 in self._out_of_turn:
                self._handled += 1
                self._out_of_turn.discard(self._handled)

    def acknowledge(self) -> None:
        """Tell the server, where it keeps them, which results are needed no longer."""
        if not self._acked:
            return
        call = calls.pop_acked(self.uuid, ack=self._handled, wait=None, limit=0)
        try:
            self._shared.caller.call(call)
        except errors.PredSessionError as error:
            log.info("job %s: what was dealt with could not be told: %s", self.uuid, error)

    @property
    def all_handled(self) -> bool:
        """Whether the caller has dealt with every result, or nobody needs to know."""
        return not self._acked or self._handled >= self._received

    def _read_acked(self) -> Iterator[list[JSONObject]]:
        """Read by number: asking again from the last one gives the same answer."""
        # Where the server can tell the two apart, what has arrived is acknowledged only when the caller has
        # dealt with it: so another process can go on from there.
        after = "after" in self._shared.facts.info().features
        half = self._shared.options.connection.read_timeout / 2
        options = self._shared.options
        # No longer than half of what could pass unseen while the answer is held.
        longest = min(LONG_POLL, half, options.idle_timeout / 2, (options.start_timeout or math.inf) / 2)
        wait = longest if "wait" in self._shared.facts.info().features else None
        pace, broken = PollPace(), 0
        while not self._shared.cancel.is_set():
            call = calls.pop_acked(
                self.uuid,
                ack=self._handled if after else self._received,
                after=self._received if after else None,
                wait=wait,
                limit=POP_LIMIT,
            )
            reply = self._call(call)
            if self._is_gone(reply):
                return
            try:
                state, found = self._note(self._numbered(parse_job(reply)))
            except errors.ProtocolError:
                broken += 1
                self._shared.caller.retries[Failure.GARBLED.value] += 1
                if broken >= LOST_IN_A_ROW:
                    raise
                self._rest(pace, False)
                continue
            broken = 0
            if some := bool(found):
                yield found
            if state.finished and (not some or self._received == self._expected):
                return
            if wait is None:
                self._rest(pace, some)

    def _call(self, call: Call) -> Reply:
        """Send a call; a server that does not answer is waited for no longer than one that stands still."""
        ends = self._changed_at + self._shared.options.idle_timeout
        try:
            return self._shared.caller.call(call, give_up_at=ends)
        except (errors.RequestTimeoutError, errors.ServerFaultError) as error:
            if self._shared.clock.now() < ends - 1.0:
                raise
            raise self._stands_still() from error

    def _stands_still(self) -> errors.JobTimeoutError:
        """Make the error for a job without any change for too long."""
        stage = self.state.stage_text if self.state else "its beginning"
        idle = self._shared.clock.now() - self._changed_at
        return errors.JobTimeoutError(
            f"job {self.uuid} has stood at {stage!r} for {idle:.1f} s without a result, longer "
            f"than idle_timeout={self._shared.options.idle_timeout:g} s; pass more if it may take so long",
            uuid=self.uuid,
            stage=stage,
        )

    def _numbered(self, state: JobState) -> JobState:
        """Return the state with its results in the order of their numbers, which must go on from the last."""
        found = sorted(state.results, key=_number)
        for offset, item in enumerate(found, start=self._received + 1):
            if _number(item) != offset:
                raise errors.ProtocolError(
                    f"job {self.uuid} answered result {item.get('number')!r} where {offset} follows; "
                    "is another process reading this job?"
                )
        if self._exceeds(len(found)):
            raise self._wrong_count(self._received + len(found))
        return replace(state, results=found)

    def _read_stock(self) -> Iterator[list[JSONObject]]:
        """Read by popping; after a lost answer hold back until the count is known."""
        if self._again:
            self._wait_for_end()
        pace, lost, held = PollPace(), 0, list[JSONObject]()
        doubtful = False
        while not self._shared.cancel.is_set():
            popped = self._pop_stock(lost)
            if self.expired:
                return
            if popped is None:
                doubtful, lost = True, lost + 1
                self._shared.caller.retries["pop"] += 1
                self._rest(pace, False)
                continue
            lost = 0
            state, found = self._note(popped)
            del popped  # all of it would stay in memory while the caller takes its time
            if not (doubtful or self._identified) and self._is_miscounted(state, len(found)):
                return
            if some := bool(found):
                if doubtful and not self._identified:
                    held.extend(found)
                else:
                    yield found
            if state.finished or (state.stage is Stage.ERROR and state.exception is not None):
                break
            self._rest(pace, some)
        if held and self._is_complete(len(held)):
            yield held

    def _wait_for_end(self) -> None:
        """Ask how far the job is, which takes nothing, until it is over."""
        pace = PollPace()
        while not self._shared.cancel.is_set():
            try:
                reply = self._call(calls.progress(self.uuid))
            except errors.ServerFaultError as error:
                if error.status == 500:
                    return  # perhaps it is unknown: the pop that follows says so
                raise
            if is_unknown_job(reply):
                return
            state, _ = self._note(parse_job(reply))
            if state.finished or state.stage.terminal:
                return
            self._rest(pace, False)

    def _pop_stock(self, lost: int) -> JobState | None:
        """Pop once; None if the answer may have been lost together with results, or the job is gone."""
        try:
            reply = self._call(calls.pop(self.uuid))
            return None if self._is_gone(reply) else parse_job(reply)
        except (errors.ConnectError, errors.JobTimeoutError):
            raise
        except errors.ServerFaultError as error:
            if error.status == 500 and seems_forgotten(self._shared.caller, self.uuid):
                self.expired = True
                return None
            if lost + 1 >= LOST_IN_A_ROW:
                raise
        except (errors.TransportError, errors.RateLimitError):
            if lost + 1 >= LOST_IN_A_ROW:
                raise
        return None

    def _is_miscounted(self, state: JobState, more: int) -> bool:
        """Whether the results are too many, or in the end too few, though no answer was lost: note it."""
        came = self._received + more
        ended = state.finished and state.stage is Stage.FINISHED
        if self._exceeds(more) or (ended and self._expected is not None and came < self._expected):
            self.miscounted = self._wrong_count(came)
        return self.miscounted is not None

    def _is_complete(self, held: int) -> bool:
        """Whether nothing was lost, by the numbers of the last answer."""
        assert self.state is not None
        if self.state.stage is Stage.FINISHED:
            return self._received + held == self._expected
        return self._received + held == self.state.current

    def _is_gone(self, reply: Reply) -> bool:
        """Note whether the server knows the job no longer."""
        self.expired = self.expired or is_unknown_job(reply)
        return self.expired

    def _note(self, state: JobState) -> tuple[JobState, list[JSONObject]]:
        """Keep the state, and return it and its results apart; raise if nothing has changed for too long."""
        now = self._shared.clock.now()
        seen = (state.stage_text, state.current, self._new(len(state.results)))
        if seen != self._seen:
            self._seen, self._changed_at = seen, now
        elif now - self._changed_at > self._shared.options.idle_timeout:
            raise self._stands_still()
        self._check_start(state, now)
        self._shared.check_time()
        self._shared.sweep()
        self.state = replace(state, results=(), raw={})
        self._shared.watch(self.state)
        return self.state, list(state.results)

    def _new(self, more: int) -> int:
        """Return how many results there are with so many more; beyond all, such as repeats, none is new."""
        came = self._received + more
        return came if self._most is None else min(came, self._most)

    def _check_start(self, state: JobState, now: float) -> None:
        """Raise if the job does not begin to run."""
        longest = self._shared.options.start_timeout
        if longest is not None and state.stage is Stage.PREPARING and now - self._began_at > longest:
            raise errors.JobTimeoutError(
                f"job {self.uuid} has not begun to run after start_timeout={longest:g} s: its stage is "
                f"{state.stage_text!r}. The server may be loading its model, or be busy with other jobs; "
                "pass a larger start_timeout",
                uuid=self.uuid,
                stage=state.stage_text,
            )

    def _rest(self, pace: PollPace, got_some: bool) -> None:
        """Wait before the next poll."""
        self._shared.clock.wait(
            self._shared.cancel, pace.after_results() if got_some else pace.after_nothing()
        )


def _number(item: JSONObject) -> int:
    """Return a result's number; 0, which no result has, where there is none."""
    number = item.get("number")
    return number if isinstance(number, int) and not isinstance(number, bool) else 0
