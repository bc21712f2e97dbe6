"""Our Pascal VOC, read by supervision, and its own by us."""

from __future__ import annotations

from pathlib import Path

from interop.formats.conftest import Theirs
from PIL import Image

from predsession import Prediction
from predsession.export.reading import read_predictions
from predsession.export.saving import save_predictions

BOXES = [[0.0, 0.0, 10.0, 10.0], [3.0, 4.0, 64.0, 48.0]]


def test_supervision_reads_the_same_boxes(theirs: Theirs, tmp_path: Path) -> None:
    """Its pixels are numbered from 1 as ours are: whole boxes are the same, those at the edge as well."""
    (tmp_path / "in").mkdir()
    many = []
    found = {"size": (64, 48), "boxes": BOXES, "scores": [0.1, 0.9], "classes": ["cat", "a&b<c>"]}
    for index, name in enumerate(("1.png", "2.jpg")):
        Image.new("RGB", (64, 48)).save(tmp_path / "in" / name)
        path = tmp_path / "in" / name
        many.append(Prediction.from_arrays(path=path, index=index, **found))
    many.append(Prediction.from_arrays(size=(64, 48), path=tmp_path / "in" / "2.jpg", name="3", index=2))
    save_predictions(many, tmp_path / "out", "voc", images="copy")
    expected = [["cat", BOXES[0]], ["a&b<c>", BOXES[1]]]
    assert theirs("their_annotations.py", "voc", tmp_path / "out") == {
        "1.png": expected, "2.jpg": expected, "2_2.jpg": [],
    }  # fmt: skip
    assert [each.boxes.tolist() for each in read_predictions(tmp_path / "out")] == [BOXES, BOXES, []]
