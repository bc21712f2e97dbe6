"""Parts of the tensor server: leases by a clock that jumps, what is kept, what a model promises."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from tensor_models import Count, Mixed, Slow

from predsession.server.config import Limits, OipDoor
from predsession.server.models.card import ModelLoadError
from predsession.server.models.tensors import describe_tensors
from predsession.server.oip.calls import Calls
from predsession.server.oip.keeping import Kept, Sessions
from predsession.server.oip.threads import ModelThread
from predsession.server.statuses import CallError
from predsession.testing import FakeClock


def pass_time(clock: FakeClock, seconds: float) -> None:
    """Let time pass."""
    clock.wait(threading.Event(), seconds)


def test_a_session_lives_as_long_as_its_lease() -> None:
    """A session ends with its lease, which every word of it renews; one in use does not end."""
    clock = FakeClock()

    async def story() -> None:
        calls = Calls(OipDoor(), Limits(), clock)
        await calls.start({})
        calls.renew("short", 10)
        calls.renew("usual", None)
        with calls.sessions.used("short"):
            pass_time(clock, 11)
            await calls.sweep()
            assert [one.id for one in calls.sessions] == ["short", "usual"]
        pass_time(clock, 9)
        calls.renew("short", 0)
        pass_time(clock, 9)
        await calls.sweep()
        assert calls.list_sessions()[0] | {"left_s": 1.0} == calls.list_sessions()[0]
        pass_time(clock, 1)
        await calls.sweep()
        assert [one.id for one in calls.sessions] == ["usual"]
        pass_time(clock, 300)
        await calls.sweep()
        assert not list(calls.sessions)
        await calls.close()

    asyncio.run(story())


def test_what_is_kept_owns_its_memory() -> None:
    """A kept array hangs on no larger memory, such as a whole body, and cannot be changed."""
    body = bytearray(range(64))
    part = np.frombuffer(memoryview(body)[8:16], np.uint8)
    kept = Kept.make(part, "UINT8")
    body[8] = 99
    assert kept.array.tolist() == list(range(8, 16))
    whole = np.frombuffer(bytes(8), np.float32)
    assert np.shares_memory(Kept.make(whole, "FP32").array, whole)
    sliced = np.arange(100)[:3]
    assert not np.shares_memory(Kept.make(sliced, "INT64").array, sliced)
    with pytest.raises(ValueError, match="read-only"):
        kept.array[0] = 1


def test_room_is_counted_once() -> None:
    """What is replaced, forgotten or ended gives back exactly what it took, whatever its size."""
    sessions = Sessions(Limits(tensors=10_000), FakeClock())
    session = sessions.renew("s")
    for size in (9000, 10, 0, 9000, 1, 9000):
        sessions.keep(session, {"k": (np.zeros(size, np.uint8), "UINT8")})
    with pytest.raises(CallError, match="RESOURCE_EXHAUSTED"):
        sessions.keep(session, {"a": (np.zeros(1, np.uint8), "UINT8")})
    texts = np.array([b"x" * 2000], object)
    sessions.keep(session, {"k": (texts, "BYTES"), "a": (np.zeros(5000, np.uint8), "UINT8")})
    assert sessions.forget(session, ["a", "a"]).tensors == 1
    assert sessions.end(session).bytes > 2000
    sessions.keep(sessions.renew("t"), {"k": (np.zeros(10_000, np.uint8), "UINT8")})
    with pytest.raises(CallError, match="was ended"):
        sessions.keep(session, {"k": (texts, "BYTES")})


def test_what_models_promise() -> None:
    """A model's tensors are read off it, in its order."""
    facts = describe_tensors(Mixed())
    assert [str(spec) for spec in facts.inputs][:3] == ["FP16 [-1]", "BF16 [-1]", "INT4 [-1]"]
    assert facts.quantization == {"nibbles": {"scale": [0.5], "zero_point": [1]}}
    assert (describe_tensors(Count()).decoupled, describe_tensors(Slow()).decoupled) == (True, False)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"inputs": None}, "must be a dict of names"),
        ({"inputs": {"x": "FP32"}}, r"must be \(datatype, shape\)"),
        ({"inputs": {"x": ("FP99", [1])}}, "'FP99'; it must be one of BOOL"),
        ({"inputs": {"x": ("FP32", [None])}}, "a list of sizes, -1 for any"),
        ({"inputs": {"x": ("FP32", [-2])}}, "a list of sizes, -1 for any"),
        ({"inputs": {"x": ("FP32", [1] * 33)}}, "33 sides"),
        ({"inputs": {1: ("FP32", [1])}}, "must be"),
        ({"outputs": {}}, "outputs is empty"),
        ({"infer": None}, "has no method infer"),
        ({"decoupled": True}, "has no method stream"),
        ({"quantization": {"z": {"scale": [1]}}}, "names 'z'; the tensors are"),
        ({"quantization": {"number": {"scale": [0]}}}, "none of them 0"),
        ({"quantization": {"number": {"scale": [1, 2]}}}, "as many zero points|need an axis"),
        ({"quantization": {"number": {"zero_point": [1]}}}, "must have scale"),
        ({"quantization": {"number": {"scale": ["x"]}}}, "could not convert"),
    ],
)
def test_promises_that_are_none(attributes: dict[str, Any], words: str) -> None:
    """A model that does not say what it takes and gives, as it must, is not loaded."""
    model = type("Odd", (Slow,), attributes)()
    with pytest.raises(ModelLoadError, match=words):
        describe_tensors(model)


def test_a_thread_leaves_out_what_nobody_wants() -> None:
    """What is cancelled before its turn is not done; what raises does not end the thread."""

    async def story() -> list[object]:
        thread = ModelThread("t")
        done: list[object] = []
        held = asyncio.Event()
        loop = asyncio.get_running_loop()
        go = threading.Event()
        first = thread.submit(lambda: (loop.call_soon_threadsafe(held.set), go.wait()))
        await held.wait()
        second, third = thread.submit(lambda: done.append(2)), thread.submit(lambda: done.append(1 // 0))
        second.cancel()
        await asyncio.sleep(0)
        go.set()
        await first
        with pytest.raises(ZeroDivisionError):
            await third
        await thread.submit(lambda: done.append(4))
        thread.end()
        return done

    assert asyncio.run(story()) == [4]
