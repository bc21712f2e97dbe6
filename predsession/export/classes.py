"""The classes of many predictions, numbered once for a whole file: a class keeps the model's own number.

Invariant: a class's number never changes once it has been given, and no two classes share one.
"""

from __future__ import annotations

from collections.abc import Mapping

from predsession.prediction import Prediction
from predsession.wire.colors import RGB
from predsession.wire.meta import ClassInfo, ModelMeta


class ClassTable:
    """Numbers classes from 0, as the model does; a class that the model does not know comes after them.

    After those that are known so far: where a file is written as predictions come, and the first ones do not
    bring all of the model's classes, a class of no model may get a number that one of the model's has. That
    one then gets the next. Documents that are put together at the end number such classes last.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._titles: dict[int, str] = {}
        self._infos: dict[str, ClassInfo] = {}
        self._learnt: ModelMeta | None = None
        self._learnt_ids: Mapping[str, int] | None = None

    def learn(self, prediction: Prediction) -> None:
        """Take over the model's classes.

        Parameters
        ----------
        prediction : Prediction
            Brings them: all of them from a session, those that were found from a file.
        """
        # The ids as well: pictures of one file may share its model, and differ in the numbers.
        if prediction.meta is self._learnt and prediction.ids == self._learnt_ids:
            return
        self._learnt, self._learnt_ids = prediction.meta, prediction.ids
        for info in prediction.meta.classes:
            self._infos.setdefault(info.title, info)
            number = prediction.id_of(info.title)
            if info.title not in self._numbers and number >= 0 and number not in self._titles:
                self._give(info.title, number)

    def keep(self, names: Mapping[int, str]) -> None:
        """Take over the numbers of a file that is there already.

        Parameters
        ----------
        names : mapping of int to str
            Its classes; they come before the model's own.
        """
        for number, title in names.items():
            self._titles[number] = title
            self._numbers.setdefault(title, number)

    def number(self, title: str) -> int:
        """Return a class's number.

        Parameters
        ----------
        title : str
            A class's name.

        Returns
        -------
        int
            From 0.
        """
        if title not in self._numbers:
            self._give(title, max(self._titles, default=-1) + 1)
        return self._numbers[title]

    def _give(self, title: str, number: int) -> None:
        """Give a class its number."""
        self._numbers[title] = number
        self._titles[number] = title

    def __len__(self) -> int:
        """Return how many classes have a number."""
        return len(self._numbers)

    def __contains__(self, title: object) -> bool:
        """Return whether a class has a number."""
        return title in self._numbers

    @property
    def titles(self) -> dict[int, str]:
        """The classes' names by number, in order of the numbers."""
        return dict(sorted(self._titles.items()))

    def info(self, title: str) -> ClassInfo | None:
        """Return what the model says of a class.

        Parameters
        ----------
        title : str
            A class's name.

        Returns
        -------
        ClassInfo or None
            None where it says nothing.
        """
        return self._infos.get(title)

    def color(self, title: str) -> RGB:
        """Return a class's colour.

        Parameters
        ----------
        title : str
            A class's name.

        Returns
        -------
        tuple of int
            R, G, B.
        """
        return ModelMeta((self._infos[title],) if title in self._infos else ()).color(title)
