"""Which messages of one partition are done, and up to where all of them are."""

from __future__ import annotations


class Ledger:
    """Offsets of one partition while it is ours.

    Invariant: an offset is settled only when it and all that came before it are done, so committing
    `settled` never passes over a message that is not. It remembers what is not done, and stretches of what
    is: its size is that of what is in hand, not of what went by.
    """

    def __init__(self) -> None:
        self.settled = -1
        """All below it is done; -1 before the first message."""
        self.asked = -1
        """What the broker was last asked to take down."""
        self.kept = -1
        """What it has taken down, or where reading began."""
        self.handed = -1
        """One after the last message that was handed on, or where reading begins; -1 if that is not known."""
        self.end = -1
        """One after the last message there is, as far as the broker has told."""
        self._next = -1
        self._open: dict[int, int] = {}  # offset -> the first offset that it answers for
        self._ends: dict[int, int] = {}  # stretches of what is done, above what is settled: begin -> end
        self._begins: dict[int, int] = {}  # the same, end -> begin

    def came(self, offset: int) -> None:
        """Take down that a message came.

        Parameters
        ----------
        offset : int
            Its own. It is higher than those before, but not always by one: offsets that were compacted away
            belong to the message after them. A lower one means that the topic begins anew.
        """
        if offset < self._next or self._next < 0:
            self.settled = self.asked = self.kept = self._next = offset
            self._open.clear()
            self._ends.clear()
            self._begins.clear()
        self._open[offset] = self._next
        self._next = offset + 1

    def done(self, offset: int) -> None:
        """Take down that a message is done; one that did not come, or was done, changes nothing.

        Parameters
        ----------
        offset : int
            Its own, in any order.
        """
        begin = self._open.pop(offset, None)
        if begin is None:
            return
        begin = self._begins.pop(begin, begin)  # the stretch that ends where this one begins
        end = self._ends.pop(offset + 1, offset + 1)  # the one that begins where this one ends
        self._ends.pop(begin, None)
        self._begins.pop(end, None)
        if begin == self.settled:
            self.settled = end
        else:
            self._ends[begin], self._begins[end] = end, begin

    def failed(self) -> None:
        """Take down that the broker did not take down what it was asked to: it is asked again."""
        self.asked = self.kept

    @property
    def due(self) -> bool:
        """Whether the broker should be asked to take `settled` down."""
        return self.settled != self.asked

    @property
    def waiting(self) -> int:
        """How many messages were not handed on yet, as far as that is known."""
        return 0 if self.end < 0 or self.handed < 0 else max(0, self.end - self.handed)

    def __len__(self) -> int:
        """Return how much is remembered."""
        return len(self._open) + len(self._ends)
