"""What the store keeps: its tables, and their rows as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from predsession.wire.jsontypes import JSONObject

VERSION = 2
SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    uuid TEXT PRIMARY KEY,
    submit_key TEXT UNIQUE,
    created REAL NOT NULL,
    facts TEXT NOT NULL,
    done INTEGER NOT NULL,
    state TEXT NOT NULL,
    keeps INTEGER NOT NULL DEFAULT 0,
    gone INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    uuid TEXT NOT NULL,
    number INTEGER NOT NULL,
    item BLOB NOT NULL,
    PRIMARY KEY (uuid, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS detections (
    uuid TEXT NOT NULL,
    number INTEGER NOT NULL,
    rows BLOB NOT NULL,
    PRIMARY KEY (uuid, number)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it is stored.

    Parameters
    ----------
    uuid : str
        Its name.
    submit_key : str or None
        The ``Idempotency-Key`` of its submit.
    created : float
        Seconds since 1970.
    facts : JSONObject
        What never changes.
    done : int
        How many results there are or were.
    state : JSONObject
        What changes seldom: the stage, the exception.
    """

    uuid: str
    submit_key: str | None
    created: float
    facts: JSONObject
    done: int
    state: JSONObject
    keeps: bool = False
    """Whether results stay when they have been taken, until `Store.let_go`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """New results of one job.

    Parameters
    ----------
    uuid : str
        The job.
    first : int
        The number of the first new result; numbers start at 1.
    items : sequence of bytes
        The wire's JSON of each.
    state : JSONObject
        The job's state with them.
    rows : sequence of bytes
        Of a tracked job: the detections of each.
    """

    uuid: str
    first: int
    items: Sequence[bytes]
    state: JSONObject
    rows: Sequence[bytes] = ()
