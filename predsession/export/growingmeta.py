"""The classes of formats whose files do not say them all beforehand: numbered in the order they are met."""

from __future__ import annotations

from collections.abc import Iterable

from predsession.prediction import Prediction
from predsession.wire.meta import ModelMeta


class GrowingMeta:
    """A model's classes, as far as they were met; a class keeps its number."""

    def __init__(self) -> None:
        self._titles: dict[str, None] = {}
        self._meta = ModelMeta.from_names([])

    def with_titles(self, titles: Iterable[str]) -> ModelMeta:
        """Return the classes that were met up to now.

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
