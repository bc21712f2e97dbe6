"""Results that wait their turn: a few in memory, the rest in a temporary file, so that memory stays flat."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from typing import IO

from predsession.errors import DiskError
from predsession.wire.jsontypes import JSONObject

IN_MEMORY = 256
"""Results kept in memory."""


class Spool:
    """Keeps result items by number until they are asked for."""

    def __init__(self) -> None:
        self._held: dict[int, JSONObject] = {}
        self._places: dict[int, tuple[int, int]] = {}
        self._file: IO[bytes] | None = None

    def __contains__(self, number: int) -> bool:
        return number in self._held or number in self._places

    def __len__(self) -> int:
        return len(self._held) + len(self._places)

    def put(self, number: int, item: JSONObject) -> None:
        """Keep an item; raise `DiskError` if there is no room for it."""
        if len(self._held) < IN_MEMORY:
            self._held[number] = item
            return
        data = json.dumps(item).encode()
        with _told_plainly():
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
            place = self._file.seek(0, 2)
            self._file.write(data)
        self._places[number] = (place, len(data))

    def get(self, number: int) -> JSONObject:
        """Return an item, and keep it."""
        if number in self._held:
            return self._held[number]
        place, length = self._places[number]
        assert self._file is not None
        with _told_plainly():
            self._file.seek(place)
            item: JSONObject = json.loads(self._file.read(length))
        return item

    def take(self, number: int) -> JSONObject:
        """Return an item, and keep it no longer."""
        item = self.get(number)
        if self._held.pop(number, None) is None:
            del self._places[number]
            if not self._places and self._file is not None:
                with _told_plainly():
                    self._file.seek(0)
                    self._file.truncate()
        return item

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            # What could not be written is tried once more here, and is of no use any longer.
            with contextlib.suppress(OSError):
                self._file.close()


@contextlib.contextmanager
def _told_plainly() -> Iterator[None]:
    """Turn what the disk says into our error, which says what to do."""
    try:
        yield
    except OSError as error:
        raise DiskError(
            "results that wait for their turn cannot be kept in a temporary file: "
            f"{error.strerror or error}; make room, or set TMPDIR to a folder on a larger disk"
        ) from error
