"""What callers hand in where several predictions are wanted, or a number of something."""

from __future__ import annotations

from collections.abc import Iterable
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
    """
    return (given,) if isinstance(given, Shown | ItemError) else given


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
