"""The tools that people open our files and tables with; without them, a skip that says how to get them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

VARIABLE = "PREDSESSION_INTEROP_FORMATS"
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
REASON = "tests/interop/formats needs others' tools: scripts/interop formats makes an environment and runs it"

Theirs = Callable[..., object]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; where they cannot run, leave one, which says why."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker("interop")
    if not os.environ.get(VARIABLE) and ours:
        ours[0].add_marker(pytest.mark.skip(reason=REASON))
        config.hook.pytest_deselected(items=ours[1:])
        items[:] = [item for item in items if item not in ours[1:]]


@pytest.fixture
def theirs() -> Theirs:
    """Run a script of this folder under their interpreter, predsession at hand; its last line is JSON."""

    def run(script: str, *arguments: object) -> object:
        command = [
            os.environ[VARIABLE],
            "-W",
            "error::FutureWarning",
            str(HERE / script),
            *map(str, arguments),
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        answer: object = json.loads(done.stdout.splitlines()[-1])
        return answer

    return run
