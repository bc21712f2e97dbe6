"""What goes to a model and what comes from it, and what answers: values, and a seam."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from predsession.server.models.tensors import Array, TensorFacts, TensorSpec
from predsession.wire.oip.messages import Buffer
from predsession.wire.oip.packing import unpack


@dataclass(frozen=True, slots=True)
class Given:
    """An input, checked.

    Parameters
    ----------
    spec : TensorSpec
        What it is to be.
    shape : tuple of int
        What it is.
    data : bytes, memoryview or None
        As it came; None for one that was kept.
    kept : ndarray or None
        The one that was kept.
    """

    spec: TensorSpec
    shape: tuple[int, ...]
    data: Buffer | None = field(default=None, repr=False)
    kept: Array | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many bytes came for it."""
        return 0 if self.data is None else len(self.data)

    def read(self) -> Array:
        """Return its array, which must not be changed."""
        if self.kept is not None:
            return self.kept
        assert self.data is not None, "an input is here or kept"
        array = unpack(self.data, self.spec.datatype, self.shape)
        array.flags.writeable = False
        return array


@dataclass(frozen=True, slots=True)
class Times:
    """How long a call took, part by part, in nanoseconds.

    Parameters
    ----------
    queue : int
        Until the model was free.
    pre : int
        From the bytes to the model's arrays.
    infer : int
        The model.
    post : int
        From the model's arrays to the bytes.
    """

    queue: int
    pre: int
    infer: int
    post: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.queue + self.pre + self.infer + self.post


@dataclass(frozen=True, slots=True)
class Ran:
    """What a model gave.

    Parameters
    ----------
    inputs : mapping of str to ndarray
        What it was given.
    outputs : mapping of str to ndarray
        Those that were wanted; never changed again.
    data : mapping of str to bytes or memoryview
        Those of them that are sent, packed.
    times : Times
        How long it took.
    """

    inputs: Mapping[str, Array] = field(repr=False)
    outputs: Mapping[str, Array] = field(repr=False)
    data: Mapping[str, Buffer] = field(repr=False)
    times: Times


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked of a model.

    Parameters
    ----------
    inputs : tuple of Given
        One for each of the model's inputs.
    wanted : tuple of str
        Outputs.
    sent : frozenset of str
        Those of them whose bytes are needed.
    """

    inputs: tuple[Given, ...]
    wanted: tuple[str, ...]
    sent: frozenset[str]

    @property
    def size(self) -> int:
        """How many bytes came for it."""
        return sum(one.size for one in self.inputs)


class Served(Protocol):
    """A model that answers calls."""

    @property
    def facts(self) -> TensorFacts:
        """What callers may know."""

    async def run(self, order: Order) -> Ran:
        """Answer once."""

    def stream(self, order: Order) -> AsyncGenerator[Ran, None]:
        """Answer as often as it does."""

    async def close(self, grace: float) -> None:
        """Let calls under way finish, at most so many seconds, then let go."""
