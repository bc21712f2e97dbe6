"""Real Triton and MLServer for the tests beside; without them, skips that say how to get them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.oip.bare import Bare
from interop.oip.theirs import Theirs

VARIABLES = {"triton": "PREDSESSION_INTEROP_TRITON", "mlserver": "PREDSESSION_INTEROP_MLSERVER"}
HERE = Path(__file__).parent
REASON = "tests/interop/oip needs {}: scripts/interop oip makes its environment and runs it"
PYTHONS = {name: os.environ.get(variable, "") for name, variable in VARIABLES.items()}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; where none can run, leave one, which says why."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker("interop")
    if not any(PYTHONS.values()) and ours:
        ours[0].add_marker(pytest.mark.skip(reason=REASON.format("Triton and MLServer")))
        config.hook.pytest_deselected(items=ours[1:])
        items[:] = [item for item in items if item not in ours[1:]]


def python_of(name: str) -> str:
    """Return the interpreter that has somebody's software."""
    if not PYTHONS[name]:
        pytest.skip(REASON.format(name))
    return PYTHONS[name]


@pytest.fixture(scope="session")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    """A real Triton; its models are those of `triton_server`."""
    with Theirs(python_of("triton"), "triton_server.py", tmp_path_factory.mktemp("triton")) as server:
        yield server


@pytest.fixture(scope="session")
def mlserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    """A real MLServer; its models are those of `mlserver_models`."""
    with Theirs(python_of("mlserver"), "mlserver_server.py", tmp_path_factory.mktemp("mlserver")) as server:
        yield server


@pytest.fixture(params=list(VARIABLES))
def theirs(request: pytest.FixtureRequest) -> Theirs:
    """Either server, one after the other."""
    server: Theirs = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def on_triton(triton: Theirs) -> Iterator[Bare]:
    """The bare protocol with Triton."""
    with Bare(triton) as bare:
        yield bare


@pytest.fixture
def on_mlserver(mlserver: Theirs) -> Iterator[Bare]:
    """The bare protocol with MLServer."""
    with Bare(mlserver) as bare:
        yield bare


@pytest.fixture
def on_either(theirs: Theirs) -> Iterator[Bare]:
    """The bare protocol with either."""
    with Bare(theirs) as bare:
        yield bare


@pytest.fixture(scope="session")
def client_python() -> str:
    """An interpreter that has NVIDIA's client."""
    return python_of("triton") if PYTHONS["triton"] else python_of("mlserver")
