"""The Open Inference Protocol as data: every datatype through every form, and what is no message."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from predsession.errors import ProtocolError
from predsession.wire.oip import inference_pb2 as pb
from predsession.wire.oip.contents import from_contents, from_json_data, to_json_data
from predsession.wire.oip.datatypes import DATATYPES, INT4_RANGE, datatype, datatype_of, elements
from predsession.wire.oip.messages import InferReply, InferRequest, Tensor, Wanted
from predsession.wire.oip.methods import METHODS, OUR_METHODS
from predsession.wire.oip.packing import bytes_to_elements, elements_to_bytes, pack, unpack
from predsession.wire.oip.protobuf import (
    reply_from_message,
    reply_to_message,
    request_from_bytes,
    request_from_message,
    request_to_message,
)
from predsession.wire.oip.residency import ABSENT, KEPT
from predsession.wire.oip.rest import reply_from_body, reply_to_body, request_from_body, request_to_body

HALF = {"FP16", "BF16"}
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
names = st.sampled_from(sorted(DATATYPES))


@st.composite
def arrays(draw: st.DrawFn, name: str | None = None) -> tuple[str, Any]:
    """Draw an array of a datatype, whatever is in it."""
    name = name or draw(names)
    shape = draw(shapes)
    count = math.prod(shape)
    if name == "BYTES":
        flat = np.empty(count, object)
        flat[:] = draw(st.lists(st.binary(max_size=5), min_size=count, max_size=count))
        return name, flat.reshape(shape)
    if name in INT4_RANGE:
        low, high = INT4_RANGE[name]
        values = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
        return name, np.array(values, DATATYPES[name].dtype).reshape(shape)
    raw = draw(
        st.binary(
            min_size=count * DATATYPES[name].dtype.itemsize, max_size=count * DATATYPES[name].dtype.itemsize
        )
    )
    raw = bytes(byte & 1 for byte in raw) if name == "BOOL" else raw
    return name, np.frombuffer(raw, DATATYPES[name].dtype).reshape(shape) if count else np.empty(
        shape, DATATYPES[name].dtype
    )


def same(one: Any, other: Any) -> bool:
    """Whether two arrays have the same bytes, NaN among them."""
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    return bool((one == other).all()) if one.dtype == object else one.tobytes() == other.tobytes()


parameters = st.dictionaries(
    st.text(max_size=5),
    st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.text(max_size=5),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    max_size=3,
)


@st.composite
def requests(draw: st.DrawFn) -> InferRequest:
    """Draw a request."""
    inputs = tuple(
        Tensor(f"in{place}", name, array.shape, bytes(pack(array, name)), draw(parameters))
        for place, (name, array) in enumerate(draw(st.lists(arrays(), max_size=3)))
    )
    outputs = tuple(
        Wanted(name, draw(parameters)) for name in draw(st.lists(st.text(max_size=4), max_size=3))
    )
    return InferRequest("model", inputs, outputs, "1", draw(st.text(max_size=5)), draw(parameters))


@given(arrays())
def test_every_array_is_its_bytes(drawn: tuple[str, Any]) -> None:
    """What is packed is unpacked the same, bit for bit, and has as many bytes as its datatype says."""
    name, array = drawn
    data = pack(array, name)
    assert same(unpack(data, name, array.shape), array)
    assert DATATYPES[name].nbytes(array.shape) in {None, len(data)}


@given(arrays())
def test_order_in_memory_means_nothing(drawn: tuple[str, Any]) -> None:
    """An array that lies in memory otherwise, transposed or big-endian, has the bytes of its copy."""
    name, array = drawn
    turned = array.T
    assert bytes(pack(turned, name)) == bytes(pack(turned.copy(order="C"), name))
    if array.dtype.kind in "iuf" and name != "BF16":
        assert bytes(pack(array.astype(array.dtype.newbyteorder(">")), name)) == bytes(pack(array, name))


def test_four_bits() -> None:
    """Of two numbers of four bits the first is in the low half; a number that does not fit is refused."""
    assert pack(np.array([1, -2, 7], np.int8), "INT4") == bytes([0xE1, 0x07])
    assert unpack(b"\x4f", "UINT4", (2,)).tolist() == [15, 4]
    with pytest.raises(ProtocolError, match="INT4 holds -8 to 7; the array has 0 to 8"):
        pack(np.array([0, 8]), "INT4")


@given(requests())
def test_requests_over_grpc(request: InferRequest) -> None:
    """A request comes out of a message, through bytes, as it went in."""
    message = pb.ModelInferRequest.FromString(request_to_message(request).SerializeToString())
    assert request_from_message(message) == request


@given(requests(), st.booleans())
def test_requests_over_http(request: InferRequest, binary: bool) -> None:
    """The same over HTTP; in JSON alone, what JSON cannot hold is refused in words."""
    special = {"binary_data", "binary_data_size", "binary_data_output"}
    try:
        body = request_to_body(request, binary=binary)
    except ProtocolError:
        assert not binary
        return
    got = request_from_body(bytes(body), body.json_length, "model", version="1")
    for one, other in zip(got.inputs, request.inputs, strict=True):
        assert (one.name, one.datatype, one.shape, one.data) == (
            other.name,
            other.datatype,
            other.shape,
            other.data,
        )
        assert one.parameters == other.parameters
    assert [one.name for one in got.outputs] == [one.name for one in request.outputs]
    for one, other in zip(got.outputs, request.outputs, strict=True):
        assert {key: value for key, value in one.parameters.items() if key not in special} == other.parameters
    assert got.id == request.id


@given(requests(), st.booleans())
def test_replies(request: InferRequest, binary: bool) -> None:
    """A reply comes out of either form as it went in."""
    asked = InferRequest("model", (), parameters={"binary_data_output": True} if binary else {})
    reply = InferReply("model", request.inputs, "1", request.id, request.parameters)
    assert (
        reply_from_message(pb.ModelInferResponse.FromString(reply_to_message(reply).SerializeToString()))
        == reply
    )
    try:
        body = reply_to_body(reply, asked)
    except ProtocolError:
        assert not binary
        return
    got = reply_from_body(bytes(body), body.json_length)
    assert [(one.name, one.shape, one.data) for one in got.outputs] == [
        (one.name, one.shape, one.data) for one in reply.outputs
    ]
    assert (body.json_length is None) == (not binary or not reply.outputs)


def test_absent_and_kept_have_no_bytes() -> None:
    """An output that is not sent and an input that is on the server have none, in either form."""
    absent = Tensor("y", "FP32", (2,), None, {ABSENT: True})
    here = Tensor("z", "UINT8", (2,), b"ab")
    message = reply_to_message(InferReply("m", (absent, here)))
    assert [one.data for one in reply_from_message(message).outputs] == [None, b"ab"]
    kept = InferRequest(
        "m", (Tensor("a", "FP32", (2,), None, {KEPT: "k"}), Tensor("b", "UINT8", (2,), b"ab"))
    )
    assert request_from_message(request_to_message(kept)) == kept
    body = request_to_body(kept, binary=True)
    assert [one.data for one in request_from_body(bytes(body), body.json_length, "m").inputs] == [None, b"ab"]


@pytest.mark.parametrize("name", sorted(set(DATATYPES) - HALF))
def test_typed_fields(name: str) -> None:
    """Typed fields hold each datatype but the half ones; another field, or another count, is refused."""
    low, high = INT4_RANGE.get(name, (0, 1))
    array = np.array([b"a", b""], object) if name == "BYTES" else np.array([low, high], DATATYPES[name].dtype)
    field = {
        "BOOL": "bool",
        "BYTES": "bytes",
        "FP32": "fp32",
        "FP64": "fp64",
        "INT64": "int64",
        "UINT64": "uint64",
    }
    chosen = field.get(name, "uint" if name.startswith("U") else "int")
    contents = pb.InferTensorContents(**{f"{chosen}_contents": array.tolist()})
    assert bytes(from_contents(contents, name, (2,))) == bytes(pack(array, name))
    with pytest.raises(ProtocolError, match="has 2 elements; it takes 3"):
        from_contents(contents, name, (3,))
    with pytest.raises(ProtocolError, match=r"belongs into|travels as raw bytes"):
        from_contents(contents, "FP16" if name == "FP32" else "FP32", (2,))


@pytest.mark.parametrize(
    ("values", "name", "words"),
    [
        ([1, 300], "UINT8", "holds 0 to 255; it came with 1 to 300"),
        ([1.5, 2], "INT32", "whole numbers"),
        ([True, 2], "INT32", "takes numbers"),
        (["a", 2], "FP32", "takes numbers"),
        ([None, 2], "BOOL", "true and false"),
        ([1e300, 2], "FP32", "beyond it"),
        ([10**400, 2], "FP64", "beyond it"),
        ([10**400, 2], "INT64", "holds"),
        (["\ud800", "b"], "BYTES", "half a character"),
        ([{}, "b"], "BYTES", "wanted bytes or str"),
        ([1, 2], "FP16", "binary data only"),
        ([1, 2, 3], "FP32", "has 3 elements"),
        ([1, 2], "FP99", "is no datatype"),
        (5, "FP32", "has 1 elements"),
    ],
)
def test_json_that_is_none(values: Any, name: str, words: str) -> None:
    """Elements that are not of the datatype are refused, and never rounded or made infinite."""
    with pytest.raises(ProtocolError, match=words):
        from_json_data(values, name, (2,))


def test_json_that_is_one() -> None:
    """Nested lists and flat ones are the same; the ends of each kind of number survive."""
    nested = from_json_data([[1, 2], [3, 4]], "INT16", (2, 2))
    assert bytes(nested) == bytes(from_json_data([1, 2, 3, 4], "INT16", (4,)))
    for name in ("INT64", "UINT64", "INT8"):
        info = np.iinfo(DATATYPES[name].dtype)
        ends = [int(info.min), int(info.max)]
        assert to_json_data(from_json_data(ends, name, (2,)), name, (2,)) == ends
    with pytest.raises(ProtocolError, match="JSON has no NaN"):
        to_json_data(np.float32(math.nan).tobytes(), "FP32", (1,))


@pytest.mark.parametrize(
    "shape", [(-1,), (2, -5), (1 << 70,), (1 << 62, 0), (1,) * 33, tuple([1 << 61] * 20)]
)
@pytest.mark.parametrize("name", ["FP32", "BYTES", "INT4"])
def test_shapes_that_no_tensor_has(shape: tuple[int, ...], name: str) -> None:
    """A shape that is none, or that no memory could hold, is refused at once."""
    for read in (lambda: unpack(b"", name, shape), lambda: from_json_data([], name, shape)):
        with pytest.raises(ProtocolError):
            read()


@given(st.binary(max_size=30), names, st.lists(st.integers(-2, 5), max_size=4))
def test_any_bytes(data: bytes, name: str, shape: list[int]) -> None:
    """Any bytes, said to be anything, are an array of that shape or refused."""
    try:
        array = unpack(data, name, tuple(shape))
    except ProtocolError:
        return
    assert array.shape == tuple(shape)


@given(st.lists(st.binary(max_size=9), max_size=5), st.binary(max_size=3))
def test_elements(values: list[bytes], rest: bytes) -> None:
    """Elements come out as they went in; what is cut off is refused."""
    data = elements_to_bytes(values)
    assert bytes_to_elements(data) == values
    with pytest.raises(ProtocolError, match="cut off"):
        bytes_to_elements(data + b"\xff\xff\xff\xff" + rest)
    with pytest.raises(ProtocolError, match="cut off"):
        bytes_to_elements(data + b"\0")


@settings(max_examples=120)
@given(st.binary(max_size=200), st.one_of(st.none(), st.integers(-5, 300)))
def test_bodies_of_rubbish(body: bytes, length: int | None) -> None:
    """A body of any bytes, with any length of its JSON, is read or refused."""
    for read in (lambda: request_from_body(body, length, "m"), lambda: reply_from_body(body, length)):
        try:
            read()
        except ProtocolError:
            continue


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(["name", "datatype", "shape", "data", "parameters", "binary_data_size", "x"]),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)


@settings(max_examples=120)
@given(json_values, json_values, json_values)
def test_json_of_rubbish(inputs: Any, outputs: Any, parameters: Any) -> None:
    """JSON of any shape is read or refused."""
    body = json.dumps(
        {"inputs": inputs, "outputs": outputs, "parameters": parameters, "id": parameters}
    ).encode()
    for read in (lambda: request_from_body(body, len(body), "m"), lambda: reply_from_body(body, None)):
        try:
            read()
        except ProtocolError:
            continue


@settings(max_examples=120)
@given(requests(), st.data())
def test_messages_of_rubbish(request: InferRequest, data: st.DataObject) -> None:
    """A message in which bytes were changed is refused or another request, however it is read."""
    raw = bytearray(request_to_message(request).SerializeToString() or b"\0")
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        whole = request_from_message(pb.ModelInferRequest.FromString(bytes(raw)))
    except (DecodeError, ProtocolError):
        with pytest.raises(ProtocolError):
            request_from_bytes(bytes(raw))
    else:
        assert repr(request_from_bytes(bytes(raw))) == repr(whole)  # NaN is not equal to itself


@pytest.mark.parametrize("length", [0, 1, 10_000, 2**63])
def test_lengths_that_lie(length: int) -> None:
    """A length of the JSON that is not its own is refused."""
    tensor = {"name": "x", "datatype": "UINT8", "shape": [2], "parameters": {"binary_data_size": 2}}
    body = json.dumps({"inputs": [tensor]}).encode()
    assert request_from_body(body + b"ab", len(body), "m").inputs[0].data == b"ab"
    with pytest.raises(ProtocolError):
        request_from_body(body + b"ab", length, "m")


@pytest.mark.parametrize("size", [-1, 3, True, 1.5, "2", None, 2**70])
def test_sizes_that_lie(size: object) -> None:
    """A size of bytes that do not follow is refused."""
    tensor = {"name": "x", "datatype": "UINT8", "shape": [2], "parameters": {"binary_data_size": size}}
    body = json.dumps({"inputs": [tensor]}).encode()
    with pytest.raises(ProtocolError):
        request_from_body(body + b"ab", len(body), "m")


def test_messages_of_too_much() -> None:
    """A message of more fields, or parameters, than anybody means is refused before each is looked at."""
    with pytest.raises(ProtocolError, match="more than 10,000 fields"):
        request_from_bytes(b"\x2a\x00" * 20_000)
    message = pb.ModelInferRequest()
    for number in range(1001):
        message.parameters[str(number)].bool_param = True
    with pytest.raises(ProtocolError, match="1001 parameters"):
        request_from_bytes(message.SerializeToString())


def test_bytes_and_fields_at_once() -> None:
    """Inputs with typed fields and raw bytes, or fewer raw bytes than inputs, are refused."""
    message = pb.ModelInferRequest(raw_input_contents=[b"ab"])
    one = message.inputs.add(name="x", datatype="UINT8", shape=[2])
    assert request_from_message(message).inputs[0].data == b"ab"
    one.contents.uint_contents.extend([1, 2])
    with pytest.raises(ProtocolError, match="one of the two"):
        request_from_message(message)
    one.ClearField("contents")
    message.inputs.add(name="y", datatype="UINT8", shape=[2])
    with pytest.raises(ProtocolError, match="2 inputs that are to have bytes came with 1"):
        request_from_message(message)


def test_names() -> None:
    """The services have the addresses of the protocol; datatypes are found by their dtype."""
    assert METHODS["ModelInfer"].path == "/inference.GRPCInferenceService/ModelInfer"
    assert METHODS["ModelStreamInfer"].streams
    assert OUR_METHODS["Renew"].path == "/predsession.TensorSessions/Renew"
    for name, kind in DATATYPES.items():
        if name not in INT4_RANGE:
            assert datatype_of(kind.dtype) is kind
    assert datatype_of(np.complex64) is None
    assert datatype("FP32").nbytes((3, 0, 5)) == 0
    assert elements(()) == 1
