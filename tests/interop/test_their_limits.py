"""Their client beyond the limits of their own server: against it, and against ours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from interop.client_process import TheirClient
from interop.pictures import write_pictures
from interop.test_their_sessions import MODEL, run_ours
from interop.their_server import TheirServer, assert_all_equal, truths_of
from server_kit import Caller, Server

MANY = 1200


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Our server, which here takes more files in a request than a stock one."""
    folder = tmp_path_factory.mktemp("data")
    with Server(MODEL, "--data", str(folder), "--limit-files", str(MANY)) as server:
        yield server.url


@pytest.fixture(scope="module")
def plain_ours() -> Iterator[str]:
    """Our server with its default limits."""
    with Server(MODEL) as server:
        yield server.url


@pytest.fixture(scope="module")
def imitation() -> Iterator[str]:
    """Our server as it imitates theirs."""
    with Server(MODEL, "--stock") as server:
        yield server.url


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder of 300 pictures in it, and one of 1,200."""
    root = tmp_path_factory.mktemp("many")
    for count in (300, MANY):
        write_pictures(root / str(count), count)
    return root


def run_theirs(client: TheirClient, url: str, folder: Path) -> dict[str, Any]:
    """Run their session over a folder."""
    return client.run("session", url, input=str(folder))


def test_a_folder_of_300(
    client: TheirClient, production: TheirServer, imitation: str, plain_ours: str, folder: Path
) -> None:
    """On their server, and where ours imitates it, it fails with a `KeyError`; on ours all are right."""
    for url in (production.url, imitation):
        answer = run_theirs(client, url, folder / "300")
        assert answer["error"].startswith("RuntimeError: Inference Error: KeyError: 'im_")
    answer = run_theirs(client, plain_ours, folder / "300")
    assert answer["length"] == len(answer["names"]) == 300
    assert_all_equal(run_ours(plain_ours, answer["names"]), truths_of(answer))


def test_a_folder_of_1200(
    client: TheirClient, production: TheirServer, plain_ours: str, ours: str, folder: Path
) -> None:
    """Their client sends it in one request: both servers refuse that, ours unless its limit is raised."""
    for url in (production.url, plain_ours):
        error = run_theirs(client, url, folder / str(MANY))["error"]
        assert "400 Client Error" in error
        assert "Too many files. Maximum number of files is 1000." in error
    answer = run_theirs(client, ours, folder / str(MANY))
    assert answer["length"] == MANY
    assert_all_equal(run_ours(ours, answer["names"]), truths_of(answer))


def test_a_name_that_climbs(production: TheirServer, tmp_path: Path) -> None:
    """Their clients send no name with a slash, others may: theirs writes there, ours only in its own folder.

    Not with `--stock` either, which refuses the name.
    """
    picture = write_pictures(tmp_path / "pictures", 1)[0].read_bytes()
    name = f"climbed_{time.monotonic_ns()}.jpg"
    assert Caller(production.url).upload([(f"../{name}", picture)]).status_code == 200
    there = [path.parent.name for path in production.folder.rglob(name)]
    assert there
    assert "cache" not in there
    for words in ((), ("--stock",)):
        home = tmp_path / "home"
        (home / "data").mkdir(parents=True, exist_ok=True)
        with Server(MODEL, "--data", str(home / "data"), *words) as server, Caller(server.url) as caller:
            for climbing in (f"../{name}", f"../../{name}", str(home / name), f"..\\{name}"):
                reply: requests.Response = caller.upload([(climbing, picture)])
                assert reply.status_code == (500 if words and "/" in climbing else 200)
                if reply.status_code == 200:
                    caller.drain(reply.json()["inference_request_uuid"])
            assert list(home.iterdir()) == [home / "data"]
            assert not list(tmp_path.rglob(f"*{name}"))
            assert not list(tmp_path.parent.glob(f"*{name}"))
