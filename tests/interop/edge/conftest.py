"""The vendor's own client, in environments of its own; without them, a skip that says how to get them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.edge.vendor import Vendor

VARIABLE = "PREDSESSION_INTEROP_EDGE"
HERE = Path(__file__).parent
REASON = (
    "tests/interop/edge needs the vendor's client: scripts/interop edge makes its environments and runs it"
)
PYTHONS = dict(word.split("=", 1) for word in os.environ.get(VARIABLE, "").split(os.pathsep) if word)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; where they cannot run, leave one, which says why."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker("interop")
    if not PYTHONS and ours:
        ours[0].add_marker(pytest.mark.skip(reason=REASON))
        config.hook.pytest_deselected(items=ours[1:])
        items[:] = [item for item in items if item not in ours[1:]]


@pytest.fixture(scope="session", params=list(PYTHONS) or ["none"])
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter that has one of their releases."""
    return PYTHONS[request.param]


@pytest.fixture(scope="session")
def vendor(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    """Their client, in a process of its own."""
    with Vendor(python, "their_client.py", tmp_path_factory.mktemp("vendor")) as process:
        yield process
