"""One run of the whole: how often and how much is measured, ours and the peer in both orders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.row import Row, Target

Figures = Mapping[str, float]
"""What one measurement gave, by name."""
Measure = Callable[[], Figures]


@dataclass(frozen=True, slots=True)
class Bench:
    """What the command line asks for.

    Parameters
    ----------
    runs : int
        How often everything is measured.
    quick : bool
        Whether only to look if it works: few inputs, one run.
    theirs : Path or None
        Supervisely's interpreter; without it the rows against the ancestor are left out.
    """

    runs: int = 5
    quick: bool = False
    theirs: Path | None = None

    def count(self, full: int, quick: int) -> int:
        """Return how many inputs to take."""
        return quick if self.quick else full

    def measured(self, ours: Measure, peer: Measure | None = None) -> Pairs:
        """Measure ours, and a peer beside it, as often as asked for; each goes first in turn.

        Parameters
        ----------
        ours, peer : callable
            Each makes one measurement, in a process of its own.

        Returns
        -------
        Pairs
            What was measured, run by run.
        """
        pairs: list[tuple[Figures, Figures]] = []
        for number in range(self.runs):
            if peer is None:
                pairs.append((ours(), {}))
            elif number % 2:
                theirs = peer()
                pairs.append((ours(), theirs))
            else:
                pairs.append((ours(), peer()))
            say(f"    run {number + 1}: {_brief(pairs[-1][0])} | {_brief(pairs[-1][1])}")
        return Pairs(pairs)


@dataclass(frozen=True, slots=True)
class Pairs:
    """The runs of one comparison: our figures and the peer's."""

    runs: Sequence[tuple[Figures, Figures]]

    def ours(self, key: str) -> tuple[float, ...]:
        """Return one of our figures, for each run."""
        return tuple(ours[key] for ours, _ in self.runs)

    def peer(self, key: str) -> tuple[float, ...]:
        """Return one of the peer's figures, for each run; nothing where there is no peer."""
        return tuple(peer[key] for _, peer in self.runs if peer)

    def row(
        self,
        case: str,
        what: str,
        key: str,
        *,
        unit: str = "s",
        peer_key: str | None = None,
        target: Target | None = None,
    ) -> Row:
        """Make a line of the table.

        Parameters
        ----------
        case, what : str
            As for `Row`.
        key : str
            The figure.
        unit : str
            Its unit.
        peer_key : str, optional
            The peer's figure, where it has another name.
        target : Target, optional
            What is to be reached.

        Returns
        -------
        Row
            With every run.
        """
        return Row(case, what, unit, self.ours(key), self.peer(peer_key or key), target)


class Case(Protocol):
    """What a file in ``cases`` defines."""

    NAME: str
    """What it is called on the command line and in the table."""

    def measure(self, bench: Bench) -> Iterator[Row]:
        """Yield its lines as they are measured."""


def say(text: str) -> None:
    """Tell how far it is, beside the table."""
    print(text, file=sys.stderr, flush=True)


def _brief(figures: Figures) -> str:
    """Return a few figures on one line."""
    return ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
