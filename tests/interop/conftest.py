"""Supervisely's own servers for the tests beside; without them, a skip that says how to get them."""

from __future__ import annotations

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.client_process import TheirClient
from interop.their_server import TheirServer

VARIABLE = "PREDSESSION_INTEROP"
HERE = Path(__file__).parent
APART = {HERE / "edge", HERE / "formats", HERE / "oip"}  # each has its own
REASON = "tests/interop needs Supervisely's own software: scripts/interop makes an environment and runs it"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; where they cannot run, leave one, which says why."""
    ours = [item for item in items if HERE in item.path.parents and not APART & {*item.path.parents}]
    for item in ours:
        item.add_marker("interop")
    if not os.environ.get(VARIABLE) and ours:
        ours[0].add_marker(pytest.mark.skip(reason=REASON))
        config.hook.pytest_deselected(items=ours[1:])
        items[:] = [item for item in items if item not in ours[1:]]


@pytest.fixture(scope="session")
def python() -> str:
    """Their interpreter."""
    return os.environ[VARIABLE]


@pytest.fixture(scope="session")
def production(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TheirServer]:
    """Their server as it is deployed: faults are JSON. Answers masks."""
    yield from _serve(python, tmp_path_factory.mktemp("production"), "seg", "production")


@pytest.fixture(scope="session")
def development(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TheirServer]:
    """Their server as a developer runs it: faults are a plain text. Answers boxes."""
    yield from _serve(python, tmp_path_factory.mktemp("development"), "det", "development")


@pytest.fixture(scope="session")
def zoo(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TheirServer]:
    """Their server with a model that answers one object of each geometry."""
    yield from _serve(python, tmp_path_factory.mktemp("zoo"), "zoo", "production")


@pytest.fixture(params=["production", "development"])
def theirs(request: pytest.FixtureRequest) -> TheirServer:
    """Both modes, one after the other."""
    server: TheirServer = request.getfixturevalue(request.param)
    server.mark()
    return server


def _serve(python: str, folder: Path, model: str, mode: str) -> Iterator[TheirServer]:
    """Run a server for a session of tests."""
    server = TheirServer(python, folder, model=model, mode=mode)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    """A test that leaves a thread of a session running has left more."""
    yield
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("predsession-")]
    assert not left


@pytest.fixture(scope="session")
def client(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TheirClient]:
    """Their clients."""
    process = TheirClient(python, tmp_path_factory.mktemp("client"))
    yield process
    process.close()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """A web server over the test's folder."""
    handler = functools.partial(_Silent, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


class _Silent(http.server.SimpleHTTPRequestHandler):
    """Says nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""
