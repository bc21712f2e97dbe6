"""NanoDet-g: a small detector for the 80 classes of COCO.

References
----------
.. [1] Input and output of the network: RangiLyu/nanodet, "generalized focal loss" head: a side's distance is
   the mean of a distribution over 0..10, in units of the stride.
"""

from __future__ import annotations

import os
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import onnxruntime
from PIL import Image

from predsession.server.models.base import Arrays, Pixels, Settings
from predsession.server.models.bundled import checked_file
from predsession.server.models.coco import COCO_CLASSES
from predsession.server.models.network import open_network
from predsession.server.models.nms import keep_best

Floats = npt.NDArray[np.float32]

_LONG_SIDE = 416
_GRID = 32
_STRIDES = (8, 16, 32)
_BINS = 11
_MEAN_BGR = np.array([103.53, 116.28, 123.675], np.float32)
_SCALE_BGR = np.array([57.375, 57.12, 58.395], np.float32)


class NanoDet:
    """The detector.

    Parameters
    ----------
    threads : int
        How many threads one run may use; 0 means one for each core.
    """

    classes = COCO_CLASSES
    task = "object detection"
    max_batch_size = 8
    default_settings: ClassVar[Settings] = {"conf": 0.35, "iou": 0.5, "max_objects": 100}

    def __init__(self, *, threads: int = 0) -> None:
        self._threads = threads or os.cpu_count() or 1
        self.files = (checked_file("nanodet_g_coco.onnx"),)
        self._network: onnxruntime.InferenceSession | None = None

    def load(self) -> None:
        """Read the network from its file."""
        self._network = open_network(self.files[0], threads=self._threads)

    def predict(self, images: list[Pixels], settings: Settings) -> list[Arrays]:
        """Detect objects.

        Parameters
        ----------
        images : list of (H, W, 3) uint8 ndarray
            RGB.
        settings : mapping
            ``conf``, ``iou`` and ``max_objects``.

        Returns
        -------
        list of dict
            ``boxes``, ``scores`` and ``class_ids`` for each picture.
        """
        fitted = [_fit(image) for image in images]
        results: list[Arrays] = [{}] * len(images)
        for shape in {tensor.shape for tensor, _ in fitted}:
            # One run takes pictures of one shape only; photos of a folder mostly have one.
            places = [at for at, (tensor, _) in enumerate(fitted) if tensor.shape == shape]
            outputs = self._run(np.stack([fitted[at][0] for at in places]))
            for row, at in enumerate(places):
                single = {name: values[row] for name, values in outputs.items()}
                results[at] = _read(single, images[at], (shape, fitted[at][1]), settings)
        return results

    def _run(self, batch: Floats) -> dict[str, Floats]:
        """Run the network."""
        assert self._network is not None, "load() comes first"
        names = [output.name for output in self._network.get_outputs()]
        return dict(zip(names, self._network.run(names, {"images": batch}), strict=True))


def _fit(image: Pixels) -> tuple[Floats, float]:
    """Scale to the long side, pad to the grid below and to the right; return the tensor and the scale."""
    height, width = image.shape[:2]
    scale = _LONG_SIDE / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = Image.fromarray(image).resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)
    scaled = (np.asarray(small, np.float32)[:, :, ::-1] - _MEAN_BGR) / _SCALE_BGR
    padded = np.zeros((-(-size[1] // _GRID) * _GRID, -(-size[0] // _GRID) * _GRID, 3), np.float32)
    padded[: size[1], : size[0]] = scaled
    return np.ascontiguousarray(padded.transpose(2, 0, 1)), scale


def _read(
    outputs: dict[str, Floats],
    image: Pixels,
    geometry: tuple[tuple[int, ...], float],
    settings: Settings,
) -> Arrays:
    """Turn the outputs for one picture into boxes in its own frame."""
    conf, iou, most = (float(str(settings[key])) for key in ("conf", "iou", "max_objects"))
    (_, _, columns), scale = geometry
    parts = [_candidates(outputs, stride, columns // stride, conf) for stride in _STRIDES]
    boxes, scores, class_ids = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    height, width = image.shape[:2]
    boxes = (boxes / scale).clip(0, np.array([width, height, width, height], np.float32))
    kept = keep_best(boxes, scores, class_ids, iou=iou, most=int(most))
    return {"boxes": boxes[kept], "scores": scores[kept], "class_ids": class_ids[kept]}


def _candidates(
    outputs: dict[str, Floats], stride: int, columns: int, conf: float
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Return boxes, scores and classes of one stride above the threshold."""
    probabilities = outputs[f"cls_{stride}"]
    cells, class_ids = np.nonzero(probabilities >= max(conf, 1e-3))
    bins = outputs[f"reg_{stride}"][cells].reshape(-1, 4, _BINS)
    weights = np.exp(bins - bins.max(axis=2, keepdims=True))
    sides = (weights @ np.arange(_BINS, dtype=np.float32)) / weights.sum(axis=2) * stride
    x, y = (cells % columns + 0.5) * stride, (cells // columns + 0.5) * stride
    boxes = np.stack([x - sides[:, 0], y - sides[:, 1], x + sides[:, 2], y + sides[:, 3]], axis=1)
    return boxes.astype(np.float32), probabilities[cells, class_ids], class_ids
