"""pytest fixtures: ``pytest_plugins = ["predsession.testing.fixtures"]`` in your ``conftest.py``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from predsession.testing.servers import RunningServer


@pytest.fixture(scope="session")
def predsession_server() -> Iterator[str]:
    """Run a server whose model reads a number from each picture; its URL."""
    with RunningServer("pixels") as server:
        yield server.url


@pytest.fixture(scope="session")
def predsession_stock_server() -> Iterator[str]:
    """Run the same with a stock server's limits and without the extension; its URL."""
    with RunningServer("pixels", stock=True) as server:
        yield server.url
