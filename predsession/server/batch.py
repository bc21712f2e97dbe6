"""A batch on its way through a worker, and how its outcomes are shared out to jobs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from predsession.server.job import Advance
from predsession.server.schedule import Piece
from predsession.server.slices import Slice
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object


class Outcome(NamedTuple):
    """What became of one picture: an item's JSON, or an error with type, message and traceback."""

    item: bytes
    error: JSONObject | None


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Items in a worker's hands.

    Parameters
    ----------
    id : int
        What the worker calls it.
    pieces : sequence of Piece
        Whose items they are; all jobs want the same settings.
    pictures : tuple of Slice
        Where they lie, in the order of the pieces.
    """

    id: int
    pieces: Sequence[Piece]
    pictures: tuple[Slice, ...]

    @property
    def unwanted(self) -> bool:
        """Whether every job in it was stopped."""
        return all(piece.job.stopped for piece in self.pieces)

    def order(self, *, singly: bool) -> JSONObject:
        """Return the frame that asks a worker for this batch.

        Parameters
        ----------
        singly : bool
            Whether a batch that fails is tried again picture by picture.

        Returns
        -------
        JSONObject
            The frame's header.
        """
        return {
            "op": "batch",
            "id": self.id,
            "pictures": [list(picture) for picture in self.pictures],
            "settings": self.pieces[0].job.facts.settings,
            "singly": singly,
        }

    def singles(self, ids: itertools.count[int]) -> list[Batch]:
        """Cut it into batches of one picture.

        Parameters
        ----------
        ids : iterator of int
            Gives each its id.

        Returns
        -------
        list of Batch
            In the same order.
        """
        pieces = [
            Piece(piece.job, number, 1)
            for piece in self.pieces
            for number in range(piece.first, piece.first + piece.count)
        ]
        return [
            Batch(next(ids), [piece], (picture,))
            for piece, picture in zip(pieces, self.pictures, strict=True)
        ]

    def share(self, outcomes: Sequence[Outcome]) -> list[Advance]:
        """Share out outcomes to the jobs.

        Parameters
        ----------
        outcomes : sequence of Outcome
            One for each picture.

        Returns
        -------
        list of Advance
            One for each piece.
        """
        rest = iter(outcomes)
        return [_advance(piece, list(itertools.islice(rest, piece.count))) for piece in self.pieces]

    def dropped(self) -> list[Advance]:
        """Return what is recorded where nothing was computed."""
        return [Advance(piece.job, piece.first, [], piece.count) for piece in self.pieces]


def read_outcomes(header: JSONObject, body: bytes) -> list[Outcome]:
    """Read a worker's answer.

    Parameters
    ----------
    header : JSONObject
        With the size of each item and the error in its stead.
    body : bytes
        The items, one after the other.

    Returns
    -------
    list of Outcome
        One for each picture.
    """
    sizes = [int(str(size)) for size in as_list(header["sizes"])]
    ends = list(itertools.accumulate(sizes))
    errors: list[JSON] = list(as_list(header["errors"]))
    return [
        Outcome(body[end - size : end], None if error is None else as_object(error))
        for size, end, error in zip(sizes, ends, errors, strict=True)
    ]


def _advance(piece: Piece, outcomes: list[Outcome]) -> Advance:
    """Turn outcomes into a job's new results, up to the one that ends it."""
    items: list[bytes] = []
    for item, error in outcomes:
        if error is not None and not piece.job.facts.item_errors:
            return Advance(piece.job, piece.first, items, piece.count, error)
        items.append(item if error is None else _item_error(error))
    return Advance(piece.job, piece.first, items, piece.count)


def _item_error(error: JSONObject) -> bytes:
    """Write the item that stands for a bad one."""
    brief = {"type": error["type"], "message": error["message"]}
    return json.dumps({"error": brief}, separators=(",", ":")).encode()
