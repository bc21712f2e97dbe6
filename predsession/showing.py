"""A session as a notebook shows it: how far it is, what was found, the first results, what failed.

Invariant: what is remembered for it does not grow with the source; showing never raises, and asks no server.

Invariant: of pictures that are no files only the first few are kept, small, and only in a notebook.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from predsession.errors import ItemError, SourceError
from predsession.inputs.items import ArrayContent, BytesContent, PictureContent
from predsession.prediction import Loader, Prediction
from predsession.prediction.gallery import SIDE, outcome_tile
from predsession.prediction.markup import FAILED, FAINT, RGB, class_name, escaped, shortened, table, tiles
from predsession.progress import SessionProgress
from predsession.wire.geometry import Size
from predsession.wire.stages import parse_stage

FIRST = 4
"""How many of the first results are shown."""
_CLASSES = 10
_ERRORS = 10
_MOST_TITLES = (
    1000  # a model has no more classes; what makes up new ones for each picture shall not fill memory
)
_BAR = "#3b82c4"


class Showcase:
    """What a session remembers of its predictions, to show it: a few of them, and counts."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._colors: dict[str, RGB] = {}
        self._first: list[Prediction] = []
        self._tiles: tuple[str, ...] = ()

    def add(self, prediction: Prediction) -> None:
        """Remember what is shown of a prediction.

        Parameters
        ----------
        prediction : Prediction
            Each, in the order in which they are taken.
        """
        counts = prediction.counts()
        for title in counts.keys() - self._colors.keys():
            if len(self._colors) < _MOST_TITLES:
                self._colors[title] = prediction.meta.color(title)
        self._counts.update({title: count for title, count in counts.items() if title in self._colors})
        if len(self._first) < FIRST:
            self._first.append(_light(prediction))

    def classes(self) -> str:
        """Return what was found, the most frequent first.

        Returns
        -------
        str
            A table with bars; empty where nothing was found.
        """
        ranked = self._counts.copy().most_common()
        most = ranked[0][1] if ranked else 0
        rows = [
            (class_name(title, self._colors[title]), f"{count:,}", _length(count / most))
            for title, count in ranked[:_CLASSES]
        ]
        if len(ranked) > _CLASSES:
            rest = sum(count for _, count in ranked[_CLASSES:])
            rows.append((f"<i>others: {len(ranked) - _CLASSES}</i>", f"{rest:,}", ""))
        return table(("class", "objects", ""), rows, right=(1,)) if rows else ""

    def pictures(self) -> str:
        """Return the first results: drawn when they are first asked for, and kept as they are shown.

        Returns
        -------
        str
            Small pictures with captions; empty where nothing was taken.
        """
        made = self._tiles
        # A copy of each, which takes what was decoded along when it goes.
        made = (*made, *(outcome_tile(replace(each)) for each in self._first[len(made) :]))
        self._tiles = made  # at once: two threads may show a session
        return f'<div style="margin-top:.8em">{tiles(made, FIRST)}</div>' if made else ""


def _length(share: float) -> str:
    """Return a bar of a table, as long as its share of the longest."""
    return (
        f'<div style="width:{120 * share:.0f}px;min-width:1px;height:.7em;border-radius:2px;'
        f'background:{_BAR}"></div>'
    )


def _light(prediction: Prediction) -> Prediction:
    """Return a prediction whose picture is in a file of this machine, was made small, or is not there."""
    # Other loaders hold the picture itself, or fetch it from a server. A frame's knows the clip's path.
    if prediction.path is None:
        return replace(prediction, loader=_kept(prediction) or _not_kept)
    return prediction if prediction.frame_index is not None else replace(prediction, loader=None)


def _kept(prediction: Prediction) -> Loader | None:
    """Return what is kept of a picture in memory: in a notebook a small one, elsewhere nothing."""
    if prediction.loader is None or "IPython" not in sys.modules:
        return None
    from PIL import Image

    from predsession.prediction.arrays import Held

    loader = prediction.loader
    content = getattr(getattr(loader, "item", None), "content", None)
    if not isinstance(loader, Held) and not isinstance(content, ArrayContent | BytesContent | PictureContent):
        return None
    try:
        small = Image.fromarray(loader())
        small.thumbnail((SIDE, SIDE), reducing_gap=2.0)
        return _Enlarged(np.asarray(small), prediction.size)
    except Exception:  # noqa: BLE001 - iterating must not fail because of a display
        return None


@dataclass(frozen=True, slots=True)
class _Enlarged:
    """Loads a picture that was kept small, as large as it was: what is drawn on it finds its place."""

    small: npt.NDArray[np.uint8]
    size: Size

    def __call__(self) -> npt.NDArray[np.uint8]:
        """Return the picture, coarse."""
        from PIL import Image

        return np.array(Image.fromarray(self.small).resize(self.size))


def _not_kept() -> NoReturn:
    """Stand in for a loader."""
    raise SourceError("a session keeps none that is no file; the prediction itself shows it")


@dataclass(frozen=True, slots=True)
class SessionState:
    """Where a session stands, for its display.

    Parameters
    ----------
    title : str
        Source and server.
    progress : SessionProgress
        How far it is.
    ended, closed, is_done : bool
        Whether its end was taken, it was closed, everything has arrived.
    error : BaseException or None
        What it was closed by.
    errors : sequence of ItemError
        Inputs that failed.
    """

    title: str
    progress: SessionProgress
    ended: bool
    closed: bool
    is_done: bool
    error: BaseException | None
    errors: Sequence[ItemError]

    def words(self) -> str:
        """Return the state in a few words.

        Returns
        -------
        str
            Such as "finished", or the present job's stage in the server's words.
        """
        if isinstance(self.error, KeyboardInterrupt):
            return "interrupted"
        if self.error is not None:
            return "failed"
        if self.ended:
            return "finished"
        if self.closed:
            return "closed"
        complete = self.progress.total is not None and self.progress.done >= self.progress.total
        if self.is_done:
            return "all predictions are here" if complete else "stopped"
        # One job of several, or what it found is on its way: the session is not finished.
        return "running" if parse_stage(self.progress.stage).terminal else self.progress.stage


def session_html(state: SessionState, showcase: Showcase) -> str:
    """Return a session's display.

    Parameters
    ----------
    state : SessionState
        Where it stands.
    showcase : Showcase
        What it has found.

    Returns
    -------
    str
        One ``div``; every text in it escaped.
    """
    parts = [f"<p style='margin:0 0 .4em'><b>{escaped(state.title)}</b></p>", _bar(state)]
    if state.error is not None and not isinstance(state.error, KeyboardInterrupt):
        said = shortened(f"{type(state.error).__name__}: {state.error}")
        parts.append(f'<p style="margin:.4em 0"><b style="color:{FAILED}">{said}</b></p>')
    for make in (showcase.classes, showcase.pictures, lambda: _errors(state.errors)):
        try:
            parts.append(make())
        except Exception as error:  # noqa: BLE001 - a cell of a notebook must not fail because of its display
            parts.append(f"<p><em>{shortened(f'{type(error).__name__}: {error}')}</em></p>")
    return f"<div>{''.join(parts)}</div>"


def _bar(state: SessionState) -> str:
    """Return a bar of what was taken, on one of what has arrived, and the same in words."""
    progress, failed = state.progress, len(state.errors)
    total = "" if progress.total is None else f" of {progress.total:,}"
    words = [f"{progress.taken:,}{total} taken", f"{progress.done:,} arrived"]
    if failed:
        words.append(f'<span style="color:{FAILED}">{failed:,} item error{"s" if failed > 1 else ""}</span>')
    line = f'<p style="margin:.3em 0">{escaped(state.words())}: {", ".join(words)}</p>'
    if not progress.total:
        return line
    arrived, taken = (min(100 * count / progress.total, 100) for count in (progress.done, progress.taken))
    ink = FAILED if state.words() in {"failed", "interrupted"} else _BAR
    return (
        f'<div role="progressbar" aria-label="taken" aria-valuemin="0" aria-valuemax="{progress.total}" '
        f'aria-valuenow="{progress.taken}" style="max-width:480px;height:10px;border-radius:5px;'
        f'overflow:hidden;background:{FAINT};position:relative">'
        f'<div style="position:absolute;height:100%;width:{arrived:.1f}%;background:{ink};opacity:.35"></div>'
        f'<div style="position:absolute;height:100%;width:{taken:.1f}%;background:{ink}"></div></div>{line}'
    )


def _errors(errors: Sequence[ItemError]) -> str:
    """Return the first inputs that failed, with their reasons."""
    if not errors:
        return ""
    rows = [(str(each.index), escaped(each.name), shortened(each.reason)) for each in errors[:_ERRORS]]
    more = f"<p>and {len(errors) - _ERRORS:,} more: see errors</p>" if len(errors) > _ERRORS else ""
    return table(("", "input", "what is wrong"), rows, right=(0,)) + more
