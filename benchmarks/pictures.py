"""Folders of JPEGs of a given size in bytes, made once and kept outside of the clone; always the same pixels.

A folder of thousands holds a hundred different files under many names: hard links cost no space, and neither
client nor server looks at more than names and bytes.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

DIFFERENT = 100
_EXAMPLES = Path(__file__).parents[1] / "examples" / "photos"
_VERSION = "bench-1"
"""Changes when other pixels are made, so that nobody measures with old ones."""
_QUALITY = 85
_DARKEST, _BRIGHTEST = 0, 140
"""Of the background; the models for Supervisely's server find what is brighter than 150."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of picture.

    Parameters
    ----------
    name : str
        Of its folders.
    width, height : int
        Pixels.
    bytes : int
        How long a file is, about: the noise is made as strong as that takes. 0 for no noise.
    """

    name: str
    width: int
    height: int
    bytes: int = 0


PHOTO = Kind("photo", 1280, 720, 195_000)
SMALL = Kind("small", 320, 240, 20_000)
TINY = Kind("tiny", 64, 48)


def folder(kind: Kind, count: int) -> Path:
    """Return a folder of so many pictures of a kind; made if it is missing."""

    def fill(target: Path) -> None:
        originals = _originals(kind)
        for number in range(count):
            os.link(originals / f"{number % DIFFERENT:03d}.jpg", target / f"picture_{number:06d}.jpg")

    return kept(f"{kind.name}-{count}", fill)


def picture(kind: Kind) -> Path:
    """Return one picture of a kind."""

    def fill(target: Path) -> None:
        (target / "000.jpg").write_bytes(encoded(kind, 0, strength_for(kind)))

    return kept(f"{kind.name}-one", fill) / "000.jpg"


def arrays(count: int) -> Path:
    """Return a file of (count, 720, 1280, 3) uint8 pixels: collages of the photographs in ``examples``.

    How well and how fast pixels pack depends on what they show, so these are of the world, not of noise.

    Parameters
    ----------
    count : int
        How many; no two are the same.

    Returns
    -------
    Path
        What ``numpy.save`` wrote.
    """

    def fill(target: Path) -> None:
        names = ("astronaut.jpg", "portrait.jpg", "coffee.jpg")
        photos = [
            np.asarray(Image.open(_EXAMPLES / name).convert("RGB"))[: PHOTO.height // 2] for name in names
        ]
        strip = np.hstack(photos)
        shifts = [(13 * number, 13 * number + strip.shape[1] // 2) for number in range(count)]
        halves = [[np.roll(strip, shift, 1)[:, : PHOTO.width] for shift in pair] for pair in shifts]
        np.save(target / "arrays.npy", np.stack([np.vstack(pair) for pair in halves]))

    return kept(f"collages-{count}", fill) / "arrays.npy"


def kept(name: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder of the cache.

    Parameters
    ----------
    name : str
        The folder's.
    fill : callable
        Puts into an empty folder what belongs there; called if there is none.

    Returns
    -------
    Path
        The folder; it is there as a whole or not at all.
    """
    top = Path(os.environ.get("PREDSESSION_CACHE") or Path.home() / ".cache" / "predsession") / _VERSION
    target = top / name
    if not target.is_dir():
        partial = top / f"{name}.{os.getpid()}"
        partial.mkdir(parents=True)
        try:
            fill(partial)
            with contextlib.suppress(OSError):  # somebody else was quicker
                partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return target


def encoded(kind: Kind, number: int, strength: float) -> bytes:
    """Return the JPEG of a picture: four bright bars that move with the number, on noise of some strength."""
    random = np.random.default_rng(number)
    noise = random.normal(0.0, 1.0, (kind.height, kind.width, 3))
    # Neighbours alike, as in a photograph: white noise would need a coarser quality for the same length.
    smooth = (noise + np.roll(noise, 1, 0) + np.roll(noise, 1, 1) + np.roll(noise, (1, 1), (0, 1))) / 2
    pixels = np.clip(70 + strength * smooth, _DARKEST, _BRIGHTEST).astype(np.uint8)
    _draw_bars(pixels, number)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


def _draw_bars(pixels: npt.NDArray[np.uint8], number: int) -> None:
    """Draw four bars, two of them upright: what there is to be found."""
    height, width = pixels.shape[:2]
    for bar in range(4):
        across, down = (width // 14, height // 18) if bar % 2 else (width // 32, height // 8)
        left = (width // 16 + bar * width // 4 + number) % (width - across)
        top = height // 12 + bar * height // 5
        pixels[top : top + down, left : left + across] = 255


def strength_for(kind: Kind) -> float:
    """Return how strong the noise must be for files of the kind's length."""
    if not kind.bytes:
        return 0.0
    low, high = 0.0, 60.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if len(encoded(kind, 0, middle)) < kind.bytes else (low, middle)
    return high


def _originals(kind: Kind) -> Path:
    """Return the folder of the files that the others are links to."""

    def fill(target: Path) -> None:
        strength = strength_for(kind)
        for number in range(DIFFERENT):
            (target / f"{number:03d}.jpg").write_bytes(encoded(kind, number, strength))

    return kept(kind.name, fill)
