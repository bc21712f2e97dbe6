"""Our tensor client on Triton and MLServer: tensors that stay, by bytes at a proxy; what the dead leave."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
from interop.oip.test_our_client_calls import FRAME, ONE, SMALL, options
from interop.oip.theirs import Theirs
from server_kit import until
from tensor_kit import Proxy

from predsession.errors import InvalidRequestError, PredSessionError, RequestTimeoutError, ResponseError
from predsession.tensor import HTensor, TensorSession
from predsession.tensor.grpcdoor import GrpcDoor
from predsession.tensor.httpdoor import HttpDoor

LITTLE = 4000
SHARED = Path("/dev/shm")


@pytest.fixture(autouse=True)
def _ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test takes down is nobody else's."""
    monkeypatch.setenv("PREDSESSION_LEDGER", str(tmp_path / "ledger"))


@pytest.fixture(params=["grpc", "http"])
def way(request: pytest.FixtureRequest) -> str:
    """Both ways, one after the other."""
    found: str = request.param
    return found


def regions(triton: Theirs) -> set[str]:
    """Return the regions of ours that Triton knows, and those that are in memory."""
    url = f"{triton.http}/v2/systemsharedmemory/status"
    listed = requests.get(url, headers=triton.headers, timeout=10).json()
    known = {each["name"] for each in listed if each["name"].startswith("predsession-")}
    return known | {each.name for each in SHARED.glob("predsession-*")}


@pytest.fixture
def clean(triton: Theirs, tmp_path: Path) -> Iterator[None]:
    """Triton, which afterwards has no region of ours, nor has this machine; and the ledger is empty."""
    assert regions(triton) == set()
    yield
    assert regions(triton) == set()
    assert list((tmp_path / "ledger").glob("*")) == []


@contextmanager
def counted(server: Theirs, way: str, **more: Any) -> Iterator[tuple[TensorSession, Proxy]]:
    """Open a session whose bytes are counted, connected already."""
    found = options(server, way)
    with Proxy(found["host"]) as proxy:
        found["host"] = f"{way}://{proxy.address}"
        with TensorSession(**found, models=["scale", "sums"], **more) as session:
            session({"frame": FRAME[:8, :8]}, model_name="scale")
            yield session, proxy


def scale(session: TensorSession, frame: Any, **config: Any) -> dict[str, Any]:
    """Run the first model."""
    return session({"frame": frame}, config, "scale")


def test_bytes_that_do_not_travel(triton: Theirs, clean: None, way: str) -> None:
    """Triton on this machine: fixed inputs once, kept and dropped outputs never, chains through memory."""
    with counted(triton, way) as (session, proxy):
        fixed = HTensor(FRAME, ["cpu", "server"], "frame")
        scale(session, fixed)
        for data, sent in ((None, False), (FRAME.copy(), False), (255 - FRAME, True), (None, False)):
            if data is not None:
                fixed.data = data
            with proxy.counted() as bytes_:
                found = scale(session, fixed, small={"device": None}, total={"device": "cpu"})
            assert found["total"].data == fixed.data.sum(dtype=np.int64)
            # Through memory, all of it: what changes is written there, and does not cross the wire either.
            assert bytes_.up < LITTLE, sent
            assert bytes_.down < LITTLE
        fixed.data = FRAME
        config = {"small": {"device": "server", "key": "k"}, "total": {"device": None}}
        first = scale(session, fixed, **config)["small"]
        assert (first.shape, first.data) == (SMALL.shape, None)
        with proxy.counted() as bytes_:
            small = scale(session, fixed, **config)["small"]
            sums = session({"small": small}, model_name="sums")
        assert (bytes_.up < LITTLE, bytes_.down < LITTLE) == (True, True)
        np.testing.assert_allclose(sums["mean"], SMALL.mean(), rtol=1e-5)
        both = scale(session, fixed, small={"device": ["server", "cpu"], "key": "k"})["small"]
        np.testing.assert_allclose(both.data, SMALL, rtol=1e-5)
        assert both.data.flags.writeable


def test_the_same_results_without_regions(
    mlserver: Theirs, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """MLServer keeps nothing: it is done on this side, the results are the same, and it is said once."""
    with caplog.at_level(logging.WARNING, "predsession.tensor"), counted(mlserver, way) as (session, _):
        found = scale(session, FRAME, small={"device": None}, total={"device": "cpu"})
        assert caplog.records == [], "what is not kept needs nobody who keeps"
        assert (found["small"].data, found["small"].shape) == (None, SMALL.shape)
        fixed = HTensor(FRAME, ["cpu", "server"], "frame")
        for number in range(3):
            fixed.data = FRAME
            small = scale(session, fixed, small={"device": "server", "key": "k"})["small"]
            assert (small.shape, small.data) == (SMALL.shape, None)
            mean = session({"small": small}, model_name="sums")["mean"]
            np.testing.assert_allclose(mean, fixed.data.mean(), rtol=1e-4)
            fixed.data = np.full((8, 8 * (number + 1), 3), number, np.uint8)
            config = {"small": {"device": "server", "key": "k"}}
            again = scale(session, fixed, **config)["small"]
            assert again.shape == (1, number + 1, 3)
            assert session({"small": again}, model_name="sums")["mean"] == number
    (record,) = caplog.records
    assert "keeps no tensors for us: they are kept here, and sent with each call" in record.getMessage()


def test_a_triton_that_does_not_see_our_memory(
    triton: Theirs, clean: None, way: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine, another container: the same as without regions."""

    def refuse(*_: object) -> None:
        raise InvalidRequestError("Unable to open shared memory region", status=400)

    for door in (GrpcDoor, HttpDoor):
        monkeypatch.setattr(door, "register", refuse)
    with caplog.at_level(logging.WARNING, "predsession.tensor"), counted(triton, way) as (session, proxy):
        with proxy.counted() as bytes_:
            small = scale(session, HTensor(FRAME, "server", "f"), small={"device": "server", "key": "k"})[
                "small"
            ]
        assert bytes_.up > FRAME.nbytes
        assert session({"small": small}, model_name="sums")["mean"] == pytest.approx(FRAME.mean(), rel=1e-4)
    assert len(caplog.records) == 1


def test_a_key_that_is_read_and_written(triton: Theirs, clean: None, way: str) -> None:
    """A call may read a key and keep its own output under it, fifty times in a row, sent ahead."""
    with TensorSession(**options(triton, way), models=["add"]) as session:
        total = HTensor(ONE, ["cpu", "server"], "total")
        config = {"c": {"device": ["server", "cpu"], "key": "total"}, "d": {"device": None}}
        session({"a": total, "b": ONE}, config)
        there = HTensor(None, "server", "total")
        futures = [session.submit({"a": there, "b": ONE}, config) for _ in range(50)]
        found = [float(future.result(30)["c"].data[0, 0]) for future in futures]
        assert found == [float(number) for number in range(3, 53)]


def test_calls_in_a_row_share_two_keys(theirs: Theirs, way: str) -> None:
    """Frames through a chain of two models, all sent ahead, two keys in turn: each result its own."""
    with TensorSession(**options(theirs, way), models=["scale", "sums"]) as session:
        futures = []
        for number in range(20):
            frame = np.full((16 + 8 * (number % 3), 16, 3), number, np.uint8)
            key = f"k{number % 2}"
            config = {"small": {"device": "server", "key": key}, "total": {"device": None}}
            session.submit({"frame": frame}, config, "scale")
            futures.append(session.submit({"small": HTensor(None, "server", key)}, model_name="sums"))
        assert [float(future.result(30)["mean"][0]) for future in futures] == list(map(float, range(20)))


def test_calls_that_fail_leave_no_region(triton: Theirs, clean: None, way: str) -> None:
    """Refused, too late, cancelled, closed under way: Triton lives, and has no region of ours in the end."""
    with TensorSession(**options(triton, way), models=["fail", "slow"], frame_timeout=0.5) as session:
        for number in range(3):
            with pytest.raises(ResponseError):
                session({"a": ONE[0, :1]}, {"b": {"device": "server", "key": f"b{number}"}}, "fail")
        config = {"slept": {"device": ["server", "cpu"], "key": "k"}}
        seconds = HTensor(np.array([1.0], np.float32), ["cpu", "server"], "s")
        with pytest.raises(RequestTimeoutError):
            session({"seconds": seconds}, config, "slow")
        seconds.data = np.array([0.0], np.float32)
        until(lambda: _goes(session, seconds, config), "Triton to be free")
        seconds.data = np.array([0.25], np.float32)
        session.submit({"seconds": seconds}, config, "slow").cancel()
        session.submit({"seconds": seconds}, config, "slow")


def _goes(session: TensorSession, seconds: HTensor, config: Any) -> bool:
    try:
        return session({"seconds": seconds}, config, "slow")["slept"].data == 0
    except PredSessionError:
        return False


def test_forget(triton: Theirs, clean: None, way: str) -> None:
    """A forgotten tensor's region is gone at once, or as soon as Triton lets go."""
    with TensorSession(**options(triton, way), models=["scale"]) as session:
        for key in "ab":
            scale(session, HTensor(FRAME, "server", key))
        before = regions(triton)
        assert len(before) == 2
        session.forget("a")
        scale(session, HTensor(FRAME, "server", "c"))
        until(lambda: len(regions(triton)) == 2, "one to go, and one to come")


def test_a_triton_that_forgot_its_regions(triton: Theirs, clean: None, way: str) -> None:
    """As after a restart: fixed inputs and chains go on, for what is in memory is still there."""
    with TensorSession(**options(triton, way), models=["scale", "sums"]) as session:
        fixed = HTensor(FRAME, ["cpu", "server"], "frame")
        config = {"small": {"device": "server", "key": "k"}}
        small = [scale(session, fixed, **config)["small"] for _ in range(2)][-1]

        def forget() -> None:
            url = f"{triton.http}/v2/systemsharedmemory/unregister"
            until(lambda: requests.post(url, headers=triton.headers, timeout=10).ok, "no region to be in use")

        forget()
        mean = session({"small": small}, model_name="sums")["mean"]
        np.testing.assert_allclose(mean, SMALL.mean(), rtol=1e-5)
        forget()
        assert session.submit({"frame": fixed}, config, "scale").result(30)["total"] == FRAME.sum(
            dtype=np.int64
        )
