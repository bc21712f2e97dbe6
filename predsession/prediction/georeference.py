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
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from PIL import Image, TiffImagePlugin

from predsession.errors import SourceError
from predsession.wire.geometry import Size

_WIDTH, _HEIGHT, _ORIENTATION = 256, 257, 274
_PIXEL_SCALE, _TIE_POINTS, _MATRIX, _GEO_KEYS = 33550, 33922, 34264, 34735
_MODEL_KEY, _RASTER_KEY, _GEOGRAPHIC_KEY, _PROJECTED_KEY = 1024, 1025, 2048, 3072
_PIXEL_IS_POINT = 2
_OF_ITS_OWN = 32767  # a coordinate system that is described, not numbered
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


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
    """

    transform: Transform
    epsg: int | None = None


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
            is_tiff = file.read(4) in _TIFF
        tags = _tiff_tags(path) if is_tiff else _picture_tags(path)
        found = _from_tags(tags, path) or _from_world_file(path)
    except (OSError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise SourceError(f"{path}: where it lies cannot be read ({error}); pass transform=") from None
    if found is None:
        raise SourceError(
            f"{path}: nothing says where it lies: it has no GeoTIFF tags, and there is no world file "
            f"({_world_files(path)[0].name}) beside it; pass transform="
        )
    return _upright(found, tags, path=path, size=size)


def _picture_tags(path: str) -> Mapping[int, object]:
    """Return size and orientation of a picture that is no TIFF."""
    with Image.open(path) as image:
        return {
            _WIDTH: image.width,
            _HEIGHT: image.height,
            _ORIENTATION: image.getexif().get(_ORIENTATION, 1),
        }


def _tiff_tags(path: str) -> Mapping[int, object]:
    """Return a TIFF's tags; read without the picture, which may be of a kind that Pillow cannot open."""
    with Path(path).open("rb") as file:
        header = file.read(8)
        if header[2:3] in b"+":
            header += file.read(8)
        tags = TiffImagePlugin.ImageFileDirectory_v2(header)
        file.seek(tags.next)
        tags.load(file)
        return dict(tags)


def _numbers(tags: Mapping[int, object], tag: int) -> list[float]:
    """Return a tag's numbers; none where it is missing."""
    value = tags.get(tag, ())
    return [float(each) for each in value] if isinstance(value, tuple) else []


def _from_tags(tags: Mapping[int, object], path: str) -> Georeference | None:
    """Return what a GeoTIFF's tags say; None where they say nothing."""
    matrix, scale, ties = (_numbers(tags, tag) for tag in (_MATRIX, _PIXEL_SCALE, _TIE_POINTS))
    if len(matrix) == 16:
        transform = Transform(matrix[0], matrix[1], matrix[3], matrix[4], matrix[5], matrix[7])
    elif len(scale) >= 2 and len(ties) >= 6:
        column, row, _, x, y, _ = ties[:6]
        transform = Transform(scale[0], 0.0, x - column * scale[0], 0.0, -scale[1], y + row * scale[1])
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
    return Georeference(transform, _epsg(keys, path))


def _geo_keys(tags: Mapping[int, object]) -> dict[int, int]:
    """Return the keys whose values are whole numbers: four words each, after four of a header."""
    words = [int(each) for each in _numbers(tags, _GEO_KEYS)]
    return {words[place]: words[place + 3] for place in range(4, len(words) - 3, 4) if words[place + 1] == 0}


def _epsg(keys: Mapping[int, int], path: str) -> int | None:
    """Return the coordinate system's number."""
    number = keys.get(_PROJECTED_KEY) if keys.get(_MODEL_KEY) == 1 else keys.get(_GEOGRAPHIC_KEY)
    if number == _OF_ITS_OWN:
        raise SourceError(f"{path}: its coordinate system is one of its own, without a number; pass crs=")
    return number or None


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
        return Georeference(as_transform((a, b, c, d, e, f)).after(Transform(1, 0, -0.5, 0, 1, -0.5)))
    return None


def _upright(found: Georeference, tags: Mapping[int, object], *, path: str, size: Size) -> Georeference:
    """Let the transform begin at the upright picture, whose size must be the prediction's."""
    width, height, turned = (_whole(tags.get(tag)) for tag in (_WIDTH, _HEIGHT, _ORIENTATION))
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
    return Georeference(found.transform.after(steps[turned]), found.epsg)


def _whole(value: object) -> int:
    """Return a tag that is one whole number; 0 where it is none."""
    return int(value) if isinstance(value, int | float | np.number) else 0
