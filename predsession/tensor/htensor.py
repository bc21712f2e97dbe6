"""`HTensor`: a tensor that knows where it lives: here, on the server, in both places, or nowhere any more."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from predsession.errors import SourceError
from predsession.tensor.containers import Container, Data, is_torch, to_numpy

CPU, SERVER = "cpu", "server"
Device = str | Iterable[str] | None
_NAMES = {CPU: CPU, SERVER: SERVER, "bpu": SERVER}
_serials = itertools.count(1)
MOST_CHARACTERS = 1024
"""Of a key."""
Stamp = tuple[int, int]


def read_device(device: Device, what: str) -> frozenset[str]:
    """Return the places that a device means.

    Parameters
    ----------
    device : None, str or iterable of str
        "cpu" is this process, "server" the server; "bpu" is another word for "server".
    what : str
        For messages.

    Returns
    -------
    frozenset of str
        Empty for nowhere.

    Raises
    ------
    SourceError
        If it is something else.
    """
    listed = isinstance(device, Iterable) and not isinstance(device, str)
    given: tuple[object, ...] = () if device is None else tuple(device) if listed else (device,)
    names = [each for each in given if isinstance(each, str) and each in _NAMES]
    if len(names) < len(given):
        raise SourceError(
            f'{what}: device is {device!r}; wanted None, "cpu", "server" (or "bpu"), or both in a list'
        )
    return frozenset(_NAMES[each] for each in names)


def check_key(places: frozenset[str], key: str | None, what: str) -> None:
    """Refuse a tensor on the server without a name there.

    Parameters
    ----------
    places : frozenset of str
        From `read_device`.
    key : str or None
        The name.
    what : str
        For messages.

    Raises
    ------
    SourceError
        If one of the two is without the other, or the name is none that travels.
    """
    if SERVER in places and (not isinstance(key, str) or not key):
        raise SourceError(f'{what} lives on the server and needs a key there: key="name"')
    if SERVER not in places and key is not None:
        raise SourceError(f"{what} has the key {key!r}, and does not live on the server: leave out the key")
    if key is not None:
        _check_text(key, what)


def _check_text(key: str, what: str) -> None:
    """Refuse a name that no message holds, or that is none any more."""
    if len(key) > MOST_CHARACTERS:
        raise SourceError(
            f"{what} has a key of {len(key):,} characters; at most {MOST_CHARACTERS:,} are possible"
        )
    try:
        key.encode()
    except UnicodeEncodeError:
        raise SourceError(f"{what} has the key {key!r}, in which half a character is: no text") from None


class _Content(NamedTuple):
    """What is in a tensor: replaced as one, so that nobody sees half of a change."""

    data: Data | None
    shape: tuple[int, ...] | None
    version: int


class HTensor:
    """A tensor, and where it lives.

    Parameters
    ----------
    data : (shape) ndarray or torch.Tensor, or None
        What is in it; None where it is not here.
    device : None, "cpu", "server" or a list of both
        ``["cpu", "server"]`` makes a fixed input: its bytes travel once, and again only after `data` was set
        to something else. "bpu" is another word for "server".
    key : str or None
        What it is called on the server, within the session, in 1,024 characters at most; needed where the
        device includes it.

    Raises
    ------
    SourceError
        If these do not go together.

    Notes
    -----
    Bytes that are changed in place are not seen; set `data` again, to the same array if need be.
    """

    __slots__ = ("_content", "_device", "_key", "_places", "_serial", "container")

    def __init__(self, data: Data | None = None, device: Device = "cpu", key: str | None = None) -> None:
        what = "an HTensor" if key is None else f"the HTensor {key!r}"
        self._places = read_device(device, what)
        check_key(self._places, key, what)
        self._device: Device = device
        self._key = key
        self._serial = next(_serials)
        self._content = _Content(None, None, 0)
        self.container: Container | None = None
        if data is not None:
            self.data = data

    @classmethod
    def made(
        cls,
        data: Data | None,
        device: Device,
        key: str | None,
        *,
        shape: tuple[int, ...],
        container: Container,
    ) -> HTensor:
        """Make one that a call returns.

        Parameters
        ----------
        data : ndarray, torch.Tensor or None
            What came along.
        device : None, str or list of str
            As it was asked for.
        key : str or None
            Likewise.
        shape : tuple of int
            What is known of it; -1 where it is not.
        container : Container
            What the call's data was in: what comes of this tensor alone goes out in the same.

        Returns
        -------
        HTensor
            Not changed since it was sent: it came from there.
        """
        made = cls(None, device, key)
        made._content = _Content(data, shape, 0)
        made.container = container
        return made

    @property
    def data(self) -> Data | None:
        """What is in it; None where it is not here. Setting it marks it as changed.

        Raises
        ------
        SourceError
            When it is set to another kind than it was: an array for a torch tensor, say.
        """
        return self._content.data

    @data.setter
    def data(self, value: Data) -> None:
        array = to_numpy(value, "an HTensor's data")
        before = self._content.data
        if before is not None and is_torch(before) != is_torch(value):
            raise SourceError(
                f"the data of this HTensor is {type(before).__name__}; "
                f"it cannot become {type(value).__name__}"
            )
        self._content = _Content(value, tuple(array.shape), next(_serials))

    @property
    def device(self) -> Device:
        """Where it lives, as it was said."""
        return self._device

    @property
    def key(self) -> str | None:
        """What it is called on the server."""
        return self._key

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Its shape, also where the data is not here; -1 where a side is not known, None where nothing is."""
        return self._content.shape

    @property
    def stamp(self) -> Stamp:
        """Which tensor it is, and at which setting of its data."""
        return self.snapshot[1]

    @property
    def snapshot(self) -> tuple[Data | None, Stamp]:
        """Its data, and the stamp of just that data, whoever sets it meanwhile."""
        content = self._content
        return content.data, (self._serial, content.version)

    @property
    def on_server(self) -> bool:
        """Whether it lives on the server, there only or too."""
        return SERVER in self._places

    def __repr__(self) -> str:
        """Return where it lives, and its shape."""
        known = "" if self.data is None else f", {getattr(self.data, 'dtype', '')}"
        key = "" if self._key is None else f", key={self._key!r}"
        return f"HTensor(shape={self.shape}{known}, device={self._device!r}{key})"
