"""``predsession serve``: its arguments, and what it says when something is wrong."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import socket
import ssl
import sys
from dataclasses import fields
from pathlib import Path

from predsession.errors import MissingExtraError
from predsession.server.config import (
    TOKEN_VARIABLE,
    Door,
    Limits,
    ModelSpec,
    Ready,
    ServerConfig,
    is_loopback,
)
from predsession.server.doors import edge_door, oip_door, token_of
from predsession.server.folders import SERVER, USAGE, CommandError, passing_folder, server_folder
from predsession.server.specs import model_specs

_NEEDED = ("av", "onnxruntime", "python_multipart", "scipy", "starlette", "uvicorn")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
CODES = {
    0: "ended as it was told to",
    USAGE: "wrong usage, or a model that cannot be loaded",
    SERVER: "it cannot run",
}
"""How it ends: exit codes, and what they mean."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``serve``.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Of the subcommand.
    """
    _add_models(parser)
    _add_address(parser)
    _add_folders(parser)
    _add_other_doors(parser)
    _add_manner(parser)
    _add_limits(parser)


def _add_models(parser: argparse.ArgumentParser) -> None:
    """Add what is served, by how many processes."""
    add = parser.add_argument
    add("target", nargs="?", metavar="MODEL",
        help="detect, segment, pixels (a model for tests), module:Model, path/to/file.py:Model, or a "
        "description file of an ONNX detector, .toml (default: detect)")  # fmt: skip
    add("--model", action="append", default=[], metavar="[NAME=]MODEL",
        help="the same, by name; the first of several is the usual one (repeatable)")  # fmt: skip
    add("--workers", type=_positive, default=1, metavar="N", help="processes for each model (default: 1)")


def _add_address(parser: argparse.ArgumentParser) -> None:
    """Add where it listens, and who may call."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", metavar="HOST",
        help="address to listen on; 127.0.0.1 is for this machine only (default: 127.0.0.1)")  # fmt: skip
    add(
        "--port",
        type=int,
        default=8000,
        metavar="PORT",
        help="port; 0 takes any that is free (default: 8000)",
    )
    add("--token", metavar="TOKEN",
        help=f"what callers must show; better in the environment (default: ${TOKEN_VARIABLE})")  # fmt: skip
    add("--insecure", action="store_true", help="listen beyond this machine without a token")
    add("--certfile", type=Path, metavar="FILE", help="certificate, for TLS")
    add("--keyfile", type=Path, metavar="FILE", help="its key")
    add("--cors-origin", action="append", default=[], metavar="ORIGIN",
        help="let pages of this origin call (repeatable)")  # fmt: skip


def _add_folders(parser: argparse.ArgumentParser) -> None:
    """Add what is on disk."""
    add = parser.add_argument
    add("--data", type=Path, metavar="DIR",
        help="where jobs and results are kept across restarts (default: a folder of the user's, named by the "
        "port)")  # fmt: skip
    add("--library", type=Path, metavar="DIR",
        help="a folder of pictures and videos that get ids: project / dataset / file")  # fmt: skip


def _add_other_doors(parser: argparse.ArgumentParser) -> None:
    """Add the interfaces beside HTTP's own."""
    add = parser.add_argument
    add("--grpc", action="append", default=[], metavar="ADDRESS",
        help="speak the edge runtimes' interface there, too: 127.0.0.1:50051, or unix:/path/to.sock "
        "(repeatable)")  # fmt: skip
    add("--stream", action="append", default=[], metavar="NAME=PATH",
        help="with --grpc: a video, or a folder of pictures, that stands in for a camera "
        "(repeatable)")  # fmt: skip
    add("--grpc-register", action="store_true",
        help="with --grpc: let callers register models also where other machines can reach it, or a token is "
        "asked for over HTTP; that is to let them run code")  # fmt: skip
    add("--oip", action="store_true",
        help="speak the Open Inference Protocol (KServe V2) too, below /v2: named tensors")  # fmt: skip
    add("--oip-grpc", action="append", default=[], metavar="ADDRESS",
        help="the same over gRPC: 127.0.0.1:8001, or unix:/path/to.sock (repeatable)")  # fmt: skip
    add("--tensor-model", action="append", default=[], metavar="[NAME=]MODEL",
        help="with --oip: a model of named arrays: an ONNX file, or module:Model as above "
        "(repeatable)")  # fmt: skip
    add("--repository", type=Path, metavar="DIR",
        help="with --oip: a folder of networks that callers may have loaded by name")  # fmt: skip
    add("--oip-load", action="store_true",
        help="with --oip: let callers send ONNX files also where other machines can reach it")  # fmt: skip


def _add_manner(parser: argparse.ArgumentParser) -> None:
    """Add how it behaves."""
    add = parser.add_argument
    add("--ephemeral", action="store_true", help="keep nothing: jobs and results end with the server")
    add(
        "--stock",
        action="store_true",
        help="imitate a stock server: its limits, none of the extension",
    )
    add(
        "--plain-errors", action="store_true", help="with --stock: answer faults as its development mode does"
    )
    add("--announce", action="store_true", help="print one line of JSON with the address once it is ready")
    add("--follow-stdin", action="store_true", help="end when stdin ends")
    add("--log-json", action="store_true", help="log lines of JSON")
    add("--quiet", action="store_true", help="log errors only")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """Add an option for each limit."""
    group = parser.add_argument_group("limits", "numbers; K, M and G stand for 1024, its square and its cube")
    for limit in fields(Limits):
        default: int | float = getattr(Limits(), limit.name)
        kind = _size if isinstance(default, int) else _seconds
        text = f"{limit.metadata['help']} (default: {_shown(default)})"
        group.add_argument(
            f"--limit-{limit.name}",
            type=kind,
            default=limit.default,
            metavar="N" if isinstance(default, int) else "SECONDS",
            help=text.replace("%", "%%"),
        )


def _shown(value: float) -> str:
    """Write a limit as one may type it."""
    for unit, size in reversed(_UNITS.items()):
        if isinstance(value, int) and value >= size and value % size == 0:
            return f"{value // size}{unit}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _size(text: str) -> int:
    """Read a number that may end in K, M or G."""
    number, unit = (text[:-1], text[-1]) if text[-1:].upper() in _UNITS else (text, "")
    value = _number(number, text, "a number such as 100 or 64M") * _UNITS.get(unit.upper(), 1)
    if not 0 < value < 1 << 60:
        raise argparse.ArgumentTypeError(f"{text!r} is out of range")
    return int(value)


def _seconds(text: str) -> float:
    """Read a time."""
    value = _number(text, text, "seconds such as 2.5")
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is out of range")
    return value


def _positive(text: str) -> int:
    """Read a whole number of at least 1."""
    value = _number(text, text, "a whole number, 1 or more")
    if not value >= 1 or value != value // 1:
        raise argparse.ArgumentTypeError(f"{text!r} is out of range: wanted a whole number, 1 or more")
    return int(value)


def _number(number: str, text: str, wanted: str) -> float:
    """Read a number, or say what was wanted."""
    try:
        return float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number: wanted {wanted}") from None


def run(args: argparse.Namespace) -> int:
    """Serve until told to end.

    Parameters
    ----------
    args : argparse.Namespace
        Of `add_arguments`.

    Returns
    -------
    int
        0 after a graceful end, 2 for a mistake in the call, 3 if the server cannot run.

    Raises
    ------
    MissingExtraError
        If the extra ``server`` is not installed.
    """
    check_extra()
    from predsession.server import log

    log.set_up(as_json=args.log_json, quiet=args.quiet)
    try:
        door = _door(args)
        models = model_specs([*([args.target] if args.target else []), *args.model])
        with server_folder(args.data, ephemeral=_is_ephemeral(args), port=args.port) as folder:
            _serve(_config(args, models, door, folder))
    except CommandError as error:
        print(f"predsession serve: {error}", file=sys.stderr)  # noqa: T201 - a command's one line
        return error.code
    return 0


def check_extra() -> None:
    """Look whether everything is installed that a server needs.

    Raises
    ------
    MissingExtraError
        If not.
    """
    if any(importlib.util.find_spec(name) is None for name in _NEEDED):
        raise MissingExtraError("server", "predsession serve")


def serve_here(args: argparse.Namespace, *, ready: Ready) -> None:
    """Serve on this thread, whichever it is, until told to end.

    Parameters
    ----------
    args : argparse.Namespace
        Of `add_arguments`; jobs and results end with the server.
    ready : callable
        Called once the server answers, with its address and what ends it.
    """
    from predsession.server.serve import serve

    door = _door(args)
    models = model_specs([*([args.target] if args.target else []), *args.model])
    with passing_folder() as folder, contextlib.closing(_listen(door)) as listener:
        config = _config(args, models, door, folder)
        serve(config, listener, ready=ready)


def _door(args: argparse.Namespace) -> Door:
    """Return where to listen, if that is safe."""
    token = token_of(args)
    if not is_loopback(args.host) and token is None and not args.insecure:
        advice = (
            f"set a token in {TOKEN_VARIABLE}, or say --insecure if everybody who can reach it may use it"
        )
        raise CommandError(f"--host {args.host} is open to other machines: {advice}", USAGE)
    if (args.certfile is None) != (args.keyfile is None):
        raise CommandError("TLS needs both --certfile and --keyfile", USAGE)
    for path in filter(None, (args.certfile, args.keyfile)):
        if not path.is_file():
            raise CommandError(f"there is no file {path}", USAGE)
    if args.certfile is not None:
        _check_certificate(args.certfile, args.keyfile)
    return Door(args.host, args.port, token, tuple(args.cors_origin), args.certfile, args.keyfile)


def _check_certificate(certfile: Path, keyfile: Path) -> None:
    """Refuse files that are no certificate and its key."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certfile, keyfile, password="")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        text = f"{certfile} and {keyfile} are no certificate and its key in PEM, without password: {reason}"
        raise CommandError(text, USAGE) from error


def _is_ephemeral(args: argparse.Namespace) -> bool:
    """Whether nothing is kept: asked for, or on a port that nobody could find again."""
    return args.data is None and (args.ephemeral or args.stock or args.port == 0)


def _library(args: argparse.Namespace) -> Path | None:
    """Return the library's folder; a stock server has none."""
    if args.library is not None and args.stock:
        raise CommandError("a server with --stock has no library; leave out one of the two", USAGE)
    library: Path | None = args.library
    return library


def _config(
    args: argparse.Namespace, models: tuple[ModelSpec, ...], door: Door, folder: Path
) -> ServerConfig:
    """Return the configuration that the arguments ask for."""
    return ServerConfig(
        models=models,
        folder=folder,
        door=door,
        ephemeral=_is_ephemeral(args),
        workers=args.workers,
        stock=args.stock,
        plain_errors=args.plain_errors,
        announce=args.announce,
        follow_stdin=args.follow_stdin,
        library=_library(args),
        edge=edge_door(args),
        oip=oip_door(args, door),
        limits=Limits(**{limit.name: getattr(args, f"limit_{limit.name}") for limit in fields(Limits)}),
    )


def _serve(config: ServerConfig) -> None:
    """Take the port and serve."""
    from predsession.server.address import DoorError
    from predsession.server.library import LibraryError
    from predsession.server.models.card import ModelLoadError
    from predsession.server.serve import serve
    from predsession.server.store import StoreVersionError

    with contextlib.closing(_listen(config.door)) as listener:
        try:
            serve(config, listener)
        except (LibraryError, ModelLoadError, StoreVersionError) as error:
            raise CommandError(str(error), USAGE) from error
        except DoorError as error:
            raise CommandError(f"gRPC: {error}", SERVER) from error


def _listen(door: Door) -> socket.socket:
    """Take the port, or say why not."""
    from predsession.server.serve import listen

    try:
        return listen(door.host, door.port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        advice = "choose another with --port, or --port 0 for any that is free"
        raise CommandError(f"cannot listen on {door.host}:{door.port}: {reason}; {advice}", SERVER) from error
