"""Pictures beside their annotations: copied, linked, or drawn from what a prediction has at hand."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path, PurePath

import numpy as np
import numpy.typing as npt
from PIL import Image

from predsession.errors import PredSessionError, SourceError
from predsession.export.folders import drafted, write_whole
from predsession.export.target import Images
from predsession.prediction import Prediction

ORIENTATION = 0x0112
"""The EXIF tag that says how a picture is turned."""
WRITTEN = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"})


def put_picture(prediction: Prediction, folder: Path, place: PurePath, *, how: Images) -> bool:
    """Put a prediction's picture into a folder, so that the coordinates fit it.

    A file is copied or linked as it is, but for one that is turned by its EXIF orientation: boxes belong to
    the upright picture, and many tools do not turn it, so it is written upright. Frames of a clip and
    pictures from memory are written.

    Parameters
    ----------
    prediction : Prediction
        Whose picture.
    folder : Path
        Where the pictures go.
    place : PurePath
        Below it.
    how : {"copy", "link"}
        What is done to files; a link across disks becomes a symbolic one.

    Returns
    -------
    bool
        Whether it could be had; a picture that is gone takes nothing from its annotation.

    Raises
    ------
    SourceError
        If the place is the very picture that was predicted.
    DiskError
        If it cannot be written.
    """
    target = folder / place
    source = None if prediction.path is None or prediction.frame_index is not None else Path(prediction.path)
    if source is not None and target.exists() and source.exists() and target.samefile(source):
        if how == "link":
            return True
        if _entry(target) in (_entry(source), _entry(source.resolve())):
            raise SourceError(f"{target} is the picture itself; choose another folder")
    if source is not None and _is_upright(source):
        with drafted(target) as draft:
            _copy(source, draft) if how == "copy" else _link(source, draft)
        return True
    try:
        picture = prediction.load_image()
    except PredSessionError:
        return False
    write_whole(target, encoded(picture, target.suffix))
    return True


def _entry(path: Path) -> tuple[Path, str]:
    """Return a name and the folder in which it stands: what is replaced, and not what a link leads to."""
    return path.parent.resolve(), path.name.casefold()


def _is_upright(source: Path) -> bool:
    """Whether a file is a picture that needs no turning."""
    try:
        with Image.open(source) as picture:
            return bool(picture.getexif().get(ORIENTATION, 1) == 1)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return False


def _copy(source: Path, target: Path) -> None:
    """Copy a file, and its times."""
    shutil.copy2(source, target)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name."""
    try:
        os.link(source.resolve(), target)
    except OSError:
        target.symlink_to(source.resolve())


def encoded(picture: npt.NDArray[np.uint8], suffix: str) -> bytes:
    """Return a picture as a file.

    Parameters
    ----------
    picture : (H, W, 3) uint8 ndarray
        RGB.
    suffix : str
        Its kind, ``.jpg`` for one; PNG for any that is not among those that Pillow writes well.

    Returns
    -------
    bytes
        All of it.
    """
    file = io.BytesIO()
    kind = Image.registered_extensions()[suffix.lower()] if suffix.lower() in WRITTEN else "PNG"
    Image.fromarray(picture).save(file, kind, quality=92)
    return file.getvalue()
