"""Where gRPC listens: addresses of the command line, read, checked, and made free. No gRPC here."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from predsession.errors import PredSessionError
from predsession.server.config import is_loopback

_LONGEST_PATH = 107  # bytes, of Linux's sockaddr_un


class DoorError(PredSessionError):
    """An address that cannot be listened on; the message says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where gRPC listens.

    Parameters
    ----------
    target : str
        As gRPC wants it.
    path : Path or None
        The socket's file, where it is one.
    host : str
        Without port, where it is not.
    """

    target: str
    path: Path | None = None
    host: str = ""

    @classmethod
    def read(cls, text: str) -> Address:
        """Read an address.

        Parameters
        ----------
        text : str
            ``127.0.0.1:50051``, ``[::1]:0``, ``unix:/run/x.sock``.

        Returns
        -------
        Address
            Well-formed; whether it is free is another question.

        Raises
        ------
        DoorError
            If it is neither.
        """
        if text.startswith("unix:"):
            path = Path("/" + text.removeprefix("unix:").lstrip("/")) if ":/" in text else None
            if path is None or len(os.fsencode(path)) > _LONGEST_PATH:
                raise DoorError(
                    f"{text} is no socket: wanted unix:/an/absolute/path of at most {_LONGEST_PATH} bytes"
                )
            return cls(f"unix:{path}", path=path)
        host, colon, port = text.rpartition(":")
        plain = host.removeprefix("[").removesuffix("]")
        bracketed = host != plain
        if not colon or not plain or bracketed != (":" in plain) or not _is_port(port):
            raise DoorError(f"{text} is no address: wanted 127.0.0.1:50051, or unix:/path/to.sock")
        return cls(text, host=plain)

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.path is not None or is_loopback(self.host)

    def shown(self, port: int) -> str:
        """Return it as callers use it, with the port that it got."""
        return self.target if self.path is not None else f"{self.target.rpartition(':')[0]}:{port}"

    def make_room(self) -> None:
        """Take away the socket's file that a server before left behind.

        Raises
        ------
        DoorError
            If somebody listens there, or it is something else.
        """
        if self.path is None or not os.path.lexists(self.path):
            return
        if not stat.S_ISSOCK(self.path.lstat().st_mode):
            raise DoorError(f"{self.path} is there already, and is no socket")
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
            try:
                probe.connect(str(self.path))
            except OSError:
                self.path.unlink(missing_ok=True)
            else:
                raise DoorError(f"{self.path}: another server listens there")

    def shut(self) -> None:
        """Take away the socket's file."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _is_port(text: str) -> bool:
    """Whether a text is a port's number."""
    return text.isascii() and text.isdigit() and int(text) < 1 << 16
