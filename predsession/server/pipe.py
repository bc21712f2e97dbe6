"""The frames between the server and a worker process: a JSON header, then raw bytes.

A frame is two lengths of four bytes, big-endian, the header and the body. The body is not JSON, because the
results in it are JSON already, and to quote them again would cost more than most models do.
"""

from __future__ import annotations

import asyncio
import json
import struct
from io import BufferedReader

from predsession.wire.jsontypes import JSON, JSONObject

_LENGTHS = struct.Struct(">II")


def encode(header: JSONObject, body: bytes = b"") -> bytes:
    """Return the frame as bytes."""
    return begin(header, len(body)) + body


def begin(header: JSONObject, size: int) -> bytes:
    """Return the frame as bytes, up to its body, which follows and has so many bytes."""
    text = json.dumps(header).encode()
    return _LENGTHS.pack(len(text), size) + text


def read(stream: BufferedReader) -> tuple[dict[str, JSON], bytearray]:
    """Read one frame from a blocking stream.

    Parameters
    ----------
    stream : BinaryIO
        The worker's end.

    Returns
    -------
    tuple
        Header and body, which may be written to.

    Raises
    ------
    EOFError
        If the other side is gone.
    """
    text_size, body_size = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
    header: dict[str, JSON] = json.loads(_exactly(stream, text_size))
    return header, _exactly(stream, body_size)


def _exactly(stream: BufferedReader, count: int) -> bytearray:
    """Read so many bytes, into memory that a model may write to without a copy."""
    data = bytearray(count)
    if stream.readinto(data) < count:
        raise EOFError("the other side of the pipe is gone")
    return data


async def read_async(stream: asyncio.StreamReader) -> tuple[dict[str, JSON], bytes]:
    """Read one frame in the server's loop.

    Parameters
    ----------
    stream : asyncio.StreamReader
        The server's end.

    Returns
    -------
    tuple
        Header and body.

    Raises
    ------
    EOFError
        If the worker is gone.
    """
    text_size, body_size = _LENGTHS.unpack(await stream.readexactly(_LENGTHS.size))
    header: dict[str, JSON] = json.loads(await stream.readexactly(text_size))
    return header, await stream.readexactly(body_size)
