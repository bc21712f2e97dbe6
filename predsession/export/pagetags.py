"""Tags as a page shows them: name and value, as many as there is room for in a picture.

Invariant: the tags of one picture and its objects take at most `MOST_TAG_BYTES` of the page, and none is cut
short: one that is too long, or comes when the room is used up, is counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from predsession.wire.fields import Tag
from predsession.wire.jsontypes import JSON

MOST_TAG_BYTES = 8000
LONGEST_TAG = 1000
"""Bytes of one, as JSON."""


class TagRoom:
    """Takes tags until the room of a picture is used up."""

    def __init__(self) -> None:
        self._left = MOST_TAG_BYTES
        self.left_out = 0

    def take(self, tags: Iterable[Tag]) -> list[JSON]:
        """Take the tags that fit, and count the others.

        Parameters
        ----------
        tags : iterable of Tag
            Of the picture, or of one object.

        Returns
        -------
        list of JSON
            ``[name]`` or ``[name, value]`` each.
        """
        taken: list[JSON] = []
        for tag in tags:
            entry: list[JSON] = [tag.name] if tag.value is None else [tag.name, _said(tag.value)]
            cost = len(json.dumps(entry))
            if cost > min(self._left, LONGEST_TAG):
                self.left_out += 1
                continue
            self._left -= cost
            taken.append(entry)
        return taken


def _said(value: str | float) -> str | float:
    """Return a value that JSON has a word for: it has none for what is not finite."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
