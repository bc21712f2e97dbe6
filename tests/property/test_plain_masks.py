"""Masks that are read without Pillow are the masks that Pillow reads."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from predsession.wire.bitmaps import _plain_pixels, decode_mask, encode_mask
from predsession.wire.geometry import Size

LARGE = Size(4000, 4000)


def as_a_server_sends_it(mask: npt.NDArray[np.bool_]) -> bytes:
    """Return a PNG as Pillow writes it from a palette of two, one bit a pixel, rows filtered as it likes."""
    image = Image.fromarray(mask.astype(np.uint8), "P")
    image.putpalette([0, 0, 0, 255, 255, 255])
    buffer = io.BytesIO()
    image.save(buffer, "PNG", transparency=0, optimize=0, bits=1)
    return buffer.getvalue()


def filtered(mask: npt.NDArray[np.bool_], filters: list[int]) -> bytes:
    """Return a PNG whose rows have these filters, one after the other and again."""
    packed = np.packbits(mask, axis=1).astype(np.int64)
    rows = b""
    for number, row in enumerate(packed):
        kind = filters[number % len(filters)]
        before = {0: 0, 1: np.concatenate([[0], row[:-1]]), 2: packed[number - 1] if number else 0}[kind]
        rows += bytes([kind]) + ((row - before) % 256).astype(np.uint8).tobytes()
    height, width = mask.shape
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0),
        b"PLTE": bytes([0, 0, 0, 255, 255, 255]),
        b"tRNS": b"\0",
        b"IDAT": zlib.compress(rows),
        b"IEND": b"",
    }
    chunks = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts.items()
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


masks = st.tuples(st.integers(1, 40), st.integers(1, 70), st.integers(0, 2**32)).map(
    lambda drawn: np.random.default_rng(drawn[2]).random(drawn[:2]) < (drawn[2] % 5) / 4
)


@given(masks)
def test_as_a_server_sends_it(mask: npt.NDArray[np.bool_]) -> None:
    """However Pillow filtered the rows."""
    text = base64.b64encode(zlib.compress(as_a_server_sends_it(mask))).decode()
    assert np.array_equal(decode_mask(text, within=LARGE), mask)
    assert np.array_equal(decode_mask(encode_mask(mask), within=LARGE), mask)


@given(masks, st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_every_filter_that_is_read_here(mask: npt.NDArray[np.bool_], filters: list[int]) -> None:
    """The same as Pillow reads, and as was meant."""
    png = filtered(mask, filters)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png))) > 0, mask)
    found = _plain_pixels(png)
    assert found is None or np.array_equal(found, mask)
    assert found is not None or len(mask) > 32, "only one with many changes is left to Pillow"


@given(masks, st.integers(0, 10**6), st.integers(1, 255))
def test_a_damaged_one_is_left_to_pillow(mask: npt.NDArray[np.bool_], place: int, change: int) -> None:
    """Whatever byte is another: the checksums show it."""
    png = bytearray(as_a_server_sends_it(mask))
    place = 8 + place % (len(png) - 8)
    png[place] ^= change
    found = _plain_pixels(bytes(png))
    assert found is None or np.array_equal(found, mask)
