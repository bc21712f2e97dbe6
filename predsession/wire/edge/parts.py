"""What a runtime found in a picture, as values: boxes, classes, landmarks, masks, text, vectors, depth.

Invariant: coordinates are as on the wire, 0 to 1 of the picture's width and height; pixels are made by
methods that are told the picture's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from predsession.wire.edge.masks import decode_rle, encode_rle

Floats = npt.NDArray[np.float32]


class BoundingBox(NamedTuple):
    """A rectangle.

    Parameters
    ----------
    x, y : float
        Its left-top corner, 0 to 1 of the picture's width and height.
    width, height : float
        Its extent, 0 to 1 of the picture's.
    """

    x: float
    y: float
    width: float
    height: float

    def to_xyxy(self, width: float = 1.0, height: float = 1.0) -> tuple[float, float, float, float]:
        """Return the corners, in pixels of a picture of that size; without one 0 to 1.

        Parameters
        ----------
        width, height : float
            The picture's.

        Returns
        -------
        tuple of float
            x1, y1, x2, y2.
        """
        right, bottom = self.x + self.width, self.y + self.height
        return self.x * width, self.y * height, right * width, bottom * height

    def to_xywh(self, width: float = 1.0, height: float = 1.0) -> tuple[float, float, float, float]:
        """Return the left-top corner and the extent, in pixels of a picture of that size; without one 0 to 1.

        Parameters
        ----------
        width, height : float
            The picture's.

        Returns
        -------
        tuple of float
            x, y, width, height.
        """
        return self.x * width, self.y * height, self.width * width, self.height * height


@dataclass(frozen=True, slots=True)
class DetectedObject:
    """One object.

    Parameters
    ----------
    label : str
        The name of its class.
    score : float
        How sure the model is, 0 to 1.
    bbox : BoundingBox
        Where it is, 0 to 1 of the picture.
    class_id : int
        The number of its class, as the model counts.
    track_id : int or None
        For trackers of the caller's own: the wire has no place for it, so it comes as None.
    """

    label: str
    score: float
    bbox: BoundingBox
    class_id: int = 0
    track_id: int | None = None


class LandmarkPoint(NamedTuple):
    """A point.

    Parameters
    ----------
    x, y : float
        Where it is, 0 to 1 of the picture's width and height.
    confidence : float
        How sure the model is, 0 to 1.
    """

    x: float
    y: float
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class LandmarkSet:
    """The points of one face, hand or body.

    Parameters
    ----------
    type : str
        What they are of, in the runtime's words.
    points : tuple of LandmarkPoint
        In the model's order.
    """

    type: str
    points: tuple[LandmarkPoint, ...]


@dataclass(frozen=True, slots=True)
class Classification:
    """One class of the picture as a whole.

    Parameters
    ----------
    type : str
        Which question it answers, in the runtime's words.
    class_id : int
        The number of the class, as the model counts.
    label : str
        Its name.
    confidence : float
        How sure the model is, 0 to 1.
    """

    type: str
    class_id: int
    label: str
    confidence: float


@dataclass(frozen=True, slots=True)
class SegmentationMask:
    """The pixels of a class, over the whole picture, mostly at the model's own resolution.

    Parameters
    ----------
    class_id : int
        The number of its class, as the model counts.
    label : str
        The class's name; some runtimes leave it empty.
    confidence : float
        How sure the model is, 0 to 1; some runtimes leave it 0.
    bbox : BoundingBox
        Where it is, 0 to 1 of the picture; all 0 where the runtime gave none.
    mask_rle : bytes
        The pixels in the wire's run-length code.
    mask_width, mask_height : int
        Of the mask, in pixels.
    """

    class_id: int
    label: str
    confidence: float
    bbox: BoundingBox
    mask_rle: bytes
    mask_width: int
    mask_height: int

    @classmethod
    def from_mask(
        cls,
        mask: npt.NDArray[np.bool_],
        *,
        class_id: int = 0,
        label: str = "",
        confidence: float = 0.0,
        bbox: BoundingBox = BoundingBox(0.0, 0.0, 0.0, 0.0),  # noqa: B008 - a value, never changed
    ) -> SegmentationMask:
        """Encode a mask.

        Parameters
        ----------
        mask : (H, W) bool ndarray
            Over the whole picture.
        class_id : int
            Its class.
        label : str
            The class's name.
        confidence : float
            How sure it is.
        bbox : BoundingBox
            Its box.

        Returns
        -------
        SegmentationMask
            With the mask's own size.
        """
        height, width = mask.shape
        return cls(class_id, label, confidence, bbox, encode_rle(mask), width, height)

    def to_numpy_mask(self) -> npt.NDArray[np.bool_]:
        """Decode it.

        Returns
        -------
        (mask_height, mask_width) bool ndarray
            Where the class is.

        Raises
        ------
        ProtocolError
            If the code is damaged, or the mask larger than a picture can be.
        """
        return decode_rle(self.mask_rle, self.mask_width, self.mask_height)


@dataclass(frozen=True, slots=True)
class OcrLine:
    """One line of text.

    Parameters
    ----------
    text : str
        What it says.
    confidence : float
        How sure the model is, 0 to 1.
    bbox : BoundingBox
        Where it is, 0 to 1 of the picture.
    """

    text: str
    confidence: float
    bbox: BoundingBox


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """A vector, to be compared with those of other pictures and texts.

    Parameters
    ----------
    dim : int
        How many numbers it has.
    data : (dim,) float32 ndarray
        The numbers; read-only as it comes.
    """

    dim: int
    data: Floats


@dataclass(frozen=True, slots=True, eq=False)
class DepthMap:
    """How far away things are, over the whole picture, mostly at the model's own resolution.

    Parameters
    ----------
    width, height : int
        Of the map, in pixels.
    data : (height, width) float32 ndarray
        Distances in metres; read-only as it comes.
    """

    width: int
    height: int
    data: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Everything that was found in one picture, each kind in the runtime's order.

    Parameters
    ----------
    objects : tuple of DetectedObject
        With their boxes.
    classifications : tuple of Classification
        Classes of the picture as a whole.
    landmarks : tuple of LandmarkSet
        Points of faces, hands and bodies.
    masks : tuple of SegmentationMask
        The pixels of each class, or of each object.
    ocr_lines : tuple of OcrLine
        Lines of text.
    embeddings : tuple of Embedding
        Vectors.
    depth_maps : tuple of DepthMap
        Distances in metres.
    """

    objects: tuple[DetectedObject, ...] = ()
    classifications: tuple[Classification, ...] = ()
    landmarks: tuple[LandmarkSet, ...] = ()
    masks: tuple[SegmentationMask, ...] = ()
    ocr_lines: tuple[OcrLine, ...] = ()
    embeddings: tuple[Embedding, ...] = ()
    depth_maps: tuple[DepthMap, ...] = ()
