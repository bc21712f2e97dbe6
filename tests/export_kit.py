"""Predictions of any kind, for tests of formats. Importable as ``import export_kit`` (``pythonpath``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from predsession import Prediction
from predsession.wire.geometry import MaskCrop

number = st.floats(-50, 90)
masks = st_numpy.arrays(np.bool_, st.tuples(st.just(9), st.just(7)))


@st.composite
def anything(draw: st.DrawFn) -> Prediction:
    """Make a prediction of masks, polygons, or boxes with keypoints."""
    rows = draw(st.integers(0, 3))
    lists = {"min_size": rows, "max_size": rows}
    kind = draw(st.sampled_from(["masks", "polygons", "keypoints"]))
    text = st.text(max_size=5)
    ring = st.lists(st.tuples(number, number), min_size=3, max_size=6).map(np.array)
    values: dict[str, Any] = {
        "masks": draw(st.lists(masks.map(lambda mask: MaskCrop(3, 2, mask)), **lists)),
        "polygons": draw(st.lists(ring, **lists)),
        "keypoints": np.array(
            draw(st.lists(st.tuples(st.tuples(number, number, st.sampled_from([0, 1]))), **lists))
        ).reshape(rows, 1, 3),
    }
    return Prediction.from_arrays(
        size=(64, 48),
        **{kind: values[kind]},
        boxes=[[1.25, 2, 9.5, 8]] * rows if draw(st.booleans()) or not rows else None,
        scores=draw(st.none() | st.lists(st.floats(0, 1), **lists)),
        classes=draw(st.lists(text, **lists)),
        tags=draw(st.dictionaries(text, st.none() | text | st.floats(0, 1), max_size=2)),
        track_ids=draw(st.lists(st.integers(0, 99), **lists)) if rows and draw(st.booleans()) else None,
        path=draw(st.none() | st.just("photos/1.jpg")),
        name=draw(text),
        url=draw(st.none() | text),
        index=draw(st.integers(0, 99)),
        data={"more": [1]},
    )
