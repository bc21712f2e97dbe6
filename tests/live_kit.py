"""A camera for tests: a picture a few times a second, as MPEG over a socket of this machine."""

from __future__ import annotations

import io
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import av
import numpy as np


class _Pipe(io.RawIOBase):
    """Writes into a socket."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self.broken = False
        """Whether nobody listens any more; an error in here would be one of FFmpeg's thread."""

    def writable(self) -> bool:
        """Say that it is."""
        return True

    def write(self, data: Any) -> int:
        """Send all."""
        try:
            self._connection.sendall(bytes(data))
        except OSError:
            self.broken = True
        return len(data)


class Camera:
    """Serves whoever connects.

    Parameters
    ----------
    frames : int
        For each connection; it is closed then.
    rate : float
        Frames a second.
    hang : bool
        Whether to say nothing more, instead of closing.
    """

    def __init__(self, frames: int = 10**6, *, rate: float = 50, hang: bool = False) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._frames, self._rate, self._hang = frames, rate, hang
        self._ended = threading.Event()
        self.sent = 0
        self.connections = 0
        self._threads = [threading.Thread(target=self._accept, name="camera")]
        self._threads[0].start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._answer, args=(connection,), name="camera")
            self._threads.append(thread)
            thread.start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        pipe = _Pipe(connection)
        with av.open(pipe, "w", format="mpegts") as out:
            stream = out.add_stream("mpeg2video", rate=25)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            stream.codec_context.gop_size = 5
            for number in range(self._frames):
                if self._ended.is_set() or pipe.broken:
                    return
                picture = np.full((48, 64, 3), number % 50 * 5, np.uint8)
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                frame.pts = number
                out.mux(stream.encode(frame))
                self.sent += 1
                time.sleep(1 / self._rate)
        if self._hang:
            self._ended.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)
