"""Sources: iterables, folders that are watched; which one a value means; a session from a file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import makers
import numpy as np
import pytest
from stream_kit import double, drain, ids, numbered, reasons

from predsession.clock import SystemClock
from predsession.errors import SourceError
from predsession.stream import DeadLetter, FolderSource, IterableSource, Sample, StreamSession
from predsession.testing import FakeClock


def taken(source: Any, clock: FakeClock | None = None, tries: int = 10) -> list[str]:
    """Return the positions of what comes in a few looks; a dead letter's with its reason."""
    found = []
    for _ in range(tries):
        got = source.take(100, 1.0)
        if got is None:
            return [*found, "end"]
        found += [
            each.position if isinstance(each, Sample) else f"{each.position}: {each.reason}" for each in got
        ]
    return found


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """A folder with images, one of them in a folder of its own, and what is none."""
    folder = tmp_path / "inbox"
    for name in ("b10.png", "b9.png", "sub/a.jpg"):
        makers.write(folder / name, makers.png() if name.endswith("png") else makers.jpeg())
    for name in ("notes.txt", ".hidden.png", "sub/Thumbs.db"):
        makers.write(folder / name, b"x")
    return folder


def test_folder_once(inbox: Path) -> None:
    """Without follow it ends after what is there, in natural order; paths are absolute."""
    source = FolderSource(inbox, follow=False, clock=FakeClock())
    first = source.take(1, 5.0)
    assert first is not None
    assert isinstance(first[0], Sample)
    path = str(inbox / "b9.png")
    assert first[0].fields == {"object_id": "b9.png", "image": path, "path": path}
    assert source.behind() == 2
    assert taken(source) == ["folder:b10.png", "folder:sub/a.jpg", "end"]
    source.close()
    source.close()
    assert source.take(1, 1) is None


def test_folder_selected(inbox: Path) -> None:
    """A pattern is of names, with a slash of paths; recursive=False stays in the folder."""
    for keywords, wanted in (
        ({"recursive": False}, ["folder:b9.png", "folder:b10.png"]),
        ({"pattern": "*.jpg"}, ["folder:sub/a.jpg"]),
        ({"pattern": "sub/*"}, ["folder:sub/a.jpg"]),
        ({"pattern": "b9*"}, ["folder:b9.png"]),
        ({"pattern": "*.txt"}, []),
    ):
        source = FolderSource(inbox, follow=False, clock=FakeClock(), **keywords)
        assert taken(source) == [*wanted, "end"]


def test_folder_followed(inbox: Path) -> None:
    """What comes later is taken, once; what is renamed into place likewise; what is removed is forgotten."""
    source = FolderSource(inbox, clock=FakeClock())
    assert len(taken(source)) == 3
    makers.write(inbox / "new/c.png", makers.png())
    makers.write(inbox / ".part.png", makers.png())
    assert taken(source) == ["folder:new/c.png"]
    (inbox / ".part.png").rename(inbox / "d.png")
    assert taken(source) == ["folder:d.png"]
    assert taken(source) == []
    (inbox / "d.png").unlink()
    assert taken(source) == []
    makers.write(inbox / "d.png", makers.png())
    assert taken(source) == ["folder:d.png"], "it may be another picture; its id is known to the store"


class Growing(FakeClock):
    """A clock by which a file grows for some seconds."""

    def __init__(self, path: Path, data: bytes, until: float) -> None:
        super().__init__()
        self._path, self._data, self._until = path, data, until

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Write some more."""
        done = super().wait(event, seconds)
        if self.now() < self._until:
            size = int(len(self._data) * self.now() / self._until)
            self._path.write_bytes(self._data[:size])
        else:
            if self._path.stat().st_size < len(self._data):
                self._path.write_bytes(self._data)
        return done


def test_file_being_written(tmp_path: Path) -> None:
    """A file that is still written is not taken, however long that lasts, and then taken whole."""
    path = tmp_path / "slow.png"
    path.write_bytes(b"")
    clock = Growing(path, makers.png((200, 200)), 20.0)
    source = FolderSource(tmp_path, clock=clock)
    when = []
    for _ in range(40):
        got = source.take(10, 1.0)
        if got:
            assert isinstance(got[0], Sample)
            when.append(clock.now())
    assert len(when) == 1
    assert when[0] > 20


def test_damaged_files(tmp_path: Path) -> None:
    """What is damaged is a dead letter with its path, once, and taken when it is whole."""
    good = makers.png()
    makers.write(tmp_path / "cut.png", makers.truncated(good))
    makers.write(tmp_path / "empty.jpg", b"")
    (tmp_path / "lost.png").symlink_to(tmp_path / "nowhere.png")
    os.mkfifo(tmp_path / "pipe.png")
    source = FolderSource(tmp_path, clock=FakeClock())
    got = source.take(10, 2.0)
    assert got is not None
    letters = {each.position: each for each in got if isinstance(each, DeadLetter)}
    assert set(letters) == {"folder:cut.png", "folder:empty.jpg", "folder:lost.png"}
    assert letters["folder:empty.jpg"].reason == "empty file"
    assert letters["folder:cut.png"].raw == os.fsencode(tmp_path / "cut.png")
    assert "No such file" in letters["folder:lost.png"].reason
    assert taken(source) == []
    makers.write(tmp_path / "cut.png", good)
    assert taken(source) == ["folder:cut.png"]
    assert taken(source) == []


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """A name that is not UTF-8 is a dead letter that says to rename it: no store has such an id."""
    (tmp_path / os.fsdecode(b"caf\xe9.png")).write_bytes(makers.png())
    (tmp_path / "line\nbreak 'é.png").write_bytes(makers.png())
    source = FolderSource(tmp_path / "", follow=False)
    store = tmp_path / "r.parquet"
    with StreamSession(lambda batch: np.zeros(len(batch["path"])), source, store) as session:
        drain(session)
    assert ids(store) == ["line\nbreak 'é.png"]
    assert reasons(store) == {"folder:caf\\xe9.png": "the file's name is not UTF-8: rename it"}


def test_removed_before_its_turn(inbox: Path) -> None:
    """A file that is gone between two looks is passed over."""
    source = FolderSource(inbox, clock=FakeClock())
    assert source.take(1, 2.0)
    (inbox / "b10.png").unlink()
    assert taken(source) == ["folder:sub/a.jpg"]


def test_folder_that_goes(inbox: Path) -> None:
    """A folder that is gone for a while is looked for again; at first it must be there."""
    source = FolderSource(inbox, clock=FakeClock())
    assert len(taken(source)) == 3
    inbox.rename(inbox.with_name("away"))
    assert taken(source) == []
    makers.write(inbox / "e.png", makers.png())
    assert taken(source) == ["folder:e.png"]
    with pytest.raises(SourceError, match="is no folder"):
        FolderSource(inbox / "none")
    with pytest.raises(SourceError, match="settle"):
        FolderSource(inbox, settle=-1)


def test_folder_closed_from_elsewhere(tmp_path: Path) -> None:
    """close() from another thread ends a long wait."""
    waits = threading.Event()

    class Telling(SystemClock):
        def wait(self, event: threading.Event, seconds: float) -> bool:
            waits.set()
            return super().wait(event, seconds)

    source = FolderSource(tmp_path, poll=60.0, clock=Telling())
    waiting = threading.Thread(target=source.take, args=(1, 60.0))
    waiting.start()
    assert waits.wait(30)
    source.close()
    waiting.join(5)
    assert not waiting.is_alive()


def test_iterable() -> None:
    """An iterable is closed if it can be, also where nothing was taken; a slow one keeps no batch back."""
    closed = []
    go_on = threading.Event()

    class Items:
        def __iter__(self) -> Iterator[Any]:
            yield from numbered(1)
            go_on.wait(30)
            yield from numbered(1, 1)

        def close(self) -> None:
            closed.append(1)

    source = IterableSource(Items())
    assert len(source.take(10, 30) or ()) == 1
    assert source.take(10, 0.01) == []
    go_on.set()
    assert len(source.take(10, 30) or ()) == 1
    assert source.take(10, 30) is None
    source.close()
    source = IterableSource(Items())
    source.close()
    assert closed == [1, 1]


def test_iterable_decoded(tmp_path: Path) -> None:
    """decode= makes samples of items; what it cannot is a dead letter with what it was."""
    store = tmp_path / "r.parquet"

    def decode(raw: Any) -> Any:
        return {"object_id": raw.decode(), "x": np.ones(3)}

    for _ in range(2):
        with StreamSession(double, [b"a", b"\xff", b"b"], store, decode=decode) as session:
            drain(session)
    assert ids(store) == ["a", "b"]
    assert [reason.partition(":")[0] for reason in reasons(store).values()] == ["UnicodeDecodeError"]


MODEL = """
import numpy as np

def double(batch):
    return batch["x"] * 2

def sizes(batch):
    return np.array([len(path) for path in batch["path"]])

class Scaled:
    def __call__(self, batch):
        return batch["x"] * 3

def decode(raw):
    return {"object_id": raw}

broken = 7
"""


@pytest.fixture
def config(tmp_path: Path) -> Any:
    """Writes a configuration beside a model."""
    (tmp_path / "my_model.py").write_text(MODEL)

    def write(text: str) -> Path:
        path = tmp_path / "run.toml"
        path.write_text(text)
        return path

    return write


def test_config(config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key; paths are relative to the file, wherever the process is; keywords go before."""
    monkeypatch.chdir("/")
    path = config(
        'model = "my_model.py:double"\nstore = "out.parquet"\nbatch_size = 3\nflush_after = 2\n'
        'skip_stored = true\non_error = "skip"\nimage_field = "picture"\ntoken = "t"\nshow_progress = false\n'
        'decode = "my_model.py:decode"\nsettings = {conf = 0.4}\n'
    )
    with StreamSession.from_config(path, source=iter(["a"]), model=lambda batch: np.zeros(1)) as session:
        assert drain(session) == ["a"]
    assert ids(tmp_path / "out.parquet") == ["a"]
    with StreamSession.from_config(config('model = "my_model:Scaled"\nstore = "two.lance"')) as session:
        assert np.asarray(session.process({"object_id": ["a"], "x": np.array([2.0])})).tolist() == [6.0]


def test_config_of_a_folder(config: Any, inbox: Path, tmp_path: Path) -> None:
    """[source] tables of folders, and texts, are relative to the file."""
    for source in (
        '[source]\nkind = "folder"\npath = "inbox"\nfollow = false\nsettle = 0\npattern = "b*"',
        "",
    ):
        more = "" if source else 'source = "inbox"\n'
        path = config(f'model = "my_model.py:sizes"\nstore = "r.lance"\nflush_after = 0.1\n{more}{source}')
        with StreamSession.from_config(path) as session:
            came = next(iter(session))[0]["object_id"] if not source else drain(session)
        assert came == (["b9.png", "b10.png"] if source else ["sub/a.jpg"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = ", "cannot be read"),
        ("", "a model is missing"),
        ('model = "m"\nbatchsize = 3', "batchsize means nothing; keys are batch_size"),
        ("model = 7", "model is 7; wanted a text"),
        ('model = "my_model.py:double"\nbatch_size = "3"', "batch_size is '3'; wanted a whole number"),
        ('model = "my_model.py:double"\nbatch_size = 0', "batch_size is 0"),
        ('model = "my_model.py:double"\nskip_stored = 1', "skip_stored is 1; wanted true or false"),
        ('model = "my_model.py:double"\non_error = "x"', "on_error is 'x'"),
        ('model = "my_model.py:nothing"', "model: 'my_model.py:nothing' cannot be loaded: AttributeError"),
        ('model = "my_model.py:broken"', "model: .* is int, which cannot be called"),
        ('model = "no_such.py:f"', "model: .*no_such.py: there is no such file"),
        ('model = "no_such_module:f"', "model: .*ModuleNotFoundError"),
        ('model = "localhost:8000/x"', "is no URL, and names no function"),
        ('model = "my_model.py:double"\ndecode = "x"', "decode: 'x' is no URL"),
        ('model = "my_model.py:double"\n[source]\npath = "x"', "source. needs kind"),
        (
            'model = "my_model.py:double"\n[source]\nkind = "folder"\npath = "x"',
            "source. of kind folder: .*is no",
        ),
        (
            'model = "my_model.py:double"\n[source]\nkind = "folder"\npaths = "x"',
            "kind folder: .*its keys are path",
        ),
        ('model = "my_model.py:double"\n[source]\nkind = "folder"\npath = "."\npoll = "x"', "kind folder"),
        (
            'model = "my_model.py:double"\n[source]\nkind = "camera"\nurl = "x"\nfps = -1',
            "kind camera: fps is -1",
        ),
        ('model = "my_model.py:double"\n[source]\nkind = "video"\npath = "x.mp4"', "kind video: .*x.mp4"),
        ('model = "my_model.py:double"\nsource = "nowhere"', "nowhere"),
        ('model = "my_model.py:double"\nstore = "r.zip"', "store: .*r.zip is no store"),
        (
            'model = "my_model.py:double"\n[source]\nkind = "kafka"\ntopics = "t"\ndecode = "x"',
            "source. of kind kafka: decode: 'x' is no URL",
        ),
    ],
)
def test_config_mistakes(config: Any, text: str, words: str) -> None:
    """A mistake in a file is told with the file and the key."""
    path = config(text)
    with pytest.raises(SourceError, match=f"(?s){words}") as caught:
        StreamSession.from_config(path)
    assert str(caught.value).count(str(path)) == 1


def test_config_that_breaks(config: Any, tmp_path: Path) -> None:
    """A file of a model that cannot be run is told with what it raised; a missing configuration likewise."""
    (tmp_path / "bad.py").write_text("1 / 0")
    with pytest.raises(SourceError, match="ZeroDivisionError"):
        StreamSession.from_config(config('model = "bad.py:f"'))
    (tmp_path / "bad2.py").write_text("def (")
    with pytest.raises(SourceError, match="SyntaxError"):
        StreamSession.from_config(config('model = "bad2.py:f"'))
    with pytest.raises(SourceError, match="cannot be read"):
        StreamSession.from_config(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'model = "\xe9"')
    with pytest.raises(SourceError, match="cannot be read"):
        StreamSession.from_config(tmp_path / "latin.toml")


def test_file_with_the_name_of_a_module(config: Any, tmp_path: Path) -> None:
    """A model in a file that is called like a module does not take its place."""
    (tmp_path / "json.py").write_text("def f(batch):\n    return batch['x']\n")
    with StreamSession.from_config(config('model = "json.py:f"\nstore = "s.lance"')) as session:
        session.process({"object_id": ["a"], "x": np.ones(1)})
    import json

    assert hasattr(json, "dumps")
