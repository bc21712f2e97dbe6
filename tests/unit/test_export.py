"""Output files: JSON lines, and names that are unique and stable."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from predsession import ItemError, Prediction, Size, SourceError, read_predictions
from predsession.export.classes import ClassTable
from predsession.export.jsonl import JsonlWriter
from predsession.export.names import OutputNames
from predsession.export.places import Places
from predsession.export.reading import format_of


def prediction(path: str | None, name: str = "", index: int = 0) -> Prediction:
    """Return an empty prediction for a file."""
    return Prediction.from_arrays(
        size=Size(8, 8),
        boxes=np.zeros((0, 4)),
        path=path,
        name=name or (Path(path).name if path else ""),
        index=index,
    )


def test_json_lines_are_read_back_equal(tmp_path: Path) -> None:
    """Predictions and item errors, one a line, whatever their names hold."""
    one = Prediction.from_arrays(
        size=Size(64, 32),
        boxes=[[1.5, 2.25, 30, 20]],
        scores=[0.5],
        classes=["a"],
        path="東京\n.png",
        name="n",
    )
    with JsonlWriter(tmp_path / "new" / "p.jsonl") as writer:
        writer.write(one)
        writer.write(ItemError("item 1, x.jpg: empty file", index=1, name="x.jpg", reason="empty file"))
    first, second = (tmp_path / "new" / "p.jsonl").read_text(encoding="utf-8").splitlines()
    assert Prediction.from_json(json.loads(first)) == one
    assert json.loads(second) == {
        "index": 1, "name": "x.jpg", "path": None, "error": {"type": "ItemError", "message": "empty file"},
    }  # fmt: skip


def test_folders_are_kept_and_names_never_clash(tmp_path: Path) -> None:
    """a/1.jpg, b/1.jpg, b/1.png keep their places; what would clash gets a number."""
    root = tmp_path / "in"
    for folder in ("a", "b"):
        (root / folder).mkdir(parents=True)
    names = OutputNames(tmp_path / "out", [str(root)])
    given = [
        names.path_for(prediction(str(path))).relative_to(tmp_path / "out")
        for path in (root / "a/1.jpg", root / "b/1.jpg", root / "b/1.png", root / "b/1.PNG", root / "b/1.gif")
    ]
    assert [str(path) for path in given] == ["a/1.jpg", "b/1.jpg", "b/1.png", "b/1_2.PNG", "b/1.gif.png"]


def test_what_has_no_place_gets_its_name(tmp_path: Path) -> None:
    """Pictures without a path, or from elsewhere; nothing is ever written outside the folder."""
    names = OutputNames(tmp_path, ["http://x/a.jpg"])
    given = [
        names.path_for(one).name
        for one in (prediction(None, "a.jpg"), prediction(None, "a.jpg"), prediction(None, index=7))
    ]
    assert given == ["a.jpg", "a_2.jpg", "image_0007.png"]
    outside = OutputNames(tmp_path / "out", [str(tmp_path)]).path_for(prediction("/elsewhere/../etc/x.png"))
    assert outside == tmp_path / "out" / "x.png"


def test_many_pictures_of_one_name(tmp_path: Path) -> None:
    """From anywhere: each gets a place of its own, and again the same one where that is wanted."""
    urls = [f"http://x/{number}/a.jpg" for number in range(2000)]
    found = [
        Prediction.from_arrays(size=Size(8, 8), boxes=np.zeros((0, 4)), name="a.jpg", url=url) for url in urls
    ]
    places = Places(str(tmp_path), again=True)
    given = [places.place(one) for one in found]
    assert len(set(given)) == 2000
    assert [str(given[number]) for number in (0, 1, 1999)] == ["a.jpg", "a_2.jpg", "a_2000.jpg"]
    assert [places.place(one) for one in found] == given
    once = Places(str(tmp_path))
    assert len({once.place(one) for one in found * 2}) == 4000


def test_places_of_frames() -> None:
    """A frame has its number once: also where its path is that of its own picture, but not that of a clip."""
    paths = {
        "v/clip.mp4": "v/clip_000003.png",
        "v/clip_000003.png": "v/clip_000003.png",
        "v/clip_000003.mp4": "v/clip_000003_000003.png",
        "v/clip_000004.png": "v/clip_000004_000003.png",
    }
    for path, place in paths.items():
        one = Prediction.from_arrays(size=Size(8, 8), boxes=np.zeros((0, 4)), path=path, frame_index=3)
        assert Places(".").place(one).as_posix() == place


def test_a_class_of_no_model_comes_behind(tmp_path: Path) -> None:
    """Of all that are known: numbers that a file has, those of the model, then what it does not know."""
    table = ClassTable()
    table.keep({0: "old", 4: "older"})
    table.learn(
        Prediction.from_arrays(size=Size(8, 8), boxes=[[0, 0, 1, 1]], classes=["b"], class_names=["a", "b"])
    )
    assert [table.number(each) for each in ("old", "older", "b", "a", "new", "newer")] == [0, 4, 1, 5, 6, 7]
    assert table.titles == {0: "old", 1: "b", 4: "older", 5: "a", 6: "new", 7: "newer"}


VOC = "<annotation><filename>a.jpg</filename><size><width>9</width><height>8</height></size></annotation>"


def test_formats_are_recognised(tmp_path: Path) -> None:
    """By what stands in a file, wherever it stands, and by what lies in a folder."""
    large = "A" * 100_000
    files = {
        "a.json": ({"imageData": large, "shapes": []}, "labelme"),
        "b.json": ({"shapes": [{"label": "annotations", "flags": {"images": 1}}]}, "labelme"),
        "c.json": ({"info": {"shapes": 1, "imagePath": "x"}, "images": []}, "coco"),
        "d.json": ({"annotations": [{"imageData": large}]}, "coco"),
    }
    for name, (document, wanted) in files.items():
        (tmp_path / name).write_text(json.dumps(document, indent=1))
        assert format_of(None, tmp_path / name).name == wanted
    (tmp_path / "a.XML").write_text(VOC)
    assert [each.size for each in read_predictions(tmp_path / "a.XML")] == [(9, 8)]
    folders = {
        "supervisely": ("ann/1.jpg.json", "img/1.jpg"),
        "yolo": ("train/labels/1.txt",),
        "voc": ("1.xml", ".idea/x.json"),
        "labelme": ("1.json", ".idea/x.xml", "meta.json/1.jpg"),
    }
    for wanted, places in folders.items():
        for place in places:
            (tmp_path / wanted / place).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / wanted / place).write_text("{}")
        assert format_of(None, tmp_path / wanted).name == wanted
    (tmp_path / "labelme" / "1.json").write_text('{"images": []}')
    with pytest.raises(SourceError, match=r"1\.json looks like a COCO document; name it instead"):
        format_of(None, tmp_path / "labelme")
