"""The ``data.yaml`` of a YOLO folder: written so that any YAML reader takes class names as the text they are.

It is read without a YAML library, which the core does not need: maps and lists, indented or in brackets, and
texts, quoted or plain, with comments; that is what people and tools write there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from predsession.errors import SourceError
from predsession.export.folders import read_whole
from predsession.wire.fields import shown
from predsession.wire.jsontypes import JSON, as_object

HEAD = """\
# A data set for YOLO. What is below is relative to the folder of this file, unless `path:` says another.
train: images
val: images
"""
_UNSAFE = re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
            "e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}  # fmt: skip
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'', re.DOTALL)
_PLAIN = re.compile(r"(?:[^,\[\]{}:]|:(?=[^\s,\[\]{}]))+")

Row = tuple[int, str]


@dataclass(frozen=True, slots=True)
class DataYaml:
    """What is known of a YOLO folder's contents.

    Parameters
    ----------
    names : mapping of int to str
        Classes by their numbers.
    keypoints : int
        How many each object has; 0 for none.
    numbers : int
        For each keypoint: 2 (x, y) or 3 (x, y, v).
    keypoint_names : sequence of str
        Names of the keypoints, as far as they are told.
    flips : sequence of int
        For each keypoint, which one it becomes in a mirror; empty where that is not known.
    unused : sequence of int
        Numbers whose names are none of a class: we made them up, as tools want all of them.
    root : str
        Where the data are, as the file says it; empty for its own folder.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    keypoints: int = 0
    numbers: int = 3
    keypoint_names: Sequence[str] = ()
    flips: Sequence[int] = ()
    unused: Sequence[int] = ()
    root: str = ""


def to_yaml(data: DataYaml) -> bytes:
    """Write a ``data.yaml``.

    Parameters
    ----------
    data : DataYaml
        Numbers without a class get one that nobody has, such as ``class_7``: tools want all of them.

    Returns
    -------
    bytes
        In UTF-8.
    """
    names = _without_gaps(data.names)
    lines = [f"nc: {len(names)}", "names:" if names else "names: {}"]
    lines += [f"  {number}: {quoted(name)}" for number, name in enumerate(names)]
    if unused := [number for number in range(len(names)) if number not in data.names]:
        lines.append(f"unused: {unused}")
    if data.keypoints:
        lines.append(f"kpt_shape: [{data.keypoints}, {data.numbers}]")
        if data.flips:
            lines.append(f"flip_idx: {list(data.flips)}")
        listed = ", ".join(map(quoted, data.keypoint_names))
        lines += ["kpt_names:", *(f"  {number}: [{listed}]" for number in range(len(names)))]
    return (HEAD + "\n".join(lines) + "\n").encode()


def _without_gaps(names: Mapping[int, str]) -> list[str]:
    """Return the names by number; a number without one gets one that is not there."""
    taken, whole = set(names.values()), list[str]()
    for number in range(max(names, default=-1) + 1):
        name = names.get(number, f"class_{number}")
        while number not in names and name in taken:
            name += "_"
        whole.append(name)
    return whole


def quoted(text: str) -> str:
    """Return a text as YAML, in double quotes: what it looks like does not matter.

    Parameters
    ----------
    text : str
        With line ends, quotes, signs that no file should hold.

    Returns
    -------
    str
        On one line.
    """
    # JSON's texts are YAML's but for signs beyond 16 bits, which JSON would write as two.
    return _UNSAFE.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    """Return a sign by its number."""
    return f"\\u{ord(found[0]):04x}"


def read_yaml(path: Path) -> DataYaml:
    """Read a ``data.yaml``.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    DataYaml
        What it says.

    Raises
    ------
    SourceError
        If it is not there, or says no names; names file and place.
    """
    content = read_whole(path)
    try:
        return _data(parse(content.decode()))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: {error}") from None


def _data(known: Mapping[str, JSON]) -> DataYaml:
    """Return what is asked for."""
    names = known.get("names")
    if isinstance(names, Mapping):
        numbers = [int(key) for key in names]
        by_number = dict(zip(numbers, _texts(list(names.values())), strict=True))
    else:
        by_number = dict(enumerate(_texts(names)))
    shape = [int(each) for each in _texts(known.get("kpt_shape", []))] or [0, 3]
    if len(shape) != 2 or shape[1] not in (2, 3) or not 0 <= shape[0] < 10_000:
        raise ValueError(f"kpt_shape: {shape} is not [keypoints, 2 or 3]")
    told = known.get("kpt_names")
    first = next(iter(told.values()), None) if isinstance(told, Mapping) else told
    return DataYaml(
        by_number,
        shape[0],
        shape[1],
        _texts(first) if isinstance(first, list) else (),
        flips=_numbers(known.get("flip_idx")),
        unused=_numbers(known.get("unused")),
        root=str(known.get("path") or ""),
    )


def _numbers(value: JSON) -> list[int]:
    """Return a list of whole numbers; an empty one for whatever else others write there."""
    items = value if isinstance(value, list) else []
    numbers = [int(each) for each in items if isinstance(each, str) and each.isdecimal()]
    return numbers if len(numbers) == len(items) else []


def _texts(value: JSON) -> list[str]:
    """Return a list of texts; raise ValueError if it is something else."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{shown(value)} is no list of names or numbers")
    return [str(each) for each in value]


def parse(text: str) -> Mapping[str, JSON]:
    """Read as much of YAML as is written into such files.

    Parameters
    ----------
    text : str
        A map.

    Returns
    -------
    dict
        Of texts, lists and dicts; a number or a truth value stays the text it is.

    Raises
    ------
    ValueError
        If it is no map, or beyond what is read here; names the line's text.
    """
    rows: list[Row] = []
    for line in text.removeprefix("\ufeff").splitlines():
        bare = _bare(line)
        if bare.strip() and not bare.startswith(("---", "...", "%")):
            rows.append((len(bare) - len(bare.lstrip()), bare.strip()))
    if not rows:
        return {}
    if rows[0][1][0] == "{":
        rows = [(0, ": " + " ".join(row for _, row in rows))]  # the value of a key without a name
        return as_object(as_object(_block(rows, 0)[0]).get(""))
    value, at = _block(rows, 0)
    if at < len(rows) or not isinstance(value, dict):
        raise ValueError(f"{rows[min(at, len(rows) - 1)][1][:60]!r} is no `name: value`")
    return value


def _bare(line: str) -> str:
    """Return a line without its comment."""
    at = 0
    while at < len(line):
        before = line[at - 1] if at else " "
        if line[at] == "#" and before.isspace():
            return line[:at].rstrip()
        begins = line[at] in "'\"" and (before.isspace() or before in "[{,:")
        found = _QUOTED.match(line, at) if begins else None
        at = found.end() if found else at + 1
    return line.rstrip()


def _block(rows: list[Row], at: int) -> tuple[JSON, int]:
    """Read an indented list or map; return it, and the row behind it."""
    indent, text = rows[at]
    if text == "-" or text.startswith("- "):
        items: list[JSON] = []
        while at < len(rows) and rows[at][0] == indent and (rows[at][1] + " ").startswith("- "):
            item, at = _inner(rows, at, rows[at][1][1:].strip())
            items.append(item)
        return items, at
    entries: dict[str, JSON] = {}
    while at < len(rows) and rows[at][0] == indent:
        key, rest = _split(rows[at][1])
        entries[key], at = _inner(rows, at, rest)
    return entries, at


def _split(text: str) -> tuple[str, str]:
    """Split a row of a map into its key and what follows."""
    found = _QUOTED.match(text)
    colon = re.compile(r"\s*:(\s+|$)").match(text, found.end()) if found else re.search(r"\s*:(\s+|$)", text)
    if colon is None or text[0] in "[{":
        raise ValueError(f"{text[:60]!r} is no `name: value`")
    return _scalar(text[: colon.start()]), text[colon.end() :]


def _inner(rows: list[Row], at: int, rest: str) -> tuple[JSON, int]:
    """Read the value of an entry that is in row `at`: what follows there, or below."""
    indent = rows[at][0]
    at += 1
    if not rest:
        below = at < len(rows) and (rows[at][0] > indent or _is_list_at(rows, at, indent))
        return _block(rows, at) if below else ("", at)
    if rest[0] not in "[{":
        while at < len(rows) and rows[at][0] > indent:  # a text that goes on: none that is asked for does
            at += 1
        return _scalar(rest), at
    while True:
        flow = _Flow(rest)
        try:
            return flow.whole(), at
        except IndexError:
            if at == len(rows):
                raise ValueError(f"{rest[:60]!r} does not end") from None
        rest, at = f"{rest} {rows[at][1]}", at + 1


def _is_list_at(rows: list[Row], at: int, indent: int) -> bool:
    """Whether a list begins below its key, not further in: as many write it."""
    return rows[at][0] == indent and (rows[at][1] + " ").startswith("- ") and rows[at - 1][1][0] != "-"


def _scalar(text: str) -> str:
    """Return a text without its quotes."""
    if not _QUOTED.fullmatch(text):
        return text
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    return _ESCAPE.sub(_unescaped, text[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    """Return the sign that an escape stands for."""
    said = found[1]
    return chr(int(said[1:], 16)) if len(said) > 1 else _ESCAPES.get(said, said)


class _Flow:
    """A list or map in brackets; its end missing is an IndexError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> JSON:
        """Read all of it."""
        value = self._value()
        if self._text[self._at :].strip():
            raise ValueError(f"{self._text[:60]!r} goes on behind its end")
        return value

    def _next(self) -> str:
        """Return the next sign that is no blank."""
        while self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at]

    def _value(self) -> JSON:
        """Read one value."""
        if (sign := self._next()) in "[{":
            self._at += 1
            return self._list() if sign == "[" else self._map()
        found = (_QUOTED if sign in "'\"" else _PLAIN).match(self._text, self._at)
        if found is None:
            raise (
                IndexError
                if sign in "'\""
                else ValueError(f"{self._text[:60]!r} has no value where one belongs")
            )
        self._at = found.end()
        return _scalar(found[0].strip())

    def _list(self) -> list[JSON]:
        """Read up to the bracket."""
        items: list[JSON] = []
        while self._next() != "]":
            items.append(self._value())
            self._pass_comma("]")
        self._at += 1
        return items

    def _map(self) -> dict[str, JSON]:
        """Read up to the brace."""
        entries: dict[str, JSON] = {}
        while self._next() != "}":
            key = str(self._value())
            if self._next() != ":":
                raise ValueError(f"{self._text[:60]!r} has a key without a value")
            self._at += 1
            entries[key] = self._value()
            self._pass_comma("}")
        self._at += 1
        return entries

    def _pass_comma(self, end: str) -> None:
        """Pass the comma between two entries."""
        if (sign := self._next()) == ",":
            self._at += 1
        elif sign != end:
            raise ValueError(f"{self._text[:60]!r} has no comma where one belongs")
