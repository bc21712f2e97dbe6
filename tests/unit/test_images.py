"""What goes into an upload: which bytes, in which frame, and which inputs are item errors instead."""

from __future__ import annotations

import io
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
        assert makers.looks_right(seen(prepare(item_of(makers.animated_gif()))))
        assert makers.looks_right(seen(prepare(item_of(MADE_ANEW["animated webp"]()))))

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
            assert makers.looks_right(seen(prepare(item_of(image))))

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
            assert makers.looks_right(loader())

    def test_after_a_change_of_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A relative path means the file it meant when the loader was made."""
        makers.write_jpeg(tmp_path / "1.jpg")
        monkeypatch.chdir(tmp_path)
        loader = image_loader(item_of("1.jpg"))
        monkeypatch.chdir("/")
        assert loader is not None
        assert makers.looks_right(loader())

    def test_url_has_none(self) -> None:
        """Whoever fetches a URL attaches a loader."""
        assert image_loader(item_of("http://example.com/1.jpg")) is None
