"""The course of clips: one job a clip, its frames matched by number and handed over in order.

Rules (docs/protocol.md): a frame's result says which frame it is, so a lost answer leaves a gap that is seen,
and the missing frames are run again. Not so where the clip is tracked: track ids start anew in every job. The
whole clip is run again then, and only if it says the same of every frame that the caller already has may it
go on; else what is missing is told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from predsession import errors
from predsession.inputs.clips import CONTENT_TYPES, ClipItem, ClipSource
from predsession.inputs.opening import FileStream
from predsession.inputs.uploads import Part
from predsession.inputs.video import FrameLoader, count_frames
from predsession.jobs.batch import Outcome
from predsession.jobs.cliprun import ClipRun
from predsession.jobs.ending import check_failed, finish, missing_results
from predsession.jobs.flight import Flight
from predsession.jobs.job import JobReader
from predsession.jobs.keptframes import KeptFrames
from predsession.jobs.receiver import MOST_TRIES
from predsession.jobs.shared import Shared
from predsession.jobs.spool import Spool
from predsession.jobs.start import Starter
from predsession.jobs.trackers import check_tracker_settings, choose_tracking
from predsession.prediction import Prediction
from predsession.wire import submits
from predsession.wire.calls import Call
from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.replies import parse_item_fault
from predsession.wire.submits import Tracking


class ClipCourse:
    """Runs clips, one job each.

    Parameters
    ----------
    shared : Shared
        The pipeline's.
    source : ClipSource
        The clips.
    tracking : mapping or None
        The caller's tracking configuration; None not to track.
    """

    def __init__(self, shared: Shared, source: ClipSource, tracking: JSONObject | None) -> None:
        self._shared = shared
        self._source = source
        self._config = tracking
        self._tracking: Tracking | None = None
        self._starter = Starter(shared)
        self._flight: Flight[ClipRun] = Flight()
        self._base = 0
        self._lengths: dict[int, int] = {}
        self._finals: list[JSON] = []
        self._kept = KeptFrames(shared)

    # The sender's part.

    def send_all(self) -> None:
        """Send every clip, the next one while the server works on the one before."""
        if self._config is not None:
            self._tracking = choose_tracking(self._shared.facts.info().raw, self._config)
            check_tracker_settings(self._tracking, self._shared.caller)
        self._kept.look(self._source, self._tracking)
        for item in self._source:
            if not self._flight.take_room(1):
                return
            run = ClipRun(item)
            self._kept.recall(run, self._tracking)
            if not run.kept or run.missing():
                run.ask(whole=not run.kept)
                run.uuid = self._start(item, run.asked)
            self._flight.put(run)

    def end_sending(self, error: BaseException | None) -> None:
        """End the flight."""
        self._flight.end(error)

    def _start(self, item: ClipItem, frames: range | None) -> str:
        """Start a job on some frames of a clip."""
        options, tracking = self._shared.options.submit, self._tracking
        self._shared.counters.add("bytes_begun", item.nbytes)
        first = item.first_index
        if first is not None and frames and item.frames:
            first += item.frames.index(frames[0])

        def call(key: str, idempotent: bool) -> Call:
            return submits.submit_video(
                options,
                frames,
                stride=item.stride,
                tracking=tracking,
                first_index=first,
                key=key,
                idempotent=idempotent,
            )

        def parts(prefix: str) -> list[Part]:
            content_type = CONTENT_TYPES.get(item.suffix, "application/octet-stream")
            return [Part(prefix + item.suffix, content_type, item.nbytes, FileStream(item.path, item.nbytes))]

        return self._starter.start(call, parts)

    # The receiver's part.

    def receive_all(self) -> None:
        """Read every clip to its end."""
        while (run := self._flight.get()) is not None:
            try:
                self._settle(run)
            finally:
                run.spool.close()
            self._flight.give_back(1)
            if self._shared.cancel.is_set():
                return
            self._base += len(run.frames or ())

    def _settle(self, run: ClipRun) -> None:
        """Read a clip's job, and run again what is missing."""
        self._lengths[id(run.item)] = len(run.frames or ())
        self._hand_over(run)
        while run.uuid is not None:
            reader = self._read(run, run.uuid, run.asked)
            if self._shared.cancel.is_set():
                return
            before = len(self._finals)
            finish(self._shared, reader, self._finals)
            self._kept.keep_finals(run, self._finals[before:])
            if not self._still_missing(run, reader):
                return
            run.runs += 1
            run.uuid = self._start(run.item, run.asked)
        self._finals.extend(self._kept.finals(run))

    def _read(self, run: ClipRun, uuid: str, frames: range | None) -> JobReader:
        """Read one job of a clip."""
        expected = None if frames is None else len(frames)
        reader = JobReader(self._shared, uuid, expected=expected, identified=True, again=run.runs > 1)
        run.reader = reader
        seen = 0
        for group in reader.results():
            run.learn_total(reader.state.total if reader.state else None)
            self._lengths[id(run.item)] = len(run.frames or ())
            with self._shared.counters.timed("seconds_parse"):
                for number, item in enumerate(group, start=seen):
                    if not self._keep(run, _frame_of(item, frames or run.frames, number), item):
                        reader.handle(number + 1)
            seen += len(group)
            group.clear()  # all is in the spool, most of it not in memory
            self._hand_over(run)
        run.learn_total(reader.state.total if reader.state else None)
        self._lengths[id(run.item)] = len(run.frames or ())
        return reader

    def _keep(self, run: ClipRun, frame: int, item: JSONObject) -> bool:
        """Keep a frame's result until its turn comes; False if it is of no use."""
        if parse_item_fault(item) is not None:
            self._look_at_length(run)
        if run.length is not None and frame >= run.length:
            return False  # the clip has no such frame, as the caller has been warned
        run.check(frame)
        if run.handed(frame) and self._tracking is not None and run.runs > 1:
            if run.digests[frame] != _digest(item):
                raise self._lost_tracks(run)
            return False
        if run.due is not None and frame not in run.due:
            return False  # it lies between two that are missing
        if frame in run.spool and run.spool.get(frame) == item:
            return False  # said twice in one answer, and the same both times
        if run.handed(frame) or run.has(frame):
            raise errors.ProtocolError(f"{run.item.label}: the server answered frame {frame} twice")
        run.spool.put(frame, item)
        run.fruitless = 0
        return True

    def _still_missing(self, run: ClipRun, reader: JobReader) -> bool:
        """Choose the frames to run again, False if there are none; raise where that is no use."""
        if run.missing():
            self._look_at_length(run)
            self._hand_over(run)
        stretches = run.missing()
        if stretches or not run.frames:
            self._check_hope(run, reader, stretches)
        if not stretches:
            return False
        tracked = self._tracking is not None
        self._shared.counters.add("resent_items", run.ask(whole=tracked))
        if tracked:
            run.spool.close()
            run.spool = Spool()
        return True

    def _check_hope(self, run: ClipRun, reader: JobReader, stretches: Sequence[range]) -> None:
        """Raise for a job that failed for another reason than the clip's end, or where nothing comes."""
        names = [f"{run.item.label}, frame {frame}" for piece in stretches for frame in piece]
        beyond = run.length is not None and run.item.frames is not None and run.length <= max(run.item.frames)
        if not beyond or run.runs > 1:
            check_failed(reader, names, sent=len(run.frames or ()), unit="frames")
        run.fruitless += 1
        if run.fruitless >= MOST_TRIES:
            raise missing_results(names, run.runs, reader)

    def _look_at_length(self, run: ClipRun) -> None:
        """Find out, once, how many frames the clip really has, and leave out those beyond its end."""
        clip = run.item.clip
        if clip is None or run.frames is None or run.length is not None:
            return
        run.length = count_frames(clip)
        if run.length > max(run.frames):
            return
        self._shared.warn(
            errors.ClipShorterWarning(
                f"{run.item.label} gave {run.length} frames, though it has packets for {len(clip)}"
            )
        )
        run.cut(run.length)
        if not run.frames:
            raise errors.SourceError(f"none of the frames asked for of {run.item.label} can be decoded")
        self._lengths[id(run.item)] = len(run.frames)

    def _lost_tracks(self, run: ClipRun) -> errors.MissingResultsError:
        """Make the error for a tracked clip whose second run differs from what the caller has."""
        names = [f"{run.item.label}, frame {frame}" for frame in (run.frames or range(0))[run.at :]]
        return errors.MissingResultsError(
            f"{len(names)} frames of {run.item.label} have no result: an answer was lost on the way, and the "
            "tracks of a second run differ from those already handed over. Run the clip again.",
            uuid=run.uuid or "",
            items=names,
        )

    def _hand_over(self, run: ClipRun) -> None:
        """Pass on the outcomes that are next in order."""
        while run.frames is not None and run.at < len(run.frames) and not self._shared.cancel.is_set():
            frame = run.frames[run.at]
            if not run.has(frame):
                return
            self._hand_over_frame(run, frame)
            run.at += 1

    def _hand_over_frame(self, run: ClipRun, frame: int) -> None:
        """Pass on the outcome of the frame whose turn it is."""
        if frame in run.kept:
            if self._kept.is_replayed:
                self._shared.hand_over(self._outcome(run, self._kept.item(run, frame)))
            return
        item = run.spool.take(frame)
        if self._tracking is not None:
            run.digests[frame] = _digest(item)
        self._shared.hand_over(
            self._outcome(run, item), key=self._kept.key(run, frame), handled=run.handled(frame)
        )

    def _outcome(self, run: ClipRun, item: JSONObject) -> Outcome:
        """Turn the result of the frame whose turn it is into an outcome."""
        assert run.frames is not None
        frame, index, clip = run.frames[run.at], self._base + run.at, run.item.clip
        fault = parse_item_fault(item)
        if fault is not None:
            reason = f"frame {frame}: {fault.message} ({fault.type})"
            return errors.ItemError(
                f"item {index}, {run.item.label}: {reason}",
                index=index,
                name=run.item.name,
                path=run.item.path,
                reason=reason,
            )
        return Prediction.from_wire(
            {**item, "frame_index": frame},
            meta=self._shared.facts.meta(),
            index=index,
            name=run.item.name,
            path=run.item.path,
            url=None,
            timestamp=None if clip is None else clip.time_of(frame),
            loader=FrameLoader(run.item.path, frame),
        )

    @property
    def total(self) -> int | None:
        """The number of frames that come; None until it is known of each clip."""
        counts = [
            self._lengths.get(id(item), None if item.frames is None else len(item.frames))
            for item in self._source
        ]
        known = [count for count in counts if count is not None]
        left_out = self._kept.left_out
        return sum(known) - left_out if left_out is not None and len(known) == len(counts) else None

    @property
    def counted(self) -> bool:
        """The server tells, where it is not known here."""
        return True

    @property
    def finals(self) -> Sequence[JSON]:
        """The final results of the jobs that had one: a tracked clip's has its tracks."""
        return self._finals


def _frame_of(item: JSONObject, frames: range | None, number: int) -> int:
    """Return which frame a result belongs to; an item error may have only its place in the job."""
    frame = item.get("frame_index")
    if isinstance(frame, int) and not isinstance(frame, bool):
        return frame
    if "error" in item and frames is not None and number < len(frames):
        return frames[number]
    raise errors.ProtocolError(f"a frame's result does not tell which frame it is: {str(item)[:80]!r}")


def _digest(item: JSONObject) -> bytes:
    """Return a short fingerprint of what a result says."""
    text = json.dumps(item.get("annotation"), sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=8).digest()
