"""Where samples come from: the seam, and the source that is any iterable."""

from __future__ import annotations

import hashlib
import os
import queue
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from predsession.stream.samples import DeadLetter, Decode, Sample, made_sample

Taken = Sample | DeadLetter


class Source(Protocol):
    """Gives samples, and is told which are stored. It is used by one thread at a time."""

    def take(self, most: int, seconds: float) -> list[Taken] | None:
        """Return what is there, waiting so long for the first; None once nothing more will come."""

    def done(self, positions: Sequence[str]) -> None:
        """Take down that samples and dead letters are stored: they need not come again."""

    def dead(self, letters: Sequence[DeadLetter]) -> None:
        """Take down what cannot be processed, wherever the source has a place for it."""

    def behind(self) -> int | None:
        """Return how many samples wait, as far as that is known."""

    def close(self) -> None:
        """Let go of everything; it may be done twice, and while an iterator over it is not at its end."""


_END = object()
_OF_A_RUN = "iterable-"
JOIN_SECONDS = 1.0
"""Seconds for which closing waits for an iterable that is just asked; it is then left to itself."""


class IterableSource:
    """Any iterable or generator. It is asked in a thread of its own, so that a slow one keeps no batch back.

    Parameters
    ----------
    items : iterable
        Dicts with ``object_id`` and fields, or what `decode` makes such dicts of. If it has ``close()``, as
        generators have, that is called at the end.
    decode : callable or None
        From an item to a dict.
    ahead : int
        How many items are asked for before they are wanted.
    """

    def __init__(self, items: Iterable[object], *, decode: Decode | None = None, ahead: int = 64) -> None:
        self._items = items
        self._decode = decode
        self._queue: queue.Queue[object] = queue.Queue(ahead)
        self._closing = threading.Event()
        self._run = (
            f"{_OF_A_RUN}{os.urandom(4).hex()}"  # what comes at some place in one run is not so in the next
        )
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    def take(self, most: int, seconds: float) -> list[Taken] | None:
        """Return what is there, waiting so long for the first; None once nothing more will come."""
        if self._ended or self._closing.is_set():
            return None
        if self._thread is None:
            self._thread = threading.Thread(target=self._read, name="predsession-stream-source", daemon=True)
            self._thread.start()
        taken: list[Taken] = []
        try:
            while len(taken) < most:
                item = self._queue.get(timeout=seconds) if not taken else self._queue.get_nowait()
                if item is _END:
                    self._ended = True
                    break
                assert isinstance(item, Sample | DeadLetter), "the thread makes nothing else"
                taken.append(item)
        except queue.Empty:
            return taken
        if self._ended and self._error is not None:
            if taken:
                self._ended = False  # what came before the failure comes first
                self._queue.put(_END)
                return taken
            raise self._error
        return taken or None

    def _read(self) -> None:
        """Ask the iterable."""
        try:
            for number, item in enumerate(self._items):
                made = made_sample(item, self._decode, f"{self._run}:{number}")
                if isinstance(made, DeadLetter):  # the same is buried once, in whichever run
                    made = replace(made, position=f"iterable:{_digest(made.raw)}")
                if not self._put(made):
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised where the samples are taken
            self._error = error
        self._put(_END)

    def _put(self, item: object) -> bool:
        """Hand on an item; False if nobody wants it any more."""
        while not self._closing.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def done(self, positions: Sequence[str]) -> None:
        """Do nothing: an iterable cannot be told."""

    def dead(self, letters: Sequence[DeadLetter]) -> None:
        """Do nothing: the table of dead letters is enough."""

    def behind(self) -> int | None:
        """Return how many samples wait: an iterable does not say."""
        return None

    def close(self) -> None:
        """Ask no more."""
        self._closing.set()
        if self._thread is threading.current_thread():
            return
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)
        closes = getattr(self._items, "close", None)
        if callable(closes) and not (self._thread is not None and self._thread.is_alive()):
            closes()


def lasting_position(position: str, object_id: str) -> str:
    """Return where a sample is, in words that are the same in the next run.

    Parameters
    ----------
    position : str
        From the source; empty for what was handed in by hand.
    object_id : str
        The sample's.

    Returns
    -------
    str
        By the object, where the source has no lasting places.
    """
    if not position:
        return f"by-hand:{object_id}"
    return f"iterable:{object_id}" if position.startswith(_OF_A_RUN) else position


def _digest(raw: bytes) -> str:
    """Return what tells bytes from others."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()
