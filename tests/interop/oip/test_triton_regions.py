"""Triton's shared-memory regions: tensors that stay where they are, from call to call."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np
import pytest
from interop.oip.bare import Bare, Refused, arrays, in_region, tensor
from server_kit import until

from predsession.wire.oip.messages import InferRequest, Wanted
from predsession.wire.oip.protobuf import reply_to_message, request_to_message
from predsession.wire.oip.regions import OFFSET, REGION, SIZE

FRAME = np.random.default_rng(9).integers(0, 256, (32, 48, 3), np.uint8)
SMALL = FRAME.reshape(4, 8, 6, 8, 3).mean((1, 3), np.float32)


@dataclass
class Regions:
    """Two of them, registered: one with the frame, one for the small picture."""

    bare: Bare
    frame: SharedMemory
    small: SharedMemory

    def register(self, name: str, key: str, size: int) -> None:
        """Make one known."""
        self.bare.call("SystemSharedMemoryRegister", name=name, key=key, offset=0, byte_size=size)

    def forget(self, name: str = "") -> None:
        """Unregister one, or all, once nobody uses them: a reply may come before its server has let go."""

        def gone() -> bool:
            with contextlib.suppress(Refused):
                self.bare.call("SystemSharedMemoryUnregister", name=name)
                return True
            return False

        until(gone, "a region to be free")


@pytest.fixture
def regions(on_triton: Bare) -> Iterator[Regions]:
    """Both, and nothing of them afterwards."""
    frame, small = SharedMemory(create=True, size=FRAME.nbytes), SharedMemory(create=True, size=SMALL.nbytes)
    made = Regions(on_triton, frame, small)
    frame.buf[:] = FRAME.tobytes()
    made.register("frame", f"/{frame.name}", FRAME.nbytes)
    made.register("small", f"/{small.name}", SMALL.nbytes)
    yield made
    made.forget()
    for each in (frame, small):
        each.close()
        each.unlink()


def into(region: str, size: int, offset: int = 0) -> Wanted:
    """Want the small picture in a region."""
    return Wanted("small", {REGION: region, SIZE: size, **({OFFSET: offset} if offset else {})})


def scale(*outputs: Wanted) -> InferRequest:
    """Scale the frame that is in its region."""
    return InferRequest("scale", (in_region("frame", FRAME, "frame"),), outputs)


def refusal(calling: Any, *arguments: Any, **keywords: Any) -> tuple[str | int, str]:
    """Return the status and the text with which a call is refused."""
    with pytest.raises(Refused) as caught:
        calling(*arguments, **keywords)
    return caught.value.status, caught.value.text


def test_from_a_region(regions: Regions) -> None:
    """An input in a region is the same input over both doors; the next call sees what was written since."""
    for infer in (regions.bare.infer, regions.bare.infer_web):
        assert arrays(infer(scale()))["total"].tolist() == [FRAME.sum()]
    regions.frame.buf[:3] = bytes(3)
    changed = FRAME.sum() - FRAME.reshape(-1)[:3].sum()
    assert arrays(regions.bare.infer(scale()))["total"].tolist() == [changed]


def test_into_a_region_and_on(regions: Regions) -> None:
    """An output in a region has its real shape in the reply, and is the next model's input there."""
    for infer in (regions.bare.infer, regions.bare.infer_web):
        regions.small.buf[:] = bytes(SMALL.nbytes)
        reply = infer(scale(into("small", SMALL.nbytes), Wanted("total")))
        small = reply.outputs[0]
        assert (small.name, small.shape, small.data or b"") == ("small", SMALL.shape, b"")
        assert arrays(reply)["total"].tolist() == [FRAME.sum()]
        np.testing.assert_allclose(np.frombuffer(regions.small.buf, np.float32), SMALL.reshape(-1), rtol=1e-6)
        chained = InferRequest("sums", (in_region("small", SMALL, "small"),))
        np.testing.assert_allclose(arrays(infer(chained))["sum"], [SMALL.sum()], rtol=1e-5)


def test_what_a_reply_says_of_a_region(regions: Regions) -> None:
    """Nothing: over gRPC its raw contents are empty, over HTTP it has neither data nor a count of bytes."""
    request = scale(into("small", SMALL.nbytes), Wanted("total"))
    message = regions.bare.call("ModelInfer", request_to_message(request))
    assert [len(each) for each in message.raw_output_contents] == [0, 8]
    assert not message.outputs[0].parameters
    body = json.dumps(
        {
            "inputs": [
                {
                    "name": "frame",
                    "datatype": "UINT8",
                    "shape": [32, 48, 3],
                    "parameters": {REGION: "frame", SIZE: FRAME.nbytes},
                }
            ],
            "outputs": [{"name": "small", "parameters": {REGION: "small", SIZE: SMALL.nbytes}}],
        }
    )
    answer = regions.bare.web("POST", "/v2/models/scale/infer", data=body).json()
    assert answer["outputs"] == [{"name": "small", "datatype": "FP32", "shape": [4, 6, 3]}]


def test_how_much_travels(regions: Regions) -> None:
    """Neither the request nor the reply holds the tensors."""
    request = scale(into("small", SMALL.nbytes))
    assert request_to_message(request).ByteSize() < 200
    assert reply_to_message(regions.bare.infer(request)).ByteSize() < 100


def test_regions_and_bytes_together(regions: Regions) -> None:
    """One input in a region, the next in the message: the raw contents are those of the others, in order."""
    one, four = np.ones((1, 4), np.float32), SMALL.reshape(-1)[None, :4]
    regions.small.buf[:] = SMALL.tobytes()
    for infer in (regions.bare.infer, regions.bare.infer_web):
        mixed = InferRequest("add", (tensor("a", one), in_region("b", four, "small")))
        np.testing.assert_allclose(arrays(infer(mixed))["c"], one + four)
        mixed = InferRequest("add", (in_region("a", four, "small"), tensor("b", one)))
        np.testing.assert_allclose(arrays(infer(mixed))["d"], four - one)


def test_too_little_room(regions: Regions) -> None:
    """Too small for an output is INTERNAL, with both sizes; beyond a region's end is INVALID_ARGUMENT."""
    status, text = refusal(regions.bare.infer, scale(into("small", 100)))
    assert (status, "(100 bytes) should be at least 288 bytes to hold the results" in text) == (
        "INTERNAL",
        True,
    )
    beyond = "Invalid offset + byte size for shared memory region: 'small'"
    assert refusal(regions.bare.infer, scale(into("small", 1000))) == ("INVALID_ARGUMENT", beyond)
    assert refusal(regions.bare.infer_web, scale(into("small", 100)))[0] == 500


def test_too_much_room(regions: Regions) -> None:
    """More room than an output takes is no error, and an offset counts from the region's start."""
    reply = regions.bare.infer(scale(into("frame", 400, 4000)))
    assert reply.outputs[0].shape == SMALL.shape
    written = np.frombuffer(regions.frame.buf[4000:4288], np.float32)
    np.testing.assert_allclose(written, SMALL.reshape(-1), rtol=1e-6)


def test_an_input_of_another_size(regions: Regions) -> None:
    """An input's size must be that of its shape exactly."""
    wide = in_region("frame", FRAME[:, :40], "frame")
    short = InferRequest("scale", (wide,))
    assert regions.bare.infer(short).outputs[0].shape == (4, 5, 3)
    parameters = {REGION: "frame", SIZE: FRAME.nbytes}
    off = InferRequest("scale", (type(wide)("frame", "UINT8", (32, 40, 3), None, parameters),))
    status, text = refusal(regions.bare.infer, off)
    assert (status, "Expected 3840, got 4608" in text) == ("INVALID_ARGUMENT", True)


def test_names(regions: Regions) -> None:
    """A name is taken until it is unregistered, by anybody; unregistering what is not there is no error."""
    assert refusal(regions.register, "frame", f"/{regions.small.name}", 10) == (
        "ALREADY_EXISTS", "shared memory region 'frame' already in manager",
    )  # fmt: skip
    for _ in range(2):
        regions.forget("frame")
    assert refusal(regions.bare.infer, scale()) == (
        "NOT_FOUND", "Unable to find shared memory region: 'frame'",
    )  # fmt: skip
    regions.register("frame", regions.frame.name, FRAME.nbytes)  # the slash may be left out
    assert len(regions.bare.infer(scale()).outputs) == 2


def test_keys(regions: Regions) -> None:
    """A key that is not there is INTERNAL, and so is one that has a name; too short is INVALID_ARGUMENT."""
    assert refusal(regions.register, "x", "/none-such", 10) == (
        "INTERNAL", "Unable to open shared memory region: '/none-such'",
    )  # fmt: skip
    key = f"/{regions.small.name}"
    assert refusal(regions.register, "x", key, 100) == ("INTERNAL", f"Invalid shared memory region: '{key}'")
    regions.forget("small")
    status, text = refusal(regions.register, "x", key, 1 << 24)
    assert (status, "invalid args" in text) == ("INVALID_ARGUMENT", True)


def test_a_region_in_use(regions: Regions) -> None:
    """A region that a call under way uses cannot be unregistered: INTERNAL, until the call is answered."""
    regions.frame.buf[:4] = np.array([1.0], np.float32).tobytes()
    slow = InferRequest("slow", (in_region("seconds", np.ones(1, np.float32), "frame"),))
    before = regions.bare.server.log.count("slow begins")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(regions.bare.infer, slow)
        until(lambda: regions.bare.server.log.count("slow begins") > before, "the call to be under way")
        assert refusal(regions.bare.call, "SystemSharedMemoryUnregister", name="frame") == (
            "INTERNAL", "Cannot unregister shared memory region 'frame', it is currently in use.",
        )  # fmt: skip
        assert refusal(regions.bare.call, "SystemSharedMemoryUnregister") == (
            "INTERNAL", "Failed to unregister the following system shared memory regions: frame ,",
        )  # fmt: skip
        assert call.result().outputs[0].shape == (1,)
    regions.forget("frame")


def test_status(regions: Regions) -> None:
    """All of them are listed, with their keys, over both doors; they are there when their client is not."""
    listed = regions.bare.call("SystemSharedMemoryStatus").regions
    assert {name: (each.key, each.byte_size) for name, each in listed.items()} == {
        "frame": (f"/{regions.frame.name}", FRAME.nbytes),
        "small": (f"/{regions.small.name}", SMALL.nbytes),
    }
    web = regions.bare.web("GET", "/v2/systemsharedmemory/status").json()
    assert {each["name"] for each in web} == {"frame", "small"}
    assert refusal(regions.bare.call, "SystemSharedMemoryStatus", name="x")[0] == "NOT_FOUND"


def test_over_http(regions: Regions) -> None:
    """Registering and unregistering over HTTP is the same; a name that is taken is 400."""
    content = {"key": f"/{regions.small.name}", "offset": 0, "byte_size": SMALL.nbytes}
    regions.bare.web("POST", "/v2/systemsharedmemory/region/small/unregister")
    regions.bare.web("POST", "/v2/systemsharedmemory/region/more/register", json=content)
    status, _ = refusal(regions.bare.web, "POST", "/v2/systemsharedmemory/region/more/register", json=content)
    assert status == 400
    listed = regions.bare.web("GET", "/v2/systemsharedmemory/region/more/status").json()
    assert listed == [{"name": "more", **content}]
    regions.bare.web("POST", "/v2/systemsharedmemory/region/more/unregister")
    assert "more" not in regions.bare.call("SystemSharedMemoryStatus").regions


def test_in_a_stream(regions: Regions) -> None:
    """Regions work in a stream, too."""
    (message,) = regions.bare.stream([scale(into("small", SMALL.nbytes))])
    (small,) = message.infer_response.outputs
    assert (tuple(small.shape), list(message.infer_response.raw_output_contents)) == (SMALL.shape, [b""])
