"""``predsession serve``: its arguments, and what it says when something is wrong."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from predsession.errors import MissingExtraError

if TYPE_CHECKING:
    from predsession.server.config import ServerConfig

USAGE, SERVER = 2, 3
_NEEDED = ("starlette", "uvicorn", "python_multipart", "onnxruntime")


class CommandError(Exception):
    """The server cannot be started; the message says what to do.

    Parameters
    ----------
    message : str
        One line.
    code : int
        The exit code.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``serve``.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Of the subcommand.
    """
    add = parser.add_argument
    add("target", nargs="?", metavar="MODEL", help="detect (default), segment, or pixels, a model for tests")
    add("--model", metavar="MODEL", help="the same, spelled out")
    add("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    add("--port", type=int, default=8000, help="port; 0 takes any that is free (default: 8000)")
    add("--token", help="what callers must show (default: the environment variable PREDSESSION_SERVER_TOKEN)")
    add("--data", type=Path, metavar="DIR", help="where jobs and results are kept across restarts")
    add("--ephemeral", action="store_true", help="keep nothing: jobs and results end with the server")
    add(
        "--stock",
        action="store_true",
        help="imitate a stock server, with its limits and without the extension",
    )
    add(
        "--plain-errors", action="store_true", help="with --stock: answer faults as its development mode does"
    )
    add("--announce", action="store_true", help="print one line of JSON with the address once it is ready")
    add("--follow-stdin", action="store_true", help="end when stdin ends")
    add("--quiet", action="store_true", help="log errors only")


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
    for name in _NEEDED:
        if importlib.util.find_spec(name) is None:
            raise MissingExtraError("server", "predsession serve")
    level = logging.ERROR if args.quiet else logging.INFO
    logging.basicConfig(stream=sys.stderr, level=level, format="%(asctime)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        with _folder(args) as folder:
            _serve(args, folder)
    except CommandError as error:
        print(f"predsession serve: {error}", file=sys.stderr)  # noqa: T201 - a command's one line
        return error.code
    except KeyboardInterrupt:
        return 130
    return 0


def _serve(args: argparse.Namespace, folder: Path) -> None:
    """Take the port and serve."""
    from predsession.server.models.card import ModelLoadError
    from predsession.server.serve import serve

    config = _config(args, folder)
    with contextlib.closing(_listen(config)) as listener:
        try:
            serve(config, listener)
        except ModelLoadError as error:
            raise CommandError(str(error), USAGE) from error


def _config(args: argparse.Namespace, folder: Path) -> ServerConfig:
    """Return the configuration that the arguments ask for."""
    from predsession.server.config import ModelSpec, ServerConfig

    target = args.model or args.target or "detect"
    return ServerConfig(
        model=ModelSpec(target, target),
        folder=folder,
        ephemeral=_is_ephemeral(args),
        host=args.host,
        port=args.port,
        stock=args.stock,
        plain_errors=args.plain_errors,
        token=args.token or os.environ.get("PREDSESSION_SERVER_TOKEN") or None,
        announce=args.announce,
        follow_stdin=args.follow_stdin,
    )


def _listen(config: ServerConfig) -> socket.socket:
    """Take the port, or say why not."""
    from predsession.server.serve import listen

    try:
        return listen(config.host, config.port)
    except OSError as error:
        advice = "choose another with --port, or --port 0 for any that is free"
        raise CommandError(
            f"cannot listen on {config.host}:{config.port}: {error.strerror}; {advice}", SERVER
        ) from error


def _is_ephemeral(args: argparse.Namespace) -> bool:
    """Whether nothing is kept: asked for, or on a port that nobody could find again."""
    return args.data is None and (args.ephemeral or args.stock or args.port == 0)


@contextlib.contextmanager
def _folder(args: argparse.Namespace) -> Iterator[Path]:
    """Give the server its folder, for itself alone; an ephemeral one is removed at the end."""
    if _is_ephemeral(args):
        with tempfile.TemporaryDirectory(prefix="predsession-serve-") as name:
            yield Path(name)
        return
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder = args.data or state / "predsession" / f"port-{args.port}"
    with _locked(folder):
        yield folder


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock; it goes with the process, however that ends."""
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise CommandError(
            f"cannot use {folder}: {error.strerror}; choose another with --data", USAGE
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            advice = "another server uses it; choose another with --data"
            raise CommandError(f"{folder} is locked: {advice}", SERVER) from error
        yield
