"""YOLO folders of others, and pictures that lie in one: what is found, and what is damaged."""

from __future__ import annotations

from pathlib import Path

import makers
import pytest
from PIL import Image
from predictions import Black, found
from yolo_kit import picture, texts, theirs

from predsession import SourceError, read_predictions, save_predictions


def test_folders_of_others(tmp_path: Path) -> None:
    """Boxes, scores and outlines in one file; pictures without a label; Roboflow's order of folders."""
    root = theirs(
        tmp_path, "1 0.5 0.5 0.2 0.4\n\n0 0.5 0.5 0.2 0.4 0.75\n0.0 0 0 1 0 0.5 1\r\n1 0 0 1 0 .5 1 .25\n"
    )
    picture(root / "images" / "val" / "none.jpg", (10, 10))
    picture(root / "test" / "images" / "r.png", (10, 20))
    (root / "test" / "labels").mkdir()
    (root / "test" / "labels" / "r.txt").write_text("1 0.1 0.1 0.9 0.1 0.9 0.9 0.1 0.9")
    one, none, other = read_predictions(root)
    assert one.boxes.tolist() == [[40, 15, 60, 35], [40, 15, 60, 35], [0, 0, 100, 50], [0, 0, 100, 50]]
    assert one.scores.tolist() == [1, 0.75, 1, 0.25]
    assert one.class_ids.tolist() == [1, 0, 0, 1]
    assert one.shapes == ("rectangle", "rectangle", "polygon", "polygon")
    assert (none.name, len(none), none.size) == ("none.jpg", 0, (10, 10))
    assert other.boxes.round(4).tolist() == [[1, 2, 9, 18]]
    assert [each.index for each in (one, none, other)] == [0, 1, 2]


def test_pictures_are_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each folder is listed once, not asked for 14 names a picture; which picture it is stays the same."""
    save_predictions([found(name=f"{number}.jpg", index=number) for number in range(30)], tmp_path, "yolo")
    picture(tmp_path / "images" / "3.PNG")
    picture(tmp_path / "images" / "4.webp")
    picture(tmp_path / "images" / "4.JPG")
    (tmp_path / "images" / "5.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (tmp_path / "images" / "5.bmp").mkdir()
    picture(tmp_path / "labels" / "6.png")
    picture(tmp_path / "7.tiff")
    asked: list[str] = []
    is_file, listed = Path.is_file, Path.iterdir
    monkeypatch.setattr(Path, "is_file", lambda path: asked.append("file") or is_file(path))
    monkeypatch.setattr(Path, "iterdir", lambda path: asked.append("folder") or listed(path))
    read = {each.name: each.path for each in read_predictions(tmp_path, "yolo")}
    assert {name: path for name, path in read.items() if path} == {
        "3.jpg": str(tmp_path / "images" / "3.PNG"),
        "4.jpg": str(tmp_path / "images" / "4.JPG"),
        "6.jpg": str(tmp_path / "labels" / "6.png"),
        "7.jpg": str(tmp_path / "7.tiff"),
    }
    assert len(read) == 30
    assert asked.count("folder") == 3
    assert asked.count("file") < 3 * len(read)


def test_labels_beside_pictures(tmp_path: Path) -> None:
    """As labelImg puts them: classes.txt names the classes, also where there is none, and is no label."""
    for inner in ("", "images/", "labels/"):
        root = tmp_path / (inner or "bare")
        place = root / inner if inner else root / "deep"
        picture(place / "1.jpg", (100, 50))
        picture(root / "chart.png")
        (place / "1.txt").write_text("1 0.5 0.5 1 1\n")
        listed = place if inner else root
        (listed / "classes.txt").write_text("cat\ndog\n")
        (one,) = read_predictions(root) if inner != "labels/" else read_predictions(root, "yolo")
        assert (one.path, one.classes.tolist(), one.size) == (str(place / "1.jpg"), ["dog"], (100, 50))
        (root / "data.yaml").write_text("names: [x, y]\n")
        assert [each.classes.tolist() for each in read_predictions(root)] == [["y"]]


def test_what_a_run_of_ultralytics_leaves(tmp_path: Path) -> None:
    """Pictures, and labels beside them in a folder; nothing says what the classes are called."""
    picture(tmp_path / "bus.jpg", (100, 50))
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "bus.txt").write_text("5 0.5 0.5 1 1 0.75\n0 0.5 0.5 1 1 0.5\n")
    (one,) = read_predictions(tmp_path)
    assert (one.classes.tolist(), one.class_ids.tolist()) == (["class_5", "class_0"], [5, 0])
    assert (one.scores.tolist(), one.size, one.name) == ([0.75, 0.5], (100, 50), "bus.jpg")


def test_descriptions_by_other_names(tmp_path: Path) -> None:
    """coco8.yaml in its folder, by its own path, outside of it with `path:`; nothing at all is an error."""
    root = theirs(tmp_path / "d", "1 0.5 0.5 1 1\n")
    (root / "data.yaml").rename(root / "coco8.yaml")
    outside = tmp_path / "outside.yml"
    outside.write_text("path: d # root\nnames:\n  0: a\n  1: c\n")
    for place, name in ((root, "b"), (root / "coco8.yaml", "b"), (outside, "c")):
        (one,) = read_predictions(place)
        assert (one.path, one.classes.tolist()) == (str(root / "images/train/1.PNG"), [name])
    outside.write_text("names: [a]\n")
    (tmp_path / "d").rename(tmp_path / ".hidden")
    with pytest.raises(SourceError, match="no labels, neither in folders called labels nor beside pictures"):
        list(read_predictions(outside))


def test_frames_have_their_copies(tmp_path: Path) -> None:
    """A frame stays one of its clip, its picture is the copy, and saved again it has the same place."""
    one = found(path="vid/clip.mp4", frame_index=3, loader=Black())
    save_predictions([one], tmp_path / "x", "yolo", images="copy")
    (again,) = read_predictions(tmp_path / "x")
    assert (again.path, again.frame_index) == ("vid/clip.mp4", 3)
    assert again.load_image().shape == (48, 64, 3)
    save_predictions([again], tmp_path / "y", "yolo", images="copy")
    assert list(texts(tmp_path / "y")) == list(texts(tmp_path / "x"))
    (there,) = (tmp_path / "y" / "images").rglob("*.png")
    assert there.name == "clip_000003.png"


def test_a_picture_that_has_gone_has_its_copy(tmp_path: Path) -> None:
    """While it is there, it is itself."""
    path = picture(tmp_path / "in" / "a.png")
    save_predictions([found(path=path)], tmp_path / "x", "yolo", images="copy")
    assert [each.path for each in read_predictions(tmp_path / "x")] == [path]
    Path(path).unlink()
    assert [each.path for each in read_predictions(tmp_path / "x")] == [str(tmp_path / "x/images/a.png")]


def test_a_picture_that_lies_on_its_side(tmp_path: Path) -> None:
    """Its EXIF orientation turns it: its numbers belong to the upright one."""
    root = theirs(tmp_path, "0 0.5 0.5 1 1\n")
    (root / "images" / "train" / "1.PNG").unlink()
    makers.write(root / "images" / "train" / "1.jpg", makers.jpeg((100, 50), orientation=6))
    (one,) = read_predictions(root)
    with Image.open(root / "images" / "train" / "1.jpg") as image:
        assert image.size == (50, 100)
    assert one.size == (100, 50)


@pytest.mark.parametrize(("v", "seen"), [("2", 1), ("1", 0), ("0", 0), ("0.98", 1), ("0.2", 0)])
def test_what_others_say_of_a_keypoint(v: str, seen: int, tmp_path: Path) -> None:
    """2 is seen and 1 is not, as in COCO; between 0 and 1 it is how sure a model is."""
    root = theirs(tmp_path, f"0 0.5 0.5 1 1 0.5 0.5 {v}\n", data="names: [p]\nkpt_shape: [1, 3]\n")
    (one,) = read_predictions(root)
    assert one.keypoints[0].tolist() == [[50, 25, seen]]


def test_keypoints_without_v(tmp_path: Path) -> None:
    """kpt_shape: [2, 2]: what lies at 0, 0 as all others do is none."""
    root = theirs(tmp_path, "0 0.5 0.5 1 1 0.5 0.5 0 0 0.25\n", data="names: [p]\nkpt_shape: [2, 2]\n")
    (one,) = read_predictions(root)
    assert one.keypoints[0].tolist() == [[50, 25, 1], [0, 0, 0]]
    assert one.scores.tolist() == [0.25]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 0.5 0.5 0.1", "3 numbers are no box"),
        ("0 0.5 0.5 -0.1 0.1", "a side of the box is below 0"),
        ("0 50 50 10 10", "a number is not from 0 to 1"),
        ("0 nan 0 0 0", "a number is not from 0 to 1"),
        ("7 0.5 0.5 0.1 0.1", "class 7 is not among the names"),
        ("0.5 0.5 0.5 0.1 0.1", "class 0.5 is not among the names"),
        ("a 0.5 0.5 0.1 0.1", "could not convert string to float: 'a'"),
        ("0 0.5 0.5 x 0.1", "could not convert string to float: 'x'"),
    ],
)
def test_damaged_lines(line: str, said: str, tmp_path: Path) -> None:
    """Name file and line."""
    root = theirs(tmp_path, f"0 0.5 0.5 1 1\n{line}\n")
    with pytest.raises(SourceError, match=said) as caught:
        list(read_predictions(root))
    assert f"{root / 'labels/train/1.txt'}, line 2: " in str(caught.value)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """The picture, with what to do; the data.yaml; a picture that is none; a damaged file of facts."""
    root = theirs(tmp_path, "0 0.5 0.5 1 1\n")
    (root / "images" / "train" / "1.PNG").write_bytes(b"no")
    with pytest.raises(SourceError, match=r"1\.PNG is no picture"):
        list(read_predictions(root))
    (root / "images" / "train" / "1.PNG").unlink()
    with pytest.raises(
        SourceError, match=r"images/train/1\{\.jpg,.*put it there \(saving with images='copy'"
    ):
        list(read_predictions(root))
    (root / "labels" / "train" / "1.txt").write_bytes(b"\xff\n")
    (root / "predsession.jsonl").write_text('{"label": "labels/train/1.txt", "width": 3, "height": 0}\n')
    with pytest.raises(SourceError, match=r"1\.txt: \[3, 0\] are no sides"):
        list(read_predictions(root))
    (root / "predsession.jsonl").write_text('{"label": "labels/train/1.txt", "width": 3, "height": 4}\n')
    with pytest.raises(SourceError, match=r"1\.txt: .*codec can't decode"):
        list(read_predictions(root))
    (root / "predsession.jsonl").write_text('{"label": "labels/train/1.txt", "width": "x"}\n')
    with pytest.raises(SourceError, match=r"1\.txt: predsession\.jsonl: width: 'x' is no whole number"):
        list(read_predictions(root))
    (root / "predsession.jsonl").write_text("7\n")
    with pytest.raises(SourceError, match=r"predsession\.jsonl, line 1: .* is no object; take the file away"):
        list(read_predictions(root))
    (root / "data.yaml").unlink()
    with pytest.raises(SourceError, match=r"data\.yaml cannot be read"):
        list(read_predictions(root, "yolo"))
