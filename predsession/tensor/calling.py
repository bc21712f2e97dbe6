"""One call of a model: its turn, its bytes, its reply; again once, if the server has forgotten what it kept.

Invariants: a key is taken down as kept only once a reply says that its call went well; whatever happens, the
call's turn ends.
"""

from __future__ import annotations

import hashlib
import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass

from predsession.errors import (
    NotFoundError,
    PredSessionError,
    ProtocolError,
    ResponseError,
    SessionClosedError,
    SourceError,
)
from predsession.rpc.flight import Awaited
from predsession.tensor.answers import check_output, placed
from predsession.tensor.containers import Data
from predsession.tensor.door import Door
from predsession.tensor.htensor import HTensor
from predsession.tensor.plan import Kept, Plan, Wish, as_kept
from predsession.tensor.profile import Meter, ServerTimes, counted, told
from predsession.tensor.residency import HereOnly, Output, Residency, Sent, bytes_of
from predsession.tensor.table import Table, Turn
from predsession.tensor.way import Way
from predsession.wire.oip.facts import Counters, TensorFacts
from predsession.wire.oip.messages import InferReply, InferRequest, Parameter, Tensor, Wanted
from predsession.wire.oip.packing import unpack
from predsession.wire.oip.regions import REGION
from predsession.wire.oip.residency import TIMINGS, UNKNOWN_KEY

Results = dict[str, Data | HTensor]
log = logging.getLogger("predsession.tensor")
_NOWHERE = HereOnly()
"""For calls without keys: there it keeps nothing."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How calls are made.

    Parameters
    ----------
    seconds : float
        The deadline of each.
    parameters : mapping
        Said with each.
    timed : bool
        Whether the server is asked how long it took.
    tells : bool
        Whether it tells that with its replies; else its counters are looked at.
    level : int
        At which calls are logged.
    """

    seconds: float
    parameters: dict[str, Parameter]
    timed: bool
    tells: bool
    level: int = logging.DEBUG


@dataclass(slots=True)
class _Going:
    """A call under way."""

    plan: Plan
    meter: Meter
    began: float
    turn: Turn
    sent: tuple[Sent, ...] = ()
    way: Residency = _NOWHERE
    elsewhere: frozenset[str] = frozenset()
    """Outputs that the server was told a region for."""
    before: Counters | None = None
    left: float = 0.0
    asking: float = 0.0
    """Seconds that looking at the server's counters took, which is no part of the call."""


class Calling:
    """Makes calls of one session.

    Parameters
    ----------
    door : Door
        The server.
    way : Way
        How tensors are kept.
    manner : Manner
        How calls are made.
    """

    def __init__(self, door: Door, way: Way, manner: Manner) -> None:
        self._door = door
        self._way = way
        self._manner = manner
        self.table: Table = Table()

    def call(self, plan: Plan, meter: Meter) -> Results:
        """Run a model, and wait.

        Parameters
        ----------
        plan : Plan
            What is asked.
        meter : Meter
            Of the model.

        Returns
        -------
        dict
            Output name to array, torch tensor or `HTensor`.

        Raises
        ------
        PredSessionError
            Whatever went wrong.
        ResponseError
            What the server refused among it.
        """
        going = self._begin(plan, meter)
        try:
            request = self._request(going)
            try:
                return self._end(going, self._door.infer(request, self._manner.seconds))
            except ResponseError as error:
                refusal = error
            if not self._mends(going, refusal):
                raise refusal
            return self._end(going, self._door.infer(self._request(going), self._manner.seconds))
        except BaseException as error:
            failure = self._failed(going, error)
            if failure is error:
                raise
            raise failure from error
        finally:
            self.table.leave(going.turn)

    def submit(self, plan: Plan, meter: Meter) -> Future[Results]:
        """Run a model, and go on.

        Parameters
        ----------
        plan : Plan
            What is asked.
        meter : Meter
            Of the model.

        Returns
        -------
        Future
            As `call` returns it; cancelling it cancels the call.

        Raises
        ------
        RequestTimeoutError
            If a key stays in use by the calls before it.
        """
        going = self._begin(plan, meter)
        outcome: Future[Results] = Awaited(f"call of {plan.model.name!r}")
        try:
            self._send(going, outcome, again=True)
        except BaseException as error:
            self._failed(going, error)
            self.table.leave(going.turn)
            raise
        return outcome

    def _send(self, going: _Going, outcome: Future[Results], *, again: bool) -> None:
        """Send a call whose reply is taken in another thread."""
        going.left = time.perf_counter()
        inner = self._door.submit(self._request(going), self._manner.seconds, lambda reply: reply)
        outcome.add_done_callback(lambda done: inner.cancel() if done.cancelled() else None)
        inner.add_done_callback(lambda done: self._arrived(done, going, outcome, again=again))

    def _arrived(
        self, inner: Future[InferReply], going: _Going, outcome: Future[Results], *, again: bool
    ) -> None:
        """Take a reply, or what came in its place."""
        results: Results | None = None
        failure: BaseException | None = None
        try:
            if inner.cancelled():
                raise SessionClosedError("the call was cancelled")
            results = self._end(going, inner.result())
        except Exception as error:  # noqa: BLE001 - it is the future's
            failure = error
        if again and isinstance(failure, ResponseError):
            try:
                if self._mends(going, failure):
                    self._send(going, outcome, again=False)
                    return
            except Exception as error:  # noqa: BLE001 - it is the future's
                failure = error
        if failure is not None:
            failure = self._failed(going, failure)
        self.table.leave(going.turn)
        if outcome.set_running_or_notify_cancel():
            if failure is not None:
                outcome.set_exception(failure)
            else:
                assert results is not None, "a call without a failure has results"
                outcome.set_result(results)

    # -- before ----------------------------------------------------------------------------------------

    def _begin(self, plan: Plan, meter: Meter) -> _Going:
        """Wait for the call's turn."""
        began = time.perf_counter()
        while True:
            reads, writes = self._uses(plan)
            left = self._manner.seconds - (time.perf_counter() - began)
            turn = self.table.enter(reads, writes, seconds=left)
            # What was another's data when it lined up may have become ours, or ours another's.
            if self._uses(plan)[1].keys() <= writes.keys():
                return _Going(plan, meter, began, turn)
            self.table.leave(turn)

    def _uses(self, plan: Plan) -> tuple[list[str], dict[str, Kept | None]]:
        """Return the keys that a call reads, and those that it writes with what they become."""
        reads: list[str] = []
        writes: dict[str, Kept | None] = {}
        for given in plan.given:
            if given.tensor is None or given.tensor.key is None:
                continue
            if given.array is not None and self.table.stamp(given.tensor.key) != given.stamp:
                writes[given.tensor.key] = Kept(given.datatype, given.shape)
            else:
                reads.append(given.tensor.key)
        for wish in plan.wishes:
            if wish.key is not None:
                writes[wish.key] = Kept(wish.facts.datatype, wish.facts.shape)
        return reads, writes

    def _request(self, going: _Going) -> InferRequest:
        """Write the request."""
        plan, manner = going.plan, self._manner
        going.sent = tuple(self._sent(plan, place) for place in range(len(plan.given)))
        keys = [each.key for each in going.sent] + [wish.key for wish in plan.wishes]
        # What keeps nothing needs no way to; but our server says the shape of what it does not send.
        keyed = any(key is not None for key in keys) or (manner.tells and not plan.plain)
        way = going.way = self._way.find() if keyed else _NOWHERE
        parameters: dict[str, Parameter] = {**manner.parameters, **way.parameters}
        if manner.timed and manner.tells:
            parameters[TIMINGS] = True
        if manner.timed and not manner.tells:
            asked = time.perf_counter()
            going.before = self._counters(plan.model.name)
            going.asking += time.perf_counter() - asked
        reads = {each.key for each in going.sent if each.key is not None}
        wanted = () if plan.plain else self._wanted(way, plan, reads)
        going.elsewhere = frozenset(each.name for each in wanted if REGION in each.parameters)
        request = InferRequest(
            plan.model.name,
            tuple(way.input(each) for each in going.sent),
            wanted,
            parameters=parameters,
        )
        going.left = time.perf_counter()
        return request

    def _sent(self, plan: Plan, place: int) -> Sent:
        """Return how one input travels."""
        given = plan.given[place]
        if given.tensor is None or given.tensor.key is None:
            return Sent(given, bytes_of(given))
        key = given.tensor.key
        entry = self.table.look(key)
        if given.array is None:
            return Sent(as_kept(given, plan.model, entry.kept), None, key)
        if entry.kept is not None and entry.stamp == given.stamp:
            return Sent(given, None, key)
        packed = bytes_of(given)
        assert packed is not None, "what has an array has bytes"
        digest = hashlib.blake2b(packed, digest_size=16).digest()
        same = entry.kept == Kept(given.datatype, given.shape) and entry.digest == digest
        return Sent(given, packed, key, fresh=not same, digest=digest)

    def _wanted(self, way: Residency, plan: Plan, reads: set[str]) -> tuple[Wanted, ...]:
        """Return which outputs are asked for; a server that is asked for none sends all."""
        asked = [way.wanted(wish, apart=wish.key in reads) for wish in plan.wishes]
        wanted = tuple(each for each in asked if each is not None)
        return wanted or (Wanted(min(plan.wishes, key=_least).facts.name),)

    # -- after -----------------------------------------------------------------------------------------

    def _end(self, going: _Going, reply: InferReply) -> Results:
        """Take a reply."""
        now = time.perf_counter()
        plan, way = going.plan, going.way
        for each in going.sent:
            if each.key is not None and each.packed is not None:
                kept = Kept(each.given.datatype, each.given.shape)
                self.table.put(each.key, kept, each.given.stamp, digest=each.digest)
        told = {facts.name: facts.datatype for facts in plan.model.outputs}
        tensors: dict[str, Tensor] = {}
        for tensor in reply.outputs:
            check_output(tensor, told.get(tensor.name), elsewhere=tensor.name in going.elsewhere)
            if tensors.setdefault(tensor.name, tensor) is not tensor:
                raise ProtocolError(f"the reply has output {tensor.name!r} twice")
        wishes = plan.wishes or tuple(
            Wish(TensorFacts(each.name, each.datatype, each.shape)) for each in reply.outputs
        )
        results: Results = {}
        for wish in wishes:
            if plan.partial and not wish.configured and wish.facts.name not in tensors:
                continue  # what it is made of was left out
            output = way.output(wish, tensors.get(wish.facts.name))
            results[wish.facts.name] = self._result(going, wish, output)
        self._measure(going, now, reply)
        return results

    def _result(self, going: _Going, wish: Wish, output: Output) -> Data | HTensor:
        """Return one output as the caller has it."""
        data: Data | None = None
        if output.data is not None:
            # A copy: what came may not be written to, and what is the caller's may.
            array = unpack(output.data, output.datatype, output.shape).copy()
            data = going.plan.container.of(array)
        if not wish.configured:
            if data is None:
                raise ProtocolError(f"output {wish.facts.name!r} came without its bytes")
            return data
        made = HTensor.made(data, wish.device, wish.key, shape=output.shape, container=going.plan.container)
        if wish.there and wish.key is not None:
            self.table.put(wish.key, Kept(output.datatype, output.shape), made.stamp)
        return made

    def _measure(self, going: _Going, came: float, reply: InferReply) -> None:
        """Add the call's times."""
        call = came - going.left
        log.log(self._manner.level, "%s: %.1f ms", going.plan.model.name, call * 1e3)
        if not self._manner.timed:
            return
        frame = time.perf_counter() - going.began - going.asking
        server: ServerTimes | None = told(reply.parameters)
        if server is None and going.before is not None:
            server = counted(going.before, self._counters(going.plan.model.name))
        if server is not None and server.whole > call:
            server = None  # two clocks that disagree tell nothing
        going.meter.add(frame, call, server)

    def _counters(self, name: str) -> Counters | None:
        """Ask for a model's counters; a result is not lost because they cannot be had."""
        try:
            return self._door.counters(name)
        except PredSessionError as error:
            log.debug("%s does not tell how long it takes: %s", self._door.shown, error)
            return None

    def _mends(self, going: _Going, error: ResponseError) -> bool:
        """Whether the call goes well when it is sent again, after a refusal that did nothing."""
        if isinstance(error, NotFoundError) and UNKNOWN_KEY in str(error):
            # The lease ran out, or the server was started anew.
            keys = [each.key for each in going.sent if each.key is not None]
            self.table.drop(keys)
            lost = [each.key for each in going.sent if each.key is not None and each.given.array is None]
            if lost:
                raise NotFoundError(
                    f"{self._door.shown} no longer keeps {', '.join(map(repr, lost))}: it was started "
                    "anew, or has heard nothing from this session for too long. Run the call again that "
                    "it came from.",
                    status=error.status,
                    body_head=error.body_head,
                    url=error.url,
                )
            log.warning("%s no longer keeps %s: they are sent again", self._door.shown, ", ".join(keys))
            return True
        return going.way.mends(error, going.plan.wishes)

    def _failed(self, going: _Going, error: BaseException) -> BaseException:
        """Cross out what may not be kept as it was thought, and return what to raise."""
        fresh = [each.key for each in going.sent if each.key is not None and each.fresh]
        answered = isinstance(error, ResponseError | SourceError)  # the latter: nothing was sent
        self.table.drop([*fresh, *going.way.failed(going.plan.wishes, answered=answered)])
        if self._way.closed and isinstance(error, PredSessionError):
            # Whatever the server made of it, and however far it had come.
            return SessionClosedError("close_server() has ended this session while the call was under way")
        if isinstance(error, ProtocolError):
            return placed(error, going.plan.model.name, self._door.shown)
        if isinstance(error, PredSessionError):
            error.add_note(f"model {going.plan.model.name!r}")
        return error


def _least(wish: Wish) -> float:
    """Return how large an output is, as far as it is known."""
    size = 1.0
    for side in wish.facts.shape:
        size *= side if side >= 0 else 1e6
    return size
