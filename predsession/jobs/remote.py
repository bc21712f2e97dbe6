"""Items that are URLs: their bytes are fetched here, by the transport, never with the session's token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predsession.errors import ItemError, TransportError
from predsession.http.transport import ConnectionOptions, HttpTransport, Transport
from predsession.inputs.images import image_loader
from predsession.inputs.items import Item, UrlContent, with_bytes
from predsession.jobs.batch import item_error
from predsession.prediction import Loader

MOST_BYTES = 256 << 20
"""More than this in one image is refused."""


def fetched(item: Item, transport: Transport) -> Item:
    """Return the item with its bytes.

    Parameters
    ----------
    item : Item
        Any; one that is no URL is returned as it is.
    transport : Transport
        Fetches it.

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
        return with_bytes(item, transport.fetch(item.content.url, max_bytes=MOST_BYTES))
    except TransportError as error:
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
            loader = image_loader(fetched(self.item, transport))
        finally:
            transport.close()
        if loader is None:
            raise ItemError(f"{self.item.label} cannot be loaded")
        return loader()


def loader_for(item: Item, options: ConnectionOptions) -> Loader | None:
    """Return what loads the item's picture later."""
    return UrlLoader(item, options) if isinstance(item.content, UrlContent) else image_loader(item)
