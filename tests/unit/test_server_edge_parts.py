"""The gRPC door's parts with plain values: addresses, sessions, the queue, what a model found."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from number_clips import write_numbers

from predsession import MissingExtraError
from predsession.server import command, doors, folders
from predsession.server.address import Address, DoorError, Held
from predsession.server.config import EdgeDoor
from predsession.server.edge.answer import form, to_parts, write_answer
from predsession.server.edge.sessions import QuotaError, Reason, SessionError, Sessions
from predsession.server.folders import CommandError
from predsession.server.job import Job, JobFacts
from predsession.server.models.card import ModelCard
from predsession.server.models.results import Found
from predsession.server.schedule import Schedule
from predsession.server.shots import QueueFullError, Shot, Shots
from predsession.testing import FakeClock
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.fields import Tag
from predsession.wire.geometry import MaskCrop, Size


@pytest.mark.parametrize(("text", "target", "local"), [
    ("127.0.0.1:50051", "127.0.0.1:50051", True),
    ("localhost:0", "localhost:0", True),
    ("[::1]:1", "[::1]:1", True),
    ("0.0.0.0:1", "0.0.0.0:1", False),
    ("camera.example:1", "camera.example:1", False),
    ("unix:/run/x.sock", "unix:/run/x.sock", True),
    ("unix:///run/x.sock", "unix:/run/x.sock", True),
])  # fmt: skip
def test_addresses(text: str, target: str, local: bool) -> None:
    """An address is read, and it is known whether other machines reach it."""
    address = Address.read(text)
    assert (address.target, address.local) == (target, local)


@pytest.mark.parametrize("text", [
    "", "50051", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:x", "::1:5", "[::1]", "[host]:5",
    "unix:", "unix:x.sock", "unix:/" + "x" * 120,
])  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    """What is none is refused, and the message has an example."""
    with pytest.raises(DoorError, match=r"unix:/"):
        Address.read(text)


def test_room_for_a_socket(tmp_path: Path) -> None:
    """A socket that was left behind is taken away; a living one, and another kind of file, are not."""
    path = tmp_path / "x.sock"
    address = Address.read(f"unix:{path}")
    address.make_room()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with pytest.raises(DoorError, match="another server listens there"):
            address.make_room()
    address.make_room()
    assert not path.exists()
    path.write_text("a file")
    with pytest.raises(DoorError, match="is no socket"):
        address.make_room()
    assert path.read_text() == "a file"


def test_a_socket_whose_server_is_stopped(tmp_path: Path) -> None:
    """A server that takes no caller at the moment is one all the same; its socket stays."""
    path = tmp_path / "x.sock"
    with contextlib.ExitStack() as opened:
        listener = opened.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        for _ in range(3):
            caller = opened.enter_context(socket.socket(socket.AF_UNIX))
            caller.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                caller.connect(str(path))
        with pytest.raises(DoorError, match="another server listens there"):
            Address.read(f"unix:{path}").make_room()
    assert path.exists()


@pytest.mark.parametrize(("number", "text"), [
    (errno.EACCES, "Permission denied"), (errno.EPROTOTYPE, "Protocol wrong type"), (None, "another server"),
])  # fmt: skip
def test_a_socket_of_which_nothing_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None, text: str
) -> None:
    """What refuses the probe for another reason than that nobody listens is said, and left alone."""
    path = tmp_path / "x.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    problem = TimeoutError() if number is None else OSError(number, os.strerror(number))

    class Probe(socket.socket):
        def connect(self, address: object) -> None:
            raise problem

    monkeypatch.setattr(socket, "socket", Probe)
    with pytest.raises(DoorError, match=text):
        Address.read(f"unix:{path}").make_room()
    assert path.exists()


def test_no_folder_for_a_socket(tmp_path: Path) -> None:
    """A folder that is not there, or too long for what gRPC binds to, is named."""
    with pytest.raises(DoorError, match=f"there is no folder {tmp_path}/none"):
        Address.read(f"unix:{tmp_path}/none/x.sock").make_room()
    with pytest.raises(DoorError, match="its folder may have at most 97 bytes"):
        Address.read(f"unix:/{'x' * 100}/x")


def test_the_sockets_own_server(tmp_path: Path) -> None:
    """At its end a server takes away its own socket, not the one that another has made there since."""
    address = Address.read(f"unix:{tmp_path}/x.sock")

    def bound() -> Held:
        beside = address.beside()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(beside.path))
        held = address.move_in(beside)
        assert held is not None
        return held

    first = bound()
    assert [path.name for path in tmp_path.iterdir()] == ["x.sock"]
    with pytest.raises(DoorError, match="File exists"):
        bound()
    (tmp_path / "x.sock").rename(tmp_path / "kept")  # or the next could get the same inode
    second = bound()
    first.shut()
    assert (tmp_path / "x.sock").exists()
    second.shut()
    second.shut()
    assert not (tmp_path / "x.sock").exists()


def config(*words: str) -> EdgeDoor | None:
    """Return what ``serve`` makes of its arguments for the gRPC door."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["pixels", "--port", "0", *words])
    return doors.edge_door(args)


def test_arguments(tmp_path: Path) -> None:
    """Callers may register models where only this machine reaches, and elsewhere if that is allowed."""
    assert config() is None
    write_numbers(tmp_path / "clip.mp4", 2)
    cameras = {"cam": tmp_path / "pictures", "clip": tmp_path / "clip.mp4"}
    cameras["cam"].mkdir()
    (cameras["cam"] / "0.png").write_bytes(b"damaged, which shows when it is watched")
    streams = [word for name, path in cameras.items() for word in ("--stream", f"{name}={path}")]
    door = config("--grpc", "127.0.0.1:1", *streams)
    assert door is not None
    assert (door.addresses, door.streams, door.register) == (("127.0.0.1:1",), cameras, True)
    open_door = ("--grpc", "0.0.0.0:1", "--grpc", "unix:/x", "--insecure")
    for more, register in (((), False), (("--grpc-register",), True)):
        door = config(*open_door, *more)
        assert door is not None
        assert door.register is register


@pytest.mark.parametrize(("words", "register"), [
    (["127.0.0.1:1"], False), (["unix:/x"], True), (["unix:/x", "--grpc", "[::1]:1"], False),
    (["127.0.0.1:1", "--grpc-register"], True),
])  # fmt: skip
def test_arguments_with_a_token(monkeypatch: pytest.MonkeyPatch, words: list[str], register: bool) -> None:
    """Who asks for a token over HTTP lets nobody run code by a port that asks for none, unless told to."""
    for door in (config("--token", "x", "--grpc", *words), None):
        if door is None:
            monkeypatch.setenv("PREDSESSION_SERVER_TOKEN", "x")
            door = config("--grpc", *words)
        assert door is not None
        assert door.register is register


def test_streams_that_are_no_cameras(tmp_path: Path) -> None:
    """An empty folder and a file that is no video are refused at the start, by name."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.mp4").write_text("no video")
    for name in ("empty", "text.mp4"):
        with pytest.raises(CommandError, match=f"--stream a=.*/{name}: .*{name}"):
            config("--grpc", "unix:/x", "--stream", f"a={tmp_path / name}")
    (tmp_path / "empty" / "0.png").touch()
    with pytest.raises(CommandError, match="each name once"):
        config("--grpc", "unix:/x", *["--stream", f"a={tmp_path}/empty"] * 2)


@pytest.mark.parametrize(("words", "said"), [
    (["--limit-streams", "abc"], "'abc' is no number: wanted a number such as 100 or 64M"),
    (["--limit-streams", "M"], "'M' is no number"), (["--limit-grace", "soon"], "wanted seconds such as 2.5"),
    (["--workers", "two"], "'two' is no number: wanted a whole number, 1 or more"),
    (["--workers", "1.5"], "'1.5' is out of range"), (["--workers", "nan"], "'nan' is out of range"),
    (["--limit-streams", "0"], "'0' is out of range"),
])  # fmt: skip
def test_numbers_that_are_none(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A limit that is no number says what was wanted."""
    with pytest.raises(SystemExit):
        config(*words)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("words", "text"), [
    (["--grpc", "0.0.0.0:1"], "open to other machines"),
    (["--grpc", "here"], "is no address"),
    (["--grpc", "unix:/x", "--stock"], "speaks no gRPC"),
    (["--stream", "a=b"], "mean nothing without --grpc"),
    (["--grpc-register"], "mean nothing without --grpc"),
    (["--grpc", "unix:/x", "--stream", "a"], "NAME=PATH"),
    (["--grpc", "unix:/x", "--stream", "a=/no/such"], "no file or folder"),
    (["--grpc", "unix:/x", "--stream", "a="], "NAME=PATH, each name once"),
])  # fmt: skip
def test_wrong_arguments(words: list[str], text: str) -> None:
    """A mistake in the call is found before anything is started, and said."""
    with pytest.raises(CommandError, match=text) as raised:
        config(*words)
    assert raised.value.code == folders.USAGE


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without gRPC installed, the extra is named."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"predsession\[edge\]"):
        config("--grpc", "unix:/x")


NEVER = threading.Event()


def refusal(call: Callable[[], object]) -> Reason:
    """Return why a session refuses."""
    with pytest.raises(QuotaError) as raised:
        call()
    return raised.value.reason


def test_a_sessions_rate() -> None:
    """In any second so many calls pass, wherever it begins; nothing is made up for later."""
    clock = FakeClock()
    sessions = Sessions(4, clock=clock.now)
    sessions.create("s", "", max_qps=2)

    def call() -> None:
        with sessions.enter("s", "m"):
            pass

    call()
    clock.wait(NEVER, 0.9)
    call()
    assert refusal(call) is Reason.RATE
    clock.wait(NEVER, 0.2)
    call()  # the first is more than a second ago
    assert refusal(call) is Reason.RATE
    clock.wait(NEVER, 60)
    call()
    call()
    assert refusal(call) is Reason.RATE


def test_a_sessions_crowd_and_models() -> None:
    """So many calls run at once, of the models that are allowed; one that failed runs no more."""
    sessions = Sessions(4, clock=FakeClock().now)
    session = sessions.create("", "app", max_concurrent=1, allowed=["m"])
    assert session.id.startswith("app-")

    def call(model: str = "m") -> None:
        with sessions.enter(session.id, model):
            pass

    with sessions.enter(session.id, "m"):
        assert refusal(call) is Reason.CROWD
    with pytest.raises(ZeroDivisionError), sessions.enter(session.id, "m"):
        raise ZeroDivisionError
    call()
    assert refusal(lambda: call("other")) is Reason.MODEL
    assert sessions.destroy(session.id)
    assert not sessions.destroy(session.id)
    assert session.ended
    assert refusal(call) is Reason.UNKNOWN
    with sessions.enter("", "other") as none:
        assert none is None


def test_room_for_sessions() -> None:
    """A session that is long unused makes room; one in use, or used lately, does not."""
    clock = FakeClock()
    sessions = Sessions(2, clock=clock.now)
    sessions.create("old", "")
    sessions.create("running", "")
    with pytest.raises(SessionError, match="--limit-sessions"):
        sessions.create("new", "")
    with sessions.enter("running", "m"):
        clock.wait(NEVER, 601)
        sessions.create("new", "")
        assert refusal(lambda: sessions.enter("old", "m").__enter__()) is Reason.UNKNOWN
        with pytest.raises(SessionError):
            sessions.create("newer", "")


def shot(priority: int = 4, size: int = 3) -> Shot:
    """Return a picture of so many bytes."""
    return Shot(b"x" * size, Size(1, 1), {}, priority)


def job(count: int) -> Job:
    """Return a job of so many items."""
    return Job(f"job of {count}", JobFacts("m", (1,) * count, {}, 16, ("x",) * count), 0.0, 0.0)


def test_the_queue() -> None:
    """Higher priorities first, then who came first; what was cancelled leaves; the queue has an end."""

    async def check() -> None:
        shots = Shots(Schedule(), most=4, most_bytes=100)
        low, high, other, gone = (shot(priority) for priority in (0, 7, 7, 7))
        for one in (low, gone, high, other):
            shots.add(one)
        with pytest.raises(QueueFullError):
            shots.add(shot())
        gone.answer.cancel()
        await asyncio.sleep(0)
        assert len(shots) == 3
        with pytest.raises(QueueFullError):
            shots.add(shot(size=98))
        batch = shots.take(2, 1)
        assert batch.shots == (high, other)
        assert not batch.unwanted
        assert shots.take(2, 2).shots == (low,)
        shots.add(shot(size=1000))  # alone, a picture may be larger than all together
        shots.fail({"type": "X", "message": "gone", "traceback": ""})
        await asyncio.sleep(0)
        assert len(shots) == 0

    asyncio.run(check())


def test_fair_to_jobs() -> None:
    """Shots together are served as one job is: in turn, and what was not used is not saved up."""

    async def check() -> None:
        schedule = Schedule()
        shots = Shots(schedule, most=100, most_bytes=1000)
        schedule.add(job(1000))
        for _ in range(20):
            schedule.take(10)
        for _ in range(40):
            shots.add(shot())
        turns = ""
        for _ in range(8):
            first = shots.goes_first()
            turns += "s" if first else "j"
            served = shots.take(10, 1) if first else schedule.take(10)
            assert served
        assert turns.count("s") == 4
        assert "sss" not in turns  # one who comes anew goes first once
        assert not shots.goes_first()

    asyncio.run(check())


CARD = ModelCard(("cat", "dog"), "bitmap", {}, None, "instance segmentation", keypoints=("a",))
FOUND = Found(
    boxes=np.array([[10, 5, 30, 10], [0, 0, 40, 20]], np.float32),
    scores=np.array([0.5, 0.25], np.float32),
    class_ids=np.array([1, 0]),
    masks=[MaskCrop(10, 5, np.ones((5, 20), np.bool_)), None],
    keypoints=np.array([[[20, 10, 1]], [[0, 0, 0]]], np.float32),
    tags=(Tag("outdoors", None),),
)


def test_what_a_model_found() -> None:
    """Boxes and points become shares of the picture; an empty mask is a mask without pixels."""
    parts = to_parts(FOUND, Size(40, 20), CARD)
    assert [(each.label, each.score, tuple(each.bbox)) for each in parts.objects] == [
        ("dog", 0.5, (0.25, 0.25, 0.5, 0.25)),
        ("cat", 0.25, (0.0, 0.0, 1.0, 1.0)),
    ]
    first, second = (mask.to_numpy_mask() for mask in parts.masks)
    assert first[5:10, 10:30].all()
    assert (first.sum(), second.sum(), second.shape) == (100, 0, (20, 40))
    assert [tuple(each.points[0]) for each in parts.landmarks] == [(0.5, 0.5, 1.0), (0.0, 0.0, 0.0)]
    assert [each.label for each in parts.classifications] == ["outdoors"]


@pytest.mark.parametrize("frame", [True, False])
def test_a_written_answer(frame: bool) -> None:
    """What is wanted is written, and what is written after it becomes part of the same message."""
    kind = pb.StreamInferResponse if frame else pb.InferResponse
    for outputs in (True, False):
        asked = form(frame=frame, outputs=outputs, findings=not outputs)
        text = write_answer(FOUND, Size(40, 20), card=CARD, form=asked)
        whole = kind.FromString(text + kind(status=pb.Status(success=True)).SerializeToString())
        assert whole.status.success
        assert len(whole.outputs) == (4 if outputs else 0)
        assert len(whole.post_result.detections) == (0 if outputs else 2)
