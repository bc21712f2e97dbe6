"""Tensors that stay on the server: by bytes on the wire, counted at a proxy, not by our own say-so."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import requests
from fault_kit import own_port
from server_kit import Server, until
from tensor_kit import Proxy, python, tensor_server

from predsession.errors import NotFoundError, PredSessionError, ServerFaultError, SourceError
from predsession.tensor import HTensor, TensorSession
from predsession.tensor.plan import Kept

FRAME = np.random.default_rng(0).integers(0, 255, (360, 640, 3), np.uint8)
SMALL = FRAME.reshape(45, 8, 80, 8, 3).mean((1, 3), np.float32)
LITTLE = 3000
"""Bytes of a call without its tensors, HTTP's headers and gRPC's tables among them."""
Scale = Callable[..., dict[str, Any]]


@contextmanager
def counted(doors: str, **options: Any) -> Iterator[tuple[TensorSession, Proxy]]:
    """Open a session whose bytes are counted, connected already."""
    with Proxy(doors) as proxy:
        host = f"{doors.partition('//')[0]}//{proxy.address}"
        with TensorSession(host, models=["scale", "sums"], **options) as session:
            session({"frame": FRAME[:8, :8]}, model_name="scale")
            yield session, proxy


def scale(session: TensorSession, frame: Any, **config: Any) -> dict[str, Any]:
    """Run the first model."""
    return session({"frame": frame}, config, "scale")


def test_a_fixed_input(doors: str) -> None:
    """Sent once; after `.data = other` once more; the same bytes, set again or in another tensor, never."""
    with counted(doors) as (session, proxy):
        fixed = HTensor(FRAME, ["cpu", "server"], "frame")
        steps: list[tuple[Any, bool]] = [
            (FRAME, True), (None, False), (None, False), (FRAME.copy(), False), (255 - FRAME, True),
            (None, False), (FRAME[:-8].copy(), True), (None, False),
        ]  # fmt: skip
        for data, travels in steps:
            if data is not None:
                fixed.data = data
            with proxy.counted() as bytes_:
                total = scale(session, fixed)["total"]
            assert total == fixed.data.sum(dtype=np.int64)
            assert (bytes_.up > fixed.data.nbytes) if travels else (bytes_.up < LITTLE)
        with proxy.counted() as bytes_:
            scale(session, HTensor(FRAME[:-8].copy(), "bpu", "frame"))
        assert bytes_.up < LITTLE
        scale(session, fixed)
        fixed.data[:] = 0  # what is changed in place is not seen until it is said
        assert scale(session, fixed)["total"] > 0
        fixed.data = fixed.data
        assert scale(session, fixed)["total"] == 0


def test_outputs(doors: str) -> None:
    """Dropped, here, kept, both: what travels down, and what is known of each."""
    with counted(doors) as (session, proxy):
        cases: list[tuple[dict[str, Any], bool]] = [
            ({"device": None}, False),
            ({"device": "cpu"}, True),
            ({"device": "server", "key": "k"}, False),
            ({"device": "bpu", "key": "k"}, False),
            ({"device": ["server", "cpu"], "key": "k"}, True),
        ]
        for config, travels in cases:
            with proxy.counted() as bytes_:
                small = scale(session, FRAME, small=config)["small"]
            assert isinstance(small, HTensor)
            assert (small.device, small.key) == (config["device"], config.get("key"))
            assert small.shape == SMALL.shape
            assert (bytes_.down > SMALL.nbytes) if travels else (bytes_.down < LITTLE)
            if travels:
                np.testing.assert_array_equal(small.data, SMALL)
                assert small.data.flags.writeable
            else:
                assert small.data is None


def test_a_chain(doors: str) -> None:
    """What one model gives another takes without the bytes crossing the wire, and the result is the same."""
    with counted(doors) as (session, proxy):
        plain = session({"small": scale(session, FRAME)["small"]}, model_name="sums")
        for _ in range(2):
            small = scale(session, FRAME, small={"device": "server", "key": "k"})["small"]
            with proxy.counted() as bytes_:
                found = session({"small": small}, model_name="sums")
            assert bytes_.up < LITTLE
            assert bytes_.down < LITTLE
            _alike(found, plain)
        both = scale(session, FRAME, small={"device": ["server", "cpu"], "key": "l"})["small"]
        with proxy.counted() as bytes_:
            _alike(session({"small": both}, model_name="sums"), plain)
        assert bytes_.up < LITTLE
        both.data = both.data * 2
        with proxy.counted() as bytes_:
            assert session({"small": both}, model_name="sums")["mean"] == pytest.approx(2 * plain["mean"])
        assert bytes_.up > SMALL.nbytes


def _alike(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Compare; where an array lies in memory, and with that the order of a sum, is the server's business."""
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5)


def test_a_key_that_is_read_and_written(doors: str) -> None:
    """A call may read a key and keep its own output under it."""
    with TensorSession(doors, models=["add"]) as session:
        one = np.ones((1, 4), np.float32)
        total = HTensor(one, ["cpu", "server"], "total")
        for number in range(2, 6):
            config = {"c": {"device": ["cpu", "server"], "key": "total"}, "d": {"device": None}}
            total = session({"a": total, "b": one}, config)["c"]
            assert total.data.tolist() == [[float(number)] * 4]


def test_calls_in_a_row_share_two_keys(doors: str) -> None:
    """Fifty frames through a chain of two models, all sent ahead, two keys in turn: each result its own."""
    config = [{"small": {"device": "server", "key": key}, "total": {"device": None}} for key in ("k0", "k1")]
    with TensorSession(doors, models=["scale", "sums"]) as session:
        futures = []
        for number in range(50):
            frame = np.full((16 + 8 * (number % 3), 16, 3), number, np.uint8)
            session.submit({"frame": frame}, config[number % 2], "scale")
            small = HTensor(None, "server", f"k{number % 2}")
            futures.append(session.submit({"small": small}, model_name="sums"))
        assert [float(future.result(30)["mean"][0]) for future in futures] == list(map(float, range(50)))


def test_a_fixed_input_that_changes_while_calls_are_on_their_way(doors: str) -> None:
    """What is set belongs to the calls after it, and to no other."""
    with TensorSession(doors, models=["scale"]) as session:
        fixed = HTensor(None, ["cpu", "server"], "frame")
        futures = []
        for number in range(30):
            if number % 3 == 0:
                fixed.data = np.full((8, 8, 3), number, np.uint8)
            futures.append(session.submit({"frame": fixed}))
        means = [float(future.result(30)["small"].mean()) for future in futures]
        assert means == [float(number - number % 3) for number in range(30)]


def test_one_tensor_of_many_threads(doors: str) -> None:
    """Threads that use one fixed input, and one that changes it: every result is of one of its values."""
    with TensorSession(doors, models=["scale"]) as session:
        fixed = HTensor(np.zeros((8, 8, 3), np.uint8), ["cpu", "server"], "frame")
        found: list[float] = []
        failed: list[BaseException] = []

        def use(changes: bool) -> None:
            try:
                for number in range(25):
                    if changes:
                        fixed.data = np.full((8, 8, 3), number, np.uint8)
                    found.extend(np.unique(session({"frame": fixed})["small"]).tolist())
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=use, args=(number == 0,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failed == []
        assert len(found) == 100, "each result is of one value only"
        assert float(session({"frame": fixed})["small"].mean()) == 24.0


def test_what_is_not_kept(doors: str) -> None:
    """A key of nobody's, of another session's, of a failed call's, or forgotten: an error that says so."""
    there = HTensor(None, "server", "k")
    with TensorSession(doors, models=["sums", "fail", "scale"]) as session:
        with pytest.raises(SourceError, match="does not keep: it keeps nothing"):
            session({"small": there}, model_name="sums")
        one = np.zeros(1, np.float32)
        with pytest.raises(ServerFaultError):
            session({"a": one}, {"b": {"device": "server", "key": "k"}}, "fail")
        with pytest.raises(SourceError, match="does not keep"):
            session({"small": there}, model_name="sums")
        scale(session, FRAME, small={"device": "server", "key": "k"})
        with (
            TensorSession(doors, models=["sums"]) as other,
            pytest.raises(SourceError, match="does not keep"),
        ):
            other({"small": there})
        with pytest.raises(SourceError, match="takes FP32; 'k2' on the server is INT64"):
            scale(session, FRAME, total={"device": "server", "key": "k2"})
            session({"small": HTensor(None, "server", "k2")}, model_name="sums")
        assert session({"small": there}, model_name="sums")["mean"].shape == (1,)
        session.forget("k", "never")
        with pytest.raises(SourceError, match="does not keep: it keeps 'k2'"):
            session({"small": there}, model_name="sums")


def test_a_reader_behind_a_writer_that_fails(doors: str) -> None:
    """A chained call that was sent ahead, and whose tensor never came: an error that says what happened."""
    with TensorSession(doors, models=["slow", "fail", "echo"], frame_timeout=20) as session:
        session.submit({"a": np.zeros(1, np.float32)}, {"b": {"device": "server", "key": "k"}}, "fail")
        with pytest.raises(SourceError, match=r"the call that was to keep it failed|does not keep"):
            session({"seconds": HTensor(None, "server", "k")}, model_name="slow")


def test_the_server_forgets_with_the_session(tensors: Server, doors: str) -> None:
    """`forget` frees a tensor on the server, and the end of a session all of them, at once."""

    def kept() -> int:
        told = requests.get(f"{tensors.url}/v2/predsession/sessions", timeout=10).json()["sessions"]
        return sum(int(each["tensors"]) for each in told)

    before = kept()
    with TensorSession(doors, models=["scale"]) as session:
        for key in "abc":
            scale(session, FRAME, small={"device": "server", "key": key})
        assert kept() == before + 3
        session.forget("a", "b")
        assert kept() == before + 1
    assert kept() == before


@pytest.fixture
def places() -> Iterator[tuple[str, int]]:
    """An address for gRPC and a port for HTTP, which a server that is started anew has again."""
    with own_port() as one, own_port() as http:
        yield f"127.0.0.1:{one}", http


def test_a_server_that_was_started_anew(places: tuple[str, int]) -> None:
    """Fixed inputs are sent again; what only the server had is an error that says what happened."""
    grpc, http = places
    fixed = HTensor(FRAME, ["cpu", "server"], "frame")
    config = {"small": {"device": "server", "key": "k"}}
    with tensor_server(grpc=grpc, port=http) as server:
        sessions = [
            TensorSession(host, models=["scale", "sums"], frame_timeout=30)
            for host in (f"grpc://{grpc}", f"http://127.0.0.1:{http}")
        ]
        smalls = [session({"frame": fixed}, config, "scale")["small"] for session in sessions]
        server.kill()
    with tensor_server(grpc=grpc, port=http):
        for session, small in zip(sessions, smalls, strict=True):
            until(lambda asked=session: _reached(asked), "the session to find the new server")
            with pytest.raises(NotFoundError, match=r"no longer keeps 'k': it was started anew.*Run"):
                session({"small": small}, model_name="sums")
            lost = session.submit({"frame": fixed}, config, "scale").result(30)["small"]
            session.forget("k")
            session._calling.table.put("k", Kept("FP32", SMALL.shape), lost.stamp)  # as if it were there
            with pytest.raises(NotFoundError, match="no longer keeps 'k'"):
                session.submit({"small": lost}, model_name="sums").result(30)
            future = session.submit({"frame": fixed}, config, "scale")
            assert future.result(30)["total"] == FRAME.sum(dtype=np.int64)
            mean = session({"small": small}, model_name="sums")["mean"]
            assert mean == pytest.approx(FRAME.mean(), rel=1e-4)
            session.close_server()


def _reached(session: TensorSession) -> bool:
    try:
        return session({"frame": FRAME[:8, :8]}, model_name="scale") is not None
    except PredSessionError:
        return False


STOPPED = """
import sys
import numpy as np
from predsession.tensor import HTensor, TensorSession
frame = np.full((8, 8, 3), 7, np.uint8)
with TensorSession(sys.argv[1], models=["scale", "sums"], server_timeout=0.02) as session:
    fixed = HTensor(frame, ["cpu", "server"], "frame")
    config = {"small": {"device": "server", "key": "k"}}
    small = session({"frame": fixed}, config, "scale")["small"]
    print("kept", flush=True)
    sys.stdin.readline()
    try:
        session({"small": small}, model_name="sums")
    except Exception as error:
        print(type(error).__name__, "no longer keeps 'k'" in str(error))
    print(session({"frame": fixed}, config, "scale")["total"].tolist())
    print(session({"small": small}, model_name="sums")["mean"].tolist(), flush=True)
"""


def test_a_lease_that_ran_out(tensors: Server) -> None:
    """A process that was stopped for longer than its lease: as if the server had been started anew."""

    def sessions() -> int:
        return len(requests.get(f"{tensors.url}/v2/predsession/sessions", timeout=10).json()["sessions"])

    before = sessions()
    child = python(STOPPED, f"grpc://{tensors.oip[0]}")
    assert child.stdout is not None
    assert child.stdout.readline() == "kept\n", child.communicate()[1]
    os.kill(child.pid, signal.SIGSTOP)
    until(lambda: sessions() == before, "the lease to run out")
    os.kill(child.pid, signal.SIGCONT)
    out, errors = child.communicate("go\n", timeout=60)
    assert out == "NotFoundError True\n[1344]\n[7.0]\n", errors
