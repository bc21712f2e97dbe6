"""Our client, their server: one object of every geometry they have, against their own classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interop.pictures import write_pictures
from interop.their_server import TheirServer, Truth

from predsession import Prediction, PredictionSession
from predsession.wire.geometry import box_around, slanted_corners

KINDS = [
    "rectangle",
    "bitmap",
    "polygon",
    "line",
    "point",
    "alpha_mask",
    "cuboid",
    "any",
    "oriented_bbox",
    "graph",
]


@pytest.fixture(scope="module")
def pairs(zoo: TheirServer, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Prediction, Truth]]:
    """Predictions of a few pictures, each beside what the model answers when it is called directly."""
    paths = write_pictures(tmp_path_factory.mktemp("zoo"), 5)
    with PredictionSession(zoo.url, paths) as session:
        predictions = [one for one in session if isinstance(one, Prediction)]
    return list(zip(predictions, zoo.direct(paths), strict=True))


def test_the_annotation(pairs: list[tuple[Prediction, Truth]]) -> None:
    """It is theirs to the letter; no two pictures have the same."""
    for prediction, truth in pairs:
        assert prediction.annotation == truth.annotation
    assert len({str(truth.annotation) for _, truth in pairs}) > 1


def test_names_scores_and_kinds(pairs: list[tuple[Prediction, Truth]]) -> None:
    """Classes and scores as their client shows them; the kind is the geometry's own."""
    for prediction, truth in pairs:
        assert list(prediction.classes) == truth.classes == KINDS
        np.testing.assert_array_equal(prediction.scores, np.array(truth.scores, np.float32))
        assert list(prediction.shapes) == ["rectangle" if kind == "any" else kind for kind in KINDS]


def test_boxes(pairs: list[tuple[Prediction, Truth]]) -> None:
    """Theirs, made half-open. Two are more exact than theirs: see the next test."""
    for prediction, truth in pairs:
        top, left, bottom, right = truth.boxes.T
        whole = np.stack([left, top, right + 1, bottom + 1], axis=1)
        same = [row for row, kind in enumerate(KINDS) if kind not in ("oriented_bbox", "graph")]
        np.testing.assert_array_equal(prediction.boxes[same], whole[same])


def test_boxes_around_turned_boxes_and_skeletons(pairs: list[tuple[Prediction, Truth]]) -> None:
    """Around the corners as they are turned, and around the nodes that are visible.

    Their client gives the box before it is turned, and counts nodes that are disabled.
    """
    for prediction, truth in pairs:
        objects = {one["classTitle"]: one for one in truth.annotation["objects"]}
        (left, top), (right, bottom) = objects["oriented_bbox"]["points"]
        turned = slanted_corners((left, top, right + 1, bottom + 1), objects["oriented_bbox"]["angle"])
        (x1, y1), (x2, y2) = np.min(turned, axis=0), np.max(turned, axis=0)
        box = prediction.boxes[KINDS.index("oriented_bbox")]
        np.testing.assert_allclose(box, [x1, y1, x2, y2], rtol=1e-6)
        visible = [node["loc"] for node in objects["graph"]["nodes"].values() if not node.get("disabled")]
        np.testing.assert_array_equal(prediction.boxes[KINDS.index("graph")], box_around(visible))


def test_masks(pairs: list[tuple[Prediction, Truth]]) -> None:
    """A bitmap's, and an alpha mask's, which is one where it is not 0."""
    for prediction, truth in pairs:
        for kind, theirs in zip(("bitmap", "alpha_mask"), truth.masks, strict=True):
            assert theirs.any()
            np.testing.assert_array_equal(prediction.masks[KINDS.index(kind)], theirs)


def test_points(pairs: list[tuple[Prediction, Truth]]) -> None:
    """Outlines, holes, lines, corners and nodes are the points that the server sent."""
    for prediction, truth in pairs:
        objects: dict[str, Any] = {one["classTitle"]: one for one in truth.annotation["objects"]}
        ring, hole = prediction.polygons[KINDS.index("polygon")]
        np.testing.assert_array_equal(ring, objects["polygon"]["points"]["exterior"])
        np.testing.assert_array_equal(hole, objects["polygon"]["points"]["interior"][0])
        line = prediction.lines[KINDS.index("line")]
        np.testing.assert_array_equal(line, objects["line"]["points"]["exterior"])
        faces = prediction.outlines[KINDS.index("cuboid")]
        corners = np.array(objects["cuboid"]["points"])
        for face, numbers in zip(faces, objects["cuboid"]["faces"], strict=True):
            np.testing.assert_array_equal(face, corners[numbers])
        keypoints = prediction.keypoints[KINDS.index("graph")]
        nodes = objects["graph"]["nodes"]
        for key, (x, y, visible) in zip(prediction.keypoint_ids, keypoints, strict=True):
            if key in nodes:
                assert [x, y, bool(visible)] == [*nodes[key]["loc"], not nodes[key].get("disabled")]
        assert sum(key in nodes for key in prediction.keypoint_ids) == 3
