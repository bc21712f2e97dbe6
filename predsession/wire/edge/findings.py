"""`PostResult` messages <-> `Parts`."""

from __future__ import annotations

import numpy as np

from predsession.errors import ProtocolError
from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.parts import (
    BoundingBox,
    Classification,
    DepthMap,
    DetectedObject,
    Embedding,
    LandmarkPoint,
    LandmarkSet,
    OcrLine,
    Parts,
    SegmentationMask,
)


def from_post_result(message: pb.PostResult) -> Parts:
    """Read what was found.

    Parameters
    ----------
    message : PostResult
        As it came.

    Returns
    -------
    Parts
        The same as values; masks are decoded when they are asked for.

    Raises
    ------
    ProtocolError
        If a vector or a depth map has another length than it says.
    """
    return Parts(
        objects=tuple(
            DetectedObject(each.label, each.confidence, _box(each.bbox), each.class_id)
            for each in message.detections
        ),
        classifications=tuple(
            Classification(each.type, each.class_id, each.label, each.confidence)
            for each in message.classifications
        ),
        landmarks=tuple(_landmarks(each) for each in message.landmarks),
        masks=tuple(_mask(each) for each in message.masks),
        ocr_lines=tuple(OcrLine(each.text, each.confidence, _box(each.bbox)) for each in message.ocr_lines),
        embeddings=tuple(from_embedding(each) for each in message.embeddings),
        depth_maps=tuple(_depth(each) for each in message.depth_maps),
    )


def _box(message: pb.BBox) -> BoundingBox:
    """Read a box."""
    return BoundingBox(message.x, message.y, message.w, message.h)


def _landmarks(message: pb.LandmarkSet) -> LandmarkSet:
    """Read the points of one thing."""
    points = tuple(LandmarkPoint(each.x, each.y, each.confidence) for each in message.points)
    return LandmarkSet(message.type, points)


def _mask(message: pb.SegmentationMask) -> SegmentationMask:
    """Read a mask, still encoded."""
    return SegmentationMask(
        message.class_id,
        message.label,
        message.confidence,
        _box(message.bbox),
        message.mask_rle,
        message.mask_width,
        message.mask_height,
    )


def from_embedding(message: pb.Embedding) -> Embedding:
    """Read a vector.

    Parameters
    ----------
    message : Embedding
        As it came; some runtimes leave `dim` 0.

    Returns
    -------
    Embedding
        Its numbers.

    Raises
    ------
    ProtocolError
        If it has another length than it says.
    """
    data = np.array(message.data, np.float32)
    if message.dim not in {0, len(data)}:
        raise ProtocolError(f"a vector says {message.dim} numbers, and has {len(data)}")
    data.flags.writeable = False
    return Embedding(len(data), data)


def _depth(message: pb.DepthMap) -> DepthMap:
    """Read a depth map; raise ProtocolError if it has another size than it says."""
    width, height, data = message.width, message.height, message.depth_data
    if width * height * 4 != len(data):
        raise ProtocolError(f"a depth map says {width} x {height} float32, and has {len(data)} bytes")
    return DepthMap(width, height, np.frombuffer(data, "<f4").reshape(height, width))


def to_post_result(parts: Parts) -> pb.PostResult:
    """Write what was found.

    Parameters
    ----------
    parts : Parts
        As values.

    Returns
    -------
    PostResult
        The same as a message.
    """
    return pb.PostResult(
        detections=[
            pb.Detection(
                bbox=_to_box(each.bbox), confidence=each.score, class_id=each.class_id, label=each.label
            )
            for each in parts.objects
        ],
        classifications=[
            pb.Classification(
                type=each.type, class_id=each.class_id, label=each.label, confidence=each.confidence
            )
            for each in parts.classifications
        ],
        landmarks=[
            pb.LandmarkSet(
                type=each.type, points=[pb.Point2D(x=x, y=y, confidence=sure) for x, y, sure in each.points]
            )
            for each in parts.landmarks
        ],
        masks=[_to_mask(each) for each in parts.masks],
        ocr_lines=[
            pb.OcrLine(bbox=_to_box(each.bbox), text=each.text, confidence=each.confidence)
            for each in parts.ocr_lines
        ],
        embeddings=[to_embedding(each) for each in parts.embeddings],
        depth_maps=[
            pb.DepthMap(
                width=each.width, height=each.height, depth_data=np.asarray(each.data, "<f4").tobytes()
            )
            for each in parts.depth_maps
        ],
    )


def _to_box(box: BoundingBox) -> pb.BBox:
    """Write a box."""
    return pb.BBox(x=box.x, y=box.y, w=box.width, h=box.height)


def _to_mask(mask: SegmentationMask) -> pb.SegmentationMask:
    """Write a mask."""
    return pb.SegmentationMask(
        class_id=mask.class_id,
        label=mask.label,
        confidence=mask.confidence,
        bbox=_to_box(mask.bbox),
        mask_rle=mask.mask_rle,
        mask_width=mask.mask_width,
        mask_height=mask.mask_height,
    )


def to_embedding(vector: Embedding) -> pb.Embedding:
    """Write a vector.

    Parameters
    ----------
    vector : Embedding
        Its numbers.

    Returns
    -------
    Embedding
        The same as a message.
    """
    return pb.Embedding(data=vector.data.tolist(), dim=vector.dim)
