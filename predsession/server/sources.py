"""Where the items of a job come from, and by what their results are known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from predsession.errors import PredSessionError
from predsession.inputs.video import Clip, ClipKey, clip_key, probe
from predsession.server.frames import Frame
from predsession.server.inference import ITEM
from predsession.server.job import Job
from predsession.server.jobs import Jobs
from predsession.server.library import Library
from predsession.server.schedule import Piece
from predsession.server.slices import Slice
from predsession.server.stock import NameCache
from predsession.wire.jsontypes import JSON, JSONObject

Picture = Slice | Frame

_TAIL = json.dumps(ITEM, separators=(",", ":"))[1:].encode()
_NOTHING: Mapping[str, JSON] = {}


class Sources:
    """Knows for each item of a job which picture it is.

    Parameters
    ----------
    jobs : Jobs
        Whose uploads they are.
    library : Library or None
        Whose pictures they are, by id.
    cache : NameCache or None
        On a server that imitates a stock one: names to files.
    """

    def __init__(self, jobs: Jobs, library: Library | None, cache: NameCache | None) -> None:
        self._jobs = jobs
        self._library = library
        self._cache = cache

    def pictures(self, piece: Piece) -> list[Picture]:
        """Return where the pictures of a piece lie.

        Parameters
        ----------
        piece : Piece
            Successive items of a job.

        Returns
        -------
        list of Slice or Frame
            One for each.

        Raises
        ------
        KeyError
            As on a stock server: if a file was pushed out of its cache, or a frame is not in the clip.
        """
        facts = piece.job.facts
        if facts.clip is not None:
            return [self._frame(piece.job, number) for number in _numbers(piece)]
        if facts.records is not None:
            return [self._record(facts.records[number - 1]) for number in _numbers(piece)]
        places = slice(piece.first - 1, piece.first - 1 + piece.count)
        if self._cache is not None:
            return [self._cache.get(name) for name in facts.names[places]]
        return [*self._jobs.pictures(piece.job)[places]]

    def _frame(self, job: Job, number: int) -> Frame:
        """Return a frame of a job's clip."""
        clip = job.facts.clip
        assert clip is not None
        index = clip.frame(number)
        if not 0 <= index < clip.length:
            raise KeyError(f"Frame {index} not found in video {clip.name}")
        path = str(self._jobs.upload(job.uuid)) if clip.path is None else clip.path
        return Frame(path, index, clip.width * clip.height)

    def _record(self, number: int) -> Slice:
        """Return a picture of the library; one that is gone is an empty file."""
        path = None if self._library is None else self._library.file("image", number)
        return Slice("", 0, 0) if path is None else Slice(str(path), 0, path.stat().st_size)

    def identity(self, job: Job, number: int) -> JSONObject:
        """Return by which keys the result of an item is known; none where only the order tells."""
        clip = job.facts.clip
        if clip is not None:
            frame: dict[str, JSON] = {"frame_index": clip.frame(number)}
            if clip.video_id is not None:
                frame.update(video_id=clip.video_id, dataset_id=clip.dataset_id, project_id=clip.project_id)
                frame["name"] = clip.name
                frame["timestamp"] = _time(clip.path, clip.frame(number))
            return frame
        if job.facts.records is None or self._library is None:
            return _NOTHING
        return self._library.identity(job.facts.records[number - 1])


def _time(path: str | None, frame: int) -> float | None:
    """Return when a frame of the library's clip is shown, in seconds from its first."""
    if path is None:
        return None
    try:
        return _looked_into(clip_key(path)).time_of(frame)
    except (PredSessionError, IndexError):
        return None  # the clip has changed since the job was made; its frames fail one by one


@lru_cache(maxsize=8)
def _looked_into(key: ClipKey) -> Clip:
    """Return what is known of a clip; looked into once, as long as it stays the same file."""
    return probe(key[0])


def _numbers(piece: Piece) -> range:
    """Return the numbers of a piece's items."""
    return range(piece.first, piece.first + piece.count)


def identified(item: bytes, identity: JSONObject) -> bytes:
    """Return an item's JSON with the keys by which it is known.

    Parameters
    ----------
    item : bytes
        What a worker wrote.
    identity : JSONObject
        From `Sources.identity`.

    Returns
    -------
    bytes
        The same, but for those keys, which a worker leaves null.
    """
    if not identity:
        return item
    tail = json.dumps({**ITEM, **identity}, separators=(",", ":"))[1:].encode()
    return item.removesuffix(_TAIL) + tail


def item_error(error: JSONObject, identity: JSONObject) -> bytes:
    """Return the item that stands for a bad one."""
    brief: Sequence[str] = ("type", "message")
    content = {"error": {name: error[name] for name in brief}, **identity}
    return json.dumps(content, separators=(",", ":")).encode()
