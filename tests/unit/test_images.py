"""What goes into an upload: which bytes, in which frame, and which inputs are item errors instead."""

from __future__ import annotations

import io
import os
import pickle
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import makers
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageOps

from predsession.errors import ItemError
from predsession.inputs import pixels as pixels_module
from predsession.inputs.images import Encoded, ImageLimits, image_loader, prepare, reencode
from predsession.inputs.sources import Item, open_source
from predsession.wire.geometry import Size

SAMPLES = Path(__file__).parent.parent / "samples"
WIDE, HIGH = Size(*makers.SIZE), Size(makers.SIZE[1], makers.SIZE[0])


def item_of(source: object) -> Item:
    """Return the one item of a source."""
    (item,) = open_source(source)
    return item


def content(encoded: Encoded) -> bytes:
    """Return the bytes that would be sent."""
    with encoded.open() as stream:
        return stream.read()


def seen(encoded: Encoded) -> npt.NDArray[np.uint8]:
    """Return what a server sees that turns by EXIF and drops alpha: (H, W, 3) uint8."""
    with Image.open(io.BytesIO(content(encoded))) as image:
        return np.array(ImageOps.exif_transpose(image).convert("RGBA").convert("RGB"))


def reason(source: object, limits: ImageLimits | None = None) -> str:
    """Return the reason with which `prepare` refuses an input."""
    with pytest.raises(ItemError) as caught:
        prepare(item_of(source), limits or ImageLimits())
    return caught.value.reason


def looks_right(array: npt.NDArray[np.uint8], tolerance: int = 40) -> bool:
    """Return whether this is the upright picture of `makers`, within what JPEG and CMYK do to colours."""
    if array.shape != makers.pixels().shape:
        return False
    difference = np.abs(array.astype(int) - makers.pixels())
    return bool(difference.mean() < tolerance / 4 and np.median(difference) < tolerance)


AS_IT_IS: dict[str, tuple[Callable[[], bytes], str]] = {
    "jpeg": (makers.jpeg, ".jpg"),
    "progressive jpeg": (lambda: makers.jpeg(progressive=True), ".jpg"),
    "cmyk jpeg": (makers.cmyk_jpeg, ".jpg"),
    "gray jpeg": (makers.gray_jpeg, ".jpg"),
    "jpeg turned": (lambda: makers.jpeg(orientation=6), ".jpg"),
    "jpeg with a thumbnail": (makers.jpeg_with_thumbnail, ".jpg"),
    "jpeg with padding": (lambda: makers.jpeg() + b"\x00" * 5000, ".jpg"),
    "png": (makers.png, ".png"),
    "png turned": (lambda: makers.turned("PNG", 6), ".png"),
    "rgba png": (makers.rgba_png, ".png"),
    "palette png": (makers.palette_png_with_transparency, ".png"),
    "1-bit png": (lambda: makers.encoded(makers.picture().convert("1"), "PNG"), ".png"),
    "png with padding": (lambda: makers.png() + b"\x00" * 100, ".png"),
    "webp": (lambda: makers.encoded(makers.picture(), "WEBP"), ".webp"),
    "lossless webp": (lambda: makers.encoded(makers.picture(), "WEBP", lossless=True), ".webp"),
    "bmp": (lambda: makers.encoded(makers.picture(), "BMP"), ".bmp"),
    "palette bmp": (lambda: makers.encoded(makers.picture().quantize(8), "BMP"), ".bmp"),
    "tiff": (lambda: makers.encoded(makers.picture(), "TIFF"), ".tiff"),
    "lzw tiff": (lambda: makers.encoded(makers.picture(), "TIFF", compression="tiff_lzw"), ".tiff"),
    "gray tiff": (lambda: makers.encoded(makers.picture().convert("L"), "TIFF"), ".tiff"),
}

MADE_ANEW: dict[str, Callable[[], bytes]] = {
    "gif": makers.animated_gif,
    "16-bit png": makers.png16,
    "16-bit rgb png": makers.rgb_png16,
    "16-bit tiff": lambda: makers.encoded(Image.fromarray(np.zeros((20, 40), np.uint16)), "TIFF"),
    "float tiff": lambda: makers.encoded(Image.fromarray(np.zeros((20, 40), np.float32)), "TIFF"),
    "int tiff": lambda: makers.encoded(Image.fromarray(np.zeros((20, 40), np.int32)), "TIFF"),
    "lab tiff": lambda: makers.encoded(Image.new("LAB", (40, 20), (128, 128, 128)), "TIFF"),
    "cmyk tiff": lambda: makers.encoded(makers.picture().convert("CMYK"), "TIFF"),
    "rgba tiff": lambda: makers.encoded(makers.picture().convert("RGBA"), "TIFF"),
    "palette tiff": lambda: makers.encoded(makers.picture().quantize(8), "TIFF"),
    "1-bit tiff": lambda: makers.encoded(makers.picture().convert("1"), "TIFF"),
    "turned tiff": lambda: makers.turned("TIFF", 6),
    "turned webp": lambda: makers.turned("WEBP", 6),
    "animated webp": lambda: makers.encoded(
        makers.picture(), "WEBP", save_all=True, append_images=[Image.new("RGB", makers.SIZE)]
    ),
    "16-bit bmp": lambda: bmp16(),
}


def bmp16() -> bytes:
    """Return a BMP with 5 bits a channel."""
    whole = bytearray(makers.encoded(Image.new("L", makers.SIZE, 0), "BMP"))
    header = bytes(whole[:54])
    body = b"\xff\x7f" * (makers.SIZE[0] * makers.SIZE[1])
    return header[:10] + (54).to_bytes(4, "little") + header[14:28] + b"\x10\x00" + header[30:54] + body


class TestWhatIsSent:
    """Files that every server reads the same go as they are; the rest is decoded here."""

    @pytest.mark.parametrize("name", AS_IT_IS)
    @pytest.mark.parametrize("as_file", [True, False], ids=["file", "bytes"])
    def test_as_it_is(self, tmp_path: Path, name: str, as_file: bool) -> None:
        """The bytes are the original ones, named by their content, every time the stream is opened."""
        make, suffix = AS_IT_IS[name]
        data = make()
        encoded = prepare(item_of(makers.write(tmp_path / "wrong.png", data) if as_file else data))
        assert encoded.suffix == suffix
        assert encoded.content_type == {".jpg": "image/jpeg"}.get(suffix, f"image/{suffix[1:]}")
        assert encoded.size == WIDE
        assert encoded.nbytes == len(data)
        assert content(encoded) == content(encoded) == data

    @pytest.mark.parametrize("name", MADE_ANEW)
    def test_made_anew(self, name: str) -> None:
        """What a stock server refuses, or reads otherwise than others, becomes an 8-bit PNG."""
        encoded = prepare(item_of(MADE_ANEW[name]()))
        assert (encoded.suffix, encoded.content_type, encoded.size) == (".png", "image/png", WIDE)
        with Image.open(io.BytesIO(content(encoded))) as image:
            assert (image.format, image.size) == ("PNG", WIDE)
            assert image.mode in {"L", "RGB"}
        assert encoded.nbytes == len(content(encoded))

    def test_first_frame_of_a_gif(self) -> None:
        """Of an animation the first frame is sent."""
        assert looks_right(seen(prepare(item_of(makers.animated_gif()))))
        assert looks_right(seen(prepare(item_of(MADE_ANEW["animated webp"]()))))

    def test_mpo_is_a_jpeg(self) -> None:
        """A file with two JPEGs in it goes as a JPEG: decoders read its first picture."""
        encoded = prepare(item_of(SAMPLES / "chelsea.mpo"))
        assert (encoded.suffix, encoded.content_type) == (".jpg", "image/jpeg")
        assert content(encoded) == (SAMPLES / "chelsea.mpo").read_bytes()

    def test_file_is_not_read_before_it_is_sent(self, tmp_path: Path) -> None:
        """A file that goes as it is takes no memory while it waits."""
        path = makers.write(tmp_path / "1.jpg", makers.jpeg() + b"\x00" * 5_000_000)
        tracemalloc.start()
        try:
            encoded = prepare(item_of(path))
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()
        assert encoded.nbytes > 5_000_000

    @pytest.mark.parametrize("change", ["shorter", "gone"])
    def test_file_that_changes_on_the_way(self, tmp_path: Path, change: str) -> None:
        """A stream of another length than announced is never begun; preparing again says what happened."""
        path = makers.write_jpeg(tmp_path / "1.jpg")
        item = item_of(path)
        encoded = prepare(item)
        path.unlink()
        if change == "shorter":
            makers.write(path, makers.jpeg()[:300])
        with pytest.raises(OSError, match=r"changed|No such file"):
            encoded.open()
        with pytest.raises(ItemError, match=r"truncated JPEG|not there"):
            prepare(item)

    def test_encoded_pickles(self, tmp_path: Path) -> None:
        """What was prepared may be sent by another process."""
        encoded = prepare(item_of(makers.write_jpeg(tmp_path / "1.jpg")))
        assert content(pickle.loads(pickle.dumps(encoded))) == makers.jpeg()


class TestPixels:
    """Arrays and PIL images are sent without loss."""

    @pytest.mark.parametrize("flip", [np.s_[:, ::-1], np.s_[::-1], np.s_[::2, ::3], np.s_[:, :, ::-1]])
    def test_views(self, flip: object) -> None:
        """An array need not be contiguous."""
        array = makers.pixels()[flip]
        assert np.array_equal(seen(prepare(item_of(array))), array)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_memory_order(self, order: str) -> None:
        """An array may lie in memory column by column."""
        array = np.array(makers.pixels(), order=order)
        assert np.array_equal(seen(prepare(item_of(array))), makers.pixels())

    def test_gray_stays_gray(self) -> None:
        """(H, W) and (H, W, 1) are sent as one channel."""
        gray = makers.pixels()[..., 0]
        for array in (gray, gray[..., None]):
            encoded = prepare(item_of(array))
            with Image.open(io.BytesIO(content(encoded))) as image:
                assert image.mode == "L"
                assert np.array_equal(np.asarray(image), gray)

    def test_alpha_is_dropped(self) -> None:
        """An RGBA array gives what a server makes of the RGBA file: alpha is ignored, not blended."""
        rgba = np.dstack([makers.pixels(), np.zeros(makers.SIZE[::-1], np.uint8)])
        assert np.array_equal(seen(prepare(item_of(rgba))), makers.pixels())

    def test_subclasses_and_read_only_arrays(self) -> None:
        """A memory-mapped or read-only array is an array."""
        array = makers.pixels()
        array.setflags(write=False)
        assert np.array_equal(seen(prepare(item_of(array))), array)
        assert np.array_equal(seen(prepare(item_of(array.view(np.memmap)))), array)

    @pytest.mark.parametrize(
        "mode", ["1", "L", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "RGBa", "PA"]
    )
    def test_modes_of_pil(self, mode: str) -> None:
        """Every mode of PIL that holds a colour picture is sent as the colours it stands for."""
        image = makers.picture()
        if mode in {"P", "PA"}:
            image = image.quantize(8)
        elif mode == "RGBa":
            image = image.convert("RGBA")
        result = seen(prepare(item_of(image.convert(mode))))
        expected = (
            makers.pixels()
            if mode not in {"1", "L"}
            else np.array(makers.picture().convert(mode).convert("RGB"))
        )
        assert np.abs(result.astype(int) - expected).max() <= 6

    @pytest.mark.parametrize("mode", ["LA", "La"])
    def test_gray_with_alpha(self, mode: str) -> None:
        """Gray with alpha becomes gray."""
        image = makers.picture().convert("LA")
        expected = np.array(makers.picture().convert("L").convert("RGB"))
        assert np.array_equal(seen(prepare(item_of(image.convert(mode)))), expected)

    def test_lab(self) -> None:
        """LAB is converted by its own rules: light gray stays light gray."""
        result = seen(prepare(item_of(Image.new("LAB", (4, 4), (230, 128, 128)))))
        assert result.min() > 200

    def test_palette_with_transparency(self) -> None:
        """A palette image with a see-through colour shows its colours, and Pillow has nothing to warn of."""
        with Image.open(io.BytesIO(makers.palette_png_with_transparency())) as image:
            assert looks_right(seen(prepare(item_of(image))))

    def test_image_is_left_as_it_is(self) -> None:
        """The caller's PIL image is neither turned nor converted in place."""
        with Image.open(io.BytesIO(makers.turned("PNG", 6))) as image:
            prepare(item_of(image))
            assert image.size == HIGH
            assert image.getexif()[0x0112] == 6

    def test_metadata_stay_here(self) -> None:
        """What is encoded here carries no orientation that a server could apply a second time."""
        encoded = prepare(item_of(makers.turned("WEBP", 6)))
        with Image.open(io.BytesIO(content(encoded))) as image:
            image.load()
            assert not image.getexif()
            assert not set(image.info) - {"dpi"}

    def test_closed_image(self, tmp_path: Path) -> None:
        """A PIL image whose file was closed before it was loaded is an item error."""
        with Image.open(makers.write_jpeg(tmp_path / "1.jpg")) as image:
            pass
        assert "cannot be decoded" in reason(image)


class TestSixteenBits:
    """More than 8 bits are scaled by a rule that is written down; nothing is ever clipped."""

    @pytest.mark.parametrize(("value", "expected"), [(40_000, 155), (65_535, 255), (256, 0), (257, 1)])
    @pytest.mark.parametrize("kind", ["PNG", "TIFF"])
    def test_gray(self, kind: str, value: int, expected: int) -> None:
        """A 16-bit gray file is divided by 257."""
        data = makers.encoded(Image.fromarray(np.full((8, 8), value, np.uint16)), kind)
        assert (seen(prepare(item_of(data))) == expected).all()

    def test_pil(self) -> None:
        """A 16-bit PIL image is divided by 257, in either byte order."""
        array = np.full((8, 8), 40_000, np.uint16)
        assert (seen(prepare(item_of(Image.fromarray(array)))) == 155).all()
        big = Image.frombytes("I;16B", (8, 8), array.astype(">u2").tobytes())
        assert (seen(prepare(item_of(big))) == 155).all()

    def test_rgb(self) -> None:
        """A 16-bit RGB PNG becomes 8 bits within one step of value / 257."""
        assert abs(int(seen(prepare(item_of(makers.rgb_png16(value=40_000)))).max()) - 155) <= 1

    @pytest.mark.parametrize(
        ("value", "expected"), [(0.5, 128), (1.0, 255), (200.0, 200), (65_535.0, 255), (40_000.0, 155)]
    )
    def test_floats_by_range(self, value: float, expected: int) -> None:
        """Floats up to 1 are times 255, up to 255 as they are, up to 65535 divided by 257."""
        image = Image.fromarray(np.full((8, 8), value, np.float32))
        assert (seen(prepare(item_of(image))) == expected).all()

    @pytest.mark.parametrize(("value", "expected"), [(0, 0), (1, 1), (200, 200), (65_535, 255)])
    def test_integers_by_range(self, value: int, expected: int) -> None:
        """32-bit integers up to 255 are as they are, up to 65535 divided by 257."""
        image = Image.fromarray(np.full((8, 8), value, np.int32))
        assert (seen(prepare(item_of(image))) == expected).all()

    @pytest.mark.parametrize("value", [-1.0, 70_000.0, float("nan"), float("inf")])
    def test_no_known_scale(self, value: float) -> None:
        """A range that has no known scale is refused, with the range."""
        assert "no known scale" in reason(Image.fromarray(np.full((8, 8), value, np.float32)))


class TestUpright:
    """Path, list, folder, bytes and PIL image of one photo are all in the frame of the upright picture."""

    @pytest.mark.parametrize("orientation", range(1, 9))
    @pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
    def test_every_way_in(self, tmp_path: Path, kind: str, orientation: int) -> None:
        """All ways of handing in a photo give the upright size, and a server sees the upright picture."""
        options = {"JPEG": {"quality": 95}, "WEBP": {"lossless": True}}.get(kind, {})
        data = makers.turned(kind, orientation, **options)
        path = makers.write(tmp_path / f"photo.{kind.lower()}", data)
        with Image.open(path) as image:
            for source in (path, str(path), [path], tmp_path, data, image):
                for encoded in (prepare(item_of(source)), reencode(item_of(source))):
                    assert encoded.size == WIDE
                    assert looks_right(seen(encoded))
                loader = image_loader(item_of(source))
                assert loader is not None
                assert looks_right(loader())

    def test_bare_array_is_as_it_is(self) -> None:
        """An array has no orientation."""
        with Image.open(io.BytesIO(makers.jpeg(orientation=6))) as image:
            array = np.asarray(image)
        assert prepare(item_of(array)).size == HIGH

    def test_real_photo(self) -> None:
        """A photo as a phone stores it is upright for the caller."""
        encoded = prepare(item_of(SAMPLES / "portrait_exif6.jpg"))
        assert encoded.size.height > encoded.size.width

    @pytest.mark.parametrize("value", [0, 9, 65_535])
    def test_orientations_that_do_not_exist(self, value: int) -> None:
        """An orientation outside 1 to 8 means nothing."""
        data = makers.encoded(makers.picture(), "JPEG", exif=makers.exif(value))
        assert prepare(item_of(data)).size == WIDE

    @pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
    def test_damaged_exif(self) -> None:
        """Damaged EXIF data state no orientation, and do not stop the picture."""
        for payload in (
            b"",
            b"II",
            b"MM\x00*\xff\xff\xff\xff",
            b"II*\x00\x08\x00\x00\x00\xff\xff",
            b"garbage" * 9,
        ):
            item = item_of(makers.jpeg_with(b"Exif\x00\x00" + payload))
            assert prepare(item).size == reencode(item).size == WIDE

    def test_orientation_in_xmp_only(self) -> None:
        """Where only XMP states the orientation, servers differ: the picture is sent upright."""
        packet = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
        stored = makers.picture().transpose(Image.Transpose.ROTATE_90)
        for data in (
            makers.jpeg_with(
                b"http://ns.adobe.com/xap/1.0/\x00" + packet, data=makers.encoded(stored, "JPEG", quality=95)
            ),
            makers.encoded(stored, "WEBP", lossless=True, xmp=packet),
            makers.png_with(
                (b"iTXt", b"XML:com.adobe.xmp\x00\x00\x00\x00\x00" + packet),
                data=makers.encoded(stored, "PNG"),
            ),
        ):
            encoded = prepare(item_of(data))
            assert (encoded.suffix, encoded.size) == (".png", WIDE)
            assert looks_right(seen(encoded))

    def test_orientation_in_a_raw_profile(self) -> None:
        """The raw EXIF profile that ImageMagick writes into a PNG counts like EXIF."""
        profile = makers.exif(6).tobytes().hex().encode()
        text = b"Raw profile type exif\x00\nexif\n%8d\n%s\n" % (len(profile) // 2, profile)
        stored = makers.encoded(makers.picture().transpose(Image.Transpose.ROTATE_90), "PNG")
        encoded = prepare(item_of(makers.png_with((b"tEXt", text), data=stored)))
        assert (encoded.suffix, encoded.size) == (".png", WIDE)
        assert looks_right(seen(encoded))

    def test_png_states_orientation_after_its_picture(self) -> None:
        """An eXIf chunk may follow the pixels."""
        stored = makers.encoded(makers.picture().transpose(Image.Transpose.ROTATE_90), "PNG")
        payload = makers.exif(6).tobytes().removeprefix(b"Exif\x00\x00")
        data = stored[:-12] + makers.png_chunk(b"eXIf", payload) + stored[-12:]
        assert prepare(item_of(data)).size == WIDE


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

            monkeypatch.setattr("predsession.inputs.images.decode", raises)
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


class TestReencode:
    """After a server refused the original bytes, the same picture goes as PNG."""

    @pytest.mark.parametrize("name", AS_IT_IS)
    def test_same_frame(self, name: str) -> None:
        """It is a PNG in the frame that was announced before."""
        item = item_of(AS_IT_IS[name][0]())
        encoded = reencode(item)
        assert (encoded.suffix, encoded.size) == (".png", prepare(item).size)

    def test_without_loss(self) -> None:
        """The pixels are those of the original."""
        item = item_of(makers.png())
        assert np.array_equal(seen(reencode(item)), makers.pixels())
        with Image.open(io.BytesIO(makers.jpeg())) as image:
            assert np.array_equal(seen(reencode(item_of(makers.jpeg()))), np.asarray(image))

    def test_no_warnings(self) -> None:
        """Decoding says nothing on the side, whatever the input."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for make, _ in AS_IT_IS.values():
                reencode(item_of(make()))
            for make in MADE_ANEW.values():
                reencode(item_of(make()))


class TestLoader:
    """A prediction gets its picture from a loader that travels."""

    @pytest.mark.parametrize("name", AS_IT_IS)
    def test_shape(self, name: str) -> None:
        """Whatever the file: (H, W, 3) uint8 RGB, in the announced frame, writable, new at each call."""
        loader = image_loader(item_of(AS_IT_IS[name][0]()))
        assert loader is not None
        array = loader()
        assert (array.shape, array.dtype) == ((WIDE.height, WIDE.width, 3), np.uint8)
        array[:] = 0
        assert loader().any()

    def test_gray_array_becomes_rgb(self) -> None:
        """A gray array is loaded with its channel three times."""
        gray = makers.pixels()[..., 1]
        loader = image_loader(item_of(gray))
        assert loader is not None
        assert np.array_equal(loader(), np.stack([gray] * 3, axis=-1))

    def test_pickles(self, tmp_path: Path) -> None:
        """A loader works in another process, for files, bytes, arrays and PIL images."""
        path = makers.write_jpeg(tmp_path / "1.jpg")
        for source in (path, makers.jpeg(), makers.pixels(), makers.picture()):
            loader = pickle.loads(pickle.dumps(image_loader(item_of(source))))
            assert looks_right(loader())

    def test_after_a_change_of_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A relative path means the file it meant when the loader was made."""
        makers.write_jpeg(tmp_path / "1.jpg")
        monkeypatch.chdir(tmp_path)
        loader = image_loader(item_of("1.jpg"))
        monkeypatch.chdir("/")
        assert loader is not None
        assert looks_right(loader())

    def test_url_has_none(self) -> None:
        """Whoever fetches a URL attaches a loader."""
        assert image_loader(item_of("http://example.com/1.jpg")) is None


def test_png_is_the_one_format() -> None:
    """Pixels travel by one function, so that another format is one change."""
    assert pixels_module.encode_png(makers.pixels()).startswith(b"\x89PNG")
