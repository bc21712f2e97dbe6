"""What a journal has of a source: found again by what each input is, and turned back into outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from predsession.errors import JournalError, ProtocolError
from predsession.inputs.identity import identity
from predsession.inputs.items import Item
from predsession.jobs.batch import Slot
from predsession.jobs.predicting import predicted
from predsession.jobs.shared import Shared
from predsession.prediction import Prediction
from predsession.wire.jsontypes import JSONObject


class Recall:
    """Looks items up in the journal, one pass over a source; without a journal it only makes slots.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._journal = shared.journal
        self._seen: Counter[str] = Counter()

    def slots(self, items: Iterable[Item]) -> Iterator[Slot]:
        """Yield a slot for each item; those that are kept have their outcome, or are left out."""
        for item in items:
            if self._journal is None:
                yield Slot(item)
                continue
            slot = Slot(item, key=self._key(item))
            found = None if slot.key is None else self._journal.find(slot.key)
            if found is not None:
                self._shared.counters.add("kept")
                if not self._journal.replay:
                    continue
                slot.key = None
                slot.settle(self._predict(item, found))
            yield slot

    def has(self, item: Item) -> bool:
        """Whether an item is kept."""
        key = self._key(item)
        return key is not None and self._journal is not None and self._journal.find(key) is not None

    def _key(self, item: Item) -> str | None:
        """Return what an item is kept under: the same input for the second time has a key of its own."""
        known = identity(item)
        if known is None:
            return None
        self._seen[known] += 1
        return known if self._seen[known] == 1 else f"{known} {self._seen[known]}"

    def _predict(self, item: Item, found: JSONObject) -> Prediction:
        """Make the prediction that was kept."""
        try:
            return predicted(self._shared, item, found)
        except ProtocolError as error:
            raise JournalError(f"the journal's entry for {item.label} is damaged: {error}") from error
