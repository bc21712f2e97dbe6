"""A multipart upload, streamed to files: never whole in memory, never under the name it came with.

File n of the form becomes the file ``n`` of the job's folder. Parsing and writing happen in a thread, a
quarter of a mebibyte at a time, so that a slow disk does not hold up other callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from predsession.server.config import Limits
from predsession.server.refusal import NO_FILES, Refusal, detail, explained

_CHUNK = 1 << 18
_DRAIN = 256 << 20  # a refused upload is read on so far, so that its sender gets to read the answer


@dataclass(slots=True)
class Form:
    """What an upload brought.

    Parameters
    ----------
    folder : Path
        Where the files are, as 1, 2, 3, ...
    names : list of str
        What the sender called them.
    size : int
        Bytes of all files.
    fields : dict
        The text parts.
    """

    folder: Path
    names: list[str] = field(default_factory=list)
    size: int = 0
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> list[Path]:
        """The files, in order."""
        return [self.folder / str(number) for number in range(1, len(self.names) + 1)]


async def receive_form(
    chunks: AsyncIterator[bytes], content_type: str, folder: Path, *, limits: Limits
) -> Form:
    """Take in an upload.

    Parameters
    ----------
    chunks : async iterator of bytes
        The body.
    content_type : str
        The header, with the boundary.
    folder : Path
        Made here; the caller removes it if this fails.
    limits : Limits
        What is too much.

    Returns
    -------
    Form
        Complete.

    Raises
    ------
    Refusal
        If the body is no form with files, damaged, or over a limit.
    """
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        await _drain(chunks)
        if kind == b"multipart/form-data":
            raise Refusal(400, detail("Missing boundary in multipart."))
        raise Refusal(422, NO_FILES)
    folder.mkdir(parents=True)
    writer = _Writer(Form(folder), boundary, limits)
    try:
        async for block in _blocks(chunks):
            await asyncio.to_thread(writer.write, block)
        form = await asyncio.to_thread(writer.finish)
    except Refusal:
        await _drain(chunks)
        raise
    finally:
        writer.close()
    if not form.names:
        raise Refusal(422, NO_FILES)
    return form


async def _blocks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Gather small chunks."""
    held: list[bytes] = []
    size = 0
    async for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= _CHUNK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read on and throw away, within reason."""
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > _DRAIN:
            return


class _Writer:
    """Takes the parser's events and writes the files."""

    def __init__(self, form: Form, boundary: bytes, limits: Limits) -> None:
        self._form = form
        self._limits = limits
        self._received = 0
        self._ended = False
        self._header_name = b""
        self._header_value = b""
        self._disposition = b""
        self._file: BinaryIO | None = None
        self._text: bytearray | None = None
        self._text_name = ""
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
        self._received += len(block)
        if self._received > self._limits.body:
            raise Refusal(413, explained(f"The upload is larger than {self._limits.body} bytes."))
        try:
            self._parser.write(block)
        except FormParserError as error:
            raise Refusal(400, detail(f"There was an error parsing the body: {error}")) from error

    def finish(self) -> Form:
        """Return the form; a body that stops in the middle is damaged."""
        if self._received and not self._ended:
            raise Refusal(
                400, detail("There was an error parsing the body: it ends before its last boundary")
            )
        return self._form

    def close(self) -> None:
        """Close a file that was left open."""
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
            self._text, self._text_name = bytearray(), name
        elif name == "files":
            self._open(_text(file_name))

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
        self._file = (self._form.folder / str(count)).open("wb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        """Take in a piece of a part."""
        if self._file is not None:
            self._file.write(memoryview(data)[start:end])
            self._form.size += end - start
        elif self._text is not None:
            self._text += data[start:end]
            if len(self._text) > self._limits.field:
                raise Refusal(400, detail(f"Part exceeded maximum size of {self._limits.field // 1024}KB."))

    def _part_ends(self) -> None:
        """Close the file, or keep the text."""
        if self._file is not None:
            self._file.close()
            self._file = None
        elif self._text is not None:
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
