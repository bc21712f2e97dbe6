"""Where ``serve`` speaks gRPC, and what it has of the Open Inference Protocol, read off its arguments."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from predsession.errors import MissingExtraError, PredSessionError
from predsession.server.config import TOKEN_VARIABLE, Door, EdgeDoor, OipDoor, is_loopback
from predsession.server.folders import USAGE, CommandError
from predsession.server.specs import model_specs


def edge_door(args: argparse.Namespace) -> EdgeDoor | None:
    """Return where gRPC is spoken, if that is wanted and safe.

    Parameters
    ----------
    args : argparse.Namespace
        Of `add_arguments`.

    Returns
    -------
    EdgeDoor or None
        None without ``--grpc``.

    Raises
    ------
    CommandError
        If the arguments do not go together, or an address is open to other machines.
    MissingExtraError
        If the extra ``edge`` is not installed.
    """
    if not args.grpc:
        if args.stream or args.grpc_register:
            raise CommandError("--stream and --grpc-register mean nothing without --grpc ADDRESS", USAGE)
        return None
    if args.stock:
        raise CommandError("a server with --stock speaks no gRPC; leave out one of the two", USAGE)
    _check_modules("grpc", "google.protobuf", extra="edge", option="--grpc")
    distant = _distant("--grpc", args.grpc)
    if distant and not args.insecure:
        advice = "say --insecure if everybody who can reach it may use it; the interface has no tokens"
        raise CommandError(f"--grpc {distant[0]} is open to other machines: {advice}", USAGE)
    # Who asks for a token over HTTP does not trust everybody on this machine: a socket's file has an owner, a
    # port has none.
    guarded = token_of(args) is not None and any(not text.startswith("unix:") for text in args.grpc)
    register = bool(args.grpc_register) or not (distant or guarded)
    return EdgeDoor(tuple(args.grpc), _streams(args.stream, args.limit_pixels), register)


def oip_door(args: argparse.Namespace, door: Door) -> OipDoor | None:
    """Return what there is of the Open Inference Protocol, if that is wanted and safe.

    Parameters
    ----------
    args : argparse.Namespace
        Of `add_arguments`.
    door : Door
        Where HTTP is.

    Returns
    -------
    OipDoor or None
        None without ``--oip`` and ``--oip-grpc``.

    Raises
    ------
    CommandError
        If the arguments do not go together, or an address is open to other machines.
    MissingExtraError
        If the extra ``tensor`` is not installed.
    """
    if not (args.oip or args.oip_grpc):
        if args.tensor_model or args.repository or args.oip_load:
            raise CommandError(
                "--tensor-model, --repository and --oip-load mean nothing without --oip", USAGE
            )
        return None
    if args.stock:
        raise CommandError("a server with --stock has no tensors; leave out --oip or --stock", USAGE)
    _check_modules("grpc", "google.protobuf", "ml_dtypes", extra="tensor", option="--oip")
    distant = _distant("--oip-grpc", args.oip_grpc)
    if distant and door.token is None and not args.insecure:
        advice = (
            f"set a token in {TOKEN_VARIABLE}, or say --insecure if everybody who can reach it may use it"
        )
        raise CommandError(f"--oip-grpc {distant[0]} is open to other machines: {advice}", USAGE)
    if args.repository is not None and not args.repository.is_dir():
        raise CommandError(f"--repository {args.repository}: there is no such folder", USAGE)
    models = model_specs(args.tensor_model, "--tensor-model") if args.tensor_model else ()
    local = is_loopback(door.host) and not distant
    return OipDoor(tuple(args.oip_grpc), models, args.repository, bool(args.oip_load) or local)


def _check_modules(*names: str, extra: str, option: str) -> None:
    """Look whether the modules of an extra are there; raises `MissingExtraError`."""
    if any(not _is_there(name) for name in names):
        raise MissingExtraError(extra, f"predsession serve {option}")


def _is_there(name: str) -> bool:
    """Whether a module can be imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it is not there
        return False


def _distant(option: str, texts: Sequence[str]) -> list[str]:
    """Read addresses for gRPC; return those that other machines can reach."""
    from predsession.server.address import Address, DoorError

    try:
        addresses = [Address.read(text) for text in texts]
    except DoorError as error:
        raise CommandError(f"{option} {error}", USAGE) from error
    return [address.target for address in addresses if not address.local]


def _streams(words: Sequence[str], max_pixels: int) -> dict[str, Path]:
    """Read what stands in for cameras; each is opened once, for who watches it comes later."""
    from predsession.server.edge.cameras import open_camera

    streams: dict[str, Path] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals or not name or not path or name in streams:
            raise CommandError(f"--stream {word}: wanted NAME=PATH, each name once", USAGE)
        if not Path(path).exists():
            raise CommandError(f"--stream {word}: there is no file or folder {path}", USAGE)
        try:
            open_camera(Path(path), max_pixels=max_pixels).close()
        except (PredSessionError, OSError) as error:
            raise CommandError(f"--stream {word}: {error}", USAGE) from None
        streams[name] = Path(path)
    return streams


def token_of(args: argparse.Namespace) -> str | None:
    """Return what callers must show; None where they need not; ``--token ""`` is none at all."""
    given: str | None = args.token
    return (os.environ.get(TOKEN_VARIABLE) if given is None else given) or None
