"""Tensors that stay on our own server, by the extension of `predsession.wire.oip.residency`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

from predsession.errors import ProtocolError, ResponseError
from predsession.tensor.door import Door
from predsession.tensor.lease import Lease
from predsession.tensor.plan import Wish
from predsession.tensor.residency import Output, Sent, arrived, packed_input
from predsession.wire.oip.messages import Parameter, Tensor, Wanted
from predsession.wire.oip.residency import KEEP, KEPT, SEND, SESSION


class OnServer:
    """Keeps tensors on the server.

    Parameters
    ----------
    door : Door
        The server.
    seconds : float
        For how long, after the last word.
    """

    def __init__(self, door: Door, seconds: float) -> None:
        self._door = door
        self._session = secrets.token_hex(8)
        self._lease = Lease(door, self._session, seconds)
        self._lease.begin()

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """What a call must say for it."""
        return {SESSION: self._session}

    def input(self, sent: Sent) -> Tensor:
        """Return an input as it travels."""
        given = sent.given
        if sent.key is None:
            return packed_input(sent)
        if sent.fresh:
            return Tensor(given.name, given.datatype, given.shape, sent.packed, {KEEP: sent.key})
        return Tensor(given.name, given.datatype, given.shape, None, {KEPT: sent.key})

    def wanted(self, wish: Wish, *, apart: bool) -> Wanted | None:
        """Return an output as it is asked for."""
        del apart  # the server has read all inputs before it keeps an output
        says: dict[str, Parameter] = {}
        if wish.there and wish.key is not None:
            says[KEEP] = wish.key
        if not wish.here:
            says[SEND] = False
        return Wanted(wish.facts.name, says)

    def output(self, wish: Wish, tensor: Tensor | None) -> Output:
        """Take an output from a reply; one that was not sent has its shape all the same."""
        if tensor is not None and tensor.data is None and not wish.here:
            return Output(tensor.datatype, tensor.shape)
        if tensor is None and not wish.here:
            raise ProtocolError(f"the reply lacks output {wish.facts.name!r}")
        return arrived(wish, tensor)

    def mends(self, error: ResponseError, wishes: Iterable[Wish]) -> bool:
        """Do nothing about a refusal: what was forgotten is sent again by whoever has it."""
        del error, wishes
        return False

    def failed(self, wishes: Iterable[Wish], *, answered: bool) -> list[str]:
        """Return the keys that the server may have given a new tensor: it keeps all, or on a refusal none."""
        return [] if answered else [wish.key for wish in wishes if wish.there and wish.key is not None]

    def forget(self, keys: Iterable[str]) -> None:
        """Let kept tensors go."""
        self._door.forget(self._session, list(keys))

    def close(self) -> None:
        """Let everything go."""
        self._lease.end()
