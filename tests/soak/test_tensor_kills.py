"""A tensor session killed at a hundred moments: nothing of it stays on a server."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from interop.oip.bare import Bare
from interop.oip.conftest import python_of
from interop.oip.loadable import write_model
from interop.oip.theirs import Theirs
from soak.faults import new_seed
from tensor_models import arithmetic

from predsession.tensor import TensorSession
from predsession.testing import RunningServer

KILLS = 100
LEASE = 2.0
LONGEST = 4.0
"""Seconds; importing and loading take the first two."""
PATIENCE = 30.0
REGIONS = Path("/dev/shm")
SESSION = """
import sys
import numpy as np
from predsession.tensor import HTensor, TensorSession

address, path, lease, secret = sys.argv[1:]
headers = {"triton-grpc-protocol-triton-access-token": secret} if secret else None
minutes = float(lease) / 60
with TensorSession(address, local_model_path=path, server_timeout=minutes, headers=headers) as session:
    inputs, outputs = session.get_input_info(), session.get_output_info()
    number = 0
    while True:
        number += 1
        data = {
            name: HTensor(np.full(1000, number, np.float32), ["cpu", "server"], f"{name}{number % 5}")
            for name in inputs
        }
        session(data, {name: {"device": "server", "key": f"{name}{number % 3}"} for name in outputs})
"""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def kill(draw: random.Random, address: str, path: Path, *, secret: str = "", ledger: Path) -> None:
    """Start a session, and kill it at a moment of its life."""
    child = subprocess.Popen(
        [sys.executable, "-c", SESSION, address, str(path), str(LEASE), secret],
        env={**os.environ, "PREDSESSION_LEDGER": str(ledger)},
        stderr=subprocess.PIPE,
    )
    time.sleep(draw.uniform(0.5, LONGEST))
    assert child.poll() is None, f"it ended by itself: {child.communicate()[1].decode()[-1000:]}"
    child.kill()
    child.communicate()


def until(done: Callable[[], bool]) -> bool:
    """Wait for something, and say whether it came."""
    ends = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > ends:
            return False
        time.sleep(0.1)
    return True


def test_killed_on_our_server(tmp_path: Path, tell: Callable[[str], None]) -> None:
    """After its lease our server holds no model, no tensor and no session of any of them."""
    draw = random.Random(seed := new_seed())
    (tmp_path / "net.onnx").write_bytes(arithmetic())
    arguments = ["--oip-grpc", "127.0.0.1:0", "--limit-registered", "64"]
    with RunningServer("pixels", arguments=arguments) as server:

        def held() -> tuple[list[object], list[str]]:
            sessions = requests.get(f"{server.url}/v2/predsession/sessions", timeout=10).json()["sessions"]
            index = requests.post(f"{server.url}/v2/repository/index", json={}, timeout=10).json()
            return sessions, [each["name"] for each in index if each["name"].startswith("net-")]

        most = 0
        for _ in range(KILLS):
            kill(draw, f"grpc://{server.oip[0]}", tmp_path / "net.onnx", ledger=tmp_path / "ledger")
            most = max(most, len(held()[1]))
        assert most > 0, "no session lived long enough to be seen"
        assert until(lambda: held() == ([], [])), held()
    tell(f"kill -9: our server, seed {seed}: {KILLS} sessions, {most} models at once at most, nothing left")


@pytest.fixture
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    """A real Triton."""
    with Theirs(python_of("triton"), "triton_server.py", tmp_path_factory.mktemp("triton")) as server:
        yield server


def test_killed_on_triton(triton: Theirs, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """The next session removes the models and the regions of those before, and leaves none itself."""
    draw = random.Random(seed := new_seed())
    path, ledger = write_model(tmp_path), tmp_path / "ledger"
    before = set(REGIONS.glob("predsession-*"))
    with Bare(triton) as bare, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDSESSION_LEDGER", str(ledger))

        def left() -> tuple[list[str], list[str]]:
            models = bare.call("ModelStatistics").model_stats
            regions = bare.call("SystemSharedMemoryStatus").regions
            return sorted(each.name for each in models if each.name.startswith("twice-")), sorted(regions)

        most = 0
        for _ in range(KILLS):
            kill(draw, f"grpc://{triton.grpc}", path, secret=triton.token, ledger=ledger)
            most = max(most, len(left()[0]))
        assert most > 0, "no session lived long enough to be seen"
        with TensorSession(f"grpc://{triton.grpc}", models=["sums"], headers=dict(triton.metadata)):
            assert left() == ([], []), left()
        assert set(REGIONS.glob("predsession-*")) <= before
        assert list(ledger.iterdir()) == []
    tell(f"kill -9: Triton, seed {seed}: {KILLS} sessions, {most} models at once at most, nothing left")
