"""A multipart upload, streamed to a file: never whole in memory, never under the name it came with.

The files of the form are written one after the other into one file, which has the job's name. Parsing and
writing happen in a thread, a quarter of a mebibyte at a time, so that a slow disk does not hold up others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from predsession.server.config import Limits
from predsession.server.disk import RETRY_S, no_room
from predsession.server.refusal import NO_FILES, SLOW, Refusal, detail, explained, too_slow
from predsession.server.seats import Seat
from predsession.server.slices import Slice, slices

_CHUNK = 1 << 18
_TEXTS = 1000
_FIELDS = frozenset({"state", "settings"})
"""The text parts that mean something; others are read and thrown away."""
_DRAIN = 256 << 20  # a refused upload is read on so far, so that its sender gets to read the answer


@dataclass(slots=True)
class Form:
    """What an upload brought.

    Parameters
    ----------
    path : Path
        Where the files lie, one after the other.
    names : list of str
        What the sender called them.
    sizes : list of int
        Bytes of each.
    fields : dict
        The text parts that mean something: ``state`` and ``settings``.
    """

    path: Path
    names: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def pictures(self) -> list[Slice]:
        """Where each file lies, in order."""
        return slices(self.path, self.sizes)


class Intake:
    """Reads one upload's body.

    Parameters
    ----------
    chunks : async iterator of bytes
        The body.
    limits : Limits
        What is too much, and too slow.
    """

    def __init__(self, chunks: AsyncIterator[bytes], limits: Limits) -> None:
        self._chunks = chunks
        self._limits = limits
        self.seat = Seat()
        """Its place among the uploads that are received at the same time."""

    async def form(self, content_type: str, path: Path, *, keep: Callable[[int], None]) -> Form:
        """Take in a form.

        Parameters
        ----------
        content_type : str
            The header, with the boundary.
        path : Path
            Written here; the caller removes it if this fails.
        keep : callable
            Told how many bytes have come; raises if there is no room for them.

        Returns
        -------
        Form
            Complete.

        Raises
        ------
        Refusal
            If the body is no form with files, damaged, too slow, or over a limit.
        """
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data":
            raise Refusal(422, NO_FILES)
        boundary = options.get(b"boundary")
        if not boundary:
            raise Refusal(400, detail("Missing boundary in multipart."))
        writer = _Writer(Form(path), boundary, self._limits)
        try:
            async for block in self._blocks():
                keep(writer.received + len(block))
                await asyncio.to_thread(writer.write, block)
            return await asyncio.to_thread(writer.finish)
        except OSError as error:
            raise Refusal(507, no_room(error), retry_after=RETRY_S) from error
        finally:
            writer.close()

    async def drain(self) -> None:
        """Read on and throw away, within reason."""
        size = 0
        async for block in self._blocks():
            size += len(block)
            if size > _DRAIN:
                return

    async def _blocks(self) -> AsyncIterator[bytes]:
        """Gather small chunks; one that does not come in time ends the upload."""
        held: list[bytes] = []
        size = 0
        while (chunk := await self._next()) is not None:
            held.append(chunk)
            size += len(chunk)
            if size >= _CHUNK:
                yield b"".join(held)
                held, size = [], 0
        if held:
            yield b"".join(held)

    async def _next(self) -> bytes | None:
        """Return the next chunk, None at the end."""
        try:
            async with self.seat.patience(self._limits.idle):
                chunk = await anext(self._chunks, None)
            self.seat.moved(len(chunk or b""))
            return chunk
        except TimeoutError:
            raise Refusal(SLOW, too_slow(self._limits.idle)) from None


class _Writer:
    """Takes the parser's events and writes the files."""

    def __init__(self, form: Form, boundary: bytes, limits: Limits) -> None:
        self._form = form
        self._limits = limits
        self.received = 0
        self._ended = False
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._file: BinaryIO | None = None
        self._in_file = False
        self._text: bytearray | None = None
        self._text_name = ""
        self._text_size = 0
        self._texts = 0
        self._all_text = 0
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begins,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value_comes,
                "on_header_end": self._header_ends,
                "on_headers_finished": self._headers_end,
                "on_part_data": self._data,
                "on_part_end": self._part_ends,
                "on_end": self._form_ends,
            },
        )

    def write(self, block: bytes) -> None:
        """Take in a piece of the body."""
        self.received += len(block)
        if self.received > self._limits.body:
            raise Refusal(413, explained(f"The upload is larger than {self._limits.body} bytes."))
        try:
            self._parser.write(block)
        except FormParserError as error:
            raise Refusal(400, detail(f"There was an error parsing the body: {error}")) from error

    def finish(self) -> Form:
        """Return the form; a body that stops in the middle is damaged."""
        if self.received and not self._ended:
            raise Refusal(400, detail("There was an error parsing the body: its last boundary is missing"))
        if not self._form.names:
            raise Refusal(422, NO_FILES)
        self.close()
        return self._form

    def close(self) -> None:
        """Close the file, with all that was written."""
        if self._file is not None:
            self._file.close()

    def _part_begins(self) -> None:
        """Forget the headers of the part before."""
        self._header_name = self._header_value = self._disposition = b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        """Gather a header's name."""
        self._header_name += data[start:end]

    def _header_value_comes(self, data: bytes, start: int, end: int) -> None:
        """Gather a header's value."""
        self._header_value += data[start:end]

    def _header_ends(self) -> None:
        """Keep the one header that matters."""
        if self._header_name.lower() == b"content-disposition":
            self._disposition = self._header_value
        self._header_name = self._header_value = b""

    def _headers_end(self) -> None:
        """Decide where the part goes."""
        _, options = parse_options_header(self._disposition)
        name = _text(options.get(b"name", b""))
        file_name = options.get(b"filename")
        if file_name is None:
            self._start_text(name)
        elif name == "files":
            self._open(_text(file_name))
        else:
            self._count_part()

    def _start_text(self, name: str) -> None:
        """Start a text part."""
        self._count_part()
        self._text, self._text_name, self._text_size = bytearray(), name, 0

    def _count_part(self) -> None:
        """Count a part that is none of the files that are wanted."""
        self._texts += 1
        if self._texts > _TEXTS:
            raise Refusal(400, detail(f"Too many fields. Maximum number of fields is {_TEXTS}."))

    def _open(self, name: str) -> None:
        """Start the next file."""
        count = len(self._form.names) + 1
        if count > self._limits.files:
            most = self._limits.files
            raise Refusal(400, detail(f"Too many files. Maximum number of files is {most}."))
        if len(name.encode()) > self._limits.name:
            raise Refusal(
                400, explained(f"The name of file {count} is longer than {self._limits.name} bytes.")
            )
        self._form.names.append(name)
        self._form.sizes.append(0)
        self._in_file = True
        if self._file is None:
            self._file = self._form.path.open("wb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        """Take in a piece of a part."""
        if self._in_file and self._file is not None:
            self._file.write(memoryview(data)[start:end])
            self._form.sizes[-1] += end - start
        elif self._text is not None:
            self._text_size += end - start
            self._all_text += end - start
            if self._text_size > self._limits.text:
                raise Refusal(400, detail(f"Part exceeded maximum size of {self._limits.text // 1024}KB."))
            if self._all_text > self._limits.texts:
                raise Refusal(413, explained(f"The text parts are larger than {self._limits.texts} bytes."))
            if self._text_name in _FIELDS:
                self._text += data[start:end]

    def _part_ends(self) -> None:
        """Keep the text, if it was one."""
        self._in_file = False
        if self._text is not None:
            if self._text_name in _FIELDS:
                self._form.fields[self._text_name] = _text(bytes(self._text))
            self._text = None

    def _form_ends(self) -> None:
        """Note that the last boundary was seen."""
        self._ended = True


def _text(data: bytes) -> str:
    """Decode a name or a field; what is no UTF-8 was Latin-1 in the days before."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
