"""The typed result for one picture: arrays, not JSON; read when asked for, kept, never changed.

Invariant: the annotation is the truth; every array is made from it. So a prediction that was saved,
pickled or sent is the same prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError
from predsession.prediction.conversion import Convertible
from predsession.prediction.display import Loader
from predsession.wire.fields import shown
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.meta import CONFIDENCE, ModelMeta
from predsession.wire.results import ResultItem, copied

if TYPE_CHECKING:
    from predsession.prediction.columns import Masks, Polygons, Tags


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Prediction(Convertible):
    """What a model found in one picture.

    Made by `from_wire`, `from_json` or `from_arrays`. Arrays are read from the server's answer when they
    are first asked for, and kept; they are read-only, copy one to change it. A damaged answer raises
    `ProtocolError`, which names object and field, where the value is asked for. Two predictions are equal
    if they say the same of the same input; a prediction is true even if it found nothing.

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

    @classmethod
    def from_wire(
        cls,
        item: JSONObject,
        *,
        meta: ModelMeta,
        index: int,
        name: str,
        path: str | None,
        url: str | None,
        timestamp: float | None = None,
        loader: Loader | None = None,
    ) -> Self:
        """Take a result item as it came from the server.

        Parameters
        ----------
        item : JSON object
            One of ``pending_results``. It is kept, not copied.
        meta : ModelMeta
            The model's classes.
        index : int
            Position of the input in its source, from 0.
        name : str
            The input's name; where it is empty, what the item says.
        path : str or None
            The input's own path; where it is None, what the item says.
        url : str or None
            Where it came from; where it is None, what the item says.
        timestamp : float or None
            Of a frame: seconds from the clip's first; where it is None, what the item says.
        loader : Loader or None
            How to get its picture.

        Returns
        -------
        Prediction
            With its outline checked, and nothing decoded.

        Raises
        ------
        ProtocolError
            If the annotation, its size or its list of objects is missing or of another type, or the index is
            no whole number from 0 to 2 ** 63 - 1.

        References
        ----------
        PROTOCOL.md, section 5.
        """
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < 1 << 63:
            raise ProtocolError(f"{name or 'a result'}: index: {shown(index)} is no position in a source")
        try:
            result = ResultItem.from_json(item)
        except ProtocolError as error:
            raise ProtocolError(f"{name or f'result {index}'}: {error}") from None
        return cls(
            result=result,
            meta=meta,
            name=name or result.name or "",
            index=index,
            path=result.path if path is None else path,
            url=result.url if url is None else url,
            timestamp=result.timestamp if timestamp is None else timestamp,
            loader=loader,
        )

    @classmethod
    def from_json(
        cls, item: JSONObject, *, meta: ModelMeta | None = None, loader: Loader | None = None
    ) -> Self:
        """Read what `to_json` wrote, or a result item of a server.

        Parameters
        ----------
        item : JSON object
            It is copied. Keys that the protocol does not name are kept in `data`.
        meta : ModelMeta or None
            The model's classes; without it, those that `to_json` wrote down, and the id -1 for others.
        loader : Loader or None
            How to get the picture.

        Returns
        -------
        Prediction
            Equal to the one that was written.

        Raises
        ------
        ProtocolError
            If the annotation, its size or its list of objects is missing or of another type.
        """
        try:
            item = as_object(copied(item))
        except RecursionError:
            raise ProtocolError("a result is nested too deep to be read") from None
        index = item.get("index")
        ids: dict[str, int] | None = None
        if meta is None:
            meta, ids = _told_classes([as_object(each) for each in as_list(item.get("class_info"))])
        # From 0 where it is not said; what is no whole number is refused.
        number = 0 if index is None else cast("int", index)
        made = cls.from_wire(item, meta=meta, index=number, name="", path=None, url=None, loader=loader)
        return replace(made, ids=ids)

    @classmethod
    def from_arrays(
        cls,
        *,
        size: tuple[int, int] | None = None,
        image: npt.ArrayLike | None = None,
        boxes: npt.ArrayLike | None = None,
        scores: npt.ArrayLike | None = None,
        class_ids: npt.ArrayLike | None = None,
        classes: Iterable[str] | None = None,
        class_names: Iterable[str] | None = None,
        meta: ModelMeta | None = None,
        masks: Masks | None = None,
        polygons: Polygons | None = None,
        keypoints: npt.ArrayLike | None = None,
        tags: Tags | None = None,
        track_ids: npt.ArrayLike | None = None,
        index: int = 0,
        name: str = "",
        path: str | PathLike[str] | None = None,
        url: str | None = None,
        frame_index: int | None = None,
        data: Mapping[str, JSON] | None = None,
        loader: Loader | None = None,
    ) -> Self:
        """Make a prediction of a model's own arrays. Numbers keep their fractions.

        Parameters
        ----------
        size : tuple of int or None
            Width and height of the picture; not needed with `image`.
        image : (H, W, 3) uint8 array-like or None
            The picture, RGB, upright: for `load_image` and `visualize`.
        boxes : (N, 4) array-like or None
            xyxy, pixels, half-open; without them, those of masks, polygons or keypoints.
        scores : (N,) array-like or None
            Finite; without them all are 1.0.
        class_ids : (N,) array-like of int or None
            Positions in `class_names` or `meta`.
        classes : iterable of str or None
            N names, instead of `class_ids`; without either, all are "object".
        class_names : iterable of str or None
            The model's classes, in order.
        meta : ModelMeta or None
            The same with colours and skeletons, instead of `class_names`.
        masks : (N, H, W) array-like, or sequence of MaskCrop or None
            Anything but 0 is the object.
        polygons : sequence of (M, 2) array-like, of sequences of them, or of None
            N outlines, or N times outline and holes; vertices name pixels.
        keypoints : (N, K, 2) or (N, K, 3) array-like or None
            x, y, and whether it is visible (above 0).
        tags : mapping, or iterable of names, pairs or Tag
            Of the picture as a whole.
        track_ids : (N,) array-like of int or None
            Negative for none.
        index : int
            Position of the input in its source, from 0.
        name : str
            The input's name; without it, that of the path.
        path : str, PathLike or None
            The input's path.
        url : str or None
            Where it came from.
        frame_index : int or None
            The frame's number in its video.
        data : mapping or None
            Anything else that JSON has words for; NumPy's numbers and arrays become plain ones.
        loader : Loader or None
            How to get the picture, instead of `image`.

        Returns
        -------
        Prediction
            Row i of everything is row i of what was given.

        Raises
        ------
        ValueError
            If the argument that the message names has another shape, dtype or count than it must have, or
            holds what JSON has no word for, such as NaN.
        """
        from predsession.prediction.arrays import Held, annotation_of, as_picture, as_size, model_and_titles
        from predsession.prediction.columns import json_object, position, text_or_none

        picture = None if image is None else as_picture(image)
        meta, titles = model_and_titles(
            class_ids=class_ids, classes=classes, class_names=class_names, meta=meta
        )
        annotation = annotation_of(
            as_size(size, picture),
            titles=titles,
            meta=meta,
            boxes=boxes,
            scores=scores,
            masks=masks,
            polygons=polygons,
            keypoints=keypoints,
            tags=tags,
            track_ids=track_ids,
        )
        path = text_or_none("path", None if path is None else fspath(path))
        frame = None if frame_index is None else position("frame_index", frame_index)
        return cls.from_wire(
            {"annotation": annotation, "frame_index": frame, "data": json_object("data", data)},
            meta=meta,
            index=position("index", index),
            name=text_or_none("name", name) or (Path(path).name if path is not None else ""),
            path=path,
            url=text_or_none("url", url),
            loader=loader if picture is None else Held(picture),
        )

    def where(self, rows: npt.ArrayLike) -> Self:
        """Keep some of the objects: ``prediction.where(prediction.scores > 0.5)``.

        Parameters
        ----------
        rows : (N,) bool array-like
            Which.

        Returns
        -------
        Prediction
            The same of the same input, with those objects only.

        Raises
        ------
        ValueError
            If there is not one truth value for each object.
        """
        chosen = np.asarray(rows)
        if chosen.shape != (len(self),) or chosen.dtype != np.bool_:
            raise ValueError(f"rows: ({len(self)},) bool is wanted, not {chosen.shape} {chosen.dtype}")
        annotation = dict(self.result.annotation)
        objects = [each for each, kept in zip(self.result.objects, chosen, strict=True) if kept]
        annotation["objects"] = objects
        tracks = annotation.get("customBigData")
        if isinstance(tracks, list) and len(tracks) == len(chosen):
            annotation["customBigData"] = [each for each, kept in zip(tracks, chosen, strict=True) if kept]
        return replace(self, result=replace(self.result, annotation=annotation, objects=objects))

    # -- as JSON, as bytes, as text -----------------------------------------------------------------

    def to_json(self) -> dict[str, JSON]:
        """Return all of it as JSON: a result item as the wire has it, and what reading it back needs.

        Returns
        -------
        dict
            The wire's keys, ``index``, and ``class_info``: the model's description of each class that
            was found, with its ``class_id``.
        """
        return {
            "index": self.index,
            "source": self.path or self.url,
            "name": self.name,
            "path": self.path,
            "url": self.url,
            "project_id": self.project_id,
            "dataset_id": self.dataset_id,
            "image_id": self.image_id,
            "video_id": self.video_id,
            "frame_index": self.frame_index,
            "timestamp": self.timestamp,
            "annotation": self.annotation,
            "class_info": self._class_info(),
            "data": self.data,
        }

    def _class_info(self) -> list[JSON]:
        """Describe the classes that were found and are known."""
        known = ((self.id_of(title), self.meta.find(title)) for title in self.counts())
        return [{"class_id": number, **info.to_json()} for number, info in known if info]

    def _content(self) -> tuple[object, ...]:
        """Return what makes two predictions equal; the picture's loader and the model's colours do not."""
        ids = {title: self.id_of(title) for title in self.counts()}
        return self.index, self.name, self.path, self.url, self.timestamp, ids, self.result

    def __eq__(self, other: object) -> bool:
        """Return whether the other says the same of the same input."""
        return self._content() == other._content() if isinstance(other, Prediction) else NotImplemented

    def __hash__(self) -> int:
        """Hash which input it is, the picture's size and the number of objects: cheap, and enough."""
        return hash((self.index, self.name, self.path, self.url, self.size, len(self)))

    def __repr__(self) -> str:
        """Return name, size and what was found, in one line; nothing is decoded."""
        titles = self.counts()
        found = ", ".join(f"{_plain(title)} {count}" for title, count in titles.most_common(4))
        more = ", ..." if len(titles) > 4 else ""
        return (
            f"<Prediction {self.index} {self.name!r}: {self.size.width} x {self.size.height}, "
            f"{len(self)} object{'' if len(self) == 1 else 's'}{': ' if found else ''}{found}{more}>"
        )


def _told_classes(told: list[JSONObject]) -> tuple[ModelMeta, dict[str, int]]:
    """Read the classes that a prediction has written down, in the order of their numbers."""
    numbers = [each.get("class_id") for each in told]
    known = [
        number if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 1 << 63 else None
        for number in numbers
    ]
    order = sorted(range(len(told)), key=lambda row: (known[row] is None, known[row] or 0))
    classes = ModelMeta.from_json({"classes": [told[row] for row in order]}).classes
    numbered = zip(classes, (known[row] for row in order), strict=True)
    return ModelMeta(classes, (CONFIDENCE,)), {
        info.title: number for info, number in numbered if number is not None
    }


def _plain(title: str) -> str:
    """Return a class name for one line of text."""
    return title[:40] if title.isprintable() else repr(title[:40])
