"""The fields of a protobuf message as bytes, so that large ones are neither read nor written by every layer.

A message is its fields one after the other, in any order, each with its number, its kind and, for bytes, its
length. So small fields are left to protobuf, and a tensor's own memory is put between them, or taken out.

References
----------
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from predsession.errors import ProtocolError

VARINT, I64, BYTES, I32 = 0, 1, 2, 5
_FIXED = {I64: 8, I32: 4}
_MOST_FIELDS = 10_000


def write_varint(value: int) -> bytes:
    """Write a number, such as a length.

    Parameters
    ----------
    value : int
        0 or more.

    Returns
    -------
    bytes
        Seven bits in each, the lowest first.
    """
    septets = bytearray()
    while value > 0x7F:
        septets.append(value & 0x7F | 0x80)
        value >>= 7
    septets.append(value)
    return bytes(septets)


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Read a number.

    Parameters
    ----------
    data : bytes
        A message.
    place : int
        Where the number begins.

    Returns
    -------
    tuple of int
        The number, and the place after it; where it is cut off, the end.
    """
    number, shift = 0, 0
    while place < len(data) and shift < 64:
        number |= (data[place] & 127) << shift
        shift += 7
        place += 1
        if data[place - 1] < 128:
            break
    return number, place


def after(data: bytes, place: int, kind: int) -> tuple[int, int]:
    """Find the end of a field.

    Parameters
    ----------
    data : bytes
        A message.
    place : int
        The place after the field's tag.
    kind : int
        The lowest three bits of the tag.

    Returns
    -------
    tuple of int
        Where its content begins, and where it ends, which may be after the end of the message.
    """
    if kind == BYTES:
        length, begin = read_varint(data, place)
        return begin, begin + length
    if kind == VARINT:
        return place, read_varint(data, place)[1]
    return place, place + _FIXED.get(kind, 0)


def bytes_field(number: int, content: bytes | memoryview) -> tuple[bytes, bytes | memoryview]:
    """Write a field of bytes.

    Parameters
    ----------
    number : int
        The field's.
    content : bytes or memoryview
        What is in it; it is not copied.

    Returns
    -------
    tuple of bytes and (bytes or memoryview)
        To be put together.
    """
    return bytes((number << 3 | BYTES,)) + write_varint(len(content)), content


def take_out(data: bytes, number: int) -> tuple[bytes, list[memoryview]]:
    """Take all fields of one number out of a message.

    Parameters
    ----------
    data : bytes
        The message.
    number : int
        Of a field of bytes.

    Returns
    -------
    tuple of bytes and list of memoryview
        The message without them, and what was in each, in order. A message that is broken is returned whole:
        reading it says so.

    Raises
    ------
    ProtocolError
        If it has more fields than any message that is meant; to look at each would take too long.
    """
    whole = memoryview(data)
    rest: list[memoryview] = []
    taken: list[memoryview] = []
    wanted = number << 3 | BYTES
    place = 0
    while place < len(data):
        tag, behind = read_varint(data, place)
        begin, end = after(data, behind, tag & 7)
        if len(rest) + len(taken) >= _MOST_FIELDS:
            raise ProtocolError(f"a message of more than {_MOST_FIELDS:,} fields")
        if end > len(data) or tag & 7 not in {VARINT, I64, BYTES, I32}:
            return data, []
        if tag == wanted:
            taken.append(whole[begin:end])
        else:
            rest.append(whole[place:end])
        place = end
    return b"".join(rest), taken
