"""Where tensors stay between calls: the seam, and the way for a server that has neither of the two others.

==============  ====================================  ======================================================
way             servers                               what travels
==============  ====================================  ======================================================
`OnServer`      ours                                  a key; over any network
`InRegions`     Triton, on the same machine           the name of a region of shared memory
`HereOnly`      all others                            the bytes, each time: results are the same
==============  ====================================  ======================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from predsession.errors import ProtocolError, ResponseError, SourceError
from predsession.tensor.plan import Given, Wish
from predsession.wire.oip.messages import Buffer, Parameters, Tensor, Wanted
from predsession.wire.oip.packing import pack


@dataclass(frozen=True, slots=True)
class Output:
    """What became of an output.

    Parameters
    ----------
    datatype : str
        The protocol's name.
    shape : tuple of int
        -1 where a side is not known.
    data : bytes, memoryview or None
        None where it is not to be had here.
    """

    datatype: str
    shape: tuple[int, ...]
    data: Buffer | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Sent:
    """An input, and how it stands with what is kept.

    Parameters
    ----------
    given : Given
        The input.
    packed : bytes, memoryview or None
        Its bytes, where they are here and may have to travel.
    key : str or None
        What it is kept as, if it is.
    fresh : bool
        Whether what is kept under the key is to become this.
    digest : bytes
        What tells its bytes from others; empty where nobody asks.
    """

    given: Given
    packed: Buffer | None
    key: str | None = None
    fresh: bool = False
    digest: bytes = b""


class Residency(Protocol):
    """A way to keep tensors. Calls of one key never overlap: `predsession.tensor.table` sees to that."""

    @property
    def parameters(self) -> Parameters:
        """What a call must say for it."""

    def input(self, sent: Sent) -> Tensor:
        """Return an input as it travels."""

    def wanted(self, wish: Wish, *, apart: bool) -> Wanted | None:
        """Return an output as it is asked for, or None if it is not; `apart` if the call reads the key."""

    def output(self, wish: Wish, tensor: Tensor | None) -> Output:
        """Take an output from a reply; None where it did not come."""

    def mends(self, error: ResponseError, wishes: Iterable[Wish]) -> bool:
        """Do something about a refusal, so that the same call may go well; False if there is nothing."""

    def failed(self, wishes: Iterable[Wish], *, answered: bool) -> list[str]:
        """Clear up after a call that failed, and return the keys that are not as they were before."""

    def forget(self, keys: Iterable[str]) -> None:
        """Let kept tensors go."""

    def close(self) -> None:
        """Let everything go."""


def packed_input(sent: Sent) -> Tensor:
    """Return an input whose bytes travel.

    Parameters
    ----------
    sent : Sent
        With its bytes.

    Returns
    -------
    Tensor
        With them.
    """
    given = sent.given
    assert sent.packed is not None, "what has no bytes here is kept somewhere"
    return Tensor(given.name, given.datatype, given.shape, sent.packed)


def bytes_of(given: Given) -> Buffer | None:
    """Return an input's bytes, if they are here.

    Parameters
    ----------
    given : Given
        The input.

    Returns
    -------
    bytes, memoryview or None
        As the wire has them.

    Raises
    ------
    SourceError
        If an element is none of its datatype.
    """
    try:
        return None if given.array is None else pack(given.array, given.datatype)
    except ProtocolError as error:
        raise SourceError(f"input {given.name!r}: {error}") from None


def arrived(wish: Wish, tensor: Tensor | None) -> Output:
    """Return an output as far as it came; what did not is known by its metadata.

    Parameters
    ----------
    wish : Wish
        What was to become of it.
    tensor : Tensor or None
        From the reply.

    Returns
    -------
    Output
        Without its bytes, if they were not wanted here.

    Raises
    ------
    ProtocolError
        If it was wanted, and did not come.
    """
    if tensor is None or (tensor.data is None and (wish.here or not wish.configured)):
        if wish.here or wish.there:
            raise ProtocolError(f"the reply lacks output {wish.facts.name!r}")
        return Output(wish.facts.datatype, wish.facts.shape)
    return Output(tensor.datatype, tensor.shape, tensor.data if wish.here else None)


class HereOnly:
    """Keeps tensors in this process, and sends them with every call."""

    def __init__(self) -> None:
        self._kept: dict[str, Buffer] = {}

    @property
    def parameters(self) -> Mapping[str, str]:
        """What a call must say for it: nothing."""
        return {}

    def input(self, sent: Sent) -> Tensor:
        """Return an input as it travels."""
        given = sent.given
        if sent.key is None:
            return packed_input(sent)
        if sent.fresh:
            assert sent.packed is not None, "what is fresh has bytes"
            self._kept[sent.key] = bytes(sent.packed)
        return Tensor(given.name, given.datatype, given.shape, self._kept[sent.key])

    def wanted(self, wish: Wish, *, apart: bool) -> Wanted | None:
        """Return an output as it is asked for, or None if it is not."""
        del apart
        return Wanted(wish.facts.name) if wish.here or wish.there else None

    def output(self, wish: Wish, tensor: Tensor | None) -> Output:
        """Take an output from a reply."""
        if wish.there:
            if tensor is None or tensor.data is None:
                raise ProtocolError(f"the reply lacks output {wish.facts.name!r}")
            assert wish.key is not None, "what is kept has a key"
            self._kept[wish.key] = tensor.data
        return arrived(wish, tensor)

    def mends(self, error: ResponseError, wishes: Iterable[Wish]) -> bool:
        """Do nothing about a refusal: it is not about what is kept here."""
        del error, wishes
        return False

    def failed(self, wishes: Iterable[Wish], *, answered: bool) -> list[str]:
        """Do nothing: an output is kept once it has come."""
        del wishes, answered
        return []

    def forget(self, keys: Iterable[str]) -> None:
        """Let kept tensors go."""
        for key in keys:
            self._kept.pop(key, None)

    def close(self) -> None:
        """Let everything go."""
        self._kept.clear()
