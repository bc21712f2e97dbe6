"""Arrays and a picture in, a picture out. Knows nothing of predictions, sessions or servers.

Invariant: nothing is drawn outside the picture, no label leaves it, and the caller's array is not changed.

Every width and every letter grows with the picture: a drawing is as readable on 300 pixels as on 4000.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

RGB = tuple[int, int, int]
Crop = tuple[int, int, npt.NDArray[np.bool_]]
"""x, y, and the mask whose left top pixel lies there."""

Rings = Sequence[npt.NDArray[np.floating]]
Pair = tuple[int, int]
T = TypeVar("T")
Frame = tuple[int, int, int, int]

_SMALLEST_LETTERS = 11  # below this the default font cannot be read
_LATIN_END = 0x250  # where the letters of Pillow's own font end
_WIDE_FONTS = (  # by the names that Debian, macOS and Windows give them; those with more signs first
    "NotoSansCJK-Regular.ttc",
    "DroidSansFallbackFull.ttf",
    "wqy-zenhei.ttc",
    "Arial Unicode.ttf",
    "PingFang.ttc",
    "msyh.ttc",
    "DejaVuSans.ttf",
    "arial.ttf",
)
_LONGEST = 120  # signs of a label that are looked at
_MOST_LABELS = 1000  # more can nobody read on one picture, and each must find a place beside all others
_NONE = np.zeros((0, 3))
_ONE_COLOR: RGB = (255, 64, 64)
_DARK, _LIGHT = (16, 16, 16), (255, 255, 255)


@dataclass(frozen=True, slots=True)
class Scale:
    """How thick lines are and how high letters, in pixels.

    Parameters
    ----------
    line : int
        Width of a line.
    letters : int
        Size of the font.
    """

    line: int
    letters: int

    @classmethod
    def fitting(cls, width: int, height: int, thickness: int | None = None) -> Scale:
        """Return what is readable on a picture of that size.

        Parameters
        ----------
        width, height : int
            Of the picture, in pixels.
        thickness : int or None
            The width of lines, where the caller wants another.

        Returns
        -------
        Scale
            Grows with the square root of the area.
        """
        side = math.sqrt(width * height)
        line = max(1, round(side / 300)) if thickness is None else thickness
        return cls(line, max(_SMALLEST_LETTERS, round(side / 48)))


def draw(
    image: npt.NDArray[np.uint8],
    *,
    boxes: npt.NDArray[np.floating],
    labels: Sequence[str] | None = None,
    colors: Sequence[RGB] | None = None,
    masks: Sequence[Crop | None] | None = None,
    outlines: Sequence[Rings] | None = None,
    lines: Sequence[npt.NDArray[np.floating]] | None = None,
    keypoints: Sequence[npt.NDArray[np.floating]] | npt.NDArray[np.floating] | None = None,
    skeletons: Sequence[Sequence[Pair]] | None = None,
    trails: Sequence[npt.NDArray[np.floating] | None] | None = None,
    box_rows: Sequence[bool] | None = None,
    thickness: int | None = None,
    opacity: float = 0.4,
) -> npt.NDArray[np.uint8]:
    """Draw what was found on a picture.

    Parameters
    ----------
    image : (H, W, 3) uint8 ndarray
        RGB; it is not changed.
    boxes : (N, 4) float ndarray
        xyxy, pixels, half-open.
    labels : sequence of str or None
        N texts; an empty one is not drawn.
    colors : sequence of (r, g, b) or None
        N colours; without them all are of one.
    masks : sequence of Crop or None
        N masks to lay over, or None for rows that have none.
    outlines : sequence of rings or None
        N times the closed outlines to draw, (M, 2) arrays whose vertices name pixels.
    lines : sequence of (M, 2) float ndarray or None
        N open lines; M = 0 for rows that have none.
    keypoints : (N, K, 3) float ndarray, or sequence of (K, 3), or None
        x, y, visible; only visible ones are drawn.
    skeletons : sequence of pairs or None
        N times the pairs of columns of `keypoints` to join.
    trails : sequence of (M, 2) float ndarray or None
        Where each object came from, oldest first; it fades.
    box_rows : sequence of bool or None
        Whether to draw the box of each row; without it, of all.
    thickness : int or None
        Width of lines, in pixels; without it, what fits the picture.
    opacity : float
        Of masks, 0 to 1.

    Returns
    -------
    (H, W, 3) uint8 ndarray
        A new picture.
    """
    rows = len(boxes)
    inks, crops, texts = _each(colors, rows, _ONE_COLOR), _each(masks, rows, None), _each(labels, rows, "")
    framed, rings, paths = _each(box_rows, rows, True), _each(outlines, rows, ()), _each(lines, rows, _NONE)
    points, joints, tails = (
        _each(None if keypoints is None else list(keypoints), rows, _NONE),
        _each(skeletons, rows, ()),
        _each(trails, rows, None),
    )
    order = _largest_first(boxes)
    canvas = image.copy()
    for row in order:
        _lay_over(canvas, crops[row], ink=inks[row], opacity=opacity)
    picture = Image.fromarray(canvas)
    pen = _Pen(picture, Scale.fitting(picture.width, picture.height, thickness))
    for row in order:
        if framed[row]:
            pen.box(boxes[row], inks[row])
        for ring in rings[row]:
            pen.path(ring, inks[row], closed=True)
        pen.path(paths[row], inks[row])
        pen.trail(tails[row], inks[row])
        pen.points(points[row], joints[row], inks[row])
    for row in reversed(order):  # the smallest object chooses the place of its label first
        pen.label(texts[row], boxes[row], inks[row], lift=bool(points[row][:, 2].any()))
    return np.array(picture)  # a copy: what Pillow hands out itself cannot be written to


def _each(values: Sequence[T] | None, rows: int, otherwise: T) -> Sequence[T]:
    """Return one value a row: those given, or the same for all."""
    return values if values is not None else [otherwise] * rows


def _largest_first(boxes: npt.NDArray[np.floating]) -> list[int]:
    """Return the rows so that small objects end up on top of large ones."""
    sides = np.asarray(boxes, np.float64).reshape(-1, 4)
    order: list[int] = np.argsort(-np.prod(sides[:, 2:] - sides[:, :2], axis=1), kind="stable").tolist()
    return order


def _lay_over(canvas: npt.NDArray[np.uint8], crop: Crop | None, *, ink: RGB, opacity: float) -> None:
    """Mix the colour into the mask's pixels."""
    if crop is None:
        return
    x, y, mask = crop
    region = canvas[y : y + mask.shape[0], x : x + mask.shape[1]]
    mask = mask[: region.shape[0], : region.shape[1]]
    share = round(min(max(opacity, 0.0), 1.0) * 256)
    mixed = (region[mask].astype(np.uint16) * (256 - share) + np.array(ink, np.uint16) * share) >> 8
    region[mask] = mixed


class _Pen:
    """Draws on one picture, and remembers where its labels are."""

    def __init__(self, picture: Image.Image, scale: Scale) -> None:
        self._draw = ImageDraw.Draw(picture)
        self._scale = scale
        self._right, self._bottom = picture.width - 1, picture.height - 1
        self._labels: list[Frame] = []
        self._radius = scale.line * 1.5 + 1

    def box(self, box: npt.NDArray[np.floating], ink: RGB) -> None:
        """Draw a box; an edge outside the picture is drawn at its border."""
        left, top, right, bottom = self._inside(box)
        self._draw.rectangle((left, top, right, bottom), outline=ink, width=self._scale.line)

    def _inside(self, box: npt.NDArray[np.floating]) -> Frame:
        """Return a box in whole pixels, inclusive, within the picture, never empty."""
        left, top = math.floor(box[0]), math.floor(box[1])
        right, bottom = math.ceil(box[2]) - 1, math.ceil(box[3]) - 1
        left, top = min(max(left, 0), self._right), min(max(top, 0), self._bottom)
        return left, top, min(max(right, left), self._right), min(max(bottom, top), self._bottom)

    def path(self, points: npt.NDArray[np.floating], ink: RGB, *, closed: bool = False) -> None:
        """Draw an open or closed line; of a single point, a dot."""
        places = [(float(x), float(y)) for x, y in points]
        if len(places) == 1:
            self._dot(places[0], ink)
        elif places:
            # A closed line goes on to its second point, so that the joint at the first is round too.
            self._draw.line(places + places[:2] * closed, fill=ink, width=self._scale.line, joint="curve")

    def trail(self, points: npt.NDArray[np.floating] | None, ink: RGB) -> None:
        """Draw where an object came from: the older, the thinner."""
        places = [] if points is None else [(float(x), float(y)) for x, y in points]
        for number, ends in enumerate(pairwise(places), start=1):
            width = math.ceil(self._scale.line * number / len(places))
            self._draw.line(ends, fill=ink, width=width)

    def points(self, keypoints: npt.NDArray[np.floating], pairs: Sequence[Pair], ink: RGB) -> None:
        """Draw the visible keypoints and the lines between them."""
        places = {
            number: (float(x), float(y)) for number, (x, y, visible) in enumerate(keypoints) if visible > 0
        }
        for start, end in pairs:
            if start in places and end in places:
                self._draw.line((places[start], places[end]), fill=ink, width=self._scale.line)
        for place in places.values():
            self._dot(place, ink)

    def _dot(self, place: tuple[float, float], ink: RGB) -> None:
        """Draw a point with a rim that sets it off from any ground."""
        x, y = place
        radius, rim = self._radius, self._radius + 1 + self._scale.line // 3
        self._draw.ellipse((x - rim, y - rim, x + rim, y + rim), fill=_against(ink))
        self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=ink)

    def label(self, text: str, box: npt.NDArray[np.floating], ink: RGB, *, lift: bool) -> None:
        """Write a text at its box: above it if there is room, in it, or below it; clear of keypoints."""
        text = "".join(sign if sign.isprintable() else " " for sign in text[:_LONGEST]).strip()
        if not text or len(self._labels) >= _MOST_LABELS:
            return
        font = _font(self._scale.letters, plain=max(map(ord, text)) < _LATIN_END)
        pad = max(1, self._scale.letters // 5)
        text = _shortened(text, font, self._right + 1 - 2 * pad)
        width = math.ceil(font.getlength(text)) + 2 * pad
        ascent, descent = font.getmetrics()
        gap = math.ceil(self._radius) + 1 + self._scale.line // 3 if lift else 0
        left, top, right, bottom = self._inside(box)
        frame = self._free((left, top - gap, right, bottom + gap), width, ascent + descent + pad)
        self._labels.append(frame)
        self._draw.rectangle(frame, fill=ink)
        self._draw.text((frame[0] + pad, frame[1] + pad // 2), text, font=font, fill=_against(ink))

    def _free(self, box: Frame, width: int, height: int) -> Frame:
        """Return the first place for a label that is inside the picture and not taken."""
        left, top, right, bottom = box
        last_x, last_y = max(self._right + 1 - width, 0), max(self._bottom + 1 - height, 0)
        near = (top - height, top, bottom + 1, bottom + 1 - height)
        # Where the corners are taken, as in a crowd, go on in steps of one label, down and then up.
        steps = [top + side * step * height for side in (1, -1) for step in range(1, 8)]
        wanted = [(x, y) for x in (left, right + 1 - width) for y in near] + [(left, y) for y in steps]
        places = [
            (x, y, x + width - 1, y + height - 1)
            for x, y in ((min(max(x, 0), last_x), y) for x, y in wanted)
            if 0 <= y <= last_y
        ]
        for place in places:
            if not any(_overlap(place, taken) for taken in self._labels):
                return place
        x, y = min(left, last_x), min(top, last_y)
        return places[0] if places else (x, y, x + width - 1, y + height - 1)


def _overlap(one: Frame, other: Frame) -> bool:
    """Return whether two frames share a pixel."""
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def _against(ink: RGB) -> RGB:
    """Return black or white, whichever is easier to read on the colour."""
    red, green, blue = ink
    # Weights of ITU-R BT.601: the eye sees green as brighter than blue.
    return _DARK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else _LIGHT


@lru_cache(maxsize=32)
def _font(size: int, *, plain: bool) -> ImageFont.FreeTypeFont:
    """Return a font; for texts beyond Latin letters one of the system's, where there is one."""
    for name in () if plain else _WIDE_FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)  # the other kind has one size only, and none was asked
    return font


def _shortened(text: str, font: ImageFont.FreeTypeFont, room: int) -> str:
    """Cut a text that is wider than the picture."""
    if font.getlength(text) <= room:
        return text
    while text and font.getlength(text + "…") > room:
        text = text[:-1]
    return text + "…"
