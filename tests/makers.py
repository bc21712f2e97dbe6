"""Images and folders that are odd in one known way, made small and on the spot.

Importable in every test as ``import makers`` (``pythonpath`` in pyproject.toml). What is named after a format
returns the encoded bytes; ``write_*`` writes a file and returns its path; what takes a folder fills it and
returns the paths that are images, in natural order.

The picture in all of them is `picture`: its halves and its corner tell every orientation from every other.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

SIZE = (40, 20)
"""Width and height of a picture where nothing else is asked for: wider than high."""

RED, BLUE, GREEN = (220, 30, 30), (30, 30, 220), (30, 200, 30)

# How a picture that is upright is stored by a camera that states this orientation: the inverse of what a
# reader must do (CIPA DC-008, 4.6.5.1.7).
_STORED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}

ODD_NAMES = (
    "a b.jpg",
    "quote\"s and 'apostrophes'.jpg",
    "new\nline.jpg",
    '東京 "a".png',
    "фото.jpg",
    "percent%20plus+.jpg",
    "semi;colon, comma.jpg",
    "back\\slash.jpg",
    "emoji 🐈.jpg",
    "UPPER.JPG",
)
"""File names that some client or server somewhere has lost."""


def picture(size: tuple[int, int] = SIZE) -> Image.Image:
    """Return an upright RGB picture: left half red, right half blue, green in the corner at the top left."""
    width, height = size
    image = Image.new("RGB", size, BLUE)
    image.paste(RED, (0, 0, width // 2, height))
    image.paste(GREEN, (0, 0, max(1, width // 4), max(1, height // 4)))
    return image


def pixels(size: tuple[int, int] = SIZE) -> npt.NDArray[np.uint8]:
    """Return `picture` as an (H, W, 3) uint8 RGB array."""
    return np.array(picture(size))


def looks_right(array: npt.NDArray[np.uint8], tolerance: int = 40) -> bool:
    """Return whether an array is the upright `picture`, within what JPEG and CMYK do to colours."""
    if array.shape != pixels().shape:
        return False
    difference = np.abs(array.astype(int) - pixels())
    return bool(difference.mean() < tolerance / 4 and np.median(difference) < tolerance)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    """Return the image, encoded by Pillow in this format (``"PNG"``), with its options."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def exif(orientation: int) -> Image.Exif:
    """Return EXIF data that state nothing but an orientation."""
    data = Image.Exif()
    data[0x0112] = orientation
    return data


def turned(kind: str, orientation: int, *, size: tuple[int, int] = SIZE, **options: object) -> bytes:
    """Return the picture stored turned, with the orientation that makes it upright, then of this size."""
    return encoded(stored(picture(size), orientation), kind, exif=exif(orientation), **options)


def stored(upright: Image.Image, orientation: int) -> Image.Image:
    """Return an upright image as a camera that states this orientation stores it."""
    turn = _STORED[orientation]
    return upright if turn is None else upright.transpose(turn)


def jpeg(
    size: tuple[int, int] = SIZE, *, orientation: int | None = None, quality: int = 95, **options: object
) -> bytes:
    """Return a JPEG; with an orientation it is stored turned and `size` is the upright size."""
    if orientation is not None:
        return turned("JPEG", orientation, size=size, quality=quality, **options)
    return encoded(picture(size), "JPEG", quality=quality, **options)


def png(size: tuple[int, int] = SIZE, **options: object) -> bytes:
    """Return an ordinary RGB PNG."""
    return encoded(picture(size), "PNG", **options)


def write_jpeg(path: Path, size: tuple[int, int] = SIZE, *, orientation: int | None = None) -> Path:
    """Write a JPEG, whatever the suffix, and the folders above it; return the path."""
    return write(path, jpeg(size, orientation=orientation))


def write(path: Path, data: bytes) -> Path:
    """Write a file, and the folders above it; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


# Damaged files


def truncated(data: bytes, part: float = 0.6) -> bytes:
    """Return the first part of a file."""
    return data[: int(len(data) * part)]


def truncated_jpeg(size: tuple[int, int] = (160, 120), part: float = 0.6) -> bytes:
    """Return a JPEG that ends within its picture."""
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return truncated(encoded(Image.fromarray(noise), "JPEG"), part)


def jpeg_with_thumbnail(size: tuple[int, int] = SIZE) -> bytes:
    """Return a JPEG whose EXIF data hold a whole small JPEG, with an end marker of its own."""
    payload = b"Exif\x00\x00" + exif(1).tobytes().removeprefix(b"Exif\x00\x00") + jpeg((8, 8))
    return jpeg_with(payload, data=jpeg(size))


def jpeg_with(payload: bytes, *, data: bytes | None = None) -> bytes:
    """Return a JPEG with this payload (EXIF, XMP) in an APP1 segment before all others."""
    whole = jpeg() if data is None else data
    return whole[:2] + b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload + whole[2:]


def bomb_png_header(width: int = 50_000, height: int = 50_000) -> bytes:
    """Return a PNG of a hundred bytes, whole to its end chunk, that claims to be huge."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\x00" * 16)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(name, data) for name, data in chunks)


def png_chunk(name: bytes, data: bytes) -> bytes:
    """Return one chunk of a PNG, with its checksum."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_with(*chunks: tuple[bytes, bytes], data: bytes | None = None) -> bytes:
    """Return a PNG with these chunks put in after its header."""
    whole = png() if data is None else data
    return whole[:33] + b"".join(png_chunk(name, payload) for name, payload in chunks) + whole[33:]


# Rare kinds of pixels


def cmyk_jpeg(size: tuple[int, int] = SIZE) -> bytes:
    """Return a JPEG with four inks."""
    return encoded(picture(size).convert("CMYK"), "JPEG", quality=95)


def gray_jpeg(size: tuple[int, int] = SIZE) -> bytes:
    """Return a JPEG with one channel."""
    return encoded(picture(size).convert("L"), "JPEG", quality=95)


def png16(size: tuple[int, int] = SIZE, value: int = 40_000) -> bytes:
    """Return a gray PNG with 16 bits a sample, the left half of this value, the right half 0."""
    samples = np.zeros((size[1], size[0]), np.uint16)
    samples[:, : size[0] // 2] = value
    return encoded(Image.fromarray(samples), "PNG")


def rgb_png16(size: tuple[int, int] = SIZE, value: int = 40_000) -> bytes:
    """Return an RGB PNG with 16 bits a sample, all of this value."""
    row = b"\x00" + struct.pack(">H", value) * 3 * size[0]
    header = struct.pack(">IIBBBBB", *size, 16, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(row * size[1])), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(name, data) for name, data in chunks)


def palette_png_with_transparency(size: tuple[int, int] = SIZE) -> bytes:
    """Return a PNG of mode P whose first colour is see-through."""
    return encoded(picture(size).quantize(8), "PNG", transparency=bytes([0, 128]))


def rgba_png(size: tuple[int, int] = SIZE, alpha: int = 128) -> bytes:
    """Return a PNG with an alpha channel."""
    image = picture(size)
    image.putalpha(alpha)
    return encoded(image, "PNG")


def animated_gif(size: tuple[int, int] = SIZE) -> bytes:
    """Return a GIF of two frames; the first is the picture, the second is black."""
    black = Image.new("RGB", size).quantize()
    return encoded(picture(size).quantize(16), "GIF", save_all=True, append_images=[black])


# Folders


def odd_names(folder: Path, names: Iterable[str] = ODD_NAMES) -> list[Path]:
    """Fill a folder with pictures that have odd names, each of a width of its own (41, 42, ...)."""
    paths = [folder / name for name in names]
    for number, path in enumerate(paths, start=1):
        write(path, jpeg((40 + number, 20)) if path.suffix != ".png" else png((40 + number, 20)))
    return paths


def mac_folder(folder: Path) -> list[Path]:
    """Fill a folder as macOS and Windows leave it: three pictures, and what is none of them."""
    for name in ("._1.jpg", ".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX/._1.jpg", "__MACOSX/2.jpg"):
        write(folder / name, b"\x00\x05\x16\x07 not a picture")
    write(folder / "d.jpg.txt", b"not a picture")
    return [write_jpeg(folder / name) for name in ("1.jpg", "2.JPG", "10.JpEg")]


def linked_folder(folder: Path) -> list[Path]:
    """Fill a folder with two pictures and links that lead up, round, and to nowhere."""
    paths = [write_jpeg(folder / "1.jpg"), write_jpeg(folder / "sub" / "2.jpg")]
    for link, target in (
        ("loop", ".."),
        ("self", "."),
        ("sub/up", ".."),
        ("again", "sub"),
        ("gone", "nowhere"),
    ):
        (folder / link).symlink_to(target, target_is_directory=True)
    return paths


def bad_neighbours(folder: Path) -> list[Path]:
    """Fill a folder with four good pictures and, among them, an empty one, half a one and a text."""
    contents = (
        ("1.jpg", jpeg()),
        ("2.jpg", b""),
        ("3.jpg", jpeg()),
        ("4.jpg", truncated_jpeg()),
        ("5.jpg", jpeg()),
        ("6.jpg", b"this is no picture\n"),
        ("7.jpg", jpeg()),
    )
    return [write(folder / name, data) for name, data in contents]


def project(folder: Path) -> list[Path]:
    """Fill a folder as a Supervisely project: two datasets, one with another in it, and annotations."""
    write(folder / "meta.json", b'{"classes": [], "tags": []}')
    images = (
        "ds1/img/1.jpg",
        "ds1/img/2.jpg",
        "ds1/img/10.jpg",
        "ds1/datasets/inner/img/1.jpg",
        "ds2/img/1.jpg",
    )
    for place in images:
        write(folder / place.replace("/img/", "/ann/").replace(".jpg", ".jpg.json"), b"{}")
    return [write_jpeg(folder / place) for place in images]
