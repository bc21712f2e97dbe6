"""Progress: what there is to show, and its tqdm adapter. The only room that knows tqdm.

Invariant: no bar of ours ends a run. One that cannot be drawn, since standard error is closed or its disk is
full, is drawn no more, and the log says so. What a bar of the caller's raises is the caller's.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

PIPE_INTERVAL = 5.0
"""Seconds between two lines where the bar goes into a file or a pipe."""
_log = logging.getLogger("predsession.progress")


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """How far a session is; all its jobs together.

    Parameters
    ----------
    done : int
        Items whose outcome has arrived.
    total : int or None
        Items in all, where that is known.
    stage : str
        Of the current job, in the server's words.
    taken : int
        Items whose outcome the caller has taken.
    bytes_sent, bytes_total : int
        Of the uploads begun so far.
    """

    done: int
    total: int | None
    stage: str
    taken: int
    bytes_sent: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """Where a session stands.

    Parameters
    ----------
    progress : SessionProgress
        How far it is.
    uuid : str or None
        The current job's.
    jobs : tuple of str
        The live jobs.
    item_errors : int
        So far.
    is_done : bool
        Whether every outcome has arrived.
    closed : bool
        Whether the session was closed.
    """

    progress: SessionProgress
    uuid: str | None
    jobs: tuple[str, ...]
    item_errors: int
    is_done: bool
    closed: bool


class Progress(Protocol):
    """Shows how far a session is. Called on the caller's thread only."""

    def update(self, progress: SessionProgress) -> None:
        """Show the present state."""

    def close(self) -> None:
        """Show no more; may be called twice."""


class NoProgress:
    """Shows nothing."""

    def update(self, progress: SessionProgress) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Bar(Protocol):
    """The part of a tqdm bar that is used here."""

    n: float
    total: float | None
    unit: str
    unit_scale: bool | int | float

    def refresh(self) -> object:
        """Draw."""

    def reset(self, total: float | None = None) -> None:
        """Start again at 0."""

    def set_description(self, desc: str | None = None, refresh: bool | None = True) -> None:
        """Set the text before the bar."""

    def update(self, n: float | None = 1) -> object:
        """Go on by n."""

    def close(self) -> object:
        """Leave the bar as it is, with its line ended."""


class _Drawn:
    """Draws a bar for as long as that can be done."""

    def __init__(self, *, ours: bool = True) -> None:
        self._ours = ours
        self._over = False

    def _draw(self, draw: Callable[[], object]) -> None:
        """Do it, unless it failed before."""
        if self._over:
            return
        try:
            draw()
        except Exception as error:
            if not self._ours:
                raise
            self._over = True
            _log.warning("no progress bar from here on: %s: %s", type(error).__name__, error)
            with contextlib.suppress(Exception):
                self._leave()

    def _leave(self) -> None:
        """Close the bar, if it is ours."""
        raise NotImplementedError


class CountBar(_Drawn):
    """A bar of what has no end: a count, its rate, and a word beside them.

    Parameters
    ----------
    unit : str
        Of the count.
    """

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit
        self._bar: Bar | None = None
        self._draw(self._begin)

    def _begin(self) -> None:
        """Make the bar."""
        self._bar = _tqdm()(total=None, unit=self._unit, mininterval=_interval())

    def show(self, count: int, word: str = "") -> None:
        """Move the bar to a count.

        Parameters
        ----------
        count : int
            From the beginning.
        word : str
            Shown before it.
        """
        self._draw(lambda: self._show(count, word))

    def _show(self, count: int, word: str) -> None:
        """Move it."""
        assert self._bar is not None, "else drawing is over"
        self._bar.set_description(word or None, refresh=False)
        self._bar.update(count - self._bar.n)

    def close(self) -> None:
        """Leave the bar as it is; it may be done twice."""
        self._draw(self._leave)

    def _leave(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()


class TqdmProgress(_Drawn):
    """One bar: bytes until the first prediction is there, items from then on.

    Parameters
    ----------
    tqdm : callable or bar, optional
        What makes the bar, `tqdm.auto.tqdm` by default. A bar that is handed in instead counts items only,
        and is left open for whoever opened it.
    desc : str
        The text before the bar.
    """

    def __init__(self, tqdm: Callable[..., Bar] | Bar | None = None, desc: str = "") -> None:
        super().__init__(ours=tqdm is None)
        # A class has all of a bar's methods, too; only an instance has a count.
        self._given = cast("Bar", tqdm) if hasattr(tqdm, "n") and not isinstance(tqdm, type) else None
        self._make = None if self._given is not None else cast("Callable[..., Bar] | None", tqdm)
        self._desc = desc
        self._counting_items = self._given is not None
        self.bar = self._given

    def update(self, progress: SessionProgress) -> None:
        """Show the present state."""
        self._draw(lambda: self._update(progress))

    def _update(self, progress: SessionProgress) -> None:
        """Show it, on a bar that is made when there is something to show."""
        if self.bar is None:
            self.bar = self._new_bar()
        if progress.taken and not self._counting_items:
            self._count_items(self.bar, progress.total)
        if self._counting_items:
            self._show(self.bar, progress.taken, progress.total)
        else:
            self._show(self.bar, progress.bytes_sent, progress.bytes_total or None)

    def close(self) -> None:
        """Close the bar, if it is ours."""
        self._draw(self._leave)

    def _leave(self) -> None:
        """Close the bar, if it is ours."""
        if self.bar is not None and self._given is None:
            self.bar.close()

    def _new_bar(self) -> Bar:
        """Make a bar that counts bytes."""
        return (self._make or _tqdm())(
            total=None,
            unit="B",
            unit_scale=True,
            desc=f"{self._desc} (upload)".strip(),
            mininterval=_interval(),
        )

    def _count_items(self, bar: Bar, total: int | None) -> None:
        """Let the bar count items from here on."""
        self._counting_items = True
        bar.unit, bar.unit_scale = "img", False
        bar.reset(total=total)
        bar.set_description(self._desc, refresh=False)

    def _show(self, bar: Bar, count: int, total: int | None) -> None:
        """Move the bar to the count, redrawing no more often than it wants to."""
        if total is not None and bar.total != total:
            bar.total = total
        if count != bar.n:
            bar.update(count - bar.n)


def _tqdm() -> Callable[..., Bar]:
    """Return what makes a bar for this terminal or notebook."""
    if sys.stderr is None:
        raise OSError("standard error is closed")
    from tqdm.auto import tqdm

    return cast("Callable[..., Bar]", tqdm)


def _interval() -> float:
    """Return the seconds between two looks of a bar."""
    return 0.1 if sys.stderr is not None and sys.stderr.isatty() else PIPE_INTERVAL
