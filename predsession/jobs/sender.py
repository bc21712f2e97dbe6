"""The sender's work: uploads of the source's items, submitted while there is room in flight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from predsession.clock import Clock
from predsession.jobs.ahead import Prepared, prepared
from predsession.jobs.batch import Batch, Ready, Slot
from predsession.jobs.flight import Flight
from predsession.jobs.pace import MOST_BYTES, MOST_IMAGES, UploadSize
from predsession.jobs.submit import Submitter

MOST_SLOTS = 2 * MOST_IMAGES
"""Slots in a batch, those with an item error included: a folder of broken files must move on, too."""


LONGEST_GATHERING = 0.25
"""Seconds: a camera's frames are sent as they come, not when an upload is full."""


@dataclass(slots=True)
class Upload:
    """Items that are sent together.

    Parameters
    ----------
    slots : list of Slot
        All of them, in order.
    ready : list of Ready
        Those that can be sent.
    nbytes : int
        Bytes of the latter.
    """

    slots: list[Slot] = field(default_factory=list)
    ready: list[Ready] = field(default_factory=list)
    nbytes: int = 0

    def add(self, slot: Slot, ready: Ready | None) -> None:
        """Add a slot, and what is to be sent for it."""
        self.slots.append(slot)
        if ready is not None:
            self.ready.append(ready)
            self.nbytes += ready.encoded.nbytes

    def full(self, wanted: int) -> bool:
        """Whether nothing more should be added."""
        enough = len(self.ready) >= wanted or len(self.slots) >= MOST_SLOTS
        return enough or self.nbytes >= MOST_BYTES


def send_all(
    slots: Iterable[Slot],
    submitter: Submitter,
    *,
    flight: Flight[Sequence[Batch]],
    size: UploadSize,
    clock: Clock,
    ahead: bool = False,
) -> None:
    """Send every item of a source, as the flight has room.

    Parameters
    ----------
    slots : iterable of Slot
        One for each item, in order; taken lazily. Those that have an outcome are not sent.
    submitter : Submitter
        Prepares and sends.
    flight : Flight
        Where the batches go.
    size : UploadSize
        How many images the next upload should hold.
    clock : Clock
        Time.
    ahead : bool
        Whether slots may be taken before those before them are ready.
    """
    for upload in _uploads(prepared(slots, submitter, ahead=ahead), size, clock):
        if not flight.take_room(len(upload.ready)):
            return
        flight.put(submitter.send(upload.slots, upload.ready))


def _uploads(ready: Iterable[Prepared], size: UploadSize, clock: Clock) -> Iterator[Upload]:
    """Group the slots by count, bytes and time; what came before an error of the source is still sent."""
    upload, wanted, began = Upload(), size.next(), clock.now()
    failure: BaseException | None = None
    try:
        for slot, one in ready:
            upload.add(slot, one)
            if upload.full(wanted) or clock.now() - began > LONGEST_GATHERING:
                yield upload
                upload, wanted, began = Upload(), size.next(), clock.now()
    except Exception as error:  # noqa: BLE001 - the caller's own iterator may raise anything; raised below
        failure = error
    if upload.slots:
        yield upload
    if failure is not None:
        raise failure
