"""Parquet: a row an object, typed and packed; beside the columns of a table each object as the wire has it.

A Parquet file without its end cannot be read, so what comes is kept as JSON lines until then. Memory does not
grow with what is written, but pyarrow, which imports pandas too, takes about 90 MB for the first ten rows.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from predsession.errors import ItemError, MissingExtraError, PredSessionError, SourceError
from predsession.export.growingmeta import KnownMeta, ids_from
from predsession.export.losses import losses_of_pictures
from predsession.export.spooled import Spooled
from predsession.export.table import (
    COLUMNS,
    Placed,
    Row,
    losses_of_ids,
    losses_of_texts,
    predictions_of,
    rows_of,
)
from predsession.export.target import Target
from predsession.prediction import Prediction
from predsession.wire.fields import MAX_VALUE
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import JSONObject, as_list, as_object
from predsession.wire.meta import ModelMeta

if TYPE_CHECKING:
    import pyarrow as pa

RECORD = "json"
"""The column with the object as the wire has it: masks, polygons, keypoints, tags."""
ABOUT = b"predsession"
"""Where the schema's metadata say the format's version, and the model's classes."""
GROUP_BYTES = 2 << 20
"""A row group is written when its rows have about this many bytes, before they are packed.

Each MiB takes about five while it is written; larger groups pack no better.
"""
GROUP_ROWS = 1 << 16
_MAY_MISS = frozenset(("path", "url", "frame_index", "timestamp", "track_id"))
_ROW_BYTES = 200
"""What a row takes beside its JSON, about."""


class ParquetWriter(Spooled):
    """Keeps outcomes as JSON lines, and makes a Parquet file of them at the end.

    Parameters
    ----------
    target : Target
        The file; its folder is made.

    Raises
    ------
    MissingExtraError
        Without pyarrow.
    SourceError
        If it, or what an earlier run left, is there and may not be touched, or it cannot be written.
    """

    def __init__(self, target: Target) -> None:
        _require()
        super().__init__(target, self._compile_table)

    def write(self, outcome: Prediction | ItemError) -> None:
        """Take one outcome.

        Parameters
        ----------
        outcome : Prediction or ItemError
            One without objects will have no row.
        """
        super().write(outcome)
        if isinstance(outcome, ItemError):
            return
        self.left_out += losses_of_pictures(outcome) + losses_of_ids(outcome)
        if len(outcome):
            self.left_out += losses_of_texts(outcome, classes=False)
        else:
            self.left_out["pictures without objects"] += 1

    def _compile_table(self, predictions: Iterator[Prediction], draft: Path) -> None:
        """Write all rows, group by group."""
        import pyarrow.parquet as pq

        schema = _schema(self._about())
        with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
            for group in _groups(predictions):
                writer.write_table(_table(group, schema))

    def _about(self) -> bytes:
        """Describe format and model."""
        known = [(number, self.classes.info(title)) for number, title in self.classes.titles.items()]
        classes = [{"class_id": number, **info.to_json()} for number, info in known if info]
        return json.dumps({"version": 1, "classes": classes}).encode()


Cells = dict[str, list[object]]


def _groups(predictions: Iterator[Prediction]) -> Iterator[Cells]:
    """Gather columns until they are a row group."""
    group: Cells = defaultdict(list)
    size = 0
    for prediction in predictions:
        for row, item in zip(rows_of(prediction), prediction.result.objects, strict=True):
            record = json.dumps(item, separators=(",", ":"))
            for name, value in zip((*COLUMNS, RECORD), (*row.values(), record), strict=True):
                group[name].append(value)
            size += len(record) + _ROW_BYTES
            if size >= GROUP_BYTES or len(group[RECORD]) >= GROUP_ROWS:
                yield group
                group, size = defaultdict(list), 0
    if group:
        yield group


def _require() -> None:
    """Say what is missing before anything is computed."""
    try:
        import pyarrow.parquet  # noqa: F401 - it is only to be there
    except ImportError:
        raise MissingExtraError("parquet", "Parquet") from None


def _schema(about: bytes) -> pa.Schema:
    """Return the columns with their types; texts are dictionaries within the file, as Parquet does it."""
    import pyarrow as pa

    kinds = dict.fromkeys(COLUMNS, pa.int64()) | dict.fromkeys(
        ("score", "x1", "y1", "x2", "y2"), pa.float32()
    )
    kinds |= dict.fromkeys(("name", "path", "url", "class", "shape", RECORD), pa.string())
    kinds["timestamp"] = pa.float64()
    fields = [pa.field(name, kinds[name], nullable=name in _MAY_MISS) for name in (*COLUMNS, RECORD)]
    return pa.schema(fields, {ABOUT: about})


def _table(group: Cells, schema: pa.Schema) -> pa.Table:
    """Return columns as a table."""
    import pyarrow as pa

    return pa.table([pa.array(group[field.name], field.type) for field in schema], schema)


def read_parquet(path: Path) -> Iterator[Prediction]:
    """Read predictions from a Parquet file of ours, or another that has its columns.

    Parameters
    ----------
    path : Path
        The file. Without the column ``json`` there are boxes only.

    Yields
    ------
    Prediction
        In the file's order, read piece by piece. A picture without objects has no row, and is not there.

    Raises
    ------
    MissingExtraError
        Without pyarrow.
    SourceError
        If it is damaged, columns are missing, or the rows of a picture do not follow each other; names the
        file, and the row.
    """
    _require()
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise SourceError(
            f"{path} is no file, which Parquet needs: it is read from its end; write it into one, or use "
            "jsonl or csv"
        )
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            missing = [name for name in COLUMNS if name not in names]
            if missing:
                raise SourceError(f"{path}: no column {', '.join(missing)}")
            known = _known(file.schema_arrow.metadata or {})
            yield from predictions_of(_placed(path, file, has_json=RECORD in names), known)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} cannot be read as Parquet ({error})") from None


def _placed(path: Path, file: pa.parquet.ParquetFile, *, has_json: bool) -> Iterator[Placed]:
    """Read rows, a few at a time."""
    number = 0
    wanted = [*COLUMNS, RECORD] if has_json else list(COLUMNS)
    for batch in file.iter_batches(1024, columns=wanted):
        for cells in batch.to_pylist():
            where = f"{path}, row {number}"
            try:
                item = loads(cells[RECORD].encode()) if has_json else {}
                if not isinstance(item, dict):
                    raise ValueError("its JSON is no object")
                row = _row(cells)
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                raise SourceError(f"{where}: not an object ({error})") from None
            yield Placed(row, where, item if has_json else None)
            number += 1


def _row(cells: Mapping[str, object]) -> Row:
    """Return a row as our files have it; raises ValueError where a cell is of another type."""
    text, number, whole = partial(_text, cells), partial(_number, cells), partial(_whole, cells)
    return Row(
        index=_there(whole, "index"),
        name=_there(text, "name"),
        path=text("path"),
        url=text("url"),
        frame_index=whole("frame_index"),
        timestamp=number("timestamp"),
        width=_there(whole, "width"),
        height=_there(whole, "height"),
        object_=_there(whole, "object"),
        class_id=_there(whole, "class_id"),
        class_=_there(text, "class"),
        score=_there(number, "score"),
        x1=_there(number, "x1"),
        y1=_there(number, "y1"),
        x2=_there(number, "x2"),
        y2=_there(number, "y2"),
        shape=_there(text, "shape"),
        track_id=whole("track_id"),
    )


_Value = TypeVar("_Value")


def _there(read: Callable[[str], _Value | None], name: str) -> _Value:
    """Return a cell that may not be missing."""
    value = read(name)
    if value is None:
        raise ValueError(f"{name} is missing")
    return value


def _text(cells: Mapping[str, object], name: str) -> str | None:
    """Return a text."""
    value = cells[name]
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{name} is {value!r:.60}, no text")


def _number(cells: Mapping[str, object], name: str) -> float | None:
    """Return a finite number; pandas puts NaN where one is missing."""
    value = cells[name]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_VALUE:
        return value
    raise ValueError(f"{name} is {value!r:.60}, no number")


def _whole(cells: Mapping[str, object], name: str) -> int | None:
    """Return a whole number of 63 bits; where some are missing, pandas writes all with a point."""
    value = _number(cells, name)
    if value is None or (value == int(value) and abs(value) < 1 << 63):
        return None if value is None else int(value)
    raise ValueError(f"{name} is {value!r:.60}, no whole number")


def _known(about: dict[bytes, bytes]) -> KnownMeta | None:
    """Return the model's classes and their numbers, where the file says them."""
    try:
        said: JSONObject = as_object(loads(about.get(ABOUT, b"{}")))
        classes = as_list(said["classes"])
        meta = ModelMeta.from_json({"classes": classes})
    except (ValueError, KeyError, RecursionError, PredSessionError):
        return None
    numbers = (as_object(each).get("class_id") for each in classes)
    return KnownMeta(meta, ids_from(dict(zip(meta.names, numbers, strict=True))))
