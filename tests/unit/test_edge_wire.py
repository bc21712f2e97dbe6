"""The edge interface as data: descriptions, tensors, masks, requests."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path

import edge_kit
import numpy as np
import pytest
from edge_kit import M
from google.protobuf import descriptor_pb2, descriptor_pool
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from predsession.edge.endpoint import find_endpoint
from predsession.errors import ProtocolError, SourceError
from predsession.rpc.addresses import is_local
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.findings import from_embedding, from_post_result, to_post_result
from predsession.wire.edge.masks import decode_rle, encode_rle, row_span
from predsession.wire.edge.methods import METHODS
from predsession.wire.edge.parts import (
    BoundingBox,
    Classification,
    DepthMap,
    DetectedObject,
    Embedding,
    LandmarkPoint,
    LandmarkSet,
    OcrLine,
    Parts,
    SegmentationMask,
)
from predsession.wire.edge.requests import InferCall, batch_to_bytes
from predsession.wire.edge.tensors import CODES, DTYPES, from_tensor, to_spec, to_tensor

WIRE_DTYPES = sorted(dtype.str for dtype in CODES)


def _plain(file: descriptor_pb2.FileDescriptorProto) -> dict[str, object]:
    """Everything that matters on the wire, without order, file name and JSON names."""
    fields = {
        (message.name, field.name): (
            field.number,
            field.type,
            field.label,
            field.type_name,
            message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else "",
        )
        for message in file.message_type
        for field in message.field
    }
    enums = {(enum.name, each.name): each.number for enum in file.enum_type for each in enum.value}
    methods = {
        each.name: (each.input_type, each.output_type, each.client_streaming, each.server_streaming)
        for each in file.service[0].method
    }
    messages = {message.name for message in file.message_type}
    return {"package": file.package, "syntax": file.syntax, "service": file.service[0].name,
            "messages": messages, "fields": fields, "enums": enums, "methods": methods}  # fmt: skip


def test_our_messages_are_those_of_the_table() -> None:
    """Every message, field, number, type, enum value and method is what the interface's table says."""
    ours = descriptor_pb2.FileDescriptorProto()
    pb.DESCRIPTOR.CopyToProto(ours)
    assert _plain(ours) == _plain(edge_kit.description())
    assert len(ours.message_type) == 39
    assert {name: each.path for name, each in METHODS.items()} == {
        name: f"/aipc.inference.InferenceService/{name}" for name in edge_kit.METHODS
    }


def test_generated_code_is_that_of_the_proto() -> None:
    """What is checked in was made of the .proto as it is: every field and method line is in it."""
    text = Path(pb.__file__).with_name("inference.proto").read_text()
    text = re.sub(r"//.*", "", text)
    found = set()
    for name, body in re.findall(r"message (\w+) \{\n(.*?)\n\}", text, re.DOTALL):
        found |= {(name, field, int(number)) for field, number in re.findall(r"(\w+) = (\d+);", body)}
    described = {
        (message.name, field.name, field.number)
        for message in pb.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
    }
    assert found == described
    methods = re.findall(r"rpc (\w+)\((\w+)\) returns \((?:stream )?(\w+)\)", text)
    assert methods == [(each.name, each.request.__name__, each.reply.__name__) for each in METHODS.values()]


def test_the_common_pool_is_left_to_others() -> None:
    """Another library may register the same names in the process's common pool, as the vendor's does."""
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("aipc.inference.InferRequest")


@given(st.sampled_from(WIRE_DTYPES).flatmap(
    lambda dtype: arrays.arrays(np.dtype(dtype), arrays.array_shapes(min_dims=1, max_dims=4, min_side=0))
))  # fmt: skip
def test_tensors_keep_every_bit(array: np.ndarray) -> None:
    """An array of a dtype of the wire comes back with its shape, its dtype and its bytes."""
    there = M.Tensor.FromString(to_tensor(array).SerializeToString())
    back = from_tensor(pb.Tensor.FromString(there.SerializeToString()))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert not back.flags.writeable


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([-(2**31), 2**31 - 1]), "int32"),
        (np.array([0, 2**32 - 1], np.uint64), "uint32"),
        (np.array([7], np.uint64), "uint32"),
        (np.array([0.5, np.inf, np.nan]), "float32"),
        (np.array([True, False]), "uint8"),
        (np.arange(6, dtype=">i2").reshape(2, 3).T, "int16"),
        (3.5, "float32"),
    ],
)
def test_dtypes_that_the_wire_lacks_are_cast_if_exact(array: np.ndarray, dtype: str) -> None:
    """What the wire lacks is cast to what keeps every value."""
    back = from_tensor(to_tensor(array))
    assert back.dtype.name == dtype
    np.testing.assert_array_equal(back, np.atleast_1d(array))


@pytest.mark.parametrize(
    "array",
    [
        np.array([2**32]),
        np.array([2**31]),
        np.array([-1, 2**31]),
        np.array([0.1]),
        np.array([1e300]),
        np.array([2**63], np.uint64),
        np.array([1j]),
        np.array(["a"]),
        np.array([None]),
    ],
)
def test_dtypes_that_cannot_be_cast_are_refused(array: np.ndarray) -> None:
    """What would not stay what it is, is refused by name, and never sent as something else."""
    with pytest.raises(SourceError, match=f"picture is .*{array.dtype}"):
        to_tensor(array, name="picture")


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": [9], "data": b"12345678", "dtype": 5},
        {"shape": [-1, -8], "data": b"12345678"},
        {"shape": [2], "data": b"12", "dtype": 12},
        {"shape": [1] * 65, "data": b"1"},
        {"shape": [2**31 - 1] * 8, "data": b"1"},
        {"data": b"123", "dtype": 5},
    ],
)
def test_tensors_that_contradict_themselves_are_errors(fields: dict) -> None:
    """Bytes that are not as many as shape and dtype say are a ProtocolError, never a flat array."""
    message = M.Tensor(**fields)
    with pytest.raises(ProtocolError, match="output 1"):
        from_tensor(pb.Tensor.FromString(message.SerializeToString()), name="output 1")


def test_a_tensor_without_a_shape_is_one_row() -> None:
    """A message without a shape is a row of what it has."""
    assert from_tensor(pb.Tensor(dtype=pb.INT16, data=b"\1\0\2\0")).tolist() == [1, 2]


def test_the_table_of_dtypes() -> None:
    """Each of the eight numbers is the dtype that its name says."""
    names = {number: value.lower() for number, value in enumerate(edge_kit.ENUMS["DataType"].split())}
    assert {number: dtype.name for number, dtype in DTYPES.items()} == names
    with pytest.raises(SourceError, match="int64"):
        to_spec(shape=[1], dtype="int64")


@given(arrays.arrays(np.bool_, st.tuples(st.integers(0, 40), st.integers(0, 40))))
def test_masks_come_back(mask: np.ndarray) -> None:
    """Any mask is the same after the way there and back."""
    height, width = mask.shape
    np.testing.assert_array_equal(decode_rle(encode_rle(mask), width, height), mask)


def test_the_masks_code() -> None:
    """The code is pairs of varints, starts counted from the first pixel: 1 + 2, 133 + 3."""
    mask = decode_rle(bytes([1, 2, 0x85, 1, 3]), 20, 10)
    assert np.flatnonzero(mask).tolist() == [1, 2, 133, 134, 135]
    assert encode_rle(mask) == bytes([1, 2, 0x85, 1, 3])
    assert decode_rle(bytes([5, 3, 0, 6, 9, 0]), 4, 3).sum() == 8  # overlapping, in any order, an empty one


@pytest.mark.parametrize(
    ("code", "width", "height"),
    [(b"\1", 4, 4), (b"\1\x80", 4, 4), (b"\0\x11", 4, 4), (b"\x80" * 6 + b"\0\1", 4, 4), (b"", -1, 4),
     (b"", 1 << 20, 1 << 20)],
)  # fmt: skip
def test_damaged_masks_are_errors(code: bytes, width: int, height: int) -> None:
    """A code that breaks off, a run that leaves the mask, a mask without end: ProtocolError, at once."""
    with pytest.raises(ProtocolError):
        decode_rle(code, width, height)


def test_parts_come_back() -> None:
    """Everything a runtime can find is the same after the way there and back, over the table's messages."""
    box = BoundingBox(0.25, 0.5, 0.125, 0.25)
    mask = np.eye(7, dtype=bool)
    parts = Parts(
        objects=(DetectedObject("cat", 0.5, box, 3), DetectedObject("", 0.25, box, 4)),
        classifications=(Classification("age", 2, "old", 0.5),),
        landmarks=(LandmarkSet("face", (LandmarkPoint(0.5, 0.25, 0.75), LandmarkPoint(0.0, 1.0, 0.0))),),
        masks=(SegmentationMask.from_mask(mask, class_id=1, label="cat", confidence=0.5, bbox=box),),
        ocr_lines=(OcrLine("Straße", 0.5, box),),
        embeddings=(Embedding(3, np.array([1, -2, 0.5], np.float32)),),
        depth_maps=(DepthMap(3, 2, np.arange(6, dtype=np.float32).reshape(2, 3)),),
    )
    there = M.PostResult.FromString(to_post_result(parts).SerializeToString())
    back = from_post_result(pb.PostResult.FromString(there.SerializeToString()))
    for name in ("objects", "classifications", "landmarks", "masks", "ocr_lines"):
        assert getattr(back, name) == getattr(parts, name)
    np.testing.assert_array_equal(back.masks[0].to_numpy_mask(), mask)
    np.testing.assert_array_equal(back.embeddings[0].data, parts.embeddings[0].data)
    np.testing.assert_array_equal(back.depth_maps[0].data, parts.depth_maps[0].data)
    assert back.depth_maps[0].data.shape == (2, 3)


def test_vectors_and_depths_that_contradict_themselves_are_errors() -> None:
    """Another length than it says is a ProtocolError."""
    with pytest.raises(ProtocolError, match="says 4 numbers, and has 2"):
        from_embedding(pb.Embedding(data=[1, 2], dim=4))
    with pytest.raises(ProtocolError, match="3 x 2"):
        from_post_result(pb.PostResult(depth_maps=[pb.DepthMap(width=3, height=2, depth_data=b"1234")]))


def test_requests_are_what_protobuf_writes() -> None:
    """Requests put together without copies read as the table's messages, arrays of no size included."""
    inputs = [np.arange(300, dtype=np.float32).reshape(3, 100), np.zeros((0, 4), np.int8), np.arange(5)[::2]]
    calls = [InferCall.of("m", inputs, timeout_ms=9, priority=7, session_id="s")] * 2
    single = M.InferRequest.FromString(calls[0].to_bytes())
    expected = M.InferRequest(model_id="m", timeout_ms=9, priority=7, session_id="s")
    for array in inputs:
        expected.inputs.append(M.Tensor.FromString(to_tensor(array).SerializeToString()))
    assert single == expected
    batch = M.InferBatchRequest.FromString(batch_to_bytes(calls, 11))
    assert batch == M.InferBatchRequest(requests=[expected, expected], timeout_ms=11)


def test_boxes_in_pixels() -> None:
    """Boxes are 0 to 1 as they came; a size makes pixels of them."""
    box = BoundingBox(0.25, 0.5, 0.5, 0.25)
    assert box.to_xyxy() == (0.25, 0.5, 0.75, 0.75)
    assert box.to_xyxy(640, 480) == (160, 240, 480, 360)
    assert box.to_xywh(640, 480) == (160, 240, 320, 120)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8), st.integers(1, 9))
@example([(0, 1), (2, 0)], 1)
def test_any_runs_are_what_they_say(runs: list[tuple[int, int]], width: int) -> None:
    """Runs in any order, overlapping or empty, set their pixels; the rows that have some are known."""
    height = 120 // width + 1
    flat = np.zeros(width * height, bool)
    for start, length in runs:
        flat[start : start + length] = True
    mask = flat.reshape(height, width)
    code = bytes(number for run in runs for number in run)
    np.testing.assert_array_equal(decode_rle(code, width, height), mask)
    rows = np.flatnonzero(mask.any(axis=1))
    assert row_span(code, width, height) == ((rows[0], rows[-1] + 1) if len(rows) else (0, 0))


def test_long_codes_are_read_piece_by_piece() -> None:
    """A code of many pieces, whose numbers and pairs lie across their ends, is read as a whole."""
    mask = np.zeros((1000, 1001), bool)
    mask.ravel()[::2] = True
    code = encode_rle(mask)
    assert len(code) > 1 << 20
    np.testing.assert_array_equal(decode_rle(code, 1001, 1000), mask)


def test_a_code_longer_than_its_mask_can_need_is_refused() -> None:
    """Sixteen megabytes for one pixel are an error before any of them is read, in hardly any memory."""
    code = b"\0\0" * (8 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="16777216 bytes"):
            decode_rle(code, 1, 1)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        assert not decode_rle(code[: 1 << 20], 1000, 1000).any()
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("endpoint", "local"),
    [
        ("unix:///run/x.sock", True),
        ("127.0.0.1:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("dns:localhost:1", True),
        ("dns:///localhost:1", True),
        ("dns://8.8.8.8/LOCALHOST:1", True),
        ("ipv4:127.0.0.1:1", True),
        ("ipv4:127.0.0.1:1,127.0.0.1:2", True),
        ("ipv6:[::1]:1", True),
        ("ipv4:127.0.0.1:1,10.0.0.1:2", False),
        ("dns:///camera:1", False),
        ("dns://127.0.0.1/camera:1", False),
        ("10.0.0.1:1", False),
        ("localhost.example:1", False),
    ],
)
def test_no_proxy_stands_before_this_machine(endpoint: str, local: bool) -> None:
    """Loopback addresses are known in all the ways that gRPC has to write them."""
    assert is_local(find_endpoint(endpoint)) is local
