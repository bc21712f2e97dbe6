"""MediaPipe's selfie segmentation: one mask of the people in the picture."""

from __future__ import annotations

import os
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import onnxruntime
from PIL import Image

from predsession.server.models.base import Arrays, Pixels, Settings
from predsession.server.models.bundled import checked_file
from predsession.server.models.network import open_network

_SIDE = 256


class SelfieSegmentation:
    """The segmentation; it knows no single persons, so a picture has one object or none.

    Parameters
    ----------
    threads : int
        How many threads one run may use; 0 means one for each core.
    """

    classes = ("person",)
    shape = "bitmap"
    task = "semantic segmentation"
    max_batch_size = 8
    default_settings: ClassVar[Settings] = {"conf": 0.5, "min_area": 0.002}

    def __init__(self, *, threads: int = 0) -> None:
        self._threads = threads or os.cpu_count() or 1
        self.files = (checked_file("selfie_segmentation_256.onnx"),)
        self._network: onnxruntime.InferenceSession | None = None

    def load(self) -> None:
        """Read the network from its file."""
        self._network = open_network(self.files[0], threads=self._threads)

    def predict(self, images: list[Pixels], settings: Settings) -> list[Arrays]:
        """Segment people.

        Parameters
        ----------
        images : list of (H, W, 3) uint8 ndarray
            RGB.
        settings : mapping
            ``conf``: the probability from which a pixel counts; ``min_area``: the part of the picture that
            must be covered for there to be an object.

        Returns
        -------
        list of dict
            ``boxes``, ``scores``, ``class_ids`` and ``masks`` for each picture.
        """
        conf, area = float(str(settings["conf"])), float(str(settings["min_area"]))
        return [_read(self._probabilities(image), conf, area) for image in images]

    def _probabilities(self, image: Pixels) -> npt.NDArray[np.float32]:
        """Return (H, W) probabilities in the picture's own size."""
        assert self._network is not None, "load() comes first"
        small = Image.fromarray(image).resize((_SIDE, _SIDE), Image.Resampling.BILINEAR, reducing_gap=2.0)
        tensor = np.asarray(small, np.float32)[None] / 255.0
        name = self._network.get_inputs()[0].name
        (values,) = self._network.run(None, {name: tensor})
        height, width = image.shape[:2]
        large = Image.fromarray(values[0, :, :, 0]).resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(large, np.float32)


def _read(probabilities: npt.NDArray[np.float32], conf: float, min_area: float) -> Arrays:
    """Turn probabilities into one object, or none."""
    mask = probabilities >= conf
    if mask.mean() < max(min_area, 1e-9):
        nothing = np.zeros((0, *mask.shape), np.bool_)
        return {
            "boxes": np.zeros((0, 4)),
            "scores": np.zeros(0),
            "class_ids": np.zeros(0, int),
            "masks": nothing,
        }
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    box = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
    score = float(probabilities[mask].mean())
    return {
        "boxes": np.array([box]),
        "scores": np.array([score]),
        "class_ids": np.array([0]),
        "masks": mask[None],
    }
