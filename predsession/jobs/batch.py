"""Items on their way: a slot for each, a batch for those that travel together.

Invariant: a slot gets exactly one outcome, and keeps it. Batches are made in the source's order and hold
their slots in that order, so delivering batch by batch and slot by slot is delivering in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from predsession.errors import ItemError
from predsession.inputs.images import Encoded
from predsession.inputs.items import Item
from predsession.prediction import Prediction

Outcome = Prediction | ItemError


@dataclass(slots=True)
class Slot:
    """The place of one item.

    Parameters
    ----------
    item : Item
        What the place is for.
    outcome : Prediction or ItemError, optional
        What became of it, once that is known.
    tries : int
        How often it was sent.
    reencoded : bool
        Whether it is sent as decoded here, after a server refused the original bytes.
    upload_name : str
        The name it was last sent under.
    key : str or None
        What a journal knows it by; None where there is none, or nothing to keep.
    handled : callable or None
        To be called once the caller has dealt with its outcome.
    """

    item: Item
    outcome: Outcome | None = None
    tries: int = 0
    reencoded: bool = False
    upload_name: str = ""
    key: str | None = None
    handled: Callable[[], None] | None = None

    def settle(self, outcome: Outcome) -> None:
        """Give the slot its one outcome."""
        assert self.outcome is None, f"{self.item.label} has an outcome already"
        self.outcome = outcome

    def fail(self, reason: str) -> None:
        """Settle the slot with an item error."""
        self.settle(item_error(self.item, reason))


@dataclass(frozen=True, slots=True)
class Ready:
    """A slot whose bytes are ready to be sent."""

    slot: Slot
    encoded: Encoded


@dataclass(slots=True)
class Batch:
    """Slots that travel together; those without outcome are in the job, in their order.

    Parameters
    ----------
    slots : sequence of Slot
        In the source's order.
    uuid : str or None
        The job; None if nothing had to be sent.
    sent_at : float
        When the submit was answered, on the session's clock.
    sent : sequence of Slot
        Those that are in the job, in its order.
    handed : int
        How many of the slots' outcomes have been handed over.
    """

    slots: Sequence[Slot]
    uuid: str | None = None
    sent_at: float = 0.0
    sent: Sequence[Slot] = ()
    handed: int = 0

    def missing(self) -> list[Slot]:
        """Return the slots without an outcome."""
        return [slot for slot in self.slots if slot.outcome is None]


def item_error(item: Item, reason: str) -> ItemError:
    """Make the error for one item."""
    return ItemError(
        f"item {item.index}, {item.label}: {reason}",
        index=item.index,
        name=item.name,
        path=item.path,
        reason=reason,
    )
