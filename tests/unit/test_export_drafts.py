"""What a killed run leaves in folders and beside documents: nothing of it is in anybody's way, or stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import makers
import pytest
from PIL import Image

import predsession
from predsession import Prediction, SourceError, read_predictions, save_predictions
from predsession.export.coco import CocoWriter
from predsession.export.folders import drafted
from predsession.export.formats import FORMATS
from predsession.export.heads import upright_size
from predsession.export.saving import Saving
from predsession.export.target import Existing, Target

FOLDERS = ("yolo", "yolo-segment", "yolo-pose", "voc", "labelme", "supervisely")
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".txt", ".json", ".xml")


def of(path: Path, index: int = 0) -> Prediction:
    """Return a prediction of a picture file."""
    boxes = [[1, 2, 30, 20]]
    return Prediction.from_arrays(
        size=upright_size(path), boxes=boxes, classes=["a"], path=str(path), index=index
    )


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A picture."""
    return makers.write_jpeg(tmp_path / "photos" / "1.jpg")


KILLED = """
import os, signal, sys
from pathlib import Path
from predsession import Prediction, save_predictions

def replace(self, target):
    if sys.argv[4] in (self.name, Path(target).suffix):
        os.kill(os.getpid(), signal.SIGKILL)
    return os.replace(self, target)

Path.replace = replace
one = Prediction.from_arrays(size=(640, 480), boxes=[[1, 2, 3, 4]], classes=["a"], path=sys.argv[1])
save_predictions([one], sys.argv[2], sys.argv[3], overwrite=True, root=".", images=sys.argv[5] or None)
"""


def kill(photo: Path, place: Path, name: str, *, at: str, images: str = "") -> None:
    """Kill a run just before a file gets its name."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(photo), str(place), name, at, images],
        check=False,
        cwd=photo.parent,
        env={**os.environ, "PYTHONPATH": str(Path(predsession.__file__).parents[1])},
    )
    assert done.returncode == -signal.SIGKILL


def hidden(place: Path) -> list[Path]:
    """Return what is hidden in a folder."""
    return sorted(each for each in place.rglob(".*") if each.is_file())


@pytest.mark.parametrize("images", ["copy", "link"])
@pytest.mark.parametrize("name", FOLDERS)
def test_the_next_run_takes_drafts_away(photo: Path, tmp_path: Path, name: str, images: str) -> None:
    """Of a run that was killed before a picture had its name; no tool takes one for a picture or label."""
    place = tmp_path / "out"
    kill(photo, place, name, at=".jpg", images=images)
    (left,) = hidden(place)
    assert left.suffix not in SUFFIXES
    before = photo.read_bytes()
    assert list(read_predictions(place, name)) == [] or name == "supervisely"
    for existing in (Existing.RESUME, Existing.OVERWRITE):
        left.write_bytes(b"half") if existing is Existing.OVERWRITE else None
        Saving(Target(path=place, existing=existing), name).close()
        assert hidden(place) == []
    assert photo.read_bytes() == before


def test_a_draft_that_is_a_second_name_of_a_picture(photo: Path, tmp_path: Path) -> None:
    """Whatever a killed run left: the next draft is a file of its own, and the picture stays as it is."""
    before = photo.read_bytes()
    for link in (os.link, os.symlink):
        with drafted(tmp_path / "a.json") as draft:
            draft.write_text("whole")
        link(photo, draft)
        with drafted(tmp_path / "a.json") as draft:
            draft.write_text("whole")
    assert photo.read_bytes() == before
    assert (tmp_path / "a.json").read_text() == "whole"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.json", "photos"]


@pytest.mark.parametrize("name", ["coco", "parquet"])
def test_the_next_run_takes_a_documents_draft(photo: Path, tmp_path: Path, name: str) -> None:
    """Of a run that was killed while it was written, or before it had its name: no second one is left."""
    if name == "parquet":
        pytest.importorskip("pyarrow")
    suffix = FORMATS[name].suffixes[0]
    place = tmp_path / f"o{suffix}"
    for _ in range(2):
        kill(photo, place, name, at=f".o{suffix}.draft")
        assert sorted(each.name for each in tmp_path.iterdir()) == sorted(
            [f".o{suffix}.draft", f"o{suffix}.partial.jsonl", "photos"]
        )
    assert save_predictions([of(photo)], place, name, overwrite=True).predictions == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([place.name, "photos"])
    kill(photo, place, name, at=f".o{suffix}.draft")
    Saving(Target(path=place, existing=Existing.RESUME), name).close()
    assert hidden(tmp_path) == []


def test_two_conversions_into_one_document(photo: Path, tmp_path: Path) -> None:
    """What they keep is elsewhere, and the draft is one's alone: the second is refused, and hurts nobody."""
    target = Target(path=tmp_path / "o.json", existing=Existing.OVERWRITE, rescue=False)
    with CocoWriter(target) as first:
        with pytest.raises(SourceError, match="is being written by another run"):
            CocoWriter(target)
        first.write(of(photo))
        first.finish()
    assert len(json.loads((tmp_path / "o.json").read_text())["images"]) == 1
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("turned", [1, 6])
def test_pictures_are_copied_over_links(tmp_path: Path, turned: int) -> None:
    """A link of either kind is replaced, which takes nothing from what it leads to."""
    photo = tmp_path / "photos" / "1.jpg"
    photo.parent.mkdir()
    exif = Image.Exif()
    exif[0x0112] = turned
    Image.new("RGB", (64, 48), "red").save(photo, exif=exif)
    before = photo.read_bytes()
    place = tmp_path / "out"
    (place / "images").mkdir(parents=True)
    copy = place / "images" / "1.jpg"
    for link in (os.link, os.symlink):
        copy.unlink(missing_ok=True)
        link(photo, copy)
        saved = save_predictions([of(photo)], place, "yolo", images="copy", overwrite=True)
        assert saved.left_out == {}
        assert not copy.samefile(photo)
        assert photo.read_bytes() == before
    assert (copy.read_bytes() == before) is (turned == 1)


def test_the_picture_itself_is_not_replaced(photo: Path, tmp_path: Path) -> None:
    """Neither by its own name, nor by way of a link to its folder or to itself."""
    (tmp_path / "folder").symlink_to(photo.parent)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "1.jpg").symlink_to(photo)
    before = photo.read_bytes()
    for source, place in (
        (photo, photo.parent),
        (photo, tmp_path / "folder"),
        (tmp_path / "folder" / "1.jpg", photo.parent),
        (tmp_path / "links" / "1.jpg", photo.parent),
    ):
        with pytest.raises(SourceError, match="is the picture itself"):
            save_predictions([of(source)], place, "labelme", images="copy", overwrite=True)
    assert photo.read_bytes() == before
    assert not photo.is_symlink()
