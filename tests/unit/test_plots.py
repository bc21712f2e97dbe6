"""Plots of predictions: what the bars and lines say, on matplotlib without a screen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager
from matplotlib.axes import Axes

import predsession
from predsession import ItemError, Prediction, plots
from predsession.errors import MissingExtraError
from predsession.plots import lettering

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
    axes.figure.canvas.draw()
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
    assert plot([frame(0, [1])], ax=axes) is axes
    empty = drawn(plot([]))
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
    for wrong in (0, True, 2.5, "3"):
        with pytest.raises(ValueError, match="top must be"):
            plots.classes([], top=wrong)
    with pytest.raises(ValueError, match="bins must be"):
        plots.scores([], bins=0)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    source = iter([frame(0, [1])])
    with pytest.raises(MissingExtraError, match=r"predsession\[plot\]"):
        plots.classes(source)
    assert next(source)


def test_one_prediction_and_numpy_s_numbers() -> None:
    """A prediction alone is as good as a list of it; a number of NumPy's as good as one of Python's."""
    assert bars(plots.classes(frame(0, [3, 3, 5]), top=np.int64(1))) == {"class 3": 2, "class 5": 1}
    assert plots.objects_over_time(frame(0, [1])).get_lines()


@pytest.mark.parametrize(
    ("plot", "title"),
    [
        (plots.classes, "1 object in 1 picture"),
        (plots.scores, "Scores of 1 object"),
        (plots.objects_over_time, "1 object in 1 frame"),
    ],
)
def test_one_is_not_several(plot: Callable[..., Axes], title: str) -> None:
    """Titles count in the singular, too."""
    assert plot(frame(0, [1], scores=[0.5])).get_title() == title


@pytest.mark.parametrize("plot", [plots.scores, plots.objects_over_time])
def test_a_legend_within_covers_nothing(plot: Callable[..., Axes]) -> None:
    """In narrow axes of the caller's, it stands above the highest bar or line."""
    _, (_, axes) = plt.subplots(1, 2, figsize=(6, 3))
    frames = [frame(index, [0, 1, 2, 3, 4], scores=[0.9] * 5) for index in range(20)]
    plot(frames, ax=axes)
    legend = axes.get_legend()
    assert legend is not None
    lowest = axes.transData.inverted().transform(legend.get_window_extent())[0][1]
    highest = max([each.get_y() + each.get_height() for each in axes.patches] or [1.0])
    assert lowest > highest


@pytest.mark.parametrize("plot", [plots.scores, plots.objects_over_time])
@pytest.mark.parametrize("own", [False, True])
def test_a_legend_names_every_class(plot: object, own: bool) -> None:
    """A class may begin with a line; its colour is that of what was drawn for it."""
    p = replace(
        Prediction.from_arrays(
            size=(64, 48), boxes=[[1, 1, 9, 9]] * 3, classes=["_one", "two", "_one"], frame_index=0
        ),
        timestamp=0.0,
    )
    axes = drawn(plot([p], ax=plt.subplots()[1] if own else None))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["_one", "two"]
    colors = [p.meta.color(name) for name in ("_one", "two")]
    handles = [
        each.get_facecolor() if hasattr(each, "get_facecolor") else mpl.colors.to_rgb(each.get_color())
        for each in axes.get_legend().legend_handles
    ]
    assert [tuple(round(255 * part) for part in each[:3]) for each in handles] == colors


@pytest.mark.parametrize(
    ("plot", "top"), [(plots.scores, 40), (plots.objects_over_time, 16), (plots.objects_over_time, 79)]
)
def test_a_long_legend_has_room(plot: object, top: int) -> None:
    """Columns, and a wider figure: it is drawn whole, beside axes that are no smaller; at most 48 lines."""
    names = [f"a class with a long name {number}" for number in range(80)]
    p = Prediction.from_arrays(
        size=(64, 48), boxes=[[1, 1, 9, 9]] * 80, class_ids=range(80), class_names=names, frame_index=0
    )
    axes = drawn(plot([p], top=top))
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(texts) == min(top + 1, 48)
    assert (texts[-1] == "and 33 more") is (top == 79)
    box, figure = axes.get_legend().get_window_extent(), axes.figure.bbox
    assert box.x1 <= figure.x1 + 1
    assert box.y0 >= figure.y0 - 1
    assert axes.get_window_extent().width >= 300


def test_a_bar_of_others_leaves_room_for_the_classes() -> None:
    """200 classes alike: each is a bar that can be seen; the others' runs out of the plot, and says so."""
    p = Prediction.from_arrays(
        size=(64, 48),
        boxes=[[1, 1, 9, 9]] * 400,
        class_ids=[*range(200)] * 2,
        class_names=map(str, range(200)),
    )
    axes = drawn(plots.classes([p]))
    assert bars(axes)["180 others"] == 360
    assert axes.get_xlim()[1] == 5
    assert [text.get_text() for text in axes.texts].count("360, longer than the plot »") == 1
    assert drawn(plots.classes([p], top=199)).get_xlim()[1] < 3


def test_a_course_is_of_one_clip_in_order() -> None:
    """A second clip, a frame twice, a clock that runs back: a line would run back, and nothing is drawn."""
    for wrong in (
        [replace(frame(0, [1]), name="a.mp4"), replace(frame(1, [1]), name="a.mp4"), frame(0, [1])],
        [frame(1, [1]), frame(1, [1])],
        [frame(5, [1]), replace(frame(6, [1]), timestamp=0.1)],
    ):
        with pytest.raises(ValueError, match="frames of one clip, in order"):
            plots.objects_over_time(wrong)


WIDE = ["人", "车", "plain"]


def test_names_in_signs_that_no_font_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written as numbers, which tell them apart; matplotlib warns of nothing."""
    monkeypatch.setattr(lettering, "_WIDE", ())
    p = Prediction.from_arrays(size=(64, 48), boxes=[[1, 1, 9, 9]] * 3, classes=WIDE, frame_index=0)
    assert set(bars(drawn(plots.classes([p])))) == {r"\u4eba", r"\u8f66", "plain"}
    for plot in (plots.scores, plots.objects_over_time):
        texts = drawn(plot([p])).get_legend().get_texts()
        assert {text.get_text() for text in texts} == {r"\u4eba", r"\u8f66", "plain"}


def test_names_in_signs_that_a_font_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used for what the usual ones have not, and names stay as they are."""
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "one", "two"])
    builder.setupCharacterMap({ord("人"): "one", ord("车"): "two"})
    pen = TTGlyphPen(None)
    for point in ((0, 0), (500, 0), (500, 500)):
        (pen.lineTo if point != (0, 0) else pen.moveTo)(point)
    pen.closePath()
    builder.setupGlyf(dict.fromkeys((".notdef", "one", "two"), pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys((".notdef", "one", "two"), (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "Noto Sans CJK Test", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "test.ttf")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", list(font_manager.fontManager.ttflist))
    font_manager.fontManager.addfont(tmp_path / "test.ttf")
    p = Prediction.from_arrays(size=(64, 48), boxes=[[1, 1, 9, 9]] * 3, classes=WIDE)
    assert set(bars(drawn(plots.classes([p])))) == set(WIDE)
    drawn(plots.scores([p]))
