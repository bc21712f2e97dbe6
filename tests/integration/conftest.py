"""Embedded servers, one of each kind for all tests; each test checks that it left nothing behind."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from playwright.sync_api import Browser
from report_kit import Visiting, chromium, visiting
from server_kit import Server, until
from tensor_kit import tensor_server

from predsession.http.caller import Caller
from predsession.http.transport import HttpTransport
from predsession.testing import RunningServer, number_picture
from predsession.wire.calls import Call
from predsession.wire.httpreply import parse_json


@pytest.fixture(scope="session")
def detector() -> Iterator[str]:
    """The bundled detector."""
    with RunningServer("detect") as server:
        yield server.url


@pytest.fixture(scope="session")
def ours() -> Iterator[str]:
    """A model that reads a number from the pixels, with the extension."""
    with RunningServer("pixels") as server:
        yield server.url


@pytest.fixture(scope="session")
def stock() -> Iterator[str]:
    """The same model, with a stock server's protocol and limits."""
    with RunningServer("pixels", stock=True) as server:
        yield server.url


@pytest.fixture(scope="session")
def tensors() -> Iterator[Server]:
    """Models of named tensors, over gRPC, at a port and at a socket, and HTTP."""
    with (
        tempfile.TemporaryDirectory(prefix="oip-") as folder,  # short: it holds a unix socket
        tensor_server("--oip-grpc", f"unix:{folder}/o.sock") as server,
    ):
        yield server


@pytest.fixture(params=["grpc", "http"])
def doors(request: pytest.FixtureRequest, tensors: Server) -> str:
    """Both ways to the models of tensors, one after the other."""
    return f"grpc://{tensors.oip[0]}" if request.param == "grpc" else tensors.url


@pytest.fixture(params=["ours", "stock"])
def either(request: pytest.FixtureRequest) -> str:
    """Both kinds of server, one after the other."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture
def ask() -> Iterator[Callable[[str, Call], object]]:
    """Ask a server something, beside the session under test."""
    transports: list[HttpTransport] = []

    def call(url: str, question: Call) -> object:
        transports.append(HttpTransport(url))
        return parse_json(Caller(transports[-1]).call(question))

    yield call
    for transport in transports:
        transport.close()


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    """A test that leaves a thread of a session running has left more."""
    yield
    until(lambda: not any(each.name.startswith("predsession-") for each in threading.enumerate()), "threads")


@pytest.fixture
def numbered(tmp_path: Path) -> Callable[..., list[Path]]:
    """Write pictures of the numbers from 0 on, each into a file of its own."""

    def write(count: int, folder: str = "photos", suffix: str = ".jpg") -> list[Path]:
        paths = [tmp_path / folder / f"im_{number}{suffix}" for number in range(count)]
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        for number, path in enumerate(paths):
            Image.fromarray(number_picture(number)).save(path, quality=90)
        return paths

    return write


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file at which `held_numbers.HeldNumbers` waits, if it is told so, as long as it is there."""
    made = tmp_path / "gate"
    made.touch()
    return made


def picture_of(number: int) -> npt.NDArray[np.uint8]:
    """Return a picture of a number as an array."""
    return number_picture(number)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for all tests of a file; no longer, as playwright's loop is in the way of others."""
    with chromium() as running:
        yield running


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visiting]:
    """Open a report."""
    with visiting(browser) as go:
        yield go
