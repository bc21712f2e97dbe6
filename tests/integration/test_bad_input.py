"""Inputs that other tools have stumbled over, each against real servers: a prediction, or an item error."""

from __future__ import annotations

import os
from pathlib import Path

import makers
import numpy as np
import pytest
from PIL import Image

from predsession import ItemError, Prediction, PredictionSession, Size, SourceError
from predsession.server.models.pixels import box_number, number_picture

SAMPLES = Path(__file__).parents[1] / "samples"


def run(url: str, source: object, *, recursive: bool = False) -> list[Prediction | ItemError]:
    """Run a source, item errors in their places."""
    with PredictionSession(url, source, on_error="yield", recursive=recursive) as session:
        return list(session)


def reasons(outcomes: list[Prediction | ItemError]) -> list[str]:
    """Return why each item failed, "" for a prediction."""
    return [outcome.reason if isinstance(outcome, ItemError) else "" for outcome in outcomes]


def test_bad_files_among_good_ones(either: str, tmp_path: Path) -> None:
    """An empty file, half a JPEG and a text named .jpg are item errors, in their places."""
    paths = makers.bad_neighbours(tmp_path)
    outcomes = run(either, tmp_path)
    assert [outcome.path for outcome in outcomes] == [str(path) for path in paths]
    why = reasons(outcomes)
    assert [bool(reason) for reason in why] == [False, True, False, True, False, True, False]
    assert "empty" in why[1]
    assert "truncated" in why[3]
    assert "not an image" in why[5]


@pytest.mark.parametrize(
    "data",
    [
        makers.cmyk_jpeg(),
        makers.gray_jpeg(),
        makers.png16(),
        makers.rgb_png16(),
        makers.palette_png_with_transparency(),
        makers.rgba_png(),
        makers.animated_gif(),
        makers.encoded(makers.picture(), "WEBP", lossless=True),
        makers.encoded(makers.picture(), "TIFF"),
        makers.encoded(makers.picture(), "BMP"),
    ],
    ids=["cmyk", "gray", "png16", "rgb16", "palette", "rgba", "gif", "webp", "tiff", "bmp"],
)
def test_every_kind_of_picture_is_predicted(either: str, data: bytes) -> None:
    """Whatever its colours and its container; the size is that of the picture."""
    (outcome,) = run(either, data)
    assert isinstance(outcome, Prediction)
    assert outcome.size == Size(*makers.SIZE)


def test_numbers_survive_every_lossless_way(either: str) -> None:
    """The model reads the same number from the same pixels, whichever way they were handed in."""
    picture = number_picture(321)
    wide = np.zeros((64, 128, 3), np.uint8)
    wide[::2, ::2] = picture
    ways = [
        picture, picture[:, :, 0], picture[:, :, :1], Image.fromarray(picture), wide[::2, ::2],
        Image.fromarray(picture).convert("P"), Image.fromarray(picture).convert("CMYK"),
        makers.encoded(Image.fromarray(picture), "PNG"), np.asfortranarray(picture), picture[:, :, ::-1],
    ]  # fmt: skip
    outcomes = run(either, ways)
    assert [box_number(one.boxes[0]) for one in outcomes if one] == [321] * len(ways)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((8, 8, 3), np.float32), r"float32.*255"),
        (np.zeros((8, 8, 3), np.int64), "int64"),
        (np.full((8, 8), 40000, np.uint16), r"uint16.*257"),
        (np.zeros((3, 8, 8), np.uint8), r"\(3, 8, 8\).*transpose"),
        (np.zeros((0, 8, 3), np.uint8), r"\(0, 8, 3\)"),
        (np.zeros((8, 8, 2), np.uint8), r"\(8, 8, 2\)"),
        (np.zeros((1, 8, 8, 3), np.uint8), r"\(1, 8, 8, 3\)"),
    ],
    ids=["float", "int64", "uint16", "chw", "empty", "two channels", "batch"],
)
def test_wrong_arrays_are_refused_before_anything_is_sent(array: object, words: str) -> None:
    """With shape and dtype, and the way out; no server is needed to say so."""
    with pytest.raises(SourceError, match=words):
        PredictionSession("http://127.0.0.1:9", [number_picture(1), array])


def test_folders_from_other_machines(either: str, tmp_path: Path) -> None:
    """What macOS and Windows leave behind is left out; suffixes in any case count; order is natural."""
    paths = makers.mac_folder(tmp_path)
    outcomes = run(either, tmp_path, recursive=True)
    assert [outcome.path for outcome in outcomes] == [str(path) for path in paths]
    assert all(outcomes)


def test_a_symlink_loop_ends(either: str, tmp_path: Path) -> None:
    """Each file once."""
    paths = makers.linked_folder(tmp_path)
    outcomes = run(either, tmp_path, recursive=True)
    assert sorted(Path(str(one.path)).resolve() for one in outcomes) == sorted(
        path.resolve() for path in paths
    )


def test_odd_file_names(either: str, tmp_path: Path) -> None:
    """Spaces, quotes, a newline, Chinese, Cyrillic: the right prediction for each, and its true name."""
    paths = makers.odd_names(tmp_path)
    sizes = {str(path): (40 + number, 20) for number, path in enumerate(paths, start=1)}
    outcomes = run(either, tmp_path)
    assert {str(one.path): tuple(one.size) for one in outcomes if one} == sizes
    assert {one.name for one in outcomes} == {path.name for path in paths}


def test_the_same_name_in_two_folders(either: str, tmp_path: Path) -> None:
    """a/1.jpg, b/1.jpg, b/1.png: three predictions, three paths, each its own."""
    places = ["a/1.jpg", "b/1.jpg", "b/1.png"]
    for number, place in enumerate(places):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        Image.fromarray(number_picture(number)).save(tmp_path / place)
    outcomes = run(either, tmp_path, recursive=True)
    assert [one.path for one in outcomes] == [str(tmp_path / place) for place in places]
    assert [box_number(one.boxes[0]) for one in outcomes if one] == [0, 1, 2]


def test_a_project_folder(either: str, tmp_path: Path) -> None:
    """The images of a Supervisely project's datasets, in order."""
    paths = makers.project(tmp_path)
    assert sorted(str(one.path) for one in run(either, tmp_path)) == sorted(str(path) for path in paths)


def test_a_bomb_is_one_item_error(either: str, tmp_path: Path) -> None:
    """A header that claims 50,000 x 50,000 takes no memory, and the limit can be set."""
    makers.write(tmp_path / "bomb.png", makers.bomb_png_header())
    makers.write_jpeg(tmp_path / "good.jpg")
    bomb, good = run(either, [tmp_path / "bomb.png", tmp_path / "good.jpg"])
    assert isinstance(bomb, ItemError)
    assert "50000" in bomb.reason.replace(",", "").replace("_", "")
    assert isinstance(good, Prediction)
    with PredictionSession(either, number_picture(1), max_pixels=100, on_error="skip") as session:
        assert list(session) == []
    assert len(session.errors) == 1


@pytest.mark.parametrize("way", ["path", "list", "folder", "bytes", "pil", "array"])
def test_a_photo_with_exif_orientation(detector: str, tmp_path: Path, way: str) -> None:
    """Path, list, folder, bytes and PIL image of one photo: boxes in the frame of the upright image.

    A bare array has no EXIF data; it is the stored frame, and `size` says so.
    """
    photo = SAMPLES / "portrait_exif6.jpg"
    os.link(photo, tmp_path / "photo.jpg")
    with Image.open(photo) as stored:
        stored.load()
    upright = Size(stored.height, stored.width)
    given = {
        "path": photo, "list": [photo], "folder": tmp_path, "bytes": photo.read_bytes(), "pil": stored,
        "array": np.asarray(stored),
    }  # fmt: skip
    (outcome,) = run(detector, given[way])
    assert isinstance(outcome, Prediction)
    if way == "array":
        assert outcome.size == Size(stored.width, stored.height)
        return
    assert outcome.size == upright
    best = int(outcome.scores.argmax())
    assert outcome.classes[best] == "person"
    x1, y1, x2, y2 = outcome.boxes[best]
    assert y2 - y1 > x2 - x1, "a standing portrait is higher than wide"
    assert outcome.load_image().shape[:2] == (upright.height, upright.width)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_every_orientation_on_every_server(either: str, tmp_path: Path, kind: str, orientation: int) -> None:
    """However the camera was held: the number can only be read from the upright picture."""
    upright = Image.fromarray(number_picture(77, (96, 64)))
    data = makers.encoded(
        makers.stored(upright, orientation), kind, exif=makers.exif(orientation), quality=95
    )
    path = makers.write(tmp_path / f"x.{kind.lower()}", data)
    with Image.open(path) as opened:
        outcomes = run(either, [path, data, opened])
    assert [box_number(one.boxes[0]) for one in outcomes if one] == [77] * 3
    assert {one.size for one in outcomes if one} == {Size(96, 64)}
    assert {one.load_image().shape for one in outcomes if one} == {(64, 96, 3)}


def test_sources_that_hold_nothing(tmp_path: Path) -> None:
    """An empty folder, an empty list, a missing path: errors that name them, and what to do."""
    for source, words in (
        (tmp_path, r"\.jpg"),
        ([], "empty"),
        (tmp_path / "gone.jpg", r"gone\.jpg"),
        ([number_picture(1), str(tmp_path / "gone.jpg")], r"gone\.jpg"),
        (42, "int"),
        ({"a": 1}, "dict"),
    ):
        with pytest.raises(SourceError, match=words):
            PredictionSession("http://127.0.0.1:9", source)


def test_a_file_that_is_gone_when_its_turn_comes(either: str, tmp_path: Path) -> None:
    """An item error in its place."""
    paths = [makers.write_jpeg(tmp_path / f"{number}.jpg") for number in range(30)]
    with PredictionSession(either, paths, on_error="yield", delay=0.05) as session:
        paths[-1].unlink()
        outcomes = list(session)
    assert [bool(outcome) for outcome in outcomes] == [True] * 29 + [False]
