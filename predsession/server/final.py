"""The final result of a tracked clip: a video annotation, written piece by piece, never whole in memory.

References
----------
docs/protocol.md, "The final result".
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from predsession.server.job import Job
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

UNTRACKED: JSONObject = {"ann": [], "video_ann": None}
"""The final result of a clip that was not tracked."""
_OF_OBJECT = frozenset({"classTitle", "description", "tags", "box", "nnCreated", "nnUpdated"})
"""What an object has beside its geometry."""


def write_final(job: Job, items: Iterable[bytes], path: Path) -> None:
    """Write the final result.

    Parameters
    ----------
    job : Job
        A tracked one.
    items : iterable of bytes
        All its results.
    path : Path
        The file; it is there when it is whole.
    """
    clip = job.facts.clip
    assert clip is not None
    frames_path, whole_path = (path.with_suffix(suffix) for suffix in (".frames", ".part"))
    objects: dict[int, str] = {}
    with frames_path.open("w+b") as frames, whole_path.open("wb") as whole:
        for number, item in enumerate(items, start=1):
            frame: dict[str, JSON] = {"index": clip.frame(number)}
            frame["figures"] = list(_figures(job.uuid, number, json.loads(item), objects))
            frames.write((b"," if number > 1 else b"") + _dump(frame))
        frames.seek(0)
        _assemble(job, objects, frames, whole)
    frames_path.unlink()
    whole_path.replace(path)


def _assemble(job: Job, objects: dict[int, str], frames: BinaryIO, whole: BinaryIO) -> None:
    """Put the parts together in the order in which a stock server writes them."""
    clip = job.facts.clip
    assert clip is not None
    head: dict[str, JSON] = {
        "size": {"height": clip.height, "width": clip.width},
        "description": "",
        "key": _key(job.uuid),
        "tags": [],
        "objects": [
            {"key": _key(job.uuid, track), "classTitle": title, "tags": []}
            for track, title in sorted(objects.items())
        ],
    }
    whole.write(b'{"ann":[],"video_ann":' + _dump(head).removesuffix(b"}") + b',"frames":[')
    shutil.copyfileobj(frames, whole)
    whole.write(b'],"framesCount":%d}}' % clip.length)


def _figures(uuid: str, number: int, item: JSONObject, objects: dict[int, str]) -> Iterator[JSONObject]:
    """Yield the figures of one frame, and note their objects; an object without a track is no figure."""
    annotation = as_object(item.get("annotation"))
    ids = as_list(annotation.get("customBigData"))
    for row, (track, thing) in enumerate(zip(ids, as_list(annotation.get("objects")), strict=False)):
        one = as_object(thing)
        if not isinstance(track, int) or track < 0:
            continue
        objects.setdefault(track, str(one["classTitle"]))
        yield {
            "key": _key(uuid, number, row, "figure"),
            "objectKey": _key(uuid, track),
            "geometryType": one["geometryType"],
            "geometry": {name: value for name, value in one.items() if name not in _OF_OBJECT},
            "nnCreated": True,
            "nnUpdated": True,
            "trackId": str(track),
        }


def _key(*parts: object) -> str:
    """Return a key: 32 hex digits, the same for the same thing."""
    return hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=16).hexdigest()


def _dump(value: JSON) -> bytes:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()
