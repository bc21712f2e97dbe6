"""Places that are not to be hurt: what is there, what is read, the inputs; from Python and by commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from predsession import (
    DiskError,
    JournalError,
    Prediction,
    PredictionSession,
    SourceError,
    UnfinishedFileWarning,
    read_predictions,
    save_predictions,
)
from predsession.cli import outputs
from predsession.export.held import is_held
from predsession.export.target import Existing, refuse_input
from predsession.jobs.journal import Journal

Numbered = Callable[..., list[Path]]


def command(*arguments: object, code: int = 0, cwd: Path | None = None) -> str:
    """Run the command line, and return what it told."""
    done = subprocess.run(
        [sys.executable, "-m", "predsession", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == code, done.stderr
    return done.stderr


def some(count: int = 3) -> list[Prediction]:
    """Return predictions of no picture."""
    return [
        Prediction.from_arrays(
            size=(9, 9), boxes=[[1, 2, 3, 4]], classes=["a"], name=f"{each}.jpg", index=each
        )
        for each in range(count)
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.csv", "a,b\n1,2\n3,4"),
        ("p.csv", "x" * 10_000),
        ("p.csv", ""),  # with what is ours, and a quote too many before it
        ("p.jsonl", "x" * 10_000),
        ("p.jsonl", '{"mine": 1}\n{"mine": 2'),
        ("p.jsonl", '{"mine": 1}\n'),
        ("p.jsonl", '{"annotation": {"objects": ['),
        ("p.jsonl", "notes\n" * 3),
    ],
)
def test_what_is_not_ours_is_not_cut(tmp_path: Path, name: str, content: str) -> None:
    """A file that cannot be added to is as it was, to the last byte."""
    path = tmp_path / name
    if not content:
        save_predictions(some(), path)
        head, *rows = path.read_text().splitlines(keepends=True)
        content = head + rows[0].replace(",0.jpg", ',"0.jpg') + "".join(rows[1:])
    path.write_text(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnfinishedFileWarning)
        with pytest.raises(SourceError, match=r"cannot be added to|none ends it"):
            save_predictions(some(1), path, append=True)
    assert path.read_text() == content
    assert not is_held(path)


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl"])
def test_what_is_cut_is_told_before(tmp_path: Path, name: str) -> None:
    """Where warnings are errors, the file stays as it is; else its last line goes, which nobody can read."""
    path = tmp_path / name
    save_predictions(some(), path)
    path.write_bytes(half := path.read_bytes()[:-3])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnfinishedFileWarning)
        with pytest.raises(UnfinishedFileWarning, match="by half, and is left out"):
            save_predictions(some(1), path, append=True)
    assert path.read_bytes() == half
    assert not is_held(path)
    with pytest.warns(UnfinishedFileWarning, match="by half, and is left out"):
        save_predictions(some(1), path, append=True)
    assert [each.index for each in read_predictions(path)] == [0, 1, 0]


def test_a_table_with_quotes_and_a_mark_is_added_to(tmp_path: Path) -> None:
    """A quote within a cell is a letter, whoever wrote it, and a spreadsheet's mark is no column."""
    path = tmp_path / "p.csv"
    save_predictions(some(), path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"0.jpg", b'0".jpg'))
    save_predictions(some(1), path, append=True)
    assert [each.name for each in read_predictions(path)] == ['0".jpg', "1.jpg", "2.jpg", "0.jpg"]


def test_adding_nothing_changes_nothing(tmp_path: Path) -> None:
    """Also where the last line lacks its end."""
    path = tmp_path / "p.jsonl"
    save_predictions(some(), path)
    path.write_bytes(before := path.read_bytes()[:-1])
    save_predictions([], path, append=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("has_begun", [False, True])
@pytest.mark.parametrize("inner", ["", "sub", "Annotations/s"])
@pytest.mark.parametrize("name", ["labelme", "voc"])
def test_what_is_read_is_not_written_into(tmp_path: Path, name: str, inner: str, has_begun: bool) -> None:
    """A folder's reader would find again what is written anywhere in it."""
    place = tmp_path / "d"
    save_predictions(some(), place, name)
    found = read_predictions(place)
    first = [next(found)] if has_begun else []
    with pytest.raises(SourceError, match=r"is being (read|written) by this program"):
        save_predictions(_chain(first, found), place / inner, name, overwrite=True)
    del found
    assert [each.name for each in read_predictions(place)] == ["0.jpg", "1.jpg", "2.jpg"]
    assert save_predictions(list(read_predictions(place)), place / "sub", name).predictions == 3


def _chain(first: list[Prediction], rest: Iterator[Prediction]) -> Iterator[Prediction]:
    """Yield all, without holding what is read on."""
    yield from first
    yield from rest


@pytest.mark.parametrize("name", ["p.csv", "p.jsonl"])
def test_what_is_read_is_not_added_to(tmp_path: Path, name: str) -> None:
    """It would never end."""
    path = tmp_path / name
    save_predictions(some(), path)
    for begun in (False, True):
        found = read_predictions(path)
        first = [next(found)] if begun else []
        with pytest.raises(SourceError, match=r"is being (read|written) by this program"):
            save_predictions(_chain(first, found), path, append=True)
        del found
    assert len(list(read_predictions(path))) == 3


def test_drawn_pictures_replace_nothing(ours: str, numbered: Numbered, tmp_path: Path) -> None:
    """A folder that holds anything is refused at once, but for --overwrite, and for one of the same run."""
    photos, drawn = numbered(2)[0].parent, tmp_path / "drawn"
    run = ("predict", photos, "--url", ours, "--save-images", drawn)
    drawn.mkdir()
    (drawn / "im_0.jpg").write_text("precious")
    assert "is not empty; choose another folder" in command(*run, code=2)
    assert (drawn / "im_0.jpg").read_text() == "precious"
    command(*run, "--overwrite")
    assert (drawn / "im_0.jpg").stat().st_size > 100
    shutil.rmtree(drawn)
    out = ("--out", drawn / "p.jsonl", "--resume")  # into the same folder, which is empty at first
    for _ in range(2):
        command(*run, *out)
    assert sorted(each.name for each in drawn.iterdir()) == [
        "im_0.jpg", "im_1.jpg", "p.jsonl", "p.jsonl.journal",
    ]  # fmt: skip
    assert "is named twice" in command(*run, "--out", drawn, "--format", "labelme", code=2)
    closed = command("predict", photos, "--url", ours, "--save-images", "/proc/no/drawn", code=2)
    assert "/proc/no/drawn cannot be written" in closed


@pytest.mark.parametrize(
    ("source", "out"),
    [
        ("photos/im_0.jpg", "photos/im_0.jpg"),
        ("photos", "photos/im_0.jpg"),
        ("photos/im_0.jpg", "link.jpg"),
        ("photos/im_0.jpg", "hard.jpg"),
    ],
)
def test_an_input_is_not_written_over(
    ours: str, numbered: Numbered, tmp_path: Path, source: str, out: str
) -> None:
    """By no name that it has; with --overwrite neither, and nothing has been sent."""
    photo = numbered(2)[0]
    (tmp_path / "link.jpg").symlink_to(photo)
    os.link(photo, tmp_path / "hard.jpg")
    before = photo.read_bytes()
    run = ("predict", source, "--url", "http://127.0.0.1:9", "--out", out, "--format", "jsonl", "--overwrite")
    assert "is among the inputs, which would be gone" in command(*run, code=2, cwd=tmp_path)
    with PredictionSession(ours, tmp_path / source) as session:
        with pytest.raises(SourceError, match="is among the inputs"):
            session.save(tmp_path / out, "jsonl", overwrite=True)
        assert session.save(tmp_path / "p.jsonl").predictions == (2 if source == "photos" else 1)
    found = list(read_predictions(tmp_path / "p.jsonl"))
    with pytest.raises(SourceError, match="is among the inputs"):
        save_predictions(found, tmp_path / out, "jsonl", overwrite=True)
    assert photo.read_bytes() == before


def test_what_is_no_input_is_written_over(tmp_path: Path) -> None:
    """Beside the inputs, or in place of none; what cannot be compared is passed over."""
    (tmp_path / "p.jsonl").touch()
    refuse_input(tmp_path / "p.jsonl", [tmp_path, b"x", None, 3, "http://x/p.jsonl", tmp_path / "no.jpg"])
    refuse_input(tmp_path / "no.jpg", [tmp_path / "no.jpg", tmp_path])


class Broken:
    """A file whose end fails."""

    def __init__(self, name: str, done: list[str]) -> None:
        self._name, self._done = name, done

    def _fail(self) -> None:
        self._done.append(self._name)
        raise DiskError(f"{self._name} is full")

    finish = close = _fail


@pytest.mark.parametrize("way", ["finish", "close"])
def test_each_of_several_files_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    """Whatever another one's end is: the first error is raised, the others are told."""
    done: list[str] = []
    files = outputs.Outputs(_args(), root=None)
    files.open(str(tmp_path / "p.csv"), existing=Existing.REFUSE)
    files.write(some(1)[0])
    monkeypatch.setattr(files, "_all", [Broken("first", done), *files._all, Broken("second", done)])
    with pytest.raises(DiskError, match="first is full"):
        getattr(files, way)()
    assert done == ["first", "second"]
    assert "second is full" in capsys.readouterr().err
    assert is_held(tmp_path / "p.csv") is (way == "finish")
    files._all[1].close()
    assert len(list(read_predictions(tmp_path / "p.csv"))) == 1


def _args() -> object:
    """Return what the command line says without any option."""
    return type("Args", (), {"images": None, "scores": False})()


def test_one_file_of_several_that_cannot_be_finished(ours: str, numbered: Numbered, tmp_path: Path) -> None:
    """A document that another run has put there fails alone: the page beside it is complete."""
    photos, out, page = numbered(3)[0].parent, tmp_path / "p.json", tmp_path / "p.html"
    program = (
        "import sys\nfrom predsession.cli import main\nfrom predsession.export.coco import CocoWriter\n"
        "real = CocoWriter.finish\n"
        "def finish(self):\n    open(sys.argv[1], 'w').write('theirs'); real(self)\n"
        "CocoWriter.finish = finish\nsys.exit(main(sys.argv[2:]))\n"
    )
    run = ["predict", photos, "--url", ours, "--out", out, "--html", page, "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", program, str(out), *map(str, run)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "was written by another run meanwhile" in done.stderr
    assert out.read_text() == "theirs"
    assert '{"end":true}' in page.read_text()


def test_a_run_goes_on_through_a_link(ours: str, numbered: Numbered, tmp_path: Path) -> None:
    """Its file is known by whichever name it has."""
    photos = numbered(3)[0].parent
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for folder in ("real", "link", "real"):
        command("predict", photos, "--url", ours, "--out", tmp_path / folder / "p.json", "--resume")
    assert len(json.loads((tmp_path / "real" / "p.json").read_text())["images"]) == 3
    with closing(Journal(tmp_path / "real" / "p.json.journal")) as journal:
        assert not journal.knows_file("a\0b")


def test_a_session_whose_journal_fails_lets_go_of_the_file(
    ours: str, numbered: Numbered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was about to write may be written by the next."""

    def note_file(*_: object) -> None:
        raise JournalError("full")

    monkeypatch.setattr(Journal, "note_file", note_file)
    with PredictionSession(ours, numbered(1), resume=tmp_path / "j") as session:
        with pytest.raises(JournalError) as raised:
            session.save(tmp_path / "p.jsonl")
        assert raised.traceback  # whose frames would otherwise be what lets the file go
        assert not is_held(tmp_path / "p.jsonl")
