"""The course of images: several small jobs in flight, their results matched by position.

Rule: what a journal has is not sent again. It takes its place in the source's order, or, where it is not to
be replayed, has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized

from predsession.inputs.items import Item
from predsession.jobs.batch import Batch
from predsession.jobs.flight import Flight
from predsession.jobs.pace import UploadSize
from predsession.jobs.recall import Recall
from predsession.jobs.receiver import Receiver
from predsession.jobs.sender import send_all
from predsession.jobs.shared import Shared
from predsession.jobs.submit import Submitter
from predsession.wire.jsontypes import JSON


class ImageCourse:
    """Runs items as image jobs.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    items : iterable of Item
        In order; taken lazily, on the sender's thread.
    """

    def __init__(self, shared: Shared, items: Iterable[Item]) -> None:
        self._shared = shared
        self._items = items
        self._flight: Flight[Sequence[Batch]] = Flight()
        self._size = UploadSize(shared.options.submit.batch_size)
        self._submitter = Submitter(shared)
        self._receiver = Receiver(shared, self._submitter, self._flight, size=self._size)
        self._recall = Recall(shared)
        self._left_out: int | None = 0 if shared.journal is None or shared.journal.replay else None

    def send_all(self) -> None:
        """Send every item, as there is room."""
        if self._left_out is None and isinstance(self._items, Sized):
            self._left_out = sum(self._recall.has(item) for item in self._items)
            self._recall = Recall(self._shared)
        clock = self._shared.clock
        slots = self._recall.slots(self._taken())
        listed = isinstance(self._items, Sized)
        send_all(slots, self._submitter, flight=self._flight, size=self._size, clock=clock, ahead=listed)

    def _taken(self) -> Iterator[Item]:
        """Take the items, noting when the caller's own code runs: closing does not wait for that."""
        items = iter(self._items)
        while not self._shared.cancel.is_set():
            self._shared.in_callers_code = True
            try:
                item = next(items, None)
            finally:
                self._shared.in_callers_code = False
            if item is None:
                return
            yield item

    def receive_all(self) -> None:
        """Receive every job."""
        self._receiver.receive_all()

    def end_sending(self, error: BaseException | None) -> None:
        """End the flight."""
        self._flight.end(error)

    @property
    def total(self) -> int | None:
        """The number of items, without those that are left out; None where that is not known, or not yet."""
        if self._left_out is None or not isinstance(self._items, Sized):
            return None
        return len(self._items) - self._left_out

    @property
    def counted(self) -> bool:
        """Whether the source knows its length: an iterator does not."""
        return isinstance(self._items, Sized)

    @property
    def finals(self) -> Sequence[JSON]:
        """The final results of the jobs that had one; a stock server has none for images."""
        return self._receiver.finals
