"""A TIFF's tags, read without its picture, which may be of a kind that nothing here opens.

References
----------
TIFF 6.0, section 2; the BigTIFF design, which has 64 bits where that has 32.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import BinaryIO

Numbers = tuple[float, ...]

SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""How a TIFF begins: little or big end first, of 32 or of 64 bits."""
_KINDS = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 11: "f", 12: "d", 13: "I", 16: "Q", 17: "q"}
"""Kinds of numbers, as `struct` calls them; texts and fractions say nothing that is asked for here."""
_MOST_ENTRIES = 4096
_MOST_NUMBERS = 1_000_000


def read_tags(file: BinaryIO, wanted: Collection[int]) -> dict[int, Numbers]:
    """Read tags of the first picture of a TIFF.

    Parameters
    ----------
    file : binary file
        At its beginning, which is one of `SIGNATURES`.
    wanted : collection of int
        The tags' numbers.

    Returns
    -------
    dict of int to tuple of float
        Those that are there, and are numbers.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is damaged.
    """
    try:
        return _directory(file, wanted)
    except (struct.error, OverflowError) as error:
        raise ValueError(f"the TIFF is damaged: {error}") from None


def _directory(file: BinaryIO, wanted: Collection[int]) -> dict[int, Numbers]:
    """Read the first directory."""
    header = file.read(16)
    order, is_big = ("<" if header.startswith(b"II") else ">"), b"+" in header[2:4]
    place, count, entry = ("Q", "Q", "HHQ8s") if is_big else ("I", "H", "HHI4s")
    (first,) = struct.unpack_from(order + place, header, 8 if is_big else 4)
    file.seek(first)
    (number,) = struct.unpack(order + count, file.read(struct.calcsize(order + count)))
    if number > _MOST_ENTRIES:
        raise ValueError(f"the TIFF is damaged: it has {number} tags")
    entries = file.read(number * struct.calcsize(order + entry))
    if len(entries) < number * struct.calcsize(order + entry):
        raise ValueError("the TIFF is damaged: it ends within its tags")
    found = {}
    for tag, kind, length, inline in struct.iter_unpack(order + entry, entries):
        if tag in wanted and kind in _KINDS and length <= _MOST_NUMBERS:
            found[tag] = _numbers(file, f"{order}{length}{_KINDS[kind]}", (order + place, inline))
    return found


def _numbers(file: BinaryIO, form: str, value: tuple[str, bytes]) -> Numbers:
    """Return a tag's numbers: those in its entry, or where the entry says that they are."""
    place, inline = value
    size = struct.calcsize(form)
    if size > len(inline):
        file.seek(struct.unpack(place, inline)[0])
        inline = file.read(size)
    return struct.unpack(form, inline[:size])
