"""Our client, their server, and something goes wrong on the way: each input gets its own answer, once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from integration.test_faults import CLEAR, FAULTS, POP, SUBMIT
from interop.pictures import write_clip, write_pictures
from interop.their_server import TheirServer, Truth, assert_all_equal, until

from predsession import JobExpiredError, PredictionSession, ResultsGoneWarning
from predsession.testing import FaultyServer

COUNT = 40
SUBMIT_CLIP = "inference_video_async"
CLIP_FAULTS = {
    name: [replace(fault, endpoint=SUBMIT_CLIP if fault.endpoint == SUBMIT else fault.endpoint, nth=1)]
    for name, (fault, *_) in FAULTS.items()
    if fault.endpoint in (SUBMIT, POP, CLEAR) and "413" not in name
}
UNANSWERED = {"submit answer lost", "submit in broken chunks"}
"""Faults after which a job runs whose name did not arrive."""
_runs = count()


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Pictures."""
    return write_pictures(tmp_path_factory.mktemp("pictures"), COUNT)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip of as many frames."""
    return write_clip(tmp_path_factory.mktemp("clips") / "clip.mp4", COUNT)


@pytest.fixture(scope="module")
def truths(production: TheirServer, development: TheirServer, paths: list[Path]) -> dict[str, list[Truth]]:
    """What the models of both modes answer for the pictures."""
    return {server.mode: server.direct(paths) for server in (production, development)}


@pytest.mark.parametrize("name", FAULTS)
def test_pictures(theirs: TheirServer, paths: list[Path], truths: dict[str, list[Truth]], name: str) -> None:
    """40 in, 40 out, in order, each its own; no job is left live but one that nobody can name."""
    with FaultyServer(theirs.url, FAULTS[name]) as faulty:
        with PredictionSession(faulty.url, paths, batch_size=4) as session:
            predictions = list(session)
        report = session.report()
        assert [call.fault for call in faulty.seen if call.fault], "the fault was never made"
    assert_all_equal(predictions, truths[theirs.mode])
    assert (report.predictions, report.item_errors, report.cleanup_failures) == (COUNT, 0, 0)
    # Nobody can name a job whose submit was not answered; whether there is one, only the server knows.
    assert (name in UNANSWERED) <= len(theirs.live()) <= report.unanswered_submits


@pytest.mark.parametrize("name", CLIP_FAULTS)
def test_clips(theirs: TheirServer, clip: Path, name: str) -> None:
    """Every frame once, its own, in order."""
    with FaultyServer(theirs.url, CLIP_FAULTS[name]) as faulty:
        with PredictionSession(faulty.url, clip, batch_size=4, delay=0.01) as session:
            predictions = list(session)
        report = session.report()
        assert [call.fault for call in faulty.seen if call.fault], "the fault was never made"
    assert [one.frame_index for one in predictions] == list(range(COUNT))
    assert_all_equal(predictions, theirs.direct_frames(clip, range(COUNT)))
    assert report.cleanup_failures == 0
    assert (name in UNANSWERED) <= len(theirs.live()) <= report.unanswered_submits


def test_a_connection_that_went_stale(theirs: TheirServer, paths: list[Path]) -> None:
    """Their server closes a connection after five seconds without a call; the next call finds it closed."""
    with PredictionSession(theirs.url, iter(_slowly(paths[:6]))) as session:
        assert_all_equal(list(session), theirs.direct(paths[:6]))
        assert session.report().unanswered_submits == 0


def _slowly(paths: list[Path]) -> Iterator[Path]:
    """Hand out half of the pictures, wait until every connection is stale, hand out the rest."""
    yield from paths[:3]
    time.sleep(6.0)
    yield from paths[3:]


def test_a_job_that_is_forgotten(
    theirs: TheirServer, paths: list[Path], truths: dict[str, list[Truth]]
) -> None:
    """A uuid that their server does not know is a 500 there, in words or without any: sent again at once."""
    key = f"forgotten, {theirs.mode}, {next(_runs)}"
    with FaultyServer(theirs.url) as seen:
        with PredictionSession(seen.url, paths, key=key, delay=0.05, batch_size=1) as session:
            first = next(session)
            uuid = until(lambda: _under_way(theirs, session), "a job that is under way")
            theirs.post("__forget", uuid=uuid)
            predictions = [first, *session]
        asked = [call for call in seen.calls(POP) if uuid.encode() in call.body]
        # Not `index`: pops before it may be equal to it.
        gone = next(place for place, call in enumerate(seen.seen) if call is asked[-1])
        between = [call.endpoint for call in seen.seen[gone:] if uuid.encode() in call.body]
    assert_all_equal(predictions, truths[theirs.mode])
    assert session.report().resent_items > 0
    # In development mode the 500 says nothing: a second look tells it from any other fault.
    assert between == [POP, *(["get_inference_status"] * 2 if theirs.mode == "development" else [])]


def test_a_uuid_that_is_not_known(theirs: TheirServer) -> None:
    """With text or with nothing for an answer: `JobExpiredError`, after one look, or two, and no retries."""
    with FaultyServer(theirs.url) as seen:
        session = PredictionSession.attach(seen.url, uuid="f" * 32)
        with pytest.raises(JobExpiredError, match="the server knows no job ffff"):
            next(session)
        looks = [call.endpoint for call in seen.seen if b"ffff" in call.body]
    assert looks == ["get_inference_status"] * (2 if theirs.mode == "development" else 1)
    assert session.report().retries == {}


def test_a_job_that_is_gone_on_with(theirs: TheirServer, paths: list[Path]) -> None:
    """A job that another session left is read to its end; what had been popped there is gone, and is told."""
    first = PredictionSession(theirs.url, paths, key=f"left {next(_runs)}", delay=0.2, batch_size=1)
    next(first)
    uuid = until(lambda: _under_way(theirs, first), "a job that is under way")
    first.detach()
    assert uuid in theirs.live()
    with PredictionSession.attach(theirs.url, uuid=uuid) as session, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResultsGoneWarning)
        rest = list(session)
    assert_all_equal(rest, theirs.direct(paths[1:9][-len(rest) :]))  # the second job has so many
    assert uuid not in theirs.live()
    for other in theirs.live():
        list(PredictionSession.attach(theirs.url, uuid=other))
    assert theirs.live() == []


def _under_way(server: TheirServer, session: PredictionSession) -> str | None:
    """Return one of a session's jobs that has not ended."""
    jobs = server.jobs()
    return next((uuid for uuid in session.status().jobs if not jobs[uuid]["finished"]), None)


def test_a_clip_that_is_forgotten(theirs: TheirServer, clip: Path) -> None:
    """The frames that have no answer yet are run again."""
    key = f"forgotten clip, {theirs.mode}, {next(_runs)}"
    with PredictionSession(theirs.url, clip, key=key, delay=0.05, batch_size=2) as session:
        first = next(session)
        theirs.post("__forget", uuid=str(session.inference_request_uuid))
        predictions = [first, *session]
    assert [one.frame_index for one in predictions] == list(range(COUNT))
    assert_all_equal(predictions, theirs.direct_frames(clip, range(COUNT)))


def test_pictures_that_other_clients_push_out(production: TheirServer, tmp_path: Path) -> None:
    """While ours run, somebody fills their cache of 256 pictures: sent again, none lost."""
    paths = write_pictures(tmp_path / "ours", 60)
    write_pictures(tmp_path / "others", 300, first=5000)
    key = f"pushed out, {next(_runs)}"
    with PredictionSession(production.url, paths, key=key, delay=0.05, batch_size=2) as session:
        until(lambda: production.computed(key) > 2, "the first pictures")
        _fill_cache(production, sorted((tmp_path / "others").iterdir()))
        predictions = list(session)
    assert_all_equal(predictions, production.direct(paths))


def _fill_cache(server: TheirServer, paths: list[Path]) -> None:
    """Upload as a client does that does not know better."""
    import requests

    files = [("files", (path.name, path.read_bytes())) for path in paths]
    reply = requests.post(f"{server.url}/{SUBMIT}", files=files, data={"state": "{}"}, timeout=60)
    uuid = reply.json()["inference_request_uuid"]
    server.post("clear_inference_request", state={"inference_request_uuid": uuid})
