"""A line of the table: two figures, their ratio, the target, and whether it was met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from predsession.wire.jsontypes import JSON


class Of(Enum):
    """Which of a row's figures a target is for."""

    OURS = "ours"
    RATIO = "ratio"


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be reached.

    Parameters
    ----------
    bound : float
        The figure, or the ratio of ours to the peer's.
    of : Of
        Which of the two.
    at_least : bool
        Whether more is better.
    """

    bound: float
    of: Of = Of.RATIO
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.bound if self.at_least else value <= self.bound

    def text(self, unit: str) -> str:
        """Return the target in a few characters."""
        sign = "≥" if self.at_least else "≤"
        return f"{sign} {self.bound:.3g} {unit if self.of is Of.OURS else '×'}".strip()


def at_most(bound: float, of: Of = Of.RATIO) -> Target:
    """Return the target that a figure must not exceed."""
    return Target(bound, of)


def at_least(bound: float, of: Of = Of.RATIO) -> Target:
    """Return the target that a figure must reach."""
    return Target(bound, of, at_least=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Parameters
    ----------
    case : str
        The case's name.
    what : str
        What was measured, and against whom.
    unit : str
        Of both figures.
    ours : sequence of float
        Our figure, for each run.
    peer : sequence of float
        The peer's, run by run; empty where there is none.
    target : Target or None
        What is to be reached, if anything.
    """

    case: str
    what: str
    unit: str
    ours: Sequence[float]
    peer: Sequence[float] = ()
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        """The median of the runs' ratios, ours to the peer's."""
        if not self.peer:
            return None
        return median(ours / peer for ours, peer in zip(self.ours, self.peer, strict=True))

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None where there is none, or its figure is missing."""
        if self.target is None:
            return None
        value = self.ratio if self.target.of is Of.RATIO else median(self.ours)
        return None if value is None else self.target.met(value)

    @property
    def verdict(self) -> str:
        """The same as a word."""
        if self.target is None:
            return ""
        return {True: "met", False: "MISSED", None: "not measured"}[self.met]

    def cells(self) -> tuple[str, ...]:
        """Return the line's texts: case, what, ours, peer, ratio, target, verdict."""
        ratio = self.ratio
        return (
            self.case,
            self.what,
            shown(median(self.ours), self.unit),
            shown(median(self.peer), self.unit) if self.peer else "",
            "" if ratio is None else f"{ratio:.3g}",
            "" if self.target is None else self.target.text(self.unit),
            self.verdict,
        )

    def to_json(self) -> dict[str, JSON]:
        """Return everything, the single runs included."""
        return {
            "case": self.case,
            "what": self.what,
            "unit": self.unit,
            "ours": median(self.ours),
            "peer": median(self.peer) if self.peer else None,
            "ratio": self.ratio,
            "target": None if self.target is None else self.target.text(self.unit),
            "met": self.met,
            "runs": {"ours": list(self.ours), "peer": list(self.peer)},
            "shown": list(self.cells()),
        }


def shown(value: float, unit: str) -> str:
    """Write a figure with three digits that matter."""
    digits = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits} {unit}".strip()
