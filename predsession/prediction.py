"""The typed result for one picture: arrays, not JSON; read when asked for, kept, never changed.

Invariant: the annotation is the truth; every array is made from it. So a prediction that was saved,
pickled or sent is the same prediction.

The arrays are in `rows`, what turns arrays into an annotation in `arrays`, pictures in files and notebooks in
`display`: this file is what holds them together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from predsession.errors import ProtocolError
from predsession.rows import Rows
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.meta import ModelMeta
from predsession.wire.results import ResultItem, copied


class Loader(Protocol):
    """How a prediction gets its picture: (H, W, 3) uint8, RGB, upright."""

    def __call__(self) -> npt.NDArray[np.uint8]:
        """Return the picture."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Prediction(Rows):
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
    loader : Loader or None
        How to get its picture.
    """

    index: int = 0
    path: str | None = None
    url: str | None = None
    loader: Loader | None = None

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
        loader : Loader or None
            How to get its picture.

        Returns
        -------
        Prediction
            With its outline checked, and nothing decoded.

        Raises
        ------
        ProtocolError
            If the annotation, its size or its list of objects is missing or of another type.

        References
        ----------
        PROTOCOL.md, section 5.
        """
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
        item = as_object(copied(item))
        index = item.get("index")
        ids: dict[str, int] | None = None
        if meta is None:
            known = [as_object(each) for each in as_list(item.get("class_info"))]
            meta = ModelMeta.from_json({"classes": known})
            numbers = [each.get("class_id") for each in known]
            ids = {
                title: number
                for title, number in zip(meta.names, numbers, strict=True)
                if isinstance(number, int)
            }
        number = index if isinstance(index, int) else 0
        made = cls.from_wire(item, meta=meta, index=number, name="", path=None, url=None, loader=loader)
        return replace(made, ids=ids)

    # -- which input --------------------------------------------------------------------------------

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

    # -- as JSON, as bytes, as text -----------------------------------------------------------------

    @property
    def annotation(self) -> dict[str, JSON]:
        """The wire's annotation, a copy."""
        return dict(as_object(copied(self.result.annotation)))

    @property
    def data(self) -> dict[str, JSON]:
        """What else the server said: the item's ``data``, and each key the protocol does not name; a copy."""
        return dict(as_object(copied(self.result.data)))

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
            "annotation": self.annotation,
            "class_info": self._class_info(),
            "data": self.data,
        }

    def _titles(self) -> Counter[str]:
        """Count the class names that can be read, in order of appearance."""
        titles = (as_object(item).get("classTitle") for item in self.result.objects)
        return Counter(title for title in titles if isinstance(title, str))

    def _class_info(self) -> list[JSON]:
        """Describe the classes that were found and are known."""
        known = ((self.id_of(title), self.meta.find(title)) for title in self._titles())
        return [{"class_id": number, **info.to_json()} for number, info in known if info]

    def _content(self) -> tuple[object, ...]:
        """Return what makes two predictions equal; the picture's loader and the model's colours do not."""
        ids = {title: self.id_of(title) for title in self._titles()}
        return self.index, self.name, self.path, self.url, ids, self.result

    def __eq__(self, other: object) -> bool:
        """Return whether the other says the same of the same input."""
        return self._content() == other._content() if isinstance(other, Prediction) else NotImplemented

    def __hash__(self) -> int:
        """Hash which input it is, the picture's size and the number of objects: cheap, and enough."""
        return hash((self.index, self.name, self.path, self.url, self.size, len(self)))

    def __repr__(self) -> str:
        """Return name, size and what was found, in one line; nothing is decoded."""
        titles = self._titles()
        found = ", ".join(f"{title} {count}" for title, count in titles.most_common(4))
        more = ", ..." if len(titles) > 4 else ""
        return (
            f"<Prediction {self.index} {self.name!r}: {self.size.width} x {self.size.height}, "
            f"{len(self)} objects{': ' if found else ''}{found}{more}>"
        )
