"""`ModelStreamInfer` as Triton has it, and as MLServer has it: two wires under one name."""

from __future__ import annotations

from typing import Any

import grpc
import numpy as np
import pytest
from interop.oip.bare import Bare, Refused, arrays, tensor
from server_kit import until

from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.messages import InferRequest
from predsession.wire.oip.protobuf import reply_from_message

ONE = np.ones((1, 4), np.float32)


def add(number: str) -> InferRequest:
    """Add, in a stream."""
    return InferRequest("add", (tensor("a", ONE), tensor("b", ONE)), id=number)


def count(number: int, name: str = "", pause: float | None = None, **parameters: Any) -> InferRequest:
    """Ask for so many answers."""
    inputs = [tensor("n", np.array([number]))]
    if pause is not None:
        inputs.append(tensor("pause", np.array([pause], np.float32)))
    return InferRequest("counter", tuple(inputs), id=name, parameters=parameters)


def numbers(responses: list[Any]) -> list[int]:
    """Read what was counted."""
    return [int(arrays(reply_from_message(each))["i"][0]) for each in responses]


# -- Triton ----------------------------------------------------------------------------------------------


def test_triton_answers_each(on_triton: Bare) -> None:
    """An answer to each request, under its id, in an envelope; it says that it is the final one."""
    messages = list(on_triton.stream([add("1"), add("2")]))
    assert sorted(each.infer_response.id for each in messages) == ["1", "2"]
    assert all(each.infer_response.parameters["triton_final_response"].bool_param for each in messages)


def test_triton_errors_are_messages(on_triton: Bare) -> None:
    """An error is a message with the id of its request, and the stream goes on."""
    failing = InferRequest("fail", (tensor("a", ONE[0, :1]),), id="bad")
    messages = list(on_triton.stream([InferRequest("nope", (), id="none"), failing, add("good")]))
    told = {each.infer_response.id: each.error_message for each in messages}
    assert told["none"] == "Request for unknown model: 'nope' is not found"
    assert "this model always fails" in told["bad"]
    assert told["good"] == ""


def test_triton_counts(on_triton: Bare) -> None:
    """A decoupled model gives as many answers as it likes: none of them says that it is the final one."""
    responses = [each.infer_response for each in on_triton.stream([count(3, "c")])]
    assert numbers(responses) == [0, 1, 2]
    assert not any(each.parameters["triton_final_response"].bool_param for each in responses)
    assert list(on_triton.stream([count(0)])) == []


def test_triton_says_when_it_is_done(on_triton: Bare) -> None:
    """Asked for it, a decoupled model's end is one more answer, without outputs."""
    asked = {"triton_enable_empty_final_response": True}
    stream = on_triton.stream([count(2, "two", **asked), count(0, "none", **asked)])
    responses = [each.infer_response for each in stream]
    ends = [each.id for each in responses if each.parameters["triton_final_response"].bool_param]
    assert sorted(ends) == ["none", "two"]
    assert not any(each.outputs for each in responses if each.parameters["triton_final_response"].bool_param)
    assert numbers([each for each in responses if each.outputs]) == [0, 1]
    (plain,) = on_triton.stream([InferRequest("add", add("1").inputs, parameters=asked)])
    assert len(plain.infer_response.outputs) == 2  # a model that is not decoupled has no empty end


def test_triton_counts_in_streams_only(on_triton: Bare) -> None:
    """A decoupled model answers no plain call: UNIMPLEMENTED, or 501."""
    for infer, status in ((on_triton.infer, "UNIMPLEMENTED"), (on_triton.infer_web, 501)):
        with pytest.raises(Refused) as caught:
            infer(count(1))
        assert (caught.value.status, "decoupled" in caught.value.text) == (status, True)


def test_triton_and_a_cancelled_stream(on_triton: Bare) -> None:
    """A model of PyTriton's is not told that its stream was cancelled; others are served meanwhile."""
    stream = on_triton.stream([count(40, pause=0.02)])
    next(stream)
    stream.cancel()
    assert numbers([each.infer_response for each in on_triton.stream([count(2)])]) == [0, 1]
    until(lambda: "counter 39" in on_triton.server.log, "the model to count on")


# -- MLServer --------------------------------------------------------------------------------------------


def test_mlserver_has_no_envelope(on_mlserver: Bare) -> None:
    """The stream is of bare responses; in Triton's envelope the model's name would be the error."""
    responses = list(on_mlserver.stream([count(3, "c")], pb.ModelInferResponse))
    assert numbers(responses) == [0, 1, 2]
    read = pb.ModelStreamInferResponse.FromString(
        pb.ModelInferResponse(model_name="counter").SerializeToString()
    )
    assert read.error_message == "counter"


def test_mlserver_gives_the_whole_stream_to_one_model(on_mlserver: Bare) -> None:
    """The first request names the model and the id of all that follow, and whether answers are raw."""
    stream = on_mlserver.stream([count(2, "first"), count(1, "second")], pb.ModelInferResponse)
    responses = list(stream)
    assert numbers(responses) == [0, 1, 0]
    assert {each.id for each in responses} == {"first"}


def test_mlserver_reads_only_the_first(on_mlserver: Bare) -> None:
    """A model that does not stream answers the first request of a stream, and no other."""
    responses = list(on_mlserver.stream([add("1"), add("2"), add("3")], pb.ModelInferResponse))
    assert [each.id for each in responses] == ["1"]


def test_mlserver_errors_end_the_stream(on_mlserver: Bare) -> None:
    """An error is the end of the call, with a status."""
    failing = InferRequest("fail", (tensor("a", ONE[0, :1]),))
    for request, status in (
        (InferRequest("nope", failing.inputs), "NOT_FOUND"),
        (failing, "INTERNAL"),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            list(on_mlserver.stream([request], pb.ModelInferResponse))
        assert caught.value.code().name == status


def test_mlserver_and_no_answers(on_mlserver: Bare) -> None:
    """A stream without an answer ends in an error of MLServer's own."""
    with pytest.raises(grpc.RpcError) as caught:
        list(on_mlserver.stream([count(0)], pb.ModelInferResponse))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "'result'" in caught.value.details()


def test_mlserver_and_a_cancelled_stream(on_mlserver: Bare) -> None:
    """A stream that is cancelled stops the model."""
    before = on_mlserver.server.log.count("counter 0")
    stream = on_mlserver.stream([count(1234, pause=0.05)], pb.ModelInferResponse)
    next(stream)
    stream.cancel()
    assert len(list(on_mlserver.stream([count(30, pause=0.02)], pb.ModelInferResponse))) == 30
    # Both were at work at the same time; the one that was cancelled did not get as far as the other.
    assert on_mlserver.server.log.count("counter 0") == before + 2
    assert on_mlserver.server.log.count("counter 20") == 1
