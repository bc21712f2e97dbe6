"""Pictures decoded ahead of the model, in bounded memory.

A pool decodes the pictures of the batches that wait, in order. Together they may hold so many pixels; a
single picture may hold more, alone. Room is given out strictly in order, so the picture that the model needs
next always gets its room before those after it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from PIL import Image

from predsession.server.decode import BadImageError, Pixels, open_picture, to_pixels
from predsession.server.slices import Slice

_POLL_S = 0.05


class PixelBudget:
    """Room for pixels, given out in order.

    Parameters
    ----------
    room : int
        Pixels.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._used = 0
        self._turn = 0
        self._changed = threading.Condition()
        self._short = False

    @property
    def short(self) -> bool:
        """Whether somebody whose turn it is waits for room."""
        return self._short

    def take(self, turn: int, pixels: int) -> None:
        """Wait for one's turn and for room; a picture larger than all room waits until nothing is held."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn == turn)
            self._short = not self._fits(pixels)
            self._changed.wait_for(lambda: self._fits(pixels))
            self._short = False
            self._used += pixels
            self._turn += 1
            self._changed.notify_all()

    def give_back(self, pixels: int) -> None:
        """Return room."""
        with self._changed:
            self._used -= pixels
            self._changed.notify_all()

    def _fits(self, pixels: int) -> bool:
        """Whether there is room for so many."""
        return not self._used or self._used + pixels <= self._room


class Prefetch:
    """Decodes files ahead.

    Parameters
    ----------
    max_pixels : int
        The largest picture that is decoded.
    room : int
        Pixels that are held at the same time.
    threads : int
        How many decode.
    """

    def __init__(self, *, max_pixels: int, room: int, threads: int) -> None:
        self._max_pixels = max_pixels
        self._budget = PixelBudget(room)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="decode")
        self._turns = itertools.count()

    def start(self, sources: Sequence[Slice]) -> list[Future[Pixels]]:
        """Have files decoded; the order of the calls is the order of the work."""
        return [self._pool.submit(self._decode, source, next(self._turns)) for source in sources]

    def chunks(self, pictures: Sequence[Future[Pixels]]) -> Iterator[list[Pixels | BadImageError]]:
        """Yield pictures in order, all at once where there is room for all, and give their room back.

        Parameters
        ----------
        pictures : sequence of futures
            From `start`.

        Yields
        ------
        list
            Pixels, or what is wrong with the file. The room is given back when the next chunk is asked for.
        """
        chunk: list[Pixels | BadImageError] = []
        for picture in pictures:
            while not _is_done(picture):
                if chunk and self._budget.short:
                    yield chunk
                    self._release(chunk)
                    chunk = []
            chunk.append(_outcome(picture))
        yield chunk
        self._release(chunk)

    def drop(self, pictures: Sequence[Future[Pixels]]) -> None:
        """Give back the room of pictures that nobody wants."""
        for picture in pictures:
            self._release([_outcome(picture)])

    def _release(self, chunk: Sequence[Pixels | BadImageError]) -> None:
        """Give back the room of pictures that have been used."""
        sizes = (one.shape[0] * one.shape[1] for one in chunk if not isinstance(one, BadImageError))
        self._budget.give_back(sum(sizes))

    def _decode(self, source: Slice, turn: int) -> Pixels:
        """Decode one file, once there is room for it."""
        image: Image.Image | None = None
        size = 0
        try:
            image = open_picture(source, max_pixels=self._max_pixels)
            size = image.width * image.height
        finally:
            self._budget.take(turn, size)
        try:
            with image:
                return to_pixels(image)
        except BaseException:
            self._budget.give_back(size)
            raise


def _is_done(picture: Future[Pixels]) -> bool:
    """Wait a moment; return whether a picture is decoded."""
    try:
        picture.exception(_POLL_S)
    except TimeoutError:
        return False
    return True


def _outcome(picture: Future[Pixels]) -> Pixels | BadImageError:
    """Return the pixels, or what is wrong with the file."""
    try:
        return picture.result()
    except BadImageError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this one picture
        return BadImageError(f"cannot be decoded: {type(error).__name__}: {error}")
