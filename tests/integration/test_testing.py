"""What the package offers to users' own tests."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from predsession import AuthError, ConnectError, MissingExtraError, PredictionSession
from predsession.server import command
from predsession.testing import RunningServer, box_number, number_picture

pytest_plugins = ["predsession.testing.fixtures"]


@pytest.mark.parametrize("process", [True, False])
@pytest.mark.parametrize("stock", [True, False])
def test_a_server_is_ready_and_then_gone(process: bool, stock: bool) -> None:
    """As a process or on a thread; its port answers nobody afterwards, and no thread is left."""
    with RunningServer("pixels", stock=stock, process=process) as server:
        with PredictionSession(server.url, [number_picture(n) for n in range(20)]) as session:
            assert [box_number(one.boxes[0]) for one in session] == list(range(20))
        url = server.url
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=5)
    assert not [thread for thread in threading.enumerate() if thread.name == "embedded-server"]


@pytest.mark.parametrize("process", [True, False])
def test_a_token_for_servers_that_others_call(process: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment has for ``predsession serve`` is not asked of ourselves; what is passed is."""
    monkeypatch.setenv("PREDSESSION_SERVER_TOKEN", "secret")
    with RunningServer("pixels", process=process) as server:
        assert len(list(PredictionSession(server.url, number_picture(1)))) == 1
    with (
        RunningServer("pixels", process=process, arguments=["--token", "other"]) as server,
        pytest.raises(AuthError),
    ):
        list(PredictionSession(server.url, number_picture(1)))


@pytest.mark.parametrize("process", [True, False])
def test_a_model_that_cannot_be_loaded_is_told(process: bool, tmp_path: Path) -> None:
    """With the reason, and nothing is left."""
    (tmp_path / "broken.py").write_text("raise RuntimeError('no weights here')\n")
    with pytest.raises(ConnectError, match="no weights here"):
        RunningServer(f"{tmp_path}/broken.py:Model", process=process)


def test_the_fixtures(predsession_server: str, predsession_stock_server: str) -> None:
    """Two servers, ready to be used."""
    for url in (predsession_server, predsession_stock_server):
        with PredictionSession(url, number_picture(9)) as session:
            assert box_number(next(session).boxes[0]) == 9


def test_threaded_server_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra a server on a thread says which one is missing."""
    monkeypatch.setattr(command, "_NEEDED", ("no_such_module",))
    with pytest.raises(MissingExtraError, match=r"server"):
        RunningServer(process=False)
