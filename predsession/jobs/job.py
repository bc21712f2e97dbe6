"""One job: from its uuid to its results, in order and counted.

Invariants: results come in the order of the images that were sent, and nothing else ties the two together
(docs/protocol.md, "Matching"). So on a stock server, where a pop whose answer is lost takes results with
it, everything after a lost answer is held back until the count at the end shows whether it was complete;
if it was not, the images it might belong to are sent again. With ``ack`` a lost answer is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from predsession import errors
from predsession.jobs.pace import PollPace
from predsession.jobs.shared import Shared
from predsession.wire import calls
from predsession.wire.calls import Call, Repeat
from predsession.wire.httpreply import Reply, is_unknown_job
from predsession.wire.jsontypes import JSONObject
from predsession.wire.replies import JobState, parse_job
from predsession.wire.stages import Stage

LONG_POLL = 5.0
"""Seconds a server with ``wait`` may hold an answer; never more than half the read timeout."""
POP_LIMIT = 64
"""Results asked for at once, where the server has ``ack``."""
LOST_IN_A_ROW = 5
"""Pops of a stock server that may fail one after the other."""


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
    """

    def __init__(
        self,
        shared: Shared,
        uuid: str,
        *,
        expected: int | None,
        identified: bool = False,
        again: bool = False,
    ) -> None:
        self.uuid = uuid
        self.state: JobState | None = None
        """The last answer."""
        self.expired = False
        """Whether the server no longer knows the job."""
        self._shared = shared
        self._expected = expected
        self._identified = identified
        self._again = again
        self._received = 0
        self._changed_at = 0.0
        self._seen: tuple[str, int | None, int] = ("", None, 0)
        shared.uuid = uuid

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
            If more come than images were sent.
        JobTimeoutError
            If nothing changes for too long.
        """
        self._changed_at = self._shared.clock.now()
        acked = "ack" in self._shared.facts.info().features
        groups = self._read_acked() if acked else self._read_stock()
        while True:
            with self._shared.counters.timed("seconds_wait"):
                group = next(groups, None)
            if group is None:
                return
            self._received += len(group)
            if self._expected is not None and self._received > self._expected:
                raise errors.ProtocolError(
                    f"job {self.uuid} answered {self._received} results for {self._expected} items"
                )
            yield group

    def _read_acked(self) -> Iterator[list[JSONObject]]:
        """Read by number: asking again from the last one gives the same answer."""
        half = self._shared.options.connection.read_timeout / 2
        wait = min(LONG_POLL, half) if "wait" in self._shared.facts.info().features else None
        pace = PollPace()
        while not self._shared.cancel.is_set():
            call = calls.pop_acked(self.uuid, ack=self._received, wait=wait, limit=POP_LIMIT)
            reply = self._call(call)
            if self._is_gone(reply):
                return
            state, found = self._note(parse_job(reply))
            self._check_numbers(found)
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
            f"job {self.uuid} has stood at {stage!r} for {idle:.0f} s without a result; pass a larger "
            "idle_timeout if the model may take that long",
            uuid=self.uuid,
            stage=stage,
        )

    def _check_numbers(self, found: Sequence[JSONObject]) -> None:
        """Make sure that the results go on from the last one."""
        for offset, item in enumerate(found, start=self._received + 1):
            if item.get("number") != offset:
                raise errors.ProtocolError(
                    f"job {self.uuid} answered result {item.get('number')!r} where {offset} follows"
                )

    def _read_stock(self) -> Iterator[list[JSONObject]]:
        """Read by popping; after a lost answer hold back until the count is known."""
        if self._again:
            self._wait_for_end()
        pace, lost, held = PollPace(), 0, list[JSONObject]()
        doubtful = False
        while not self._shared.cancel.is_set():
            reply = self._pop_stock(lost)
            if reply is None:
                doubtful, lost = True, lost + 1
                self._rest(pace, False)
                continue
            lost = 0
            if self._is_gone(reply):
                return
            state, found = self._note(parse_job(reply))
            del reply  # all of it would stay in memory while the caller takes its time
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

    def _pop_stock(self, lost: int) -> Reply | None:
        """Pop once; None if the answer may have been lost together with results."""
        try:
            return self._call(calls.pop(self.uuid))
        except (errors.ConnectError, errors.JobTimeoutError):
            raise
        except errors.ServerFaultError as error:
            if error.status == 500 and self._seems_forgotten():
                self.expired = True
                return Reply(500, {}, b"no such uuid")
            if lost + 1 >= LOST_IN_A_ROW:
                raise
        except (errors.TransportError, errors.RateLimitError):
            if lost + 1 >= LOST_IN_A_ROW:
                raise
        return None

    def _seems_forgotten(self) -> bool:
        """Whether a bare 500 means an unknown job: a stock server in development mode does not say."""
        # Without the patience that other faults deserve: it would be spent on every job that is forgotten.
        look = replace(calls.status(self.uuid), repeat=Repeat.REFUSED)
        for _ in range(2):
            try:
                return is_unknown_job(self._shared.caller.call(look))
            except errors.ServerFaultError as error:
                if error.status != 500:
                    return False
            except errors.TransportError:
                return False
            self._shared.caller.call(calls.session_info())
        return True

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
        seen = (state.stage_text, state.current, self._received + len(state.results))
        if seen != self._seen:
            self._seen, self._changed_at = seen, now
        elif now - self._changed_at > self._shared.options.idle_timeout:
            raise self._stands_still()
        self.state = replace(state, results=(), raw={})
        self._shared.watch(self.state)
        return self.state, list(state.results)

    def _rest(self, pace: PollPace, got_some: bool) -> None:
        """Wait before the next poll."""
        self._shared.clock.wait(
            self._shared.cancel, pace.after_results() if got_some else pace.after_nothing()
        )
