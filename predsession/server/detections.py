"""What a tracker sees of a picture: boxes, scores, classes; as arrays, and as bytes between processes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predsession.server.models.results import Found

_COLUMNS = 7  # x1, y1, x2, y2, score, class, shown


@dataclass(frozen=True, slots=True)
class Detections:
    """The detections of one picture, row by row.

    Parameters
    ----------
    boxes : (N, 4) float32 ndarray, xyxy, pixels
        Where.
    scores : (N,) float32 ndarray
        How sure.
    class_ids : (N,) int64 ndarray
        Positions in the model's classes.
    shown : (N,) bool ndarray
        Which are objects of the answer; the others only help to track.
    """

    boxes: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    class_ids: npt.NDArray[np.int64]
    shown: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.boxes)


def pack(found: Found, shown: npt.NDArray[np.bool_], *, keep: npt.NDArray[np.bool_]) -> bytes:
    """Write detections down.

    Parameters
    ----------
    found : Found
        A model's, checked.
    shown : (N,) bool ndarray
        Which are objects of the answer.
    keep : (N,) bool ndarray
        Which are written.

    Returns
    -------
    bytes
        Little-endian float32, row by row.
    """
    columns = (found.boxes, found.scores[:, None], found.class_ids[:, None], shown[:, None])
    table = np.concatenate([np.asarray(column, "<f4") for column in columns], axis=1)
    return table[keep].tobytes()


def unpack(data: bytes) -> Detections:
    """Read what `pack` wrote; nothing, where there were none or the picture was bad."""
    table = np.frombuffer(data, "<f4").reshape(-1, _COLUMNS)
    return Detections(table[:, :4], table[:, 4], table[:, 5].astype(np.int64), table[:, 6] > 0)
