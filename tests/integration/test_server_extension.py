"""The extension ``predsession/1``: each feature does what docs/protocol.md says, beside stock clients."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import held_numbers
import pytest
from server_kit import Caller, Server, numbers, png, until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with the extension and a short lease."""
    with Server(
        "--model",
        f"pixels={held_numbers.__file__}:HeldBatches",
        "--limit-lease",
        "1.5",
        "--limit-sweep",
        "0.1",
        "--limit-cleared",
        "1.2",
    ) as running:
        yield running


@pytest.fixture
def caller(server: Server) -> Iterator[Caller]:
    """Calls it."""
    with Caller(server.url) as one:
        yield one


def test_features_are_announced(caller: Caller) -> None:
    """The session info lists exactly the features, the lease and the models."""
    extension = caller.ask("get_session_info")["predsession"]
    assert re.fullmatch("[0-9a-f]{32}", extension["digest"])
    assert extension == {
        "version": 1,
        "features": ["ack", "after", "wait", "idempotency", "item_errors", "lease", "list", "float_boxes"],
        "lease_s": 1.5,
        "models": ["pixels"],
        "digest": extension["digest"],
    }


def test_ack_gives_the_same_answer_again(caller: Caller) -> None:
    """Results after ``ack`` come numbered, again and again, and are gone once a higher number was acked."""
    uuid = caller.submit([png(n) for n in range(10)])
    until(lambda: caller.progress(uuid)["finished"], "the end")
    first = caller.pop(uuid, ack=0, limit=4)
    assert [item["number"] for item in first["pending_results"]] == [1, 2, 3, 4]
    assert caller.pop(uuid, ack=0, limit=4)["pending_results"] == first["pending_results"]
    rest = caller.pop(uuid, ack=4)["pending_results"]
    assert numbers(rest) == [4, 5, 6, 7, 8, 9]
    assert rest[0]["number"] == 5
    assert numbers(caller.pop(uuid, ack=2)["pending_results"]) == [4, 5, 6, 7, 8, 9], (
        "an old ack brings nothing back"
    )
    assert caller.pop(uuid, ack=10)["pending_results"] == []
    assert caller.progress(uuid)["pending_results"] == 0


def test_after_begins_the_answer_later_than_ack_forgets(caller: Caller) -> None:
    """What is acknowledged is gone, what has arrived and is not stays, for whoever asks from there."""
    uuid = caller.submit([png(n) for n in range(6)])
    until(lambda: caller.progress(uuid)["finished"], "the end")
    assert numbers(caller.pop(uuid, ack=0, after=4)["pending_results"]) == [4, 5]
    assert numbers(caller.pop(uuid, ack=2, after=5)["pending_results"]) == [5]
    assert numbers(caller.pop(uuid, ack=0)["pending_results"]) == [2, 3, 4, 5]
    assert numbers(caller.pop(uuid, ack=0, after=1)["pending_results"]) == [2, 3, 4, 5], (
        "what is gone is gone"
    )
    reply = caller.post(
        "pop_inference_results", json={"state": {"inference_request_uuid": uuid, "after": -1, "ack": 0}}
    )
    assert (reply.status_code, reply.json()["message"].split()[0]) == (400, "after")


def test_ack_of_what_is_not_there(caller: Caller, gate: Path) -> None:
    """An ack beyond the last result forgets nothing that comes later; a bad one is refused by name."""
    held = {"hold_while": str(gate), "hold_from": 1}
    uuid = caller.submit([png(n) for n in range(4)], settings=held, batch_size=1)
    caller.pop(uuid, ack=0)
    assert caller.pop(uuid, ack=99)["pending_results"] == []
    gate.unlink()
    until(lambda: caller.progress(uuid)["finished"], "the end")
    assert numbers(caller.pop(uuid, ack=0)["pending_results"])[-1] == 3
    for bad in (-1, "1", 1.5, True):
        state = {"inference_request_uuid": uuid, "ack": bad}
        reply = caller.post("pop_inference_results", json={"state": state})
        assert reply.status_code == 400
        assert reply.json()["message"].startswith("ack is")


def test_wait_answers_when_there_is_news(caller: Caller, gate: Path) -> None:
    """A pop that waits answers with the first result, and after the end at once."""
    held = {"hold_while": str(gate), "hold_from": 2}
    uuid = caller.submit([png(1), png(2)], settings=held, batch_size=1)
    answer = caller.pop(uuid, ack=0, wait=30)
    assert numbers(answer["pending_results"]) == [1]
    gate.unlink()
    assert numbers(caller.pop(uuid, ack=1, wait=30)["pending_results"]) == [2]
    assert caller.pop(uuid, ack=2, wait=30)["finished"]


def test_wait_without_ack_holds_a_stock_pop(caller: Caller) -> None:
    """``wait`` works for a destructive pop too."""
    uuid = caller.submit([png(1)], settings={"delay": 0.2})
    assert numbers(caller.pop(uuid, wait=30)["pending_results"]) == [1]


def test_wait_ends_when_the_job_is_stopped(server: Server, caller: Caller) -> None:
    """Somebody else's stop and clear wake the one who waits."""
    uuid = caller.submit([png(n) for n in range(50)], settings={"delay": 0.05}, batch_size=1)
    until(lambda: caller.progress(uuid)["is_inferring"], "the start")

    def stop() -> None:
        with Caller(server.url) as other:
            other.stop(uuid)

    done = caller.pop(uuid, ack=0)["progress"]["current"]
    thread = threading.Timer(0.1, stop)
    thread.start()
    last = until(lambda: (found := caller.pop(uuid, ack=done + 49, wait=30))["finished"] and found, "the end")
    thread.join()
    assert last["stage"] == "Cancelled"


def test_idempotency(caller: Caller) -> None:
    """The same key is the same job, also when both submits come at once; another key is another job."""
    key = {"Idempotency-Key": "k1"}
    first = caller.submit([png(1)], headers=key)
    assert caller.submit([png(1)], headers=key) == first
    assert caller.submit([png(1)], headers={"Idempotency-Key": "k2"}) != first

    def submit(_: int) -> str:
        with Caller(caller.url) as one:
            return one.submit([png(n) for n in range(30)], headers={"Idempotency-Key": "k3"})

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(submit, range(6)))) == 1


def test_item_errors_take_the_place_of_bad_items(caller: Caller) -> None:
    """A bad image, and one that the model fails on, are errors in their place; the job finishes."""
    files = [png(0), b"", png(2), b"this is text", png(4)]
    uuid = caller.submit(files, item_errors=True, settings={"fail_at": 4})
    items, last = caller.read(uuid)
    assert numbers(items) == [0, "BadImageError", 2, "BadImageError", "ValueError"]
    assert items[1] == {"number": 2, "error": {"type": "BadImageError", "message": "empty file"}}
    assert items[4]["error"]["message"] == "model pixels: told to fail at 4"
    assert (last["stage"], last["exception"]) == ("Finished", None)


def test_without_item_errors_a_bad_image_refuses_the_upload(caller: Caller) -> None:
    """For a stock client the upload is refused, and here the file is named; a failing model ends the job."""
    reply = caller.upload([png(0), ("bad.jpg", b"this is text")])
    assert reply.status_code == 500
    assert "bad.jpg" in reply.json()["detail"]["message"]
    items, last = caller.drain(caller.submit([png(0), png(1), png(2)], settings={"fail_at": 1}))
    assert numbers(items) == [0]
    assert last["exception"]["message"] == "model pixels: told to fail at 1"


def test_list_finds_the_jobs_of_a_session(caller: Caller) -> None:
    """``list_inference_requests`` gives the live jobs of a session, in order, or all."""
    one = caller.submit([png(1), png(2)], session="s1", first_index=0)
    two = caller.submit([png(3)], session="s1", first_index=2, indexes=[5])
    other = caller.submit([png(4)], session="s2", first_index=0)
    for uuid in (one, two, other):
        until(lambda uuid=uuid: caller.progress(uuid)["finished"], "the end")
    found = caller.ask("list_inference_requests", session="s1")["requests"]
    assert [(job["uuid"], job["first_index"], job["indexes"]) for job in found] == [
        (one, 0, None),
        (two, 2, [5]),
    ]
    reply = caller.upload([png(1)], indexes=[1.5])
    assert (reply.status_code, reply.json()["message"]) == (400, "indexes must be a list of whole numbers")
    assert found[0]["progress"] == {"current": 2, "total": 2}
    assert (found[0]["stage"], found[0]["session"], found[0]["model"]) == ("Finished", "s1", "pixels")
    assert {one, two, other} <= {job["uuid"] for job in caller.ask("list_inference_requests")["requests"]}
    caller.clear(one)
    assert [job["uuid"] for job in caller.ask("list_inference_requests", session="s1")["requests"]] == [two]


def test_lease_ends_a_job_that_nobody_names(caller: Caller) -> None:
    """A job of the extension is gone after the lease; one of a stock client is not, however long it is."""
    ours = caller.submit([png(n) for n in range(400)], settings={"delay": 0.02}, session="gone")
    theirs = caller.submit([png(1)])
    until(
        lambda: ours not in {job["uuid"] for job in caller.ask("list_inference_requests")["requests"]},
        "the lease",
    )
    state = {"state": {"inference_request_uuid": ours}}
    assert caller.post("get_inference_progress", json=state).status_code == 500
    assert caller.progress(theirs)["finished"]
    assert caller.drain(caller.submit([png(5)]))[1]["stage"] == "Finished", "the model is free again"


def test_lease_is_kept_by_any_call_of_the_session(caller: Caller) -> None:
    """Calls that name one job of a session, or the session, keep all its jobs; after clear it goes soon."""
    kept = caller.submit([png(1)], session="alive")
    named = caller.submit([png(2)], session="alive")
    ticks = 0

    def ticked() -> bool:
        nonlocal ticks
        ticks += 1
        caller.progress(named)
        caller.ask("list_inference_requests", session="alive")
        return ticks >= 150

    until(ticked, "three seconds of calls, twice the lease")
    assert caller.progress(kept)["finished"]
    caller.clear(kept)
    state = {"state": {"inference_request_uuid": kept}}
    assert caller.post("get_inference_progress", json=state).status_code == 200, "still there right after"
    until(lambda: caller.post("get_inference_progress", json=state).status_code == 500, "its removal")


def test_float_boxes(caller: Caller) -> None:
    """An object carries its box as floats beside its stock geometry."""
    item = caller.upload([png(33)], endpoint="inference_image").json()
    figure = item["annotation"]["objects"][0]
    assert figure["box"] == [1.0, 1.0, 2.0, 2.0]
    assert figure["points"]["exterior"] == [[1, 1], [1, 1]]


def test_stock_client_and_ours_do_not_disturb_each_other(server: Server) -> None:
    """On one server, with the same file names and at once, each gets its own results."""

    def stock(turn: int) -> list[int | str]:
        with Caller(server.url) as one:
            files = [(f"image_{n}.png", png(turn * 100 + n)) for n in range(20)]
            return numbers(one.drain(one.submit(files, settings={"delay": 0.001}))[0])

    def ours(turn: int) -> list[int | str]:
        with Caller(server.url) as one:
            files = [(f"image_{n}.png", png(turn * 100 + n)) for n in range(20)]
            uuid = one.submit(files, settings={"delay": 0.001}, session=f"t{turn}", item_errors=True)
            return numbers(one.read(uuid, limit=7)[0])

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(kind, turn) for turn, kind in enumerate([stock, ours] * 4)]
        for turn, future in enumerate(futures):
            assert future.result() == [turn * 100 + n for n in range(20)]


def test_pop_that_is_held_renews_the_lease() -> None:
    """A job is not forgotten while a call waits for it, however short the lease."""
    with (
        Server("pixels", "--limit-lease", "1.5", "--limit-sweep", "0.1") as server,
        Caller(server.url) as caller,
    ):
        uuid = caller.submit([png(1)], settings={"delay": 2.5}, session="s")
        assert numbers(caller.pop(uuid, ack=0, wait=20)["pending_results"]) == [1]
