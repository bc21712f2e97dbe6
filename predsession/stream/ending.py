"""Letting go of several things, whatever happens to one of them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

log = logging.getLogger("predsession.stream")


class Closes(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Let go."""


def end_all(ends: Sequence[Callable[[], object]]) -> None:
    """Call all of them, and raise what the first that failed has raised.

    Parameters
    ----------
    ends : sequence of callable
        In this order.
    """
    first: BaseException | None = None
    for end in ends:
        try:
            end()
        except BaseException as error:  # noqa: BLE001 - it is raised when all is done
            if first is not None:
                log.warning("closing, also failed: %r", error)
            first = first or error
    if first is not None:
        raise first


def let_be(*open_things: Closes | None) -> None:
    """Close what was forgotten; there is nobody left to be told of an error.

    Parameters
    ----------
    *open_things : Closes or None
        In this order.
    """
    for each in open_things:
        if each is not None:
            with contextlib.suppress(Exception):
                each.close()
