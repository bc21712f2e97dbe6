"""What goes wrong on the way: each item still gets exactly one outcome, its own. Real sockets throughout."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fault_kit import Names, once, own_port
from number_clips import write_numbers
from PIL import Image
from server_kit import Server

from predsession import ItemError, PredictionSession, errors
from predsession.jobs import spool
from predsession.server.models.pixels import box_number, number_picture
from predsession.testing import Fault, FaultyServer, RunningServer

Numbered = Callable[..., list[Path]]
COUNT = 40

SUBMIT, POP = "inference_batch_async", "pop_inference_results"
STOP, CLEAR = "stop_inference", "clear_inference_request"
RESULT, CLIP = "get_inference_result", "inference_video_async"
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
HTML = {"Content-Type": "text/html"}

FAULTS = {
    "pop lost": [Fault("drop_after", POP, nth=2)],
    "every third pop lost": [Fault("drop_after", POP, nth=n) for n in range(2, 60, 3)],
    "pop reset": [Fault("drop_before", POP, nth=3)],
    "pop truncated": [Fault("truncate", POP, nth=2)],
    "pop 502": [Fault("status", POP, nth=2, times=2, status=502, body=PAGE)],
    "pop 500": [Fault("status", POP, nth=2, status=500, body=b"Internal Server Error")],
    "submit answer lost": [Fault("drop_after", SUBMIT, nth=2)],
    "submit 503 once": [Fault("status", SUBMIT, status=503)],
    "submit 429 with Retry-After": [Fault("status", SUBMIT, status=429, headers={"Retry-After": "0.2"})],
    "submit 504": [Fault("status", SUBMIT, nth=2, status=504, body=PAGE)],
    "upload reset in its first byte": [Fault("reset", SUBMIT, nth=2, after_bytes=1)],
    "upload reset in its middle": [Fault("reset", SUBMIT, nth=2, after_bytes=3000)],
    "pops spoilt in every way": [
        Fault("chunks", POP, nth=2),
        Fault("answer", POP, nth=4, times=2, body=PAGE, headers=HTML),
        Fault("rewrite", POP, nth=7, rewrite=lambda body: body[:-9]),
    ],
    "submits spoilt in every way": [
        Fault("reset", SUBMIT, nth=2, after_bytes=-1),
        Fault("answer", SUBMIT, nth=4, body=PAGE, headers=HTML),
        Fault("chunks", SUBMIT, nth=6),
    ],
    "connections closed unsaid": [Fault("close", times=99)],
    "clear 503 for a while": [Fault("status", CLEAR, times=4, status=503)],
    "upload 413": [Fault("status", SUBMIT, nth=2, status=413, body=PAGE)],
    "clear lost": [Fault("drop_after", CLEAR)],
    "info fails twice": [Fault("status", "get_session_info", times=2, status=503)],
    "everything fails once": [Fault("status", name, status=503) for name in (SUBMIT, POP, CLEAR)],
}


@pytest.mark.parametrize("name", FAULTS)
def test_nothing_is_lost_doubled_or_swapped(either: str, numbered: Numbered, name: str) -> None:
    """40 images in, 40 predictions out, in order, each its own; no job is left live."""
    with FaultyServer(either, FAULTS[name]) as faulty:
        with PredictionSession(faulty.url, numbered(COUNT), batch_size=4) as session:
            got = [box_number(prediction.boxes[0]) for prediction in session]
        report = session.report()
    assert got == list(range(COUNT))
    assert (report.predictions, report.item_errors, report.cleanup_failures) == (COUNT, 0, 0)
    assert [call.fault for call in faulty.seen if call.fault], "the fault was never made"
    assert session._pipeline.shared.ledger.live == ()


@pytest.mark.parametrize(
    "status", [429, 500, 503, *(pytest.param(status, marks=pytest.mark.soak) for status in (502, 504))]
)
@pytest.mark.parametrize(
    "headers", [pytest.param({}, marks=pytest.mark.soak), {"Retry-After": "0.1"}], ids=["", "Retry-After"]
)
def test_bursts_on_every_call(either: str, numbered: Numbered, status: int, headers: dict[str, str]) -> None:
    """Two in a row on a submit, a pop, a stop and a clear, at once: 20 in, 20 out, and all is ended."""
    faults = [
        Fault("status", name, nth=nth, times=2, status=status, headers=headers, body=PAGE)
        for name, nth in ((SUBMIT, 2), (POP, 1), (STOP, 1), (CLEAR, 1))
    ]
    paths = numbered(20)
    with FaultyServer(either, faults) as faulty:
        with PredictionSession(faulty.url, paths) as session:
            assert [box_number(one.boxes[0]) for one in session] == list(range(20))
        with PredictionSession(faulty.url, paths, delay=0.05) as stopped:
            next(stopped)
        assert {call.endpoint for call in faulty.seen if call.fault} == {SUBMIT, POP, STOP, CLEAR}
    for each in (session, stopped):
        assert each.report().cleanup_failures == 0


TRACKED = {
    "lost": [Fault("drop_after", name) for name in (CLIP, POP, RESULT, CLEAR)],
    "a page": [Fault("answer", name, body=PAGE, headers=HTML) for name in (CLIP, POP, RESULT, CLEAR)],
    "bursts": [
        Fault("status", name, times=2, status=status, body=PAGE)
        for name, status in ((CLIP, 503), (POP, 502), (RESULT, 500), (CLEAR, 429))
    ],
}


@pytest.mark.parametrize("name", TRACKED)
def test_a_tracked_clip(either: str, tmp_path: Path, name: str) -> None:
    """The first answer of each call is spoilt, the final result's too: each frame comes once, with tracks."""
    clip = write_numbers(tmp_path / "clip.mp4", 12)
    with FaultyServer(either, TRACKED[name]) as faulty:
        with PredictionSession(faulty.url, str(clip), tracking=True) as session:
            got = [(one.frame_index, box_number(one.boxes[0]) if len(one.boxes) else None) for one in session]
        assert {call.endpoint for call in faulty.seen if call.fault} == {CLIP, POP, RESULT, CLEAR}
    assert [frame for frame, _ in got] == list(range(12))
    assert all(number in (frame, None) for frame, number in got)
    assert session.final_result["video_ann"] is not None
    assert session.report().cleanup_failures == 0


def test_an_answer_lost_to_a_stop(either: str, numbered: Numbered) -> None:
    """It is said again, and nothing is left live."""
    with FaultyServer(either, [Fault("drop_after", STOP), Fault("drop_after", CLEAR)]) as faulty:
        with PredictionSession(faulty.url, numbered(40), delay=0.05) as session:
            next(session)
        assert session.report().cleanup_failures == 0
        assert len({call.body for call in faulty.calls(STOP)}) < len(faulty.calls(STOP))


def test_stalls_longer_than_the_read_timeout(either: str, stock: str, numbered: Numbered) -> None:
    """A submit, a pop and a clear whose answers come too late: all arrive once, what was begun is counted."""
    faults = [Fault("stall", name, seconds=0.8) for name in (SUBMIT, POP, CLEAR)]
    with (
        FaultyServer(either, faults) as faulty,
        PredictionSession(faulty.url, numbered(10), timeout=0.5) as session,
    ):
        assert [box_number(one.boxes[0]) for one in session] == list(range(10))
    report = session.report()
    assert report.cleanup_failures == 0
    assert bool(report.unanswered_submits) == (either == stock)


def _results(change: Callable[[list[Any]], object]) -> Callable[[bytes], bytes]:
    """Return what changes the results in an answer to a pop, where it has three or more."""

    def rewrite(body: bytes) -> bytes:
        answer = json.loads(body)
        if len(answer["pending_results"]) < 3:
            return body
        change(answer["pending_results"])
        return json.dumps(answer).encode()

    return rewrite


WRONG: dict[str, Callable[[list[Any]], object]] = {
    "one too few": lambda results: results.pop(1),
    "one too many": lambda results: results.insert(1, results[0]),
    "another order": lambda results: results.reverse(),
}


@pytest.mark.parametrize("change", WRONG)
def test_with_ack_wrong_results_are_asked_for_again(ours: str, numbered: Numbered, change: str) -> None:
    """One too few, one too many, another order, in one answer: the numbers tell; all come, each its own."""
    wrong = Fault("rewrite", POP, times=99, rewrite=once(_results(WRONG[change])))
    with FaultyServer(ours, [wrong]) as faulty, PredictionSession(faulty.url, numbered(20)) as session:
        assert [box_number(one.boxes[0]) for one in session] == list(range(20))


@pytest.mark.parametrize("change", ["one too few", "one too many"])
def test_on_a_stock_server_wrong_results_are_never_taken(stock: str, numbered: Numbered, change: str) -> None:
    """Nothing but the count shows it: those images run again, or the error names all that may be mixed up."""
    wrong = Fault("rewrite", POP, times=99, rewrite=once(_results(WRONG[change])))
    got: list[int] = []
    with FaultyServer(stock, [wrong]) as faulty, PredictionSession(faulty.url, numbered(20)) as session:
        try:
            got.extend(box_number(one.boxes[0]) for one in session)
        except errors.MissingResultsError as error:
            doubtful = {int(name.rpartition("_")[2].split(".")[0]) for name in error.items}
            sure = [number for number in got if number not in doubtful]
            assert sure == list(range(min(doubtful)))
        else:
            assert got == list(range(20))


@pytest.mark.parametrize("change", WRONG)
def test_frames_tell_which_they_are(either: str, tmp_path: Path, change: str) -> None:
    """Results of a clip too few, too many, in another order: each frame comes once, with its own."""
    clip = write_numbers(tmp_path / "clip.mp4", 12)
    wrong = Fault("rewrite", POP, times=99, rewrite=once(_results(WRONG[change])))
    with FaultyServer(either, [wrong]) as faulty, PredictionSession(faulty.url, str(clip)) as session:
        assert [(one.frame_index, box_number(one.boxes[0])) for one in session] == [
            (frame, frame) for frame in range(12)
        ]


@pytest.mark.parametrize("seconds", [0.4, pytest.param(10.0, marks=pytest.mark.soak)])
def test_a_name_that_is_not_found_for_a_while(
    either: str, numbered: Numbered, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """DNS fails at the start and in the middle: tried again, nothing lost."""
    names = Names(monkeypatch)
    with FaultyServer(either, [Fault("close", times=99)]) as faulty:
        names.fail_for(0.3, least=2)
        with PredictionSession(f"http://{names.host}:{faulty.port}", numbered(40), delay=0.01) as session:
            got = [box_number(next(session).boxes[0])]
            names.fail_for(seconds)
            got += [box_number(one.boxes[0]) for one in session]
    assert got == list(range(40))
    assert session.report().retries["connect"] > 1


@pytest.mark.parametrize(
    "more", [(), pytest.param(("--stock",), marks=pytest.mark.soak)], ids=["ours", "stock"]
)
def test_the_server_is_killed_and_started_again(
    numbered: Numbered, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """SIGKILL in the middle, then the same port and folder: all come, once; with ``ack`` none runs again."""
    arguments = ("pixels", "--data", str(tmp_path / "data"), "--quiet", *more)
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(own_port())
        server = stack.enter_context(Server(*arguments, port=port))
        session = stack.enter_context(PredictionSession(server.url, numbered(60), delay=0.02))
        got = [box_number(next(session).boxes[0]) for _ in range(5)]
        server.kill()
        stack.enter_context(Server(*arguments, port=port))
        got += [box_number(one.boxes[0]) for one in session]
        report = session.report()
    assert got == list(range(60))
    assert report.cleanup_failures == 0
    assert more or report.resent_items == 0


def test_a_lease_that_runs_out(numbered: Numbered) -> None:
    """The server is out of reach for longer than its lease, and ends the job: what is missing runs again."""
    away = Fault("status", POP, nth=2, status=503, headers={"Retry-After": "1.5"})
    limits = ["--limit-lease", "0.5", "--limit-sweep", "0.1", "--limit-cleared", "0.1"]
    with (
        RunningServer("pixels", arguments=limits) as server,
        FaultyServer(server.url, [away]) as faulty,
        PredictionSession(faulty.url, numbered(4), batch_size=1, delay=0.3) as session,
    ):
        assert [box_number(one.boxes[0]) for one in session] == list(range(4))
        assert session.report().resent_items > 0


def test_a_full_disk_of_the_server(numbered: Numbered) -> None:
    """507: its answer is waited for and asked for again, until what was cleared has made room."""
    full = Fault("status", SUBMIT, nth=2, times=2, status=507, headers={"Retry-After": "0.2"})
    with RunningServer("pixels") as server, FaultyServer(server.url, [full]) as faulty:
        with PredictionSession(faulty.url, numbered(20)) as session:
            assert [box_number(one.boxes[0]) for one in session] == list(range(20))
        assert session.report().retries["busy"] == 2


def test_a_full_disk_of_ours(stock: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that wait for a slow caller find no room: a clear error, and the server's job is ended."""
    clip = write_numbers(tmp_path / "clip.mp4", 500)
    monkeypatch.setattr(spool, "IN_MEMORY", 8)
    full = partial(open, "/dev/full", "r+b", buffering=0)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with FaultyServer(stock) as faulty:
        with (
            PredictionSession(faulty.url, str(clip)) as session,
            pytest.raises(errors.DiskError, match=r"No space left.*TMPDIR"),
        ):
            list(session)
        assert len(faulty.calls(CLEAR)) == len(faulty.calls(CLIP)) == 1
    assert session.report().cleanup_failures == 0


def test_ids_that_write_are_never_run_again(tmp_path: Path) -> None:
    """A job by ids that writes elsewhere, and loses an answer: the error names what is missing."""
    folder = tmp_path / "library" / "project" / "set"
    folder.mkdir(parents=True)
    for number in range(6):
        Image.fromarray(number_picture(number)).save(folder / f"{number}.png")
    arguments = ["--library", str(tmp_path / "library")]
    few = Fault("rewrite", POP, times=99, rewrite=once(_results(lambda results: results.pop(1))))
    lost = [few, Fault("status", "get_session_info", status=404)]  # 404: taken for a stock server
    with (
        RunningServer("pixels", arguments=arguments) as server,
        FaultyServer(server.url, lost) as faulty,
        PredictionSession(faulty.url, image_ids=list(range(1, 7)), upload_mode="append") as session,
        pytest.raises(errors.MissingResultsError) as caught,
    ):
        list(session)
    assert len(caught.value.items) == 1
    assert len(faulty.calls("inference_batch_ids_async")) == 1


def test_a_generator_is_run_again_from_what_is_held(stock: str) -> None:
    """A one-pass source: its items in flight are held, so that a lost answer costs nothing."""
    faults = [Fault("drop_after", POP, nth=n) for n in range(2, 40, 3)]
    with (
        FaultyServer(stock, faults) as faulty,
        PredictionSession(faulty.url, (number_picture(n) for n in range(30))) as session,
    ):
        assert [box_number(one.boxes[0]) for one in session] == list(range(30))


def test_an_error_says_how_far_it_came(ours: str, numbered: Numbered) -> None:
    """Whatever ends a run names the first item that has no result."""
    gone = Fault("status", POP, nth=3, times=99, status=400, body=b"{}")
    with FaultyServer(ours, [gone]) as faulty, PredictionSession(faulty.url, numbered(40)) as session:
        got = []
        with pytest.raises(errors.InvalidRequestError) as caught:
            got.extend(session)
    assert got
    assert any(f"{len(got)} of 40 items came through" in note for note in caught.value.__notes__)


def test_a_repeated_upload_has_the_same_bytes(either: str, numbered: Numbered) -> None:
    """A 503 on the first submit: the second sends the files again from their first byte."""
    paths = numbered(1)
    with (
        FaultyServer(either, [Fault("status", SUBMIT, status=503)]) as faulty,
        PredictionSession(faulty.url, paths) as session,
    ):
        assert len(list(session)) == 1
        bodies = [call.body for call in faulty.calls(SUBMIT)]
    assert len(bodies) == 2
    sums = {hashlib.sha256(paths[0].read_bytes()).hexdigest()}
    for body in bodies:
        start = body.index(b"\xff\xd8")
        sums.add(hashlib.sha256(body[start : start + paths[0].stat().st_size]).hexdigest())
    assert len(sums) == 1


def test_one_logical_submit_has_one_key(ours: str, numbered: Numbered) -> None:
    """An answer lost after the job had started: the same key, and so the same job, again."""
    with FaultyServer(ours, [Fault("drop_after", SUBMIT)]) as faulty:
        with PredictionSession(faulty.url, numbered(1)) as session:
            assert len(list(session)) == 1
        keys = [call.headers["idempotency-key"] for call in faulty.calls(SUBMIT)]
        report = session.report()
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert report.unanswered_submits == 0
    assert report.jobs == 1


def test_a_stock_servers_orphan_is_counted(stock: str, numbered: Numbered) -> None:
    """Nobody can name the job of a submit that went unanswered: the report says that there is one."""
    with FaultyServer(stock, [Fault("drop_after", SUBMIT)]) as faulty:
        with PredictionSession(faulty.url, numbered(1)) as session:
            assert len(list(session)) == 1
        assert session.report().unanswered_submits == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_of_a_submit_names_its_target(ours: str, numbered: Numbered, status: int) -> None:
    """It never becomes a GET."""
    moved = Fault(
        "status", SUBMIT, status=status, headers={"Location": "https://elsewhere.example/x?t=s3cr3t"}
    )
    with (
        FaultyServer(ours, [moved]) as faulty,
        PredictionSession(faulty.url, numbered(1)) as session,
        pytest.raises(errors.ResponseError, match=r"https://elsewhere\.example/x") as caught,
    ):
        next(session)
    assert caught.value.status == status
    assert "s3cr3t" not in str(caught.value)


def test_a_login_page_is_told_as_one(ours: str, numbered: Numbered) -> None:
    """Status 200 and HTML: an error with URL, content type and first characters."""
    page = Fault(
        "answer", times=99, body=b"<html>Please log in</html>", headers={"Content-Type": "text/html"}
    )
    with (
        FaultyServer(ours, [page]) as faulty,
        PredictionSession(faulty.url, numbered(1)) as session,
        pytest.raises(errors.ProtocolError, match=r"text/html.*Please log in"),
    ):
        next(session)


@pytest.mark.parametrize("status", [401, 403])
def test_a_missing_token_is_an_auth_error(ours: str, numbered: Numbered, status: int) -> None:
    """It says how to pass one, and is not tried again."""
    with (
        FaultyServer(ours, [Fault("status", times=99, status=status)]) as faulty,
        PredictionSession(faulty.url, numbered(1)) as session,
        pytest.raises(errors.AuthError, match="PREDSESSION_TOKEN"),
    ):
        next(session)


def test_an_image_that_is_too_large_for_the_server(either: str, numbered: Numbered) -> None:
    """413 for one alone is an item error with its size; the others are predicted."""
    refuse_third = [Fault("status", SUBMIT, nth=2, status=413), Fault("status", SUBMIT, nth=3, status=413)]
    with (
        FaultyServer(either, refuse_third) as faulty,
        PredictionSession(faulty.url, numbered(3), on_error="yield") as session,
    ):
        outcomes = list(session)
    assert [bool(outcome) for outcome in outcomes] == [True, False, True]
    assert isinstance(outcomes[1], ItemError)
    assert "413" in outcomes[1].reason


def test_a_proxy_that_stays_broken_is_told_in_one_line(ours: str, numbered: Numbered) -> None:
    """Tried again, then an error with the status and the page's title."""

    class Api:
        token = None
        retry_count = 2

    broken = Fault("status", times=99, status=504, body=PAGE)
    with (
        FaultyServer(ours, [broken]) as faulty,
        PredictionSession(faulty.url, numbered(1), api=Api()) as session,
        pytest.raises(errors.ServerFaultError, match="502 Bad Gateway") as caught,
    ):
        next(session)
    assert "\n" not in str(caught.value)
    assert len(faulty.calls("get_session_info")) == 2


def test_a_late_pop_is_no_error(either: str, numbered: Numbered) -> None:
    """An answer later than the read timeout, once: nothing is lost."""
    with (
        FaultyServer(either, [Fault("stall", POP, nth=2, seconds=1.5)]) as faulty,
        PredictionSession(faulty.url, numbered(10), timeout=0.7, idle_timeout=30) as session,
    ):
        assert [box_number(one.boxes[0]) for one in session] == list(range(10))


def test_a_server_that_forgets_the_job(either: str, numbered: Numbered) -> None:
    """The images that had no answer are sent again, in a job of their own."""
    gone = b'{"detail":{"message":"RuntimeError(there is no such uuid in self._inference_requests)"}}'
    with (
        FaultyServer(either, [Fault("status", POP, status=500, body=gone)]) as faulty,
        PredictionSession(faulty.url, numbered(20)) as session,
    ):
        assert [box_number(one.boxes[0]) for one in session] == list(range(20))
        assert session.report().resent_items > 0


def test_a_server_that_always_forgets_is_given_up(either: str, numbered: Numbered) -> None:
    """The error says that jobs are forgotten, and what is missing; each was asked for once, no more."""
    gone = b'{"detail":{"message":"RuntimeError(there is no such uuid in self._inference_requests)"}}'
    with (
        FaultyServer(either, [Fault("status", POP, times=99, status=500, body=gone)]) as faulty,
        PredictionSession(faulty.url, numbered(1)) as session,
        pytest.raises(
            errors.JobExpiredError, match=r"no longer knows job .* after 5 jobs: .*im_0\.jpg"
        ) as caught,
    ):
        next(session)
    assert len(caught.value.items) == 1
    assert session.report().retries == {}
    assert len({call.body for call in faulty.calls(POP)}) == len(faulty.calls(POP)) == 5


@pytest.mark.parametrize("status", [502, 503, 504])
def test_the_apis_retry_count_bounds_submits(ours: str, numbered: Numbered, status: int) -> None:
    """One try is one try; a 503 was not acted on, and counts as no unanswered submit."""

    class Api:
        token = None
        retry_count = 1

    with (
        FaultyServer(ours, [Fault("status", SUBMIT, times=99, status=status)]) as faulty,
        PredictionSession(faulty.url, numbered(1), api=Api()) as session,
    ):
        with pytest.raises(errors.ServerFaultError):
            next(session)
        assert len(faulty.calls(SUBMIT)) == 1
        assert session.report().unanswered_submits == 0


def test_a_short_timeout_and_a_slow_model(ours: str, numbered: Numbered) -> None:
    """The long poll is shorter than half the timeout, so that waiting is no fault."""
    with PredictionSession(ours, numbered(1), timeout=2.4, delay=3.0) as session:
        assert len(list(session)) == 1
        assert session.report().retries == {}
