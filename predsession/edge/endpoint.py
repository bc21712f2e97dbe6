"""Where the runtime is, and how a path in a container is called on its host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from predsession.errors import SourceError

ENDPOINT_VARIABLE = "AI_RUNTIME_ENDPOINT"
DEFAULT_ENDPOINT = "unix:///run/aipc/ai-runtime.sock"
PREFIX_VARIABLE = "AIPC_HOST_PREFIX"
DEFAULT_PREFIX = "/data/aipc"
CONTAINER_PREFIXES = ("/opt/aipc", "/data/aipc")
"""What the platform's own containers call the folder that the host has at `PREFIX_VARIABLE`."""


def find_endpoint(endpoint: str | None) -> str:
    """Return gRPC's own form of an address.

    Parameters
    ----------
    endpoint : str or None
        ``"127.0.0.1:50051"``, ``"unix:///run/x.sock"``, ``"/run/x.sock"``, ``"dns:///camera:50051"``; without
        one what the environment variable ``AI_RUNTIME_ENDPOINT`` says, else ``DEFAULT_ENDPOINT``.

    Returns
    -------
    str
        For a channel.

    Raises
    ------
    SourceError
        If it is none of these.
    """
    text = endpoint if endpoint is not None else os.environ.get(ENDPOINT_VARIABLE) or DEFAULT_ENDPOINT
    if text.startswith(("unix:", "dns:", "ipv4:", "ipv6:")):
        return text
    if text.startswith("/"):
        return f"unix://{text}"
    address = urlsplit(text if "//" in text else f"//{text}")
    try:
        whole = address.hostname and address.port is not None
    except ValueError:
        whole = False
    if address.scheme not in {"", "tcp", "grpc"} or not whole or address.path not in {"", "/"}:
        raise SourceError(
            f"{text!r} is no address of an edge runtime: 127.0.0.1:50051, or unix:///run/runtime.sock"
        )
    return address.netloc


def host_path(path: str | os.PathLike[str], translation: Mapping[str, str] | None = None) -> str:
    """Return what the runtime's host calls a path of this container.

    Parameters
    ----------
    path : str or PathLike
        As this process sees it. It is not looked at: it may exist on the host alone.
    translation : mapping of str to str, or None
        Folder here to folder there; the longest that fits is taken. Without it ``/opt/aipc`` and
        ``/data/aipc`` become what the environment variable ``AIPC_HOST_PREFIX`` says; ``/data/aipc`` by
        default.

    Returns
    -------
    str
        The path itself where no folder fits.
    """
    if translation is None:
        prefix = os.environ.get(PREFIX_VARIABLE, DEFAULT_PREFIX)
        translation = dict.fromkeys(CONTAINER_PREFIXES, prefix) if prefix else {}
    here = PurePosixPath(os.fspath(path))
    for folder in sorted(translation, key=len, reverse=True):
        # Whole names only: /opt/aipc2 is another folder.
        if here.is_relative_to(folder):
            return str(PurePosixPath(translation[folder]) / here.relative_to(folder))
    return os.fspath(path)
