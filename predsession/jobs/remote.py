"""What is fetched: items that are URLs, without the session's token; pictures of a server's library."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from predsession.errors import ItemError, ResponseError, TransportError
from predsession.http.auth import find_token, show_url
from predsession.http.caller import Caller
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.inputs.images import image_loader
from predsession.inputs.items import BytesContent, Item, UrlContent, item_at, with_bytes
from predsession.jobs.batch import item_error
from predsession.prediction import Loader
from predsession.wire.jsontypes import JSONObject

MOST_BYTES = 256 << 20
"""More than this in one image is refused."""


def fetched(item: Item, caller: Caller) -> Item:
    """Return the item with its bytes.

    Parameters
    ----------
    item : Item
        Any; one that is no URL is returned as it is.
    caller : Caller
        Fetches it, again where that is of use.

    Returns
    -------
    Item
        The same item, its content known.

    Raises
    ------
    ItemError
        If it cannot be fetched.
    """
    if not isinstance(item.content, UrlContent):
        return item
    try:
        return with_bytes(item, caller.fetch(item.content.url, max_bytes=MOST_BYTES))
    except (TransportError, ResponseError) as error:
        failure = item_error(item, f"cannot be fetched: {error}")
    raise failure


@dataclass(frozen=True, slots=True)
class UrlLoader:
    """Fetches the picture again when it is asked for.

    Parameters
    ----------
    item : Item
        A URL item.
    options : ConnectionOptions
        Timeouts, certificates, proxies.
    """

    item: Item
    options: ConnectionOptions

    def __call__(self) -> npt.NDArray[np.uint8]:
        """Return the picture, (H, W, 3) uint8 RGB, upright."""
        url = self.item.url or ""
        transport = HttpTransport(url, options=self.options)
        try:
            loader = image_loader(fetched(self.item, Caller(transport)))
        finally:
            transport.close()
        if loader is None:
            raise ItemError(f"{self.item.label} cannot be loaded")
        return loader()


def loader_for(item: Item, options: ConnectionOptions) -> Loader | None:
    """Return what loads the item's picture later."""
    return UrlLoader(item, options) if isinstance(item.content, UrlContent) else image_loader(item)


@dataclass(frozen=True, slots=True)
class LibraryLoader:
    """Fetches a picture of the server's library by id.

    Parameters
    ----------
    endpoint : str
        The server's URL.
    place : str
        Below it.
    options : ConnectionOptions
        Timeouts, certificates, proxies.
    token : str or None
        For the server. It is not pickled: elsewhere the environment's is used.
    """

    endpoint: str = field(repr=False)
    place: str
    options: ConnectionOptions
    token: str | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[LibraryLoader], tuple[str, str, ConnectionOptions]]:
        """Pickle without the token."""
        return LibraryLoader, (self.endpoint, self.place, self.options)

    @classmethod
    def of(
        cls, item: JSONObject, endpoint: str, options: ConnectionOptions, *, token: str | None = None
    ) -> LibraryLoader | None:
        """Return the loader for a result item that names an image, or a frame of a video."""
        image, video, frame = (item.get(key) for key in ("image_id", "video_id", "frame_index"))
        if isinstance(image, int):
            return cls(endpoint, f"library/images/{image}", options, token)
        if isinstance(video, int) and isinstance(frame, int):
            return cls(endpoint, f"library/videos/{video}/frames/{frame}", options, token)
        return None

    def __call__(self) -> npt.NDArray[np.uint8]:
        """Return the picture, (H, W, 3) uint8 RGB, upright."""
        url = f"{self.endpoint.rstrip('/')}/{self.place}"
        token = find_token(self.token, None, explicit_url=self.endpoint)
        transport = HttpTransport(self.endpoint, token=token, options=self.options)
        try:
            data = transport.fetch_own(self.place, max_bytes=MOST_BYTES)
        finally:
            transport.close()
        loader = image_loader(item_at(0, BytesContent(data, url=show_url(url))))
        assert loader is not None, "bytes can be loaded"
        return loader()
