"""What callers hand in where several predictions are wanted, or a number of something."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TypeVar

import numpy as np

from predsession.errors import ItemError
from predsession.prediction.display import Shown

_Each = TypeVar("_Each", bound=Shown)


def several(given: _Each | ItemError | Iterable[_Each | ItemError]) -> Iterable[_Each | ItemError]:
    """Return outcomes one by one, where one alone may be handed in as well.

    Parameters
    ----------
    given : Prediction, ItemError, or iterable of them
        What the caller has.

    Returns
    -------
    iterable of Prediction or ItemError
        The same iterable, or the one in a tuple.

    Raises
    ------
    TypeError
        If it is something else, such as the name of a file of predictions.
    """
    if isinstance(given, Shown | ItemError):
        return (given,)
    if isinstance(given, str | bytes | PathLike):
        raise TypeError(
            f"{given!r} is a name; read what is in that file or folder: read_predictions({given!r})"
        )
    if not isinstance(given, Iterable):
        raise TypeError(f"predictions are wanted, not {type(given).__name__}")
    return given


def check_outcome(given: object) -> None:
    """Refuse what is no outcome, among several.

    Parameters
    ----------
    given : Prediction or ItemError
        One.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if not isinstance(given, Shown | ItemError):
        raise TypeError(
            f"a {type(given).__name__} is no Prediction and no ItemError; make predictions of it first: "
            "read_predictions(path), Prediction.from_json(...), Prediction.from_arrays(...)"
        )


def check_number(name: str, value: int) -> int:
    """Refuse what is no number of things.

    Parameters
    ----------
    name : str
        The argument.
    value : int
        Whole, NumPy's own as well, and at least 1.

    Returns
    -------
    int
        The same.

    Raises
    ------
    ValueError
        If it is something else; True and False are.
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number, at least 1, not {value!r}")
    return int(value)
