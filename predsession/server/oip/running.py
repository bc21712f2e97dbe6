"""A model at work in the server's own process: on a thread of its own, one call after another.

Invariant: what leaves here as an error is a `CallError`, whatever a model raises.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

from predsession.errors import ProtocolError
from predsession.server.config import Limits
from predsession.server.models.results import BadResultError
from predsession.server.models.tensors import (
    Array,
    BadTensorError,
    Runnable,
    TensorFacts,
    TensorModel,
    check_arrays,
)
from predsession.server.oip.served import Order, Ran, Times
from predsession.server.oip.threads import ModelThread, Value
from predsession.server.statuses import CallError
from predsession.wire.oip.messages import Buffer
from predsession.wire.oip.packing import pack

_log = logging.getLogger("predsession.server")


class UserModel:
    """A user's model behind the checks of what it returns.

    Parameters
    ----------
    model : TensorModel
        Loaded.
    facts : TensorFacts
        What it promised.
    """

    def __init__(self, model: TensorModel, facts: TensorFacts) -> None:
        self._model = model
        self._facts = facts

    def run(self, inputs: dict[str, Array], wanted: Sequence[str]) -> dict[str, Array]:
        """Return the wanted outputs; raises `BadResultError` for what was not promised."""
        return check_arrays(self._model.infer(inputs), self._facts, wanted)

    def stream(self, inputs: dict[str, Array], wanted: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Yield them, many times."""
        if not self._facts.decoupled:
            yield self.run(inputs, wanted)
            return
        stream: Callable[[dict[str, Array]], Iterator[object]] = getattr(self._model, "stream")  # noqa: B009 - optional
        for returned in stream(inputs):
            yield check_arrays(returned, self._facts, wanted)

    def close(self) -> None:
        """Tell it that it goes."""
        close = getattr(self._model, "close", None)
        if callable(close):
            close()


class ThreadModel:
    """A model on its thread.

    Parameters
    ----------
    name : str
        What it is called in messages.
    thread : ModelThread
        Its own.
    runnable : Runnable
        Loaded on that thread.
    facts : TensorFacts
        What callers may know.
    limits : Limits
        How many calls may wait.
    """

    def __init__(
        self, name: str, thread: ModelThread, *, runnable: Runnable, facts: TensorFacts, limits: Limits
    ) -> None:
        self.facts = facts
        self._name = name
        self._thread = thread
        self._runnable = runnable
        self._limits = limits
        self._calls = 0
        self._bytes = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self, order: Order) -> Ran:
        """Answer once.

        Parameters
        ----------
        order : Order
            What is asked.

        Returns
        -------
        Ran
            What came out.

        Raises
        ------
        CallError
            If too many wait, an input is none, or the model failed.
        """
        asked = time.monotonic_ns()
        with self._entered(order):
            return await self._thread.submit(lambda: self._do(order, asked))

    async def stream(self, order: Order) -> AsyncGenerator[Ran, None]:
        """Answer as often as the model does, each when it is asked for.

        Parameters
        ----------
        order : Order
            What is asked.

        Yields
        ------
        Ran
            One answer.

        Raises
        ------
        CallError
            As for `run`.
        """
        steps: list[Iterator[Ran]] = []
        asked = time.monotonic_ns()
        with self._entered(order):
            try:
                steps.append(await self._thread.submit(lambda: self._begin(order, asked)))
                while (ran := await self._thread.submit(lambda: next(steps[0], None))) is not None:
                    yield ran
            finally:
                # A generator is closed where it runs; after a step that is under way.
                self._thread.submit(
                    lambda: [close() for each in steps if (close := getattr(each, "close", None))]
                )

    async def close(self, grace: float) -> None:
        """Let calls under way finish, at most so many seconds, then free the model."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._idle.wait()
        freed = self._thread.submit(self._runnable.close)
        self._thread.end()
        try:
            async with asyncio.timeout(grace):
                await freed
        except TimeoutError:
            _log.error("model %s does not return; its thread is left behind", self._name)
        except Exception as error:  # noqa: BLE001 - somebody's code; the model goes all the same
            _log.error("model %s, on closing: %s", self._name, _said(error))

    @contextlib.contextmanager
    def _entered(self, order: Order) -> Iterator[None]:
        """Hold a place among those that wait."""
        size = order.size
        full = self._calls > self._limits.frames or (
            self._bytes and self._bytes + size > self._limits.backlog
        )
        if full:
            text = f"{self._calls} calls with {self._bytes:,} bytes wait for {self._name}; try again"
            raise CallError("RESOURCE_EXHAUSTED", text)
        self._calls += 1
        self._bytes += size
        self._idle.clear()
        try:
            yield
        finally:
            self._calls -= 1
            self._bytes -= size
            if not self._calls:
                self._idle.set()

    def _do(self, order: Order, asked: int) -> Ran:
        """Answer once, on the thread."""
        begun = time.monotonic_ns()
        inputs = self._read(order)
        ready = time.monotonic_ns()
        outputs = self._guarded(lambda: self._runnable.run(dict(inputs), order.wanted))
        done = time.monotonic_ns()
        data = self._packed(order, outputs)
        packed = time.monotonic_ns()
        return Ran(inputs, outputs, data, Times(begun - asked, ready - begun, done - ready, packed - done))

    def _begin(self, order: Order, asked: int) -> Iterator[Ran]:
        """Return what answers step by step, on the thread."""
        begun = time.monotonic_ns()
        inputs = self._read(order)
        return self._steps(order, inputs, begun - asked, time.monotonic_ns() - begun)

    def _steps(self, order: Order, inputs: dict[str, Array], queue: int, pre: int) -> Iterator[Ran]:
        """Yield answers; the waiting and the reading are the first one's."""
        answers = self._guarded(lambda: self._runnable.stream(dict(inputs), order.wanted))
        while True:
            ready = time.monotonic_ns()
            outputs = self._guarded(lambda: next(answers, None))
            if outputs is None:
                return
            done = time.monotonic_ns()
            data = self._packed(order, outputs)
            yield Ran(inputs, outputs, data, Times(queue, pre, done - ready, time.monotonic_ns() - done))
            queue = pre = 0

    def _read(self, order: Order) -> dict[str, Array]:
        """Return the arrays of a call."""
        try:
            return {one.spec.name: one.read() for one in order.inputs}
        except ProtocolError as error:
            raise CallError("INVALID_ARGUMENT", str(error)) from None

    def _packed(self, order: Order, outputs: Mapping[str, Array]) -> dict[str, Buffer]:
        """Return the bytes of what is sent."""
        kinds = {spec.name: spec.datatype for spec in self.facts.outputs}
        sent = [name for name in order.wanted if name in order.sent]
        return self._guarded(lambda: {name: pack(outputs[name], kinds[name]) for name in sent})

    def _guarded(self, work: Callable[[], Value]) -> Value:
        """Do something that is the model's, and call it the model's failure if it fails."""
        try:
            return work()
        except BadTensorError as error:
            raise CallError("INVALID_ARGUMENT", str(error)) from None
        except BadResultError as error:
            raise CallError("INTERNAL", f"model {self._name}: {error}") from None
        except BaseException as error:  # noqa: BLE001 - a model is somebody's code and raises anything
            _log.error("model %s failed: %s", self._name, "".join(traceback.format_exception(error)))
            raise CallError("INTERNAL", f"model {self._name}: {_said(error)}") from None


def _said(error: BaseException) -> str:
    """Return an error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
