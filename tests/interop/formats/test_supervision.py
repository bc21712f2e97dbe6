"""A prediction in supervision: with OpenCV, which most of its users have, and with its makers' trackers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from interop.formats.conftest import Theirs

from predsession import Prediction, save_predictions


def frames(count: int) -> list[Prediction]:
    """Return frames in which two objects move a little."""
    return [
        Prediction.from_arrays(
            size=(640, 480),
            boxes=np.array([[10, 10, 60, 90], [300, 200, 400, 300]]) + 3 * index,
            scores=[0.9, 0.8],
            classes=["person", "car"],
            index=index + 2,
            frame_index=index,
        )
        for index in range(count)
    ]


def test_supervision_takes_what_we_make(theirs: Theirs, tmp_path: Path) -> None:
    """Annotators draw, areas are those of the masks, slices and merges keep rows, and tracks hold."""
    masks = np.zeros((2, 48, 64), np.bool_)
    masks[0, 5:25, 10:30] = masks[1, 30:40, 40:60] = True
    masked = Prediction.from_arrays(
        size=(64, 48), masks=masks, scores=[0.9, 0.4], classes=["cat", "dog"], track_ids=[3, -1]
    )
    nothing = Prediction.from_arrays(size=(64, 48), index=1)
    path = tmp_path / "predictions.jsonl"
    save_predictions([masked, nothing, *frames(5)], path)
    said = theirs("their_supervision.py", path)
    assert isinstance(said, dict)
    assert said["opencv"]
    assert all(said["masked"].values())
    assert not any(said["nothing"].values())
    assert said["areas"] == [400, 200]
    assert said["names"] == ["cat"]
    assert said["merged"] == 10
    assert said["nms"] == 2
    last = said["tracks"][-1]
    assert len(set(last)) == 2
    assert min(last) >= 0
