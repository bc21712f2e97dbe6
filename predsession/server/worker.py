"""The process that holds a model: ``python -m predsession.server.worker``, started by `runner`.

It reads batches from its stdin and answers on its stdout, both in frames (`pipe`). A thread reads ahead and
decodes in a small pool, so that the next batch is ready when the model is; the model runs in the main thread,
where every library works. When stdin ends, the server is gone, and so is this process, whatever it does.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from predsession.server import pipe
from predsession.server.decode import Pixels, read_pixels, tolerate_truncation
from predsession.server.inference import Inference, Outcome, describe_error
from predsession.server.models.base import describe
from predsession.server.models.loading import load_model
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

_DECODERS = 2


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch whose pictures are being decoded."""

    id: int
    settings: JSONObject
    images: list[Future[Pixels]]
    singly: bool


class _Reader(threading.Thread):
    """Reads batches ahead of the model and has them decoded."""

    def __init__(self, source: BinaryIO, *, max_pixels: int) -> None:
        super().__init__(daemon=True)
        self.batches: queue.Queue[_Batch] = queue.Queue()
        self._source = source
        self._decode = partial(read_pixels, max_pixels=max_pixels)
        self._skipped: set[int] = set()
        self._pool = ThreadPoolExecutor(_DECODERS)

    def run(self) -> None:
        """Read until the server is gone, then end the process at once."""
        try:
            while True:
                header, _ = pipe.read(self._source)
                self._take(header)
        except EOFError:
            os._exit(0)

    def skips(self, batch: _Batch) -> bool:
        """Whether the server no longer wants this batch."""
        return batch.id in self._skipped

    def _take(self, header: JSONObject) -> None:
        """Start decoding a batch, or note that one is not wanted."""
        number = int(str(header["id"]))
        if header["op"] == "skip":
            self._skipped.add(number)
            return
        images = [self._pool.submit(self._decode, Path(str(path))) for path in as_list(header["paths"])]
        self.batches.put(_Batch(number, as_object(header["settings"]), images, bool(header["singly"])))


def _answer(batch: _Batch, inference: Inference) -> tuple[JSONObject, bytes]:
    """Run one batch and return the frame that says what became of it."""
    began = time.perf_counter()
    decoded = [_decoded(image) for image in batch.images]
    ready = time.perf_counter()
    good = [image for image in decoded if not isinstance(image, Outcome)]
    answers = iter(inference.run(good, batch.settings, singly=batch.singly) if good else [])
    outcomes = [image if isinstance(image, Outcome) else next(answers) for image in decoded]
    header: dict[str, JSON] = {
        "op": "done",
        "id": batch.id,
        "sizes": [len(outcome.item) for outcome in outcomes],
        "errors": [outcome.error for outcome in outcomes],
        "decode_s": ready - began,
        "model_s": time.perf_counter() - ready,
    }
    return header, b"".join(outcome.item for outcome in outcomes)


def _decoded(image: Future[Pixels]) -> Pixels | Outcome:
    """Return the pixels, or what is wrong with the file."""
    try:
        return image.result()
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this one picture
        return Outcome(error=describe_error(error))


def _serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Load the model that the first frame names, then answer batch after batch."""
    setup, _ = pipe.read(source)
    if setup["stock"]:
        tolerate_truncation()
    try:
        model = load_model(str(setup["target"]))
        card = describe(model)
    except Exception as error:  # noqa: BLE001 - it is reported by the server, which then ends or tries again
        _send(sink, pipe.encode({"op": "failed", "error": describe_error(error)}))
        return
    _send(sink, pipe.encode({"op": "ready", "card": card.to_json(), "pid": os.getpid()}))
    reader = _Reader(source, max_pixels=int(str(setup["max_pixels"])))
    reader.start()
    inference = Inference(model, card, float_boxes=not setup["stock"])
    while True:
        batch = reader.batches.get()
        if reader.skips(batch):
            _send(sink, pipe.encode({"op": "skipped", "id": batch.id}))
        else:
            _send(sink, pipe.encode(*_answer(batch, inference)))


def _send(sink: BinaryIO, frame: bytes) -> None:
    """Write a frame at once."""
    sink.write(frame)
    sink.flush()


def main(arguments: Sequence[str] = ()) -> int:  # noqa: ARG001 - a process takes its orders from the pipe
    """Run the worker until its server is gone.

    Parameters
    ----------
    arguments : sequence of str
        None are taken.

    Returns
    -------
    int
        The exit code.
    """
    # Ctrl-C reaches the whole process group; it is the server that decides when a worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
