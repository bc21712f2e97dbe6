"""What scripts/package has built, an environment with the core, and a server outside of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from package_kit import PACKAGE_VARIABLE, Environment, Packages
from PIL import Image

from predsession.testing import RunningServer, number_picture


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip all of it outside of scripts/package."""
    ours = [item for item in items if Path(__file__).parent in item.path.parents]
    if not os.environ.get(PACKAGE_VARIABLE):
        for item in ours:
            item.add_marker(
                pytest.mark.skip(reason="scripts/package builds the packages and runs tests/packaging")
            )
    for item in ours:
        item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def packages() -> Iterator[Packages]:
    """What was built, and a folder that is gone at the end: pytest keeps its own, and these are large."""
    with tempfile.TemporaryDirectory(prefix="predsession-package-") as place:
        yield Packages(Path(os.environ[PACKAGE_VARIABLE]), Path(place))


@pytest.fixture(scope="session")
def core(packages: Packages) -> Environment:
    """The core, from the wheel."""
    return packages.install("core", packages.wheel)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A server on this machine, outside of the environments under test."""
    with RunningServer("pixels") as running:
        yield running.url


@pytest.fixture(scope="session")
def photos(packages: Packages) -> Path:
    """Three pictures, and a file that is none."""
    folder = packages.place / "work" / "photos"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(3):
        Image.fromarray(np.asarray(number_picture(number))).save(folder / f"im_{number}.png")
    (folder / "im_3.png").write_bytes(b"")
    return folder
