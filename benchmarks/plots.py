"""Draw the pictures of docs/benchmarks.md from what was measured.

    .venv-bench/bin/python -m benchmarks.plots FILE [--to docs/images]

``FILE`` is what ``scripts/bench growth --json FILE`` wrote; the timeline is measured here and now.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.timeline import IMAGES, LOOP, MODEL, Timeline, record
from predsession.wire.jsontypes import JSONObject, as_list, as_object

INK, BLUE, ORANGE, GREEN, GRAY = "#22303c", "#2f6db5", "#d9822b", "#3a8f5c", "#9aa5b1"
_COUNT = re.compile(r"([\d,]+) tiny images(, memory)?; bare loop$")


def main() -> None:
    """Draw both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plots")
    parser.add_argument("file", type=Path)
    parser.add_argument("--to", type=Path, default=Path("docs/images"))
    args = parser.parse_args()
    mpl.rcParams.update({
        "font.size": 9, "axes.edgecolor": GRAY, "axes.labelcolor": INK, "text.color": INK,
        "xtick.color": INK, "ytick.color": INK, "svg.hashsalt": "predsession", "axes.titlesize": 10,
    })  # fmt: skip
    draw_growth(json.loads(args.file.read_text()), args.to / "growth.svg")
    draw_timeline(record(), args.to / "timeline.svg")


def draw_growth(found: JSONObject, target: Path) -> None:
    """Draw time and memory against the number of images.

    Parameters
    ----------
    found : JSON object
        What ``scripts/bench --json`` wrote; the case ``growth`` must be in it.
    target : Path
        The picture.
    """
    figure, (time, memory) = plt.subplots(1, 2, figsize=(8.2, 3.4), layout="constrained")
    _curves(time, found, memory=False)
    _curves(memory, found, memory=True)
    time.set(xscale="log", yscale="log", title="Time to the last prediction", ylabel="seconds")
    memory.set(xscale="log", title="Memory of the run", ylabel="MB")
    memory.set_ylim(0, max(10.0, memory.get_ylim()[1] * 1.15))
    counts, seconds = _series(found, "ours", memory=False)
    slope = [seconds[1] * count / counts[1] for count in counts[1:]]
    time.plot(counts[1:], slope, color=GRAY, linewidth=1, linestyle=":", label="proportional", zorder=1)
    for axes in (time, memory):
        axes.set_xlabel("tiny images")
        axes.grid(color=GRAY, alpha=0.25, linewidth=0.6)
        axes.legend(frameon=False, loc="upper left")
        axes.spines[["top", "right"]].set_visible(False)
    _save(figure, target)


def _curves(axes: Axes, found: JSONObject, *, memory: bool) -> None:
    """Draw ours and the bare loop's."""
    for who, label, color, mark in (("ours", "predsession", BLUE, "o"), ("peer", "bare loop", ORANGE, "s")):
        counts, values = _series(found, who, memory=memory)
        axes.plot(counts, values, color=color, marker=mark, markersize=4.5, linewidth=1.6, label=label)


def _series(found: JSONObject, who: str, *, memory: bool) -> tuple[list[int], list[float]]:
    """Return the counts, and a figure for each."""
    pairs = []
    for row in map(as_object, as_list(found["rows"])):
        match = _COUNT.fullmatch(str(row["what"])) if row["case"] == "growth" else None
        if match and bool(match[2]) == memory:
            pairs.append((int(match[1].replace(",", "")), float(str(row[who]))))
    return [count for count, _ in pairs], [value for _, value in pairs]


def draw_timeline(timeline: Timeline, target: Path) -> None:
    """Draw when uploads, the model, polls and the caller's loop were busy.

    Parameters
    ----------
    timeline : Timeline
        Of one run.
    target : Path
        The picture.
    """
    figure, axes = plt.subplots(figsize=(8.2, 2.9), layout="constrained")
    lanes = (
        ("upload", timeline.upload, BLUE),
        ("inference", timeline.inference, ORANGE),
        ("poll", timeline.poll, GRAY),
        ("consume", timeline.consume, GREEN),
    )
    for place, (_, spans, color) in enumerate(lanes):
        bars = [(began, ended - began) for began, ended in spans]
        axes.broken_barh(bars, (place - 0.36, 0.72), facecolors=color, edgecolors="white", linewidth=0.35)
    axes.set_yticks(range(len(lanes)), [name for name, _, _ in lanes])
    axes.invert_yaxis()
    axes.set_xlim(0, max(ended for _, spans, _ in lanes for _, ended in spans) * 1.01)
    axes.set_xlabel("seconds from the session's making")
    axes.set_title(
        f"{IMAGES} photos of 195 kB, a model of {MODEL * 1e3:.0f} ms, a loop of {LOOP * 1e3:.0f} ms",
        loc="left",
    )
    axes.grid(axis="x", color=GRAY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, target)


def _save(figure: Figure, target: Path) -> None:
    """Write a picture; without a date, so that the same data give the same file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    plt.close(figure)


if __name__ == "__main__":
    main()
