"""One call of a model: its turn, its bytes, its reply; again once, if the server has forgotten what it kept.

Invariants: a key is taken down as kept only once a reply says that its call went well; whatever happens, the
call's turn ends.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from predsession.errors import (
    NotFoundError,
    PredSessionError,
    ProtocolError,
    ResponseError,
    SessionClosedError,
)
from predsession.tensor.containers import Data
from predsession.tensor.door import Door
from predsession.tensor.htensor import HTensor
from predsession.tensor.plan import Kept, Plan, Wish
from predsession.tensor.profile import Meter, ServerTimes, counted, told
from predsession.tensor.residency import HereOnly, Output, Residency, Sent, bytes_of
from predsession.tensor.table import Table
from predsession.wire.oip.facts import Counters, TensorFacts
from predsession.wire.oip.messages import InferReply, InferRequest, Parameter, Wanted
from predsession.wire.oip.packing import unpack
from predsession.wire.oip.residency import TIMINGS, UNKNOWN_KEY

Results = dict[str, Data | HTensor]
log = logging.getLogger("predsession.tensor")


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
    turn: Future[None]
    sent: tuple[Sent, ...] = ()
    way: Residency = field(default_factory=HereOnly)
    before: Counters | None = None
    left: float = 0.0


class Calling:
    """Makes calls of one session.

    Parameters
    ----------
    door : Door
        The server.
    residency : callable
        Returns how tensors are kept; it is asked when one first is to be.
    manner : Manner
        How calls are made.
    """

    def __init__(self, door: Door, residency: Callable[[], Residency], manner: Manner) -> None:
        self._door = door
        self._residency = residency
        self._manner = manner
        self.table = Table()

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
                if not self._mends(going, error):
                    raise
            return self._end(going, self._door.infer(self._request(going), self._manner.seconds))
        except BaseException as error:
            self._failed(going, error)
            raise
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
        outcome: Future[Results] = Future()
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
        inner = self._door.submit(self._request(going), self._manner.seconds, _itself)
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
        except ResponseError as error:
            failure = error
            if again and self._mends(going, error):
                try:
                    self._send(going, outcome, again=False)
                    return
                except Exception as second:  # noqa: BLE001 - it is the future's
                    failure = second
        except Exception as error:  # noqa: BLE001 - it is the future's
            failure = error
        if failure is not None:
            self._failed(going, failure)
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
        reads: list[str] = []
        writes = [wish.key for wish in plan.wishes if wish.key is not None]
        for given in plan.given:
            if given.tensor is not None and given.tensor.key is not None:
                changed = given.array is not None and self.table.stamp(given.tensor.key) != given.tensor.stamp
                (writes if changed else reads).append(given.tensor.key)
        turn = self.table.enter(reads, writes, seconds=self._manner.seconds)
        return _Going(plan, meter, began, turn)

    def _request(self, going: _Going) -> InferRequest:
        """Write the request."""
        plan, manner = going.plan, self._manner
        going.sent = tuple(self._sent(plan, place) for place in range(len(plan.given)))
        keyed = any(each.key is not None for each in going.sent) or not plan.plain
        way = going.way = self._residency() if keyed else HereOnly()  # a plain call keeps nothing anywhere
        parameters: dict[str, Parameter] = {**manner.parameters, **way.parameters}
        if manner.timed and manner.tells:
            parameters[TIMINGS] = True
        if manner.timed and not manner.tells:
            going.before = self._door.counters(plan.model.name)
        reads = {each.key for each in going.sent if each.key is not None}
        wanted = () if plan.plain else self._wanted(way, plan, reads)
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
        if given.array is None or (entry.kept is not None and entry.stamp == given.tensor.stamp):
            return Sent(given, None, key)
        packed = bytes_of(given)
        assert packed is not None, "what has an array has bytes"
        same = entry.kept == Kept(given.datatype, given.shape) and entry.digest == _digest(packed)
        return Sent(given, packed, key, fresh=not same)

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
            if each.key is not None and each.fresh and each.given.tensor is not None:
                assert each.packed is not None, "what is fresh has bytes"
                kept = Kept(each.given.datatype, each.given.shape)
                self.table.put(each.key, kept, each.given.tensor.stamp, _digest(each.packed))
            elif each.key is not None and each.packed is not None and each.given.tensor is not None:
                entry = self.table.look(each.key)
                assert entry.kept is not None, "what is the same is kept"
                self.table.put(each.key, entry.kept, each.given.tensor.stamp, entry.digest)
        tensors = {tensor.name: tensor for tensor in reply.outputs}
        wishes = plan.wishes or tuple(
            Wish(TensorFacts(each.name, each.datatype, each.shape)) for each in reply.outputs
        )
        results: Results = {}
        for wish in wishes:
            output = way.output(wish, tensors.get(wish.facts.name))
            results[wish.facts.name] = self._result(going, wish, output)
        self._measure(going, now, reply)
        return results

    def _result(self, going: _Going, wish: Wish, output: Output) -> Data | HTensor:
        """Return one output as the caller has it."""
        data: Data | None = None
        if output.data is not None:
            try:
                # A copy: what came may not be written to, and what is the caller's may.
                array = unpack(output.data, output.datatype, output.shape).copy()
            except ProtocolError as error:
                raise ProtocolError(
                    f"output {wish.facts.name!r} of {going.plan.model.name!r} at {self._door.shown}: {error}"
                ) from None
            data = going.plan.container.of(array)
        if not wish.configured:
            if data is None:
                raise ProtocolError(
                    f"output {wish.facts.name!r} at {self._door.shown} came without its bytes"
                )
            return data
        made = HTensor.made(data, wish.device, wish.key, output.shape)
        if wish.there and wish.key is not None:
            self.table.put(wish.key, Kept(output.datatype, output.shape), made.stamp)
        return made

    def _measure(self, going: _Going, now: float, reply: InferReply) -> None:
        """Add the call's times."""
        if not self._manner.timed:
            log.log(self._manner.level, "%s: %.1f ms", going.plan.model.name, (now - going.left) * 1e3)
            return
        server: ServerTimes | None = told(reply.parameters)
        if server is None and not self._manner.tells:
            server = counted(going.before, self._door.counters(going.plan.model.name))
        call = now - going.left
        if server is not None and server.whole > call:
            server = None  # two clocks that disagree tell nothing
        going.meter.add(call + (going.left - going.began), call, server)
        log.log(self._manner.level, "%s: %.1f ms", going.plan.model.name, call * 1e3)

    def _mends(self, going: _Going, error: ResponseError) -> bool:
        """Whether the call goes well when it is sent again, after a refusal that did nothing."""
        if isinstance(error, NotFoundError) and UNKNOWN_KEY in str(error):
            # The lease ran out, or the server was started anew.
            keys = [each.key for each in going.sent if each.key is not None]
            self.table.drop(keys)
            if any(each.key is not None and each.given.array is None for each in going.sent):
                return False
            log.warning("%s no longer keeps %s: they are sent again", self._door.shown, ", ".join(keys))
            return True
        return going.way.mends(error, going.plan.wishes)

    def _failed(self, going: _Going, error: BaseException) -> None:
        """Cross out what may not be kept as it was thought."""
        fresh = [each.key for each in going.sent if each.key is not None and each.fresh]
        self.table.drop(fresh)
        if not isinstance(error, ResponseError):
            self.table.drop([wish.key for wish in going.plan.wishes if wish.key is not None])
        if isinstance(error, PredSessionError):
            error.add_note(f"model {going.plan.model.name!r}")


def _itself(reply: InferReply) -> InferReply:
    """Return a reply as it is."""
    return reply


def _digest(packed: bytes | memoryview) -> bytes:
    """Return what tells bytes from others."""
    return hashlib.blake2b(packed, digest_size=16).digest()


def _least(wish: Wish) -> float:
    """Return how large an output is, as far as it is known."""
    size = 1.0
    for side in wish.facts.shape:
        size *= side if side >= 0 else 1e6
    return size
