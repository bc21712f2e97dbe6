"""The receiver's work: jobs read in the order they were sent, gaps filled, outcomes handed over in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from predsession import errors
from predsession.jobs.batch import Batch, Slot
from predsession.jobs.ending import check_failed, finish, missing_results, untrusted
from predsession.jobs.flight import Flight
from predsession.jobs.job import JobReader
from predsession.jobs.pace import UploadSize
from predsession.jobs.predicting import predicted
from predsession.jobs.shared import Shared
from predsession.jobs.submit import Submitter
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.replies import JobState, parse_item_fault

MOST_TRIES = 5
"""How often one item is sent before its result counts as missing."""


class Receiver:
    """Reads image jobs to their end.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    submitter : Submitter
        Sends again what is missing.
    flight : Flight
        Where the batches come from.
    size : UploadSize
        Learns how fast the server is.
    """

    def __init__(
        self, shared: Shared, submitter: Submitter, flight: Flight[Sequence[Batch]], *, size: UploadSize
    ) -> None:
        self._shared = shared
        self._submitter = submitter
        self._flight = flight
        self._size = size
        self._free_since = 0.0
        self.finals: list[JSON] = []
        """The final results of the jobs that had one."""

    def receive_all(self) -> None:
        """Read every upload of the flight to its end."""
        while (batches := self._flight.get()) is not None:
            for batch in batches:
                self._settle(batch)
            self._flight.give_back(sum(len(batch.sent) for batch in batches))
            if self._shared.cancel.is_set():
                return

    def _settle(self, batch: Batch) -> None:
        """Give every slot of the batch an outcome, sending again what is missing, and hand all over."""
        todo = deque([batch])
        self._hand_over(batch)
        while todo and not self._shared.cancel.is_set():
            present = todo.popleft()
            reader = None if present.uuid is None else self._read(present, present.uuid, batch)
            missing = present.missing()
            if missing and not self._shared.cancel.is_set():
                if any(slot.tries >= MOST_TRIES for slot in missing):
                    fault = missing_results([slot.item.label for slot in missing], MOST_TRIES, reader)
                    raise fault from (reader.miscounted if reader is not None else None)
                todo.extendleft(reversed(self._submitter.submit(missing)))
            self._hand_over(batch)

    def _read(self, batch: Batch, uuid: str, whole: Batch) -> JobReader:
        """Read one job; what it leaves without an outcome is missing."""
        shared, waiting = self._shared, iter(batch.sent)
        began = max(batch.sent_at, self._free_since)
        again = any(slot.tries > 1 for slot in batch.sent)
        reader = JobReader(shared, uuid, expected=len(batch.sent), again=again)
        number = 0
        for group in reader.results():
            with shared.counters.timed("seconds_parse"):
                for item in group:
                    slot = next(waiting)
                    number += 1
                    slot.handled = reader.handled_by_caller(number)
                    self._settle_slot(slot, item)
            self._hand_over(whole)
        self._free_since = shared.clock.now()
        if not shared.cancel.is_set():
            self._size.measured(len(batch.sent), self._free_since - began)
            finish(shared, reader, self.finals)
            if reader.miscounted is not None and reader.received:
                raise untrusted([slot.item.label for slot in batch.sent], reader)
            self._check_end(batch, reader)
        return reader

    def _settle_slot(self, slot: Slot, item: JSONObject) -> None:
        """Turn a result item into the slot's outcome."""
        fault = parse_item_fault(item)
        if fault is not None:
            slot.fail(f"the server refused it: {fault.message} ({fault.type})")
            return
        try:
            slot.settle(predicted(self._shared, slot.item, item))
        except errors.ProtocolError as error:
            error.add_note(f"in the result for {slot.item.label}")
            raise

    def _check_end(self, batch: Batch, reader: JobReader) -> None:
        """Raise for a failed job; an image pushed out of a stock server's cache is only missing."""
        if reader.state is not None and not _pushed_out(batch, reader.state):
            names = [slot.item.label for slot in batch.missing()]
            check_failed(reader, names, sent=len(batch.sent), unit="images")

    def _hand_over(self, batch: Batch) -> None:
        """Pass on the outcomes that are next in order."""
        while batch.handed < len(batch.slots):
            slot = batch.slots[batch.handed]
            if slot.outcome is None or self._shared.cancel.is_set():
                return
            self._shared.hand_over(slot.outcome, key=slot.key, handled=slot.handled)
            batch.handed += 1


def _pushed_out(batch: Batch, state: JobState) -> bool:
    """Whether the job failed because other clients' images took the place of ours (a `KeyError`)."""
    fault = state.exception
    if fault is None or fault.type != "KeyError":
        return False
    return any(slot.upload_name in fault.message for slot in batch.sent)
