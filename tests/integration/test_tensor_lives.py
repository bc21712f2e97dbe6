"""Lifetimes: what a session puts on a server it takes away, exactly once, on every way out."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
import tensor_models
from server_kit import Server, until
from tensor_kit import python

from predsession.errors import PredSessionError, SessionClosedError, SourceError
from predsession.tensor import (
    HTensor,
    ModelHandle,
    ServerHandle,
    TensorSession,
    deinit_model,
    deinit_server,
    init_model,
    init_server,
)
from predsession.tensor.grpcdoor import GrpcDoor
from predsession.tensor.httpdoor import HttpDoor

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A network on this machine's disk, whose file's name no server takes as it is."""
    path = tmp_path / "my net.onnx"
    path.write_bytes(tensor_models.identity())
    return path


@pytest.fixture
def left(tensors: Server) -> Callable[[], set[str]]:
    """What is on the server beside what was there before: models that are ready, sessions."""

    def look() -> set[str]:
        models = requests.post(f"{tensors.url}/v2/repository/index", json={"ready": True}, timeout=10).json()
        sessions = requests.get(f"{tensors.url}/v2/predsession/sessions", timeout=10).json()["sessions"]
        return {each["name"] for each in models} | {each["session"] for each in sessions}

    before = look()
    return lambda: look() - before


@pytest.fixture
def unloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were unloaded, each time."""
    found: list[str] = []
    for door in (GrpcDoor, HttpDoor):

        def unload(self: Any, *arguments: Any, real: Any = door.unload) -> None:
            found.append(arguments[0])
            real(self, *arguments)

        monkeypatch.setattr(door, "unload", unload)
    return found


def test_ways_out(doors: str, net: Path, left: Callable[[], set[str]], unloads: list[str]) -> None:
    """The block's end, an error in it, closing twice, forgetting the session: one removal each."""

    def block() -> None:
        with TensorSession(doors, local_model_path=net) as session:
            assert session.get_model_names() == ["my net"]
            np.testing.assert_array_equal(session({"x": X})["y"], X)
            assert len([name for name in left() if name.startswith("my_net-")]) == 1

    def failing() -> None:
        with pytest.raises(KeyError), TensorSession(doors, local_model_path=str(net)) as session:
            session({"x": HTensor(X, "server", "k")})
            raise KeyError

    def twice() -> None:
        session = TensorSession(doors, local_model_path=[net])
        session.close_server()
        session.close()

    def forgotten() -> None:
        session = TensorSession(doors, local_model_path=net)
        session({"x": X}, {"y": {"device": "server", "key": "k"}})
        assert left()
        del session

    for number, way in enumerate((block, failing, twice, forgotten), 1):
        way()
        gc.collect()
        assert left() == set()
        assert len(unloads) == number


def test_the_second_model_fails(
    doors: str, net: Path, left: Callable[[], set[str]], unloads: list[str]
) -> None:
    """Then the first is removed again; so it is when a model of the server's own is not there."""
    broken = net.with_name("broken.onnx")
    broken.write_bytes(b"no network")
    with pytest.raises(PredSessionError, match="broken"):
        TensorSession(doors, local_model_path=[net, broken])
    assert left() == set()
    assert len(unloads) == 1


def test_two_models_of_one_file(doors: str, net: Path, left: Callable[[], set[str]]) -> None:
    """Handles of the same file do not share a model on the server: one goes, the other stays."""
    with init_server(doors) as server:
        first, second = init_model(net, server), init_model(net, server)
        assert first.names != second.names
        deinit_model(first)
        with TensorSession(model_handle=second) as session:
            np.testing.assert_array_equal(session({"x": X})["y"], X)
    assert left() == set()


SCRIPT = """
import signal
import sys
import numpy as np
from predsession.tensor import TensorSession
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
session = TensorSession(sys.argv[1], local_model_path=sys.argv[2])
x = np.zeros((1, 3), np.float32)
session({"x": x}, {"y": {"device": "server", "key": "k"}})
future = session.submit({"x": x})
"""
OPEN = 'print("open", flush=True)'
INTERRUPTED = """
import time
try:
    with session:
        print("open", flush=True)
        while True:
            time.sleep(0.1)
finally:
    print("left", flush=True)
"""


@pytest.mark.parametrize("way", ["exit", "interrupt"])
def test_a_process_that_ends(doors: str, net: Path, left: Callable[[], set[str]], way: str) -> None:
    """A script's end without a close, and Ctrl-C: nothing stays, and the end takes no time or words."""
    child = python(SCRIPT + (INTERRUPTED if way == "interrupt" else OPEN), doors, str(net))
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n", child.communicate()[1]
    if way == "interrupt":
        os.kill(child.pid, signal.SIGINT)
    out, errors = child.communicate(timeout=60)
    if way == "interrupt":
        assert out == "left\n"
        assert errors.rstrip().endswith("KeyboardInterrupt")
    else:
        assert (out, errors, child.returncode) == ("", "", 0)
    assert left() == set()


def test_options_of_our_server(tensors: Server, doors: str, net: Path) -> None:
    """Cores and environment reach a model that is loaded; where none is, they are refused by name."""
    core = min(os.sched_getaffinity(0))
    with TensorSession(
        doors, local_model_path=net, core_id=core, remote_environment={"A": "b"}, server_timeout=1
    ) as session:
        np.testing.assert_array_equal(session({"x": X})["y"], X)
    with pytest.raises(
        SourceError, match=r"core_id and remote_environment: settled when .* 'add'|add is ready"
    ):
        TensorSession(doors, models=["add"], core_id=core, remote_environment={"A": "b"})
    with pytest.raises(PredSessionError, match="core"):
        TensorSession(doors, local_model_path=net, core_id=1_000_000)
    assert tensors.process.poll() is None


# -- three lifetimes -------------------------------------------------------------------------------


def test_three_lifetimes(doors: str, net: Path, left: Callable[[], set[str]], unloads: list[str]) -> None:
    """Server, models, sessions: closed in order; each a context manager; closing twice is nothing."""
    with init_server(doors) as server, init_model(net, server) as handle:
        for _ in range(2):
            with TensorSession(model_handle=handle, server=server) as session:
                np.testing.assert_array_equal(session({"x": X})["y"], X)
            assert unloads == []
    assert left() == set()
    assert len(unloads) == 1
    for _ in range(2):
        deinit_model(handle)
        deinit_server(server)
    assert len(unloads) == 1
    with pytest.raises(SessionClosedError, match=r"deinit_model\(\) has let my net go"):
        TensorSession(model_handle=handle)
    with pytest.raises(SessionClosedError, match=r"deinit_server\(\) has let .* go"):
        init_model(net, server)


def test_the_wrong_order(doors: str, net: Path, left: Callable[[], set[str]]) -> None:
    """Closing in the wrong order is an error that says the right one, and changes nothing."""
    server = init_server(doors)
    handle = init_model(net, server)
    session = TensorSession(model_handle=handle)
    with pytest.raises(
        SessionClosedError, match=r"close_server\(\) of the session comes before deinit_model"
    ):
        deinit_model(handle)
    order = r"close_server\(\) and deinit_model\(\) come before deinit_server\(\): my net"
    with pytest.raises(SessionClosedError, match=order):
        deinit_server(server)
    np.testing.assert_array_equal(session({"x": X})["y"], X)
    session.close_server()
    with pytest.raises(SessionClosedError, match=r"^deinit_model\(\) comes before deinit_server\(\): my net"):
        deinit_server(server)
    deinit_model(handle)
    deinit_server(server)
    assert left() == set()


def test_a_block_that_ends_under_a_session(doors: str, net: Path, left: Callable[[], set[str]]) -> None:
    """It lets go for sure, and says the right order; where there is another error, that one is raised."""
    with init_server(doors) as server:
        with (
            pytest.raises(SessionClosedError, match=r"close_server\(\) of the session comes before the end"),
            init_model(net, server) as handle,
        ):
            session = TensorSession(model_handle=handle)
        with pytest.raises(SessionClosedError, match=r"comes after close_server"):
            session({"x": X})
        session.close_server()
        with pytest.raises(KeyError), init_model(net, server) as handle:
            session = TensorSession(model_handle=handle)
            raise KeyError
        session.close_server()
    with (
        pytest.raises(
            SessionClosedError, match=r"close_server\(\) of the session comes before the end of the s"
        ),
        init_server(doors) as server,
    ):
        session = TensorSession(model_handle=init_model(net, server))
    session.close_server()
    assert left() == set()


def test_forgotten_handles(doors: str, net: Path, left: Callable[[], set[str]]) -> None:
    """A handle that nobody has any more lets its models go; a server's takes nothing along that is used."""
    server = init_server(doors)
    handle = init_model(net, server)
    assert left()
    del handle
    gc.collect()
    assert not {name for name in left() if name.startswith("my_net")}
    handle = init_model(net, server)
    del server
    gc.collect()
    with TensorSession(model_handle=handle) as session:
        np.testing.assert_array_equal(session({"x": X})["y"], X)
    del handle, session
    gc.collect()
    assert left() == set()


def test_handles_that_do_not_go_together(doors: str, net: Path) -> None:
    """Of what is passed twice, of another server, or of another kind, an error says so."""
    with init_server(doors) as server, init_model(None, server, models=["add"]) as handle:
        for options, text in (
            ({"host": doors, "model_handle": handle}, "host goes without"),
            ({"host": doors, "server": server}, "host goes without"),
            ({"server": server}, "needs a host"),
            ({"model_handle": server}, "needs a host"),
            ({"model_handle": handle, "models": ["add"]}, "leave out"),
            ({"model_handle": handle, "local_model_path": net}, "leave out"),
        ):
            with pytest.raises(SourceError, match=text):
                TensorSession(**options)
        with pytest.raises(SourceError, match="wanted what init_server"):
            init_model(net, handle)


def _child(server: ServerHandle, handle: ModelHandle, number: int, answers: Any) -> None:
    """Run in another process."""
    try:
        with TensorSession(model_handle=handle, server=server) as session:
            array = np.full((2, 3), number, np.float32)
            kept = session({"x": array}, {"y": {"device": ["cpu", "server"], "key": "k"}})["y"]
            found = session({"x": kept})["y"].tolist() == array.tolist()
        try:
            deinit_model(handle)
        except SessionClosedError as error:
            found = found and "this is a copy" in str(error)
        deinit_server(server)
        answers.put((number, found))
    except BaseException as error:
        answers.put((number, repr(error)))
        raise


def test_handles_in_other_processes(doors: str, net: Path, left: Callable[[], set[str]]) -> None:
    """Handles are pickled into processes, which infer at once; that they end leaves the others alone."""
    context = multiprocessing.get_context("spawn")
    with init_server(doors) as server, init_model(net, server) as handle:
        answers = context.Queue()
        children = [
            context.Process(target=_child, args=(server, handle, number, answers)) for number in (1, 2)
        ]
        for child in children:
            child.start()
        assert sorted(answers.get(timeout=60) for _ in children) == [(1, True), (2, True)]
        for child in children:
            child.join(60)
        answers.close()
        answers.join_thread()
        with TensorSession(model_handle=handle) as session:
            np.testing.assert_array_equal(session({"x": X})["y"], X)
    assert left() == set()


def test_copies_in_this_process(doors: str, net: Path) -> None:
    """A copy of a handle serves sessions too, and lets nothing go that is not its own."""
    with init_server(doors, token="tk-12345678") as server, init_model(net, server) as handle:
        copied: ModelHandle = pickle.loads(pickle.dumps(handle))
        with TensorSession(model_handle=copied) as session:
            np.testing.assert_array_equal(session({"x": X})["y"], X)
        with pytest.raises(SessionClosedError, match="this is a copy"):
            deinit_model(copied)
        copied.close()
        with TensorSession(model_handle=copied) as session:
            with pytest.raises(
                SessionClosedError, match=r"^close_server\(\) comes before deinit_server\(\): my"
            ):
                deinit_server(copied.server)
            np.testing.assert_array_equal(session({"x": X})["y"], X)
        deinit_server(copied.server)
        with TensorSession(model_handle=handle) as session:
            np.testing.assert_array_equal(session({"x": X})["y"], X)


@pytest.fixture
def shelf(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Server, str]]:
    """A server with a repository of its own, and a way to it."""
    (tmp_path / "shared.onnx").write_bytes(tensor_models.identity())
    arguments = ("--repository", str(tmp_path), "--tensor-model", f"own={tmp_path / 'shared.onnx'}")
    with Server("pixels", "--oip-grpc", "127.0.0.1:0", "--ephemeral", *arguments) as server:
        yield server, f"grpc://{server.oip[0]}" if request.param == "grpc" else server.url


@pytest.mark.parametrize("shelf", ["grpc", "http"], indirect=True)
def test_a_model_of_the_repository_that_sessions_share(shelf: tuple[Server, str]) -> None:
    """It goes with the last that wants it; what came with the server, or an operator loaded, stays."""
    server, url = shelf

    def ready() -> set[str]:
        models = requests.post(f"{server.url}/v2/repository/index", json={"ready": True}, timeout=10).json()
        return {each["name"] for each in models} & {"shared", "own"}

    def check(session: TensorSession) -> None:
        np.testing.assert_array_equal(session({"x": X}, model_name="shared")["y"], X)

    first = TensorSession(url, models=["shared", "own"])
    second = TensorSession(url, models=["shared", "own"])
    first.close_server()
    check(second)
    third = TensorSession(url)  # all that are ready, this one too
    second.close_server()
    check(third)
    third.close_server()
    assert ready() == {"own"}
    with ThreadPoolExecutor(4) as pool:
        sessions = list(pool.map(lambda _: TensorSession(url, models=["shared"]), range(4)))
    for session in sessions:
        check(session)
        session.close_server()
    assert ready() == {"own"}
    with (
        pytest.raises(SourceError, match="core_id: settled when a model is loaded"),
        TensorSession(url, models=["shared"]),
    ):
        TensorSession(url, models=["shared"], core_id=0)
    assert ready() == {"own"}
    requests.post(f"{server.url}/v2/repository/models/shared/load", json={}, timeout=10).raise_for_status()
    with TensorSession(url, models=["shared"]) as session:
        check(session)
        assert requests.get(f"{server.url}/v2/predsession/sessions", timeout=10).json() == {"sessions": []}
    assert ready() == {"own", "shared"}


FORKED = """
import os, sys
import numpy as np
from predsession.errors import SessionClosedError
from predsession.tensor import TensorSession, init_model, init_server
x = np.zeros((1, 3), np.float32)
server = init_server(sys.argv[1])
handle = init_model(sys.argv[2], server)
session = TensorSession(model_handle=handle)
session({"x": x}, {"y": {"device": "server", "key": "k"}})
pid = os.fork()
if pid == 0:
    good = False
    try:
        session({"x": x})
    except SessionClosedError as error:
        good = "belongs to the process that was forked" in str(error)
    session.close_server()
    with TensorSession(model_handle=handle) as own:
        for number in range(20):
            good = good and own({"x": x + number})["y"].tolist() == (x + number).tolist()
    os._exit(0 if good else 1)
for number in range(20):
    assert session({"x": x - number})["y"].tolist() == (x - number).tolist()
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(code, session({"x": x})["y"].tolist())
"""


def test_a_fork(doors: str, net: Path, left: Callable[[], set[str]]) -> None:
    """In the child of a fork a session is an error; handles work there, beside the parent's own."""
    out, errors = python(FORKED, doors, str(net)).communicate(timeout=60)
    assert out == "0 [[0.0, 0.0, 0.0]]\n", errors
    until(lambda: left() == set(), "the parent's end")


FUTURE = """
import os, sys
import numpy as np
from predsession.errors import SessionClosedError
from predsession.tensor import TensorSession
with TensorSession(sys.argv[1], models=["slow"]) as session:
    future = session.submit({"seconds": np.array([1], np.float32)})
    pid = os.fork()
    if pid == 0:
        try:
            future.result(30)
        except SessionClosedError as error:
            os._exit(0 if "belongs to the process that was forked" in str(error) else 1)
        os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(code, future.result(30)["slept"].tolist())
"""


def test_a_future_in_a_fork(doors: str) -> None:
    """In the child it ends with an error at once; in the parent it gets its answer."""
    out, errors = python(FUTURE, doors).communicate(timeout=60)
    assert out == "0 [1.0]\n", errors
