"""A live picture: a camera, or a stream over the network, read as long as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from predsession.errors import SourceError
from predsession.inputs.items import shown_url
from predsession.inputs.video.probing import Picture, decoded, need_av, words
from predsession.inputs.video.reading import upright

if TYPE_CHECKING:
    import av

# A stream may be a playlist, sent by anybody: its parts come from the network, never from our disk.
_PROTOCOLS = "udp,tcp,rtp,rtsp,rtsps,rtmp,rtmps,srt,http,https,tls,crypto,httpproxy"


class LiveStream:
    """An open stream.

    Parameters
    ----------
    url : str
        ``rtsp://``, ``tcp://``, ``udp://``, ``http://`` and others of FFmpeg's, or ``/dev/video0``.
    timeout : float
        Seconds without anything after which opening or reading fails.

    Raises
    ------
    SourceError
        If it cannot be opened, or has no picture.
    MissingExtraError
        If the extra ``video`` is not installed.
    """

    def __init__(self, url: str, *, timeout: float) -> None:
        need_av("Reading a camera")
        import av

        self._shown = shown_url(url)
        device = url.startswith("/dev/")
        options = {} if device else {"protocol_whitelist": _PROTOCOLS}
        if url.startswith("rtsp"):
            options["rtsp_transport"] = "tcp"  # over UDP, pictures come damaged
        try:
            self._container = av.open(
                url, format="v4l2" if device else None, options=options, timeout=(timeout, timeout)
            )
        except (av.FFmpegError, OSError, ValueError) as error:
            raise SourceError(f"{self._shown} cannot be opened: {_words(error)}") from None
        if not self._container.streams.video:
            self._container.close()
            raise SourceError(f"{self._shown} has no picture")
        self._stream = self._container.streams.video[0]
        self._stream.thread_type = "SLICE"  # threads for whole frames would hold some back

    def frames(self) -> Iterator[Callable[[], Picture]]:
        """Iterate over frames, each as what makes its picture: (H, W, 3) uint8 RGB, upright.

        Yields
        ------
        callable
            For those that are not wanted, it need not be called.

        Raises
        ------
        SourceError
            If the stream breaks. It may also just end.
        """
        import av

        try:
            for _, frames in decoded(self._container, self._stream):
                for frame in frames:
                    yield _maker(frame)
        except (av.FFmpegError, OSError, ValueError) as error:
            raise SourceError(f"{self._shown} broke off: {_words(error)}") from None

    def close(self) -> None:
        """Close it."""
        self._container.close()


def _maker(frame: av.VideoFrame) -> Callable[[], Picture]:
    """Return what makes a frame's picture."""
    return lambda: upright(frame)


def _words(error: Exception) -> str:
    """Return what PyAV says; that it was interrupted means that nothing came in time."""
    text = words(error)
    return "nothing came in time" if "exit requested" in text.lower() else text
