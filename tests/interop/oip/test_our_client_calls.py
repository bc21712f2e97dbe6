"""Our tensor client on the real Triton and the real MLServer: calls, facts, times, streams, options."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
from interop.oip.loadable import write_model
from interop.oip.theirs import Theirs

from predsession.errors import RequestTimeoutError, ResponseError, SourceError
from predsession.tensor import TensorSession

FRAME = np.random.default_rng(0).integers(0, 256, (120, 160, 3), np.uint8)
SMALL = FRAME.reshape(15, 8, 20, 8, 3).mean((1, 3), np.float32)
ONE = np.ones((1, 4), np.float32)


@pytest.fixture(autouse=True)
def _ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test takes down is nobody else's."""
    monkeypatch.setenv("PREDSESSION_LEDGER", str(tmp_path / "ledger"))


@pytest.fixture(params=["grpc", "http"])
def way(request: pytest.FixtureRequest) -> str:
    """Both ways, one after the other."""
    found: str = request.param
    return found


def options(server: Theirs, way: str) -> dict[str, Any]:
    """Return where a server is, and what lets a call in."""
    if way == "grpc":
        return {"host": f"grpc://{server.grpc}", "headers": dict(server.metadata)}
    return {"host": server.http, "headers": server.headers}


def opened(server: Theirs, way: str, *models: str, **more: Any) -> TensorSession:
    """Open a session."""
    return TensorSession(**options(server, way), models=models, **more)


def test_results(theirs: Theirs, way: str) -> None:
    """Two models in one session, waited for, sent ahead and mapped; results writable."""
    with opened(theirs, way, "scale", "add") as session:
        found = session({"frame": FRAME}, model_name="scale")
        np.testing.assert_allclose(found["small"], SMALL, rtol=1e-5)
        assert found["total"].tolist() == [FRAME.sum(dtype=np.int64)]
        assert found["small"].flags.writeable
        pairs = [{"a": ONE * number, "b": ONE} for number in range(12)]
        assert [each["c"][0, 0] for each in session.map(pairs, model_name="add", depth=5)] == list(
            range(1, 13)
        )
        futures = [session.submit(pair, model_name="add") for pair in pairs]
        assert [future.result(30)["d"][0, 0] for future in futures] == list(range(-1, 11))


@pytest.mark.parametrize("compress", ["IN", "INOUT"])
def test_compression(theirs: Theirs, way: str, compress: str) -> None:
    """Compressed calls give the same results, on servers that know nothing of ours."""
    with opened(theirs, way, "scale", compress_option=compress) as session:
        np.testing.assert_allclose(session({"frame": FRAME})["small"], SMALL, rtol=1e-5)


def test_datatypes(triton: Theirs, way: str) -> None:
    """Every datatype of Triton's, and inputs that may be left out."""
    data = {
        name: np.arange(5).astype(name.replace("fp", "float"))
        for name in ("fp16", "fp32", "fp64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint64")
    }
    data |= {"bool": np.array([True, False]), "bytes": np.array([b"", b"\x00\xff", "ü".encode()], object)}
    with opened(triton, way, "echo") as session:
        assert [info["valid_shape"] for info in session.get_input_info().values()] == [[-1]] * 13
        for name, array in data.items():
            found = session({name: array})
            assert list(found) == [f"{name}_out"]
            assert found[f"{name}_out"].dtype == array.dtype
            assert found[f"{name}_out"].tolist() == array.tolist()
        with pytest.raises(SourceError, match="unknown 'no'"):
            session({"no": ONE})


def test_facts(theirs: Theirs, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Shapes and datatypes of both; scales where the server's configuration carries them."""
    with opened(theirs, way, "scale", "add") as session:
        info = session.get_output_info("scale")["small"]
        scaled = {
            "quanti_type": "QUANTI_TYPE_SCALE",
            "quantizeAxis": -1,
            "scale_data": [0.5],
            "zero_point_data": [0],
        }
        wanted = scaled if theirs.name == "triton" else {"quanti_type": "QUANTI_TYPE_NONE"}
        assert dict(info) == {"valid_shape": [-1, -1, 3], "tensor_type": "DATA_TYPE_F32", **wanted}
        assert session.get_input_info("add")["a"]["valid_shape"] == [-1, 4]
        session.show_input_output_info()
        assert "DATA_TYPE_U8" in capsys.readouterr().out


def test_times(theirs: Theirs, way: str) -> None:
    """Triton's counters give the server's parts, which add up; MLServer tells none, and none are invented."""
    with opened(theirs, way, "slow", with_profile=True) as session:
        for _ in range(2):
            session({"seconds": np.array([0.02], np.float32)})
        last, every = session.get_profile_last_frame(), session.get_profile()
    if theirs.name == "mlserver":
        assert set(last) == set(every) == {"frame_duration", "sd2rv_duration"}
        return
    for times in (last, {key: each["avg"] for key, each in every.items()}):
        board = times["prepr_duration"] + times["infer_duration"] + times["pospr_duration"]
        assert times["board_duration"] == pytest.approx(board, rel=1e-9)
        whole = times["commu_duration"] + times["board_duration"]
        assert times["sd2rv_duration"] == pytest.approx(whole, rel=1e-9)
        assert times["infer_duration"] >= 20


def test_times_that_may_not_be_asked_for(triton: Theirs, way: str) -> None:
    """Where the counters are somebody else's, the result is there, and of the times what is known here."""
    with TensorSession(options(triton, way)["host"], models=["add"], with_profile=True) as session:
        assert session({"a": ONE, "b": ONE})["c"][0, 0] == 2
        assert set(session.get_profile()) == {"frame_duration", "sd2rv_duration"}


def test_errors(theirs: Theirs, way: str) -> None:
    """A model that fails, one that is not there, one that takes too long: the package's own errors."""
    with opened(theirs, way, "fail") as session:
        said = "always fails" if way == "grpc" else "answered 500"  # MLServer says no more than that
        with pytest.raises(ResponseError, match=said) as caught:
            session({"a": ONE[0, :1]})
        assert "model 'fail'" in caught.value.__notes__
        with pytest.raises(SourceError, match="takes shape"):
            session({"a": ONE})
    # Of its own: MLServer hangs up after such a failure, which the next call may run into.
    with opened(theirs, way, "slow", frame_timeout=0.5) as session, pytest.raises(RequestTimeoutError):
        session({"seconds": np.array([1.0], np.float32)})
    with pytest.raises(SourceError, match="'nope' is not ready"):
        opened(theirs, way, "nope")


def test_streams(theirs: Theirs) -> None:
    """Answers in order, several streams, cancel from another thread, silence, and an error: on both wires."""
    several = {"n": np.array([4]), "pause": np.array([0.0], np.float32)}
    with opened(theirs, "grpc", "counter", "add") as session:
        assert [int(each["i"][0]) for each in session.stream(several, "counter")] == [0, 1, 2, 3]
        endless = {"n": np.array([10_000]), "pause": np.array([0.02], np.float32)}
        stream = session.stream(endless, "counter")
        assert next(stream)["i"].flags.writeable
        timer = threading.Timer(0.1, stream.cancel)
        timer.start()
        assert len(list(stream)) < 1000
        timer.join()
        with (
            session.stream({"n": np.array([2]), "pause": np.array([1.0], np.float32)}, "counter",
                idle_timeout=0.3) as slow,
            pytest.raises(RequestTimeoutError, match=r"no answer within 0\.3 s"),
        ):  # fmt: skip
            list(slow)
    with opened(theirs, "http", "counter") as session, pytest.raises(SourceError, match="takes gRPC"):
        session.stream(several)


# -- what is put there -----------------------------------------------------------------------------


def _ready(server: Theirs, name: str) -> bool:
    url = f"{server.http}/v2/models/{name}/ready"
    return requests.get(url, headers=server.headers, timeout=10).status_code == 200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of this machine's, as Triton takes it."""
    return write_model(tmp_path)


def test_options_without_a_counterpart(theirs: Theirs, way: str, folder: Path) -> None:
    """They are refused by name, before anything is loaded."""
    with pytest.raises(SourceError, match=r"core_id and remote_environment"):
        opened(theirs, way, "add", core_id=0, remote_environment={"A": "b"})
    if theirs.name == "mlserver":
        with pytest.raises(SourceError, match=r"mlserver .* takes no model files over the network"):
            TensorSession(**options(theirs, way), local_model_path=folder)


def test_all_that_are_ready(theirs: Theirs, way: str) -> None:
    """Without names a session has what the server's repository lists as ready."""
    with TensorSession(**options(theirs, way)) as session:
        assert {"scale", "sums", "add"} <= set(session.get_model_names())


def test_a_model_that_is_loaded_for_the_session(mlserver: Theirs, way: str) -> None:
    """A model of MLServer's repository that is not ready is loaded, and unloaded at the end."""
    requests.post(f"{mlserver.http}/v2/repository/models/codec/unload", timeout=10).raise_for_status()
    try:
        with opened(mlserver, way, "codec"):
            assert _ready(mlserver, "codec")
        assert not _ready(mlserver, "codec")
    finally:
        requests.post(f"{mlserver.http}/v2/repository/models/codec/load", timeout=10).raise_for_status()
