"""Calls with named tensors: what goes in comes out, checked before it is sent; many at once."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensor_models
from fault_kit import own_port
from server_kit import Server, until
from tensor_kit import Proxy, tensor_server

from predsession.errors import (
    NotFoundError,
    PredSessionError,
    RequestTimeoutError,
    ServerFaultError,
    SessionClosedError,
    SourceError,
)
from predsession.tensor import HTensor, TensorSession

WORDS = np.array([b"", "gr\u00fc\u00df".encode(), b"\x00\xff"], object)


def _mixed(count: int) -> dict[str, Any]:
    """Return an input of each odd datatype."""
    return {
        "half": np.linspace(-1, 1, count, dtype=np.float16),
        "brain": np.linspace(-1, 1, count, dtype=np.float32).astype(ml_dtypes.bfloat16),
        "nibbles": (np.arange(count) % 16 - 8).astype(np.int8),
        "words": WORDS[:count],
        "flags": np.arange(2 * count).reshape(count, 2) % 3 == 0,
        "big": np.array(2**64 - 1, np.uint64),
    }


@pytest.mark.parametrize("count", [3, 1, 0])
def test_every_datatype(doors: str, count: int) -> None:
    """Half precision, four bits, texts, truth values, no sides and no elements: as they went in, writable."""
    data = _mixed(count)
    with TensorSession(doors, models=["mixed"]) as session:
        results = session(data)
    assert list(results) == list(data)
    for name, array in results.items():
        assert isinstance(array, np.ndarray)
        assert (array.dtype, array.shape) == (data[name].dtype, data[name].shape), name
        assert array.tolist() == data[name].tolist(), name
        assert array.flags.writeable, name


def test_every_number(doors: str) -> None:
    """Each of the protocol's numbers, and in any order of memory and of bytes."""
    kinds = {
        name: np.dtype(name.replace("fp", "float")) for name in
        ("fp16", "fp32", "fp64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    }  # fmt: skip
    data = {name: (np.arange(12) * 7).astype(kind.newbyteorder(">"))[::-3] for name, kind in kinds.items()}
    data |= {"bool": np.array([True, False]), "bytes": np.array(["a", "bc"])}
    with TensorSession(doors, models=["echo"]) as session:
        results = session(data)
    for name, kind in kinds.items():
        assert results[f"{name}_out"].dtype == kind
        assert results[f"{name}_out"].tolist() == data[name].tolist()
    assert results["bytes_out"].tolist() == [b"a", b"bc"]


def test_scales(doors: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a model takes and gives is told with its scales, and shown."""
    with TensorSession(doors, models=["signed", "sums"]) as session:
        info = session.get_input_info("signed")
        assert dict(info["x"]) == {
            "valid_shape": [-1, 3], "tensor_type": "DATA_TYPE_S8", "quanti_type": "QUANTI_TYPE_SCALE",
            "quantizeAxis": 1, "scale_data": [0.5, 0.25, 2.0], "zero_point_data": [0, 3, -5],
        }  # fmt: skip
        assert session.get_output_info("signed")["y"]["quantizeAxis"] == -1
        assert dict(session.get_output_info("sums")["mean"])["quanti_type"] == "QUANTI_TYPE_NONE"
        assert session.get_model_names() == ["signed", "sums"]
        session.show_input_output_info("signed")
        assert capsys.readouterr().out.splitlines() == [
            "signed",
            "  input  valid_shape  tensor_type   quanti_type        scales",
            "  x      [-1, 3]      DATA_TYPE_S8  QUANTI_TYPE_SCALE  3, axis 1",
            "  output  valid_shape  tensor_type   quanti_type        scales",
            "  y       [-1, 3]      DATA_TYPE_S8  QUANTI_TYPE_SCALE  0.5, zero point 1",
        ]
        session.show_input_output_info()
        assert {"signed", "sums"} <= set(capsys.readouterr().out.split())
        for ask in (
            session.get_input_info,
            session.get_output_info,
            lambda name: session({}, model_name=name),
        ):
            with pytest.raises(SourceError, match="model_name is 'net'; this session has 'signed', 'sums'"):
                ask("net")
            with pytest.raises(SourceError, match="model_name is needed: this session has 'signed', 'sums'"):
                ask(None)


def test_mistakes_are_found_before_anything_is_sent(doors: str) -> None:
    """Names, shapes, dtypes, configurations: an error, and not a byte on the way."""
    with (
        Proxy(doors) as proxy,
        TensorSession(doors.partition("//")[0] + "//" + proxy.address, models=["add", "count"]) as session,
    ):
        good = np.zeros((4096, 4), np.float32)
        assert session({"a": good, "b": good}, model_name="add")["c"].shape == (4096, 4)
        calls: list[tuple[Any, Any, Any]] = [
            ({"a": good}, None, "add"),
            ({"a": good, "b": good, "c": good}, None, "add"),
            ({"a": good, "b": good[:, :3]}, None, "add"),
            ({"a": good, "b": good.astype(np.float64)}, None, "add"),
            ({"a": good, "b": good.tolist()}, None, "add"),
            ({"a": good, "b": HTensor(None, "server", "k")}, None, "add"),
            ({"a": good, "b": good}, {"x": {"device": None}}, "add"),
            ({"a": good, "b": good}, {"c": {"device": "server"}}, "add"),
            ({"a": good, "b": good}, None, "sub"),
            ({"a": good, "b": good}, None, None),
        ]
        with proxy.counted() as bytes_:
            for data, config, name in calls:
                with pytest.raises(SourceError):
                    session(data, config, name)
                with pytest.raises(SourceError):
                    session.submit(data, config, name)
            with pytest.raises(SourceError, match="idle_timeout"):
                session.stream({"n": np.array(1), "fail_at": np.array(9)}, "count", idle_timeout=0)
            depths: list[Any] = [0, "4", 1.5]
            for depth in depths:
                with pytest.raises(SourceError, match="depth"):
                    session.map([], depth=depth)
        assert bytes_.up < 100, "gRPC's own signs of life at most"


def test_an_element_that_is_none(doors: str) -> None:
    """A text tensor with a number in it is the caller's mistake."""
    data = {**_mixed(1), "words": np.array([5], object)}
    with TensorSession(doors, models=["mixed"]) as session:
        with pytest.raises(SourceError, match="'words': an element of a BYTES tensor is int"):
            session(data)
        assert session(_mixed(1))["words"].tolist() == [b""]


def test_a_model_that_fails(doors: str) -> None:
    """The server's own words, and which model; the session goes on."""
    with TensorSession(doors, models=["fail", "add"]) as session:
        one = np.ones((1, 4), np.float32)
        with pytest.raises(ServerFaultError, match="this model always fails") as caught:
            session({"a": one[0, :1]}, model_name="fail")
        assert "model 'fail'" in caught.value.__notes__
        with pytest.raises(ServerFaultError, match="this model always fails"):
            session.submit({"a": one[0, :1]}, model_name="fail").result(30)
        assert session({"a": one, "b": one}, model_name="add")["c"].tolist() == [[2.0] * 4]


def test_a_call_that_takes_too_long(doors: str) -> None:
    """`frame_timeout` bounds a call, waited for or not; the next one goes well."""
    with TensorSession(doors, models=["slow"], frame_timeout=0.3) as session:
        long, short = ({"seconds": np.array([value], np.float32)} for value in (1.5, 0.0))
        with pytest.raises(RequestTimeoutError, match=r"within 0\.3 s"):
            session(long)
        with pytest.raises(RequestTimeoutError, match=r"within 0\.3 s"):
            session.submit(long).result(30)
        until(lambda: _answers(session, short), "the model to be free")


def _answers(session: TensorSession, data: Any) -> bool:
    try:
        session(data)
    except PredSessionError:
        return False
    return True


@pytest.mark.parametrize("compress", ["NONE", "IN", "INOUT"])
def test_compression(doors: str, compress: str) -> None:
    """IN makes requests small, INOUT replies as well; results are the same."""
    even = np.zeros((4096, 4), np.float32)
    with (
        Proxy(doors) as proxy,
        TensorSession(
            doors.partition("//")[0] + "//" + proxy.address, models=["add"], compress_option=compress
        ) as session,
    ):
        session({"a": even, "b": even})
        with proxy.counted() as bytes_:
            assert not session({"a": even, "b": even})["c"].any()
    assert (bytes_.up < even.nbytes) == (compress != "NONE")
    assert (bytes_.down < even.nbytes) == (compress == "INOUT")


# -- many at once ----------------------------------------------------------------------------------


def _pair(number: int) -> dict[str, Any]:
    return {"a": np.full((1, 4), number, np.float32), "b": np.ones((1, 4), np.float32)}


def test_many_calls_in_order(doors: str) -> None:
    """`map` gives results in the source's order, and each the right one; so do futures."""
    with TensorSession(doors, models=["add"]) as session:
        found = [result["c"][0, 0] for result in session.map(map(_pair, range(60)), depth=7)]
        assert found == [number + 1 for number in range(60)]
        futures = [session.submit(_pair(number)) for number in range(60)]
        assert [future.result(30)["c"][0, 0] for future in futures] == found


def test_a_source_that_fails(doors: str) -> None:
    """What was sent before comes first, then the source's error, or that of data that does not fit."""

    def source() -> Iterator[Any]:
        yield from map(_pair, range(5))
        raise KeyError("mine")

    with TensorSession(doors, models=["add"]) as session:
        results = session.map(source())
        assert [next(results)["c"][0, 0] for _ in range(5)] == [1, 2, 3, 4, 5]
        with pytest.raises(KeyError, match="mine"):
            next(results)
        wrong = session.map([_pair(0), {"a": 1}])
        assert next(wrong)["c"][0, 0] == 1
        with pytest.raises(SourceError, match="missing 'b'"):
            next(wrong)


def test_leaving_early(doors: str) -> None:
    """A loop that is left takes no more from its source, and the session goes on."""
    taken: list[int] = []

    def source() -> Iterator[Any]:
        for number in range(1000):
            taken.append(number)
            yield _pair(number)

    with TensorSession(doors, models=["add"]) as session:
        for result in session.map(source(), depth=3):
            if result["c"][0, 0] == 3:
                break
        assert len(taken) < 20
        assert session(_pair(9))["c"][0, 0] == 10


def test_a_future_that_is_cancelled(doors: str) -> None:
    """It is cancelled at once; calls after it go well, one with the same key too."""
    with TensorSession(doors, models=["slow"]) as session:
        config = {"slept": {"device": "server", "key": "k"}}
        seconds = [{"seconds": np.array([value], np.float32)} for value in (0.5, 0.0)]
        future = session.submit(seconds[0], config)
        assert future.cancel()
        with pytest.raises(CancelledError):
            future.result(10)
        assert session(seconds[1], config)["slept"].shape == (1,)


def test_a_call_from_a_callback(doors: str) -> None:
    """What is done with a result may be the next call, of the same keys."""
    with TensorSession(doors, models=["add"]) as session:
        config = {"c": {"device": ["server", "cpu"], "key": "k"}}
        done = threading.Event()
        found: list[Any] = []

        def next_one(future: Any) -> None:
            found.append(future.result()["c"].data[0, 0])
            if len(found) < 5:
                session.submit(_pair(len(found)), config).add_done_callback(next_one)
            else:
                done.set()

        session.submit(_pair(0), config).add_done_callback(next_one)
        assert done.wait(30)
        assert found == [1, 2, 3, 4, 5]


def test_many_calls_leave_nothing(doors: str) -> None:
    """Threads, open files and memory are after many calls what they were after a few."""

    def calls(session: TensorSession, count: int) -> None:
        config = {"c": {"device": "server", "key": "k"}, "d": {"device": None}}
        for number, _ in enumerate(session.map(map(_pair, range(count)), config)):
            if number % 50 == 0:
                session.submit(_pair(number)).cancel()

    with TensorSession(doors, models=["add"], with_profile=True) as session:
        calls(session, 100)
        gc.collect()
        before = _open_files(), threading.active_count(), len(gc.get_objects())
        calls(session, 300)
        gc.collect()
        until(lambda: threading.active_count() <= before[1], "threads to end")
        assert _open_files() <= before[0] + 2
        assert len(gc.get_objects()) < before[2] + 300, "less than one object a call"


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_server_that_dies() -> None:
    """Calls on their way end with an error of the package's own; so do those after, and the end goes well."""
    config = {"slept": {"device": "server", "key": "k"}}
    with tensor_server() as server:
        sessions = [
            TensorSession(host, models=["slow"], frame_timeout=20)
            for host in (f"grpc://{server.oip[0]}", server.url)
        ]
        futures = []
        for session in sessions:
            assert session({"seconds": np.zeros(1, np.float32)}, config)["slept"].shape == (1,)
        for session in sessions:
            futures += [session.submit({"seconds": np.full(1, 15, np.float32)}) for _ in range(2)]
        server.kill()
        for future in futures:
            with pytest.raises(PredSessionError):
                future.result(30)
        for session in sessions:
            with pytest.raises(PredSessionError):
                session({"seconds": np.zeros(1, np.float32)})
            session.close_server()


def test_after_the_end(doors: str) -> None:
    """A session that was closed says so; what was on its way ends, with a result or an error."""
    session = TensorSession(doors, models=["slow"])
    data = {"seconds": np.full(1, 0.3, np.float32)}
    futures = [session.submit(data, {"slept": {"device": "server", "key": str(n)}}) for n in range(3)]
    session.close_server()
    session.close_server()
    for future in futures:
        error = future.exception(30)
        assert error is None or isinstance(error, SessionClosedError), repr(error)
    for call in (
        lambda: session(data),
        lambda: session.submit(data),
        lambda: next(session.map([data])),
        lambda: session.stream(data),
        lambda: session.forget("0"),
    ):
        with pytest.raises(SessionClosedError, match="has ended this session"):
            call()
    assert session.get_model_names() == ["slow"]
    assert repr(session).endswith(", closed>")


def test_a_session_over_nothing() -> None:
    """Where nobody listens that is said, with the address."""
    with own_port() as port:
        for host in (f"grpc://127.0.0.1:{port}", f"http://127.0.0.1:{port}"):
            with pytest.raises(PredSessionError, match=str(port)):
                TensorSession(host, models=["net"])


def test_unix_socket(tensors: Server) -> None:
    """An address may be a socket of this machine's."""
    with TensorSession(tensors.oip[1], models=["add"]) as session:
        assert session(_pair(1))["c"][0, 0] == 2


def test_mistakes_in_the_opening_are_found_first(tmp_path: Path) -> None:
    """Models and options that cannot be are refused before anybody is asked."""
    nobody = "127.0.0.1:9"
    (tmp_path / "net.onnx").write_bytes(tensor_models.identity())
    (tmp_path / "net.txt").write_text("no")
    (tmp_path / "bare").mkdir()
    net = tmp_path / "net.onnx"
    options: list[tuple[dict[str, Any], str]] = [
        ({"local_model_path": tmp_path / "none.onnx"}, "there is no such model"),
        ({"local_model_path": tmp_path / "net.txt"}, r"is no \.onnx file"),
        ({"local_model_path": tmp_path / "bare"}, "is no model's folder"),
        ({"local_model_path": []}, "local_model_path is empty"),
        ({"local_model_path": [net, net]}, "'net' more than once"),
        ({"local_model_path": net, "models": ["a"]}, "pass one of the two"),
        ({"models": []}, "models is"),
        ({"models": 5}, "models is 5"),
        ({"local_model_path": 5}, "local_model_path is 5"),
        ({"models": ["a", "b", "a"]}, "models has 'a' more than once: 'a', 'b', 'a'"),
        ({"models": ["a", 5]}, "wanted names"),
        ({"core_id": "0"}, "core_id"),
        ({"remote_environment": {"a": 1}}, "remote_environment"),
        ({"frame_timeout": 0}, "frame_timeout"),
        ({"frame_timeout": "5"}, "frame_timeout"),
        ({"compress_option": "OUT"}, "compress_option"),
        ({"server_timeout": -1}, "server_timeout"),
        ({"grpc_port": 70000}, "leave out one of the two"),
    ]
    for each, text in options:
        with pytest.raises(SourceError, match=text):
            TensorSession(nobody, **each)
    with pytest.raises(SourceError, match="needs a host"):
        TensorSession()


def test_unknown_models(doors: str) -> None:
    """A name that the server does not have is an error that lists those it has."""
    with pytest.raises(SourceError, match=r"'nope' is not ready.*'scale', 'sums'"):
        TensorSession(doors, models=["add", "nope"])


def test_one_model_by_name(doors: str) -> None:
    """A single name is a model, not its letters; without names the session has all that are ready."""
    with TensorSession(doors, models="add") as session:
        assert session.get_model_names() == ["add"]
    with TensorSession(doors) as session:
        assert {"pixels", "add", "mixed", "endless"} <= set(session.get_model_names())


def test_not_found_is_an_error(doors: str) -> None:
    """A model that went away in between is the server's own error."""
    with TensorSession(doors, models=["add"]) as session:
        session._book._facts["add"] = session._book.facts("add").__class__("gone", (), "", (), ())
        with pytest.raises(NotFoundError, match="gone"):
            session({"a": np.zeros(1, np.float32)})
