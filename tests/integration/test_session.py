"""The whole path: sources in, predictions out, each with its own input, on both kinds of server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fault_kit import Gate
from PIL import Image

from predsession import ItemError, JobTimeoutError, PredictionSession, SessionClosedError, SourceError, errors
from predsession.checks import URL_VARIABLE, OnError
from predsession.server.models.pixels import box_number, number_picture
from predsession.testing import FaultyServer
from predsession.wire.calls import Call

Ask = Callable[[str, Call], object]
Numbered = Callable[..., list[Path]]


def numbers(session: PredictionSession) -> list[int]:
    """Run a session to its end; return the number that each prediction holds."""
    with session:
        return [box_number(prediction.boxes[0]) for prediction in session if prediction]


def test_every_kind_of_input_in_one_list(either: str, numbered: Numbered) -> None:
    """Array, gray array, RGBA array, PIL image, bytes, path, PathLike: in order, each with its own name."""
    paths = numbered(4)
    picture = number_picture
    rgba = np.dstack([picture(7), np.full((32, 64), 255, np.uint8)])
    mixed = [
        str(paths[0]), paths[1], paths[2].read_bytes(), Image.open(paths[3]),
        picture(4), picture(5)[:, :, 0], picture(6)[:, :, :1], rgba,
    ]  # fmt: skip
    with PredictionSession(either, mixed) as session:
        assert len(session) == 8
        predictions = list(session)
    assert [box_number(one.boxes[0]) for one in predictions] == list(range(8))
    assert [one.index for one in predictions] == list(range(8))
    assert [one.path for one in predictions[:3]] == [str(paths[0]), str(paths[1]), None]
    assert predictions[0].name == "im_0.jpg"
    assert predictions[0].load_image().shape == (32, 64, 3)
    assert predictions[4].load_image().shape == (32, 64, 3)


def test_a_folder_in_natural_order(either: str, numbered: Numbered) -> None:
    """im_2 before im_10; 120 images in several jobs, each its own prediction, nothing left live."""
    paths = numbered(120)
    session = PredictionSession(either, paths[0].parent)
    assert len(session) == 120
    assert numbers(session) == list(range(120))
    report = session.report()
    assert (report.items, report.predictions, report.item_errors) == (120, 120, 0)
    assert report.jobs > 1
    assert report.cleanup_failures == 0


def test_a_url_of_an_image(ours: str, numbered: Numbered) -> None:
    """It is fetched by the client, without the server's token; one that is not there is an item error."""
    import http.server

    numbered(2)[0]
    seen: list[dict[str, str]] = []
    folder = str(numbered(2)[0].parent)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, directory=folder)

        def do_GET(self) -> None:
            seen.append(dict(self.headers))
            super().do_GET()

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as files:
        threading.Thread(target=files.serve_forever, args=(0.02,), daemon=True).start()
        base = f"http://127.0.0.1:{files.server_address[1]}"
        urls = [f"{base}/im_1.jpg", f"{base}/nothing.jpg", f"{base}/im_0.jpg"]
        with PredictionSession(ours, urls, on_error="yield", token="s3cr3t") as session:
            first, second, third = session
        assert (box_number(first.boxes[0]), box_number(third.boxes[0])) == (1, 0)
        assert first.url == urls[0]
        assert first.load_image().shape == (32, 64, 3)
        assert isinstance(second, ItemError)
        assert "404" in second.reason
        files.shutdown()
    assert "s3cr3t" not in str(seen)


def test_two_sessions_at_once_with_the_same_names(stock: str, numbered: Numbered) -> None:
    """A stock server keeps images by name for all its clients: neither gets the other's results."""
    first = numbered(40, "one")
    second = numbered(40, "two")
    for number, path in enumerate(second):
        Image.fromarray(number_picture(1000 + number)).save(path, quality=90)
    sessions = [PredictionSession(stock, path[0].parent) for path in (first, second)]
    results: list[list[int]] = [[], []]
    threads = [threading.Thread(target=lambda n=n: results[n].extend(numbers(sessions[n]))) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [list(range(40)), list(range(1000, 1040))]


def test_next_with_a_timeout_stops_nothing(either: str, numbered: Numbered) -> None:
    """Its expiry is an error, and the next call goes on where it stood."""
    gate = Gate("pop_inference_results")
    with FaultyServer(either, gate) as held, PredictionSession(held.url, numbered(2)) as session:
        with pytest.raises(JobTimeoutError, match="the job goes on"):
            session.next(timeout=0.01)
        with pytest.raises(JobTimeoutError):
            session.next(block=False)
        gate.open()
        assert box_number(session.next().boxes[0]) == 0
        assert box_number(session.next(timeout=30).boxes[0]) == 1
        with pytest.raises(StopIteration):
            session.next()


def test_stop_keeps_what_has_arrived(either: str, numbered: Numbered) -> None:
    """After `stop` the rest of what came can be iterated, and then it ends."""
    with PredictionSession(either, numbered(300), delay=0.02) as session:
        first = next(session)
        session.stop()
        assert session.is_done()
        rest = list(session)
    got = [box_number(one.boxes[0]) for one in (first, *rest)]
    assert got == list(range(len(got)))
    assert len(got) < 300


def test_a_closed_session_says_so(either: str, numbered: Numbered) -> None:
    """Asking a closed session for more is the caller's mistake; a finished one just has no more."""
    session = PredictionSession(either, numbered(20), delay=0.05)
    session.close()
    session.close()
    with pytest.raises(SessionClosedError):
        next(session)
    done = PredictionSession(either, numbered(1))
    assert len(list(done)) == 1
    done.close()
    assert list(done) == []


def test_an_exception_in_the_middle_of_a_job(stock: str, numbered: Numbered) -> None:
    """Everything that was computed before comes first, then the server's type, message and traceback."""
    got = []
    with (
        PredictionSession(stock, numbered(40), fail_at=21, batch_size=1) as session,
        pytest.raises(errors.JobFailedError) as caught,
    ):
        for prediction in session:
            got.append(box_number(prediction.boxes[0]))
    assert got == list(range(21))
    assert caught.value.type == "ValueError"
    assert "told to fail at 21" in caught.value.server_message
    assert "Traceback" in caught.value.traceback


@pytest.mark.parametrize("on_error", ["raise", "skip", "yield"])
def test_an_item_that_the_model_fails_on(ours: str, numbered: Numbered, on_error: OnError) -> None:
    """A server with item errors goes on with the others; what the caller sees is up to `on_error`."""
    session = PredictionSession(ours, numbered(30), fail_at=21, on_error=on_error)
    got: list[int] = []

    def run() -> None:
        for outcome in session:
            got.append(box_number(outcome.boxes[0]) if outcome else outcome.index)

    if on_error == "raise":
        with pytest.raises(ItemError, match="told to fail at 21") as caught:
            run()
        assert (caught.value.index, caught.value.name) == (21, "im_21.jpg")
        with pytest.raises(SessionClosedError):
            next(session)
    else:
        run()
    expected = {"raise": list(range(21)), "skip": [n for n in range(30) if n != 21], "yield": list(range(30))}
    assert got == expected[on_error]
    assert [error.index for error in session.errors] == [21]


def test_settings_reach_the_model_and_our_options_do_not(ours: str, numbered: Numbered) -> None:
    """Named, loose and given settings arrive; the session's own options stay here."""
    session = PredictionSession(
        ours, numbered(1), conf=0.5, settings={"delay": 0.0}, fail_at=99, batch_size=4, recursive=False
    )
    assert numbers(session) == [0]
    assert session.settings == {"delay": 0.0, "conf": 0.5, "fail_at": 99}


def test_progress_and_status_speak_of_the_whole(either: str, numbered: Numbered) -> None:
    """Done and total are right from the start to the end, over several jobs."""
    with PredictionSession(either, numbered(50)) as session:
        assert session.progress().total == len(session) == 50
        assert session.inference_request_uuid
        dones = [session.progress().done for _ in session]
        status = session.status()
    assert dones == sorted(dones)
    assert status.progress.done == status.progress.taken == 50
    assert status.is_done
    assert status.progress.bytes_sent == status.progress.bytes_total > 0
    assert session.model_meta.names[3] == "ends in 3"
    assert session.final_result is None
    assert "50/50" in repr(session)


def test_closing_from_another_thread_ends_the_loop_with_an_error(either: str, numbered: Numbered) -> None:
    """Only `stop` ends it quietly."""
    session = PredictionSession(either, numbered(60), delay=0.05)
    closing = threading.Timer(0.3, session.close)
    closing.start()
    with pytest.raises(SessionClosedError):
        list(session)
    closing.join()


def test_asking_wrongly_closes_nothing(ours: str, numbered: Numbered) -> None:
    """A timeout that is none is the caller's mistake."""
    with PredictionSession(ours, numbered(2)) as session:
        with pytest.raises(ValueError, match="timeout"):
            session.next(timeout="soon")
        assert len(list(session)) == 2


def test_the_uuid_of_a_run_that_cannot_begin(either: str, tmp_path: Path) -> None:
    """A folder of empty files: there is no job to wait for before something is taken."""
    for number in range(200):
        (tmp_path / f"{number}.jpg").touch()
    with PredictionSession(either, tmp_path, on_error="yield") as session:
        assert session.inference_request_uuid is None
        assert len(list(session)) == 200


def test_without_a_url_a_server_is_started_and_ends_with_the_session(
    numbered: Numbered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own, gone afterwards."""
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with PredictionSession(input=numbered(1)) as session:
        server = session._server
        assert server is not None
        os.kill(server.pid, 0)
        assert len(list(session)) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_an_embedded_server_that_dies_is_told_at_once(
    numbered: Numbered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not waited for: it cannot come back."""
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    with PredictionSession(input=numbered(300)) as session:  # more than wait here to be taken
        assert session._server is not None
        next(session)
        os.kill(session._server.pid, signal.SIGKILL)
        with pytest.raises(errors.ConnectError, match="has ended"):
            list(session)


def test_the_environment_names_the_server(
    ours: str, numbered: Numbered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PREDSESSION_URL, where no url is passed."""
    monkeypatch.setenv(URL_VARIABLE, ours)
    assert numbers(PredictionSession(input=numbered(2))) == [0, 1]


def test_nobody_there_is_told_soon() -> None:
    """A wrong address is an error within seconds, which says what to look at."""
    with (
        PredictionSession("http://127.0.0.1:9", np.zeros((8, 8), np.uint8)) as session,
        pytest.raises(errors.ConnectError, match="Is the server running"),
    ):
        next(session)


def test_a_source_is_checked_before_anything_is_sent(tmp_path: Path) -> None:
    """The server need not even exist."""
    with pytest.raises(SourceError, match=r"nothing\.jpg"):
        PredictionSession("http://127.0.0.1:9", tmp_path / "nothing.jpg")
    with pytest.raises(SourceError, match="input and image_ids"):
        PredictionSession("http://127.0.0.1:9", tmp_path, image_ids=[1, 2])
    with pytest.raises(SourceError, match="tracking"):
        PredictionSession("http://127.0.0.1:9", np.zeros((8, 8), np.uint8), tracking=True)


def test_many_files_with_few_descriptors(stock: str, tmp_path: Path) -> None:
    """1,500 files against a stock server's limits, with an open-file limit of 256, in flat memory."""
    Image.fromarray(number_picture(5)).save(tmp_path / "0.jpg", quality=90)
    for number in range(1, 1500):
        os.link(tmp_path / "0.jpg", tmp_path / f"{number}.jpg")
    script = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from predsession import PredictionSession
def held():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) / 1024
with PredictionSession({stock!r}, {str(tmp_path)!r}) as session:
    count, early = 0, 0.0
    for prediction in session:
        assert prediction.name == f"{{count}}.jpg", prediction.name
        count += 1
        if count == 100:
            early = held()
print(count, held() - early)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    count, growth = done.stdout.split()
    assert int(count) == 1500
    assert float(growth) < 20, f"{growth} MB more after 1,500 images than after 100"
