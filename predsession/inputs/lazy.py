"""A source that is an iterator: a generator, a webcam loop. Taken once, lazily, of unknown length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from predsession.errors import SourceError
from predsession.inputs.items import Item
from predsession.inputs.sources import open_source


class LazySource:
    """The items of an iterator of images; it has no length.

    Parameters
    ----------
    values : iterator
        Of arrays, PIL images, encoded bytes, paths or URLs.
    """

    def __init__(self, values: Iterator[object]) -> None:
        self._values = values

    @property
    def description(self) -> str:
        """A short name for bars and reprs."""
        return type(self._values).__name__

    def __iter__(self) -> Iterator[Item]:
        index = 0
        for value in self._values:
            for item in _opened(value, index):
                yield replace(item, index=index, name=_name(item, index))
                index += 1


def _opened(value: object, index: int) -> Iterator[Item]:
    """Return the items of one value; a wrong one is told with its place."""
    try:
        return iter(open_source(value))
    except SourceError as error:
        raise SourceError(f"item {index} of the iterator: {error}") from None


def _name(item: Item, index: int) -> str:
    """Return the item's name; one that was made of its place is made of its place here."""
    return f"image_{index:04d}" if item.path is None and item.url is None else item.name
