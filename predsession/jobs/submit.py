"""Images to jobs: prepare, send, and find out which one is to blame when the server refuses.

Rule (docs/protocol.md): a stock server refuses a whole upload for one image, and names none. So an upload
that is refused with 500 is halved until the one is found, which is then decoded here and sent as PNG before
it is given up. A server with ``item_errors`` is taken at its word.
"""

from __future__ import annotations

from collections.abc import Sequence

from predsession import errors
from predsession.inputs.images import prepare, reencode
from predsession.inputs.uploads import Part, PartChangedError
from predsession.jobs.batch import Batch, Ready, Slot
from predsession.jobs.remote import fetched
from predsession.jobs.shared import Shared
from predsession.jobs.start import Starter
from predsession.wire import submits
from predsession.wire.calls import Call


class Submitter:
    """Sends slots as jobs.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._starter = Starter(shared)

    def prepare(self, slot: Slot) -> Ready | None:
        """Make a slot's bytes ready; None, with the slot settled, if they are no image."""
        try:
            item = fetched(slot.item, self._shared.caller)
            options = self._shared.options
            if slot.reencoded:
                encoded = reencode(item, options.limits)
            else:
                encoded = prepare(item, options.limits, encoding=options.encoding)
        except errors.ItemError as error:
            slot.settle(error)
            return None
        return Ready(slot, encoded)

    def submit(self, slots: Sequence[Slot]) -> list[Batch]:
        """Prepare and send the slots that have no outcome."""
        open_slots = [slot for slot in slots if slot.outcome is None]
        ready = [one for slot in open_slots if (one := self.prepare(slot)) is not None]
        return self.send(slots, ready)

    def send(self, slots: Sequence[Slot], ready: Sequence[Ready]) -> list[Batch]:
        """Send what is ready as one job, or as several where the server wants less at once.

        Parameters
        ----------
        slots : sequence of Slot
            In order; those that are not in `ready` have an outcome.
        ready : sequence of Ready
            In the same order.

        Returns
        -------
        list of Batch
            In order, together holding all the slots.

        Raises
        ------
        TransportError
            If the server cannot be reached.
        ResponseError
            If the server refuses the request as such.
        """
        if not ready:
            return [Batch(slots)]
        try:
            uuid = self._start(ready)
        except PartChangedError as error:
            return self._send_without(slots, ready, error)
        except errors.ResponseError as error:
            if not self._may_blame_an_image(error):
                raise
            return self._send_less(slots, ready, error)
        sent = [one.slot for one in ready]
        return [Batch(slots, uuid, self._shared.clock.now(), sent)]

    def _start(self, ready: Sequence[Ready]) -> str:
        """Start a job on what is ready."""
        counters, options = self._shared.counters, self._shared.options.submit
        counters.add("bytes_begun", sum(one.encoded.nbytes for one in ready))
        counters.add("resent_items", sum(one.slot.tries > 0 for one in ready))
        for one in ready:
            one.slot.tries += 1
        indexes = [one.slot.item.index for one in ready]

        def call(key: str, idempotent: bool) -> Call:
            return submits.submit_images(options, key=key, indexes=indexes, idempotent=idempotent)

        return self._starter.start(call, lambda prefix: [_part(one, prefix) for one in ready])

    def _may_blame_an_image(self, error: errors.ResponseError) -> bool:
        """Whether the refusal may be due to one image; a server with ``item_errors`` would have said so."""
        if isinstance(error, errors.UploadTooLargeError):
            return True
        if "item_errors" in self._shared.facts.info().features:
            return False
        return error.status == 500 or "unsupported format" in error.body_head.lower()

    def _send_less(
        self, slots: Sequence[Slot], ready: Sequence[Ready], error: errors.ResponseError
    ) -> list[Batch]:
        """Send halves; what is down to one image is sent otherwise, or is an item error."""
        if len(ready) > 1:
            middle = len(ready) // 2
            cut = slots.index(ready[middle].slot)
            return [
                *self.send(slots[:cut], ready[:middle]),
                *self.send(slots[cut:], ready[middle:]),
            ]
        slot, encoded = ready[0].slot, ready[0].encoded
        if isinstance(error, errors.UploadTooLargeError):
            slot.fail(f"{encoded.nbytes} bytes are more than the server takes in a request (413)")
        elif slot.reencoded:
            # It is a sound picture, and the server refuses it even as plain PNG: the fault is the server's.
            raise error
        else:
            slot.reencoded = True
        return self.submit(slots)

    def _send_without(
        self, slots: Sequence[Slot], ready: Sequence[Ready], error: PartChangedError
    ) -> list[Batch]:
        """Send the others, after a file became shorter under our hands."""
        for one in ready:
            if one.slot.upload_name == error.filename:
                one.slot.fail("the file became shorter, or vanished, while it was being sent")
        return self.send(slots, [one for one in ready if one.slot.outcome is None])


def _part(one: Ready, prefix: str) -> Part:
    """Name a part; the suffix decides the type a stock server stores."""
    name = f"{prefix}-{one.slot.item.index}{one.encoded.suffix}"
    one.slot.upload_name = name
    return Part(name, one.encoded.content_type, one.encoded.nbytes, one.encoded.open)
