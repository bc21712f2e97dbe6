"""What every test starts from."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from PIL import ImageFile

# How long an example takes is the machine's business: no test depends on it.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _pillow_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that imitates a stock one sets this for its whole process; here it shares ours."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)


@pytest.fixture(autouse=True)
def _interrupts_as_they_are() -> Iterator[None]:
    """Ctrl-C ends what a test starts: a shell's background jobs ignore it, and so would their children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)
