"""The ``data.yaml`` of YOLO folders: as we write it, and as people and tools do."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from predictions import found

from predsession import SourceError, read_predictions, save_predictions
from predsession.export.yolo_yaml import DataYaml, parse, read_yaml, to_yaml


def test_class_numbers_have_no_gaps(tmp_path: Path) -> None:
    """The model's own; a number that nobody was found for has a name that no class has."""
    names = [f"class_{number}" for number in (0, 1, 3, 4)]
    save_predictions([found(classes=[names[3], names[2]], class_names=names)], tmp_path / "x.jsonl")
    (known,) = read_predictions(tmp_path / "x.jsonl")  # its classes 0 and 1 are not known any more
    save_predictions([known], tmp_path / "x", "yolo")
    told = yaml.safe_load((tmp_path / "x" / "data.yaml").read_text())["names"]
    assert told == {0: "class_0", 1: "class_1", 2: "class_3", 3: "class_4"}
    assert to_yaml(DataYaml({1: "class_0"})).count(b'0: "class_0_"') == 1


@given(st.lists(st.text(max_size=8), unique=True, max_size=4))
def test_names_are_text_to_any_reader(names: list[str]) -> None:
    """PyYAML reads every name as it is, on whatever signs it is made of; so do we."""
    known = dict(enumerate(names))
    text = to_yaml(DataYaml(known))
    assert yaml.safe_load(text)["names"] == known
    entries = parse(text.decode())["names"]
    assert {int(key): name for key, name in entries.items()} == known if names else entries == {}


COCO8 = """
path: ../d # root
train: a
test: # none

# Classes
names:
  0: person
  1: stop sign # red
  2: 'it''s'

download: |
  import os
  x: y
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (COCO8, {0: "person", 1: "stop sign", 2: "it's"}),
        ("names: ['a', \"b\\n\", no, c#d] # all\nnc: 5\n", {0: "a", 1: "b\n", 2: "no", 3: "c#d"}),
        ("names: ['e, f', g h]", {0: "e, f", 1: "g h"}),
        ("names: [a,\n  b,\n  c d\n]\n", {0: "a", 1: "b", 2: "c d"}),
        ("names:\n- a\n- 'b'\nnc: 2\n", {0: "a", 1: "b"}),
        ("names:\n  - a\n  - b: c\n", {0: "a", 1: "b: c"}),
        ("names: {0: a, 1: 'b'}\n", {0: "a", 1: "b"}),
        ('{"names": {"0": "a",\n "1": "b"}}', {0: "a", 1: "b"}),
        ("---\r\nnames:\r\n    0: a\r\n", {0: "a"}),
        ("\ufeffnames:\n  0: \"\\x41\\U0001F600\\e\"\n", {0: "A\U0001f600\x1b"}),
    ],
)  # fmt: skip
def test_names_as_people_write_them(text: str, wanted: dict[int, str], tmp_path: Path) -> None:
    """Maps and lists, in both styles, quoted or not, with comments."""
    (tmp_path / "data.yaml").write_text(text, encoding="utf-8", newline="")
    assert read_yaml(tmp_path / "data.yaml").names == wanted


def test_keypoints_as_people_write_them(tmp_path: Path) -> None:
    """coco8-pose.yaml's way, and a list below."""
    (tmp_path / "data.yaml").write_text(
        "names: [p]\nkpt_shape: [2, 3] # x, y, v\nkpt_names:\n  0:\n    - n\n    - m\n"
    )
    data = read_yaml(tmp_path / "data.yaml")
    assert (data.keypoints, data.numbers, data.keypoint_names) == (2, 3, ["n", "m"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nc: 3\n", "None is no list of names"),
        ("names: a\n", "'a' is no list of names"),
        ("names: [a, [b]]\n", "is no list of names"),
        ("names: [a, 'b\n", "does not end"),
        ("names: [a] b\n", "goes on behind its end"),
        ("names: {a}\n", "a key without a value"),
        ("names: {0: a 1: b}\n", "no comma where one belongs"),
        ("names: [}\n", "no value where one belongs"),
        ("names:\n  x: a\n", "invalid literal"),
        ("just text\n", "is no `name: value`"),
        ("names:\n  - a\n b: c\n", "is no `name: value`"),
        ("names: [a]\nkpt_shape: [17]\n", r"kpt_shape: \[17\] is not"),
        ("names: [a]\nkpt_shape: 17\n", "'17' is no list"),
        ("[" * 100_000, "data.yaml: "),
        ("names: " + "[" * 100_000, "data.yaml: "),
    ],
)
def test_damaged_descriptions(text: str, said: str, tmp_path: Path) -> None:
    """Are an error that names the file."""
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(SourceError, match=said) as caught:
        list(read_predictions(tmp_path, "yolo"))
    assert str(tmp_path / "data.yaml") in str(caught.value)
