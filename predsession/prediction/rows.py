"""What a model found in one picture, as arrays: read when asked for, kept, never changed.

Invariant: row i of every array and sequence is object i of the annotation, whatever its geometry.

Invariant: what is not asked for is never decoded, and a damaged object is an error only where it is asked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, Self, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from predsession.errors import PredSessionError, ProtocolError
from predsession.wire.fields import Fields, Tag
from predsession.wire.figures import Figure
from predsession.wire.geometry import MaskCrop, Ring, Size
from predsession.wire.jsontypes import JSON, as_object
from predsession.wire.meta import ModelMeta
from predsession.wire.results import ResultItem, copied

T = TypeVar("T")
S = TypeVar("S", bound=np.generic)

MOST_BYTES = 1 << 34
"""No array of a prediction is larger, whatever sizes the answer claims: 16 GiB."""
MOST_CROP_BYTES = 1 << 32
"""The masks of one picture together, each cut to its own rectangle: 4 GiB."""


class Cache(dict[str, object]):
    """What was computed; a pickle or a copy begins without it."""

    def __reduce__(self) -> tuple[type[Cache], tuple[()]]:
        """Leave the contents behind: they can be computed again, and are large."""
        return Cache, ()


class Kept(Generic[T]):
    """A property that is computed once; its errors name the prediction."""

    def __init__(self, compute: Callable[[Rows], T]) -> None:
        self._compute = compute
        self._name = ""
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Rows, owner: type) -> T: ...
    def __get__(self, instance: Rows | None, owner: type) -> T | Self:
        if instance is None:
            return self
        kept = instance._kept
        if self._name not in kept:
            try:
                kept[self._name] = self._compute(instance)
            except ProtocolError as error:
                raise _named(instance.name, error) from None
        return cast("T", kept[self._name])


def _named(name: str, error: ProtocolError) -> ProtocolError:
    """Put the prediction's name in front, once: one property may ask another."""
    front = f"{name or 'prediction'}: "
    return error if str(error).startswith(front) else ProtocolError(front + str(error))


def _frozen(array: npt.NDArray[S]) -> npt.NDArray[S]:
    """Protect an array that is handed out more than once."""
    array.flags.writeable = False
    return array


def zeros(name: str, shape: tuple[int, ...], dtype: type[S], *, remedy: str = "") -> npt.NDArray[S]:
    """Make an array whose size an answer claims.

    Parameters
    ----------
    name : str
        The prediction's, for the message.
    shape : tuple of int
        As claimed.
    dtype : type
        Of the array.
    remedy : str
        What to do instead, for the message.

    Returns
    -------
    ndarray
        Of zeros.

    Raises
    ------
    PredSessionError
        If memory cannot hold it.
    """
    try:
        # Counted first: a system may promise any amount, and end the process once it is used.
        if math.prod(shape) * np.dtype(dtype).itemsize <= MOST_BYTES:
            return np.zeros(shape, dtype)
    except (MemoryError, ValueError):
        pass
    sides = " x ".join(map(str, shape))
    raise PredSessionError(f"{name or 'prediction'}: {sides} values do not fit into memory{remedy}")


def _points(ring: Ring) -> npt.NDArray[np.float32]:
    """Return points as (M, 2)."""
    return _frozen(np.array(ring, np.float32).reshape(-1, 2))


# No slots: Python's frozen dataclasses with slots answer `p.boxes = ...` with a TypeError about super().
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rows:
    """The objects of one picture, as arrays that share their rows.

    Parameters
    ----------
    result : ResultItem
        The server's answer, with its outline checked.
    meta : ModelMeta
        The model's classes.
    name : str
        The input's name.
    ids : mapping of str to int, or None
        Class ids by title, where they are not those of `meta`.
    """

    result: ResultItem
    meta: ModelMeta
    name: str = ""
    ids: Mapping[str, int] | None = None
    _kept: Cache = field(init=False, default_factory=Cache)

    def __len__(self) -> int:
        """Return how many objects were found."""
        return len(self.result.objects)

    def __bool__(self) -> Literal[True]:
        """Return True: there is a prediction, even if it found nothing."""
        return True

    def counts(self) -> Counter[str]:
        """Return how many objects of each class were found.

        Returns
        -------
        Counter
            By class name, in order of appearance. Nothing is decoded; an object whose class cannot be read
            is passed over.
        """
        titles = (item.get("classTitle") for item in self.result.objects if isinstance(item, dict))
        return Counter(title for title in titles if isinstance(title, str))

    def id_of(self, title: str) -> int:
        """Return a class's position in the model's list, -1 where it is not in it."""
        return self.meta.class_id(title) if self.ids is None else self.ids.get(title, -1)

    @Kept
    def _figures(self) -> tuple[Figure, ...]:
        """The objects, unread."""
        return tuple(Figure(item, number) for number, item in enumerate(self.result.objects))

    @Kept
    def boxes(self) -> npt.NDArray[np.float32]:
        """(N, 4) float32, xyxy, pixels, half-open: width = x2 - x1."""
        return _frozen(np.array([figure.box() for figure in self._figures], np.float32).reshape(-1, 4))

    @Kept
    def scores(self) -> npt.NDArray[np.float32]:
        """(N,) float32: the tag confidence, conf or score of each object; 1.0 where it has none."""
        return _frozen(np.array([figure.score() for figure in self._figures], np.float32))

    @Kept
    def classes(self) -> npt.NDArray[np.object_]:
        """(N,) array of str: the class names. An array, so that ``p.boxes[p.classes == "cat"]`` works."""
        names = np.empty(len(self), np.object_)
        names[:] = [figure.text("classTitle") for figure in self._figures]
        return _frozen(names)

    @Kept
    def class_ids(self) -> npt.NDArray[np.int64]:
        """(N,) int64: position of each class in the model's list; -1 for a class that is not in it."""
        numbers = [self.id_of(figure.text("classTitle")) for figure in self._figures]
        return _frozen(np.array(numbers, np.int64))

    @property
    def class_idxs(self) -> npt.NDArray[np.int64]:
        """The ancestor's name for `class_ids`."""
        return self.class_ids

    @Kept
    def mask_crops(self) -> tuple[MaskCrop, ...]:
        """N masks, each cut to its own rectangle, with its offset.

        A bitmap's is its own; a rectangle, a polygon (but for its holes), an oriented box and the outline
        of a cuboid are filled; a line is one pixel wide; a point, and each visible node of a graph, is one
        pixel. What lies outside the picture is cut off.

        Raises
        ------
        ProtocolError
            If an object is damaged, or together they take more than 4 GiB.
        """
        crops, left = list[MaskCrop](), MOST_CROP_BYTES
        for figure in self._figures:
            crop = figure.crop(self.size)
            left -= (
                crop.mask.size if all(crop.mask.strides) else 0
            )  # a filled box is one value, seen everywhere
            if left < 0:
                raise ProtocolError(
                    f"the masks up to object {len(crops)} take more than {MOST_CROP_BYTES} bytes"
                )
            _frozen(crop.mask)
            crops.append(crop)
        return tuple(crops)

    @Kept
    def masks(self) -> npt.NDArray[np.bool_]:
        """(N, H, W) bool: the masks of `mask_crops`, each in a full picture. Large: N * H * W bytes."""
        shape = (len(self), self.size.height, self.size.width)
        full = zeros(self.name, shape, np.bool_, remedy="; use mask_crops")
        for page, (x, y, mask) in zip(full, self.mask_crops, strict=True):
            page[y : y + mask.shape[0], x : x + mask.shape[1]] = mask
        return _frozen(full)

    @Kept
    def polygons(self) -> tuple[tuple[npt.NDArray[np.float32], ...], ...]:
        """N tuples of (M, 2) float32 rings: the outline, then its holes.

        Of a polygon as the model gave it, its vertices naming pixels; of an oriented box its four corners;
        of a cuboid its outline. Empty for other geometries: a mask is not traced.
        """
        return tuple(tuple(map(_points, figure.rings())) for figure in self._figures)

    @Kept
    def outlines(self) -> tuple[tuple[npt.NDArray[np.float32], ...], ...]:
        """N tuples of (M, 2) float32 rings to draw: as `polygons`, but a cuboid's are its faces."""
        return tuple(tuple(map(_points, figure.faces())) for figure in self._figures)

    @Kept
    def lines(self) -> tuple[npt.NDArray[np.float32], ...]:
        """N arrays (M, 2) float32: the vertices of a line, in order; M = 0 for other geometries."""
        return tuple(_points(figure.line()) for figure in self._figures)

    @Kept
    def keypoint_ids(self) -> tuple[str, ...]:
        """K ids: what the columns of `keypoints` stand for; those of the skeletons first, then others."""
        skeletons = {info.title: info.skeleton.ids for info in self.meta.classes if info.skeleton}
        ids: dict[str, None] = {}
        for figure in self._figures:
            nodes = figure.nodes()
            if nodes:
                ids |= dict.fromkeys(skeletons.get(figure.text("classTitle"), ()))
                ids |= dict.fromkeys(node.id for node in nodes)
        return tuple(ids)

    @Kept
    def keypoints(self) -> npt.NDArray[np.float32]:
        """(N, K, 3) float32: x, y, visible (1 or 0). A row without a keypoint has 0, 0, 0 in its place.

        Column k is the keypoint `keypoint_ids` [k]. A figure that is one point has its keypoint in the
        column of the empty id.
        """
        column = {key: number for number, key in enumerate(self.keypoint_ids)}
        points = zeros(self.name, (len(self), len(column), 3), np.float32)
        for row, figure in zip(points, self._figures, strict=True):
            for node in figure.nodes():
                row[column[node.id]] = node.x, node.y, node.visible
        return _frozen(points)

    @Kept
    def track_ids(self) -> npt.NDArray[np.int64] | None:
        """(N,) int64: the track of each object, -1 for none; None where nothing was tracked."""
        tracks = self.result.annotation.get("customBigData")
        if not isinstance(tracks, (list, tuple)):
            return None
        if len(tracks) != len(self):
            raise ProtocolError(f"annotation.customBigData: {len(tracks)} track ids, {len(self)} objects")
        fields = Fields(self.result.annotation, "annotation")
        numbers = [-1 if track is None else fields.whole(track, "customBigData") for track in tracks]
        return _frozen(np.array(numbers, np.int64))

    @Kept
    def object_tags(self) -> tuple[tuple[Tag, ...], ...]:
        """N tuples of tags, the score among them."""
        return tuple(figure.tags() for figure in self._figures)

    @Kept
    def shapes(self) -> tuple[str, ...]:
        """N geometries, in the wire's words: rectangle, bitmap, polygon, graph, ..."""
        return tuple(figure.kind for figure in self._figures)

    @property
    def size(self) -> Size:
        """Width and height of the picture that all coordinates belong to: the upright one."""
        return self.result.size

    @Kept
    def tags(self) -> tuple[Tag, ...]:
        """The tags of the picture as a whole."""
        return Fields(self.result.annotation, "annotation").tags()

    @property
    def project_id(self) -> int | None:
        """The platform's id of the project."""
        return self.result.project_id

    @property
    def dataset_id(self) -> int | None:
        """The platform's id of the dataset."""
        return self.result.dataset_id

    @property
    def image_id(self) -> int | None:
        """The platform's id of the image."""
        return self.result.image_id

    @property
    def video_id(self) -> int | None:
        """The platform's id of the video."""
        return self.result.video_id

    @property
    def frame_index(self) -> int | None:
        """The frame's number in its video, from 0."""
        return self.result.frame_index

    @property
    def annotation(self) -> dict[str, JSON]:
        """The wire's annotation, a copy."""
        return dict(as_object(copied(self.result.annotation)))

    @property
    def data(self) -> dict[str, JSON]:
        """What else the server said: the item's ``data``, and each key the protocol does not name; a copy."""
        return dict(as_object(copied(self.result.data)))
