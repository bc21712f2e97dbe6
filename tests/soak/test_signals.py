"""Interrupted at fifty moments of a run each: nothing is left, here or on the server."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_kit import interrupt_after
from PIL import Image
from soak.faults import new_seed

from predsession.testing import RunningServer, number_picture

MOMENTS = 50
LONGEST = 1.2
"""Seconds that the run takes, about."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stock", [False, True], ids=["embedded", "stock"])
def test_a_signal_at_fifty_moments(
    stock: bool, number: signal.Signals, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    """Each job gets one clear, and no thread, socket, temporary file or bar is left."""
    seed = new_seed()
    draw = random.Random(seed)
    for picture in range(30):
        Image.fromarray(number_picture(picture)).save(tmp_path / f"im_{picture:02}.png")
    with RunningServer("pixels", stock=stock) as server:
        for _ in range(MOMENTS):
            interrupt_after(draw.uniform(0.0, LONGEST), server.url, tmp_path, number)
    kind = "stock" if stock else "embedded"
    tell(f"{number.name}: {kind} server, seed {seed}: {MOMENTS} moments, nothing left")
