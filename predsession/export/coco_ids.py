"""The ids of pictures and categories in a COCO document.

What was read from a document of others keeps its ids, so that it fits the ground truth that it belongs to.
They travel in a prediction's data, under ``coco``: the picture's ``image_id``, and ``category_ids`` by name.
Those are of its own classes, for a thousand categories at each picture would be more than all that was found;
the document's first picture has those of all categories, so that what occurs nowhere keeps its id, too.
Other pictures have their position in the source, from 1, other categories their class's number and one.

Invariant: no two pictures share an id, and no two categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from predsession.prediction import Prediction
from predsession.wire.jsontypes import JSON, as_object
from predsession.wire.meta import ModelMeta

COCO = "coco"
IMAGE_ID, CATEGORY_IDS = "image_id", "category_ids"
KEPT = "coco_ids"
"""What is said in a document of a picture whose ids are those that it was read with."""
Id = int | str
_LARGEST = 1 << 53
"""Of numbers that all readers of JSON take for what they are."""


class ImageIds:
    """Gives each picture an id, whatever the order in which they come.

    All predictions are learnt first; then each gets its id, once.
    """

    def __init__(self) -> None:
        self._kept: set[Id] = set()
        self._given: set[Id] = set()
        self._last = 0
        self.lost = 0
        """How many pictures could not keep theirs."""

    def learn(self, prediction: Prediction) -> None:
        """Take note of a prediction that will get an id.

        Parameters
        ----------
        prediction : Prediction
            With the id it had, or an index.
        """
        kept = _as_id(_of(prediction).get(IMAGE_ID))
        if kept is not None:
            self._kept.add(kept)
        self._last = max(self._last, prediction.index + 1, kept if isinstance(kept, int) else 0)

    def give(self, prediction: Prediction) -> Id:
        """Return a prediction's id.

        Parameters
        ----------
        prediction : Prediction
            One that was learnt.

        Returns
        -------
        int or str
            The one it had; or its index and one; where that is taken, as by another run whose indexes begin
            anew, a number behind all others.
        """
        kept, given = _as_id(_of(prediction).get(IMAGE_ID)), prediction.index + 1
        if kept is not None and kept in self._given:
            self.lost, kept = self.lost + 1, None
        if kept is not None:
            given_id: Id = kept
        elif given > 0 and given not in self._given and given not in self._kept:
            given_id = given
        else:
            self._last += 1
            given_id = self._last
        self._given.add(given_id)
        return given_id


class CategoryIds:
    """Gives each class an id, once all are known."""

    def __init__(self) -> None:
        self.kept: dict[str, Id] = {}
        """The ids that classes had, by name; of two that share one, the first."""
        self._taken: set[Id] = set()
        self._ids: dict[str, Id] = {}
        self._lost: set[tuple[str, Id]] = set()
        self._had_ids: set[str] = set()
        self._learnt: ModelMeta | None = None
        self._forgotten = 0

    def learn(self, prediction: Prediction) -> None:
        """Take over the ids that classes had.

        Parameters
        ----------
        prediction : Prediction
            Perhaps of a document of others.
        """
        said = _of(prediction).get(CATEGORY_IDS)
        if isinstance(said, Mapping) and prediction.meta is not self._learnt:
            self._learnt = prediction.meta
            self._had_ids.update(prediction.meta.names)
        for title, value in as_object(said).items():
            known = _as_id(value)
            if known is None or self.kept.get(title) == known:
                continue
            if title in self.kept or known in self._taken:
                self._lost.add((title, known))
            else:
                self.kept[title] = known
                self._taken.add(known)

    @property
    def lost(self) -> int:
        """How many ids are not kept: another class has them, or their class another, or they are not known.

        The last are those of classes that were found nowhere, if the document's first picture, which has the
        ids of all, is not among those that are written.
        """
        return len(self._lost) + self._forgotten

    def settle(self, titles: Mapping[int, str]) -> None:
        """Give all classes their ids.

        Parameters
        ----------
        titles : mapping of int to str
            By number.
        """
        behind = self._behind(titles)
        for number, title in titles.items():
            own = self.kept.get(title, number + 1)
            self._ids[title] = own if title in self.kept or own not in self._taken else next(behind)
        known = self.kept.keys() | {title for title, _ in self._lost}
        self._forgotten = len(self._had_ids.intersection(titles.values()) - known)

    def _behind(self, titles: Mapping[int, str]) -> Iterator[int]:
        """Return numbers behind all others."""
        last = max((each for each in self._taken if isinstance(each, int)), default=0)
        last = max(last, max(titles, default=0) + 1)
        while True:
            last += 1
            yield last

    def of(self, title: str) -> Id:
        """Return a class's id.

        Parameters
        ----------
        title : str
            Its name.

        Returns
        -------
        int or str
            The one it had, or its number and one; where that is taken, a number behind all others.
        """
        return self._ids[title]

    def said_of(self, prediction: Prediction, *, first: bool) -> Mapping[str, JSON]:
        """Return the ids that a prediction has when the document is read.

        Parameters
        ----------
        prediction : Prediction
            Of one of its pictures.
        first : bool
            Whether it is that of the first.

        Returns
        -------
        mapping of str to int or str
            By name.
        """
        return {title: self._ids[title] for title in (self._ids if first else prediction.classes)}


def with_ids(prediction: Prediction, image_id: Id, category_ids: Mapping[str, JSON]) -> Prediction:
    """Keep the ids of a document of others in a prediction's data.

    Parameters
    ----------
    prediction : Prediction
        One that was read.
    image_id : int or str
        Of its picture.
    category_ids : mapping of str to int or str
        By name. It is kept, not copied.

    Returns
    -------
    Prediction
        The same, with data of its own.
    """
    known: dict[str, JSON] = {IMAGE_ID: image_id, CATEGORY_IDS: category_ids}
    data = {**prediction.result.data, COCO: known}
    return replace(prediction, result=replace(prediction.result, data=data))


def without_ids(data: JSON, image_id: Id, category_ids: Mapping[str, JSON]) -> tuple[JSON, bool]:
    """Take the ids out of a prediction's data: in a document they stand in their own places.

    What is anything else than reading the document gives, such as a user's own, stays as it is.

    Parameters
    ----------
    data : JSON
        Of a prediction.
    image_id : int or str
        Of its picture in the document.
    category_ids : mapping of str to int or str
        As the prediction has them when the document is read.

    Returns
    -------
    JSON
        The rest; None where there is none.
    bool
        Whether there were ids, and the same.
    """
    known = as_object(data)
    said = as_object(known.get(COCO))
    ids = as_object(said.get(CATEGORY_IDS))
    same = set(said) == {IMAGE_ID, CATEGORY_IDS} and ids == category_ids and said[IMAGE_ID] == image_id
    # True and 1.0 are equal to 1, and no ids.
    if not same or any(_as_id(each) is None for each in (said[IMAGE_ID], *ids.values())):
        return data, False
    return {key: value for key, value in known.items() if key != COCO} or None, True


def _of(prediction: Prediction) -> Mapping[str, JSON]:
    """Return what a prediction knows of a document of others."""
    return as_object(prediction.result.data.get(COCO))


def _as_id(value: JSON) -> Id | None:
    """Return an id; None for anything else."""
    if isinstance(value, str):
        return value
    return value if type(value) is int and abs(value) < _LARGEST else None
