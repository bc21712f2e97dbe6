"""What a journal has of clips: frames, each under its number below the clip's own key, and the final result.

Rule: track ids mean something only within one job. So of a tracked clip all is kept or nothing: what an
unfinished run left is forgotten, and the clip is run again as a whole. The frames of another clip stand for
themselves, whichever choice of frames they were asked for in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from predsession.errors import JournalError
from predsession.inputs.clips import ClipItem
from predsession.inputs.identity import file_identity
from predsession.jobs.cliprun import ClipRun
from predsession.jobs.shared import Shared
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.submits import Tracking

_FINAL = "final"


class KeptFrames:
    """Looks clips up in the journal; without one it finds nothing and keeps nothing.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._journal = shared.journal
        self._seen: Counter[str] = Counter()
        self.left_out: int | None = 0 if self._journal is None or self._journal.replay else None
        """How many frames the caller will not see; None until that is known."""

    def look(self, clips: Iterable[ClipItem], tracking: Tracking | None) -> None:
        """Count, before anything is sent, what the caller will not see."""
        if self._journal is not None and not self._journal.replay:
            keys = ((item, self._key(item, tracking)) for item in clips)
            self.left_out = sum(len(self._find(item, key, tracking)) for item, key in keys)
            self._seen.clear()

    def recall(self, run: ClipRun, tracking: Tracking | None) -> None:
        """Give a clip what is kept of it."""
        if self._journal is None:
            return
        run.key = self._key(run.item, tracking)
        run.kept = self._find(run.item, run.key, tracking)
        self._shared.counters.add("kept", len(run.kept))
        if tracking is not None and not run.kept and run.key is not None:
            self._journal.forget(run.key)

    def _key(self, item: ClipItem, tracking: Tracking | None) -> str | None:
        """Return what a clip is kept under: the same one for the second time has a key of its own."""
        known = _identity(item, tracking)
        if known is None:
            return None
        self._seen[known] += 1
        return known if self._seen[known] == 1 else f"{known} {self._seen[known]}"

    def _find(self, item: ClipItem, key: str | None, tracking: Tracking | None) -> frozenset[int]:
        """Return the wanted frames that are kept."""
        if self._journal is None or key is None or item.frames is None:
            return frozenset()
        frames = (int(rest) for rest in self._journal.below(key) if rest != _FINAL)
        found = frozenset(frame for frame in frames if frame in item.frames)
        return frozenset() if tracking is not None and len(found) < len(item.frames) else found

    def item(self, run: ClipRun, frame: int) -> JSONObject:
        """Return the result of a frame that is kept."""
        found = None if self._journal is None else self._journal.find(f"{run.key}/{frame}")
        if found is None:
            raise JournalError(f"the journal lost frame {frame} of {run.item.label} under our hands")
        return found

    def key(self, run: ClipRun, frame: int) -> str | None:
        """Return what a frame is to be kept under."""
        return None if run.key is None else f"{run.key}/{frame}"

    @property
    def is_replayed(self) -> bool:
        """Whether the caller sees what is kept."""
        return self._journal is None or self._journal.replay

    def keep_finals(self, run: ClipRun, finals: Sequence[JSON]) -> None:
        """Keep the final result of a clip's job."""
        for final in finals:
            if self._journal is not None and run.key is not None:
                self._journal.keep_item(f"{run.key}/{_FINAL}", {_FINAL: final})

    def finals(self, run: ClipRun) -> list[JSON]:
        """Return the final result that is kept of a clip."""
        if self._journal is None or run.key is None:
            return []
        found = self._journal.find(f"{run.key}/{_FINAL}")
        return [] if found is None else [found[_FINAL]]


def _identity(item: ClipItem, tracking: Tracking | None) -> str | None:
    """Return what a clip is known by."""
    if tracking is None:
        return file_identity(item.path)
    how = json.dumps([tracking.tracker, dict(tracking.settings), repr(item.frames)], sort_keys=True)
    return file_identity(item.path, how)
