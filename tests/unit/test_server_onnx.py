"""ONNX detectors by description: every kind of output, with networks made here byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from onnx_maker import YOLOV8, described

from predsession.server.models.card import ModelLoadError
from predsession.server.models.onnx import read_description

SETTINGS = {"conf": 0.25, "iou": 0.5, "max_objects": 10}
KINDS = {
    "yolov8": ({"out": YOLOV8.T}, ""),
    "yolov5": ({"out": np.insert(YOLOV8, 4, 1.0, axis=1)}, ""),
    "end2end": ({"out": np.array([[8, 4, 24, 12, 0.9, 0], [36, 16, 44, 24, 0.1, 1]], np.float32)}, ""),
    "separate": (
        {
            "b": np.array([[8, 4, 24, 12], [36, 16, 44, 24]], np.float32),
            "s": np.array([0.9, 0.1], np.float32),
            "l": np.array([0, 1], np.float32),
        },
        'boxes = "b"\nscores = "s"\nlabels = "l"\n',
    ),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_kinds_of_output(tmp_path: Path, kind: str) -> None:
    """Each kind gives the same box in the picture's own pixels: here twice the network's."""
    outputs, names = KINDS[kind]
    model = read_description(described(tmp_path, outputs, f'[output]\nkind = "{kind}"\n{names}'))
    model.load()
    (found,) = model.predict([np.zeros((64, 128, 3), np.uint8)], SETTINGS)
    assert np.asarray(found["boxes"]).round(3).tolist() == [[16, 8, 48, 24]]
    assert np.asarray(found["class_ids"]).tolist() == [0]
    assert np.asarray(found["scores"]).tolist() == pytest.approx([0.9])


def test_letterbox_and_normalized(tmp_path: Path) -> None:
    """Letterboxed, both sides have one scale; stretched, each its own; normalized boxes count in 0..1."""
    more = "letterbox = false\n[output]\nnormalized = true\n"
    scaled = YOLOV8.copy()
    scaled[:, :4] /= [64, 32, 64, 32]
    model = read_description(described(tmp_path, {"out": scaled.T}, more))
    model.load()
    (found,) = model.predict([np.zeros((32, 32, 3), np.uint8)], SETTINGS)
    assert np.asarray(found["boxes"]).round(3).tolist() == [[4, 4, 12, 12]]
    model = read_description(described(tmp_path, {"out": YOLOV8.T}))
    model.load()
    (found,) = model.predict([np.zeros((64, 64, 3), np.uint8)], SETTINGS)
    assert np.asarray(found["boxes"]).round(3).tolist() == [[16, 8, 48, 24]]


def test_fixed_batch_is_filled_up(tmp_path: Path) -> None:
    """A network of batch 4 takes 3 pictures and answers 3; its batch is the model's."""
    model = read_description(described(tmp_path, {"out": YOLOV8.T}, batch=4))
    model.load()
    assert model.max_batch_size == 4
    assert len(model.predict([np.zeros((32, 64, 3), np.uint8)] * 3, SETTINGS)) == 3


def test_overlaps_are_suppressed_unless_told_otherwise(tmp_path: Path) -> None:
    """Two boxes on one cat are one object; with nms = false they are two."""
    twice = np.vstack([YOLOV8[:1], YOLOV8[:1]])
    for more, count in (("", 1), ("[output]\nnms = false\n", 2)):
        model = read_description(described(tmp_path, {"out": twice.T}, more))
        model.load()
        (found,) = model.predict([np.zeros((32, 64, 3), np.uint8)], SETTINGS)
        assert len(np.asarray(found["boxes"])) == count


def test_classes_from_a_file(tmp_path: Path) -> None:
    """Class names may be in a file, one a line; settings of the description are the defaults."""
    path = described(tmp_path, {"out": YOLOV8.T}, "[settings]\nconf = 0.7\n")
    (tmp_path / "names.txt").write_text("cat\ndog\n\n")
    path.write_text(path.read_text().replace('["cat", "dog"]', '"names.txt"'))
    model = read_description(path)
    assert model.classes == ("cat", "dog")
    assert model.default_settings == {"conf": 0.7, "iou": 0.5, "max_objects": 300}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('file = "net.onnx"', 'file = "other.onnx"', "other.onnx"),
        ('file = "net.onnx"\n', "", "'file'"),
        ("size =", "sise =", "input.sise is no key"),
        ("size = [64, 32]", "size = [64, 32, 3]", "net.toml"),
        ("size = [64, 32]", 'color = "gbr"', "'gbr'"),
        ("size = [64, 32]", 'size = 64\n[output]\nkind = "ssd"', "'ssd'"),
        ('["cat", "dog"]', "3", "classes must be"),
        ("[input]", "[input", "cannot read"),
    ],
)
def test_mistakes_in_a_description(tmp_path: Path, old: str, new: str, words: str) -> None:
    """A mistake is an error that names the file and the key."""
    path = described(tmp_path, {"out": YOLOV8.T})
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ModelLoadError) as caught:
        read_description(path)
    assert words in str(caught.value)
    assert "net.toml" in str(caught.value)


def test_bytes_of_a_network_are_checked_by_the_library(tmp_path: Path) -> None:
    """The networks made here are real ones: onnxruntime refuses a damaged one."""
    path = described(tmp_path, {"out": YOLOV8.T})
    (tmp_path / "net.onnx").write_bytes(struct.pack("<I", 7) * 9)
    with pytest.raises(Exception, match=r"net\.onnx|protobuf|INVALID"):
        read_description(path).load()


@pytest.mark.parametrize(
    ("kind", "shape", "words"),
    [
        ("yolov8", (7, 5), r"its output is \[7, 5\]; of kind yolov8 with 2 classes it is \[6, N\]"),
        ("yolov5", (5, 6), r"of kind yolov5 with 2 classes it is \[N, 7\]"),
        ("end2end", (5, 4), "does not fit its description: IndexError"),
        ("separate", (5, 4), "does not fit its description: KeyError"),
    ],
)
def test_output_that_does_not_fit_is_found_at_load(
    tmp_path: Path, kind: str, shape: tuple[int, int], words: str
) -> None:
    """A network whose output is not of the described kind, or has other classes, does not load."""
    outputs = {"out": np.zeros(shape, np.float32)}
    model = read_description(described(tmp_path, outputs, f'[output]\nkind = "{kind}"'))
    with pytest.raises(ModelLoadError, match=words):
        model.load()
