"""Plots of predictions: what the bars and lines say, on matplotlib without a screen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

import predsession
from predsession import ItemError, Prediction, plots
from predsession.errors import MissingExtraError

NAMES = [f"class {number}" for number in range(80)]


@pytest.fixture(autouse=True)
def headless() -> Iterator[None]:
    """No window, and no figure that is left open."""
    mpl.use("Agg")
    yield
    plt.close("all")


def frame(index: int, ids: list[int], *, clock: bool = True, scores: list[float] | None = None) -> Prediction:
    """Return a frame of a clip with ten frames a second."""
    made = Prediction.from_arrays(
        size=(64, 48),
        boxes=np.tile([1, 1, 9, 9], (len(ids), 1)),
        class_ids=ids,
        class_names=NAMES,
        scores=scores,
        frame_index=index,
        index=index,
    )
    return replace(made, timestamp=index / 10) if clock else made


def bars(axes: Axes) -> dict[str, int]:
    """Return the lengths of level bars by their labels."""
    labels = [label.get_text() for label in axes.get_yticklabels()]
    return dict(zip(labels, [round(bar.get_width()) for bar in axes.patches], strict=True))


def drawn(axes: Axes) -> Axes:
    """Draw the whole figure: what matplotlib warns of is an error here."""
    axes.figure.canvas.draw()  # type: ignore[union-attr]
    return axes


def test_classes_are_counted_and_ranked() -> None:
    """A bar a class, the most frequent on top, in the model's colours; item errors count nothing."""
    outcomes = [frame(0, [3, 3, 5]), ItemError("bad"), frame(1, [3]), frame(2, [])]
    axes = drawn(plots.classes(iter(outcomes)))
    assert list(bars(axes).items()) == [("class 3", 3), ("class 5", 1)]
    assert axes.get_title() == "4 objects in 3 pictures"
    assert axes.get_xlabel() == "objects"
    color = outcomes[0].meta.color("class 3")
    assert tuple(round(255 * part) for part in axes.patches[0].get_facecolor()[:3]) == color


def test_many_classes_share_a_bar() -> None:
    """Beyond top the rest is one bar, unless it would stand for a single class."""
    everything = frame(0, [*range(80), 7, 7, 9])
    assert bars(drawn(plots.classes([everything], top=2))) == {"class 7": 3, "class 9": 2, "78 others": 78}
    assert len(bars(plots.classes([everything], top=79))) == 80


def test_scores_stack_up_to_all_objects() -> None:
    """Each class's bars have its objects, one in each place of its score; those at the ends are not lost."""
    axes = drawn(plots.scores([frame(0, [0, 0, 1], scores=[0.0, 0.95, 1.0])], bins=10))
    heights = {each.get_label(): [round(bar.get_height()) for bar in each] for each in axes.containers}
    assert heights == {"class 0": [1, *[0] * 8, 1], "class 1": [*[0] * 9, 1]}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("score", "objects")


@pytest.mark.parametrize(("clock", "label", "end"), [(True, "time [s]", 0.3), (False, "frame", 3)])
def test_objects_over_time(clock: bool, label: str, end: float) -> None:
    """A line a class, a step a frame, to the end of the last one; in frames where there is no clock."""
    axes = drawn(plots.objects_over_time(frame(index, [0] * index + [1], clock=clock) for index in range(3)))
    lines = {line.get_label(): line.get_ydata().tolist() for line in axes.get_lines()}
    assert lines == {"class 0": [0, 1, 2, 2], "class 1": [1, 1, 1, 1]}
    assert axes.get_xlabel() == label
    assert axes.get_lines()[0].get_xdata()[-1] == pytest.approx(end)


def test_a_long_clip_keeps_its_mean_and_its_length() -> None:
    """Thousands of frames are a few steps: of the same height, and over the same time."""
    axes = drawn(plots.objects_over_time(frame(index, [0, 0]) for index in range(2_000)))
    (line,) = axes.get_lines()
    assert len(line.get_xdata()) < 200
    assert set(line.get_ydata()) == {2.0}
    assert line.get_xdata()[-1] == pytest.approx(200)
    assert "mean of" in axes.get_ylabel()


@pytest.mark.parametrize("plot", [plots.classes, plots.scores, plots.objects_over_time])
def test_every_plot_takes_axes_and_nothing(plot: object) -> None:
    """Axes that are handed in are used and returned; nothing found is said, not an error."""
    axes = plt.subplots()[1]
    assert plot([frame(0, [1])], ax=axes) is axes  # type: ignore[operator]
    empty = drawn(plot([]))  # type: ignore[operator]
    assert [text.get_text() for text in empty.texts] == ["nothing found"]


def test_names_are_only_text() -> None:
    """A dollar sign begins no formula, a line break no line, and a name without end is cut."""
    p = Prediction.from_arrays(size=(9, 9), boxes=[[1, 1, 2, 2]] * 3, classes=["$\\frac", "a\nb", "x" * 500])
    labels = set(bars(drawn(plots.classes([p]))))
    assert "a b" in labels
    assert max(map(len, labels)) < 40


def test_plots_come_with_the_package() -> None:
    """`import predsession` is enough; the module is imported when it is used."""
    assert predsession.__getattr__("plots") is plots


def test_what_cannot_be_plotted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures have no time, no class is no number of classes; without matplotlib nothing is consumed."""
    with pytest.raises(ValueError, match="no frame of a clip"):
        plots.objects_over_time([Prediction.from_arrays(size=(9, 9))])
    with pytest.raises(ValueError, match="top must be"):
        plots.classes([], top=0)
    with pytest.raises(ValueError, match="bins must be"):
        plots.scores([], bins=0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    source = iter([frame(0, [1])])
    with pytest.raises(MissingExtraError, match=r"predsession\[plot\]"):
        plots.classes(source)
    assert next(source)
