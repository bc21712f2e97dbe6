"""Serve a torchvision detector: ``predsession serve examples/serve_torchvision.py:Detector``.

Needs ``pip install torchvision``. The model is the one that the environment variable ``TORCHVISION_MODEL``
names, with its default weights, which are fetched when it is first loaded.
"""

from __future__ import annotations

import os


class Detector:
    """Any model of ``torchvision.models.detection`` that finds boxes."""

    max_batch_size = 4
    default_settings = {"conf": 0.5}

    def load(self) -> None:
        """Build the network; the class names come with its weights."""
        from torchvision.models import get_model, get_model_weights

        name = os.environ.get("TORCHVISION_MODEL", "fasterrcnn_mobilenet_v3_large_320_fpn")
        weights = get_model_weights(name).DEFAULT
        self.network = get_model(name, weights=weights).eval()
        # Some class ids of COCO were never used: their names are all "N/A", and names must differ.
        names = weights.meta["categories"]
        self.classes = [f"unused {place}" if each == "N/A" else each for place, each in enumerate(names)]

    def predict(self, images, settings):
        """Return a dict of arrays for each picture."""
        import torch

        tensors = [torch.from_numpy(image.copy()).permute(2, 0, 1) / 255 for image in images]
        with torch.inference_mode():
            found = self.network(tensors)
        # The server drops what is below conf.
        return [
            {
                "boxes": result["boxes"].cpu().numpy(),
                "scores": result["scores"].cpu().numpy(),
                "class_ids": result["labels"].cpu().numpy(),
            }
            for result in found
        ]
