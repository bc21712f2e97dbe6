"""Where a picture lies on the earth: the transform in a GeoTIFF's tags or in the world file beside it.

Invariant: every transform here goes from the edges of pixels of the upright picture, as boxes have them, to
coordinates; whatever a file means by its numbers (middles of pixels, a picture that lies on its side) is
settled where they are read.

References
----------
OGC 19-008r4, GeoTIFF 1.1: the tags, the keys, and what PixelIsPoint shifts. World files: their last two
numbers are the middle of the upper left pixel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from PIL import Image

from predsession.errors import SourceError
from predsession.prediction.tifftags import SIGNATURES, Numbers, read_tags
from predsession.wire.geometry import Size

_WIDTH, _HEIGHT, _ORIENTATION = 256, 257, 274
_PIXEL_SCALE, _TIE_POINTS, _MATRIX, _GEO_KEYS = 33550, 33922, 34264, 34735
_MODEL_KEY, _RASTER_KEY, _GEOGRAPHIC_KEY, _PROJECTED_KEY = 1024, 1025, 2048, 3072
_PIXEL_IS_POINT = 2
_OF_ITS_OWN = 32767  # a coordinate system that is described, not numbered
_WANTED = frozenset((_WIDTH, _HEIGHT, _ORIENTATION, _PIXEL_SCALE, _TIE_POINTS, _MATRIX, _GEO_KEYS))


@runtime_checkable
class Affine(Protocol):
    """Six numbers by name, as rasterio's and affine's transforms have them."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float


class Transform(NamedTuple):
    """From pixels to coordinates: x = a * column + b * row + c, y = d * column + e * row + f."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def __call__(self, points: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
        """Return the coordinates of (M, 2) points."""
        column, row = points.astype(np.float64).T
        return np.stack(
            (self.a * column + self.b * row + self.c, self.d * column + self.e * row + self.f), axis=1
        )

    def after(self, first: Transform) -> Transform:
        """Return the transform that does the other one first, then this one."""
        start, right, down = self(first(np.array([[0, 0], [1, 0], [0, 1]])))
        (a, d), (b, e) = right - start, down - start
        return Transform(float(a), float(b), float(start[0]), float(d), float(e), float(start[1]))


_TO_MIDDLES = Transform(1, 0, -0.5, 0, 1, -0.5)
"""From edges of pixels to a count that has 0, 0 in the middle of the first."""


@dataclass(frozen=True, slots=True)
class Georeference:
    """Where a picture lies, and in which coordinate system.

    Parameters
    ----------
    transform : Transform
        From edges of pixels to coordinates.
    epsg : int or None
        The coordinate system's number, where it is known.
    is_described : bool
        Whether it has a system of its own, which is described in the file and has no number.
    """

    transform: Transform
    epsg: int | None = None
    is_described: bool = False


def as_transform(value: object) -> Transform:
    """Check a transform that the caller handed in.

    Parameters
    ----------
    value : object
        Six numbers a, b, c, d, e, f, or an object that has them by name.

    Returns
    -------
    Transform
        The same.

    Raises
    ------
    ValueError
        If it is something else, not finite, or turns the picture into a line.
    """
    named = [value.a, value.b, value.c, value.d, value.e, value.f] if isinstance(value, Affine) else value
    listed = list(named) if isinstance(named, Sequence | np.ndarray) and len(named) == 6 else []
    if len(listed) != 6 or not all(isinstance(each, int | float | np.number) for each in listed):
        raise ValueError(
            f"transform is {value!r}; wanted six numbers a, b, c, d, e, f (x = a * column + b * row + c, "
            "y = d * column + e * row + f), or an object that has them, as rasterio's has"
        )
    transform = Transform(*(float(each) for each in listed))
    flat = transform.a * transform.e == transform.b * transform.d
    if flat or not all(map(math.isfinite, transform)):
        raise ValueError(
            f"transform is {tuple(transform)}; it must be finite, and must not flatten the picture"
        )
    return transform


def read_georeference(path: str, size: Size) -> Georeference:
    """Read where a picture lies, from itself or from the world file beside it.

    Parameters
    ----------
    path : str
        Of the picture file.
    size : Size
        Of the upright picture, which the file must have.

    Returns
    -------
    Georeference
        Of the upright picture, wherever the file's EXIF orientation says that it lies on its side.

    Raises
    ------
    SourceError
        If the file cannot be read, has another size, or nothing says where it lies.
    """
    try:
        with Path(path).open("rb") as file:
            is_tiff = file.read(4) in SIGNATURES
            file.seek(0)
            tags = read_tags(file, _WANTED) if is_tiff else _picture_tags(file)
        found = _from_tags(tags, path) or _from_world_file(path)
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001 - Pillow's readers raise whatever they meet in a damaged file
        reason = str(error) or type(error).__name__
        raise SourceError(f"{path}: where it lies cannot be read ({reason}); pass transform=") from None
    if found is None:
        raise SourceError(
            f"{path}: nothing says where it lies: it has no GeoTIFF tags, and there is no world file "
            f"({_world_files(path)[0].name}) beside it; pass transform="
        )
    return _upright(found, tags, path=path, size=size)


def _picture_tags(file: BinaryIO) -> Mapping[int, Numbers]:
    """Return size and orientation of a picture that is no TIFF."""
    with Image.open(file) as image:
        turned: object = 1
        with suppress(Exception):  # the EXIF data of a thousand cameras; the size tells whether it was turned
            turned = image.getexif().get(_ORIENTATION, 1)
        return {
            _WIDTH: (image.width,),
            _HEIGHT: (image.height,),
            _ORIENTATION: (turned if isinstance(turned, int) else 1,),
        }


def _usable(where: str | Path, numbers: Sequence[float]) -> Transform:
    """Check a transform that a file says."""
    try:
        return as_transform(numbers)
    except ValueError:
        raise SourceError(
            f"{where}: where it lies cannot be used: {tuple(numbers)} as a transform is not finite, or "
            "flattens the picture; pass transform="
        ) from None


def _from_tags(tags: Mapping[int, Numbers], path: str) -> Georeference | None:
    """Return what a GeoTIFF's tags say; None where they say nothing."""
    matrix, scale, ties = (tags.get(tag, ()) for tag in (_MATRIX, _PIXEL_SCALE, _TIE_POINTS))
    if len(matrix) == 16:
        transform = _usable(path, (*matrix[:2], *matrix[3:6], matrix[7]))
    elif len(scale) >= 2 and len(ties) >= 6:
        column, row, _, x, y, _ = ties[:6]
        wide, high = scale[:2]
        transform = _usable(path, (wide, 0.0, x - column * wide, 0.0, -high, y + row * high))
    elif ties:
        raise SourceError(
            f"{path}: it lies where {len(ties) // 6} ground control points say, which is no transform; "
            "warp it to a grid first, or pass transform="
        )
    else:
        return None
    keys = _geo_keys(tags)
    if keys.get(_RASTER_KEY) == _PIXEL_IS_POINT:
        transform = transform.after(_TO_MIDDLES)
    number = keys.get(_PROJECTED_KEY) if keys.get(_MODEL_KEY) == 1 else keys.get(_GEOGRAPHIC_KEY)
    if number == _OF_ITS_OWN:
        return Georeference(transform, is_described=True)
    return Georeference(transform, number or None)


def _geo_keys(tags: Mapping[int, Numbers]) -> dict[int, int]:
    """Return the keys whose values are whole numbers: four words each, after four of a header."""
    words = [int(each) for each in tags.get(_GEO_KEYS, ())]
    return {words[place]: words[place + 3] for place in range(4, len(words) - 3, 4) if words[place + 1] == 0}


def _world_files(path: str) -> list[Path]:
    """Return where a world file may lie: photo.jgw, photo.jpgw or photo.wld beside photo.jpg."""
    picture = Path(path)
    kind = picture.suffix[1:]
    names = [f".{kind[:1]}{kind[-1:]}w", f".{kind}w", ".wld"]
    return [picture.with_suffix(name) for each in names for name in (each.lower(), each.upper())]


def _from_world_file(path: str) -> Georeference | None:
    """Return what the world file beside a picture says; None where there is none."""
    for place in _world_files(path):
        if not place.is_file():
            continue
        try:
            a, d, b, e, c, f = map(float, place.read_text("ascii").replace(",", ".").split())
        except ValueError:
            raise SourceError(
                f"{place}: a world file has six numbers, a line each; pass transform="
            ) from None
        return Georeference(_usable(place, (a, b, c, d, e, f)).after(_TO_MIDDLES))
    return None


def _upright(found: Georeference, tags: Mapping[int, Numbers], *, path: str, size: Size) -> Georeference:
    """Let the transform begin at the upright picture, whose size must be the prediction's."""
    width, height, turned = (_whole(tags.get(tag, ())) for tag in (_WIDTH, _HEIGHT, _ORIENTATION))
    steps = {
        2: Transform(-1, 0, width, 0, 1, 0),
        3: Transform(-1, 0, width, 0, -1, height),
        4: Transform(1, 0, 0, 0, -1, height),
        5: Transform(0, 1, 0, 1, 0, 0),
        6: Transform(0, 1, 0, -1, 0, height),
        7: Transform(0, -1, width, -1, 0, height),
        8: Transform(0, -1, width, 1, 0, 0),
    }
    if ((height, width) if turned > 4 else (width, height)) != size:
        raise SourceError(
            f"{path}: it has {width} x {height} pixels, the prediction was made on "
            f"{size.width} x {size.height}; pass transform="
        )
    if turned not in steps:
        return found
    return replace(found, transform=found.transform.after(steps[turned]))


def _whole(numbers: Numbers) -> int:
    """Return a tag that is one whole number; 0 where it is none."""
    return int(numbers[0]) if numbers and math.isfinite(numbers[0]) else 0
