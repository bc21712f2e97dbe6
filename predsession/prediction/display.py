"""A prediction as people see it: drawn on its picture, in a file, in a notebook.

Invariant: showing a prediction in a notebook never raises; what cannot be shown is said in its place.

Invariant: what comes from outside (names, titles) is escaped in HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from predsession.errors import SourceError
from predsession.prediction.markup import class_name, described, escaped, shortened, table
from predsession.prediction.rows import Rows
from predsession.wire.colors import RGB

_TABLE_ROWS = 30
_HEADER = ("", "class", "score", "x1", "y1", "x2", "y2", "shape")
BOXED = frozenset(("rectangle", "bitmap", "alpha_mask", "graph"))
"""Geometries that are drawn with their box; the others are their own outline."""


class Loader(Protocol):
    """How a prediction gets its picture: (H, W, 3) uint8, RGB, upright."""

    def __call__(self) -> npt.NDArray[np.uint8]:
        """Return the picture."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Shown(Rows):
    """Rows that belong to an input, and can be drawn on its picture.

    Parameters
    ----------
    index : int
        Position of the input in its source, from 0.
    path : str or None
        The input's own path.
    url : str or None
        Where it came from.
    timestamp : float or None
        Of a frame: seconds from the clip's first, on the clip's own clock.
    loader : Loader or None
        How to get its picture.
    """

    index: int = 0
    path: str | None = None
    url: str | None = None
    timestamp: float | None = None
    loader: Loader | None = None

    def load_image(self) -> npt.NDArray[np.uint8]:
        """Get the picture that the boxes belong to.

        Returns
        -------
        (H, W, 3) uint8 ndarray
            RGB, upright.

        Raises
        ------
        SourceError
            If there is no way to get it: no loader, and no file at `path`.
        """
        if self.loader is not None:
            return self.loader()
        if self.path is not None:
            from predsession.prediction.pictures import read_picture

            return read_picture(self.path)
        raise SourceError(
            f"{self.name or 'prediction'}: its picture is not at hand (no path, no loader); "
            "hand one in: visualize(image=...), or from_json(..., loader=...)"
        )

    def visualize(
        self,
        save_path: str | PathLike[str] | None = None,
        save_dir: str | PathLike[str] | None = None,
        *,
        image: npt.ArrayLike | None = None,
        color: RGB | None = None,
        thickness: int | None = None,
        opacity: float = 0.4,
        draw_tags: bool = True,
        fill_rectangles: bool = False,
        trails: Sequence[npt.NDArray[np.floating] | None] | None = None,
    ) -> npt.NDArray[np.uint8]:
        """Draw what was found on the picture.

        Parameters
        ----------
        save_path : str, PathLike or None
            Where to write it; the suffix says the format.
        save_dir : str, PathLike or None
            A folder to write it to, under a name that no other input of the same source gets.
        image : (H, W, 3) uint8 array-like or None
            The picture to draw on; without it, that of `load_image`.
        color : tuple of int or None
            R, G, B of everything; without it, each class has its own.
        thickness : int or None
            Width of lines, in pixels; without it, what fits the picture.
        opacity : float
            Of masks, 0 to 1.
        draw_tags : bool
            Write class, score and track beside each object.
        fill_rectangles : bool
            Fill rectangles as if they were masks.
        trails : sequence of (M, 2) float ndarray or None
            For each object the points it came along, x and y, oldest first; None for none.

        Returns
        -------
        (H, W, 3) uint8 ndarray
            RGB.

        Raises
        ------
        SourceError
            If the picture cannot be had, or has another size than the prediction.
        ProtocolError
            If an object is damaged.
        ValueError
            If the suffix of `save_path` names no format that can be written, `image` is no picture, or a
            colour, thickness or opacity makes no sense.
        """
        _check_look(color, thickness, opacity)
        from predsession.prediction.arrays import as_picture
        from predsession.prediction.pictures import file_name, write_picture

        ground = self.load_image() if image is None else as_picture(image)
        if ground.shape[:2] != (self.size.height, self.size.width):
            raise SourceError(
                f"{self.name or 'prediction'}: the picture is {ground.shape[1]} x {ground.shape[0]} pixels, "
                f"the prediction was made on {self.size.width} x {self.size.height}; "
                "hand in the right one with image="
            )
        drawn = self._drawn(
            ground,
            color,
            fill_rectangles=fill_rectangles,
            labels=draw_tags,
            thickness=thickness,
            opacity=opacity,
            trails=trails,
        )
        if save_path is not None:
            write_picture(drawn, save_path)
        if save_dir is not None:
            write_picture(drawn, Path(save_dir) / file_name(self.name, self.index))
        return drawn

    def _drawn(
        self,
        ground: npt.NDArray[np.uint8],
        color: RGB | None,
        *,
        fill_rectangles: bool,
        labels: bool,
        thickness: int | None,
        opacity: float,
        trails: Sequence[npt.NDArray[np.floating] | None] | None,
    ) -> npt.NDArray[np.uint8]:
        """Hand everything there is to the renderer."""
        filled = [fill_rectangles or kind != "rectangle" for kind in self.shapes]
        from predsession.render import draw

        return draw(
            ground,
            boxes=self.boxes,
            labels=self._labels() if labels else None,
            colors=[color or self.meta.color(title) for title in self.classes],
            masks=[crop if fill else None for crop, fill in zip(self.mask_crops, filled, strict=True)],
            outlines=self.outlines,
            lines=self.lines,
            keypoints=self.keypoints,
            skeletons=self._joints(),
            box_rows=[kind in BOXED for kind in self.shapes],
            thickness=thickness,
            opacity=opacity,
            trails=trails,
        )

    def _labels(self) -> list[str]:
        """Return what is written beside each object: class, score, track."""
        tracks = self.track_ids
        return [
            # Two spaces: in small letters "class 14" and "0.87" run into one number otherwise.
            f"{title}  {score:.2f}" + (f"  #{tracks[row]}" if tracks is not None and tracks[row] >= 0 else "")
            for row, (title, score) in enumerate(zip(self.classes, self.scores, strict=True))
        ]

    def _joints(self) -> list[list[tuple[int, int]]]:
        """Return for each object which columns of `keypoints` its class's skeleton joins."""
        column = {key: number for number, key in enumerate(self.keypoint_ids)}
        joints: dict[str, list[tuple[int, int]]] = {}
        for title in set(self.classes):
            info = self.meta.find(title)
            edges = info.skeleton.edges if info is not None and info.skeleton is not None else ()
            joints[title] = [
                (column[edge.src], column[edge.dst])
                for edge in edges
                if edge.src in column and edge.dst in column
            ]
        return [joints[title] for title in self.classes]

    # -- in a notebook ------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """Return the picture and a table, for a notebook."""
        parts = [f"<p><strong>{escaped(repr(self)[1:-1])}</strong></p>"]
        for make in (self._table, self._image):
            try:
                parts.insert(1, make())
            except Exception as error:  # noqa: BLE001 - a cell must not fail because a file is gone
                parts.append(f"<p><em>{shortened(f'{type(error).__name__}: {error}')}</em></p>")
        return f"<div>{''.join(parts)}</div>"

    def _image(self) -> str:
        """Return the picture, as wide as the page at most."""
        from predsession.prediction.pictures import inline_picture

        alt = escaped(described(self.name, self.counts()))
        return (
            f'<img src="{inline_picture(self.visualize())}" alt="{alt}" '
            'style="max-width:min(100%,720px);height:auto;display:block">'
        )

    def _table(self) -> str:
        """Return the objects as a table; the first `_TABLE_ROWS` of them."""
        tracks = self.track_ids
        columns = [*_HEADER, "track"] if tracks is not None else _HEADER
        rows = [
            (
                str(row),
                class_name(self.classes[row], self.meta.color(self.classes[row])),
                f"{self.scores[row]:.3f}",
                *(f"{edge:.1f}" for edge in self.boxes[row]),
                escaped(self.shapes[row]),
                *(() if tracks is None else ("" if tracks[row] < 0 else str(tracks[row]),)),
            )
            for row in range(min(len(self), _TABLE_ROWS))
        ]
        more = f"<p>and {len(self) - _TABLE_ROWS} more</p>" if len(self) > _TABLE_ROWS else ""
        return table(columns, rows, right=(0, 2, 3, 4, 5, 6, 8)) + more if rows else ""


def _check_look(color: object, thickness: object, opacity: object) -> None:
    """Refuse colours, widths and opacities that make no sense."""
    if color is not None:
        parts = tuple(color) if isinstance(color, tuple | list) else ()
        if len(parts) != 3 or not all(_is_whole(part) and 0 <= part <= 255 for part in parts):
            raise ValueError(f"color must be (R, G, B), each from 0 to 255, not {color!r}")
    if thickness is not None and (not _is_whole(thickness) or thickness < 1):
        raise ValueError(f"thickness must be a whole number of pixels, at least 1, not {thickness!r}")
    if not isinstance(opacity, int | float) or not 0 <= opacity <= 1:
        raise ValueError(f"opacity must be from 0 to 1, not {opacity!r}")


def _is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, NumPy's own as well; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
