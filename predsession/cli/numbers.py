"""What reads the numbers of options, and says what it wanted."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def count_of(what: str) -> Callable[[str], int]:
    """Return what reads a number of things, 1 or more."""

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() else 0
        if value < 1:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of {what}: 1 or more")
        return value

    return read


def seconds(most: int) -> Callable[[str], float]:
    """Return what reads a time that can be waited, from a millisecond to so many seconds."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0.001 <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds from 0.001 to {most}")
        return value

    return read
