"""Pictures and clips of bright spots on dark ground; no two numbers give the same picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from predsession import Size
from predsession.inputs.video import ClipWriter

Picture = npt.NDArray[np.uint8]
SIZE = Size(160, 96)
RATE = 20.0


def spots(number: int, size: Size = SIZE) -> Picture:
    """Return a picture of one to four spots, of places and sizes that follow from the number."""
    chance = np.random.default_rng(number)
    picture = np.full((size.height, size.width, 3), 25, np.uint8)
    for _ in range(1 + number % 4):
        width, height = (int(side) for side in chance.integers(8, 26, 2))
        left, top = (int(chance.integers(0, limit)) for limit in (size.width - width, size.height - height))
        picture[top : top + height, left : left + width] = chance.integers(190, 255, 3)
    return picture


def write_pictures(folder: Path, count: int, *, first: int = 0, suffix: str = ".jpg") -> list[Path]:
    """Write pictures of the numbers from `first` on, each into a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"im_{number:04}{suffix}" for number in range(first, first + count)]
    for number, path in enumerate(paths, start=first):
        Image.fromarray(spots(number)).save(path)
    return paths


def write_clip(path: Path, frames: int) -> Path:
    """Write a clip in which three spots move, one of them out of the picture."""
    with ClipWriter(path, SIZE, rate=RATE) as clip:
        for frame in range(frames):
            picture = np.full((SIZE.height, SIZE.width, 3), 25, np.uint8)
            for left, top, width, height in (
                (4 + frame, 10, 22, 14), (120 - frame, 36, 16, 24), (60 + 4 * frame, 70, 20, 12),
            ):  # fmt: skip
                picture[top : top + height, max(left, 0) : max(left + width, 0)] = 240
            clip.write(picture, frame / RATE)
    return path
