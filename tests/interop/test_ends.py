"""Our client, their server: a model that fails, a caller who leaves, a caller who is slow."""

from __future__ import annotations

import signal
import subprocess
import sys
import tracemalloc
from itertools import count
from pathlib import Path

import pytest
from interop.pictures import spots, write_clip, write_pictures
from interop.their_server import TheirServer, assert_all_equal, until
from PIL import Image

from predsession import JobFailedError, PredictionSession, Size
from predsession.testing import FaultyServer

_runs = count()
WORK = 2.0
"""Seconds of the server's work that an upload is to hold, about."""


def key() -> str:
    """Return a name that no other run has, to count its pictures under."""
    return f"ends {next(_runs)}"


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("bad", [0, 21, 39])
def test_a_model_that_fails(theirs: TheirServer, tmp_path: Path, bad: int, batch_size: int) -> None:
    """What was computed before is delivered; then the server's type, message and traceback come."""
    paths = write_pictures(tmp_path, 40, suffix=".png")
    Image.fromarray(spots(bad, Size(200, 96))).save(paths[bad])
    got: list[object] = []
    with (
        PredictionSession(theirs.url, paths, fail_width=200, batch_size=batch_size) as session,
        pytest.raises(JobFailedError, match="told to fail at a width of 200") as caught,
    ):
        got.extend(session)
    error = caught.value
    assert (error.type, error.server_message) == ("ValueError", "told to fail at a width of 200")
    assert "predict_batch" in error.traceback
    assert error.uuid
    assert str(paths[bad]) in error.items
    assert_all_equal(got, theirs.direct(paths[: len(got)]))
    # A batch is lost with the picture at which the model failed; what is in batches before it is not.
    assert bad - batch_size < len(got) <= bad
    theirs.wait_until_idle()
    assert theirs.live() == []


def test_a_model_that_fails_in_a_clip(theirs: TheirServer, tmp_path: Path) -> None:
    """The frames before are delivered, as far as whole batches go; a spot leaves the picture at frame 25."""
    clip = write_clip(tmp_path / "clip.mp4", 40)
    got: list[object] = []
    with (
        PredictionSession(theirs.url, clip, fail_objects=2, batch_size=4) as session,
        pytest.raises(JobFailedError, match="16 of its 40 frames") as caught,
    ):
        got.extend(session)
    assert caught.value.server_message == "told to fail at 2 objects"
    assert_all_equal(got, theirs.direct_frames(clip, range(24)))
    assert theirs.live() == []


@pytest.mark.parametrize("leave", ["break", "stop", "error", "forget"])
def test_leaving_early(theirs: TheirServer, tmp_path: Path, leave: str) -> None:
    """Each job is stopped and cleared, and no more is computed than was sent: little, of 300 pictures."""
    delay, name = 0.05, key()
    paths = write_pictures(tmp_path, 300)
    with FaultyServer(theirs.url) as seen:
        _start_and_leave(leave, seen.url, paths, key=name, delay=delay, batch_size=4)
        sent = sum(call.body.count(b"filename=") for call in seen.calls("inference_batch_async"))
    assert theirs.live() == []
    theirs.wait_until_idle()
    computed = theirs.computed(name)
    assert computed <= sent <= 3 * WORK / delay
    # Two uploads of so much work at most; one more may have been begun when the first had ended.
    assert computed < 150


def _start_and_leave(leave: str, url: str, paths: list[Path], **settings: object) -> None:
    """Start a session, take a few predictions, and leave it in some way."""
    session = PredictionSession(url, paths, **settings)
    if leave == "error":
        with pytest.raises(RuntimeError, match="of the caller's own"), session:
            next(session)
            raise RuntimeError("of the caller's own")
    elif leave == "forget":
        next(session)  # and nobody holds it any more
    else:
        with session:
            for number, _ in enumerate(session):
                if number == 5:
                    break
            if leave == "stop":
                session.stop()
                list(session)


def test_leaving_a_clip(theirs: TheirServer, tmp_path: Path) -> None:
    """Their server looks at a stop between two batches of a clip: it computes one more at most."""
    clip, name = write_clip(tmp_path / "clip.mp4", 400), key()
    with PredictionSession(theirs.url, clip, key=name, delay=0.02, batch_size=4) as session:
        next(session)
    at_the_end = theirs.computed(name)
    assert theirs.live() == []
    theirs.wait_until_idle()
    assert theirs.computed(name) <= at_the_end + 4 < 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_is_ended(theirs: TheirServer, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C in a loop of predictions, and the command line told to end: no job is left live."""
    write_pictures(tmp_path / "pictures", 200)
    name = key()
    program = (
        "import signal, sys; from predsession import PredictionSession\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        f"for one in PredictionSession({theirs.url!r}, sys.argv[1], key={name!r}, delay=0.05): pass\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "pictures")]
    if number == signal.SIGTERM:
        settings = ["--set", f"key={name}", "--set", "delay=0.05"]
        command = [
            sys.executable,
            "-m",
            "predsession",
            "predict",
            command[-1],
            "--url",
            theirs.url,
            *settings,
        ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: theirs.computed(name) > 4, "the first pictures")
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert theirs.live() == [], errors
    theirs.wait_until_idle()
    assert theirs.computed(name) < 150


def test_a_slow_caller(theirs: TheirServer, tmp_path: Path) -> None:
    """Of 600 pictures the caller takes one, and then none for a while: the work waits, and none is lost."""
    paths, name = write_pictures(tmp_path, 600), key()
    with PredictionSession(theirs.url, paths, key=name) as session:
        first = next(session)
        computed = _wait_until_still(theirs, name)
        assert computed < 600, "all were computed before anybody wanted them"
        assert sum(job["pending"] for job in theirs.jobs().values()) < 500
        assert_all_equal([first, *session], theirs.direct(paths))
    assert theirs.computed(name) == 600


def _wait_until_still(server: TheirServer, name: str) -> int:
    """Wait until nothing has been computed for a while; return how many were."""
    counts = [0, -1]
    until(lambda: counts.append(_later(server, name)) or counts[-1] == counts[-2], "the work to stand still")
    return counts[-1]


def _later(server: TheirServer, name: str) -> int:
    """Return what has been computed in half a second's time."""
    import time

    time.sleep(0.5)
    return server.computed(name)


def test_memory_with_a_slow_caller(development: TheirServer, tmp_path: Path) -> None:
    """Their pop gives all of a clip at once: what nobody has taken goes to a file, and not into memory."""
    development.mark()
    held = {}
    for frames in (700, 2800):
        clip, name = write_clip(tmp_path / f"{frames}.mp4", frames), key()
        tracemalloc.start()
        with PredictionSession(development.url, clip, key=name) as session:
            next(session)
            _wait_until_computed(development, name, frames)
            for _ in range(frames // 4):  # the next pop brings the rest
                next(session)
            assert not any(job["pending"] for job in development.jobs().values()), "not all were fetched"
            held[frames] = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            assert len(list(session)) == frames - frames // 4 - 1
    # As objects 2,100 results take more than 3 MB.
    assert held[2800] < held[700] + 1_000_000, held


def _wait_until_computed(server: TheirServer, name: str, frames: int) -> None:
    """Wait until their server has done its work, and holds most of the results."""
    until(lambda: server.computed(name) == frames, "all frames")
    until(lambda: all(job["finished"] for job in server.jobs().values()), "the end of the job")
