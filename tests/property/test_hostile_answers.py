"""The client under attack: whatever a server answers is a value or an error of our tree."""

from __future__ import annotations

import base64
import gzip
import json
import struct
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextlib import nullcontext as does_not_raise
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hostile import GOOD, META, SIDE, bodies, check_words, good_job, read_all
from hostile_server import Answer, HostileServer, Raw
from hypothesis import given, settings
from hypothesis import strategies as st
from server_kit import until

from predsession import PredictionSession, connect
from predsession.errors import PredSessionError, ProtocolError, RequestTimeoutError
from predsession.http import reading
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.inputs.clips import ClipItem
from predsession.jobs.cliprun import ClipRun
from predsession.prediction import Prediction, rows
from predsession.tracks import tracked_ids
from predsession.wire import calls
from predsession.wire.httpreply import Reply, error_of, is_unknown_job, parse_json
from predsession.wire.meta import ModelMeta
from predsession.wire.replies import (
    MOST_ITEMS,
    parse_info,
    parse_item_fault,
    parse_job,
    parse_job_list,
    parse_submitted,
)

SAMPLES = Path(__file__).parents[1] / "samples"
PARSERS: dict[str, Callable[[Reply], object]] = {
    "get_session_info": parse_info,
    "get_model_meta": lambda reply: ModelMeta.from_json(parse_json(reply)),
    "inference_batch_async": parse_submitted,
    "pop_inference_results": parse_job,
    "get_inference_progress": parse_job,
    "get_inference_result": lambda reply: tracked_ids(parse_json(reply)),
    "list_inference_requests": parse_job_list,
}


def value_of(read: Callable[[], object]) -> object:
    """Return a value, or the error of ours in its place; any other error goes through."""
    try:
        return read()
    except PredSessionError as error:
        return check_words(error)


@pytest.mark.parametrize("endpoint", PARSERS)
@given(st.data(), st.sampled_from([200, 200, 200, 202, 301, 400, 401, 404, 429, 500, 503]))
@settings(max_examples=150, deadline=None)
def test_any_answer_is_a_value_or_an_error_of_ours(endpoint: str, data: st.DataObject, status: int) -> None:
    """A sound answer, spoilt in one to three places: every parser returns, or raises from our tree."""
    reply = Reply(status, {}, data.draw(bodies(GOOD[endpoint])), "http://127.0.0.1:1/x")
    value = value_of(lambda: PARSERS[endpoint](reply))
    assert isinstance(error_of(reply), PredSessionError)
    assert is_unknown_job(reply) in {True, False}
    if isinstance(value, ModelMeta):
        value_of(lambda: (value.to_json(), [value.color(name) for name in value.names]))


@given(bodies(GOOD["pop_inference_results"]))
@settings(max_examples=300, deadline=None)
def test_any_result_can_be_asked_for_everything(body: bytes) -> None:
    """What came along with a pop: each property, picture, line and copy is a value, or an error of ours."""
    state = value_of(lambda: parse_job(Reply(200, {}, body)))
    for item in getattr(state, "results", ()):
        fault = parse_item_fault(item)
        made = value_of(
            lambda item=item: Prediction.from_wire(item, meta=META, index=0, name="", path=None, url=None)
        )
        if fault is None and isinstance(made, Prediction):
            read_all(made)


# -- over a real socket ---------------------------------------------------------------------------------


@dataclass
class Impatient:
    """What a session takes its number of tries from."""

    token: str | None = None
    retry_count: int = 1


PICTURE = np.full((SIDE, SIDE, 3), 128, np.uint8)
SOURCES: dict[str, dict[str, object]] = {
    "picture": {"input": PICTURE},
    "ids": {"image_ids": [7]},
    "clip": {"input": str(SAMPLES / "pedestrians.mp4"), "num_frames": 1, "tracking": True},
}


def run_through(url: str, source: str) -> list[object]:
    """Run a source through a server, ask for everything there is, and return what came out."""
    outcomes: list[object] = []
    start: Callable[..., PredictionSession] = PredictionSession
    options = {"api": Impatient(), "on_error": "yield", "idle_timeout": 0.3, "timeout": 5}
    with start(url, **SOURCES[source], **options) as session:
        try:
            outcomes.extend(session)
        except PredSessionError as error:
            outcomes.append(check_words(error))
        for outcome in outcomes:
            if isinstance(outcome, Prediction):
                read_all(outcome)
        for look in (lambda: session.model_meta, session.progress, session.status, session.report):
            value_of(look)
        value_of(lambda: (session.final_result, session.tracks if source == "clip" else None))
        repr(session)
    until(lambda: not any("predsession-" in each.name for each in threading.enumerate()), "its threads' end")
    return outcomes


@pytest.fixture(scope="module")
def hostile() -> Iterator[HostileServer]:
    """One server for all examples."""
    with HostileServer() as server:
        yield server


SPOILABLE = [name for name in GOOD if name not in ("list_inference_requests", "inference_image")]
SOUND: dict[str, dict[str, Answer]] = {
    "picture": {},
    # How many results come of ids is for the server to know: this one ends as a stock one does.
    "ids": {"get_session_info": b'{"app_name": "stock"}'},
    # A clip is asked for its tracks at its end.
    "clip": {"pop_inference_results": json.dumps({**good_job(), "has_result": True}).encode()},
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_sound_server_of_this_kind_is_answered(hostile: HostileServer, source: str) -> None:
    """Without damage each source has its prediction, so that the tests below damage something that works."""
    hostile.answers = dict(SOUND[source])
    (outcome,) = run_through(hostile.url, source)
    assert isinstance(outcome, Prediction)
    assert len(outcome) == len(GOOD["pop_inference_results"]["pending_results"][0]["annotation"]["objects"])


@pytest.mark.parametrize("source", ["ids", "clip"])
def test_a_job_that_repeats_its_results_for_ever_stands_still(hostile: HostileServer, source: str) -> None:
    """It never says that it is finished, and each answer has what was there before: that is no change."""
    endless = {key: value for key, value in good_job().items() if key != "finished"}
    hostile.answers = {**SOUND[source], "pop_inference_results": json.dumps(endless).encode()}
    assert isinstance(run_through(hostile.url, source)[-1], PredSessionError)


@pytest.mark.parametrize("source", SOURCES)
@given(st.data())
@settings(max_examples=15, deadline=None)
def test_a_session_ends_with_a_value_or_an_error_of_ours(
    hostile: HostileServer, source: str, data: st.DataObject
) -> None:
    """One or two calls answered with damage: the run ends, nothing foreign is raised, no thread is left."""
    spoilt = data.draw(st.lists(st.sampled_from(SPOILABLE), min_size=1, max_size=2, unique=True))
    hostile.answers = {**SOUND[source], **{name: data.draw(bodies(GOOD[name])) for name in spoilt}}
    assert len(run_through(hostile.url, source)) <= 3


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_a_model_answers_a_value_or_an_error_of_ours(hostile: HostileServer, data: st.DataObject) -> None:
    """The calls of a handle on a model, answered with damage."""
    spoilt = data.draw(st.sampled_from(["inference_image", "get_model_meta", "get_session_info"]))
    other = bodies({"settings": {"conf": 0.5}, "status": "ready"})
    hostile.answers = {spoilt: data.draw(bodies(GOOD[spoilt])), "get_status": data.draw(other)}
    hostile.answers |= dict.fromkeys(["is_ready", "list_pretrained_models", "tasks.stop"], data.draw(other))
    hostile.answers |= dict.fromkeys(
        ["get_custom_inference_settings", "get_tracking_settings"], data.draw(other)
    )
    with connect(hostile.url, api=Impatient()) as model:
        for ask in (lambda: model.info, lambda: model.classes, lambda: model.settings, model.status,
                    lambda: model.tracking_settings, model.is_deployed, model.list_pretrained_models,
                    model.shutdown):  # fmt: skip
            value_of(ask)
        found = value_of(lambda: model.predict_one(PICTURE))
        if isinstance(found, Prediction):
            read_all(found)


LOCATIONS = [
    b"http://[",
    b"//[::1",
    b"http://\xff\xfe/",
    b"file:///etc/passwd",
    b"http://h:99999/",
    b"",
    b"?" * 9,
]
HEADS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 500 + b"\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: \xc2\xb2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nno gzip",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate, gzip, br, zstd\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n{}",
    b"HTTP/1.1 200 OK\r\na: " + b"b" * 100_000 + b"\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\n: \r\n\xff\xfe: \xff\r\n\r\n{}",
    b"HTTP/1.1 99999999999999999999 OK\r\n\r\n{}",
    b"HTTP/1.1 -1 OK\r\n\r\n{}",
    b"HTTP/1.1\r\n\r\n{}",
    b"HTTP/9.9 200 OK\r\n\r\n{}",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"\x15\x03\x01\x00\x02\x02\x16",
    b"",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 401 No\r\nWWW-Authenticate: \xff=,,,Basic\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nRetry-After: 1 Jan 99999999999999999999 00:00 GMT\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nRetry-After: nan\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nSet-Cookie: \x01=\xff; Max-Age=9e999; Expires=\xff\r\nContent-Length: 2\r\n\r\n{}",
    *(b"HTTP/1.1 302 Found\r\nLocation: " + place + b"\r\nContent-Length: 0\r\n\r\n" for place in LOCATIONS),
]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("endpoint", ["get_session_info", "pop_inference_results"])
def test_any_head_is_an_error_of_ours(hostile: HostileServer, endpoint: str, head: bytes) -> None:
    """Status lines, headers, encodings and redirects that are none: the run ends with an error of ours."""
    hostile.answers = {endpoint: Raw(head)}
    transport = HttpTransport(hostile.url, options=ConnectionOptions(read_timeout=5))
    try:
        value_of(lambda: parse_job(transport.send(calls.Call(endpoint))))
        value_of(lambda: transport.fetch(f"{hostile.url}/{endpoint}", max_bytes=1000))
    finally:
        transport.close()


# -- bombs: small on the wire, large where they are opened -----------------------------------------------


def prediction_of(*objects: object, width: int = SIDE, height: int = SIDE) -> Prediction:
    """Return the prediction of an answer that claims these objects in a picture of that size."""
    annotation = {"size": {"width": width, "height": height}, "objects": list(objects)}
    item = {"annotation": annotation}
    return Prediction.from_wire(item, meta=META, index=0, name="", path=None, url=None)


@contextmanager
def little_memory(most: int) -> Iterator[None]:
    """Make sure that no more than so many bytes are taken at any time, by Python and numpy."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def png(width: int, height: int, pixels: bytes) -> bytes:
    """Return a gray PNG whose header claims a size, whatever its pixels are."""
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", pixels),
        (b"IEND", b""),
    )
    framed = (struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
              for name, data in chunks)  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def bitmap(data: bytes) -> dict[str, object]:
    """Return an object with a mask of these bytes."""
    text = base64.b64encode(data).decode()
    return {"classTitle": "bitmap", "geometryType": "bitmap", "bitmap": {"origin": [0, 0], "data": text}}


ZEROS = zlib.compress(bytes(50_000_000), 9)  # 50 kB
BITMAPS = {
    "a header that claims 10^9 pixels": zlib.compress(png(40_000, 25_000, ZEROS)),
    "the same, plain": png(40_000, 25_000, ZEROS),
    "more in its zlib stream than the PNG needs": zlib.compress(png(8, 8, b"") + bytes(50_000_000), 9),
    "more pixels than its header claims": zlib.compress(png(8, 8, ZEROS), 9),
    "a zlib stream in a zlib stream": zlib.compress(ZEROS, 9),
}


@pytest.mark.parametrize("side", [SIDE, 1 << 24])
@pytest.mark.parametrize("kind", BITMAPS)
def test_a_bomb_in_a_mask_is_not_unpacked(kind: str, side: int) -> None:
    """A mask is unpacked no further than the picture is large, and never to 10^9 pixels."""
    found = prediction_of(bitmap(BITMAPS[kind]), width=side, height=side)
    with little_memory(8_000_000):
        read_all(found)


def test_masks_that_are_huge_together_are_refused() -> None:
    """Each mask is as large as the picture, which is allowed; all of them would not fit into memory."""
    side = 4096
    one = bitmap(zlib.compress(png(side, side, zlib.compress(bytes((side + 1) * side), 9)), 9))
    found = prediction_of(*[one] * 1000, width=1 << 24, height=1 << 24)
    with pytest.MonkeyPatch.context() as patch, little_memory(300_000_000):
        patch.setattr(rows, "MOST_CROP_BYTES", 1 << 26)
        with pytest.raises(ProtocolError, match="up to object 4 take more than"):
            len(found.mask_crops)
    small = [{"classTitle": "a", "box": [0, 0, 1, 1]}] * 1000
    with pytest.raises(PredSessionError, match="use mask_crops"):
        len(prediction_of(*small, width=1 << 24, height=1 << 24).masks)


def test_keypoints_of_all_objects_together_are_bounded() -> None:
    """Each object names nodes of its own: objects times nodes would be a hundred gigabytes."""
    nodes = [{f"{row}_{node}": {"loc": [1, 1]} for node in range(100)} for row in range(1000)]
    found = prediction_of(*({"classTitle": "a", "geometryType": "graph", "nodes": each} for each in nodes))
    with little_memory(100_000_000), pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "MOST_BYTES", 1 << 30)
        assert len(found.keypoint_ids) == 100_000
        with pytest.raises(PredSessionError, match="do not fit into memory"):
            len(found.keypoints)


def test_an_outline_that_takes_minutes_to_fill_is_refused() -> None:
    """A polygon that crosses each of many rows with each of its many edges is an error, not a wait."""
    zigzag = [[place % 2 * 9999, place % 9973] for place in range(100_000)]
    points = {"exterior": zigzag, "interior": []}
    found = prediction_of(
        {"classTitle": "a", "geometryType": "polygon", "points": points}, width=10_000, height=10_000
    )
    assert found.boxes.tolist() == [[0, 0, 10_000, 9973]]
    with pytest.raises(ProtocolError, match="too many to fill"):
        len(found.mask_crops)


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_very_many_objects(count: int) -> None:
    """A million objects in one answer are read, in time and memory that grow no faster than it does."""
    objects = b",".join([b'{"classTitle":"rect","box":[0,0,1,1]}'] * count)
    size = b'{"size":{"width":64,"height":64},"objects":['
    body = (
        b'{"stage":"Finished","finished":true,"pending_results":[{"annotation":' + size + objects + b"]}}]}"
    )
    (item,) = parse_job(Reply(200, {}, body)).results
    found = Prediction.from_wire(item, meta=META, index=0, name="", path=None, url=None)
    assert found.boxes.shape == (count, 4)
    assert set(found.class_ids.tolist()) == {META.class_id("rect")}


def test_an_answer_without_end(hostile: HostileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks to more than an answer may have is given up, before memory is."""
    monkeypatch.setattr(reading, "MOST_BYTES", 1 << 20)
    packed = gzip.compress(bytes(200_000_000))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    hostile.answers = {"get_session_info": Raw(head + packed)}
    transport = HttpTransport(hostile.url)
    with little_memory(80_000_000), pytest.raises(ProtocolError, match="more than 1048576 bytes"):
        transport.send(calls.session_info())
    transport.close()


def test_an_answer_that_trickles(hostile: HostileServer) -> None:
    """A byte now and then keeps no read timeout from passing: the answer as a whole comes too slowly."""
    hostile.answers = {"get_session_info": Raw(b"HTTP/1.1 200 OK\r\n\r\n", trickle=0.02)}
    transport = HttpTransport(hostile.url, options=ConnectionOptions(read_timeout=0.2))
    with pytest.raises(RequestTimeoutError, match="too slowly"):
        transport.send(calls.session_info())
    transport.close()


def test_totals_that_nobody_can_mean(hostile: HostileServer) -> None:
    """A job by ids, or a clip whose length is not known here, of 2^52 results, or as many as can be:
    no list as long is made, of the predictions or of what is missing.
    """
    hostile.answers = {
        "get_session_info": b'{"app_name": "stock"}',
        "inference_video_id_async": json.dumps(GOOD["inference_batch_async"]).encode(),
    }
    for total, ends in (
        (2**52, does_not_raise()),
        (MOST_ITEMS, pytest.raises(ProtocolError, match="speaks of")),
    ):
        huge = {**good_job(), "progress": {"current": 1, "total": total}}
        hostile.answers["pop_inference_results"] = json.dumps(huge).encode()
        with ends, PredictionSession(hostile.url, video_id=1, api=Impatient()) as session:
            assert len(list(session)) == 1
    run = ClipRun(ClipItem("clip.mp4", nbytes=100, clip=None, frames=None, stride=1, first_index=0))
    with pytest.raises(ProtocolError, match="of 10000000 frames, in 100 bytes"):
        run.learn_total(MOST_ITEMS)
