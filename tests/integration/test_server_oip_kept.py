"""What stays on the server: models that callers load, tensors that sessions keep, and their end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensor_models
from oip_server_kit import (
    Client,
    Grpc,
    Held,
    Http,
    Refused,
    arrays,
    ask,
    give,
    kept,
    oip_server,
    pair,
    refused,
    slow,
)
from server_kit import Server, until

from predsession.server.models.pixels import box_number, number_picture
from predsession.wire.oip.messages import InferReply, InferRequest, Tensor, Wanted

S = "predsession_session"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests of this file, with little room."""
    limits = [
        "--limit-tensors",
        "64K",
        "--limit-leases",
        "4",
        "--limit-registered",
        "3",
        "--limit-networks",
        "2K",
    ]
    with oip_server(
        tmp_path_factory.mktemp("oip"),
        *limits,
        "--limit-sweep",
        "0.05",
        models=["Mixed", "Slow", "Told", "Count"],
    ) as running:
        yield running


@pytest.fixture(params=["grpc", "http"])
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[Client]:
    """A client of either kind; afterwards no session is left."""
    made: Client = Grpc(server.oip[0]) if request.param == "grpc" else Http(server.url)
    yield made
    http = Http(server.url)
    for session in http.sessions():
        made.end(session)
    assert http.sessions() == {}
    http.close()
    made.close()


@pytest.fixture
def http(server: Server) -> Iterator[Http]:
    """A client that sees the sessions."""
    made = Http(server.url)
    yield made
    made.close()


def keep(name: str, key: str, *, send: bool = True) -> Wanted:
    """Return an output that is to be kept."""
    return Wanted(name, {"predsession_keep": key, **({} if send else {"predsession_send": False})})


# -- tensors ---------------------------------------------------------------------------------------


def test_a_fixed_input(client: Client, http: Http) -> None:
    """An input that is kept is used by later calls without its bytes; another takes its place."""
    b = pair()[1]
    first = give("a", np.array([1, 2], np.float32), predsession_keep="fixed")
    assert arrays(client.infer(ask("net", first, b, **{S: "s"})))["sum"].tolist() == [4, 6]
    again = ask("net", kept("a", "FP32", [2], "fixed"), b, **{S: "s"})
    assert arrays(client.infer(again))["sum"].tolist() == [4, 6]
    assert (http.sessions()["s"]["tensors"], http.sessions()["s"]["bytes"]) == (1, 8)
    second = give("a", np.array([10, 20], np.float32), predsession_keep="fixed")
    client.infer(ask("net", second, b, **{S: "s"}))
    assert arrays(client.infer(again))["sum"].tolist() == [13, 24]
    assert http.sessions()["s"]["tensors"] == 1


def test_outputs_that_stay(client: Client, http: Http) -> None:
    """An output that is not sent has its shape and no bytes; one that is kept is a later call's input."""
    wanted = [Wanted("sum", {"predsession_send": False}), keep("product", "p", send=False)]
    reply = client.infer(ask("net", *pair(), outputs=wanted, **{S: "s"}))
    assert arrays(reply) == {"sum": None, "product": None}
    assert [(one.shape, dict(one.parameters)) for one in reply.outputs] == [
        ((2,), {"predsession_absent": True})
    ] * 2
    chained = ask(
        "net", kept("a", "FP32", [2], "p"), kept("b", "FP32", [2], "p"), outputs=["sum"], **{S: "s"}
    )
    assert arrays(client.infer(chained))["sum"].tolist() == [6, 16]
    both = client.infer(ask("net", *pair(), outputs=[keep("sum", "s")], **{S: "s"}))
    assert arrays(both)["sum"].tolist() == [4, 6]
    assert http.sessions()["s"]["tensors"] == 2


def test_models_of_all_kinds_keep(client: Client) -> None:
    """A model of pictures and one of a user's keep what they gave, of every datatype, as it was then."""
    picture = number_picture(77)
    image = give("image", picture, predsession_keep="image")
    client.infer(ask("pixels", image, outputs=[keep("boxes", "boxes", send=False)], **{S: "s"}))
    again = client.infer(ask("pixels", kept("image", "UINT8", picture.shape, "image"), **{S: "s"}))
    assert box_number(arrays(again)["boxes"][0]) == 77

    def slow(number: Tensor, *outputs: Wanted) -> InferRequest:
        return ask("Slow", number, give("seconds", np.array(0, np.float32)), outputs=outputs, **{S: "s"})

    client.infer(slow(give("number", np.array(5)), keep("number", "n", send=False)))
    client.infer(slow(give("number", np.array(6))))
    flags = give("flags", np.array([[True, False]]), "BOOL")
    big = give("big", np.array(1, np.uint64))
    mixed = {"half": "FP16", "brain": "BF16", "nibbles": "INT4", "words": "BYTES"}
    inputs = [Tensor(name, kind, (0,), b"") for name, kind in mixed.items()]
    wanted = [keep(name, name, send=False) for name in mixed]
    client.infer(ask("Mixed", *inputs, flags, big, outputs=wanted, **{S: "s"}))
    words = give("words", np.array([b"abc", b""], object), "BYTES", predsession_keep="words")
    client.infer(ask("Mixed", *inputs[:3], words, flags, big, **{S: "s"}))
    told = ask(
        "Mixed", *inputs[:3], kept("words", "BYTES", [2], "words"), flags, big, outputs=["words"], **{S: "s"}
    )
    assert arrays(client.infer(told))["words"].tolist() == [b"abc", b""]
    wrong = ask("Mixed", *inputs[:3], kept("words", "BYTES", [1], "n"), flags, big, **{S: "s"})
    assert "kept as 'n' is INT64 [1]" in refused(client.infer, wrong).text


def test_keys_that_are_not_there(client: Client) -> None:
    """A key that is unknown, forgotten or another session's is NOT_FOUND, in words a client can tell."""
    b = pair()[1]
    request = ask("net", kept("a", "FP32", [2], "k"), b, **{S: "s"})
    words = "no tensor is kept as 'k' in session 's'"
    assert (refused(client.infer, request).status, refused(client.infer, request).text) == (
        "NOT_FOUND",
        words,
    )
    client.infer(ask("net", give("a", np.ones(2, np.float32), predsession_keep="k"), b, **{S: "other"}))
    assert refused(client.infer, request).status == "NOT_FOUND"
    client.infer(ask("net", give("a", np.ones(2, np.float32), predsession_keep="k"), b, **{S: "s"}))
    client.infer(request)
    assert client.forget("s", "k", "nope") == {"tensors": 1, "bytes": 8}
    assert refused(client.infer, request).text == words
    for bad in ({"predsession_kept": ""}, {"predsession_kept": 5}, {"predsession_kept": "k" * 2000}):
        error = refused(client.infer, ask("net", Tensor("a", "FP32", (2,), None, bad), b, **{S: "s"}))
        assert "must be a text of 1 to 1024 characters" in error.text
    assert refused(client.infer, ask("net", *pair(), **{S: 5})).text == f"{S} must be a text"
    nobody = ask("net", kept("a", "FP32", [2], "k"), b)
    assert "needs the request's parameter" in refused(client.infer, nobody).text


def test_kept_tensors_that_do_not_fit(client: Client) -> None:
    """What is kept is compared with what is said of it, and that with what the model wants."""
    b = pair()[1]
    client.infer(ask("net", give("a", np.ones(2, np.float32), predsession_keep="k"), b, **{S: "s"}))
    error = refused(client.infer, ask("net", kept("a", "FP32", [3], "k"), b, **{S: "s"}))
    assert error.text == "input a is FP32 [3]; kept as 'k' is FP32 [2]"
    error = refused(client.infer, ask("net", kept("a", "FP64", [2], "k"), b, **{S: "s"}))
    assert error.text == "input a is FP64 [2]; the model wants FP32 [-1]"


def test_room_for_tensors(client: Client, http: Http) -> None:
    """More than there is room for is refused and changes nothing; whatever ends a tensor gives room back."""
    big = np.zeros(10_000, np.float32)  # 40,000 bytes of 65,536
    small = np.zeros(1, np.float32)
    a, b = give("a", big, predsession_keep="a"), give("b", big)
    client.infer(ask("net", a, b, **{S: "s"}))
    client.infer(ask("net", a, b, **{S: "s"}))
    error = refused(client.infer, ask("net", a, b, outputs=[keep("sum", "more")], **{S: "s"}))
    assert (error.status, "--limit-tensors" in error.text) == ("RESOURCE_EXHAUSTED", True)
    assert refused(client.infer, ask("net", a, b, **{S: "other"})).status == "RESOURCE_EXHAUSTED"
    assert (http.sessions()["s"]["tensors"], http.sessions()["other"]["tensors"]) == (1, 0)
    client.end("s")
    client.infer(ask("net", a, b, **{S: "other"}))
    client.forget("other", "a")
    pairs = [(give("a", small, predsession_keep=f"k{number}"), give("b", small)) for number in range(80)]
    kinds = {getattr(refused_or(client, ask("net", *each, **{S: "other"})), "status", "OK") for each in pairs}
    assert kinds == {"OK", "RESOURCE_EXHAUSTED"}
    assert http.sessions()["other"]["tensors"] == 64


def refused_or(client: Client, request: InferRequest) -> Any:
    """Return the answer, or the refusal."""
    try:
        return client.infer(request)
    except Exception as error:
        return error


# -- sessions --------------------------------------------------------------------------------------


def test_leases(client: Client, http: Http) -> None:
    """A session lives while it is renewed or used, and goes with tensors and models once it is not."""
    assert client.renew("s")["lease_s"] == 300
    assert client.renew("s", 2.0)["lease_s"] == pytest.approx(2.0)
    client.load("mine", network=tensor_models.arithmetic(), session="s")
    client.infer(ask("mine", give("a", np.ones(2, np.float32), predsession_keep="k"), pair()[1], **{S: "s"}))
    told = client.renew("s")
    assert (told["tensors"], told["bytes"], told["models"]) == (1, 8, ["mine"])
    for _ in range(4):
        time.sleep(0.55)
        client.infer(ask("mine", *pair(), **{S: "s"}))
    until(lambda: not http.sessions(), "the lease's end")
    until(lambda: "mine" not in client.index(), "the model's end")
    assert (
        refused(client.infer, ask("net", kept("a", "FP32", [2], "k"), pair()[1], **{S: "s"})).status
        == "NOT_FOUND"
    )


def test_a_long_call_outlives_the_lease(server: Server, client: Client, http: Http) -> None:
    """A session whose call is under way is not over, however short its lease."""
    with Held(server, client, keep="n", **{S: "s"}) as call:
        client.renew("s", 0.05)
        time.sleep(0.3)  # in which the server looks for what is over
        assert "s" in http.sessions()
        assert isinstance(call.leave(), InferReply)
    until(lambda: not http.sessions(), "the lease's end")


@pytest.mark.parametrize("lease", [-1.0, 1e9])
def test_leases_that_are_none(client: Client, lease: float) -> None:
    """A lease that is no time is refused."""
    assert refused(client.renew, "s", lease).status == "INVALID_ARGUMENT"


def test_odd_sessions(http: Http) -> None:
    """Values that are none are refused, wherever a session is named."""
    for path, options in (
        ("/predsession/sessions/s", {"json": {"lease_s": "x"}}),
        ("/predsession/sessions/s", {"json": {"lease_s": True}}),
        ("/predsession/sessions/s", {"data": b'{"lease_s": NaN}'}),
        ("/predsession/sessions/s", {"data": b"[]"}),
        (f"/predsession/sessions/{'s' * 2000}", {"json": {}}),
    ):
        assert refused(http.send, "PUT", path, **options).status == "INVALID_ARGUMENT"
    bad = {"json": {"keys": [1]}}
    assert refused(http.send, "POST", "/predsession/sessions/s/forget", **bad).status == "INVALID_ARGUMENT"


def test_the_end_of_a_session(server: Server, client: Client, http: Http) -> None:
    """Its end frees what it had, says so, may be said twice, and beats a call that would keep something."""
    client.load("mine", network=tensor_models.arithmetic(), session="s")
    client.infer(ask("net", give("a", np.ones(2, np.float32), predsession_keep="k"), pair()[1], **{S: "s"}))
    with Held(server, client, keep="n", **{S: "s"}) as running:
        told = client.end("s")
        assert (told["tensors"], told["bytes"], told["models"]) == (1, 8, ["mine"])
        answer = running.leave()
    assert isinstance(answer, Refused)
    assert answer.text == "session 's' was ended while the call ran"
    assert client.end("s")["models"] == []
    assert (http.sessions(), "mine" in client.index()) == ({}, False)


def test_too_many_sessions(client: Client) -> None:
    """Sessions beyond the limit are refused until another ends."""
    for number in range(4):
        client.renew(f"s{number}")
    error = refused(client.infer, ask("net", *pair(), **{S: "s4"}))
    assert (error.status, "--limit-leases" in error.text) == ("RESOURCE_EXHAUSTED", True)
    client.end("s2")
    client.infer(ask("net", *pair(), **{S: "s4"}))


# -- models ----------------------------------------------------------------------------------------


def test_repository(client: Client) -> None:
    """A network of the repository is not there until it is loaded, and not there after it is unloaded."""
    assert client.index() | {"half": "", "arith": ""} == client.index() | {"half": "", "arith": ""}
    assert client.index()["half"] == "UNAVAILABLE"
    assert "half" not in client.index(ready=True)
    client.load("half")
    client.load("half")
    assert client.index(ready=True)["half"] == "READY"
    scales = json.loads(client.config("half")["parameters"]["predsession_quantization"]["string_value"])
    assert scales == {"x": {"scale": [0.25], "zero_point": [3]}}
    x = give("x", np.ones((2, 3), np.float16))
    assert (arrays(client.infer(ask("half", x)))["y"] == 1).all()
    assert refused(client.load, "half", core_id="0").status == "ALREADY_EXISTS"
    client.unload("half")
    assert client.index()["half"] == "UNAVAILABLE"
    assert refused(client.infer, ask("half", x)).text == "model half is UNAVAILABLE: unloaded"
    assert refused(client.unload, "half").status == "NOT_FOUND"


def test_what_cannot_be_loaded(client: Client) -> None:
    """A file that is no network, a model of the server's own, a path: refused, and nothing has changed."""
    before = client.index()
    for name in ("broken", "four"):
        error = refused(client.load, name)
        assert (error.status, "failed to load" in error.text) == ("INVALID_ARGUMENT", True)
    for name in ("..%2f..", "repository", "..", "x" * 300):
        assert refused(client.load, name).status == "NOT_FOUND"
    assert "it came with the server" in refused(client.unload, "pixels").text
    assert client.index() == before


def test_models_that_are_sent(client: Client) -> None:
    """A network that is sent is a model like any other, its scales with it, until it is unloaded."""
    scales = {"a": {"scale": [0.5], "zero_point": [0]}}
    config = {
        "name": "sent",
        "parameters": {"predsession_quantization": {"string_value": json.dumps(scales)}},
    }
    client.load("sent", network=tensor_models.arithmetic(), config=json.dumps(config))
    assert arrays(client.infer(ask("sent", *pair())))["sum"].tolist() == [4, 6]
    assert (
        json.loads(client.config("sent")["parameters"]["predsession_quantization"]["string_value"]) == scales
    )
    error = refused(client.load, "sent", network=tensor_models.arithmetic())
    assert (error.status, error.text) == (
        "ALREADY_EXISTS",
        "failed to load 'sent': there is a model of that name",
    )
    client.unload("sent")
    assert "sent" not in client.index()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"network": b"rubbish"}, "no ONNX file"),
        ({"network": b""}, "no ONNX file"),
        ({"network": tensor_models.elsewhere()}, "a model that is sent must be whole"),
        ({"network": tensor_models.identity("INT4")}, "failed to load"),
        ({"nonsense": "x"}, "a load has no parameter 'predsession_nonsense'"),
        ({"config": "{"}, "config is no JSON"),
        ({"config": "[]"}, "config must be a JSON object"),
        ({"config": '{"name": "other"}'}, "config is of model 'other'; this is 'sent'"),
        ({"config": '{"backend": "python"}'}, "this server runs onnxruntime"),
        ({"config": '{"max_batch_size": 8}'}, "max_batch_size must be 0"),
        (
            {"config": '{"parameters": {"predsession_quantization": {"string_value": "{\\"z\\": {}}"}}}'},
            "names 'z'",
        ),
        ({"core_id": "all"}, "wanted numbers of processors"),
        ({"core_id": "0,4095"}, "there is no processor 4095 for this server; it has"),
        ({"environment": "x"}, "predsession_environment is no JSON"),
        ({"environment": '{"a": 1}'}, "must be a JSON object of texts"),
        ({"environment": '{"ep.context_file_path": "/tmp/x"}'}, "cannot be set over the network"),
    ],
)
def test_orders_that_are_none(client: Client, said: dict[str, Any], words: str) -> None:
    """A load that says what cannot be is refused in words, and leaves no model."""
    error = refused(client.load, "sent", **{"network": tensor_models.arithmetic(), **said})
    assert error.status == "INVALID_ARGUMENT"
    assert words in error.text
    assert "sent" not in client.index()


def test_files_that_are_none(http: Http) -> None:
    """Only one file, only ONNX, only base64."""
    for said in (
        {"file:1/model.py": "eA=="},
        {"file:1/model.onnx": "*"},
        {"file:a.onnx": "", "file:b.onnx": ""},
    ):
        error = refused(http.send, "POST", "/repository/models/sent/load", json={"parameters": said})
        assert error.status == "INVALID_ARGUMENT"
    for body in (b"[]", b"{", b'{"parameters": {"file:1/model.onnx": []}}'):
        error = refused(http.send, "POST", "/repository/models/sent/load", data=body)
        assert error.status in {"INVALID_ARGUMENT", "NOT_FOUND"}


def test_room_for_models(client: Client) -> None:
    """Models beyond their number, or their bytes, are refused until another goes."""
    network = tensor_models.arithmetic()
    assert refused(client.load, "x", network=network + bytes(3000)).status == "RESOURCE_EXHAUSTED"
    for name in ("a", "b", "c"):
        client.load(name, network=network, session="s")
    error = refused(client.load, "d", network=network, session="s")
    assert (error.status, "--limit-registered" in error.text) == ("RESOURCE_EXHAUSTED", True)
    assert refused(client.load, "half").status == "RESOURCE_EXHAUSTED"
    assert sorted(client.end("s")["models"]) == ["a", "b", "c"]
    assert not {"a", "b", "c", "d", "x"} & set(client.index())


def test_models_of_several_sessions(client: Client) -> None:
    """A model stays until the last who had it loaded lets it go; one loaded for good outlives them."""
    client.load("half", session="one")
    client.load("half", session="two")
    assert client.end("one")["models"] == []
    client.unload("half", "one")
    assert client.index()["half"] == "READY"
    client.unload("half", "two")
    assert client.index()["half"] == "UNAVAILABLE"
    client.load("half", session="one")
    client.load("half")
    client.end("one")
    assert client.index()["half"] == "READY"
    client.unload("half")


def test_loading_at_once(server: Server, client: Client) -> None:
    """Several who load one model at once share it; of several who send one under a name one comes first."""
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: client.load("half", session=f"s{number % 3}"), range(6)))
        sent = list(pool.map(lambda _: refused_load(client), range(6)))
    assert sorted(sent) == ["ALREADY_EXISTS"] * 5 + ["OK"]
    client.unload("sent")


def refused_load(client: Client) -> str:
    """Send a model; return how that was answered."""
    try:
        client.load("sent", network=tensor_models.arithmetic())
    except Exception as error:
        return str(getattr(error, "status", error))
    return "OK"


def test_unload_while_it_runs(server: Server, client: Client) -> None:
    """A call that runs when its model is unloaded gets its answer; one that comes later does not."""
    with ThreadPoolExecutor(1) as pool, Held(server, client) as running:
        unloading = pool.submit(client.unload, "Slow")
        until(lambda: client.index()["Slow"] == "UNAVAILABLE", "the model's going")
        assert refused(client.infer, slow(9)).status == "NOT_FOUND"
        answer = running.leave()
        assert isinstance(answer, InferReply)
        assert arrays(answer)["number"].tolist() == [running.number]
        unloading.result()
    client.load("Slow")


def test_what_a_model_is_told(client: Client) -> None:
    """A user's model is told its environment before it loads, and runs on the processors it was given."""
    cores = sorted(os.sched_getaffinity(0))
    name = give("name", np.array([b"WORD"], object), "BYTES")
    assert arrays(client.infer(ask("Told", name)))["cores"].tolist() == cores
    client.unload("Told")
    client.load("Told", environment='{"WORD": "of old"}', core_id=str(cores[-1]))
    told = arrays(client.infer(ask("Told", name)))
    assert (told["value"].tolist(), told["cores"].tolist()) == ([b"of old"], [cores[-1]])
    assert told["thread"].tolist() == [b"tensor-Told"]
    client.unload("Told")
    client.load("Told")
    assert arrays(client.infer(ask("Told", name)))["value"].tolist() == [b""]


def test_what_a_network_is_told(server: Server, client: Client) -> None:
    """A network's environment is onnxruntime's settings; its threads are on the processors it was given."""
    core = min(os.sched_getaffinity(0))
    options = {"environment": '{"session.set_denormal_as_zero": "1"}', "core_id": str(core)}
    client.load("sent", network=tensor_models.arithmetic(), **options)
    tasks = Path(f"/proc/{server.process.pid}/task")
    pinned = False
    for path in tasks.iterdir():
        with suppress(ProcessLookupError):  # ended since they were listed
            pinned |= os.sched_getaffinity(int(path.name)) == {core}
    assert pinned or len(os.sched_getaffinity(0)) == 1
    client.unload("sent")
    bad = {"environment": '{"session.intra_op.allow_spinning": "1", "": "x"}'}
    assert (
        refused(client.load, "sent", network=tensor_models.arithmetic(), **bad).status == "INVALID_ARGUMENT"
    )
