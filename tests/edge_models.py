"""Models for the gRPC door: one answers masks, one keypoints, and one strange things."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from predsession.server.models.base import Arrays, Pixels, Settings


class Masks:
    """The brighter half, and the brightest corner: two masks over the whole picture."""

    classes = ("half", "corner")
    shape = "bitmap"

    def predict(self, images: list[Pixels], settings: Settings) -> list[Arrays]:
        """Answer both masks, the second empty where the picture is dark."""
        return [self._found(image) for image in images]

    def _found(self, image: Pixels) -> Arrays:
        height, width = image.shape[:2]
        masks = np.zeros((2, height, width), bool)
        masks[0, :, width // 2 :] = True
        masks[1, : height // 4, : width // 4] = True
        boxes = np.array([[width // 2, 0, width, height], [0, 0, width // 4, height // 4]], float)
        return {"boxes": boxes, "scores": [0.75, 0.5], "class_ids": [0, 1], "masks": masks}


class Points:
    """The middle, and the picture's corner, which is not visible."""

    classes = ("thing",)
    shape = "graph"
    keypoint_names = ("middle", "corner")
    keypoint_edges = ((0, 1),)
    tags = ("outdoors",)

    def predict(self, images: list[Pixels], settings: Settings) -> list[Arrays]:
        """Answer one object a picture, with two points, and a tag."""
        found: list[Arrays] = []
        for image in images:
            height, width = image.shape[:2]
            points = np.array([[[width / 2, height / 4, 1], [0, 0, 0]]])
            box = [[0, 0, width / 2, height]]
            found.append({
                "boxes": box, "scores": [1.0], "class_ids": [0], "keypoints": points,
                "tags": {"outdoors": "yes"},
            })  # fmt: skip
        return found


class Wrong:
    """Answers a box that is none."""

    classes = ("thing",)

    def predict(self, images: list[Pixels], settings: Settings) -> list[Arrays]:
        """Answer boxes that end before they begin."""
        return [{"boxes": [[9, 9, 1, 1]], "scores": [1.0], "class_ids": [0]} for _ in images]


class Odd:
    """Says things that UTF-8 cannot hold: in its class's name, and when it raises, which it does if told."""

    classes = ("half \ud83d of one",)
    default_settings: ClassVar[Settings] = {"raises": False}

    def predict(self, images: list[Pixels], settings: Settings) -> list[Arrays]:
        """Answer one object, or raise a text of a hundred thousand characters."""
        if settings["raises"]:
            raise ValueError("no \ud83d \0" + "x" * 100_000)
        return [{"boxes": [[0, 0, 1, 1]], "scores": [1.0], "class_ids": [0]} for _ in images]
