"""Models that our tensor client puts on a real Triton.

The last of the files by name: once a model was unloaded again, Triton itself counts as not ready for good,
and others of this folder's tests ask it that.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import requests
from interop.oip.loadable import COUNTING_CONFIG, COUNTING_MODEL, write_model
from interop.oip.test_our_client_calls import options
from interop.oip.test_our_client_kept import regions
from interop.oip.theirs import Theirs
from server_kit import until
from tensor_kit import python

from predsession.errors import PredSessionError, ResponseError, SessionClosedError
from predsession.tensor import HTensor, TensorSession, init_model, init_server


@pytest.fixture(autouse=True)
def _ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test takes down is nobody else's."""
    monkeypatch.setenv("PREDSESSION_LEDGER", str(tmp_path / "ledger"))


@pytest.fixture(params=["grpc", "http"])
def way(request: pytest.FixtureRequest) -> str:
    """Both ways, one after the other."""
    found: str = request.param
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of this machine's, as Triton takes it."""
    return write_model(tmp_path)


@pytest.fixture
def clean(triton: Theirs, tmp_path: Path) -> Iterator[None]:
    """Triton, which afterwards has no region of ours, nor has this machine; and the ledger is empty."""
    assert regions(triton) == set()
    yield
    assert regions(triton) == set()
    assert list((tmp_path / "ledger").glob("*")) == []


def _ready(server: Theirs, name: str) -> bool:
    url = f"{server.http}/v2/models/{name}/ready"
    return requests.get(url, headers=server.headers, timeout=10).ok


def test_triton_sees_the_cancel(triton: Theirs, tmp_path: Path) -> None:
    """A stream that is left is ended on the server, too."""
    folder = tmp_path / "counting"
    (folder / "1").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(COUNTING_CONFIG))
    (folder / "1" / "model.py").write_text(COUNTING_MODEL)
    before = triton.log.count("counting was cancelled")
    with TensorSession(**options(triton, "grpc"), local_model_path=folder) as session:
        with session.stream({"n": np.array([10_000])}) as stream:
            assert [next(stream)["i"].tolist() for _ in range(2)] == [[0], [1]]
        until(lambda: triton.log.count("counting was cancelled") > before, "Triton to see it")


def test_deployment_on_triton(triton: Theirs, way: str, folder: Path) -> None:
    """A model is put there with options and scales, shared by sessions, and removed; so is a half of two."""
    x = np.arange(3, dtype=np.float32)
    with init_server(**options(triton, way)) as server:
        with init_model(folder, server, remote_environment={"COLOUR": "blue"}) as handle:
            (theirs,) = handle.names.values()
            config = requests.get(
                f"{triton.http}/v2/models/{theirs}/config", headers=triton.headers, timeout=10
            ).json()
            assert config["parameters"]["COLOUR"] == {"string_value": "blue"}
            for _ in range(2):
                with TensorSession(model_handle=handle) as session:
                    assert session.get_model_names() == ["twice"]
                    assert session({"x": x})["y"].tolist() == [0.0, 2.0, 4.0]
                    assert session.get_output_info()["y"]["scale_data"] == [0.5]
            assert _ready(triton, theirs)
        assert not _ready(triton, theirs)
        (folder.with_name("broken") / "1").mkdir(parents=True)
        (folder.with_name("broken") / "1" / "model.py").write_text("no python")
        (folder.with_name("broken") / "config.json").write_text((folder / "config.json").read_text())
        with pytest.raises(PredSessionError):
            init_model([folder, folder.with_name("broken")], server)
    left = list((folder.parent / "ledger").glob("*"))
    assert left == []


def test_cores_on_triton(triton: Theirs, folder: Path) -> None:
    """They become the instance group's devices, of which this machine has none: Triton says so."""
    with pytest.raises(ResponseError, match=r"(?i)gpu"):
        TensorSession(**options(triton, "grpc"), local_model_path=folder, core_id=[0])


def test_outputs_that_grow_and_shrink(triton: Theirs, clean: None, way: str, tmp_path: Path) -> None:
    """A dynamic shape: smaller, larger and empty results are right, whatever was there before."""
    with TensorSession(**options(triton, way), local_model_path=write_model(tmp_path)) as session:
        for count in (4, 2, 4, 100, 0, 3, 0, 0, 200, 1):
            x = np.full(count, count, np.float32)
            y = session({"x": x}, {"y": {"device": ["server", "cpu"], "key": "k"}})["y"]
            assert (y.shape, y.data.tolist()) == ((count,), [2.0 * count] * count)
            found = session({"x": HTensor(None, "server", "k")}, {"y": {"device": "server", "key": "k"}})
            assert (found["y"].shape, found["y"].data) == ((count,), None)
            found = session({"x": found["y"]})["y"]
            assert found.tolist() == [8.0 * count] * count


KILLED = """
import json, os, sys
import numpy as np
from predsession.tensor import HTensor, TensorSession
options, path = json.loads(sys.argv[1]), sys.argv[2]
session = TensorSession(**options, local_model_path=path)
x = HTensor(np.ones(1000, np.float32), ["cpu", "server"], "x")
session({"x": x}, {"y": {"device": "server", "key": "y"}})
session({"x": x}, {"y": {"device": "server", "key": "y"}})
print(*session._handle.names.values(), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("same", [True, False])
def test_what_a_killed_session_left(
    triton: Theirs, clean: None, way: str, same: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next session removes its models and regions, by another address too; a living one's stay."""
    found = options(triton, way)
    later = found if same else options(triton, "http" if way == "grpc" else "grpc")
    path = write_model(tmp_path)
    dead, living = (python(KILLED, json.dumps(found), str(path)) for _ in range(2))
    assert dead.stdout is not None
    assert living.stdout is not None
    name, alive = dead.stdout.readline().strip(), living.stdout.readline().strip()
    assert name, dead.communicate()[1]
    assert alive, living.communicate()[1]
    os.kill(dead.pid, signal.SIGKILL)
    dead.communicate(timeout=30)

    def ready(model: str) -> bool:
        url = f"{triton.http}/v2/models/{model}/ready"
        return requests.get(url, headers=triton.headers, timeout=10).ok

    assert ready(name)
    with caplog.at_level(logging.WARNING, "predsession.tensor"), TensorSession(**later, models=["add"]):
        (record,) = caplog.records
        assert "what a session left that did not end" in record.getMessage()
        assert name in record.getMessage()
        assert not ready(name)
        assert ready(alive)
    _, errors = living.communicate("\n", timeout=60)
    assert errors == ""
    assert not ready(alive)


def test_a_dead_session_of_another_server(triton: Theirs, way: str, tmp_path: Path) -> None:
    """Its file stays for that server, also where both have a model of one name, which stays here."""
    ledger = tmp_path / "ledger"
    ledger.mkdir()
    dead = {
        "server": "grpc://box.invalid:1",
        "models": ["add", "net-0123456789ab-1"],
        "regions": ["predsession-x-1"],
    }
    file = ledger / "0123456789ab.json"
    file.write_text(json.dumps(dead))
    with TensorSession(**options(triton, way), models=["add"]) as session:
        one = np.ones((1, 4), np.float32)
        assert session({"a": one, "b": one})["c"].tolist() == [[2.0] * 4]
    assert [each.name for each in ledger.glob("*")] == [file.name]
    assert json.loads(file.read_text()) == dead


def test_a_session_that_closes_under_calls(triton: Theirs, clean: None, way: str) -> None:
    """Each call ends with SessionClosedError, and nothing of theirs is left on Triton or on this machine."""
    x = np.ones(5000, np.float32)

    def call(session: TensorSession, thread: int, seen: list[BaseException]) -> None:
        try:
            for number in itertools.count():
                tensor = HTensor(x, ["cpu", "server"], f"{thread} {number}")
                session({"fp32": tensor}, {"fp32_out": {"device": None}})
        except Exception as error:
            seen.append(error)

    for trial in range(12):
        session = TensorSession(**options(triton, way), models=["echo"], frame_timeout=10)
        seen: list[BaseException] = []
        threads = [threading.Thread(target=call, args=(session, thread, seen)) for thread in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.003 * trial)  # at another point of the calls each time
        session.close_server()
        for thread in threads:
            thread.join(30)
        assert [type(error) for error in seen] == [SessionClosedError] * 4, seen
        assert regions(triton) == set()
