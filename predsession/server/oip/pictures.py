"""The server's models of pictures as tensor models: a picture in, boxes, scores and classes out.

They run in their workers, in one queue with all other pictures; nothing is loaded twice. The worker's side is
`answer`.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from itertools import accumulate, pairwise

from predsession.server.config import Limits
from predsession.server.models.tensors import Array
from predsession.server.oip.answer import HEAD, IMAGE, picture_facts
from predsession.server.oip.served import Given, Order, Ran, Times
from predsession.server.runner import Runner
from predsession.server.shots import QueueFullError, Shot, ShotAnswer, error_text
from predsession.server.statuses import CallError
from predsession.wire.geometry import Size
from predsession.wire.jsontypes import JSONObject
from predsession.wire.oip.packing import pack, unpack

FORM: JSONObject = {"arrays": True}
"""What a shot says whose answer is `write_arrays`'s."""


class PictureModel:
    """One of the server's models.

    Parameters
    ----------
    runner : Runner
        Started.
    limits : Limits
        The largest picture.
    """

    def __init__(self, runner: Runner, limits: Limits) -> None:
        self.facts = picture_facts(runner.card)
        self._runner = runner
        self._limits = limits

    async def run(self, order: Order) -> Ran:
        """Answer once.

        Parameters
        ----------
        order : Order
            With a picture.

        Returns
        -------
        Ran
            The way to the worker and back is in `pre`, beside what that took here.

        Raises
        ------
        CallError
            If the picture is too large, too many wait, or the model failed.
        """
        began = time.monotonic_ns()
        given = order.inputs[0]
        shot = self._shot(given)
        asked = time.monotonic_ns()
        answer = await self._answer(shot)
        answered = time.monotonic_ns()
        arrays = self._read(answer.message)
        kinds = {spec.name: spec.datatype for spec in self.facts.outputs}
        data = {name: pack(arrays[name], kinds[name]) for name in order.wanted if name in order.sent}
        queued, model = round(answer.queued * 1e9), round(answer.model * 1e9)
        way = max(0, answered - asked - queued - model)
        times = Times(queued, asked - began + way, model, time.monotonic_ns() - answered)
        return Ran({IMAGE.name: given.read()}, {name: arrays[name] for name in order.wanted}, data, times)

    async def stream(self, order: Order) -> AsyncGenerator[Ran, None]:
        """Yield the one answer that there is."""
        yield await self.run(order)

    async def close(self, grace: float) -> None:
        """Leave it to the server, which has the workers."""

    def _shot(self, given: Given) -> Shot:
        """Return the picture as the queue has it."""
        height, width, _ = given.shape
        if not 1 <= width * height <= self._limits.pixels:
            text = f"input image: {width} x {height} pixels; wanted 1 to {self._limits.pixels}"
            raise CallError("INVALID_ARGUMENT", text)
        data = given.read().tobytes() if given.data is None else given.data
        return Shot(data if isinstance(data, bytes) else bytes(data), Size(width, height), FORM)

    async def _answer(self, shot: Shot) -> ShotAnswer:
        """Queue a picture and wait."""
        try:
            self._runner.shoot(shot)
        except QueueFullError as error:
            raise CallError(
                "RESOURCE_EXHAUSTED", f"{error} for {self._runner.spec.name}; try again"
            ) from None
        try:
            answer = await shot.answer
        finally:
            if shot.answer.cancelled():
                await self._runner.take_back()
        if answer.error is not None:
            raise CallError("INTERNAL", f"model {self._runner.spec.name}: {error_text(answer.error)}")
        return answer

    def _read(self, message: bytes) -> dict[str, Array]:
        """Return the arrays that a worker wrote."""
        begin = HEAD.size + HEAD.unpack_from(message)[0]
        shapes: Mapping[str, list[int]] = json.loads(message[HEAD.size : begin])
        specs = {spec.name: spec for spec in self.facts.outputs}
        sizes = [specs[name].kind.nbytes(tuple(shape)) or 0 for name, shape in shapes.items()]
        view = memoryview(message)
        spans = pairwise(accumulate(sizes, initial=begin))
        return {
            name: unpack(view[low:high], specs[name].datatype, tuple(shape))
            for (name, shape), (low, high) in zip(shapes.items(), spans, strict=True)
        }
