"""Serve an Ultralytics model: ``predsession serve examples/serve_ultralytics.py:Yolo``.

Needs ``pip install ultralytics``, which is under the AGPL. The weights are those that the environment
variable ``YOLO_WEIGHTS`` names. Boxes, and masks or keypoints where the weights have them.
"""

from __future__ import annotations

import os

import numpy as np

SHAPES = {"detect": "rectangle", "segment": "bitmap", "pose": "graph"}


class Yolo:
    """Any detection, segmentation or pose model of the library."""

    max_batch_size = 8
    default_settings = {"conf": 0.25, "iou": 0.7, "max_objects": 300}

    def load(self) -> None:
        """Read the weights; what is served follows from them."""
        from ultralytics import YOLO

        self.network = YOLO(os.environ.get("YOLO_WEIGHTS", "yolo11n.pt"))
        self.classes = self.network.names
        self.shape = SHAPES[self.network.task]
        if self.shape == "graph":
            count = self.network.model.model[-1].kpt_shape[0]
            self.keypoint_names = [f"point {number}" for number in range(count)]

    def predict(self, images, settings):
        """Return a dict of arrays for each picture."""
        # The library takes arrays as BGR; the server hands out RGB.
        pictures = [np.ascontiguousarray(image[:, :, ::-1]) for image in images]
        found = self.network.predict(
            pictures,
            conf=settings["conf"],
            iou=settings["iou"],
            max_det=int(settings["max_objects"]),
            retina_masks=True,
            verbose=False,
        )
        return [self.arrays(result) for result in found]

    def arrays(self, result):
        """Turn one of the library's results into arrays."""
        boxes = result.boxes.cpu().numpy()
        arrays = {"boxes": boxes.xyxy, "scores": boxes.conf, "class_ids": boxes.cls}
        if self.shape == "bitmap":
            height, width = result.orig_shape
            masks = result.masks
            arrays["masks"] = np.zeros((0, height, width)) if masks is None else masks.data.cpu().numpy() > 0
        if self.shape == "graph":
            arrays["keypoints"] = result.keypoints.data.cpu().numpy()
        return arrays
