"""Streams of the Open Inference Protocol, who may come in, and how a server with open calls ends."""

from __future__ import annotations

import argparse
import asyncio
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensor_models
import trustme
from oip_server_kit import (
    MODELS,
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
)
from server_kit import Server, until

from predsession.server import command
from predsession.server.config import Door, Limits, ModelSpec, OipDoor
from predsession.server.doors import oip_door
from predsession.server.folders import CommandError
from predsession.server.models.card import ModelLoadError
from predsession.server.oip.calls import Calls
from predsession.testing import RunningServer
from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.messages import InferReply, InferRequest, Wanted
from predsession.wire.oip.protobuf import reply_from_message, request_to_message

TOKEN = "a token of the tests"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for the tests of streams."""
    with oip_server(tmp_path_factory.mktemp("oip"), models=["Count", "Slow", "Flood"]) as running:
        yield running


@pytest.fixture
def rpc(server: Server) -> Iterator[Grpc]:
    """A client."""
    with Grpc(server.oip[0]) as made:
        yield made


def count(n: int, fail_at: int = -1, *, number: str = "", **parameters: Any) -> InferRequest:
    """Ask the decoupled model to count."""
    return ask(
        "Count", give("n", np.array(n)), give("fail_at", np.array(fail_at)), number=number, **parameters
    )


class Feed:
    """Requests of a stream, sent when a test says so."""

    def __init__(self) -> None:
        self._queue: queue.Queue[pb.ModelInferRequest | None] = queue.Queue()

    def send(self, *requests: InferRequest) -> None:
        """Send requests."""
        for each in requests:
            self._queue.put(request_to_message(each))

    def end(self) -> None:
        """Send no more."""
        self._queue.put(None)

    def __iter__(self) -> Iterator[pb.ModelInferRequest]:
        return iter(self._queue.get, None)


def told(answers: Iterator[pb.ModelStreamInferResponse]) -> list[tuple[str, Any]]:
    """Return each answer as its id, and its number, its error, or None for an empty one."""
    read: list[tuple[str, Any]] = []
    for each in answers:
        reply = reply_from_message(each.infer_response)
        if each.error_message:
            read.append((reply.id, each.error_message))
        else:
            first = next(iter(arrays(reply).values()), None)
            read.append((reply.id, None if first is None else first.tolist()))
    return read


def send(rpc: Grpc, *requests: InferRequest) -> list[tuple[str, Any]]:
    """Send requests over a stream of their own, and return the answers."""
    return told(rpc.stream(map(request_to_message, requests)))


def test_one_answer_each(rpc: Grpc) -> None:
    """A model that answers once answers each request once, under its id, in order."""
    requests = [ask("net", *pair([number], [1]), number=str(number)) for number in range(100)]
    assert send(rpc, *requests) == [(str(number), [number + 1]) for number in range(100)]
    assert send(rpc) == []


def test_many_answers(rpc: Grpc) -> None:
    """A decoupled model answers as often as it likes; the empty last answer comes where it is asked for."""
    assert send(rpc, count(3, number="c")) == [("c", [0]), ("c", [1]), ("c", [2])]
    assert send(rpc, count(0, number="c")) == []
    (one, last) = rpc.stream(iter([request_to_message(count(1, triton_enable_empty_final_response=True))]))
    assert not one.infer_response.parameters["triton_final_response"].bool_param
    assert last.infer_response.parameters["triton_final_response"].bool_param
    assert not last.infer_response.outputs
    (only,) = rpc.stream(iter([request_to_message(ask("net", *pair()))]))
    assert only.infer_response.parameters["triton_final_response"].bool_param


def test_an_error_is_an_answer(rpc: Grpc) -> None:
    """A request that cannot be answered says so under its id, and the stream goes on."""
    said = send(
        rpc,
        ask("nope", number="1"),
        ask("net", number="2"),
        count(5, 2, number="3"),
        ask("net", *pair(), outputs=["sum"], number="4"),
    )
    by_id = {number: [answer for other, answer in said if other == number] for number in "1234"}
    assert "there is no model 'nope'" in by_id["1"][0]
    assert "input 'a' is missing" in by_id["2"][0]
    assert by_id["3"] == [[0], [1], "model Count: ValueError: told to fail at 2"]
    assert by_id["4"] == [[4, 6]]
    rubbish = pb.ModelInferRequest(model_name="net", id="5", raw_input_contents=[b"x"])
    assert "came with 1 raw contents" in told(rpc.stream(iter([rubbish])))[0][1]


def test_unary_on_a_decoupled_model(server: Server, rpc: Grpc) -> None:
    """A decoupled model answers no call that has one answer, and says what to use."""
    assert refused(rpc.infer, count(3)).status == "UNIMPLEMENTED"
    http = Http(server.url)
    error = refused(http.infer, count(3))
    assert (error.status, "needs ModelStreamInfer" in error.text) == ("UNIMPLEMENTED", True)
    http.close()


def test_answers_that_stay(rpc: Grpc) -> None:
    """Answers of a stream are kept like others: the last one is what is kept."""
    wanted = [Wanted("i", {"predsession_keep": "i", "predsession_send": False})]
    request = InferRequest("Count", count(4).inputs, tuple(wanted), parameters={"predsession_session": "s"})
    assert [number for number, _ in send(rpc, request)] == [""] * 4
    slow = ask(
        "Slow",
        give("number", np.array(0)),
        give("seconds", np.array(0, np.float32)),
        outputs=[Wanted("number", {"predsession_keep": "n"})],
        predsession_session="s",
    )
    rpc.infer(slow)
    assert rpc.renew("s")["tensors"] == 2
    chained = ask("Count", kept("n", "INT64", [1], "i"), predsession_session="s")
    assert "input 'fail_at' is missing" in send(rpc, chained)[0][1]
    assert rpc.end("s")["tensors"] == 2


def test_a_reader_that_goes(rpc: Grpc) -> None:
    """A stream that its reader leaves ends there: the model goes no further, and is free for others."""
    before = rpc.statistics("Count")[0].inference_count
    stream = rpc.stream(iter([request_to_message(count(10**9))]))
    for _ in range(3):
        next(stream)
    stream.cancel()
    assert send(rpc, count(2, number="x")) == [("x", [0]), ("x", [1])]
    until(lambda: settled(rpc), "the end of the counting")
    assert rpc.statistics("Count")[0].inference_count < before + 10**6


def settled(rpc: Grpc, model: str = "Count") -> bool:
    """Whether a model that answered does so no more."""
    before = rpc.statistics(model)[0].inference_count
    time.sleep(0.1)
    return bool(0 < rpc.statistics(model)[0].inference_count == before)


def test_a_reader_that_does_not_read(rpc: Grpc) -> None:
    """A stream that nobody reads stands still, and goes on when somebody does."""
    before = rpc.statistics("Flood")[0].inference_count
    stream = rpc.stream(iter([request_to_message(ask("Flood"))]))
    until(lambda: rpc.statistics("Flood")[0].inference_count > before, "the first answer")
    until(lambda: settled(rpc, "Flood"), "the stream's standing still")
    assert before < rpc.statistics("Flood")[0].inference_count < before + 100
    for _ in range(100):
        assert next(stream).infer_response.raw_output_contents
    stream.cancel()


# -- the end ---------------------------------------------------------------------------------------


def test_end_with_open_streams(tmp_path: Path) -> None:
    """A server that is told to end ends its streams, open and endless ones, and answers what runs."""
    with oip_server(tmp_path, models=["Count", "Slow"]) as running, Grpc(running.oip[0]) as rpc:
        endless = rpc.stream(iter([request_to_message(count(10**9))]))
        next(endless)
        feed = Feed()
        idle = rpc.stream(iter(feed))
        feed.send(ask("net", *pair()))
        next(idle)
        call = Held(running, rpc, 0.3)
        assert running.terminate() == 0
        for stream in (endless, idle):
            with pytest.raises(grpc.RpcError) as caught:
                for _ in stream:
                    pass
            assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        feed.end()
        answer = call.result()
        assert isinstance(answer, InferReply)
        assert arrays(answer)["number"].tolist() == [call.number]
        assert "Traceback" not in running.log


def test_end_with_a_model_that_hangs(tmp_path: Path) -> None:
    """A model that never returns does not keep the server from ending."""
    more = ["--limit-grace", "0.1"]
    with oip_server(tmp_path, *more, models=["Slow"]) as running, Grpc(running.oip[0]) as rpc:
        call = Held(running, rpc)
        assert running.terminate() == 0
        answer = call.result()
        assert isinstance(answer, Refused)
        assert answer.status in {"UNAVAILABLE", "CANCELLED"}


# -- who may come in -------------------------------------------------------------------------------


def test_tokens_and_tls(tmp_path: Path) -> None:
    """Where a token is wanted both doors want it, but for health; a certificate is for both, too."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "root.pem")
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    pem = str(tmp_path / "both.pem")
    words = [
        "--oip-grpc",
        "127.0.0.1:0",
        "--oip-grpc",
        f"unix:{tmp_path}/s",
        "--certfile",
        pem,
        "--keyfile",
        pem,
    ]
    root = authority.cert_pem.bytes()
    with Server("pixels", *words, "--token", TOKEN) as running:
        for metadata in ((), (("authorization", "Bearer wrong"),), (("authorization", f"Basic {TOKEN}"),)):
            with Grpc(running.oip[0], metadata, root=root) as rpc:
                assert rpc.message("ServerLive", pb.ServerLiveRequest()).live
                error = refused(rpc.server)
                assert (error.status, TOKEN in error.text) == ("UNAUTHENTICATED", False)
                with pytest.raises(grpc.RpcError) as caught:
                    list(rpc.stream(iter([request_to_message(ask("pixels"))])))
                assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        with Grpc(running.oip[0], (("authorization", f"Bearer {TOKEN}"),), root=root) as rpc:
            assert rpc.server()["name"] == "predsession"
        with Grpc(running.oip[1], (("x-api-key", TOKEN),)) as rpc:
            assert rpc.server()["name"] == "predsession"
        http = Http(running.url)
        http.session.trust_env = False  # a bundle in the environment would go before this one
        http.session.verify = str(tmp_path / "root.pem")
        assert http.send("GET", "/health/live").status_code == 200
        assert refused(http.server).status == "UNAUTHENTICATED"
        http.session.headers["Authorization"] = f"Bearer {TOKEN}"
        assert http.server()["name"] == "predsession"
        http.close()
        assert TOKEN not in running.log


def parsed(*words: str) -> argparse.Namespace:
    """Return the arguments of ``serve``."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(["pixels", "--port", "0", "--quiet", *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tensor-model", "x.onnx"], "mean nothing without --oip"),
        (["--oip-load"], "mean nothing without --oip"),
        (["--oip", "--stock"], "leave out --oip or --stock"),
        (["--oip-grpc", "0.0.0.0:0"], "is open to other machines"),
        (["--oip-grpc", "nonsense"], "--oip-grpc nonsense is no address"),
        (["--oip", "--repository", "/nowhere"], "there is no such folder"),
        (["--oip", "--tensor-model", "a=x:Y", "--tensor-model", "a=x:Z"], "two models are called a"),
    ],
)
def test_arguments_that_do_not_go_together(words: list[str], said: str) -> None:
    """What cannot be served is said before anything is started."""
    with pytest.raises(CommandError, match=said):
        command.serve_here(parsed(*words), ready=lambda *_: None)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("/nowhere.onnx", "/nowhere.onnx is no ONNX file"),
        (f"{MODELS}:identity", "bytes has no method infer"),
    ],
)
def test_models_that_cannot_be_served(target: str, said: str) -> None:
    """A model that cannot be loaded is one in words."""
    calls = Calls(OipDoor(models=(ModelSpec("a", target),)), Limits())
    with pytest.raises(ModelLoadError, match=said):
        asyncio.run(calls.start({}))


def test_two_models_of_one_name() -> None:
    """A tensor model that is called as one of pictures ends the server."""
    arguments = parsed("--oip", "--tensor-model", f"pixels={MODELS}:Slow")
    with pytest.raises(ModelLoadError, match="two models are called pixels"):
        command.serve_here(arguments, ready=lambda *_: None)


def test_who_may_send_models() -> None:
    """A server that others reach takes no models, unless it is told to."""
    here, everywhere = Door(), Door("0.0.0.0", token=TOKEN)
    for door, words, may in (
        (here, ["--oip"], True),
        (here, ["--oip-grpc", "unix:/x.sock"], True),
        (here, ["--oip-grpc", "0.0.0.0:0", "--insecure"], False),
        (everywhere, ["--oip"], False),
        (everywhere, ["--oip", "--oip-load"], True),
    ):
        config = oip_door(parsed(*words), door)
        assert config is not None
        assert config.upload == may, words
    distant = "0.0.0.0"
    with (
        Server("pixels", "--oip-grpc", f"{distant}:0", "--insecure") as running,
        Grpc(running.oip[0].replace(distant, "127.0.0.1")) as rpc,
    ):
        error = refused(rpc.load, "sent", network=tensor_models.arithmetic())
    assert (error.status, "--oip-load" in error.text) == ("PERMISSION_DENIED", True)


@pytest.mark.parametrize("process", [True, False])
def test_where_a_running_server_is(process: bool) -> None:
    """A server for users' tests says where it speaks the protocol; its thread leaves none behind."""
    before = threading.active_count()
    arguments = ["--oip-grpc", "127.0.0.1:0", "--tensor-model", f"{MODELS}:Slow"]
    with RunningServer("pixels", process=process, arguments=arguments) as running:
        (address,) = running.oip
        with Grpc(address) as rpc:
            assert rpc.index() == {"pixels": "READY", "Slow": "READY"}
    until(lambda: threading.active_count() <= before + 1, "the threads' end")
