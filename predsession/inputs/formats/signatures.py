"""Formats by their first bytes: the ones that can be sent, and the ones a message should name."""

from __future__ import annotations

from predsession.inputs.formats.header import Kind

_SIGNATURES = (
    (b"\xff\xd8", Kind.JPEG),
    (b"\x89PNG", Kind.PNG),
    (b"GIF87a", Kind.GIF),
    (b"GIF89a", Kind.GIF),
    (b"II*\x00", Kind.TIFF),
    (b"MM\x00*", Kind.TIFF),
    (b"II+\x00", Kind.TIFF),  # BigTIFF
    (b"MM\x00+", Kind.TIFF),
)
_BMP_HEADER_SIZES = frozenset({12, 16, 40, 52, 56, 64, 108, 124})
_OTHERS = (
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"8BPS", "a Photoshop file: export it as PNG or JPEG"),
    (b"\x00\x05\x16\x07", "what macOS keeps beside a file, not the file"),
    (b"version https://git-lfs", "a Git LFS pointer: run git lfs pull"),
)
_BRANDS = (
    ((b"heic", b"heix", b"hevc", b"mif1", b"msf1"), "HEIC: convert it to JPEG or PNG"),
    ((b"avif", b"avis"), "AVIF: convert it to JPEG or PNG"),
    ((b"",), "a video or another MP4 container"),
)


def sniff(head: bytes) -> Kind | None:
    """Return the format that begins with these bytes, if it is one that can be sent.

    Parameters
    ----------
    head : bytes
        At least the first 18 bytes of the file, or all of it.

    Returns
    -------
    Kind or None
        The format by content; a file's name is not asked.
    """
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return Kind.WEBP
    # "BM" may begin a text; the size of the second header tells them apart.
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in _BMP_HEADER_SIZES:
        return Kind.BMP
    return None


def looks_like(head: bytes) -> str:
    """Say in a few words what begins with these bytes, where they are no image that can be sent."""
    for signature, name in _OTHERS:
        if head.startswith(signature):
            return name
    if head[4:8] == b"ftyp":
        return next(name for brands, name in _BRANDS if head[8:12].startswith(brands))
    if not head.strip(b"\x00"):
        return "only zeros" if head else "empty"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype html", b"<html")):
        return "a web page"
    if text.startswith(b"<svg"):
        return "an SVG drawing"
    return "text" if _is_text(head) else "unknown content"


def _is_text(head: bytes) -> bool:
    """Return whether the bytes are UTF-8 without control characters; the last character may be cut."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < max(len(head) - 3, 1):
            return False
        text = head[: error.start].decode()
    return all(char.isprintable() or char in "\t\n\r" for char in text)
