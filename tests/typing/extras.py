"""What gives other packages' types, as a type checker sees it: apart, since without those nobody knows them.

Only checked, never run, and by `mypy tests/typing` alone: the installed wheel is checked without any extra.
"""

from __future__ import annotations

from predsession import Prediction, plots, to_pandas


def go_on(predictions: list[Prediction]) -> None:
    """Tables, detections, plots."""
    to_pandas(predictions).head()
    predictions[0].to_pandas().groupby("class")
    predictions[0].to_supervision(masks="compact").with_nms()
    axes = plots.classes(predictions, top=5)
    plots.scores(predictions, bins=10, ax=axes)
    plots.objects_over_time(predictions, top=3).set_title("a clip")
