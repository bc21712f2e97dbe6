"""Places that are written: forks, places that cannot be looked at, and what others wrote meanwhile."""

from __future__ import annotations

import fcntl
import importlib
import os
import pkgutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fork_kit import fork, in_fork

import predsession.export
from predsession import Prediction, Size, SourceError, read_predictions, save_predictions
from predsession.export.coco import CocoWriter
from predsession.export.formats import FORMATS
from predsession.export.growing import GrowingFile
from predsession.export.held import HeldFile, HeldFolder, is_held
from predsession.export.jsonl import JsonlWriter
from predsession.export.spooled import partial_path
from predsession.export.target import Existing, Target

WRITTEN = {"jsonl": "p.jsonl", "csv": "p.csv", "html": "p.html", "coco": "p.json", "labelme": "folder"}
NOBODY = 65534

pytestmark = pytest.mark.filterwarnings(
    "ignore:lance is not fork-safe",  # where other tests have imported it; nothing of it is used here
    "ignore:This process .* is multi-threaded:DeprecationWarning",  # Python 3.12; so are its tests
)


def one(index: int = 0) -> Prediction:
    """Return a prediction with one object."""
    return Prediction.from_arrays(
        size=Size(64, 32), boxes=[[1, 2, 30, 20]], classes=["a"], name=f"{index}.jpg", index=index
    )


@pytest.fixture
def living() -> Iterator[Callable[[], None]]:
    """Return what forks a child that lives until the test is over, with all that was open."""
    begun: list[tuple[int, int]] = []

    def begin() -> None:
        """Fork once."""
        wait, end = os.pipe()
        child = fork()
        if not child:
            os.close(end)
            os.read(wait, 1)
            os._exit(0)
        os.close(wait)
        begun.append((child, end))

    yield begin
    for child, end in begun:
        os.close(end)
        os.waitpid(child, 0)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_fork_that_lives_on_holds_nothing(tmp_path: Path, living: Callable[[], None], name: str) -> None:
    """A child that was forked while a file was written does not keep its parent from writing it again."""

    def some() -> Iterator[Prediction]:
        """Yield two, and fork between them."""
        yield one(0)
        living()
        yield one(1)

    save_predictions(some(), tmp_path / WRITTEN[name], name)
    again = save_predictions([one()], tmp_path / WRITTEN[name], name, overwrite=True)
    assert again.predictions == 1


def test_a_fork_reads_what_its_parent_wrote(tmp_path: Path) -> None:
    """What the parent was writing when it forked is not what the child is writing."""
    path = tmp_path / "p.jsonl"
    with JsonlWriter(path) as writer:
        writer.write(one())
        assert is_held(path)

        def look() -> None:
            assert not is_held(path)
            assert len(list(read_predictions(path))) == 1

        assert in_fork(look) == 0
        assert is_held(path)
    assert not is_held(path)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_fork_that_leaves_through_the_stack(tmp_path: Path, name: str) -> None:
    """A child that exits before the first line, in the iterator, takes nothing of its parent's away."""
    program = (
        "import os, sys\n"
        "from predsession import Prediction, Size, save_predictions\n"
        "def some():\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        sys.exit(7)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "    size, boxes = Size(8, 8), [[1, 2, 3, 4]]\n"
        "    yield Prediction.from_arrays(size=size, boxes=boxes, classes=['a'], name='a.jpg')\n"
        f"print(save_predictions(some(), {str(tmp_path / WRITTEN[name])!r}, {name!r}).predictions)\n"
    )
    home = Path(predsession.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=home
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    if FORMATS[name].read is None:
        assert "a.jpg" in (tmp_path / WRITTEN[name]).read_text()
    else:
        assert [each.name for each in read_predictions(tmp_path / WRITTEN[name], name)] == ["a.jpg"]


def test_a_fork_writes_nothing_of_its_parents(tmp_path: Path) -> None:
    """What the parent has not handed to the system yet is not written by a child that closes, but once."""
    held = HeldFile(Target(path=tmp_path / "p"))
    held.file.write(b"once")
    assert in_fork(held.close) == 0
    assert (tmp_path / "p").read_bytes() == b""
    held.close()
    assert (tmp_path / "p").read_bytes() == b"once"


def test_a_fork_leaves_the_lock_and_the_folder(tmp_path: Path) -> None:
    """A child that closes lets nobody else in, and does not remove the folder that was made."""
    held = HeldFolder(Target(path=tmp_path / "folder"))
    assert in_fork(held.close) == 0
    number = os.open(tmp_path / "folder", os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(number)
    held.close()
    assert not (tmp_path / "folder").exists()


def test_a_fork_leaves_what_is_kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversion's lines, in the folder for temporary files, outlive a child that closes; not the run."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "out").mkdir()
    with CocoWriter(Target(path=tmp_path / "out" / "a.json", rescue=False)) as writer:
        writer.write(one())
        assert in_fork(writer.close) == 0
        writer.finish()
    assert [each.name for each in read_predictions(tmp_path / "out" / "a.json")] == ["0.jpg"]
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.fixture
def modules() -> None:
    """Import what is imported late: who owns nothing may not be allowed to."""
    for each in pkgutil.iter_modules(predsession.export.__path__, "predsession.export."):
        importlib.import_module(each.name)


def as_nobody(act: Callable[[], None]) -> None:
    """Do something that must not raise, as somebody who owns nothing."""

    def change() -> None:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        act()

    assert in_fork(change) == 0


def refused(act: Callable[[], object], *words: str) -> None:
    """See to it that something is refused in our words, which name the place."""
    with pytest.raises(SourceError) as raised:
        act()
    assert all(word in str(raised.value) for word in words), str(raised.value)


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_folder_that_may_not_be_looked_into(name: str) -> None:
    """In a folder of somebody else's, files and folders are refused in our words, not the system's."""
    with tempfile.TemporaryDirectory() as above:  # pytest's own folders nobody else may enter
        Path(above).chmod(0o755)
        closed = Path(above, "closed")
        closed.mkdir(mode=0o700)
        place = closed / f"x{next(iter(FORMATS[name].suffixes), '')}"

        def look() -> None:
            refused(lambda: save_predictions([one()], place, name), str(place), "Permission denied")
            refused(lambda: read_predictions(place), str(place), "cannot be read (Permission denied)")
            refused(lambda: list(read_predictions(closed)), str(closed), "cannot be read")

        as_nobody(look)


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("name", ["p.jsonl", "p.csv", "p.json", "p.xml"])
def test_a_file_that_may_not_be_read(name: str) -> None:
    """It is there, and its format is known by its suffix: its reader says which file it is."""
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o755)
        path = Path(above, name)
        path.write_text("{}")
        path.chmod(0o200)
        as_nobody(lambda: refused(lambda: list(read_predictions(path)), str(path), "Permission denied"))


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize(
    ("stem", "why"), [("n" * 300, "File name too long"), ("a\0b", "null"), ("a\ud800", "surrogates")]
)
def test_names_that_no_file_can_have(tmp_path: Path, name: str, stem: str, why: str) -> None:
    """They are refused in our words, by writers and readers."""
    place = tmp_path / f"{stem}{next(iter(FORMATS[name].suffixes), '')}"
    refused(lambda: save_predictions([one()], place, name), str(place), "cannot be written", why)
    refused(lambda: read_predictions(place, "jsonl"), str(place))
    assert list(tmp_path.iterdir()) == []


def test_names_as_long_as_a_file_can_have(tmp_path: Path) -> None:
    """What is kept beside a document has a name that is no longer; a killed run is gone on with."""
    path = tmp_path / f"{'é' * 125}.json"
    other = path.with_name(f"{'é' * 124}è.json")
    assert partial_path(path) != partial_path(other)
    with CocoWriter(Target(path=path)) as writer:
        writer.write(one())
    assert [each.name for each in read_predictions(partial_path(path))] == ["0.jpg"]
    assert save_predictions([one(1)], path, overwrite=True).predictions == 1
    assert [each.name for each in read_predictions(path)] == ["1.jpg"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_opened_is_held_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may be written and not read, is added to: refused, and free for the next run."""
    path = tmp_path / "p.jsonl"
    path.write_text("{}\n")

    def complete(path: Path) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    with pytest.raises(SourceError, match=r"p\.jsonl cannot be written \(Permission denied\)") as raised:
        GrowingFile(Target(path=path, existing=Existing.APPEND), complete)
    assert not is_held(path)
    assert raised.traceback  # whose frames would otherwise be what lets the file go
    HeldFile(Target(path=path, existing=Existing.APPEND)).close()


@pytest.mark.parametrize("name", ["jsonl", "coco", "parquet"])
def test_modes_and_links_stay(tmp_path: Path, name: str) -> None:
    """A file that others may not read stays so, and a link a link, whatever a format needs to be whole."""
    if name == "parquet":
        pytest.importorskip("pyarrow")
    suffix = FORMATS[name].suffixes[0]
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / f"r{suffix}", tmp_path / f"p{suffix}"
    save_predictions([one()], real, name)
    real.chmod(0o600)
    link.symlink_to(real)
    save_predictions([one(1)], link, name, overwrite=True)
    assert link.is_symlink()
    assert not real.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert [each.name for each in read_predictions(real)] == ["1.jpg"]
    assert sorted(each.name for each in tmp_path.rglob("*")) == sorted(["real", real.name, link.name])


def test_what_is_kept_beside_a_private_document_is_private(tmp_path: Path) -> None:
    """Nor can the lines be read by others while the document is made."""
    path = tmp_path / "p.json"
    path.touch(mode=0o600)
    with CocoWriter(Target(path=path)) as writer:
        writer.write(one())
        assert stat.S_IMODE(partial_path(path).stat().st_mode) == 0o600
        writer.finish()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_links_to_where_nothing_can_be_written(tmp_path: Path) -> None:
    """It is told before anything is computed."""
    (tmp_path / "p.json").symlink_to(tmp_path / "nowhere" / "p.json")
    refused(lambda: CocoWriter(Target(path=tmp_path / "p.json")), "p.json", "cannot be written")


@pytest.mark.parametrize("has_links", [True, False])
def test_a_document_that_came_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    """Who was not told to overwrite does not, at the end either; what was found is kept, and is named."""
    if not has_links:

        def link(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
    path = tmp_path / "p.json"
    with CocoWriter(Target(path=path)) as writer:
        writer.write(one())
        path.write_text("theirs")
        with pytest.raises(SourceError, match=r"p\.json was written by another run.*p\.json\.partial\.jsonl"):
            writer.finish()
    assert path.read_text() == "theirs"
    assert [each.name for each in read_predictions(partial_path(path))] == ["0.jpg"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["p.json", "p.json.partial.jsonl"]


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_document_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool, is_there: bool
) -> None:
    """An empty file holds nothing that could be lost; so it is where files have one name only."""
    if not has_links:

        def link(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
    if is_there:
        (tmp_path / "p.json").touch()
    save_predictions([one()], tmp_path / "p.json")
    assert [each.name for each in read_predictions(tmp_path / "p.json")] == ["0.jpg"]
    assert [each.name for each in tmp_path.iterdir()] == ["p.json"]
