"""Pictures decoded ahead of the model, in bounded memory.

A pool decodes the pictures of the batches that wait, in order. Together they may hold so many pixels; a
single picture may hold more, alone. Room is given out strictly in order, so the picture that the model needs
next always gets its room before those after it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from PIL import Image

from predsession.server.budget import PixelBudget
from predsession.server.decode import BadImageError, Pixels, open_picture, to_pixels
from predsession.server.frames import Frame, FrameThread, stretches
from predsession.server.slices import Slice

_POLL_S = 0.05


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
        self._frames: FrameThread | None = None

    def start(self, sources: Sequence[Slice | Frame]) -> list[Future[Pixels]]:
        """Have pictures decoded; the order of the calls is the order of the work."""
        pictures: list[Future[Pixels]] = []
        for is_frame, group in itertools.groupby(sources, lambda source: isinstance(source, Frame)):
            if is_frame:
                pictures += self._start_frames([one for one in group if isinstance(one, Frame)])
            else:
                files = [one for one in group if isinstance(one, Slice)]
                pictures += [self._pool.submit(self._decode, one, next(self._turns)) for one in files]
        return pictures

    def _start_frames(self, frames: Sequence[Frame]) -> list[Future[Pixels]]:
        """Have frames of clips decoded."""
        if self._frames is None:
            self._frames = FrameThread(self._budget)
            self._frames.start()
        pictures: list[Future[Pixels]] = [Future() for _ in frames]
        for stretch in stretches(list(zip(frames, pictures, strict=True)), self._turns):
            self._frames.put(stretch)
        return pictures

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
