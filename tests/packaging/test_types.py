"""The types that come with the installed package, as two checkers see them, without the clone."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from package_kit import ROOT, Environment, Packages
from public_api import PUBLIC

COMPLETENESS = 0.95
"""The least share of all names, in rooms that are not public as well, whose types pyright knows wholly."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """How users call the package, in a folder where nothing of the clone is found."""
    shutil.copy(ROOT / "tests" / "typing" / "api.py", tmp_path / "api.py")
    return tmp_path


@pytest.fixture
def pyright(packages: Packages) -> Path:
    """The checker, which scripts/package installs where there is npm."""
    found = packages.cache / "npm" / "node_modules" / ".bin" / "pyright"
    if not found.exists():
        pytest.skip("there is no npm to install pyright with")
    return found


def test_mypy(core: Environment, place: Path) -> None:
    """Mypy --strict has nothing to say, with the core's packages alone."""
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", core.python, "--config-file=",
               "--cache-dir", place / "cache", "api.py"]  # fmt: skip
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_pyright(core: Environment, place: Path, pyright: Path) -> None:
    """Pyright's strict mode has nothing to say either."""
    (place / "pyrightconfig.json").write_text(
        json.dumps({"include": ["api.py"], "typeCheckingMode": "strict"})
    )
    command = [pyright, "--pythonpath", core.python, "--outputjson"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert not found["generalDiagnostics"], json.dumps(found["generalDiagnostics"], indent=1)
    assert found["summary"]["filesAnalyzed"] == 1


def test_the_types_are_complete(core: Environment, place: Path, pyright: Path) -> None:
    """Each public name's type is wholly known to a checker, with the core's packages alone."""
    # It finds the package by the interpreter on the path, not by --pythonpath.
    env = {**os.environ, "PATH": f"{core.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = [pyright, "--verifytypes", "predsession", "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, env=env)
    found = json.loads(done.stdout)["typeCompleteness"]
    known = {symbol["name"]: symbol["isTypeKnown"] for symbol in found["symbols"]}
    public = [f"{module}.{name}" for module in PUBLIC for name in importlib.import_module(module).__all__]
    assert [name for name in public if not known.get(name, False)] == []
    assert found["completenessScore"] >= COMPLETENESS
