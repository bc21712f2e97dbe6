"""``--stock`` answers as the recorded server does, key by key, and has its limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import held_numbers
import pytest
from server_kit import Caller, Server, numbers, png, until

RECORDED = json.loads((Path(__file__).parents[1] / "samples" / "stock_answers.json").read_text())
ENDPOINTS = (
    "get_inference_progress",
    "get_inference_status",
    "pop_inference_results",
    "get_inference_result",
    "get_preparing_progress",
    "stop_inference",
    "clear_inference_request",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that imitates a stock one."""
    with Server("--model", f"pixels={held_numbers.__file__}:HeldBatches", "--stock") as running:
        yield running


@pytest.fixture
def caller(server: Server) -> Iterator[Caller]:
    """Calls it."""
    with Caller(server.url) as one:
        yield one


def outline(value: Any) -> Any:
    """Keep keys, their order and the kinds of the values; a null may stand for anything."""
    if isinstance(value, dict):
        return [(key, outline(each)) for key, each in value.items()]
    if isinstance(value, list):
        return [outline(value[0])] if value else []
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def same(name: str, reply: Any) -> None:
    """Check status, type and outline of an answer against the recorded one."""
    recorded = RECORDED[name]
    assert reply.status_code == recorded["status"], reply.text
    assert reply.headers["content-type"] == recorded["type"]
    assert outline(reply.json()) == outline(recorded["body"]), name


def test_info_calls_have_the_recorded_keys(caller: Caller) -> None:
    """Info answers have the recorded keys, and no sign of the extension."""
    body = {"state": {}, "context": {}}
    for name in ("model_meta", "get_status", "is_deployed", "is_ready"):
        same(name, caller.post(RECORDED[name]["path"], json=body))
    info = caller.post("get_session_info", json=body).json()
    assert list(info) == list(RECORDED["session_info"]["body"])
    assert caller.post("get_session_info").json() == info
    assert isinstance(caller.ask("get_custom_inference_settings")["settings"], dict)
    assert caller.ask("get_output_classes_and_tags") == caller.ask("get_model_meta")


def test_get_is_no_call(server: Server, caller: Caller) -> None:
    """A GET of a call is 405, an unknown call 404, with the recorded bodies."""
    reply = caller.http.get(f"{server.url}/get_session_info", timeout=10)
    assert (reply.status_code, reply.json()) == (405, RECORDED["session_info_get"]["body"])
    reply = caller.post("no_such_endpoint", json={"state": {}})
    assert (reply.status_code, reply.json()) == (404, RECORDED["unknown_endpoint"]["body"])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_calls_without_or_with_an_unknown_uuid(caller: Caller, endpoint: str) -> None:
    """A missing uuid is 400, an unknown one 500 with the recorded words, and 200 for clear."""
    reply = caller.post(endpoint, json={"state": {}, "context": {}})
    recorded = RECORDED[f"{endpoint}__no_uuid"]
    assert (reply.status_code, reply.json()) == (recorded["status"], recorded["body"])
    reply = caller.post(endpoint, json={"state": {"inference_request_uuid": "deadbeef"}, "context": {}})
    recorded = RECORDED[f"{endpoint}__unknown_uuid"]
    assert reply.status_code == recorded["status"]
    cut = [json.dumps(body).split(" (")[0] for body in (reply.json(), recorded["body"])]
    assert cut[0] == cut[1]


def test_bodies_without_state(caller: Caller) -> None:
    """No body, and a body without state, are the recorded faults."""
    for name, arguments in (("progress__no_body", {}), ("progress__json_without_state", {"json": {}})):
        reply = caller.post("get_inference_progress", **arguments)
        assert (reply.status_code, reply.json()) == (500, RECORDED[name]["body"])


def test_forms_that_are_none(caller: Caller) -> None:
    """No files, JSON instead of a form, a state that is no JSON or no object: as recorded."""
    one = [("files", ("a.png", png(1)))]
    cases = {
        "batch__no_files": {"data": {"state": "{}"}},
        "batch__json_body": {"json": {"state": {}, "context": {}}},
        "batch__bad_state_json": {"files": one, "data": {"state": "{nope"}},
        "batch__state_list": {"files": one, "data": {"state": "[1]"}},
    }
    for name, arguments in cases.items():
        reply = caller.post("inference_batch_async", **arguments)
        assert (reply.status_code, reply.json()) == (RECORDED[name]["status"], RECORDED[name]["body"]), name
    reply = caller.post("inference_batch_async", files=[("other", ("a.png", png(1)))], data={"state": "{}"})
    assert reply.status_code == 422


def test_sync_calls_answer_items(caller: Caller) -> None:
    """The sync twins answer an item, and a list of items, with the recorded keys."""
    item = caller.upload([png(7)], endpoint="inference_image").json()
    assert list(item) == list(RECORDED["sync_image"]["body"])
    assert list(item["annotation"]) == list(RECORDED["sync_image"]["body"]["annotation"])
    recorded = RECORDED["sync_image"]["body"]["annotation"]["objects"][0]
    assert outline(item["annotation"]["objects"][0]) == outline(recorded)
    items = caller.upload([png(3), png(4)], endpoint="inference_batch").json()
    assert numbers(items) == [3, 4]


def test_settings_field_counts_where_state_is_empty(caller: Caller) -> None:
    """The old text part ``settings`` is read if ``state`` is absent."""
    settings = json.dumps({"settings": {"conf": 0.9999}})
    reply = caller.post("inference_image", files=[("files", ("a.png", png(5)))], data={"settings": settings})
    assert reply.json()["annotation"]["objects"] == []


def test_job_answers_have_the_recorded_keys(caller: Caller, gate: Path) -> None:
    """Every answer on a job's way, from start to clear, has the recorded keys in the recorded order."""
    held = {"hold_while": str(gate), "hold_from": 1}
    reply = caller.upload([png(n) for n in range(4)], settings=held, batch_size=1)
    same("async_start", reply)
    state = {"state": {"inference_request_uuid": reply.json()["inference_request_uuid"]}, "context": {}}

    def call(endpoint: str) -> Any:
        return caller.post(endpoint, json=state)

    until(lambda: call("get_inference_progress").json()["is_inferring"], "the start")
    for name in ("async_progress_running", "async_preparing_progress_running", "async_status_running",
                 "async_result_before_end"):  # fmt: skip
        same(name, call(RECORDED[name]["path"]))
    running = until(
        lambda: (found := call("pop_inference_results")).json()["pending_results"] and found, "one"
    )
    recorded = RECORDED["async_pop_running"]["body"]
    assert list(running.json()) == list(recorded)
    assert list(running.json()["pending_results"][0]) == list(recorded["pending_results"][0])
    gate.unlink()
    until(lambda: call("get_inference_progress").json()["finished"], "the end")
    ended = call("get_inference_progress").json()
    assert ended["progress"] == {"current": 0, "total": 1}, "the true numbers are hidden after the end"
    assert ended["preparing_progress"]["current"] == 4
    for name in ("async_progress_finished", "async_status_finished", "async_result_end"):
        same(name, call(RECORDED[name]["path"]))
    left = call("pop_inference_results").json()
    assert left["progress"] == {"status": "Finished", "current": 4, "total": 4, "is_size": False}
    for name in ("async_pop_finished_2nd", "async_stop_finished", "async_clear", "async_pop_after_clear"):
        same(name, call(RECORDED[name]["path"]))
    assert call("pop_inference_results").json()["stopped"] is True


def test_failing_model_ends_the_job_with_what_came_before(caller: Caller) -> None:
    """An exception comes in the same answer as the items before it, with the recorded keys."""
    uuid = caller.submit([png(1), png(2), png(3)], settings={"fail_at": 2}, batch_size=1)
    until(lambda: caller.progress(uuid)["finished"], "the end")
    answer = caller.pop(uuid)
    assert outline({**answer, "pending_results": []}) == outline(
        {**RECORDED["err_pop"]["body"], "pending_results": []}
    )
    assert numbers(answer["pending_results"]) == [1]
    assert answer["exception"]["type"] == "ValueError"
    assert answer["exception"]["message"] == "told to fail at 2"


def test_stop_does_not_reach_a_running_job(caller: Caller, gate: Path) -> None:
    """A stopped image job computes to its end and only then is cancelled, with all its results."""
    uuid = caller.submit([png(n) for n in range(12)], settings={"hold_while": str(gate)}, batch_size=2)
    until(held_numbers.mark(gate).exists, "the start")
    caller.stop(uuid)
    gate.unlink()
    items, last = caller.drain(uuid)
    assert numbers(items) == list(range(12))
    assert (last["stage"], last["stopped"]) == ("Cancelled", True)


def test_one_job_at_a_time(caller: Caller, gate: Path) -> None:
    """The second job stays in preparation until the first has ended; its progress then counts bytes."""
    first = caller.submit([png(n) for n in range(8)], settings={"hold_while": str(gate)}, batch_size=1)
    picture = png(99)
    second = caller.submit([picture])
    waiting = caller.progress(second)
    assert waiting["stage"] == "Preparing model for inference..."
    assert waiting["preparing_progress"]["current"] == waiting["preparing_progress"]["total"] == len(picture)
    gate.unlink()
    _, last = caller.drain(second)
    assert caller.progress(first)["finished"]
    assert last["stage"] == "Finished"
    caller.drain(first)


def test_pop_is_destructive(caller: Caller) -> None:
    """What was popped is gone, whatever of the extension the call says."""
    uuid = caller.submit([png(1), png(2)])
    until(lambda: caller.progress(uuid)["finished"], "the end")
    assert numbers(caller.pop(uuid, ack=0, limit=1)["pending_results"]) == [1, 2]
    assert caller.pop(uuid, ack=0)["pending_results"] == []


def test_more_than_256_images_push_each_other_out(caller: Caller) -> None:
    """A job of 300 images fails with a KeyError that names the first, and has no results."""
    uuid = caller.submit([(f"im_{n:04}.png", png(n)) for n in range(300)])
    items, last = caller.drain(uuid)
    assert (items, last["stage"]) == ([], "Error")
    assert last["exception"]["type"] == "KeyError"
    assert last["exception"]["message"] == "'im_0000.png'"


def test_equal_names_overwrite_each_other(caller: Caller, gate: Path) -> None:
    """Two files of one name in a job, or in two jobs at once, both answer for the last one."""
    items, _ = caller.drain(caller.submit([("same.png", png(1)), ("same.png", png(2))]))
    assert numbers(items) == [2, 2]
    busy = caller.submit([png(n) for n in range(6)], settings={"hold_while": str(gate)}, batch_size=1)
    first = caller.submit([("image_0.png", png(10))])
    second = caller.submit([("image_0.png", png(20))])
    gate.unlink()
    assert [numbers(caller.drain(uuid)[0]) for uuid in (first, second)] == [[20], [20]]
    caller.drain(busy)


def test_too_many_files(caller: Caller) -> None:
    """A form of 1001 files is refused with the recorded words; one of 1000 is not refused for that."""
    reply = caller.upload([b"x"] * 1001)
    assert (reply.status_code, reply.json()) == (
        400,
        {"detail": "Too many files. Maximum number of files is 1000."},
    )
    assert caller.upload([b"x"] * 1000).status_code == 500, "refused because they are no pictures"


@pytest.mark.parametrize("data", [b"", b"this is text", png(1)[:40]], ids=["empty", "text", "header only"])
def test_one_bad_file_refuses_the_upload(caller: Caller, data: bytes) -> None:
    """A file that is no picture refuses the whole upload with 500, without being named."""
    reply = caller.upload([png(1), ("bad.jpg", data), png(2)])
    assert reply.status_code == 500
    assert list(reply.json()["detail"]) == ["title", "message"]
    assert "bad.jpg" not in reply.text


def test_names(caller: Caller) -> None:
    """A name with a slash is 500, one without a suffix, empty or not ASCII is fine, a GIF a bare text."""
    assert caller.upload([("sub/dir/x.png", png(1))]).status_code == 500
    for name in ("noext", "a b é.png", '東京 "a".png', "new\nline.png"):
        assert numbers(caller.drain(caller.submit([(name, png(3))]))[0]) == [3]
    reply = caller.upload([("x.gif", png(1))])
    assert reply.status_code == 400
    assert reply.json().startswith("File has unsupported format.")


def test_long_text_part(caller: Caller) -> None:
    """A text part of more than a mebibyte is refused with the recorded words."""
    files = [("files", ("a.png", png(1)))]
    reply = caller.post("inference_batch_async", files=files, data={"state": " " * (1 << 20) + "{}"})
    assert (reply.status_code, reply.json()) == (400, {"detail": "Part exceeded maximum size of 1024KB."})


def test_the_extension_is_off(caller: Caller) -> None:
    """No list of jobs, no item errors, no same job for the same key, no floats."""
    assert caller.post("list_inference_requests", json={"state": {}}).status_code == 404
    headers = {"Idempotency-Key": "one"}
    assert caller.submit([png(1)], headers=headers) != caller.submit([png(1)], headers=headers)
    assert caller.upload([png(1), b""], item_errors=True).status_code == 500
    items, _ = caller.drain(caller.submit([png(1)]))
    assert "box" not in items[0]["annotation"]["objects"][0]


def test_plain_errors_are_those_of_development_mode() -> None:
    """With --plain-errors a fault is the plain text of a server in development mode; refusals stay JSON."""
    with Server("pixels", "--stock", "--plain-errors") as server, Caller(server.url) as caller:
        reply = caller.post("pop_inference_results", json={"state": {"inference_request_uuid": "x"}})
        assert (reply.status_code, reply.text) == (500, "Internal Server Error")
        assert reply.headers["content-type"] == "text/plain; charset=utf-8"
        assert caller.post("pop_inference_results", json={"state": {}}).status_code == 400
