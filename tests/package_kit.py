"""Bare environments to install what scripts/package has built, and what docs/install.md says of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE_VARIABLE = "PREDSESSION_PACKAGE"
OTHERS_VARIABLE = "PREDSESSION_PACKAGE_PYTHONS"
LARGE_VARIABLE = "PREDSESSION_PACKAGE_LARGE"
SIZES_VARIABLE = "PREDSESSION_PACKAGE_SIZES"
PROMISED = ("3.11", "3.12", "3.13")
"""Versions of Python that the metadata names: each was run."""
VERSIONS = (*PROMISED, "3.14")
"""Those that are tried where they are there."""


@dataclass
class Environment:
    """A bare virtual environment, and a folder outside of the clone to work in."""

    folder: Path
    place: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def command(self) -> Path:
        """Its `predsession`."""
        return self.folder / "bin" / "predsession"

    @cached_property
    def packages(self) -> Path:
        """Where its packages are."""
        [found] = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, *words: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command in it, with nothing of the clone or of this process's environment that matters."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("PREDSESSION_", "PYTHON", "PYTEST", "COV"))}  # fmt: skip
        kept["PATH"] = f"{self.folder / 'bin'}:{os.defpath}"
        return subprocess.run(
            [str(word) for word in words], cwd=self.place, env={**kept, **(env or {})},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def predsession(
        self, *words: object, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        return self.run(self.command, *words, env=env)

    def code(self, text: str, env: dict[str, str] | None = None) -> str:
        """Run Python, which must succeed, and return what it prints; warnings are errors."""
        done = self.run(self.python, "-W", "error", "-c", text, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def installed(self) -> dict[str, str]:
        """Return the distributions in it, with their versions."""
        text = "import importlib.metadata as m\nfor d in m.distributions(): print(d.name.lower(), d.version)"
        return dict(line.split(" ") for line in self.code(text).splitlines())

    def size(self) -> int:
        """Return the bytes of all packages; bytecode is not compiled."""
        return sum(path.stat().st_size for path in self.packages.rglob("*")
                   if path.is_file() and "__pycache__" not in path.parts)  # fmt: skip


@dataclass(frozen=True)
class Packages:
    """What was built."""

    cache: Path
    place: Path

    @property
    def wheel(self) -> Path:
        """The wheel."""
        [found] = (self.cache / "dist").glob("*.whl")
        return found

    @property
    def sdist(self) -> Path:
        """The sdist."""
        [found] = (self.cache / "dist").glob("*.tar.gz")
        return found

    @property
    def tools(self) -> Path:
        """An interpreter with pip and build."""
        return self.cache / "tools" / "bin" / "python"

    def install(self, name: str, *requirements: object, python: object = None) -> Environment:
        """Make an environment, with these installed as from the registry."""
        folder = self.place / name
        subprocess.run([str(python or sys.executable), "-m", "venv", "--without-pip", folder], check=True)
        (self.place / "work").mkdir(exist_ok=True)
        environment = Environment(folder, self.place / "work")
        done = self.pip("--python", environment.python, "install", "--no-compile", *requirements)
        assert done.returncode == 0, done.stderr
        return environment

    def pip(self, *words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run pip."""
        return subprocess.run(
            [str(self.tools), "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, words)],
            capture_output=True, text=True, timeout=600, check=False, cwd=cwd or self.place,
        )  # fmt: skip


def interpreters() -> dict[str, Path | None]:
    """Return the interpreters to try, by version; None where there is none."""
    given = [Path(word) for word in os.environ.get(OTHERS_VARIABLE, "").split(os.pathsep) if word]
    found: dict[str, Path | None] = dict.fromkeys(VERSIONS)
    found[sysconfig.get_python_version()] = Path(sys.executable)
    names = [shutil.which(f"python{version}") for version in VERSIONS]
    for path in [*(Path(name) for name in names if name), *given]:
        # A version manager's stand-in may be on the path for what it does not have.
        done = subprocess.run(
            [path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if re.fullmatch(r"3\.\d+", done.stdout.strip()):
            found[done.stdout.strip()] = path
    return found


def extras_of(environment: Environment) -> dict[str, list[str]]:
    """Return what is required, by extra; "" for the core."""
    text = "import importlib.metadata as m\nprint(*m.requires('predsession'), sep='\\n')"
    found: dict[str, list[str]] = {"": []}
    for line in environment.code(text).splitlines():
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == '([\w-]+)'", marker)
        found.setdefault(extra[1] if extra else "", []).append(requirement.strip())
    return found


def table(heading: str) -> dict[str, Sequence[str]]:
    """Return a table of docs/install.md: the first column, without marks, and the others."""
    text = (ROOT / "docs" / "install.md").read_text("utf-8")
    _, found, rest = text.partition(f"## {heading}\n")
    assert found, heading
    lines = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {first.strip("`[]"): others for first, *others in cells}
