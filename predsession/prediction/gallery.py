"""Several predictions side by side in a notebook: a grid of small pictures.

Invariant: showing never raises; what cannot be shown is said in its place, and so is an input that failed.

Invariant: one picture is decoded at a time, when it is shown, and none is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from predsession.errors import ItemError
from predsession.prediction.display import Shown
from predsession.prediction.given import check_number, several
from predsession.prediction.markup import FAILED, counted, described, escaped, shortened, tile, tiles

SIDE = 400
"""The longer side of a small picture, in pixels: twice what most grids show, for screens that have them."""
_NAMED = 3


class Grid:
    """Predictions, to be shown side by side; made by `grid`.

    Parameters
    ----------
    outcomes : sequence of Prediction or ItemError
        What is shown.
    columns : int
        How many in a row.
    left_out : int or None
        How many there are beyond those; None if that is not known.
    """

    def __init__(self, outcomes: Sequence[Shown | ItemError], *, columns: int, left_out: int | None) -> None:
        self._outcomes = tuple(outcomes)
        self._columns = columns
        self._left_out = left_out

    def __len__(self) -> int:
        """Return how many are shown."""
        return len(self._outcomes)

    def __repr__(self) -> str:
        failed = sum(isinstance(each, ItemError) for each in self._outcomes)
        errors = f", {failed} of them item errors" if failed else ""
        return f"<Grid of {len(self)} predictions{errors}{self._rest()}>"

    def _repr_html_(self) -> str:
        """Return the grid, for a notebook."""
        if not self._outcomes:
            return "<p><em>no predictions: none were made, or all were taken before</em></p>"
        note = self._rest().removeprefix("; ")
        remark = f'<p style="margin:.6em 0 0;opacity:.75">{note}</p>' if note else ""
        return f"<div>{tiles(map(outcome_tile, self._outcomes), self._columns)}{remark}</div>"

    def _rest(self) -> str:
        """Say what is not shown."""
        if self._left_out is None:
            return f"; the first {len(self)}: limit= says how many"
        every = len(self) + self._left_out
        return f"; {self._left_out} more are not shown: limit={every} shows all" if self._left_out else ""


def grid(
    predictions: Shown | ItemError | Iterable[Shown | ItemError], columns: int = 4, *, limit: int = 24
) -> Grid:
    """Show several predictions side by side in a notebook, each drawn on its picture.

    Parameters
    ----------
    predictions : iterable of Prediction or ItemError, or one alone
        A list of them, or a session: then up to `limit` are taken from it, which are not yielded again; it
        goes on, and can be iterated for the rest.
    columns : int
        How many in a row; fewer on a narrow page.
    limit : int
        How many at most.

    Returns
    -------
    Grid
        What a notebook shows, at the end of a cell or by ``display()``. Pictures are read then.

    Raises
    ------
    ValueError
        If `columns` or `limit` is no whole number above 0.
    PredSessionError
        What a session raises.

    Examples
    --------
    >>> predsession.grid(session, columns=3, limit=6)  # doctest: +SKIP
    """
    columns, limit = check_number("columns", columns), check_number("limit", limit)
    outcomes = several(predictions)
    chosen = list(islice(outcomes, limit))
    if isinstance(outcomes, Sequence):
        left_out: int | None = len(outcomes) - len(chosen)
    else:  # whether there is one more is known by taking it, and then it would be lost
        left_out = 0 if len(chosen) < limit else None
    return Grid(chosen, columns=columns, left_out=left_out)


def outcome_tile(outcome: Shown | ItemError) -> str:
    """Return one prediction as a small picture with a caption, or what there is instead.

    Parameters
    ----------
    outcome : Prediction or ItemError
        What became of an input.

    Returns
    -------
    str
        One ``figure``; every text in it escaped.
    """
    if isinstance(outcome, ItemError):
        said = f'<b style="color:{FAILED}">item error</b><br>{shortened(outcome.reason)}'
        return tile(said, _title(outcome.name, outcome.index, None))
    try:
        counts = outcome.counts()
        colors = {title: outcome.meta.color(title) for title in counts}
        found = counted(counts, colors, most=_NAMED) or '<span style="opacity:.75">nothing found</span>'
        alt = described(outcome.name, counts)
        picture = small_picture(outcome)
    except Exception as error:  # noqa: BLE001 - a cell of a notebook must not fail because a file is gone
        found, alt = "", ""
        picture = f"no picture<br>{shortened(str(error) or type(error).__name__)}"
    return tile(picture, _title(outcome.name, outcome.index, outcome.frame_index) + found, alt=alt)


def small_picture(prediction: Shown) -> str:
    """Draw a prediction for a small place: without texts, with lines that can still be seen.

    Parameters
    ----------
    prediction : Prediction
        Whose picture can be had.

    Returns
    -------
    str
        ``data:image/jpeg;base64,...``.
    """
    from predsession.prediction.pictures import inline_picture

    thickness = max(1, round(3.5 * max(prediction.size) / SIDE))
    return inline_picture(prediction.visualize(draw_tags=False, thickness=thickness), SIDE)


def _title(name: str, index: int, frame: int | None) -> str:
    """Return the caption's first line."""
    what = name or f"input {index}"
    return f"<b>{escaped(what)}</b>{'' if frame is None else f', frame {frame}'}<br>"
