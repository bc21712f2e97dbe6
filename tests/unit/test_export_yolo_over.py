"""YOLO folders that are written over, gone on with, or left by a run that was killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from predictions import found
from yolo_kit import body, picture, texts, theirs

from predsession import ItemError, Prediction, SourceError, read_predictions, save_predictions
from predsession.export.target import Existing, Target
from predsession.export.yolo import Task, YoloWriter
from predsession.export.yolo_reading import read_yolo
from predsession.export.yolo_yaml import read_yaml


def test_a_killed_run_leaves_a_folder_that_can_be_read(tmp_path: Path) -> None:
    """data.yaml names every class that a label has, at any time; a new run needs to be told to overwrite."""

    def broken() -> object:
        yield found(classes=["a", "b"], path="1.jpg")
        assert yaml.safe_load((tmp_path / "x" / "data.yaml").read_text())["names"] == {0: "a", 1: "b"}
        yield found(classes=["c", "b"], path="2.jpg", index=1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_predictions(broken(), tmp_path / "x", "yolo")
    with (tmp_path / "x" / "predsession.jsonl").open("ab") as file:
        file.write(b'{"label":"labels/3.txt","wid')
    again = list(read_predictions(tmp_path / "x"))
    assert [each.classes.tolist() for each in again] == [["a", "b"], ["c", "b"]]
    with pytest.raises(SourceError, match="is not empty"):
        save_predictions([found()], tmp_path / "x", "yolo")
    save_predictions([again[0]], tmp_path / "x", "yolo", overwrite=True)
    assert next(read_predictions(tmp_path / "x")) == again[0]


def test_what_stays_in_a_folder_keeps_its_meaning(tmp_path: Path) -> None:
    """One of three is written again, as another class: the others stay, with or without pictures."""
    for how in (None, "copy"):
        root = tmp_path / str(how)
        some = [
            found(classes=["cat", "cat"], path=picture(root / "in" / f"{name}.png"), index=index)
            for index, name in enumerate("abc")
        ]
        save_predictions(some, root / "x", "yolo", images=how)
        dog = found(classes=["dog", "cow"], class_names=["dog", "cow"], path=some[0].path)
        save_predictions([dog], root / "x", "yolo", images=how, overwrite=True)
        again = {each.name: each for each in read_predictions(root / "x")}
        assert {name: each.classes.tolist() for name, each in again.items()} == {
            "a.png": ["dog", "cow"], "b.png": ["cat", "cat"], "c.png": ["cat", "cat"]
        }  # fmt: skip
        told = yaml.safe_load((root / "x" / "data.yaml").read_text())["names"]
        assert told == {0: "cat", 1: "cow", 2: "dog"}
        assert sorted(each.name for each in (root / "x").glob("*.*")) == ["data.yaml", "predsession.jsonl"]


def test_a_run_that_is_killed_while_it_writes_over_a_folder(tmp_path: Path) -> None:
    """Everything can be read at any time; the next run goes on, and leaves nothing beside."""
    some = [found(classes=["a", "b"], path=f"{index}.jpg", index=index) for index in range(4)]
    save_predictions(some, tmp_path, "yolo", root=".")
    before = {each: each.read_bytes() for each in tmp_path.rglob("*.*")}

    def over(existing: Existing, count: int) -> None:
        with YoloWriter(Target(path=tmp_path, root=".", existing=existing), Task.DETECT) as writer:
            for each in some[:count]:
                writer.write(each)
                assert len(list(read_yolo(tmp_path))) == 4
            if existing is Existing.RESUME:
                writer.finish()

    over(Existing.OVERWRITE, 1)
    over(Existing.OVERWRITE, 2)
    assert sorted(each.index for each in read_predictions(tmp_path)) == [0, 1, 2, 3]
    over(Existing.RESUME, 3)
    assert {each: each.read_bytes() for each in tmp_path.rglob("*.*")} == before


def test_a_folder_of_others_that_is_written_over(tmp_path: Path) -> None:
    """Its classes keep their numbers, its description stays as it is while it says all there is to say."""
    text = "names: [a, b]\ntrain: here # and there\n"
    root = theirs(tmp_path / "x", "1 0.5 0.5 1 1\n", data=text)
    save_predictions([found(classes=["b", "a"], name="n.png")], root, "yolo", overwrite=True)
    assert (root / "data.yaml").read_text() == text
    assert texts(root)["n.txt"].split()[0] == "1"
    save_predictions([found(classes=["z", "b"], name="m.png")], root, "yolo", overwrite=True)
    assert read_yaml(root / "data.yaml").names == {0: "a", 1: "b", 2: "z"}
    (root / "data.yaml").write_text("names: a\n")
    with pytest.raises(SourceError, match=r"data\.yaml: 'a' is no list of names"):
        save_predictions([found()], root, "yolo", overwrite=True)


def test_names_that_were_made_up_are_no_classes(tmp_path: Path) -> None:
    """A number without a class gets its class when the folder is written over."""
    names = [f"c{number}" for number in range(4)]
    known = Prediction.from_json(found(classes=["c3", "c1"], class_names=names, name="a.png").to_json())
    save_predictions([known], tmp_path, "yolo")
    assert read_yaml(tmp_path / "data.yaml").unused == [0, 2]
    save_predictions([found(classes=["c0", "c2"], class_names=names, name="b.png")], tmp_path, "yolo",
                     overwrite=True)  # fmt: skip
    data = read_yaml(tmp_path / "data.yaml")
    assert (data.names, data.unused) == (dict(enumerate(names)), [])
    assert [each.class_ids.tolist() for each in read_predictions(tmp_path)] == [[0, 2], [3, 1]]


def test_other_keypoints_are_refused(tmp_path: Path) -> None:
    """Lines of two lengths are nothing that a tool could read; the same keypoints can be added, and boxes."""

    def posed(*names: str, name: str) -> Prediction:
        return Prediction.from_arrays(
            size=(64, 48), boxes=[[1, 1, 33, 33]], keypoints=[[[3, 4, 1]] * len(names)], classes=["person"],
            meta=body(*names), name=name,
        )  # fmt: skip

    save_predictions([posed("nose", "tail", name="a")], tmp_path, "yolo-pose")
    save_predictions([posed("nose", "tail", name="b")], tmp_path, "yolo-pose", overwrite=True)
    save_predictions([found(classes=["person"] * 2, name="c")], tmp_path, "yolo", overwrite=True)
    shapes = {each.name: each.shapes for each in read_predictions(tmp_path)}
    assert shapes == {"a": ("graph",), "b": ("graph",), "c": ("rectangle", "rectangle")}
    with pytest.raises(SourceError, match=r"says 2 keypoints \(nose, tail\), and these have 1 \(head\)"):
        save_predictions([posed("head", name="d")], tmp_path, "yolo-pose", overwrite=True)


def test_a_run_that_gets_nothing_leaves_nothing(tmp_path: Path) -> None:
    """The same folder can be named again; a run without a picture is a folder all the same."""

    def broken() -> object:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        save_predictions(broken(), tmp_path / "x", "yolo")
    assert not (tmp_path / "x").exists()
    saved = save_predictions([ItemError("x", name="x", reason="y")], tmp_path / "x", "yolo")
    assert (saved.predictions, saved.left_out) == (0, {"item errors": 1})
    assert list(read_predictions(tmp_path / "x")) == []


FULL = """
import resource, signal, sys
import numpy as np
from predsession import DiskError, Prediction, save_predictions

noise = np.random.default_rng(0).random((1, 100, 100)) < 0.5
one = Prediction.from_arrays(size=(100, 100), boxes=[[1, 2, 3, 4]], name="a.png")
two = Prediction.from_arrays(size=(100, 100), masks=noise, name="b.png", index=1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
try:
    save_predictions([one, two], sys.argv[1], "yolo-segment")
except DiskError as error:
    print(error)
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """Names the label; no half of it is there, and what came before can be read."""
    command = [sys.executable, "-c", FULL, str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    label = tmp_path / "x" / "labels" / "b.txt"
    assert f"{label} cannot be written (File too large); make room there" in done.stdout
    assert [each.name for each in label.parent.iterdir()] == ["a.txt"]
    assert [each.name for each in read_predictions(tmp_path / "x")] == ["a.png"]


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    """Everything comes again, and the folder is what it would have been at once."""
    some = [found(classes=["a", "b"], path=f"{index}.jpg", index=index) for index in range(4)]
    save_predictions(some, tmp_path / "whole", "yolo", root=".")
    with YoloWriter(Target(path=tmp_path / "x", root="."), Task.DETECT) as writer:
        for each in some[:2]:
            writer.write(each)
    with YoloWriter(Target(path=tmp_path / "x", root=".", existing=Existing.RESUME), Task.DETECT) as writer:
        for each in some:
            writer.write(each)
        writer.finish()
    whole, again = (
        {each.relative_to(folder): each.read_bytes() for each in folder.rglob("*.*") if each.is_file()}
        for folder in (tmp_path / "whole", tmp_path / "x")
    )
    assert again == whole
