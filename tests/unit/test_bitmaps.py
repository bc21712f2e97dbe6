"""Masks as the wire carries them: every kind of PNG, and no bomb."""

from __future__ import annotations

import base64
import io
import struct
import tracemalloc
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image
from predictions import zoo_item

from predsession.errors import ProtocolError
from predsession.wire.bitmaps import decode_mask, encode_mask, png_size
from predsession.wire.geometry import Size

SIZE = Size(1280, 720)
RECORDED = zoo_item()["annotation"]["objects"][1]["bitmap"]["data"]


def packed(image: Image.Image, *, squeeze: bool = True, **options: object) -> str:
    """Return an image as base64 of (zlib-packed) PNG."""
    png = io.BytesIO()
    image.save(png, "PNG", **options)
    raw = zlib.compress(png.getvalue()) if squeeze else png.getvalue()
    return base64.b64encode(raw).decode()


SHAPE = np.array([[0, 1, 1], [0, 0, 1]], bool)


GRAY = Image.fromarray(SHAPE.astype(np.uint8) * 255)


def _palette() -> Image.Image:
    """Return the shape as indexes 0 and 1 of black and white."""
    image = Image.fromarray(SHAPE.astype(np.uint8)).convert("P")
    image.putpalette([0, 0, 0, 255, 255, 255])
    return image


KINDS: dict[str, tuple[Image.Image, dict[str, object]]] = {
    "1 bit": (GRAY.convert("1"), {}),
    "gray": (Image.fromarray(SHAPE.astype(np.uint8) * 7), {}),
    "16-bit gray": (Image.fromarray(SHAPE.astype(np.uint16) * 300), {}),
    "RGB": (GRAY.convert("RGB"), {}),
    "RGBA": (Image.merge("RGBA", [GRAY] * 4), {}),
    "gray with alpha": (Image.merge("LA", [GRAY] * 2), {}),
    "palette of 1 bit": (_palette(), {"bits": 1}),
    "palette of 4 bits": (_palette(), {"bits": 4}),
    "palette of 8 bits": (_palette(), {}),
    "palette, one entry clear": (_palette(), {"transparency": b"\0"}),
    "palette with alphas": (_palette(), {"transparency": b"\0\x80\xff"}),
}


def test_what_is_packed_is_unpacked() -> None:
    """Our own packing is a 1-bit palette PNG as recorded, and gives the same mask."""
    text = encode_mask(SHAPE)
    png = zlib.decompress(base64.b64decode(text))
    recorded = zlib.decompress(base64.b64decode(RECORDED))
    assert png[24:29] == recorded[24:29], "bit depth, colour type, and the rest of the header"
    assert png[33:].startswith(recorded[33 : recorded.index(b"IDAT") - 4]), "palette and alpha"
    assert (decode_mask(text, within=Size(3, 2)) == SHAPE).all()
    assert png_size(text) == (3, 2)


@pytest.mark.parametrize("squeeze", [True, False], ids=["zlib", "plain"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_png_gives_the_mask(kind: str, *, squeeze: bool) -> None:
    """Palette, gray, 16-bit gray, RGB and alpha say the same thing, packed with zlib or not."""
    image, options = KINDS[kind]
    text = packed(image, squeeze=squeeze, **options)
    assert (decode_mask(text, within=Size(3, 2)) == SHAPE).all()
    assert png_size(text) == (3, 2)


def test_alpha_decides_where_there_is_alpha() -> None:
    """In a zlib-packed RGBA the colour says nothing: white without alpha is no object."""
    pixels = np.full((2, 3, 4), 255, np.uint8)
    pixels[..., 3] = SHAPE
    text = packed(Image.fromarray(pixels))
    assert (decode_mask(text, within=Size(3, 2)) == SHAPE).all()


def test_size_needs_the_head_only() -> None:
    """The size is read although everything after the first hundred bytes is missing."""
    noise = np.random.default_rng(0).random((400, 500)) > 0.5
    text = encode_mask(noise)
    assert len(text) > 20_000
    assert png_size(text[:700]) == (500, 400)


def test_size_survives_line_breaks_and_empty_blocks() -> None:
    """Base64 in lines, and a deflate stream that begins with a thousand empty blocks, are legal."""
    png = zlib.decompress(base64.b64decode(encode_mask(np.ones((30, 70), bool))))
    lines = base64.encodebytes(zlib.compress(png)).decode()
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = squeezed.compress(png) + squeezed.flush()
    empty = b"\x00\x00\x00\xff\xff" * 1000
    stream = b"\x78\x9c" + empty + body + struct.pack(">I", zlib.adler32(png))
    blocks = base64.b64encode(stream).decode()
    for text in (lines, blocks):
        assert png_size(text) == (70, 30)
        assert decode_mask(text, within=Size(70, 30)).all()


def _peak(work: Callable[[], object]) -> int:
    """Return how many bytes were in use at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _claiming(width: int, height: int, rest: bytes = b"") -> str:
    """Return a zlib-packed PNG that says it has that size."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    return base64.b64encode(zlib.compress(head + rest)).decode()


def test_a_png_that_claims_a_billion_pixels_takes_no_memory() -> None:
    """It is refused by its header, whatever the picture's size claims."""

    def refused() -> None:
        for size in (SIZE, Size(50_000, 20_000)):
            with pytest.raises(ProtocolError, match="50000 x 20000"):
                decode_mask(_claiming(50_000, 20_000), within=size)

    assert _peak(refused) < 1_000_000


def test_a_zlib_bomb_is_not_unpacked() -> None:
    """A hundred megabytes behind the header of a PNG of 3 x 2 pixels are left where they are."""
    bomb = _claiming(3, 2, bytes(100_000_000))

    def refused() -> None:
        with pytest.raises(ProtocolError, match="more than its PNG can need"):
            decode_mask(bomb, within=SIZE)

    assert _peak(refused) < 2_000_000


def test_a_mask_larger_than_its_picture_is_refused() -> None:
    """A crop lies in its picture, so it cannot be wider or higher."""
    with pytest.raises(ProtocolError, match="70 x 30 pixels, in a picture of 60 x 40"):
        decode_mask(encode_mask(np.ones((30, 70), bool)), within=Size(60, 40))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no PNG"),
        ("é", "no base64"),
        ("=" * 9, "no PNG|no base64"),
        ("A", "no base64"),
        (base64.b64encode(b"hello").decode(), "no PNG"),
        (base64.b64encode(zlib.compress(b"hello")).decode(), "no PNG"),
        (base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(), "no PNG"),
        (_claiming(0, 5), "0 x 5"),
    ],
)
def test_what_is_no_png_is_a_protocol_error(text: str, problem: str) -> None:
    """Neither size nor mask can be read, and both say why in one kind of error."""
    with pytest.raises(ProtocolError, match=problem):
        png_size(text)
    with pytest.raises(ProtocolError, match=f"{problem}|zlib stream is damaged"):
        decode_mask(text, within=SIZE)


def test_a_stream_that_is_cut_short_is_a_protocol_error() -> None:
    """Half of a zlib stream, and a whole one around half of a PNG."""
    raw = base64.b64decode(encode_mask(np.random.default_rng(0).random((40, 40)) > 0.5))
    png = zlib.decompress(raw)
    with pytest.raises(ProtocolError, match="cut short"):
        decode_mask(base64.b64encode(raw[: len(raw) // 2]).decode(), within=SIZE)
    with pytest.raises(ProtocolError, match="PNG cannot be read"):
        decode_mask(base64.b64encode(zlib.compress(png[: len(png) // 2])).decode(), within=SIZE)
