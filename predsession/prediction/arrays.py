"""Arrays from a caller's own model, checked and brought into the shapes that the wire's annotation wants.

Invariant: what is wrong raises `ValueError` that names the argument, says what it is and what is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predsession.prediction.columns import (
    Floats,
    Masks,
    Polygons,
    Tags,
    box_column,
    boxes_around,
    described,
    keypoint_column,
    mask_column,
    number_column,
    ring_column,
    tag_pairs,
    whole_column,
)
from predsession.wire.annotation import annotation_from_arrays
from predsession.wire.fields import MAX_COORDINATE
from predsession.wire.geometry import Size
from predsession.wire.jsontypes import JSON
from predsession.wire.meta import ModelMeta


@dataclass(frozen=True, slots=True)
class Held:
    """A picture in memory, as a loader.

    Parameters
    ----------
    image : (H, W, 3) uint8 ndarray
        RGB.
    """

    image: npt.NDArray[np.uint8]

    def __call__(self) -> npt.NDArray[np.uint8]:
        """Return a copy: what is drawn on it stays out of the picture."""
        return self.image.copy()


def as_picture(image: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Check a picture in memory.

    Parameters
    ----------
    image : (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) uint8 array-like
        Gray, RGB, or RGB with alpha, which is dropped.

    Returns
    -------
    (H, W, 3) uint8 ndarray
        RGB.

    Raises
    ------
    ValueError
        If shape or dtype is another.
    """
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in {1, 3, 4} or not pixels.size:
        raise ValueError(f"image is {described(image)}; wanted (H, W, 3) uint8, RGB")
    rgb = np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels[:, :, :3]
    return np.ascontiguousarray(rgb)


def as_size(size: tuple[int, int] | None, image: npt.NDArray[np.uint8] | None) -> Size:
    """Return the picture's size, from itself or as given.

    Parameters
    ----------
    size : tuple of int or None
        Width and height.
    image : (H, W, 3) uint8 ndarray or None
        The picture.

    Returns
    -------
    Size
        Width and height.

    Raises
    ------
    ValueError
        If neither is given, they contradict each other, or a side is no whole number above 0.
    """
    if image is not None:
        found = Size(image.shape[1], image.shape[0])
        if size is not None and tuple(size) != found:
            raise ValueError(
                f"size is {tuple(size)}, image is {found.width} x {found.height}; give one of them"
            )
        return found
    sides = tuple(size) if isinstance(size, Sequence) else ()
    whole = [
        int(side) for side in sides if isinstance(side, (int, np.integer)) and 0 < side <= MAX_COORDINATE
    ]
    if len(sides) != 2 or len(whole) != 2:
        raise ValueError(f"size is {size!r}; wanted (width, height) in whole pixels, or image=")
    return Size(*whole)


def annotation_of(
    size: Size,
    *,
    titles: Sequence[str] | None,
    meta: ModelMeta,
    boxes: npt.ArrayLike | None,
    scores: npt.ArrayLike | None,
    masks: Masks | None,
    polygons: Polygons | None,
    keypoints: npt.ArrayLike | None,
    tags: Tags | None,
    track_ids: npt.ArrayLike | None,
) -> dict[str, JSON]:
    """Check the arrays against each other, and write the annotation that keeps all of them.

    Parameters
    ----------
    size : Size
        Of the picture.
    titles : sequence of str or None
        N class names; without them, N times "object".
    meta : ModelMeta
        The model's classes, for the names of keypoints.
    boxes : (N, 4) array-like or None
        xyxy, pixels, half-open; without them, those of masks, polygons or keypoints.
    scores : (N,) array-like or None
        Finite.
    masks : (N, H, W) array-like, or sequence of MaskCrop or None
        Anything but 0 is the object.
    polygons : sequence of (M, 2) array-like, of sequences of them, or of None
        N outlines, or N times outline and holes.
    keypoints : (N, K, 2) or (N, K, 3) array-like or None
        x, y, and whether it is visible (above 0).
    tags : mapping, or iterable of names, pairs or Tag
        Of the picture as a whole.
    track_ids : (N,) array-like of int or None
        Negative for none.

    Returns
    -------
    dict
        The wire's annotation.

    Raises
    ------
    ValueError
        If the argument that the message names has another shape, dtype or count than it must have.
    """
    crops, rings, points = mask_column(masks, size), ring_column(polygons), keypoint_column(keypoints)
    corners = box_column(boxes) if boxes is not None else boxes_around(crops, rings, points)
    rows = len(corners)
    if titles is None:
        titles = ["object"] * rows
    if len(titles) != rows:
        raise ValueError(f"classes or class_ids: {len(titles)} rows, boxes has {rows}")
    return annotation_from_arrays(
        size,
        boxes=corners,
        class_names=titles,
        scores=None if scores is None else number_column("scores", scores),
        masks=crops,
        polygons=rings,
        keypoints=points,
        node_ids=_node_ids(meta, titles, points),
        tags=tag_pairs(tags),
        track_ids=None if track_ids is None else whole_column("track_ids", track_ids),
        float_boxes=True,
        empty_masks=True,
    )


def model_and_titles(
    *,
    class_ids: npt.ArrayLike | None,
    classes: Iterable[str] | None,
    class_names: Iterable[str] | None,
    meta: ModelMeta | None,
) -> tuple[ModelMeta, list[str] | None]:
    """Find out what the classes are called.

    Parameters
    ----------
    class_ids : (N,) array-like of int or None
        Positions in `class_names` or `meta`.
    classes : iterable of str or None
        N names.
    class_names : iterable of str or None
        The model's classes, in order.
    meta : ModelMeta or None
        The same, with colours and skeletons.

    Returns
    -------
    ModelMeta
        The model's classes; without `class_names` and `meta`, those in `classes`.
    list of str or None
        The name of each row; None where neither `class_ids` nor `classes` was given.

    Raises
    ------
    ValueError
        If two of them say the same thing, a name is there twice, or an id has no name.
    """
    if class_names is not None and meta is not None:
        raise ValueError("class_names and meta both name the model's classes; give one of them")
    if class_ids is not None and classes is not None:
        raise ValueError("class_ids and classes both say what each row is; give one of them")
    if class_names is not None:
        meta = ModelMeta.from_names([str(name) for name in class_names])
    if meta is not None and len(set(meta.names)) < len(meta.names):
        given = "meta" if class_names is None else "class_names"
        raise ValueError(f"{given} has a name twice; each must be there once, or ids cannot be told apart")
    if class_ids is not None:
        return _by_id(whole_column("class_ids", class_ids), meta)
    titles = None if classes is None else [str(title) for title in classes]
    return meta or ModelMeta.from_names(list(dict.fromkeys(titles or ("object",)))), titles


def _by_id(numbers: npt.NDArray[np.int64], meta: ModelMeta | None) -> tuple[ModelMeta, list[str]]:
    """Return the name of each row's class."""
    if meta is None:
        raise ValueError("class_ids need names: give class_names= or meta=, or classes= instead")
    names = meta.names
    outside = (numbers < 0) | (numbers >= len(names))
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"class_ids: row {row} is {numbers[row]}; wanted 0 to {len(names) - 1}")
    return meta, [names[number] for number in numbers]


def _node_ids(meta: ModelMeta, titles: Sequence[str], points: Floats | None) -> tuple[str, ...]:
    """Return the skeleton's names for the keypoints, if a class that was found has as many."""
    if points is None:
        return ()
    for title in dict.fromkeys(titles):
        info = meta.find(title)
        if info and info.skeleton and len(info.skeleton.nodes) == points.shape[1]:
            return info.skeleton.ids
    return ()
