"""The models that come with the package, each checked against its recorded sha256 before it is used."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from predsession.server.models.base import Model
from predsession.server.models.card import ModelLoadError

_DATA = Path(__file__).parent / "data"


def checked_file(name: str) -> Path:
    """Return the path of a bundled file, once its checksum is found right.

    Parameters
    ----------
    name : str
        The file's name in ``models/data``.

    Returns
    -------
    Path
        Where it is.

    Raises
    ------
    ModelLoadError
        If it is missing, or is not the file the package was released with.
    """
    path = _DATA / name
    lines = (line.split() for line in (_DATA / "SHA256SUMS").read_text().splitlines())
    sums = {listed: digest for digest, listed in lines}
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ModelLoadError(
            f"cannot read the bundled model {name}: {error}; install the package again"
        ) from error
    if digest != sums[name]:
        raise ModelLoadError(
            f"the bundled model {name} has been changed or damaged; install the package again"
        )
    return path


def _detect() -> Model:
    """Make the detector."""
    from predsession.server.models.nanodet import NanoDet

    return NanoDet()


def _segment() -> Model:
    """Make the person segmentation."""
    from predsession.server.models.selfie import SelfieSegmentation

    return SelfieSegmentation()


def _pixels() -> Model:
    """Make the model for tests."""
    from predsession.server.models.pixels import PixelNumbers

    return PixelNumbers()


BUNDLED: dict[str, Callable[[], Model]] = {"detect": _detect, "segment": _segment, "pixels": _pixels}
"""Name to maker; the names are what ``predsession serve`` takes."""
