"""The three that run a source and are timed: our session, the bare loop, the ancestor."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bench import Figures
from benchmarks.process import MeasurementError, figures, run_client, run_theirs
from predsession.wire.jsontypes import JSON

READ = ["boxes", "scores", "classes"]
"""What a caller who wants the objects asks of each prediction."""


def ours(url: str, source: Path, *, expect: int, **task: JSON) -> Figures:
    """Run our session.

    Parameters
    ----------
    url : str
        The server.
    source : Path
        A picture, a folder, a video, or a file of arrays.
    expect : int
        How many predictions must come: a quick run that loses some is no run.
    **task : JSON
        More of what ``clients/ours.py`` takes.

    Returns
    -------
    Figures
        What it answered.
    """
    return _checked(run_client("ours", {"url": url, "input": str(source), **task}), expect)


def bare(url: str, source: Path, *, expect: int, **task: JSON) -> Figures:
    """Run the bare loop of requests, likewise: see ``clients/bare.py``."""
    return _checked(run_client("bare", {"url": url, "input": str(source), **task}), expect)


def ancestor(python: Path, url: str, source: Path, *, expect: int, **task: JSON) -> Figures:
    """Run the ancestor, likewise, with its own interpreter: see ``theirs/client.py``."""
    return _checked(run_theirs(python, "client", {"url": url, "input": str(source), **task}), expect)


def _checked(answer: dict[str, JSON], expect: int) -> Figures:
    """Return the figures, if the count is right."""
    found = figures(answer)
    if found["count"] != expect:
        raise MeasurementError(f"{found['count']:.0f} predictions came, not {expect}")
    return found
