"""Items to jobs: prepare, send, and find out which one is to blame when the server refuses.

Rules (docs/protocol.md):

- Every sending has upload names of its own: a stock server keeps images by name, for all clients at once,
  so a name that is used twice mixes up results.
- A stock server refuses a whole upload for one image, and names none: an upload refused with 500 is halved
  until the one is found, which is then decoded here and sent as PNG before it is given up.
- A submit without an answer may have started a job. With ``idempotency`` the same key finds it; a stock
  server cannot be asked, so it is sent again under new names, and counted.
"""

from __future__ import annotations

import threading
import uuid as uuids
from collections.abc import Sequence
from dataclasses import dataclass, field

from predsession import errors
from predsession.clock import Clock
from predsession.http.caller import Caller
from predsession.inputs.images import Encoded, ImageLimits, prepare, reencode
from predsession.inputs.uploads import Part, PartChangedError
from predsession.jobs.batch import Batch, Ready, Slot
from predsession.jobs.cleanup import Ledger
from predsession.jobs.counters import Counters
from predsession.jobs.facts import ServerFacts
from predsession.jobs.remote import fetched
from predsession.wire import calls
from predsession.wire.calls import SubmitOptions
from predsession.wire.replies import parse_submitted

UNANSWERED_TRIES = 4
"""Submits of the same images that may go unanswered by a stock server."""


class UploadCancelledError(errors.PredSessionError):
    """The session is being stopped in the middle of an upload; internal."""


@dataclass(slots=True)
class Submitter:
    """Sends slots and enters the jobs in the ledger.

    Parameters
    ----------
    caller : Caller
        Sends the calls.
    clock : Clock
        Time.
    cancel : threading.Event
        Once set, an upload under way is broken off.
    facts : ServerFacts
        What the server can do.
    ledger : Ledger
        Where started jobs are entered.
    counters : Counters
        Counts bytes and resent items.
    options : SubmitOptions
        What all submits have in common.
    limits : ImageLimits
        What an image may hold.
    """

    caller: Caller
    clock: Clock
    cancel: threading.Event
    facts: ServerFacts
    ledger: Ledger
    counters: Counters
    options: SubmitOptions
    limits: ImageLimits
    _submits: int = field(default=0)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, slot: Slot) -> Ready | None:
        """Make a slot's bytes ready; None, with the slot settled, if they are no image."""
        try:
            item = fetched(slot.item, self.caller.transport)
            encoded = (reencode if slot.reencoded else prepare)(item, self.limits)
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
        UploadCancelledError
            If the session was stopped meanwhile.
        """
        if not ready:
            return [Batch(slots)]
        try:
            with self.counters.timed("seconds_upload"):
                uuid = self._start_job(ready)
        except PartChangedError as error:
            return self._send_without(slots, ready, error)
        except errors.ResponseError as error:
            if not self._may_blame_an_image(error):
                raise
            return self._send_less(slots, ready, error)
        sent = [one.slot for one in ready]
        if not self.ledger.opened(uuid):
            raise UploadCancelledError("the session was stopped")
        return [Batch(slots, uuid, self.clock.now(), sent)]

    def _start_job(self, ready: Sequence[Ready]) -> str:
        """Submit until a job's uuid is known."""
        for one in ready:
            one.slot.tries += 1
            if one.slot.tries > 1:
                self.counters.add("resent_items")
        self.counters.add("bytes_begun", sum(one.encoded.nbytes for one in ready))
        key = uuids.uuid4().hex
        for unanswered in range(UNANSWERED_TRIES):
            try:
                return self._submit_once(ready, key=key, idempotent=unanswered > 0 and self._idempotent())
            except errors.ConnectError:
                raise
            except (errors.TransportError, errors.ServerFaultError) as error:
                if not self._may_be_repeated(error) or unanswered + 1 == UNANSWERED_TRIES:
                    raise
                self._count_unanswered(error)
        raise AssertionError("unreachable: the last try raises or returns")

    def _submit_once(self, ready: Sequence[Ready], *, key: str, idempotent: bool) -> str:
        """Send one submit under new names."""
        with self._lock:
            self._submits += 1
            number = self._submits
        parts = [self._part(one, f"{self.options.session}-{number}") for one in ready]
        first = ready[0].slot.item.index
        call = calls.submit_images(self.options, key=key, first_index=first, idempotent=idempotent)
        return parse_submitted(self.caller.call(call, parts, on_bytes=self._count_bytes))

    def _part(self, one: Ready, prefix: str) -> Part:
        """Name a part: unique across uploads, sessions and machines; the suffix decides the stored type."""
        encoded: Encoded = one.encoded
        name = f"{prefix}-{one.slot.item.index}{encoded.suffix}"
        one.slot.upload_name = name
        return Part(name, encoded.content_type, encoded.nbytes, encoded.open)

    def _count_bytes(self, amount: int) -> None:
        """Count what is sent; break off if the session is being stopped."""
        if self.cancel.is_set():
            raise UploadCancelledError("the session was stopped in the middle of an upload")
        self.counters.add("bytes_sent", amount)

    def _idempotent(self) -> bool:
        """Whether the server knows a submit again by its key."""
        return "idempotency" in self.facts.info().features

    def _may_be_repeated(self, error: errors.PredSessionError) -> bool:
        """Whether the submit is worth sending again: a 500 is the server's last word on these bytes."""
        if self.cancel.is_set() or isinstance(error, errors.ProtocolError):
            return False
        return not (isinstance(error, errors.ServerFaultError) and error.status == 500)

    def _count_unanswered(self, error: errors.PredSessionError) -> None:
        """Note a job that a stock server may have started."""
        if not self._idempotent():
            self.counters.add("unanswered_submits")
        self.caller.retries["submit"] += 1
        if isinstance(error, errors.ResponseError):
            self.clock.wait(self.cancel, self.caller.policy.base)

    def _may_blame_an_image(self, error: errors.ResponseError) -> bool:
        """Whether the refusal may be due to one image; a server with ``item_errors`` would have said so."""
        if isinstance(error, errors.UploadTooLargeError):
            return True
        if "item_errors" in self.facts.info().features:
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
