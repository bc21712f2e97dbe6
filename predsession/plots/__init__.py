"""Plots of many predictions: what was found, how sure the model was, and when in a clip.

Each takes predictions once, as they come, and keeps only counts: memory does not grow with the source.
Needs the extra ``plot``.

>>> from predsession import plots
>>> plots.classes(predictions)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from predsession.errors import ItemError, MissingExtraError
from predsession.plots.counting import Course, Found
from predsession.plots.lettering import Lettering, several_of, write_legend
from predsession.prediction import Prediction
from predsession.prediction.given import check_number, several

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.lines import Line2D

__all__ = ["classes", "objects_over_time", "scores"]

_LONGER = 2.5
"""How many times as long as the longest class's bar that of all others may be."""


def classes(
    predictions: Prediction | Iterable[Prediction | ItemError], *, top: int = 20, ax: Axes | None = None
) -> Axes:
    """Plot how many objects of each class were found, the most frequent on top.

    Parameters
    ----------
    predictions : iterable of Prediction or ItemError, or one Prediction
        Consumed once, a session as it is; item errors are passed over.
    top : int
        How many classes have a bar of their own; the others share one. Where it is far longer than all of
        those, it ends at the plot's edge, and says so.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new figure of fitting height.

    Returns
    -------
    matplotlib.axes.Axes
        With what was drawn.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    ValueError
        If `top` is no whole number above 0.
    """
    top = check_number("top", top)
    _need_matplotlib()
    found = Found()
    for prediction in _read(predictions):
        found.add(prediction)
    names = found.ranked(top)
    counts = [found.count(name) for name in names]
    axes = _axes(ax, 6.4, max(1.6, 0.9 + 0.27 * len(names)))
    labels = [found.label(name) for name in names]
    lettering = Lettering(labels)
    bars = axes.barh(range(len(names)), counts, color=[found.ink(name) for name in names], height=0.75)
    axes.margins(x=0.12, y=0.02)
    said = [f"{count:,}" for count in counts]
    if names and names[-1] is None and counts[-1] > _LONGER * counts[0]:
        said[-1] = _cut(axes, counts)
    axes.bar_label(bars, labels=said, padding=3, fontsize="small")
    axes.set_yticks(range(len(names)), labels=[lettering.text(label) for label in labels])
    lettering.dress(axes.get_yticklabels())
    axes.invert_yaxis()
    axes.set_xlabel("objects")
    axes.set_title(f"{several_of(found.objects, 'object')} in {several_of(found.pictures, 'picture')}")
    _whole_numbers(axes, "x")
    return _finished(axes, "x", empty=not names)


def scores(
    predictions: Prediction | Iterable[Prediction | ItemError],
    *,
    bins: int = 20,
    top: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Plot how sure the model was: a histogram of scores, each class with its share of the bars.

    Parameters
    ----------
    predictions : iterable of Prediction or ItemError, or one Prediction
        Consumed once, a session as it is; item errors are passed over.
    bins : int
        How many bars from 0 to 1; a score outside is counted in the last one on its side.
    top : int
        How many classes have a colour of their own, the most frequent; the others share one. A legend names
        up to 48.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        With what was drawn.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    ValueError
        If `bins` or `top` is no whole number above 0.
    ProtocolError
        If an object is damaged.
    """
    bins, top = check_number("bins", bins), check_number("top", top)
    _need_matplotlib()
    found, columns = Found(), dict[str, npt.NDArray[np.int64]]()
    for prediction in _read(predictions):
        found.add(prediction)
        places = (np.clip(prediction.scores, 0, 1) * bins).astype(np.int64).clip(0, bins - 1)
        for name in set(prediction.classes):
            counted = np.bincount(places[prediction.classes == name], minlength=bins)
            columns[name] = columns.get(name, 0) + counted
    axes = _axes(ax, 6.4, 3.6)
    edges, base, names = np.linspace(0, 1, bins + 1), np.zeros(bins), found.ranked(top)
    drawn: list[BarContainer | Line2D] = []
    for name in names:
        heights = np.sum([columns[each] for each in found.members(name)], axis=0)
        drawn.append(axes.bar(
            edges[:-1], heights, 1 / bins, base, align="edge", color=found.ink(name), label=found.label(name),
            edgecolor=axes.get_facecolor(), linewidth=0.5,
        ))  # fmt: skip
        base += heights
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.06 * max(base.max(), 1))
    axes.set_xlabel("score")
    axes.set_ylabel("objects")
    axes.set_title(f"Scores of {several_of(found.objects, 'object')}")
    _whole_numbers(axes, "y")
    write_legend(axes, drawn, [found.label(name) for name in names], beside=ax is None)
    return _finished(axes, "y", empty=not found.objects)


def objects_over_time(
    predictions: Prediction | Iterable[Prediction | ItemError], *, top: int = 6, ax: Axes | None = None
) -> Axes:
    """Plot how many objects of each class are in a clip's picture, from its beginning to its end.

    Parameters
    ----------
    predictions : iterable of Prediction or ItemError
        Of the frames of one clip, in order; consumed once. Item errors are passed over.
    top : int
        How many classes have a line of their own, the most frequent; the others share one.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        With what was drawn: seconds from the clip's first frame; frames, where the clip has no clock. Of a
        clip with more frames than a plot has room for, each step of a line is the mean of some in a row.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    ValueError
        If `top` is no whole number above 0, or predictions are of no clip, of several, or out of order.
    """
    top = check_number("top", top)
    _need_matplotlib()
    found, course = Found(), Course()
    for prediction in _read(predictions):
        found.add(prediction)
        course.add(prediction)
    axes = _axes(ax, 7.2, 3.4)
    names = found.ranked(top)
    drawn: list[BarContainer | Line2D] = []
    for name in names:
        heights = course.means(found.members(name))
        drawn += axes.step(
            course.times(), heights, where="post", color=found.ink(name), label=found.label(name),
            linewidth=1.6, zorder=2.5 if name is not None else 1.5, alpha=1 if name is not None else 0.6,
        )  # fmt: skip
    axes.set_xlabel("time [s]" if course.has_clock else "frame")
    axes.set_ylabel("objects" if course.per_bin == 1 else f"objects, mean of {course.per_bin} frames")
    axes.set_title(f"{several_of(found.objects, 'object')} in {several_of(found.pictures, 'frame')}")
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    _whole_numbers(axes, "y")
    write_legend(axes, drawn, [found.label(name) for name in names], beside=ax is None)
    return _finished(axes, "y", empty=not found.objects)


def _read(predictions: Prediction | Iterable[Prediction | ItemError]) -> Iterable[Prediction]:
    """Return the predictions among the outcomes."""
    return (each for each in several(predictions) if not isinstance(each, ItemError))


def _need_matplotlib() -> None:
    """Raise our error where there is no matplotlib: before a session is consumed for nothing."""
    try:
        import matplotlib  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingExtraError("plot", "plotting predictions") from None


def _axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes to draw on."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _whole_numbers(axes: Axes, which: Literal["x", "y"]) -> None:
    """Let an axis of counts have no halves, and thousands with commas."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _cut(axes: Axes, counts: Sequence[int]) -> str:
    """Let the last bar run out of the plot, or the others were a hair's breadth; say so in it."""
    axes.set_xlim(0, _LONGER * counts[0])
    axes.text(
        0.985, len(counts) - 1, f"{counts[-1]:,}, longer than the plot »", fontsize="small",
        transform=axes.get_yaxis_transform(), ha="right", va="center_baseline",
    )  # fmt: skip
    return ""


def _finished(axes: Axes, numbers: Literal["x", "y"], *, empty: bool) -> Axes:
    """Draw lines to read numbers by, take off what says nothing, and say so where there is nothing."""
    axes.grid(axis=numbers, alpha=0.3, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if empty:
        axes.text(0.5, 0.5, "nothing found", transform=axes.transAxes, ha="center", va="center", alpha=0.6)
        axes.set_xticks([])
        axes.set_yticks([])
    return axes
