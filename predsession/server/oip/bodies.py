"""Bodies of the HTTP calls: read within limits, unpacked where they came packed, answered likewise.

A body that unpacks to more than it may be is refused when it gets there, not when it has filled the memory.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request

from predsession.server.config import Limits
from predsession.server.statuses import CallError
from predsession.wire.oip.messages import Buffer
from predsession.wire.oip.rest import HEADER_LENGTH, Body

_GZIP, _ZLIB = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}
_LEVEL = 1  # numbers hardly shrink further, whatever the time
_SMALL = 1 << 16
"""Bytes up to which the work is done at once; more goes to a thread, so that others are answered."""


class Bodies:
    """Reads bodies; so much at the same time.

    Parameters
    ----------
    limits : Limits
        The largest body, which is also what all bodies together may take, and how long they may take.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held = 0
        """Bytes of all bodies that are there."""

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """Hold what is read for as long as the block lasts."""
        reading = Reading(self)
        try:
            yield reading
        finally:
            self.held -= reading.size


class Reading:
    """The reading of one body; made by `Bodies`."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._limits = bodies.limits
        self.size = 0
        """Bytes that are held for it."""

    def _hold(self, size: int) -> None:
        """Take room, or refuse; less than none gives it back."""
        most, others = self._limits.body, self._bodies.held - self.size
        if self.size + size > most:
            raise CallError("OUT_OF_RANGE", f"the body has more than {most} bytes; see --limit-body")
        if others + self.size + size > most:
            raise CallError("RESOURCE_EXHAUSTED", f"{others:,} bytes of other bodies are there; try again")
        self.size += size
        self._bodies.held += size

    async def read(self, request: Request) -> bytes:
        """Read a body.

        Parameters
        ----------
        request : Request
            The call.

        Returns
        -------
        bytes
            Unpacked.

        Raises
        ------
        CallError
            If it is too large, too slow, or not packed as it says.
        """
        body = bytearray()
        stream = request.stream()
        try:
            while True:
                async with asyncio.timeout(self._limits.idle):
                    chunk = await anext(stream, None)
                if chunk is None:
                    break
                self._hold(len(chunk))
                body += chunk
        except TimeoutError:
            text = f"nothing of the body came for {self._limits.idle:g} seconds"
            raise CallError("DEADLINE_EXCEEDED", text) from None
        return await self._unpacked(bytes(body), request.headers.get("content-encoding", "").strip().lower())

    async def _unpacked(self, body: bytes, encoding: str) -> bytes:
        """Unpack a body."""
        if encoding in {"", "identity"}:
            return body
        if encoding not in _WINDOWS:
            raise CallError(
                "INVALID_ARGUMENT", f"Content-Encoding is {encoding[:50]!r}; wanted gzip or deflate"
            )
        unpacked = await asyncio.to_thread(_unpack, body, _WINDOWS[encoding], self._limits.body)
        self._hold(len(unpacked) - len(body))
        return unpacked


def _unpack(body: bytes, window: int, most: int) -> bytes:
    """Unpack a body, up to a limit."""
    unpacker = zlib.decompressobj(window)
    try:
        unpacked = unpacker.decompress(body, most + 1)
    except zlib.error as error:
        raise CallError(
            "INVALID_ARGUMENT", f"the body is not packed as Content-Encoding says: {error}"
        ) from None
    if len(unpacked) > most:
        raise CallError("OUT_OF_RANGE", f"the body unpacks to more than {most} bytes; see --limit-body")
    if not unpacker.eof or unpacker.unused_data:
        raise CallError("INVALID_ARGUMENT", "the packed body is cut off, or something follows it")
    return unpacked


def json_length(request: Request) -> int | None:
    """Return the length of a body's JSON, where it says.

    Parameters
    ----------
    request : Request
        The call.

    Returns
    -------
    int or None
        None where there is nothing after the JSON.

    Raises
    ------
    CallError
        If it is no number.
    """
    text = request.headers.get(HEADER_LENGTH)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise CallError("INVALID_ARGUMENT", f"{HEADER_LENGTH} is {text[:50]!r}; it must be a number of bytes")
    return int(text)


async def packed(body: Body, accepted: str) -> tuple[bytes, dict[str, str]]:
    """Return a body as it is sent, and its headers.

    Parameters
    ----------
    body : Body
        An answer.
    accepted : str
        The header ``Accept-Encoding``.

    Returns
    -------
    tuple
        Packed if the caller asks for it.
    """
    binary = body.json_length is not None
    headers = {"Content-Type": "application/octet-stream" if binary else "application/json"}
    if body.json_length is not None:
        headers[HEADER_LENGTH] = str(body.json_length)
    whole = bytes(body)
    encoding = _asked(accepted)
    if encoding is None:
        return whole, headers
    headers["Content-Encoding"] = encoding
    if len(whole) <= _SMALL:
        return _pack(whole, _WINDOWS[encoding]), headers
    return await asyncio.to_thread(_pack, whole, _WINDOWS[encoding]), headers


def _pack(body: bytes, window: int) -> bytes:
    """Pack a body."""
    packer = zlib.compressobj(_LEVEL, wbits=window)
    return packer.compress(body) + packer.flush()


def _asked(accepted: str) -> str | None:
    """Return the packing that a caller asks for, if we have it."""
    for word in accepted.lower().split(","):
        name, _, quality = word.partition(";")
        if name.strip() in {"gzip", "deflate"} and quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00"}:
            return name.strip()
    return None


def is_large(body: Buffer) -> bool:
    """Whether reading a body is work for a thread."""
    return len(body) > _SMALL
