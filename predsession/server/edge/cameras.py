"""A video or a folder that stands in for a camera: it runs while somebody watches, and begins again."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from predsession.errors import PredSessionError, SourceError
from predsession.inputs.folders import list_folder
from predsession.inputs.video import ClipReader, probe
from predsession.server.decode import Pixels, open_picture, to_pixels
from predsession.server.slices import Slice


class Camera(Protocol):
    """Frames, numbered from 0 without end."""

    def number(self, seconds: float, fps: float) -> int:
        """Return the newest frame, so many seconds after the first, where so many a second are wanted."""

    def read(self, number: int) -> Pixels:
        """Return a frame, (H, W, 3) uint8 RGB; numbers only grow."""

    def close(self) -> None:
        """Let go of files."""


def open_camera(path: Path, *, max_pixels: int) -> Camera:
    """Open what stands in for a camera.

    Parameters
    ----------
    path : Path
        A video, or a folder of pictures.
    max_pixels : int
        Of the largest picture.

    Returns
    -------
    Camera
        To be closed.

    Raises
    ------
    SourceError
        If it can be neither.
    """
    if path.is_dir():
        return _Folder(path, max_pixels)
    if not path.is_file():
        raise SourceError(f"there is no file or folder {path}")
    return _Video(path, max_pixels)


class _Folder:
    """A folder: one picture after the other, as many a second as are wanted."""

    def __init__(self, path: Path, max_pixels: int) -> None:
        self._paths = list_folder(str(path))
        self._max_pixels = max_pixels

    def number(self, seconds: float, fps: float) -> int:
        """Count pictures at the wanted rate."""
        return int(seconds * fps)

    def read(self, number: int) -> Pixels:
        """Decode a picture."""
        path = Path(self._paths[number % len(self._paths)])
        try:
            whole = Slice(str(path), 0, path.stat().st_size)
            with open_picture(whole, max_pixels=self._max_pixels) as image:
                return to_pixels(image)
        except (PredSessionError, OSError) as error:
            # Its name only: the place is not the watcher's business, and the decoder knows neither.
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise SourceError(f"{path.name}: {reason}") from None

    def close(self) -> None:
        """Nothing is open."""


class _Video:
    """A video, at its own speed."""

    def __init__(self, path: Path, max_pixels: int) -> None:
        self._reader = ClipReader(probe(path, max_pixels=max_pixels))

    def number(self, seconds: float, fps: float) -> int:
        """Count frames at the video's own rate; of those, the newest at each tick of the wanted one."""
        tick = int(seconds * fps) / fps
        # A hair later, because a tick that falls on a frame is that frame.
        return int(tick * self._reader.clip.rate + 1e-6)

    def read(self, number: int) -> Pixels:
        """Decode a frame."""
        return self._reader.read(number % len(self._reader.clip))

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
