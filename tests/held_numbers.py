"""A model for tests that reads numbers as the bundled one does, and waits while a file is there.

A test that makes the file and takes it away decides what is computed when, however busy the machine is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from predsession.server.models.base import Arrays, Pixels, Settings
from predsession.server.models.pixels import PixelNumbers, read_number

PATIENCE = 60.0
"""Seconds after which a file that nobody has taken away is no longer waited for."""


def mark(gate: Path) -> Path:
    """Return the file that is there once a picture has come to a gate that was shut."""
    return gate.with_name(f"{gate.name}.held")


class HeldNumbers(PixelNumbers):
    """Waits before each picture of ``hold_from`` or more, while the file ``hold_while`` is there.

    One picture at a time: those before it are answered.
    """

    max_batch_size = 1
    default_settings: ClassVar[Settings] = {**PixelNumbers.default_settings, "hold_while": "", "hold_from": 0}

    def predict(self, images: Sequence[Pixels], settings: Settings) -> list[Arrays]:
        """Wait, if that is wanted, and read the numbers."""
        gate, least = str(settings["hold_while"]), int(str(settings["hold_from"]))
        if gate and any((read_number(image) or 0) >= least for image in images):
            mark(Path(gate)).touch()
            end = time.monotonic() + PATIENCE
            while Path(gate).exists() and time.monotonic() < end:
                time.sleep(0.02)
        return super().predict(list(images), settings)


class HeldBatches(HeldNumbers):
    """The same, of as many pictures at a time as the bundled one takes; they wait with each other."""

    max_batch_size = PixelNumbers.max_batch_size
