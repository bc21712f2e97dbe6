"""What a stream's store has after an interrupt in the midst of writing, and after repeats of failures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_kit import KINDS, Recorded, double, drain, ids, reasons

from predsession.errors import SourceError, StoreError
from predsession.stream import DeadLetter, StreamSession
from predsession.stream.tables import Table, open_table


def one(name: str) -> dict[str, Any]:
    """Return a batch of one object."""
    return {"object_id": [name], "x": np.ones((1, 3), np.float32)}


def interrupt(monkeypatch: pytest.MonkeyPatch, table: type[Table]) -> None:
    """Have Ctrl-C come when rows are there, and the table does not know it yet."""
    real = table.append

    def append(self: Table, rows: Any) -> None:
        monkeypatch.setattr(table, "append", real)
        real(type(self)(self.path), rows)
        raise KeyboardInterrupt

    monkeypatch.setattr(table, "append", append)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [True, False])
def test_interrupt_while_storing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, first: bool
) -> None:
    """A session that goes on after Ctrl-C broke into its writing stores no object twice, and none is lost."""
    store = tmp_path / f"r.{kind}"
    with StreamSession(double, store=store) as session:
        if not first:
            session.process(one("a"))
        interrupt(monkeypatch, type(open_table(store)))
        with pytest.raises(KeyboardInterrupt):
            session.process(one("b"))
        session.process(one("b"))
        session.process(one("c"))
    assert ids(store) == ["b", "c"] if first else ["a", "b", "c"]


@pytest.mark.parametrize("kind", KINDS)
def test_interrupt_while_burying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Dead letters, likewise."""
    store = tmp_path / f"r.{kind}"
    letters = [DeadLetter("t:0:0", "bad")]
    source = Recorded(letters, letters)
    with StreamSession(double, source, store, batch_size=1) as session:
        interrupt(monkeypatch, type(open_table(store)))
        with pytest.raises(KeyboardInterrupt):
            drain(session)
        assert source.positions == [], "nothing is told that may not be on disk"
        drain(session)
    assert source.positions == ["t:0:0"]
    table = open_table(store.with_name(f"r.dead.{kind}"))
    assert (table.count(), list(reasons(store))) == (1, ["t:0:0"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("raised", "wanted"),
    [
        (OSError("External error: KeyboardInterrupt: "), KeyboardInterrupt),
        (SourceError("in words"), SourceError),
        (OSError("a disk"), StoreError),
    ],
)
def test_errors_within_tables(
    tmp_path: Path, kind: str, raised: Exception, wanted: type[BaseException]
) -> None:
    """Ctrl-C that Lance makes an error of is Ctrl-C; an error of ours stays it; others are a StoreError."""
    store = tmp_path / f"r.{kind}"
    with StreamSession(double, store=store) as session:
        session.process(one("a"))
    table: Any = open_table(store)

    def fails(*_: object) -> None:
        raise raised

    with pytest.raises(wanted):
        table._read(fails if kind == "lance" else partial(fails, 0))
