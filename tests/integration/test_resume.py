"""Runs that are ended at any moment and gone on with: nothing is sent twice, nothing is missing."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from number_clips import write_numbers
from PIL import Image

from predsession import (
    DiskError,
    InvalidRequestError,
    ItemError,
    JournalError,
    Prediction,
    PredictionSession,
    SourceError,
)
from predsession.server.models.pixels import box_number, number_picture
from predsession.testing import FaultyServer, RunningServer

Numbered = Callable[..., list[Path]]
SUBMIT = "inference_batch_async"


def sent(faulty: FaultyServer) -> int:
    """Return how many pictures have been sent."""
    return sum(call.body.count(b"filename=") for call in faulty.calls(SUBMIT))


def numbers(session: PredictionSession) -> list[int]:
    """Run a session to its end and return the number in each picture."""
    with session:
        return [box_number(one.boxes[0]) for one in session]


@pytest.fixture
def seen(either: str) -> Iterator[FaultyServer]:
    """A server, and what was sent to it."""
    with FaultyServer(either) as server:
        yield server


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Where the journal is to be."""
    return tmp_path / "kept" / "run.journal"


def test_a_run_that_is_left_is_gone_on_with(seen: FaultyServer, numbered: Numbered, journal: Path) -> None:
    """After some of 20 the next run yields all 20, in order, and sends only what was not kept."""
    paths = numbered(20)
    with PredictionSession(seen.url, paths, resume=journal) as session:
        first = [next(session) for _ in range(7)]
    before = sent(seen)
    with PredictionSession(seen.url, paths, resume=journal) as session:
        assert len(session) == 20
        again = list(session)
        report = session.report()
    assert again[:7] == first
    assert [one.path for one in again] == [str(path) for path in paths]
    assert [one.index for one in again] == list(range(20))
    assert [box_number(one.boxes[0]) for one in again] == list(range(20))
    assert report.kept >= 7
    assert sent(seen) - before == 20 - report.kept
    assert again[0].load_image().shape == again[-1].load_image().shape


def test_what_is_kept_can_be_left_out(seen: FaultyServer, numbered: Numbered, journal: Path) -> None:
    """``replay=False`` yields only what is new, with the indexes of the source, and len() says how many."""
    paths = numbered(12)
    numbers(PredictionSession(seen.url, paths[:5], resume=journal))
    with PredictionSession(seen.url, paths, resume=journal, replay=False) as session:
        assert len(session) == 7
        got = list(session)
    assert [one.index for one in got] == list(range(5, 12))
    assert [box_number(one.boxes[0]) for one in got] == list(range(5, 12))
    with PredictionSession(seen.url, paths, resume=journal, replay=False) as session:
        assert (len(session), list(session)) == (0, [])


def test_a_whole_run_asks_for_nothing(seen: FaultyServer, numbered: Numbered, journal: Path) -> None:
    """What is kept is enough; no job is started."""
    paths = numbered(10)
    assert numbers(PredictionSession(seen.url, paths, resume=journal)) == list(range(10))
    before = sent(seen)
    assert numbers(PredictionSession(seen.url, paths, resume=journal)) == list(range(10))
    assert sent(seen) == before


def test_a_changed_file_is_done_again(seen: FaultyServer, numbered: Numbered, journal: Path) -> None:
    """Another content, or only another time: path, size and time are what a file is known by."""
    paths = numbered(4)
    numbers(PredictionSession(seen.url, paths, resume=journal))
    Image.fromarray(number_picture(77)).save(paths[1])
    os.utime(paths[2], ns=(1, 1))
    before = sent(seen)
    assert numbers(PredictionSession(seen.url, paths, resume=journal)) == [0, 77, 2, 3]
    assert sent(seen) - before == 2


def test_equal_names_and_equal_inputs(seen: FaultyServer, numbered: Numbered, journal: Path) -> None:
    """a/1.png and b/1.png are two; so is one file that is named twice, and each has its own prediction."""
    one, other = numbered(1)[0], numbered(2, folder="other")[1]
    for folder, path in (("a", one), ("b", other)):
        (journal.parent / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, journal.parent / folder / "1.png")
    paths = [journal.parent / "a" / "1.png", journal.parent / "b" / "1.png", journal.parent / "a" / "1.png"]
    assert numbers(PredictionSession(seen.url, paths, resume=journal)) == [0, 1, 0]
    before = sent(seen)
    assert numbers(PredictionSession(seen.url, paths, resume=journal)) == [0, 1, 0]
    assert numbers(PredictionSession(seen.url, [*paths, paths[0]], resume=journal)) == [0, 1, 0, 0]
    assert sent(seen) - before == 1


def test_arrays_bytes_and_pictures(seen: FaultyServer, journal: Path) -> None:
    """What is no file is known by its content, wherever it stands."""
    arrays = [number_picture(number) for number in range(3)]
    picture = Image.fromarray(number_picture(3))
    numbers(PredictionSession(seen.url, [*arrays, picture], resume=journal))
    before = sent(seen)
    mixed = [picture, number_picture(9), *arrays[::-1]]
    assert numbers(PredictionSession(seen.url, mixed, resume=journal)) == [3, 9, 2, 1, 0]
    assert sent(seen) - before == 1


def test_an_iterator(seen: FaultyServer, numbered: Numbered, journal: Path) -> None:
    """A one-pass source is looked through again; what is kept is not sent."""
    paths = numbered(6)
    numbers(PredictionSession(seen.url, iter(paths[:4]), resume=journal))
    before = sent(seen)
    assert numbers(PredictionSession(seen.url, iter(paths), resume=journal)) == list(range(6))
    assert numbers(PredictionSession(seen.url, iter(paths), resume=journal, replay=False)) == []
    assert sent(seen) - before == 2


def test_item_errors_are_tried_again(seen: FaultyServer, numbered: Numbered, journal: Path) -> None:
    """What failed is not kept: once the file is mended, its prediction comes."""
    paths = numbered(3)
    good = paths[1].read_bytes()
    paths[1].write_bytes(b"")
    with PredictionSession(seen.url, paths, resume=journal, on_error="yield") as session:
        assert [isinstance(one, ItemError) for one in session] == [False, True, False]
    with PredictionSession(seen.url, paths, resume=journal, on_error="yield") as session:
        assert [isinstance(one, ItemError) for one in session] == [False, True, False]
    paths[1].write_bytes(good)
    assert numbers(PredictionSession(seen.url, paths, resume=journal)) == [0, 1, 2]


def test_other_settings_are_refused(either: str, numbered: Numbered, journal: Path) -> None:
    """With the names of those that differ, and none of their values; ``restart=True`` begins anew."""
    paths = numbered(3)
    numbers(PredictionSession(either, paths, resume=journal, conf=0.3))
    with pytest.raises(JournalError, match=r"other settings \(conf, delay\).*restart=True") as caught:
        PredictionSession(either, paths, resume=journal, conf=0.4, delay=0.01)
    assert "0.4" not in str(caught.value)
    with PredictionSession(either, paths, resume=journal, conf=0.4, restart=True) as session:
        assert [box_number(one.boxes[0]) for one in session] == [0, 1, 2]
        assert session.report().kept == 0
    with pytest.raises(JournalError, match=r"\(conf\)"):
        PredictionSession(either, paths, resume=journal, conf=0.3)


def test_another_model_is_refused(ours: str, detector: str, numbered: Numbered, journal: Path) -> None:
    """Before anything is sent to it."""
    paths = numbered(3)
    numbers(PredictionSession(ours, paths, resume=journal))
    with (
        FaultyServer(detector) as other,
        PredictionSession(other.url, paths, resume=journal) as session,
        pytest.raises(JournalError, match=r"other models \(classes, default settings, files, name"),
    ):
        next(session)
    assert sent(other) == 0


def test_a_retrained_model_is_another(numbered: Numbered, journal: Path) -> None:
    """Its own file has changed, or its weights, or its defaults, though name and classes are the same."""
    model, weights = journal.parent / "mine.py", journal.parent / "weights.bin"
    journal.parent.mkdir()
    weights.write_bytes(b"1")
    text = (
        "from pathlib import Path\nclass Mine:\n    classes = ['a']\n    default_settings = {'conf': 0.1}\n"
        "    files = [Path(__file__).with_name('weights.bin')]\n"
        "    def predict(self, images, settings):\n"
        "        return [{'boxes': [[1, 1, 9, 9]], 'scores': [0.5]} for _ in images]\n"
    )

    paths = numbered(2)

    def run(*, restart: bool = False) -> int:
        with (
            RunningServer(f"{model}:Mine") as server,
            PredictionSession(server.url, paths, resume=journal, restart=restart) as session,
        ):
            assert len(list(session)) == 2
            return session.report().kept

    model.write_text(text)
    assert (run(), run()) == (0, 2)
    for change, named in (
        (lambda: model.write_text(text.replace("9, 9", "8, 8")), "files"),
        (lambda: weights.write_bytes(b"2"), "files"),
        (lambda: model.write_text(text.replace("0.1", "0.2")), "default settings, files"),
    ):
        change()
        with pytest.raises(JournalError, match=rf"other models \({named}\)"):
            run()
        assert run(restart=True) == 0


def test_settings_that_say_the_same(either: str, numbered: Numbered, journal: Path) -> None:
    """1 and 1.0 are one setting."""
    paths = numbered(1)
    numbers(PredictionSession(either, paths, resume=journal, delay=0))
    with PredictionSession(either, paths, resume=journal, delay=0.0) as session:
        assert (len(list(session)), session.report().kept) == (1, 1)


def test_a_run_that_got_nowhere_binds_nothing(ours: str, numbered: Numbered, journal: Path) -> None:
    """A typo that the server refuses is mended, and the journal is still free, or still holds what it had."""
    paths = numbered(3)
    with pytest.raises(InvalidRequestError, match="clasess"):
        numbers(PredictionSession(ours, paths, resume=journal, settings={"clasess": 1}))
    assert numbers(PredictionSession(ours, paths, resume=journal)) == [0, 1, 2]
    with pytest.raises(InvalidRequestError, match="clasess"):
        numbers(PredictionSession(ours, paths, resume=journal, settings={"clasess": 1}, restart=True))
    with PredictionSession(ours, paths, resume=journal) as session:
        assert (len(list(session)), session.report().kept) == (3, 3)


@pytest.mark.parametrize("limit", range(26_000, 80_000, 4_000))
def test_a_disk_that_fills_at_any_moment(ours: str, numbered: Numbered, journal: Path, limit: int) -> None:
    """What is kept is whole: the next run, with room, goes on."""
    paths = numbered(5)
    program = (
        "import resource, signal, sys\nfrom predsession import *\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "try: list(PredictionSession(sys.argv[1], sys.argv[3:], resume=sys.argv[2]))\n"
        "except (JournalError, DiskError) as error: print(error)\n"
    )
    command = [sys.executable, "-c", program, ours, str(journal), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "run.journal" in done.stdout or not done.stdout, done.stdout
    assert numbers(PredictionSession(ours, paths, resume=journal)) == [0, 1, 2, 3, 4]


def test_one_run_at_a_time(either: str, numbered: Numbered, journal: Path) -> None:
    """The second is refused by a lock, from another process too; when the first has ended, it may."""
    paths = numbered(3)
    with PredictionSession(either, paths, resume=journal):
        with pytest.raises(JournalError, match="in use by another session of this process: close it"):
            PredictionSession(either, paths, resume=journal)
        program = (
            "import sys; from predsession import *\n"
            "try: PredictionSession(sys.argv[1], sys.argv[2:3], resume=sys.argv[3])\n"
            "except JournalError as error: print(error)\n"
        )
        command = [sys.executable, "-c", program, either, str(paths[0]), str(journal)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert "in use by another run" in done.stdout
    assert numbers(PredictionSession(either, paths, resume=journal)) == [0, 1, 2]


@pytest.mark.parametrize("content", [b"no database at all " * 100, b"SQLite format 3\0" + b"x" * 5000])
def test_a_damaged_journal(either: str, numbered: Numbered, journal: Path, content: bytes) -> None:
    """It is named, and not written over."""
    journal.parent.mkdir()
    journal.write_bytes(content)
    with pytest.raises(JournalError, match=r"run\.journal is no journal, or damaged"):
        PredictionSession(either, numbered(1), resume=journal)
    assert journal.read_bytes() == content


def test_somebody_elses_database(either: str, numbered: Numbered, journal: Path) -> None:
    """It is left alone, also by ``restart``."""
    journal.parent.mkdir()
    with sqlite3.connect(journal) as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    for restart in (False, True):
        with pytest.raises(JournalError, match="another program's database"):
            PredictionSession(either, numbered(1), resume=journal, restart=restart)


def test_what_no_journal_can_keep(either: str, numbered: Numbered, journal: Path) -> None:
    """Ids whose items only the server knows, and options without a journal, are refused with the reason."""
    with pytest.raises(SourceError, match="resume= is not for"):
        PredictionSession(either, project_id=1, resume=journal)
    with pytest.raises(SourceError, match="resume= as well"):
        PredictionSession(either, numbered(1), replay=False)
    assert not journal.exists()


def test_an_entry_that_cannot_be_read(either: str, numbered: Numbered, journal: Path) -> None:
    """It is a `JournalError` that names the file, whatever it holds."""
    paths = numbered(1)
    for item in ("{", '{"annotation": 3}'):
        numbers(PredictionSession(either, paths, resume=journal, restart=True))
        with sqlite3.connect(journal) as database:
            database.execute("UPDATE outcomes SET item = ?", (item,))
        database.close()
        with pytest.raises(JournalError, match="damaged"):
            numbers(PredictionSession(either, paths, resume=journal))


@pytest.mark.parametrize("path", [True, 3, b"x"])
def test_what_is_no_path(either: str, numbered: Numbered, path: str) -> None:
    """Refused by the keyword's name."""
    with pytest.raises(TypeError, match="resume must be the path"):
        PredictionSession(either, numbered(1), resume=path)


def test_a_full_disk(either: str, numbered: Numbered) -> None:
    """A journal that cannot be written to ends the run with its name, and the jobs on the server."""
    with pytest.raises(DiskError, match="/dev/full cannot be written to"):
        PredictionSession(either, numbered(3), resume="/dev/full")


def test_frames(seen: FaultyServer, tmp_path: Path, journal: Path) -> None:
    """The frames of a clip that are kept are not run again, whichever choice they were part of."""
    clip = write_numbers(tmp_path / "clip.mp4")
    with PredictionSession(seen.url, clip, resume=journal, num_frames=12) as session:
        first = list(session)
    with PredictionSession(seen.url, clip, resume=journal) as session:
        assert len(session) == 40
        everything = list(session)
    assert [box_number(one.boxes[0]) for one in everything] == list(range(40))
    assert everything[:12] == first
    with PredictionSession(seen.url, clip, resume=journal, stride=3) as session:
        assert [one.frame_index for one in session] == list(range(0, 40, 3))
    frames = [
        json.loads(_state(call.body)).get("startFrameIndex") for call in seen.calls("inference_video_async")
    ]
    assert frames == [0, 12]
    with PredictionSession(seen.url, clip, resume=journal, replay=False) as session:
        assert (len(session), list(session)) == (0, [])


def _state(body: bytes) -> bytes:
    """Return the state of an upload."""
    start = body.index(b'name="state"')
    begin = body.index(b"\r\n\r\n", start) + 4
    return body[begin : body.index(b"\r\n", begin)]


@pytest.mark.parametrize("tracking", [None, True])
def test_a_clip_that_is_named_often(ours: str, tmp_path: Path, journal: Path, tracking: bool | None) -> None:
    """Each mention has its own predictions, in the first run as in the next."""
    clip = write_numbers(tmp_path / "clip.mp4", 20)
    for seen, kept in ((60, 0), (0, 60)):
        with PredictionSession(ours, [clip] * 3, resume=journal, replay=False, tracking=tracking) as session:
            assert len(session) == seen
            assert [box_number(one.boxes[0]) for one in session] == list(range(20)) * (seen // 20)
            assert session.report().kept == kept


def test_a_clip_with_many_gaps_is_sent_once(seen: FaultyServer, tmp_path: Path, journal: Path) -> None:
    """What lies between many gaps is run again: the clip is not sent for each of them."""
    clip = write_numbers(tmp_path / "clip.mp4")
    with PredictionSession(seen.url, clip, resume=journal, stride=3) as session:
        list(session)
    with PredictionSession(seen.url, clip, resume=journal) as session:
        assert [box_number(one.boxes[0]) for one in session] == list(range(40))
        assert session.report().resent_items == 0
    assert len(seen.calls("inference_video_async")) == 2


def test_a_tracked_clip_is_kept_whole_or_not_at_all(
    seen: FaultyServer, tmp_path: Path, journal: Path
) -> None:
    """Track ids mean something within one job only; a clip that was finished has its tracks, too."""
    clip = write_numbers(tmp_path / "clip.mp4", 120)

    def run(frames: int | None = None) -> tuple[list[Prediction], object, int]:
        with PredictionSession(seen.url, clip, tracking=True, resume=journal) as session:
            got = [next(session) for _ in range(frames)] if frames else list(session)
            return got, session.final_result, session.report().kept

    assert run(6)[2] == 0
    whole, final, kept = run()
    assert (len(whole), kept) == (120, 0)
    again, final_again, kept = run()
    assert (again, final_again, kept) == (whole, final, 120)
    assert len(seen.calls("inference_video_async")) == 2


def test_ids(numbered: Numbered, tmp_path: Path, journal: Path) -> None:
    """Images by id are kept under their ids."""
    folder = tmp_path / "library" / "p" / "d"
    folder.mkdir(parents=True)
    for path in numbered(6):
        shutil.copy(path, folder)
    with RunningServer("pixels", arguments=["--library", str(tmp_path / "library")]) as server:
        first = numbers(PredictionSession(server.url, image_ids=[1, 2, 3], resume=journal))
        with PredictionSession(server.url, image_ids=[3, 4, 5, 1], resume=journal) as session:
            got = {one.image_id: box_number(one.boxes[0]) for one in session}
            assert session.report().kept == 2
        assert sorted(got) == [1, 3, 4, 5]
        assert [got[1], got[3]] == [first[0], first[2]]
        with PredictionSession(server.url, image_ids=[1, 6], resume=journal, replay=False) as session:
            assert [one.image_id for one in session] == [6]


KILLED = """
import sys
from predsession import PredictionSession
for one in PredictionSession(sys.argv[1], sys.argv[2], resume=sys.argv[3], delay=0.01):
    print(one.index, flush=True)
    if one.index + 1 == int(sys.argv[4]):
        sys.stdin.read()
"""
"""Waits at a moment until it is killed; its threads go on."""


@pytest.mark.parametrize("moment", [1, 5, 20])
def test_kill_9(either: str, numbered: Numbered, journal: Path, moment: int) -> None:
    """What the killed run had shown is kept, and the next run does the rest."""
    paths = numbered(30)
    command = [sys.executable, "-c", KILLED, either, str(paths[0].parent), str(journal), str(moment)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        shown = [int(next(running.stdout)) for _ in range(moment)]
        running.send_signal(signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    with PredictionSession(either, paths[0].parent, resume=journal, delay=0.01) as session:
        assert [box_number(one.boxes[0]) for one in session] == list(range(30))
        assert session.report().kept >= len(shown)


def predict(url: str, folder: Path, out: Path, *more: str) -> list[str]:
    """Return a command."""
    base = [sys.executable, "-m", "predsession", "predict", str(folder), "--url", url, "--quiet"]
    return [*base, "--out", str(out), "--resume", *more]


def test_the_command_line(seen: FaultyServer, numbered: Numbered, tmp_path: Path) -> None:
    """A killed run is gone on with: half a line is mended, what is good stays, other settings are refused."""
    folder, out = numbered(30)[0].parent, tmp_path / "preds.jsonl"
    command = predict(seen.url, folder, out, "--set", "delay=0.01")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 30
        while not (out.exists() and out.read_bytes().count(b"\n") >= 8):
            assert time.monotonic() < deadline, "the first lines"
        running.kill()
    whole = out.read_bytes().splitlines(keepends=True)
    half = b"".join(whole[:8])[:-20]
    out.write_bytes(half)
    before = sent(seen)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
    lines = out.read_bytes().splitlines(keepends=True)
    assert lines[:8] == whole[:8]
    assert [box_number(Prediction.from_json(json.loads(line)).boxes[0]) for line in lines] == list(range(30))
    assert sent(seen) - before <= 30 - 8
    other = subprocess.run(predict(seen.url, folder, out), capture_output=True, text=True, check=False)
    assert other.returncode == 2, other.stderr
    assert "--restart" in other.stderr
    assert out.read_bytes() == b"".join(lines), "a run that is refused leaves the file as it was"
    subprocess.run(predict(seen.url, folder, out, "--restart"), check=True, stdout=subprocess.DEVNULL)
    assert out.read_bytes().count(b"\n") == 30


class Silent(http.server.SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_nothing_secret_is_in_the_journal(numbered: Numbered, journal: Path) -> None:
    """Neither the token, nor the endpoint, nor a signed URL's query, nor a setting's value."""
    handler = partial(Silent, directory=numbered(1)[0].parent)
    with (
        RunningServer("pixels", arguments=["--token", "s3cret-token"]) as server,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as files,
    ):
        threading.Thread(target=files.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{files.server_port}/im_0.jpg"
        session = PredictionSession(
            server.url, [url + "?signature=s3cret-query"], token="s3cret-token", resume=journal, delay=0.0123
        )
        numbers(session)
        files.shutdown()
    text = b"".join(path.read_bytes() for path in journal.parent.iterdir())
    for secret in (b"s3cret", url.encode(), server.url.encode(), b"0.0123"):
        assert secret not in text
    assert b"annotation" in text
