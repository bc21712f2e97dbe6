"""How a server is set up: plain values, handed down from the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from predsession.wire.jsontypes import JSONObject

TOKEN_VARIABLE = "PREDSESSION_SERVER_TOKEN"  # noqa: S105 - the variable's name, not a token
Ready = Callable[[JSONObject, Callable[[], None]], None]
"""Takes what ``--announce`` says and what ends the server; the latter may be called from any thread."""

KIBI, MEBI, GIBI = 1 << 10, 1 << 20, 1 << 30


def _count(default: int, text: str) -> int:
    """Make a field that counts something, with the help text for the command line."""
    value: int = field(default=default, metadata={"help": text})
    return value


def _time(default: float, text: str) -> float:
    """Make a field that is a time, likewise."""
    value: float = field(default=float(default), metadata={"help": f"seconds {text}"})
    return value


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server refuses, and how long it keeps things.

    Each field is an option of the command line, ``--limit-NAME``; sizes are bytes, times are seconds, and
    each field's own help text says what it counts.
    """

    files: int = _count(1000, "files in one upload")
    body: int = _count(2 * GIBI, "bytes of one upload")
    text: int = _count(MEBI, "bytes of one text part of an upload")
    texts: int = _count(8 * MEBI, "bytes of all text parts of an upload")
    call: int = _count(MEBI, "bytes of a JSON body")
    name: int = _count(KIBI, "bytes of a file's name")
    pixels: int = _count(100_000_000, "pixels of one picture, by its header")
    uploads: int = _count(32, "uploads that are received at the same time")
    queue: int = _count(100_000, "pictures that wait for one model")
    jobs: int = _count(256, "unfinished jobs of one client, by its address")
    kept: int = _count(10_000, "jobs that are known, finished ones included")
    disk: int = _count(20 * GIBI, "bytes of uploads and results together")
    free: int = _count(256 * MEBI, "bytes that stay free on the disk")
    frames: int = _count(256, "pictures sent over gRPC, or calls with tensors, that wait for one model")
    backlog: int = _count(512 * MEBI, "bytes of those together")
    streams: int = _count(16, "cameras that are watched over gRPC at the same time")
    sessions: int = _count(64, "sessions over gRPC")
    registered: int = _count(16, "models that are registered over gRPC; tensor models that calls had loaded")
    networks: int = _count(GIBI, "bytes of tensor models that were sent")
    tensors: int = _count(GIBI, "bytes of tensors that are kept")
    leases: int = _count(256, "sessions that keep tensors or models")
    connections: int = _count(512, "calls that are answered at the same time")
    head: float = _time(20, "for the line and the headers of a request")
    idle: float = _time(60, "between two pieces of an upload, or for the body of another call")
    batch: float = _time(120, "a model may take for one batch before it counts as hung")
    load: float = _time(120, "a model may take to load")
    lease: float = _time(120, "a job of the extension lives when no call names it")
    unread: float = _time(3600, "a finished job is kept")
    cleared: float = _time(60, "a job is kept after its clear")
    sweep: float = _time(2, "between two looks for what is over its time")
    wait: float = _time(30, "a pop is held at most")
    grace: float = _time(10, "a batch has to finish when the server ends")


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model by name, and where it comes from.

    Parameters
    ----------
    name : str
        What it is called in paths, settings and messages.
    target : str
        A bundled model, ``module:attribute``, ``path/to/file.py:attribute``, or a description file.
    """

    name: str
    target: str


def is_loopback(host: str) -> bool:
    """Whether an address or a name is that of this machine only."""
    return host in {"localhost", "::1"} or re.fullmatch(r"127\.\d+\.\d+\.\d+", host) is not None


@dataclass(frozen=True, slots=True)
class Door:
    """Where the server listens, and whom it lets in.

    Parameters
    ----------
    host : str
        The address it listens on.
    port : int
        The port; 0 takes any that is free.
    token : str or None
        What a caller must show, where set.
    origins : tuple of str
        Web origins whose pages may call, such as ``https://example.org``.
    certfile, keyfile : Path or None
        For TLS.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    origins: tuple[str, ...] = ()
    certfile: Path | None = None
    keyfile: Path | None = None


@dataclass(frozen=True, slots=True)
class EdgeDoor:
    """Where the server speaks the edge interface, over gRPC.

    Parameters
    ----------
    addresses : tuple of str
        ``127.0.0.1:50051``, ``unix:/run/x.sock``.
    streams : mapping of str to Path
        The cameras' names, and the video or the folder that stands in for each.
    register : bool
        Whether callers may have models loaded, which is to run code.
    """

    addresses: tuple[str, ...]
    streams: Mapping[str, Path] = field(default_factory=dict)
    register: bool = False


@dataclass(frozen=True, slots=True)
class OipDoor:
    """What the server has of the Open Inference Protocol; HTTP is on the usual port.

    Parameters
    ----------
    addresses : tuple of str
        Where it speaks gRPC too: ``127.0.0.1:8001``, ``unix:/run/x.sock``.
    models : tuple of ModelSpec
        Tensor models: an ONNX file, ``module:Model`` or ``path/to/file.py:Model``.
    repository : Path or None
        A folder of networks that may be loaded by name.
    upload : bool
        Whether callers may send models.
    """

    addresses: tuple[str, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    repository: Path | None = None
    upload: bool = False


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Everything a server needs to know.

    Parameters
    ----------
    models : tuple of ModelSpec
        What it serves; the first is the one meant where a call names none.
    folder : Path
        Where jobs, uploads and results are kept.
    door : Door
        Where it listens.
    ephemeral : bool
        Whether `folder` goes with the server.
    workers : int
        Processes for each model.
    stock : bool
        Whether it has a stock server's limits and none of the extension.
    plain_errors : bool
        Whether a fault is answered as a stock server in development mode does, without JSON.
    announce : bool
        Whether it prints its address on stdout once it is ready.
    follow_stdin : bool
        Whether it ends with its stdin.
    limits : Limits
        What it refuses.
    library : Path or None
        A folder of pictures and videos that have ids.
    edge : EdgeDoor or None
        A second door, over gRPC.
    oip : OipDoor or None
        A third, of tensors.
    """

    models: tuple[ModelSpec, ...]
    folder: Path
    door: Door = field(default_factory=Door)
    ephemeral: bool = False
    workers: int = 1
    stock: bool = False
    plain_errors: bool = False
    announce: bool = False
    follow_stdin: bool = False
    limits: Limits = field(default_factory=Limits)
    library: Path | None = None
    edge: EdgeDoor | None = None
    oip: OipDoor | None = None
