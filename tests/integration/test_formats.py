"""What all formats owe: every one of them against the same odd predictions and the same bad places."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import makers
import numpy as np
import pytest

from predsession import DiskError, ItemError, Prediction, SourceError, read_predictions, save_predictions
from predsession.export.formats import FORMATS
from predsession.wire.geometry import MaskCrop

NAMES = ("a/1.jpg", "b/1.jpg", "b/1.png", "b/deep/1.jpg")
ODD = (
    "a/b",
    "two\nlines",
    'quo"te',
    "it's",
    "no",
    "12",
    "=1+1",
    "comma, colon: #",
    "東京 🙂",
    " blank ",
    "<b>&amp;",
)
DOCUMENTS = [name for name in FORMATS if name != "video"]
READABLE = [name for name in DOCUMENTS if FORMATS[name].read is not None]
KEEPS_EMPTY = [name for name in READABLE if name not in ("csv", "parquet")]


def place(folder: Path, name: str) -> Path:
    """Return where a format is written."""
    suffixes = FORMATS[name].suffixes
    return folder / f"out{suffixes[0] if suffixes else ''}"


def save(predictions: list[Prediction], folder: Path, name: str, **more: object) -> Path:
    """Write a format, with pictures where it has a place for them: some cannot be read without."""
    where = place(folder, name)
    images = "copy" if FORMATS[name].takes_images else None
    save_predictions(predictions, where, name, **{"images": images, **more})
    return where


def contents(path: Path) -> dict[str, bytes]:
    """Return every file of an output."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(each.relative_to(path.parent)): each.read_bytes() for each in files if each.is_file()}


@pytest.fixture
def found(tmp_path: Path) -> list[Prediction]:
    """A mask, keypoints and a box on each picture of nested folders."""
    made = []
    for index, name in enumerate(NAMES):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        makers.write(path, makers.jpeg((64, 48)) if path.suffix == ".jpg" else makers.png((64, 48)))
        mask = MaskCrop(5 + index, 6, np.ones((8, 9), np.bool_))
        made.append(
            Prediction.from_arrays(
                size=(64, 48),
                masks=[mask, None],
                boxes=[[5 + index, 6, 14 + index, 14], [1.25, 2.5, 33, 44]],
                keypoints=[[[6, 7, 1], [8, 9, 1]], [[2, 3, 1], [4, 5, 0]]],
                scores=[0.5, 0.25],
                classes=["b", "a"],
                class_names=["a", "b", "c"],
                path=str(path),
                index=index,
            )
        )
    return made


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=False).returncode:
        pytest.skip("a small disk can only be made by root")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_saving_twice_gives_the_same_files(name: str, found: list[Prediction], tmp_path: Path) -> None:
    """No date, no process id, no order of a set; and nothing else is left beside them."""
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    first, second = save(found, tmp_path / "x", name), save(found, tmp_path / "y", name)
    assert contents(first) == contents(second)
    assert [each.name for each in (tmp_path / "x").iterdir()] == [first.name]


@pytest.mark.parametrize("name", READABLE)
def test_pictures_of_one_name_stay_apart(name: str, found: list[Prediction], tmp_path: Path) -> None:
    """a/1.jpg, b/1.jpg, b/1.png: as many predictions come back, each with the boxes of its own picture."""
    back = list(read_predictions(save(found, tmp_path, name)))
    assert len(back) == len(found)
    wanted = {tuple(each.boxes[0].round(2).tolist()) for each in found}
    assert {tuple(each.boxes[0].round(2).tolist()) for each in back} == wanted


@pytest.mark.parametrize("name", READABLE)
def test_odd_class_names_come_back(name: str, found: list[Prediction], tmp_path: Path) -> None:
    """A slash, a line end, quotes, words that YAML reads as truth values."""
    odd = Prediction.from_arrays(
        size=(64, 48), boxes=[[1, 2, 11, 12]] * len(ODD), classes=ODD, path=found[0].path
    )
    (back,) = read_predictions(save([odd], tmp_path, name))
    assert tuple(back.classes) == ODD


@pytest.mark.parametrize("name", KEEPS_EMPTY)
def test_a_picture_without_objects_comes_back(name: str, found: list[Prediction], tmp_path: Path) -> None:
    """It was looked at, which is worth knowing."""
    empty = Prediction.from_arrays(size=(64, 48), boxes=np.zeros((0, 4)), path=found[1].path, index=1)
    back = list(read_predictions(save([found[0], empty, found[2]], tmp_path, name)))
    assert [len(each) for each in back] == [2, 0, 2] or sorted(len(each) for each in back) == [0, 2, 2]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_picture_that_is_gone(name: str, found: list[Prediction], tmp_path: Path) -> None:
    """Its annotation is written all the same; where the picture would belong, it is counted."""
    Path(found[0].path or "").unlink()
    where = place(tmp_path, name)
    saved = save_predictions(found, where, name, images="copy" if FORMATS[name].takes_images else None)
    assert saved.predictions == len(found)
    assert saved.left_out.get("pictures that are gone", 0) == (
        1 if FORMATS[name].takes_images or name == "html" else 0
    )
    assert contents(where)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_mask_of_twenty_megapixels(name: str, tmp_path: Path) -> None:
    """With a hole, on a picture that is not at hand."""
    mask = np.ones((4000, 5000), np.bool_)
    mask[1000:2000, 1000:3000] = False
    large = Prediction.from_arrays(
        size=(5000, 4000), masks=[MaskCrop(0, 0, mask)], classes=["a"], name="large.png"
    )
    save_predictions([large], place(tmp_path, name), name)
    assert contents(place(tmp_path, name))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_there_is_refused(name: str, found: list[Prediction], tmp_path: Path) -> None:
    """Before anything is written; with overwrite=True it is replaced, by the same."""
    where = save(found, tmp_path, name)
    before = contents(where)
    with pytest.raises(SourceError, match=r"overwrite=True, --overwrite"):
        save(found, tmp_path, name)
    assert contents(where) == before
    save(found, tmp_path, name, overwrite=True)
    assert contents(where) == before


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_place_that_cannot_be_written(name: str, found: list[Prediction]) -> None:
    """Is told at once, with its name."""
    with pytest.raises(SourceError, match=r"/proc/no/out\S* cannot be written \(.*\); choose another place"):
        save(found, Path("/proc/no"), name)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_full_disk(name: str, found: list[Prediction], small_disk: Path) -> None:
    """Is an error that names the file, however the format writes."""
    with pytest.raises(DiskError, match=rf"{small_disk}\S* cannot be written \(No space left on device\)"):
        save(found * 3000, small_disk, name, images=None)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_item_errors_are_kept_or_counted(name: str, found: list[Prediction], tmp_path: Path) -> None:
    """None disappears without a word."""
    bad = ItemError("item 1, x.jpg: empty file", index=1, name="x.jpg", path="x.jpg", reason="empty file")
    saved = save_predictions([found[0], bad, found[1]], place(tmp_path, name), name)
    assert saved.errors == 1
    kept = b"empty file" in b"".join(contents(place(tmp_path, name)).values())
    assert kept or saved.left_out["item errors"] == 1


def test_nothing_is_imported_that_is_not_needed() -> None:
    """JSON lines need no other format, and no extra."""
    program = (
        "import sys, predsession\n"
        "list(predsession.save_predictions([], '/dev/null', 'jsonl').left_out)\n"
        "print([m for m in ('pyarrow', 'av', 'pandas', 'predsession.export.coco') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
