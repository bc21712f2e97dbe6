"""Predictions as a table, one row an object. The only room of the job client that knows pandas.

Invariant: columns and dtypes are the same whatever was found, so tables of many predictions can be put
together, empty ones included.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from predsession.errors import ItemError, MissingExtraError
from predsession.prediction.display import Shown
from predsession.prediction.given import several

if TYPE_CHECKING:
    import pandas as pd

DTYPES = {
    "index": "int64",
    "name": "string",
    "path": "string",
    "frame_index": "Int64",
    "timestamp": "float64",
    "object": "int64",
    "class_id": "int64",
    "class": "string",
    "score": "float32",
    "x1": "float32",
    "y1": "float32",
    "x2": "float32",
    "y2": "float32",
    "width": "int64",
    "height": "int64",
    "shape": "string",
    "track_id": "Int64",
}
"""The columns, in order. Those in capitals can hold a missing value."""


def to_pandas(predictions: Shown | ItemError | Iterable[Shown | ItemError]) -> pd.DataFrame:
    r"""Make one table of many predictions: one row an object.

    Parameters
    ----------
    predictions : iterable of Prediction or ItemError, or one alone
        Consumed once, a session as it is. An `ItemError` has no objects, and so no rows: see
        `PredictionSession.errors`.

    Returns
    -------
    pandas.DataFrame
        As `Prediction.to_pandas`, with the columns whatever was found. A file name that is not UTF-8 has its
        odd bytes written out, ``\udcff``: pandas keeps nothing else as text.

    Raises
    ------
    MissingExtraError
        Without pandas.
    ProtocolError
        If an object is damaged.

    Examples
    --------
    >>> table = predsession.to_pandas(session)  # doctest: +SKIP
    >>> table.groupby("class")["score"].describe()  # doctest: +SKIP
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("pandas", "a table of predictions") from None
    parts = [_columns(each) for each in several(predictions) if not isinstance(each, ItemError)]
    joined: dict[str, npt.ArrayLike] = {
        name: np.concatenate([part[name] for part in parts]) if parts else [] for name in DTYPES
    }
    return pd.DataFrame({name: pd.array(joined[name], dtype=kind) for name, kind in DTYPES.items()})


def _columns(prediction: Shown) -> dict[str, npt.NDArray[np.generic]]:
    """Return a prediction's columns, as arrays."""
    rows = len(prediction)
    tracks = [-1] * rows if prediction.track_ids is None else prediction.track_ids.tolist()
    of_all = {
        "index": prediction.index,
        "name": _written(prediction.name),
        "path": None if prediction.path is None else _written(prediction.path),
        "frame_index": prediction.frame_index,
        "timestamp": prediction.timestamp,
        "width": prediction.size.width,
        "height": prediction.size.height,
    }
    return {
        **{name: np.array([value] * rows, object) for name, value in of_all.items()},
        **dict(zip(("x1", "y1", "x2", "y2"), prediction.boxes.T, strict=True)),
        "object": np.arange(rows),
        "class_id": prediction.class_ids,
        "class": np.array([_written(title) for title in prediction.classes.tolist()], object),
        "score": prediction.scores,
        "shape": np.array(prediction.shapes, object),
        "track_id": np.array([None if track < 0 else track for track in tracks], object),
    }


def _written(text: str) -> str:
    """Return a text that every storage of pandas takes; half a character is written out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
