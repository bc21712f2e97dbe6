"""Results that wait their turn: a few in memory, the rest in a temporary file, so that memory stays flat."""

from __future__ import annotations

import json
import tempfile
from typing import IO

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
        """Keep an item."""
        if len(self._held) < IN_MEMORY:
            self._held[number] = item
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        data = json.dumps(item).encode()
        self._places[number] = (self._file.seek(0, 2), len(data))
        self._file.write(data)

    def take(self, number: int) -> JSONObject:
        """Return an item, and keep it no longer."""
        if number in self._held:
            return self._held.pop(number)
        place, length = self._places.pop(number)
        assert self._file is not None
        self._file.seek(place)
        item: JSONObject = json.loads(self._file.read(length))
        if not self._places:
            self._file.seek(0)
            self._file.truncate()
        return item

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
