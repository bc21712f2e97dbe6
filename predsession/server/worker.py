"""The process that holds a model: ``python -m predsession.server.worker``, started by `process`.

It reads batches from its stdin and answers on its stdout, both in frames (`pipe`). A thread reads ahead and
has the pictures decoded, so that the next batch is ready when the model is; the model runs in the main
thread, where every library works. When stdin ends, the server is gone, and so is this process, whatever it
does.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from io import BufferedReader
from typing import BinaryIO

from predsession.server import pipe
from predsession.server.decode import BadImageError, Pixels, tolerate_truncation
from predsession.server.frames import Frame
from predsession.server.inference import Inference, Outcome, describe_error
from predsession.server.memory import keep_freed
from predsession.server.models.card import ModelLoadError
from predsession.server.models.loading import load_model
from predsession.server.prefetch import Prefetch
from predsession.server.shot_work import ShotOrder, answer
from predsession.server.slices import Slice
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

_DECODERS = 2
_HELD_PIXELS = 64_000_000  # about 200 MB as RGB
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch whose pictures are being decoded."""

    id: int
    settings: JSONObject
    pictures: list[Future[Pixels]]
    singly: bool
    low: float | None


class _Reader(threading.Thread):
    """Reads batches ahead of the model and has them decoded."""

    def __init__(self, source: BufferedReader, prefetch: Prefetch) -> None:
        super().__init__(daemon=True)
        self.batches: queue.Queue[_Batch | ShotOrder] = queue.Queue()
        self._source = source
        self._prefetch = prefetch
        self._skipped: set[int] = set()

    def run(self) -> None:
        """Read until the server is gone, then end the process at once."""
        try:
            while True:
                self._take(*pipe.read(self._source))
        except EOFError:
            os._exit(0)

    def skips(self, batch: _Batch | ShotOrder) -> bool:
        """Whether the server no longer wants this batch; asked once."""
        wanted = batch.id not in self._skipped
        self._skipped.discard(batch.id)
        return not wanted

    def _take(self, header: JSONObject, body: bytearray) -> None:
        """Start decoding a batch, or note that one is not wanted."""
        number = int(str(header["id"]))
        if header["op"] == "skip":
            self._skipped.add(number)
            return
        if header["op"] == "shots":
            self.batches.put(ShotOrder.read(header, body))
            return
        pictures = self._prefetch.start([_place(parts) for parts in as_list(header["pictures"])])
        low = None if header["low"] is None else float(str(header["low"]))
        settings = as_object(header["settings"])
        self.batches.put(_Batch(number, settings, pictures, bool(header["singly"]), low))


def _place(place: JSON) -> Slice | Frame:
    """Read where a picture lies: in a file, or in a clip."""
    if isinstance(place, Mapping):
        return Frame(str(place["path"]), int(str(place["at"])), int(str(place["pixels"])))
    path, offset, size = as_list(place)
    return Slice(str(path), int(str(offset)), int(str(size)))


class _Answers:
    """Runs batches and measures how long that takes."""

    def __init__(self, inference: Inference, prefetch: Prefetch) -> None:
        self._inference = inference
        self._prefetch = prefetch

    def answer(self, batch: _Batch) -> tuple[JSONObject, bytes]:
        """Run one batch and return the frame that says what became of it."""
        began = time.perf_counter()
        model_s = 0.0
        outcomes: list[Outcome] = []
        for chunk in self._prefetch.chunks(batch.pictures):
            ready = time.perf_counter()
            outcomes += self._outcomes(chunk, batch)
            model_s += time.perf_counter() - ready
        header: dict[str, JSON] = {
            "op": "done",
            "id": batch.id,
            "sizes": [len(outcome.item) for outcome in outcomes],
            "rows": [len(outcome.rows) for outcome in outcomes],
            "errors": [outcome.error for outcome in outcomes],
            "decode_s": time.perf_counter() - began - model_s,
            "model_s": model_s,
        }
        items = [outcome.item for outcome in outcomes]
        return header, b"".join([*items, *(outcome.rows for outcome in outcomes)])

    def _outcomes(self, chunk: list[Pixels | BadImageError], batch: _Batch) -> Iterator[Outcome]:
        """Yield what became of each picture of a chunk."""
        good = [picture for picture in chunk if not isinstance(picture, BadImageError)]
        answers = iter(
            self._inference.run(good, batch.settings, singly=batch.singly, low=batch.low) if good else []
        )
        for picture in chunk:
            if isinstance(picture, BadImageError):
                yield Outcome(error=describe_error(picture))
            else:
                yield next(answers)


def _serve(source: BufferedReader, sink: BinaryIO) -> None:
    """Load the model that the first frame names, then answer batch after batch."""
    setup, _ = pipe.read(source)
    if setup["stock"]:
        tolerate_truncation()
    try:
        model, card = load_model(str(setup["target"]))
    except Exception as error:  # noqa: BLE001 - it is reported by the server, which then ends or tries again
        _send(sink, pipe.encode({"op": "failed", "error": _load_failure(error)}))
        return
    if setup.get("edge"):
        import predsession.server.edge.answer  # noqa: F401 - now, not while the first caller waits

        keep_freed()
    _send(sink, pipe.encode({"op": "ready", "card": card.to_json()}))
    prefetch = Prefetch(max_pixels=int(str(setup["max_pixels"])), room=_HELD_PIXELS, threads=_DECODERS)
    reader = _Reader(source, prefetch)
    reader.start()
    name = "" if setup["stock"] else str(setup["name"])
    inference = Inference(model, card, name=name, float_boxes=not setup["stock"])
    answers = _Answers(inference, prefetch)
    while True:
        batch = reader.batches.get()
        if reader.skips(batch):
            if isinstance(batch, _Batch):
                prefetch.drop(batch.pictures)
            _send(sink, pipe.encode({"op": "skipped", "id": batch.id}))
        elif isinstance(batch, ShotOrder):
            _send(sink, pipe.encode(*answer(batch, inference, card)))
        else:
            _send(sink, pipe.encode(*answers.answer(batch)))


def _load_failure(error: Exception) -> JSONObject:
    """Describe why a model does not load; what is no error of ours is for its author, with its traceback."""
    if isinstance(error, ModelLoadError):
        return describe_error(error)
    traceback.print_exception(error)
    return {**describe_error(error), "message": f"{type(error).__name__}: {error}"}


def _send(sink: BinaryIO, frame: bytes) -> None:
    """Write a frame at once."""
    sink.write(frame)
    sink.flush()


def _die_with_parent() -> None:
    """Ask Linux to kill us with the server: a model that hangs without letting go of Python cannot see it."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)  # it was gone before we asked


def main() -> int:
    """Run the worker until its server is gone.

    Returns
    -------
    int
        The exit code.
    """
    # Ctrl-C reaches the whole process group, and so does what ends a service; it is the server that decides
    # when a worker ends. SIGTERM is heard and not ignored: what a model starts would ignore it, too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)
    _die_with_parent()
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    # What a model prints must not end up between the frames.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    try:
        _serve(source, sink)
    except (EOFError, BrokenPipeError):
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
