"""StreamInfer: frames of a camera through a model, to one who watches. The newest frame wins.

Invariants: at most three frames are between the camera and the watcher; a new one takes the place of the
oldest that no worker has begun, or that is done and not yet sent, and is itself left out where there is none
such. A watcher that reads slowly, a slow model and a slow session cost frames, never memory.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from predsession.errors import PredSessionError
from predsession.server.edge.answer import form
from predsession.server.edge.cameras import Camera
from predsession.server.edge.inferring import failure_text, too_large
from predsession.server.edge.models import EdgeModel
from predsession.server.edge.sessions import Session
from predsession.server.shots import QueueFullError, Shot
from predsession.server.texts import shortened
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.methods import MAX_MESSAGE_BYTES
from predsession.wire.geometry import Size

USUAL_FPS, HIGHEST_FPS = 30, 1000
_AHEAD = 3
_PATIENCE_S = 5.0
_OK = pb.Status(success=True)

Write = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Frame:
    """A frame on its way: its number, when it was taken, and its place in the queue or what is wrong."""

    number: int
    taken_ns: int = field(default_factory=time.time_ns)
    taken_monotonic_ns: int = field(default_factory=time.monotonic_ns)
    shot: Shot | None = None
    problem: str = ""

    @property
    def replaceable(self) -> bool:
        """Whether a newer one may take its place: unless a worker is at it."""
        return self.shot is None or self.shot.begun is None or self.shot.answer.done()

    def drop(self) -> None:
        """Take it out of the queue."""
        if self.shot is not None:
            self.shot.answer.cancel()


@dataclass(frozen=True, slots=True)
class Wish:
    """What the watcher wants.

    Parameters
    ----------
    fps : float
        Frames a second, at most.
    outputs : bool
        The model's own arrays, instead of what was found.
    priority : int
        Of the frames, 0 to 7.
    """

    fps: float
    outputs: bool
    priority: int = 4


class Watching:
    """One watcher of one camera.

    Parameters
    ----------
    camera : Camera
        Opened for it.
    model : EdgeModel
        What the frames go through.
    session : Session or None
        Whose `max_qps` bounds the frames.
    wish : Wish
        What is wanted.
    write : callable
        Sends a message; waits while the watcher does not read.
    """

    def __init__(
        self, camera: Camera, model: EdgeModel, session: Session | None, *, wish: Wish, write: Write
    ) -> None:
        self._camera = camera
        self._model = model
        self._session = session
        self._wish = wish
        self._write = write
        self._frames: deque[_Frame] = deque()
        self._sending: _Frame | None = None
        self._news = asyncio.Event()
        self._reader = ThreadPoolExecutor(1, "camera")

    async def run(self) -> None:
        """Watch until the session ends, or until cancelled."""
        tasks = [asyncio.create_task(self._take()), asyncio.create_task(self._send())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            for frame in [*self._frames, *filter(None, [self._sending])]:
                frame.drop()
            self._reader.submit(self._camera.close)
            self._reader.shutdown(wait=False)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _take(self) -> None:
        """Take the newest frame at each tick, until the session ends."""
        loop = asyncio.get_running_loop()
        began, last = loop.time(), -1
        while self._session is None or not self._session.ended:
            elapsed = loop.time() - began
            number = self._camera.number(elapsed, self._wish.fps)
            if number > last and self._has_room() and self._is_admitted():
                self._offer(await self._read(number))
            last = number
            tick = (int(elapsed * self._wish.fps) + 1) / self._wish.fps
            await asyncio.sleep(max(0.0, began + tick - loop.time()))

    def _has_room(self) -> bool:
        """Whether a new frame could go anywhere; to decode it costs."""
        held = len(self._frames) + (self._sending is not None)
        return held < _AHEAD or any(frame.replaceable for frame in self._frames)

    def _is_admitted(self) -> bool:
        """Whether the session has a call left in this second."""
        return self._session is None or self._session.admits(time.monotonic())

    async def _read(self, number: int) -> _Frame:
        """Take a frame."""
        frame = _Frame(number)
        loop = asyncio.get_running_loop()
        try:
            pixels, size = await loop.run_in_executor(self._reader, self._pixels, number)
        except (PredSessionError, OSError) as error:
            frame.problem = f"Frame not read: {error}"
            return frame
        wanted = form(frame=True, outputs=self._wish.outputs, findings=not self._wish.outputs)
        frame.shot = Shot(pixels, size, wanted, self._wish.priority)
        return frame

    def _pixels(self, number: int) -> tuple[bytes, Size]:
        """Decode a frame, on the camera's own thread."""
        picture = self._camera.read(number)
        return picture.tobytes(), Size(picture.shape[1], picture.shape[0])

    def _offer(self, frame: _Frame) -> None:
        """Put a frame among those on their way."""
        if len(self._frames) + (self._sending is not None) >= _AHEAD:
            old = next((one for one in self._frames if one.replaceable), None)
            if old is None:
                return
            self._frames.remove(old)
            old.drop()
        if frame.shot is not None:
            try:
                self._model.runner.shoot(frame.shot)
            except QueueFullError:
                frame.shot, frame.problem = None, "Scheduler queue full"
        self._frames.append(frame)
        self._news.set()

    async def _send(self) -> None:
        """Send frames in order, each when it is done."""
        while True:
            await self._news.wait()
            if not self._frames:
                self._news.clear()
                continue
            self._sending = self._frames.popleft()
            await self._write(await self._message(self._sending))
            self._sending = None

    async def _message(self, frame: _Frame) -> bytes:
        """Wait for a frame's answer, and write it."""
        head = pb.StreamInferResponse(frame_sequence=frame.number, timestamp_ns=frame.taken_ns, status=_OK)
        if frame.shot is None:
            return _failed(head, frame.problem)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                answer = await frame.shot.answer
        except TimeoutError:
            with suppress(Exception):
                await self._model.runner.take_back()
            return _failed(head, "Inference timeout")
        if answer.error is not None:
            return _failed(head, failure_text(answer))
        head.skew_us = self._model.skewed((time.monotonic_ns() - frame.taken_monotonic_ns) // 1000)
        whole = answer.message + head.SerializeToString()
        if len(whole) > MAX_MESSAGE_BYTES:
            return _failed(head, too_large(len(whole), MAX_MESSAGE_BYTES))
        return whole


def _failed(head: pb.StreamInferResponse, message: str) -> bytes:
    """Write a frame that says no."""
    head.status.success, head.status.message = False, shortened(message)
    return head.SerializeToString()
