"""Frames: of a video file, and of a camera."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from predsession.clock import Clock, SystemClock
from predsession.errors import ItemError, SourceError
from predsession.inputs.items import printable, shown_url
from predsession.inputs.video import ClipReader, LiveStream, Picture, count_frames, need_av, probe
from predsession.stream.samples import DeadLetter, Sample
from predsession.stream.schema import ID
from predsession.stream.source import Taken

log = logging.getLogger("predsession.stream")
_JOIN_SECONDS = 1.0
"""Seconds for which closing waits for the thread that reads; it is then left to end when its time is up."""
_FOREVER = 1e6
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before a broken connection is made again: the first time, the second, and so on."""


class VideoSource:
    """Frames of a video file.

    A sample has ``object_id``, as ``"clip.mp4:00000012"``, ``image``, (H, W, 3) uint8 RGB, ``frame_index``
    and ``time`` in seconds from the first frame; its position is the object id. A frame that cannot be
    decoded is a dead letter.

    Parameters
    ----------
    path : str or PathLike
        The file.
    stride : int
        Every so many frames one.
    name : str or None
        What the object ids begin with; the file's name by default. Files of one name, in different folders,
        need others to go into one store.

    Raises
    ------
    SourceError
        If it is no clip.
    MissingExtraError
        If the extra ``video`` is not installed.
    """

    def __init__(self, path: str | os.PathLike[str], *, stride: int = 1, name: str | None = None) -> None:
        if not isinstance(stride, int) or stride < 1:
            raise SourceError(f"stride is {stride!r}; wanted 1 or more")
        need_av("Reading a clip")
        self._name = name or Path(path).name
        try:
            self._name.encode()
        except UnicodeEncodeError:
            raise SourceError(f"{printable(self._name)!r} is not UTF-8, and no id: pass name=") from None
        self._clip = probe(path)
        self._reader = ClipReader(self._clip)
        self._stride = stride
        self._next = 0
        self._end = len(self._clip)
        self._checked = False
        self._closed = False
        self._lock = threading.Lock()

    def take(self, most: int, seconds: float) -> list[Taken] | None:
        """Return frames, as many as can be decoded in the time, at least one; None at the end."""
        ends = time.monotonic() + seconds
        found: list[Taken] = []
        while len(found) < most and (not found or time.monotonic() < ends):
            with self._lock:
                if self._closed or self._next >= self._end:
                    break
                index = self._next
                self._next += self._stride
                found.append(self._frame(index))
        return found or None

    def _frame(self, index: int) -> Taken:
        """Decode a frame."""
        place = f"{self._name}:{index:08}"
        try:
            image = self._reader.read(index)
        except ItemError as error:
            return DeadLetter(place, self._what_is_wrong(index, error), b"", place)
        fields = {ID: place, "image": image, "frame_index": index, "time": self._clip.time_of(index)}
        return Sample(fields, place)

    def _what_is_wrong(self, index: int, error: ItemError) -> str:
        """Say what is wrong; where the file is cut short, one word is enough for all that is missing."""
        if not self._checked:
            self._checked = True
            self._end = count_frames(self._clip)
        if index < self._end:
            return str(error)
        return (
            f"{self._name} ends here: {len(self._clip) - index} of its {len(self._clip)} frames are missing"
        )

    def done(self, positions: Sequence[str]) -> None:
        """Do nothing: the file stays as it is."""

    def dead(self, letters: Sequence[DeadLetter]) -> None:
        """Do nothing: the table of dead letters is enough."""

    def behind(self) -> int:
        """Return how many frames there are to come."""
        return max(0, -(-(self._end - self._next) // self._stride))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._reader.close()


class CameraSource:
    """Frames of a camera, or of any stream that FFmpeg reads, as they come; a thread reads them.

    A sample has ``object_id``, made of `name` and the time, so that it is another in each run, ``image``,
    (H, W, 3) uint8 RGB, ``frame_index``, counted from 0 in this run, and ``time``, when it came, in seconds
    since 1970; its position is the object id. If the connection breaks, it is made again after a pause.

    Parameters
    ----------
    url : str
        ``rtsp://``, ``tcp://``, ``udp://``, ``http://`` and others of FFmpeg's, or ``/dev/video0``.
    fps : float or None
        So many frames a second at most; all by default.
    stale : str
        "drop": where the model is too slow, the newest frames win, and `dropped` counts the others. "wait":
        none is dropped here; a camera will then drop the connection, but a stream that waits, does.
    name : str or None
        What the object ids begin with; the host by default.
    ahead : int
        Frames that are kept.
    reconnect : bool
        Whether a stream that ends is opened again.
    patience : float
        Seconds without anything after which the connection counts as broken.
    clock : Clock or None
        What time it is.

    Raises
    ------
    SourceError
        If an argument makes no sense. From `take`, if the first connection cannot be made.
    MissingExtraError
        If the extra ``video`` is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        fps: float | None = None,
        stale: str = "drop",
        name: str | None = None,
        ahead: int = 8,
        reconnect: bool = True,
        patience: float = 5.0,
        clock: Clock | None = None,
    ) -> None:
        need_av("Reading a camera")
        if fps is not None and not fps > 0:
            raise SourceError(f"fps is {fps!r}; wanted more than 0")
        if stale not in {"drop", "wait"}:
            raise SourceError(f"stale is {stale!r}; wanted 'drop' or 'wait'")
        if not isinstance(ahead, int) or ahead < 1:
            raise SourceError(f"ahead is {ahead!r}; wanted 1 or more")
        if not 0 < patience < _FOREVER:
            raise SourceError(f"patience is {patience!r}; wanted seconds above 0")
        self._patience = patience
        self._url = url
        self._name = name or _name_of(url)
        self._between = 0.0 if fps is None else 1 / fps
        self._waits = stale == "wait"
        self._ahead = ahead
        self._reconnect = reconnect
        self._clock = clock or SystemClock()
        self._closing = threading.Event()
        self._turn = threading.Condition()
        self._frames: deque[Sample] = deque()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._ended = False
        self._count = 0
        self._due = 0.0
        self.dropped: int = 0
        """Frames that came and were given to nobody, as newer ones had come."""
        self.connections: int = 0
        """How often a connection was made."""

    def take(self, most: int, seconds: float) -> list[Taken] | None:
        """Return what is there, waiting so long for the first; None once nothing more will come."""
        if self._thread is None and not self._closing.is_set():
            self._thread = threading.Thread(target=self._read, name="predsession-stream-camera", daemon=True)
            self._thread.start()
        with self._turn:
            self._turn.wait_for(lambda: self._frames or self._ended or self._closing.is_set(), seconds)
            if self._closing.is_set():
                return None
            found: list[Taken] = [self._frames.popleft() for _ in range(min(most, len(self._frames)))]
            self._turn.notify_all()
            if found or not self._ended:
                return found
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            return None

    def _read(self) -> None:
        """Read frames, connection after connection."""
        try:
            failed = 0
            while not self._closing.is_set():
                before = self._count
                self._connect()
                if not self._reconnect:
                    break
                failed = 0 if self._count > before else failed + 1
                self._clock.wait(self._closing, _PAUSES[min(failed, len(_PAUSES) - 1)])
        except BaseException as error:  # noqa: BLE001 - it is raised where the frames are taken
            self._error = error
        with self._turn:
            self._ended = True
            self._turn.notify_all()

    def _connect(self) -> None:
        """Read frames until the connection breaks; raises `SourceError` if there has never been one."""
        try:
            stream = LiveStream(self._url, timeout=self._patience)
        except SourceError as error:
            if not self.connections:
                raise
            log.warning("%s; trying again", error)
            return
        self.connections += 1
        try:
            for picture in stream.frames():
                if self._closing.is_set():
                    return
                self._add(picture)
            log.warning("%s ended", shown_url(self._url))
        except SourceError as error:
            if not self._closing.is_set():
                log.warning("%s; connecting again", error)
        finally:
            stream.close()

    def _add(self, picture: Callable[[], Picture]) -> None:
        """Keep a frame, if it is wanted."""
        now = self._clock.now()
        if self._between:
            if now < self._due:
                return
            self._due = max(self._due + self._between, now)
        came = time.time()
        stamp = datetime.fromtimestamp(came, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        place = f"{self._name}:{stamp}:{self._count:08}"
        fields = {ID: place, "image": picture(), "frame_index": self._count, "time": came}
        self._count += 1
        with self._turn:
            if self._waits:
                self._turn.wait_for(lambda: len(self._frames) < self._ahead or self._closing.is_set())
            while len(self._frames) >= self._ahead:
                self._frames.popleft()
                self.dropped += 1
            self._frames.append(Sample(fields, place))
            self._turn.notify_all()

    def done(self, positions: Sequence[str]) -> None:
        """Do nothing: what a camera saw is gone."""

    def dead(self, letters: Sequence[DeadLetter]) -> None:
        """Do nothing: the table of dead letters is enough."""

    def behind(self) -> int:
        """Return how many frames wait."""
        return len(self._frames)

    def close(self) -> None:
        """Read no more. `take` ends at once; a thread that waits for the network, when its patience does."""
        self._closing.set()
        with self._turn:
            self._turn.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_SECONDS)


def _name_of(url: str) -> str:
    """Return the host of a URL, without what may be secret; of a device, its path."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or parts.path or "camera"
