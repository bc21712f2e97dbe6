"""Where gRPC listens: addresses of the command line, read, checked, and made free. No gRPC here."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from predsession.errors import PredSessionError
from predsession.server.config import is_loopback

_PROBE_S = 1.0
_LONGEST_PATH = 107  # bytes, of Linux's sockaddr_un
_LONGEST_FOLDER = _LONGEST_PATH - 10  # so that there is room for the name beside


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
            if len(os.fsencode(path.parent)) > _LONGEST_FOLDER:
                raise DoorError(f"{text} is no socket: its folder may have at most {_LONGEST_FOLDER} bytes")
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
            If somebody listens there, it is something else, there is no such folder, or it cannot be told.
        """
        if self.path is None:
            return
        try:
            if not self.path.parent.is_dir():
                raise DoorError(f"cannot listen on {self.target}: there is no folder {self.path.parent}")
            if not os.access(self.path.parent, os.W_OK | os.X_OK):
                raise DoorError(f"cannot listen on {self.target}: no right to write to {self.path.parent}")
            if not stat.S_ISSOCK(self.path.lstat().st_mode):
                raise DoorError(f"{self.path} is there already, and is no socket")
            if _is_left_behind(self.path):
                self.path.unlink()
        except FileNotFoundError:
            return  # nothing is there, or not any more
        except OSError as error:
            raise DoorError(f"cannot listen on {self.target}: {error.strerror or error}") from None

    def beside(self) -> Address:
        """Return where gRPC is to bind: of a socket's file another one in the same folder, for `move_in`.

        When gRPC ends it takes away whatever file is at its address, even another server's.

        Returns
        -------
        Address
            Itself where it is no file.
        """
        if self.path is None:
            return self
        path = self.path.with_name(f".{secrets.token_hex(4)}")
        return Address(f"unix:{path}", path=path)

    def move_in(self, bound: Address) -> Held | None:
        """Give a socket the name that callers know, once gRPC is bound to it; its group may call, too.

        Parameters
        ----------
        bound : Address
            Of `beside`.

        Returns
        -------
        Held or None
            The file, for the end; None where it is none.

        Raises
        ------
        DoorError
            If the name is taken by now.
        """
        if self.path is None or bound.path is None:
            return None
        try:
            bound.path.chmod(0o660)
            self.path.hardlink_to(bound.path)
        except OSError as error:
            raise DoorError(f"cannot listen on {self.target}: {error.strerror or error}") from None
        finally:
            bound.path.unlink()
        found = self.path.lstat()
        return Held(self.path, found.st_dev, found.st_ino)


class Held(NamedTuple):
    """A socket's file that this server has made."""

    path: Path
    device: int
    inode: int

    def shut(self) -> None:
        """Take it away, unless it is another server's by now."""
        with contextlib.suppress(OSError):
            found = self.path.lstat()
            if (found.st_dev, found.st_ino) == (self.device, self.inode):
                self.path.unlink()


def _is_left_behind(path: Path) -> bool:
    """Whether nobody listens on a socket any more; raises `DoorError` if somebody does."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except (TimeoutError, BlockingIOError):
            pass  # a server that does not answer, be it stopped or busy, is there all the same
    raise DoorError(f"{path}: another server listens there")


def _is_port(text: str) -> bool:
    """Whether a text is a port's number."""
    return text.isascii() and text.isdigit() and int(text) < 1 << 16
