"""How a server is reached: the options for it, the same in each command, and what they mean."""

from __future__ import annotations

import argparse
import os

from predsession.errors import SourceError

TRUST = """\
A CA bundle to trust: REQUESTS_CA_BUNDLE names it for https://,
GRPC_DEFAULT_SSL_ROOTS_FILE_PATH for grpcs://.
"""
"""For the help of commands that have no --ca."""


def add_url(parser: argparse.ArgumentParser) -> None:
    """Add the server, as an argument that may be left out."""
    parser.add_argument(
        "url", nargs="?", metavar="URL", help="the server's base URL (default: $PREDSESSION_URL)"
    )


def add_token(parser: argparse.ArgumentParser) -> None:
    """Add what lets one in."""
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        help="for the server; the variable is in no list of processes (default: $PREDSESSION_TOKEN)",
    )


def add_ca(parser: argparse.ArgumentParser) -> None:
    """Add what certificates are checked with."""
    parser.add_argument(
        "--ca", metavar="PATH", help="a CA bundle to trust, or a folder (default: $REQUESTS_CA_BUNDLE)"
    )


def url_of(args: argparse.Namespace) -> str:
    """Return the server that is meant.

    Parameters
    ----------
    args : Namespace
        With what `add_url` added.

    Returns
    -------
    str
        Its URL, as it was written.

    Raises
    ------
    SourceError
        If neither the command line nor the environment names one.
    """
    from predsession.checks import URL_VARIABLE, url_of_environment

    url = url_of_environment() if args.url is None else args.url
    if url is None:
        raise SourceError(f"pass the server's URL, or set {URL_VARIABLE}")
    return str(url)


def verify_of(args: argparse.Namespace) -> str | bool:
    """Return what certificates are checked with.

    Parameters
    ----------
    args : Namespace
        With what `add_ca` added.

    Returns
    -------
    str or bool
        A file or folder, or True for the usual authorities.

    Raises
    ------
    SourceError
        If it is not there.
    """
    if args.ca is None:
        return True
    if not os.path.exists(args.ca):  # noqa: PTH110 - a folder is fine, too
        raise SourceError(f"--ca {args.ca}: there is no such file")
    return str(args.ca)
