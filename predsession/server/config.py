"""How a server is set up: plain values, handed down from the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server refuses, and how long it keeps things.

    Parameters
    ----------
    files : int
        Files in one form.
    body : int
        Bytes of one upload.
    field : int
        Bytes of one text part of a form.
    json_body : int
        Bytes of a JSON body.
    name : int
        Bytes of an upload's file name.
    pixels : int
        Pixels of one picture; checked in its header, before any memory is taken.
    batch_s : float
        Seconds a model may take for one batch before it counts as hung.
    load_s : float
        Seconds a model may take to load.
    lease_s : float
        Seconds a job of the extension lives without being named by any call.
    unread_s : float
        Seconds a job is kept after it last changed.
    cleared_s : float
        Seconds a job is kept after its clear.
    sweep_s : float
        Seconds between two looks for what is over its time.
    wait_s : float
        The longest a pop is held.
    """

    files: int = 1000
    body: int = 2048 * MEBIBYTE
    field: int = MEBIBYTE
    json_body: int = MEBIBYTE
    name: int = 1024
    pixels: int = 100_000_000
    batch_s: float = 120.0
    load_s: float = 120.0
    lease_s: float = 120.0
    unread_s: float = 3600.0
    cleared_s: float = 60.0
    sweep_s: float = 5.0
    wait_s: float = 30.0


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model by name, and where it comes from.

    Parameters
    ----------
    name : str
        What it is called in messages and paths.
    target : str
        The name of a bundled model.
    """

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Everything a server needs to know.

    Parameters
    ----------
    model : ModelSpec
        What it serves.
    folder : Path
        Where jobs, uploads and results are kept.
    ephemeral : bool
        Whether `folder` goes with the server.
    host : str
        The address it listens on.
    port : int
        The port; 0 takes any that is free.
    stock : bool
        Whether it has a stock server's limits and none of the extension.
    plain_errors : bool
        Whether a fault is answered as a stock server in development mode does, without JSON.
    token : str or None
        What a caller must show, where set.
    announce : bool
        Whether it prints its address on stdout once it is ready.
    follow_stdin : bool
        Whether it ends with its stdin.
    limits : Limits
        What it refuses.
    """

    model: ModelSpec
    folder: Path
    ephemeral: bool = False
    host: str = "127.0.0.1"
    port: int = 8000
    stock: bool = False
    plain_errors: bool = False
    token: str | None = None
    announce: bool = False
    follow_stdin: bool = False
    limits: Limits = field(default_factory=Limits)
