"""How files begin and end: what is let go of, what others do meanwhile, what a fork may not do."""

from __future__ import annotations

import fcntl
import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fork_kit import in_fork

import predsession
from predsession import DiskError, ItemError, Prediction, SourceError, read_predictions, save_predictions
from predsession.export.formats import FORMATS
from predsession.export.growing import GrowingFile
from predsession.export.held import HeldFile, HeldFolder, is_held
from predsession.export.inuse import InUse, key_of
from predsession.export.readers import is_read, reading
from predsession.export.saving import Saving
from predsession.export.spooled import partial_path
from predsession.export.target import Existing, Target

FOLDERS = ("yolo", "voc", "labelme", "supervisely")
FILES = ("jsonl", "csv", "html", "coco")


def one(index: int = 0) -> Prediction:
    """Return a prediction with one object."""
    return Prediction.from_arrays(
        size=(64, 32), boxes=[[1, 2, 30, 20]], classes=["a"], name=f"{index}.jpg", index=index
    )


def place_of(name: str, folder: Path) -> Path:
    """Return where a format is written."""
    return folder / f"out{next(iter(FORMATS[name].suffixes), '')}"


@pytest.mark.parametrize(("name", "file"), [("yolo", "data.yaml"), ("supervisely", "meta.json")])
def test_a_folder_with_a_damaged_description_is_let_go(tmp_path: Path, name: str, file: str) -> None:
    """It is refused, and once the file is mended, the same process may write there."""
    save_predictions([one()], tmp_path / "out", name)
    good = (tmp_path / "out" / file).read_bytes()
    (tmp_path / "out" / file).write_bytes(b"names: [")
    with pytest.raises(SourceError, match=file) as raised:
        save_predictions([one()], tmp_path / "out", name, overwrite=True)
    assert raised.traceback  # whose frames would otherwise be what lets the folder go
    (tmp_path / "out" / file).write_bytes(good)
    assert save_predictions([one(1)], tmp_path / "out", name, overwrite=True).predictions == 1


@pytest.mark.parametrize("name", FOLDERS)
def test_a_run_that_got_nowhere_leaves_no_folder(tmp_path: Path, name: str) -> None:
    """The next one may write there, without being told to overwrite anything."""
    Saving(Target(path=tmp_path / "out"), name).close()
    assert list(tmp_path.iterdir()) == []
    assert save_predictions([one()], tmp_path / "out", name).predictions == 1


@pytest.mark.parametrize("name", sorted({*FORMATS} - {"video", "parquet"}))
@pytest.mark.parametrize("outcomes", [[], [ItemError("no", index=0, name="a.jpg", path=None, reason="no")]])
def test_what_is_said_to_be_written_is_there(tmp_path: Path, name: str, outcomes: list[ItemError]) -> None:
    """Also of a run without any prediction."""
    saved = save_predictions(outcomes, place_of(name, tmp_path), name)
    assert Path(saved.path).exists()


@pytest.mark.parametrize("name", FILES + FOLDERS)
def test_what_is_taken_away_meanwhile_is_told(tmp_path: Path, name: str) -> None:
    """A run is not said to be good whose file is nowhere; no run is hurt by what has its place."""
    place = place_of(name, tmp_path)
    taken = partial_path(place) if name == "coco" else place
    with_others = tmp_path / "others"
    with_others.mkdir()
    for is_replaced in (False, True):
        saving = Saving(Target(path=place, existing=Existing.OVERWRITE), name)
        saving.write(one())
        taken.rename(with_others / f"{taken.name}{is_replaced}")
        if is_replaced:
            taken.mkdir() if name in FOLDERS else taken.touch()
        with pytest.raises(DiskError, match=f"{taken.name} was removed, or replaced, while it was written"):
            saving.finish()
        assert taken.exists() is is_replaced
        saving.close()
        assert taken.exists() is is_replaced


def test_what_has_its_place_is_not_taken_away(tmp_path: Path) -> None:
    """A run that got nowhere takes its own empty file away, and not what somebody has put there since."""
    held = HeldFile(Target(path=tmp_path / "p"))
    (tmp_path / "p").unlink()
    (tmp_path / "p").write_text("theirs")
    held.close()
    assert (tmp_path / "p").read_text() == "theirs"


@pytest.mark.parametrize("name", ["coco", "jsonl"])
def test_a_link_to_itself_is_told_at_once(tmp_path: Path, name: str) -> None:
    """There is no file that it stands for, and none can be made."""
    place = place_of(name, tmp_path)
    place.symlink_to(place)
    with pytest.raises(SourceError, match=r"cannot be written \(Too many levels of symbolic links\)"):
        Saving(Target(path=place), name)
    assert list(tmp_path.iterdir()) == [place]


class Meanwhile:
    """Has another run do something, just before a lock is taken for the n-th time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], nth: int = 1) -> None:
        self._act, self._left = act, nth
        self._lock = fcntl.flock
        monkeypatch.setattr(fcntl, "flock", self)

    def __call__(self, number: int, operation: int) -> None:
        """Act, and lock."""
        self._left -= operation != fcntl.LOCK_UN
        if not self._left:
            self._left = -1
            self._act()
        self._lock(number, operation)


def test_a_file_that_was_replaced_while_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is locked then has no name any longer: it is told, or everything would go nowhere."""
    path = tmp_path / "p.jsonl"
    path.touch()

    def replace() -> None:
        (tmp_path / "new").touch()
        (tmp_path / "new").rename(path)

    Meanwhile(monkeypatch, replace)
    with pytest.raises(SourceError, match="was just written by another run"):
        HeldFile(Target(path=path))
    assert not is_held(path)


def test_a_file_that_was_written_while_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run has ended in between: what it left may not be touched."""
    path = tmp_path / "p.jsonl"
    Meanwhile(monkeypatch, lambda: path.write_text("theirs"))
    with pytest.raises(SourceError, match="is there already"):
        HeldFile(Target(path=path))
    assert path.read_text() == "theirs"


def test_a_folder_that_was_filled_while_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a file; and it is let go of."""
    Meanwhile(monkeypatch, lambda: (tmp_path / "out" / "theirs").touch())
    with pytest.raises(SourceError, match="is not empty") as raised:
        HeldFolder(Target(path=tmp_path / "out"))
    assert raised.traceback
    assert not is_held(tmp_path / "out")
    HeldFolder(Target(path=tmp_path / "out", existing=Existing.OVERWRITE)).close()


def test_a_document_that_was_written_while_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told before anything is computed, not at the end; nothing of ours is left beside it."""
    path = tmp_path / "p.json"
    Meanwhile(monkeypatch, lambda: path.write_text("theirs"))
    with pytest.raises(SourceError, match="is there already"):
        Saving(Target(path=path), "coco")
    assert [each.name for each in tmp_path.iterdir()] == ["p.json"]


@pytest.mark.parametrize("changed", [False, True])
def test_a_file_that_is_gone_on_with_is_not_cut_before_it_differs(tmp_path: Path, changed: bool) -> None:
    """What is the same stays, all of it, at any moment; from the first difference on it is written anew."""
    path = tmp_path / "p"
    path.write_bytes(b"one\ntwo\nthree\n")
    file = GrowingFile(Target(path=path, existing=Existing.RESUME), lambda _: 0)
    file.write(b"one\n")
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    file.write(b"TWO\n" if changed else b"two\n")
    assert path.read_bytes() == (b"one\nTWO\n" if changed else b"one\ntwo\nthree\n")
    file.finish()
    file.close()
    assert path.read_bytes() == (b"one\nTWO\n" if changed else b"one\ntwo\n")


def test_what_is_kept_beside_a_document_is_not_written_over_while_it_is_read(tmp_path: Path) -> None:
    """A document that is written anew begins with it."""
    partial = partial_path(tmp_path / "p.json")
    save_predictions([one(0), one(1)], partial)
    found = read_predictions(partial)
    first = next(found)
    with pytest.raises(SourceError, match="is being read by this program"):
        save_predictions([first], tmp_path / "p.json", overwrite=True)
    assert [first.index, *(each.index for each in found)] == [0, 1]


FORKS = """
import os, sys
from pathlib import Path
from predsession import Prediction, SourceError, save_predictions

def one(index):
    return Prediction.from_arrays(size=(8, 8), boxes=[[1, 2, 3, 4]], classes=['a'], name=f'{index}.jpg')

def some():
    yield one(0)
    child = os.fork()
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        yield one(1)
    else:
        yield from map(one, range(2, 2 + int(sys.argv[3])))

try:
    saved = save_predictions(some(), sys.argv[1], sys.argv[2])
except SourceError as error:
    assert 'is written by the process that this one was forked from' in str(error), error
    sys.exit(7)
print(saved.predictions)
"""


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("name", FILES + FOLDERS)
def test_a_fork_that_goes_on_through_the_stack_writes_nothing(tmp_path: Path, name: str, more: int) -> None:
    """Neither its predictions nor the end of its parent's file: it is refused."""
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(place_of(name, tmp_path)), name, str(more)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(predsession.__file__).parents[1],
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    if FORMATS[name].read is None:
        assert "2.jpg" not in place_of(name, tmp_path).read_text()
    else:
        names = sorted(each.name for each in read_predictions(place_of(name, tmp_path), name))
        assert names == ["0.jpg", "1.jpg"]


def test_a_fork_reads_on_what_its_parent_does(tmp_path: Path) -> None:
    """It may not write over it either."""
    path = tmp_path / "p.jsonl"
    save_predictions([one()], path)

    def look() -> None:
        assert is_read(path)

    with reading(path):
        assert in_fork(look) == 0
    assert in_fork(look) != 0
    assert not is_read(path)


class Again:
    """Makes the garbage collector call a function, as often as it can."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self._again = True
        self._threshold = gc.get_threshold()

    def __enter__(self) -> None:
        self._leave_one()
        gc.set_threshold(1)

    def __exit__(self, *_: object) -> None:
        gc.set_threshold(*self._threshold)
        self._again = False
        gc.collect()

    def _leave_one(self) -> None:
        """Leave a generator that is in a circle of its own, whose end acts and leaves the next."""

        def wait() -> Iterator[object]:
            try:
                while True:
                    yield circle
            finally:
                self._act()
                if self._again:
                    self._leave_one()

        circle = wait()
        next(circle)


def test_readers_that_the_collector_ends_hold_nobody_up(tmp_path: Path) -> None:
    """It may come at any moment, also while users are counted: nothing waits for itself, none is lost."""
    in_use, path = InUse(), tmp_path / "p"
    path.touch()
    key = key_of(path)
    assert key is not None
    others = [in_use.add([(0, number)]) for number in range(500)]

    def act() -> None:
        if others:
            in_use.remove(others.pop())
        in_use.remove(in_use.add([key]))
        in_use.has([key])

    with Again(act):
        for _ in range(300):
            user = in_use.add([key])
            assert in_use.has([key])
            in_use.remove(user)
            assert not in_use.has([key])
    assert len(others) < 500, "the collector came"


def test_the_folders_of_what_is_written_are_held_too(tmp_path: Path) -> None:
    """Whatever they are called: who reads one would read what is written."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    held = HeldFile(Target(path=tmp_path / "link" / "p.jsonl"))
    assert is_held(tmp_path / "real")
    assert is_held(tmp_path)
    assert not is_held(tmp_path / "real" / "other")
    held.close()
    assert not is_held(tmp_path)
