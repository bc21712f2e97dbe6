"""JSON lines: one outcome a line, written as they come, so that memory stays flat; and read back, equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

from predsession.errors import ItemError, PredSessionError, ProtocolError, SourceError
from predsession.export.growing import GrowingFile
from predsession.export.growingmeta import ids_from
from predsession.export.jsonl_adding import complete_lines, ends_a_line, warn_unfinished
from predsession.export.target import Target
from predsession.export.validjson import NOT_FINITE, valid_json
from predsession.export.writing import Closing
from predsession.prediction import Prediction
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import JSONObject, as_object
from predsession.wire.meta import CONFIDENCE, ModelMeta
from predsession.wire.results import MODEL

CLASS_IDS = "class_ids"
"""Within what is said of the model: the numbers of its classes, where they are not their places."""


def to_line(outcome: Prediction | ItemError, *, ascii_only: bool = False) -> str:
    """Return one outcome as one line of JSON, without its line end.

    Parameters
    ----------
    outcome : Prediction or ItemError
        What to write.
    ascii_only : bool
        Whether other characters are escaped.

    Returns
    -------
    str
        An item error has the key ``error``, a prediction the key ``annotation``.
    """
    return _text(outcome.to_json(), ascii_only=ascii_only)[0]


def _text(value: Mapping[str, object] | None, *, ascii_only: bool = False) -> tuple[str, int]:
    """Return JSON on one line, and how many numbers in it are none."""
    line, lost = valid_json(value, ascii_only=ascii_only)
    if not ascii_only and not _is_text(line):
        # A file name that is not UTF-8 comes from the system as lone surrogates: escaped, they are read back.
        return valid_json(value)
    return line, lost


def _is_text(line: str) -> bool:
    """Whether a line can be written as UTF-8."""
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


class JsonlWriter(Closing):
    """Writes outcomes into a file, a line each, each line complete before the next begins.

    What is there already is treated as `predsession.export.growing` says. A file that is added to must be one
    of ours, and loses its last line, if that was written by half.

    Parameters
    ----------
    target : Target, str or PathLike
        The file; its folder is made. A path alone must not be there yet.

    Raises
    ------
    SourceError
        If it is there and may not be touched, or cannot be written to.
    """

    def __init__(self, target: Target | str | PathLike[str]) -> None:
        super().__init__()
        target = target if isinstance(target, Target) else Target(path=Path(target))
        self._file = GrowingFile(target, complete_lines)
        self._model: _Model | None = None
        # In a file that is added to, an older line may have told of another model.
        self._is_told = not self._file.is_added_to
        self._is_begun = not self._file.is_added_to

    def write(self, outcome: Prediction | ItemError) -> None:
        """Write one outcome, and hand it to the operating system.

        Parameters
        ----------
        outcome : Prediction or ItemError
            What to write.

        Raises
        ------
        DiskError
            If it cannot be written; names the file.
        """
        line, lost = _text(outcome.to_json())
        if lost:
            self.left_out[NOT_FINITE] += lost
        if isinstance(outcome, Prediction) and self._is_news(outcome):
            # A line describes only the classes of its own picture; this counts for all that follow.
            model = None if self._model is None else _model_to_json(*self._model)
            line = f'{{"{MODEL}":{_text(model)[0]},{line[1:]}'
        if not self._is_begun and not ends_a_line(self._file.path):
            line = f"\n{line}"
        self._is_begun = True
        self._file.write(f"{line}\n".encode())

    def _is_news(self, prediction: Prediction) -> bool:
        """Whether another model counts from this prediction on, or none where its line describes all."""
        model = prediction.meta, prediction.ids
        if self._is_told and self._model is not None and model == self._model:
            self._model = model  # the same object as the next one's, most likely
            return False
        alone = _describes_itself(prediction)
        is_news = not self._is_told or not (alone and self._model is None)
        self._model, self._is_told = None if alone else model, True
        return is_news

    def finish(self) -> None:
        """Cut off what is left of an earlier file, which a run with fewer outcomes does not reach."""
        self._file.finish()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_Model = tuple[ModelMeta, Mapping[str, int] | None]
"""A model's classes, and their numbers where they are not their places."""


def _model_to_json(meta: ModelMeta, ids: Mapping[str, int] | None) -> JSONObject:
    """Describe a model."""
    return meta.to_json() if ids is None else {**meta.to_json(), CLASS_IDS: dict(ids)}


def _describes_itself(prediction: Prediction) -> bool:
    """Whether a line says all of the model by itself: all classes, in their order, and no tags of its own."""
    meta = prediction.meta
    if meta.tags != (CONFIDENCE,):
        return False
    found = [title for title in prediction.counts() if meta.find(title)]
    return tuple(sorted(found, key=prediction.id_of)) == meta.names


def read_lines(path: str | PathLike[str]) -> Iterator[Prediction | ItemError]:
    """Read what `JsonlWriter` wrote, a line at a time.

    Parameters
    ----------
    path : str or PathLike
        The file.

    Yields
    ------
    Prediction or ItemError
        Equal to what was written, in order. Empty lines are passed over.

    Raises
    ------
    SourceError
        If a line is not one of ours; names file and line.

    Warns
    -----
    UnfinishedFileWarning
        If the last line was written by half, as a run that was killed leaves it; it is left out.
    """
    reader = _Reader()
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield reader.outcome(as_object(loads(line)))
            except (ValueError, RecursionError, PredSessionError) as error:
                if not line.endswith(b"\n"):
                    warn_unfinished(path, f"line {number}")
                    return
                raise SourceError(f"{path}, line {number}: not a prediction ({error})") from None


class _Reader:
    """Reads line after line; one may describe the model, whose classes count from there on."""

    def __init__(self) -> None:
        self._model: _Model | None = None

    def outcome(self, line: JSONObject) -> Prediction | ItemError:
        """Return what a line says."""
        if "annotation" not in line:
            return _item_error(line)
        if MODEL in line:
            told = line[MODEL]
            self._model = None if told is None else _model_from_json(as_object(told))
        return self._with_model(Prediction.from_json(line))

    def _with_model(self, prediction: Prediction) -> Prediction:
        """Give a prediction the model's whole description, if its own agrees with it."""
        if self._model is None:
            return prediction
        meta, ids = self._model
        whole = replace(prediction, meta=meta, ids=ids)
        agrees = all(whole.id_of(each) == prediction.id_of(each) for each in prediction.counts())
        return whole if agrees else prediction


def _model_from_json(told: JSONObject) -> _Model:
    """Read what `_model_to_json` wrote."""
    return ModelMeta.from_json(told), ids_from(told[CLASS_IDS]) if CLASS_IDS in told else None


def _item_error(line: JSONObject) -> ItemError:
    """Return what a line says of an input that failed."""
    if not isinstance(line.get("error"), dict):
        raise ProtocolError("it has neither an annotation nor an error")
    error, index, path = as_object(line["error"]), line.get("index"), line.get("path")
    name, reason = str(line.get("name") or ""), str(error.get("message") or "")
    index = index if isinstance(index, int) else -1
    return ItemError(
        f"item {index}, {name}: {reason}",
        index=index,
        name=name,
        path=path if isinstance(path, str) else None,
        reason=reason,
    )
