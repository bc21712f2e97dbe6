"""What an examination finds, as values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from predsession.wire.jsontypes import JSON


class Verdict(Enum):
    """How a thing is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and will cost or surprise somebody."""
    BAD = "bad"
    """It does not work, or a run over this server would not."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Parameters
    ----------
    check : str
        Which, in one word.
    verdict : Verdict
        How it is.
    text : str
        What was found and what it means, in a sentence or two, without secrets.
    advice : str
        What to do; empty where nothing is to be done.
    details : tuple of str
        More of it, a line each.
    """

    check: str
    verdict: Verdict
    text: str
    advice: str = ""
    details: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JSON]:
        """Return the fields as a JSON object.

        Returns
        -------
        dict
            ``{"check", "verdict", "text", "advice", "details"}``.
        """
        return {
            "check": self.check,
            "verdict": self.verdict.value,
            "text": self.text,
            "advice": self.advice,
            "details": list(self.details),
        }


@dataclass(frozen=True, slots=True)
class Examination:
    """All that was found.

    Parameters
    ----------
    url : str
        What was examined, without secrets.
    findings : tuple of Finding
        In the order in which they were made.
    unseen : tuple of str
        The checks for which it did not come, because of what was bad before.
    """

    url: str
    findings: tuple[Finding, ...]
    unseen: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return max((each.verdict for each in self.findings), key=list(Verdict).index, default=Verdict.OK)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def count(self, verdict: Verdict) -> int:
        """Return how many findings have this verdict.

        Parameters
        ----------
        verdict : Verdict
            Which.

        Returns
        -------
        int
            0 or more.
        """
        return sum(each.verdict is verdict for each in self.findings)

    def to_json(self) -> dict[str, JSON]:
        """Return all of it as a JSON object.

        Returns
        -------
        dict
            ``{"url", "verdict", "findings", "unseen"}``.
        """
        return {
            "url": self.url,
            "verdict": self.verdict.value,
            "findings": [each.to_json() for each in self.findings],
            "unseen": list(self.unseen),
        }


def ok(check: str, text: str, advice: str = "", *, details: tuple[str, ...] = ()) -> Finding:
    """Return a finding that is well."""
    return Finding(check, Verdict.OK, text, advice, details)


def warning(check: str, text: str, advice: str, *, details: tuple[str, ...] = ()) -> Finding:
    """Return a finding that will cost or surprise somebody."""
    return Finding(check, Verdict.WARNING, text, advice, details)


def bad(check: str, text: str, advice: str) -> Finding:
    """Return a finding that ends the examination, or would end a run."""
    return Finding(check, Verdict.BAD, text, advice)
