"""Which inputs are item errors instead of uploads, and what the errors say."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import makers
import numpy as np
import pytest
from PIL import Image

from predsession.errors import ItemError
from predsession.inputs.images import ImageLimits, image_loader, prepare, reencode
from predsession.inputs.sources import Item, open_source
from predsession.wire.geometry import Size

WIDE = Size(*makers.SIZE)


def item_of(source: object) -> Item:
    """Return the one item of a source."""
    (item,) = open_source(source)
    return item


def reason(source: object, limits: ImageLimits | None = None) -> str:
    """Return the reason with which `prepare` refuses an input."""
    with pytest.raises(ItemError) as caught:
        prepare(item_of(source), limits or ImageLimits())
    return caught.value.reason


BAD_BYTES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "empty file"),
    "text": (b"this is no picture\n", "not an image (text)"),
    "web page": (b"<!DOCTYPE html><html></html>", "a web page"),
    "svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
    "zeros": (b"\x00" * 5000, "only zeros"),
    "heic": (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "HEIC: convert"),
    "avif": (b"\x00\x00\x00\x18ftypavif\x00\x00\x00\x00", "AVIF: convert"),
    "mp4": (b"\x00\x00\x00\x18ftypisom\x00\x00\x00\x00", "video"),
    "pdf": (b"%PDF-1.7\n", "PDF"),
    "mac leftovers": (b"\x00\x05\x16\x07\x00\x02\x00\x00", "macOS"),
    "lfs pointer": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "noise": (bytes(range(128, 256)) + bytes(range(32)), "unknown content"),
    "text that begins like a bmp": (b"BMW is a maker of cars, and no picture", "text"),
    "jpeg without a picture": (makers.jpeg()[:2] + b"\xff\xd9", "no picture"),
    "png without a picture": (b"\x89PNG\r\n\x1a\n" + makers.png_chunk(b"IEND", b""), "damaged PNG"),
    "png cut in its signature": (b"\x89PNG\r", "damaged PNG"),
    "gif without a picture": (b"GIF89a\x28\x00\x14\x00\x00\x00\x00;", "damaged GIF"),
    "zero-sized png": (makers.bomb_png_header(0, 5), "says 0 x 5"),
}


class TestBadFiles:
    """What cannot be sent is an item error that says why; nothing else is ever raised."""

    @pytest.mark.parametrize("name", BAD_BYTES)
    @pytest.mark.parametrize("as_file", [True, False], ids=["file", "bytes"])
    def test_bad_bytes(self, tmp_path: Path, name: str, as_file: bool) -> None:
        """The reason says what it is instead."""
        data, expected = BAD_BYTES[name]
        assert expected in reason(makers.write(tmp_path / "x.jpg", data) if as_file else data)

    @pytest.mark.parametrize("part", [0.05, 0.3, 0.6, 0.9, 0.999])
    @pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP"])
    def test_truncated(self, kind: str, part: float) -> None:
        """A file that was cut anywhere is found out without decoding it."""
        noise = np.random.default_rng(1).integers(0, 256, (120, 160, 3), dtype=np.uint8)
        data = makers.truncated(makers.encoded(Image.fromarray(noise), kind), part)
        assert "truncated" in reason(data)

    def test_truncated_progressive_jpeg(self) -> None:
        """The tables between the scans of a progressive JPEG are not taken for its end."""
        data = makers.jpeg((160, 120), progressive=True)
        assert prepare(item_of(data + b"\x00")).size == Size(160, 120)
        assert "truncated JPEG" in reason(makers.truncated(data, 0.7))

    def test_end_of_the_thumbnail_does_not_count(self) -> None:
        """A JPEG cut after the end marker of its thumbnail is cut."""
        data = makers.jpeg_with_thumbnail((160, 120))
        assert data.count(b"\xff\xd9") == 2
        assert "truncated JPEG" in reason(makers.truncated(data, 0.9))
        inner_end = data.index(b"\xff\xd9") + 2
        assert "truncated JPEG" in reason(data[:inner_end])

    def test_end_marker_in_a_table_does_not_count(self) -> None:
        """Two bytes that look like the end marker within a segment are not the end."""
        data = makers.jpeg()
        scan = data.index(b"\xff\xda")
        comment = b"\xff\xfe\x00\x06ab\xff\xd9"
        cut = data[: scan + 100] + comment + b"\x11\x22\x33"
        assert "truncated JPEG" in reason(cut)
        assert prepare(item_of(cut + b"\xff\xd9\x00")).size == WIDE

    def test_huge_header(self) -> None:
        """A header that claims 50,000 x 50,000 pixels is refused at once, without memory for them."""
        data = makers.bomb_png_header()
        tracemalloc.start()
        try:
            message = reason(data)
            with pytest.raises(ItemError):
                reencode(item_of(data))
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()
        assert "50000 x 50000" in message
        assert "max_pixels" in message

    def test_limit_on_pixels_can_be_set(self) -> None:
        """The limit holds for files, arrays and PIL images alike, and is inclusive."""
        exact = ImageLimits(max_pixels=800)
        for source in (makers.jpeg(), makers.pixels(), makers.picture(), makers.animated_gif()):
            assert prepare(item_of(source), exact).size == WIDE
            assert "limit of 799" in reason(source, ImageLimits(max_pixels=799))
            loader = image_loader(item_of(source), ImageLimits(max_pixels=799))
            assert loader is not None
            with pytest.raises(ItemError):
                loader()

    def test_limit_is_ours_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Pillow's own limit, which is global, neither warns nor refuses: max_pixels decides."""
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
        for kind in ("JPEG", "PNG", "BMP"):
            assert reencode(item_of(makers.encoded(makers.picture(), kind))).size == WIDE

    def test_limit_on_bytes(self) -> None:
        """One image may be limited in bytes; the message has its size."""
        data = makers.jpeg()
        assert prepare(item_of(data), ImageLimits(max_bytes=len(data))).nbytes == len(data)
        assert f"{len(data):,} bytes" in reason(data, ImageLimits(max_bytes=len(data) - 1))

    def test_fields_of_the_error(self, tmp_path: Path) -> None:
        """The error knows index, name, path and reason, and its message is one line."""
        folder = tmp_path / "a\nb"
        makers.bad_neighbours(folder)
        item = open_source(folder)[1]
        with pytest.raises(ItemError) as caught:
            prepare(item)
        error = caught.value
        assert (error.index, error.name, error.path, error.reason) == (
            1,
            "2.jpg",
            str(folder / "2.jpg"),
            "empty file",
        )
        assert "\n" not in str(error)
        assert "2.jpg" in str(error)

    def test_neighbours(self, tmp_path: Path) -> None:
        """Bad files among good ones: each good one is prepared, each bad one has its reason."""
        makers.bad_neighbours(tmp_path)
        outcome = []
        for item in open_source(tmp_path):
            try:
                outcome.append(prepare(item).suffix)
            except ItemError as error:
                outcome.append(error.reason.split(":")[0])
        assert outcome == [
            ".jpg", "empty file", ".jpg", "truncated JPEG", ".jpg", "not an image (text)", ".jpg",
        ]  # fmt: skip

    def test_file_gone(self, tmp_path: Path) -> None:
        """A file that vanished after it was listed, or a link that leads nowhere, is an item error."""
        path = makers.write_jpeg(tmp_path / "1.jpg")
        (tmp_path / "2.jpg").symlink_to("nowhere")
        (tmp_path / "3.jpg").symlink_to("3.jpg")
        items = list(open_source(tmp_path))
        path.unlink()
        for item in items:
            with pytest.raises(ItemError, match=r"not there|cannot be read"):
                prepare(item)
            loader = image_loader(item)
            assert loader is not None
            with pytest.raises(ItemError):
                loader()

    def test_file_becomes_a_pipe_or_a_folder(self, tmp_path: Path) -> None:
        """What took a file's place is an item error, and a pipe is not waited for."""
        for put in (os.mkfifo, os.mkdir):
            path = makers.write_jpeg(tmp_path / f"{put.__name__}.jpg")
            item = item_of(path)
            path.unlink()
            put(path)
            with pytest.raises(ItemError, match="regular file"):
                prepare(item)

    def test_url_not_fetched(self) -> None:
        """Preparing a URL that was not fetched is an item error."""
        assert "not been fetched" in reason("http://example.com/1.jpg")

    def test_decoders_errors(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever a decoder raises, it is an item error with the cause kept."""
        for error in (
            ValueError("x"),
            KeyError(1),
            OSError("broken data stream"),
            SyntaxError("?"),
            MemoryError(),
        ):

            def raises(*_: object, error: BaseException = error) -> None:
                raise error

            monkeypatch.setattr("predsession.inputs.pixels.decode", raises)
            with pytest.raises(ItemError) as caught:
                reencode(item_of(makers.jpeg()))
            assert caught.value.__cause__ is error

    def test_damage_inside(self) -> None:
        """Damage that only decoding shows is an item error of `reencode`."""
        data = bytearray(makers.png((200, 200)))
        place = data.index(b"IDAT") + 8
        data[place : place + 40] = b"\xaa" * 40
        assert prepare(item_of(bytes(data))).suffix == ".png"
        with pytest.raises(ItemError, match="decoded"):
            reencode(item_of(bytes(data)))
