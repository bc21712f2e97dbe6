"""A row of CSV and Parquet: one object, the columns that `predsession.to_pandas` has, and the url; and back.

Invariant: the rows of one prediction follow each other, and count their objects from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import repeat
from operator import attrgetter

from predsession.errors import PredSessionError, SourceError
from predsession.export.growingmeta import GrowingMeta, KnownMeta
from predsession.prediction import Prediction
from predsession.wire.annotation import annotation_from_arrays
from predsession.wire.geometry import Size
from predsession.wire.jsontypes import JSON, JSONObject


@dataclass(frozen=True, slots=True)
class Row:
    """One object; the fields are the columns, in order, without a ``_`` at the end."""

    index: int
    name: str
    path: str | None
    url: str | None
    frame_index: int | None
    timestamp: float | None
    width: int
    height: int
    object_: int
    class_id: int
    class_: str
    score: float
    x1: float
    y1: float
    x2: float
    y2: float
    shape: str
    track_id: int | None

    def values(self) -> tuple[object, ...]:
        """Return the cells, in the columns' order."""
        return _values(self)


_FIELDS = tuple(field.name for field in fields(Row))
_values = attrgetter(*_FIELDS)
_picture = attrgetter(*_FIELDS[: _FIELDS.index("object_")])
COLUMNS = tuple(name.rstrip("_") for name in _FIELDS)
"""The columns' names."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A row that was read, and where.

    Parameters
    ----------
    row : Row
        One object.
    where : str
        Its place, for messages.
    item : JSON object or None
        The object as the wire has it, where the format keeps it.
    """

    row: Row
    where: str
    item: JSONObject | None = None


def rows_of(prediction: Prediction) -> list[Row]:
    """Return a prediction's rows.

    Parameters
    ----------
    prediction : Prediction
        What was found.

    Returns
    -------
    list of Row
        One an object, in order; texts that are no text in UTF-8 are made one.
    """
    tracks = repeat(-1) if prediction.track_ids is None else prediction.track_ids.tolist()
    of_all = (
        prediction.index,
        utf8(prediction.name),
        None if prediction.path is None else utf8(prediction.path),
        None if prediction.url is None else utf8(prediction.url),
        prediction.frame_index,
        prediction.timestamp,
        prediction.size.width,
        prediction.size.height,
    )
    columns = zip(
        prediction.class_ids.tolist(),
        prediction.classes.tolist(),
        prediction.scores.tolist(),
        prediction.boxes.tolist(),
        prediction.shapes,
        tracks,
        strict=False,  # there may be no end of tracks
    )
    rows = []
    for number, (class_id, title, score, (x1, y1, x2, y2), shape, track) in enumerate(columns):
        found = (score, x1, y1, x2, y2, utf8(shape), None if track < 0 else track)
        rows.append(Row(*of_all, number, class_id, utf8(title), *found))
    return rows


def utf8(text: str) -> str:
    r"""Return a text that can be written as UTF-8.

    Parameters
    ----------
    text : str
        A file name that is not UTF-8 comes from the system with lone surrogates in it.

    Returns
    -------
    str
        With ``\udcff`` spelt out where there is one.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def losses_of_texts(prediction: Prediction, *, classes: bool) -> Counter[str]:
    """Count what comes back as another text, since it cannot be written as UTF-8.

    Parameters
    ----------
    prediction : Prediction
        One with objects.
    classes : bool
        Whether classes are counted: where the objects are kept as JSON beside, theirs come back.

    Returns
    -------
    Counter of str
        Predictions whose name, path or URL it is, and objects whose class it is.
    """
    source = (prediction.name, prediction.path, prediction.url)
    lost = Counter({"paths that are not UTF-8": int(any(text and utf8(text) != text for text in source))})
    if classes:
        lost["classes that are not UTF-8"] = sum(
            utf8(title) != title for title in prediction.classes.tolist()
        )
    return +lost


def losses_of_ids(prediction: Prediction) -> Counter[str]:
    """Count the ids of a server's library, for which there is no column.

    Parameters
    ----------
    prediction : Prediction
        Any.

    Returns
    -------
    Counter of str
        Predictions that have some.
    """
    ids = (prediction.project_id, prediction.dataset_id, prediction.image_id, prediction.video_id)
    return +Counter({"ids of a library": int(any(each is not None for each in ids))})


def predictions_of(rows: Iterable[Placed], known: KnownMeta | None = None) -> Iterator[Prediction]:
    """Put rows together.

    Parameters
    ----------
    rows : iterable of Placed
        Those of a prediction follow each other.
    known : KnownMeta or None
        The model's classes; without them, those that were met.

    Yields
    ------
    Prediction
        In the rows' order, each as soon as the next one begins.

    Raises
    ------
    SourceError
        If rows make no prediction, or those of one do not follow each other, as in a table that was sorted by
        another column; names the place of the first.
    """
    waiting: list[Placed] = []
    begun: dict[int, int] = {}
    growing = GrowingMeta()
    for each in rows:
        if waiting and not _goes_on(waiting[-1].row, each.row):
            yield _prediction(waiting, known or growing)
            waiting = []
        if not waiting:
            _begin(each, begun)
        waiting.append(each)
    if waiting:
        yield _prediction(waiting, known or growing)


def _goes_on(row: Row, following: Row) -> bool:
    """Whether a row belongs to the same prediction as the one before."""
    return bool(_picture(row) == _picture(following)) and following.object_ > row.object_


def _begin(placed: Placed, begun: dict[int, int]) -> None:
    """Refuse a picture that comes again, unless all of it does."""
    row = placed.row
    # A second run may have been added to the table; but in one that was sorted no object comes twice, so what
    # comes again begins with another. Numbers stand for the pictures, or all of their names would be kept.
    if begun.setdefault(hash(_picture(row)), row.object_) != row.object_:
        raise SourceError(
            f"{placed.where}: the rows of {row.name or row.path or row.url or f'index {row.index}'} do not "
            "follow each other; sort the table by index, path and object, as it was written"
        )


def _prediction(placed: list[Placed], known: KnownMeta | GrowingMeta) -> Prediction:
    """Make a prediction of its rows."""
    rows, first = [each.row for each in placed], placed[0].row
    meta, ids = known.with_numbers({_title(each): each.row.class_id for each in placed})
    try:
        annotation = _boxes(rows)
        if placed[0].item is not None:
            annotation["objects"] = [each.item for each in placed]
        made = Prediction.from_wire(
            {"annotation": annotation, "frame_index": first.frame_index},
            meta=meta,
            index=first.index,
            name=first.name,
            path=first.path,
            url=first.url,
            timestamp=first.timestamp,
        )
    except (ValueError, PredSessionError) as error:
        raise SourceError(f"{placed[0].where}: not a prediction ({error})") from None
    return replace(made, ids=ids)


def _title(placed: Placed) -> str:
    """Return an object's class; the object itself has it also where it is no text in UTF-8."""
    title = None if placed.item is None else placed.item.get("classTitle")
    return title if isinstance(title, str) else placed.row.class_


def _boxes(rows: list[Row]) -> dict[str, JSON]:
    """Return the annotation of boxes alone, and of the tracks."""
    tracks = [-1 if row.track_id is None else row.track_id for row in rows]
    return annotation_from_arrays(
        Size(rows[0].width, rows[0].height),
        boxes=[(row.x1, row.y1, row.x2, row.y2) for row in rows],
        class_names=[row.class_ for row in rows],
        scores=[row.score for row in rows],
        track_ids=tracks if any(track >= 0 for track in tracks) else None,
        float_boxes=True,
    )
