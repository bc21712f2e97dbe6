"""What is in the wheel and the sdist: all that is needed, and nothing else."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

from package_kit import PROMISED, ROOT, Packages, table


def contents(wheel: Path) -> dict[str, str]:
    """Return the checksum of each file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def metadata(wheel: Path) -> Message:
    """Return a wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_the_sdist_makes_the_same_wheel(packages: Packages) -> None:
    """Built from the sdist, in a folder of its own, each file of the wheel is the same to the byte."""
    folder = packages.place / "unpacked"
    with tarfile.open(packages.sdist) as archive:
        archive.extractall(folder, filter="data")
    [source] = folder.iterdir()
    command = [packages.tools, "-m", "build", "--wheel", "--outdir", folder / "dist", source]
    subprocess.run(command, check=True, capture_output=True)
    [again] = (folder / "dist").glob("*.whl")
    assert contents(again) == contents(packages.wheel)


def test_the_sdist_has_what_a_build_and_a_reader_need(packages: Packages) -> None:
    """Source, licences, front pages; the tests and the other documents need a clone, and are left to it."""
    with tarfile.open(packages.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"pyproject.toml", "LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "predsession/py.typed"}
    assert needed <= names
    assert {name for name in names if name.startswith("docs/")} == {"docs/package.md"}
    tops = {name.partition("/")[0] for name in names}
    assert tops <= {"predsession", "docs", "PKG-INFO", ".gitignore", *needed}


def test_the_wheel_has_all_of_the_package(packages: Packages) -> None:
    """Each file that git knows below predsession/ is in it, py.typed, networks and completions among them."""
    known = subprocess.run(
        ["git", "ls-files", "predsession"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    inside = set(contents(packages.wheel))
    missing = {name for name in known if name and (ROOT / name).exists()} - inside
    assert not missing
    assert {"predsession/py.typed", "predsession/cli/completions/predsession.zsh"} <= inside
    foreign = {name for name in inside if not name.startswith("predsession/") and ".dist-info/" not in name}
    assert not foreign
    assert not {name for name in inside if "__pycache__" in name or name.endswith(".pyc")}
    assert {name.rpartition("/")[2] for name in inside if "/licenses/" in name} == {"LICENSE", "NOTICE"}


def test_what_the_metadata_promises(packages: Packages) -> None:
    """Licence, a description with no link that only a clone can follow, the Pythons that are supported."""
    found = metadata(packages.wheel)
    text = str(found.get_payload())
    assert text.startswith("# predsession\n")
    assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if not re.match("https?:", link)] == []
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Description-Content-Type"] == "text/markdown"
    assert found["Requires-Python"] == f">={PROMISED[0]}"
    classifiers = found.get_all("Classifier") or []
    named = [text.rpartition(" ")[2] for text in classifiers if re.search(r"Python :: 3\.\d+$", text)]
    assert named == list(PROMISED)


def test_the_wheel_is_no_larger_than_the_documents_say(packages: Packages) -> None:
    """docs/install.md has the size of wheel and sdist in MB; each is within five percent of that."""
    told = table("The package")
    for name, path in (("wheel", packages.wheel), ("sdist", packages.sdist)):
        size = path.stat().st_size / 1e6
        assert abs(size - float(told[name][0].split()[0])) <= 0.05 * size, f"{name}: {size:.1f} MB"
