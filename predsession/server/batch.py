"""A batch on its way through a worker, and how its outcomes are shared out to jobs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from predsession.server.frames import Frame
from predsession.server.job import Advance, Job
from predsession.server.schedule import Piece
from predsession.server.sources import Picture, identified, item_error
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

Identify = Callable[[Job, int], JSONObject]


class Outcome(NamedTuple):
    """What became of a picture: its JSON, or an error with type, message and traceback; a tracker's rows."""

    item: bytes
    error: JSONObject | None
    rows: bytes = b""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Items in a worker's hands.

    Parameters
    ----------
    id : int
        What the worker calls it.
    pieces : sequence of Piece
        Whose items they are; all jobs want the same settings.
    pictures : tuple of Slice or Frame
        Where they lie, in the order of the pieces.
    died : bool
        Whether a worker died over it, so that the next one that does is its fault.
    """

    id: int
    pieces: Sequence[Piece]
    pictures: tuple[Picture, ...]
    died: bool = False

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.pictures)

    @property
    def body(self) -> Sequence[bytes]:
        """What follows the header on its way to the worker: nothing, for the pictures lie on the disk."""
        return ()

    @property
    def unwanted(self) -> bool:
        """Whether every job in it was stopped, or has ended, so that its files may be gone."""
        return all(piece.job.stopped or piece.job.ended for piece in self.pieces)

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
            "pictures": [_place(picture) for picture in self.pictures],
            "settings": self.pieces[0].job.facts.settings,
            "low": self.pieces[0].job.facts.low,
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

    def once_more(self, number: int) -> Batch:
        """Return it as it is tried again, under another id, after a worker's death."""
        return replace(self, id=number, died=True)

    def share(self, outcomes: Sequence[Outcome], identify: Identify) -> list[Advance]:
        """Share out outcomes to the jobs.

        Parameters
        ----------
        outcomes : sequence of Outcome
            One for each picture.
        identify : callable
            Returns by which keys the result of a job's item is known.

        Returns
        -------
        list of Advance
            One for each piece.
        """
        rest = iter(outcomes)
        return [_advance(piece, list(itertools.islice(rest, piece.count)), identify) for piece in self.pieces]

    def dropped(self) -> list[Advance]:
        """Return what is recorded where nothing was computed."""
        return [Advance(piece.job, piece.first, [], piece.count) for piece in self.pieces]


def read_outcomes(header: JSONObject, body: bytes) -> list[Outcome]:
    """Read a worker's answer.

    Parameters
    ----------
    header : JSONObject
        With the size of each item and of its rows, and the error in its stead.
    body : bytes
        The items, one after the other, then their rows.

    Returns
    -------
    list of Outcome
        One for each picture.
    """
    parts = [_whole(header[name]) for name in ("sizes", "rows")]
    ends = itertools.accumulate([*parts[0], *parts[1]], initial=0)
    pieces = [body[begin:end] for begin, end in itertools.pairwise(ends)]
    count = len(parts[0])
    errors: list[JSON] = list(as_list(header["errors"]))
    return [
        Outcome(item, None if error is None else as_object(error), rows)
        for item, error, rows in zip(pieces[:count], errors, pieces[count:], strict=True)
    ]


def _whole(numbers: JSON) -> list[int]:
    """Return a list of whole numbers."""
    return [int(str(number)) for number in as_list(numbers)]


def _place(picture: Picture) -> JSON:
    """Write down where a picture lies; `worker` reads it."""
    return picture._asdict() if isinstance(picture, Frame) else list(picture)


def _advance(piece: Piece, outcomes: list[Outcome], identify: Identify) -> Advance:
    """Turn outcomes into a job's new results, up to the one that ends it."""
    job, items = piece.job, list[bytes]()
    rows = [outcome.rows for outcome in outcomes] if job.facts.tracking is not None else []
    for number, outcome in enumerate(outcomes, start=piece.first):
        identity = identify(job, number)
        if outcome.error is None:
            items.append(identified(outcome.item, identity))
        elif job.facts.item_errors:
            items.append(item_error(outcome.error, identity))
        else:
            return Advance(job, piece.first, items, piece.count, outcome.error, rows[: len(items)])
    return Advance(job, piece.first, items, piece.count, rows=rows)
