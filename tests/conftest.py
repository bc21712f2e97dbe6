"""What every test starts from."""

from __future__ import annotations

import pytest
from PIL import ImageFile


@pytest.fixture(autouse=True)
def _pillow_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that imitates a stock one sets this for its whole process; here it shares ours."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)
