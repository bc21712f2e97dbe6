"""A model's classes as files say them, and their numbers: all at once, or as they are met.

Invariant: the classes are in the order of their numbers, as those of a model are; where they are all there,
`meta.names` has at each number its class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from predsession.prediction import Prediction
from predsession.wire.colors import spread_color
from predsession.wire.jsontypes import JSON, as_object
from predsession.wire.meta import CONFIDENCE, ClassInfo, ModelMeta

Numbers = Mapping[str, int]


class KnownMeta:
    """A model's classes, of which the file says all.

    Parameters
    ----------
    meta : ModelMeta
        The classes.
    numbers : mapping of str to int
        By title; one that is not there has -1.
    """

    def __init__(self, meta: ModelMeta, numbers: Numbers) -> None:
        self._meta = meta
        self._numbers = {title: numbers.get(title, -1) for title in meta.names} | dict(numbers)
        places = {title: number for number, title in enumerate(meta.names)}
        self._ids = None if self._numbers == places else self._numbers

    def with_numbers(self, own: Numbers) -> tuple[ModelMeta, Numbers | None]:
        """Return the classes and the numbers of all of them, for a picture that says some.

        Parameters
        ----------
        own : mapping of str to int
            By title, as the picture says them; they count.

        Returns
        -------
        ModelMeta
            The classes.
        mapping of str to int, or None
            The same object for all pictures that agree; None where each is its class's place among them.
        """
        if all(self._numbers.get(title, -1) == number for title, number in own.items()):
            return self._meta, self._ids
        return self._meta, {**self._numbers, **own}


class GrowingMeta:
    """A model's classes, as far as they were met; a class keeps its number."""

    def __init__(self) -> None:
        self._titles: dict[str, None] = {}
        self._meta = ModelMeta.from_names([])
        self._numbers: dict[str, int] = {}
        self._known = KnownMeta(ModelMeta(), {})

    def with_titles(self, titles: Iterable[str]) -> ModelMeta:
        """Return the classes that were met up to now, numbered in the order they were met.

        Parameters
        ----------
        titles : iterable of str
            The names of the latest.

        Returns
        -------
        ModelMeta
            The same object while no new one comes.
        """
        self._titles |= dict.fromkeys(titles)
        if len(self._titles) > len(self._meta.classes):
            self._meta = ModelMeta.from_names(list(self._titles))
        return self._meta

    def with_numbers(self, own: Numbers) -> tuple[ModelMeta, Numbers | None]:
        """Return the classes that were met up to now with their numbers.

        Parameters
        ----------
        own : mapping of str to int
            The numbers of the latest, by title; negative for a class of no model.

        Returns
        -------
        ModelMeta
            The same object while no new one comes, with the classes of the model.
        mapping of str to int, or None
            As `KnownMeta.with_numbers` has them.
        """
        new = {title: number for title, number in own.items() if title not in self._numbers}
        if new:
            self._numbers = dict(sorted({**self._numbers, **new}.items(), key=lambda each: each[1]))
            classes = tuple(
                ClassInfo(title, color=spread_color(number))
                for title, number in self._numbers.items()
                if number >= 0
            )
            self._known = KnownMeta(ModelMeta(classes, (CONFIDENCE,)), self._numbers)
        return self._known.with_numbers(own)


def ids_of(prediction: Prediction) -> dict[str, int]:
    """Return the ids of the classes that were found: the model's own, to be kept beside what is written.

    Parameters
    ----------
    prediction : Prediction
        What is written.

    Returns
    -------
    dict
        By title, in order of appearance; -1 for a class that the model does not list.
    """
    return dict(zip(prediction.classes.tolist(), prediction.class_ids.tolist(), strict=True))


def ids_from(said: JSON) -> dict[str, int]:
    """Read what `ids_of` gave.

    Parameters
    ----------
    said : JSON
        As it stands in a file.

    Returns
    -------
    dict
        By title; what is no whole number of 63 bits is left out.
    """
    return {
        title: number
        for title, number in as_object(said).items()
        if isinstance(number, int) and not isinstance(number, bool) and abs(number) < 1 << 63
    }
