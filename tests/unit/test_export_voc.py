"""Pascal VOC: an XML file a picture; boxes in whole pixels, numbered from 1; what does not fit is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import makers
import numpy as np
import predictions
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from predsession import ItemError, Prediction, SourceError
from predsession.export.reading import read_predictions
from predsession.export.saving import save_predictions
from predsession.export.target import Existing, Target
from predsession.export.voc import VocWriter
from predsession.export.voc_reading import parse, read_voc

NAMES = ("a/1.jpg", "b/1.jpg", "b/1.png")


def found(path: str | Path | None = "1.jpg", **more: object) -> Prediction:
    """Return a prediction of two boxes."""
    boxes = {"boxes": [[0, 0, 10, 10], [3, 4, 64, 48]], "scores": [0.1, 0.9], "classes": ["cat", "dog"]}
    return Prediction.from_arrays(**{"size": (64, 48), "path": path, **boxes, **more})


def corners(file: Path) -> list[list[str | None]]:
    """Return the numbers of the boxes, as they stand in a file."""
    root = ElementTree.parse(file).getroot()
    sides = ("xmin", "ymin", "xmax", "ymax")
    return [[each.findtext(f"bndbox/{side}") for side in sides] for each in root.iter("object")]


def test_pixels_are_numbered_from_1_and_both_ends_belong_to_the_box(tmp_path: Path) -> None:
    """The devkit's first pixel is 1, 1: what is 0 to 10 half-open is 1 to 10."""
    save_predictions([found()], tmp_path, "voc")
    assert corners(tmp_path / "Annotations" / "1.xml") == [["1", "1", "10", "10"], ["4", "5", "64", "48"]]


def test_the_usual_elements_are_there(tmp_path: Path) -> None:
    """Those that readers ask for, where they look for them."""
    save_predictions([found("in/sub/1.jpg")], tmp_path, "voc", root="in")
    root = ElementTree.parse(tmp_path / "Annotations" / "sub" / "1.xml").getroot()
    assert root.tag == "annotation"
    places = ("folder", "filename", "path", "source/database", "size/width", "size/height", "size/depth")
    assert [root.findtext(place) for place in (*places, "segmented")] == [
        "JPEGImages/sub", "1.jpg", "in/sub/1.jpg", "Unknown", "64", "48", "3", "0",
    ]  # fmt: skip
    first = root.find("object")
    assert first is not None
    assert [first.findtext(each) for each in ("name", "pose", "truncated", "difficult", "score")] == [
        "cat", "Unspecified", "0", "0", "0.1",
    ]  # fmt: skip


def test_fractions_are_rounded_and_counted(tmp_path: Path) -> None:
    """To the nearest pixel, at least one; readers of whole numbers stumble over others."""
    boxes = [[0.4, 0.5, 10.4, 10.5], [5.2, 5.2, 5.3, 5.3], [1, 2, 3, 4]]
    saved = save_predictions([found(boxes=boxes, scores=None, classes=["a"] * 3)], tmp_path, "voc")
    assert saved.left_out == {"fractions of boxes": 2}
    assert corners(tmp_path / "Annotations" / "1.xml") == [
        ["1", "2", "10", "11"], ["6", "6", "6", "6"], ["2", "3", "3", "4"],
    ]  # fmt: skip


letters = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff") | st.sampled_from(
    "\t\n\r<>&\"'"
)
whole = st.integers(-20, 4000)


@st.composite
def whole_boxes(draw: st.DrawFn) -> Prediction:
    """Make a prediction of boxes of whole pixels."""
    rows = draw(st.integers(0, 4))
    starts = draw(st.lists(st.tuples(whole, whole), min_size=rows, max_size=rows))
    sizes = draw(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)), min_size=rows, max_size=rows))
    return Prediction.from_arrays(
        size=(640, 480),
        boxes=[[x, y, x + w, y + h] for (x, y), (w, h) in zip(starts, sizes, strict=True)],
        scores=draw(st.none() | st.lists(st.floats(0, 1), min_size=rows, max_size=rows)),
        classes=draw(st.lists(st.text(letters, max_size=6), min_size=rows, max_size=rows)),
        track_ids=[draw(st.integers(0, 99)) for _ in range(rows)] if rows and draw(st.booleans()) else None,
        name=draw(st.text(letters, max_size=6)),
        path=draw(st.none() | st.text(letters, min_size=1, max_size=6).map("dir/a{}.jpg".format)),
        url=draw(st.none() | st.just("http://host/a?b=1&c=2")),
        index=draw(st.integers(0, 99)),
        frame_index=draw(st.none() | st.integers(0, 99)),
    )


@settings(deadline=None, max_examples=60)
@given(whole_boxes())
def test_boxes_survive(tmp_path_factory: pytest.TempPathFactory, one: Prediction) -> None:
    """Whatever the format can carry is read back: boxes of whole pixels, classes, scores, tracks, source."""
    folder = tmp_path_factory.mktemp("voc")
    assert not save_predictions([one], folder, "voc").left_out
    (back,) = read_voc(folder)
    assert np.array_equal(back.boxes, one.boxes)
    assert np.array_equal(back.scores, one.scores)
    assert back.classes.tolist() == one.classes.tolist()
    assert back.class_ids.tolist() == one.class_ids.tolist()
    assert (back.index, back.name, back.path, back.url, back.frame_index) == (
        one.index, one.name, one.path, one.url, one.frame_index,
    )  # fmt: skip
    assert (back.track_ids is None) == (one.track_ids is None)
    assert one.track_ids is None or np.array_equal(one.track_ids, back.track_ids)


def test_names_are_unique_and_folders_kept(tmp_path: Path) -> None:
    """a/1.jpg, b/1.jpg and b/1.png have files of their own, and so have their pictures."""
    for name in NAMES:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (64, 48), (len(name), 2, 3)).save(tmp_path / "in" / name)
    many = [found(tmp_path / "in" / name, index=index) for index, name in enumerate(NAMES)]
    saved = save_predictions(many, tmp_path / "out", "voc", images="copy")
    assert not saved.left_out
    files = [str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")]
    assert sorted(files) == [
        "Annotations/a/1.xml", "Annotations/b/1.xml", "Annotations/b/1_2.xml", "ImageSets/Main/trainval.txt",
        "JPEGImages/a/1.jpg", "JPEGImages/b/1.jpg", "JPEGImages/b/1_2.png",
    ]  # fmt: skip
    listed = tmp_path / "out" / "ImageSets" / "Main" / "trainval.txt"
    assert listed.read_text().splitlines() == ["a/1", "b/1", "b/1_2"]
    assert [each.path for each in read_predictions(tmp_path / "out")] == [each.path for each in many]
    for name in NAMES:
        (tmp_path / "in" / name).unlink()
    for back, one in zip(read_voc(tmp_path / "out"), many, strict=True):
        assert back.load_image().shape == (48, 64, 3), "the copy counts where the picture itself is gone"
        assert back.index == one.index


@pytest.mark.parametrize("name", ["..", ".", "/", "\0", "a/..", "../../b", "c/"])
@pytest.mark.parametrize("format_", ["voc", "labelme", "supervisely"])
def test_names_that_no_file_has(tmp_path: Path, name: str, format_: str) -> None:
    """A name from a server leads nowhere else, and keeps nothing from being written."""
    one = found(None, name=name)
    nowhere = replace(found(None, name="x", index=1), path="")
    many = [replace(one, loader=predictions.Black()), nowhere]
    save_predictions(many, tmp_path / "a" / "out", format_, images="copy")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["out"]
    assert len(list(read_predictions(tmp_path / "a" / "out"))) == 2


def test_what_xml_does_not_have(tmp_path: Path) -> None:
    """Control characters, and halves of characters in names that are not UTF-8, are replaced and counted."""
    saved = save_predictions(
        [found("in/\udcff.jpg", classes=["a\x00b", "c\x1b\ufffe"])], tmp_path, "voc", root="in"
    )
    assert saved.left_out["characters that XML does not have"] >= 5
    (back,) = read_voc(tmp_path)
    assert back.classes.tolist() == ["a\ufffdb", "c\ufffd\ufffd"]
    assert back.path == "in/\ufffd.jpg"


def test_what_the_format_does_not_hold_is_counted(tmp_path: Path) -> None:
    """In the user's words; pictures without objects have a file."""
    many: list[Prediction | ItemError] = [
        predictions.zoo(),
        ItemError("x"),
        found("gone.jpg", boxes=np.zeros((0, 4)), scores=None, classes=[]),
    ]
    saved = save_predictions(many, tmp_path, "voc", images="copy")
    assert saved.left_out == {
        "masks": 2, "polygons": 1, "keypoints": 2, "lines": 1, "oriented boxes": 1, "cuboids": 1,
        "item errors": 1, "fractions of boxes": 1, "pictures that are gone": 2,
    }  # fmt: skip
    empty, zoo = read_voc(tmp_path)
    assert len(empty) == 0
    assert zoo.classes.tolist() == predictions.zoo().classes.tolist()


@pytest.mark.parametrize("how", ["copy", "link"])
def test_pictures_are_put_beside(tmp_path: Path, how: str) -> None:
    """Copied or linked; one that is turned by its EXIF orientation is written upright."""
    (tmp_path / "in").mkdir()
    picture = tmp_path / "in" / "1.jpg"
    makers.write_jpeg(picture)
    save_predictions([found(picture)], tmp_path / "out", "voc", images=how, root=tmp_path / "in")
    put = tmp_path / "out" / "JPEGImages" / "1.jpg"
    assert put.read_bytes() == picture.read_bytes()
    assert put.samefile(picture) == (how == "link")


def test_a_killed_run_leaves_whole_files_and_is_gone_on_with(tmp_path: Path) -> None:
    """What is there can be read at any time; a second run replaces it, file by file."""
    many = [found(f"{index}.jpg", index=index) for index in range(4)]
    with VocWriter(Target(path=tmp_path / "out")) as writer:
        for each in many[:2]:
            writer.write(each)
    assert [each.index for each in read_voc(tmp_path / "out")] == [0, 1]
    with pytest.raises(SourceError, match="not empty"):
        VocWriter(Target(path=tmp_path / "out"))
    with VocWriter(Target(path=tmp_path / "out", existing=Existing.RESUME)) as writer:
        for each in many:
            writer.write(replace(each, url="http://x"))
        writer.finish()
    assert [each.url for each in read_voc(tmp_path / "out")] == ["http://x"] * 4


FOREIGN = """<?xml version="1.0" encoding="UTF-16"?>
<annotation verified="yes"><folder>images</folder><filename>7.jpg</filename>
<size><width> 64 </width><height>48</height><depth>3</depth></size>
<object><name>
 cat
</name><bndbox><xmax>10</xmax><xmin>1</xmin><ymin>20.5</ymin><ymax>2</ymax></bndbox></object>
</annotation>"""


def test_files_of_other_tools_are_read(tmp_path: Path) -> None:
    """Without Annotations, path and scores; in another encoding; corners in any order, with fractions."""
    (tmp_path / "7.xml").write_bytes(FOREIGN.encode("utf-16"))
    makers.write_jpeg(tmp_path / "7.jpg")
    for place in (tmp_path, tmp_path / "7.xml"):
        (one,) = read_predictions(place, "voc")
        assert one.boxes.tolist() == [[0, 1, 10, 20.5]]
        assert (one.name, one.path, one.index) == ("7.jpg", str(tmp_path / "7.jpg"), 0)
        assert one.scores.tolist() == [1.0]
        assert one.classes.tolist() == ["cat"]


BOMB = """<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>
<annotation><filename>&b;</filename></annotation>"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(tmp_path: Path, encoding: str) -> None:
    """A few lines of them can stand for gigabytes; no annotation needs them."""
    with pytest.raises(ValueError, match="DOCTYPE"):
        parse(BOMB.encode(encoding))
    (tmp_path / "a.xml").write_bytes(BOMB.encode(encoding))
    with pytest.raises(SourceError, match=r"a\.xml.*DOCTYPE"):
        list(read_voc(tmp_path))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no element found"),
        ("<annotation><size>", "no element found"),
        ("<html></html>", "no annotation of Pascal VOC"),
        ("<annotation></annotation>", "no <size> of its picture, and no picture"),
        (FOREIGN.split("\n", 1)[1].replace("<xmin>1<", "<xmin>one<"), "object 0.*one"),
        (FOREIGN.split("\n", 1)[1].replace("<xmin>1<", "<xmin>1e300<"), "object 0.*nowhere"),
        (FOREIGN.split("\n", 1)[1].replace("<name>\n cat\n</name>", ""), "object 0.*no <name>"),
        (FOREIGN.split("\n", 1)[1].replace(" 64 ", "0"), "no <size>"),
        (FOREIGN.split("\n", 1)[1].replace(" 64 ", "6.5"), "6.5 is no side"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str, problem: str) -> None:
    """File and object; the files before it come."""
    save_predictions([found()], tmp_path, "voc")
    (tmp_path / "Annotations" / "x.xml").write_text(text)
    read = read_voc(tmp_path)
    assert next(read).name == "1.jpg"
    with pytest.raises(SourceError, match=problem) as caught:
        next(read)
    assert str(tmp_path / "Annotations" / "x.xml") in str(caught.value)


@pytest.mark.parametrize("said", ["", "<size><width>0</width><height>0</height></size>"])
def test_a_size_that_is_missing_is_the_pictures(tmp_path: Path, said: str) -> None:
    """Upright, as boxes have it; some tools leave the size away, or 0. Numbers may have a point."""
    makers.write_jpeg(tmp_path / "1.jpg", (64, 48))
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.new("RGB", (48, 64)).save(tmp_path / "2.jpg", exif=turned)
    for name in ("1", "2"):
        text = f"<annotation><filename>{name}.jpg</filename>{said}</annotation>"
        (tmp_path / f"{name}.xml").write_text(text)
    (tmp_path / "3.xml").write_text(FOREIGN.split("\n", 1)[1].replace(" 64 ", "64.0"))
    assert [each.size for each in read_voc(tmp_path)] == [(64, 48)] * 3


def test_what_is_overwritten_stays_in_the_list_of_pictures(tmp_path: Path) -> None:
    """Readers find pictures by it; what has another name is there still, once, in its place."""
    listed = tmp_path / "ImageSets" / "Main" / "trainval.txt"
    save_predictions([found(f"{name}.jpg") for name in "abc"], tmp_path, "voc", root=".")
    save_predictions([found("b.jpg"), found("d.jpg")], tmp_path, "voc", root=".", overwrite=True)
    assert listed.read_text() == "a\nb\nc\nd\n"
    listed.write_bytes(b"a\r\nb\r\nc")  # as editors may leave it
    save_predictions([found("a.jpg")], tmp_path, "voc", root=".", overwrite=True)
    assert listed.read_text().split() == ["a", "b", "c"]
    listed.write_text("a\nb\nnobod")  # as a run that was killed may
    save_predictions([found("c.jpg")], tmp_path, "voc", root=".", overwrite=True)
    assert listed.read_text() == "a\nb\nc\n"
    assert len(list(read_voc(tmp_path))) == 4


def test_a_resumed_run_keeps_the_list_of_pictures(tmp_path: Path) -> None:
    """Also what was there before the run that is gone on with."""
    save_predictions([found("a.jpg"), found("b.jpg")], tmp_path, "voc", root=".")
    for existing, names in ((Existing.OVERWRITE, "b"), (Existing.RESUME, "bc")):
        with VocWriter(Target(path=tmp_path, root=".", existing=existing)) as writer:
            for name in names:
                writer.write(found(f"{name}.jpg"))
            writer.finish()
    assert (tmp_path / "ImageSets" / "Main" / "trainval.txt").read_text() == "a\nb\nc\n"


def test_boxes_without_an_area_are_counted(tmp_path: Path) -> None:
    """A box of this format has at least one pixel."""
    one = found(boxes=[[3, 3, 3, 3], [3, 3, 4, 4]])
    assert save_predictions([one], tmp_path, "voc").left_out == {"boxes without an area": 1}
    assert next(read_voc(tmp_path)).boxes.tolist() == [[3, 3, 4, 4]] * 2


def test_the_ids_of_a_library_are_kept(tmp_path: Path) -> None:
    """Beside the index, the name and the time."""
    save_predictions([predictions.zoo(image_id=7, dataset_id=8, timestamp=0.25)], tmp_path, "voc")
    (back,) = read_voc(tmp_path)
    assert (back.image_id, back.dataset_id, back.video_id, back.timestamp) == (7, 8, None, 0.25)


@pytest.mark.parametrize("format_", ["voc", "labelme"])
def test_hidden_pictures_are_read_back(tmp_path: Path, format_: str) -> None:
    """Readers pass over hidden files, so these get other names, of which no two are the same."""
    names = [
        ".hidden.jpg", "_.hidden.jpg", ".cache/1.jpg", "_.cache/1.jpg", ".jpg", ".png", "_.jpg", "__",
        "1.jpg", "1.xml/2.jpg", "1.xml_/2.jpg", "1.json/2.jpg", "1.JSON_/2.jpg",
    ]  # fmt: skip
    many = [found(f"in/{name}", index=index) for index, name in enumerate(names)]
    save_predictions(many, tmp_path, format_, root="in")
    back = sorted(read_predictions(tmp_path, format_), key=lambda each: each.index)
    assert [each.path for each in back] == [each.path for each in many]


@pytest.mark.parametrize("format_", ["voc", "labelme", "supervisely"])
def test_frames_have_their_copies(tmp_path: Path, format_: str) -> None:
    """What was put beside is a frame's picture, be the clip there or not; it stays a frame of its clip."""
    clip = tmp_path / "vid" / "clip.mp4"
    clip.parent.mkdir()
    clip.write_bytes(b"no clip that can be decoded")
    frame = found(clip, frame_index=3, loader=predictions.Black())
    for gone in (False, True):
        folder = tmp_path / format_ / str(gone)
        save_predictions([frame], folder, format_, images="copy", root=tmp_path)
        if gone:
            clip.unlink()
        (back,) = read_predictions(folder)
        assert (back.path, back.frame_index) == (str(clip), 3)
        assert back.load_image().tolist() == predictions.Black()().tolist()
        again = tmp_path / format_ / f"{gone} again"
        assert not save_predictions([back], again, format_, images="copy", root=tmp_path).left_out
        assert {each.name for each in again.rglob("*.png")} == {"clip_000003.png"}
    save_predictions([replace(frame, path=None, name="clip")], tmp_path / "x", format_, images="copy")
    (back,) = read_predictions(tmp_path / "x")
    assert (back.path, back.load_image().shape) == (None, (48, 64, 3))
