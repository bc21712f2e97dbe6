"""The EXIF rule: however a photo is handed in, everybody speaks of its upright frame."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import makers
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageOps

from predsession.inputs.images import Encoded, image_loader, prepare, reencode
from predsession.inputs.sources import Item, open_source
from predsession.wire.geometry import Size

SAMPLES = Path(__file__).parent.parent / "samples"
WIDE, HIGH = Size(*makers.SIZE), Size(makers.SIZE[1], makers.SIZE[0])


def item_of(source: object) -> Item:
    """Return the one item of a source."""
    (item,) = open_source(source)
    return item


def seen(encoded: Encoded) -> npt.NDArray[np.uint8]:
    """Return what a server sees that turns by EXIF and drops alpha: (H, W, 3) uint8."""
    with encoded.open() as stream, Image.open(stream) as image:
        return np.array(ImageOps.exif_transpose(image).convert("RGBA").convert("RGB"))


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
                    assert makers.looks_right(seen(encoded))
                loader = image_loader(item_of(source))
                assert loader is not None
                assert makers.looks_right(loader())

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

    @pytest.mark.parametrize("damage", ["repeated tag", "value beyond the end", "cut off", "wrong type"])
    def test_orientation_in_damaged_exif(self, damage: str) -> None:
        """Where EXIF data state an orientation and are damaged, readers differ: it is sent upright."""
        orientation = b"\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"
        count, entries = {
            "repeated tag": (2, orientation * 2),
            "value beyond the end": (2, orientation + b"\x31\x01\x02\x00\x63\x00\x00\x00\x00\x09\x00\x00"),
            "cut off": (3, orientation),
            "wrong type": (1, orientation.replace(b"\x03", b"\x04")),
        }[damage]
        payload = b"II*\x00\x08\x00\x00\x00" + count.to_bytes(2, "little") + entries
        stored = makers.encoded(makers.picture().transpose(Image.Transpose.ROTATE_90), "JPEG", quality=95)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow has something to say of such data
            encoded = prepare(item_of(makers.jpeg_with(b"Exif\x00\x00" + payload, data=stored)))
            assert (encoded.suffix, encoded.size) == (".png", WIDE)
            assert makers.looks_right(seen(encoded))

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
            assert makers.looks_right(seen(encoded))

    def test_orientation_in_a_raw_profile(self) -> None:
        """The raw EXIF profile that ImageMagick writes into a PNG counts like EXIF."""
        profile = makers.exif(6).tobytes().hex().encode()
        text = b"Raw profile type exif\x00\nexif\n%8d\n%s\n" % (len(profile) // 2, profile)
        stored = makers.encoded(makers.picture().transpose(Image.Transpose.ROTATE_90), "PNG")
        encoded = prepare(item_of(makers.png_with((b"tEXt", text), data=stored)))
        assert (encoded.suffix, encoded.size) == (".png", WIDE)
        assert makers.looks_right(seen(encoded))

    def test_png_states_orientation_after_its_picture(self) -> None:
        """An eXIf chunk may follow the pixels."""
        stored = makers.encoded(makers.picture().transpose(Image.Transpose.ROTATE_90), "PNG")
        payload = makers.exif(6).tobytes().removeprefix(b"Exif\x00\x00")
        data = stored[:-12] + makers.png_chunk(b"eXIf", payload) + stored[-12:]
        assert prepare(item_of(data)).size == WIDE
