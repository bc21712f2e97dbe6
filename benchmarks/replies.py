"""Answers with masks, as a server gives them, for measuring how they are read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from predsession.wire.bitmaps import encode_mask
from predsession.wire.jsontypes import JSON

WIDTH, HEIGHT = 1280, 720
SIZES: dict[str, tuple[tuple[int, int], ...]] = {
    "mixed": ((1280, 720), (640, 400), (200, 150), (90, 40)),
    "small": ((90, 40), (40, 90), (120, 60), (60, 120)),
}
"""Width and height of the four masks of an image."""


def mask(width: int, height: int, seed: int) -> npt.NDArray[np.bool_]:
    """Return an ellipse with a rough edge: what a segmentation gives."""
    random = np.random.default_rng(seed)
    down, across = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    # The edge wavers with the angle, as an outline does, not from pixel to pixel.
    waves = random.uniform(0.0, 0.12, 12)
    angle = np.arctan2(down, across)
    edge = 0.85 + sum(wave * np.sin((3 + 2 * number) * angle) for number, wave in enumerate(waves)) / 3
    inside: npt.NDArray[np.bool_] = across**2 + down**2 < edge**2
    inside[0, :] = inside[:, 0] = inside[-1, :] = inside[:, -1] = True  # the box is the whole of it
    return inside


def item(size: str, seed: int = 0) -> dict[str, JSON]:
    """Return the result item of an image with four masks.

    Parameters
    ----------
    size : str
        A key of `SIZES`.
    seed : int
        Other masks for another seed.

    Returns
    -------
    JSON object
        As in ``pending_results``.
    """
    objects: list[JSON] = [_figure(*sides, seed * 4 + number) for number, sides in enumerate(SIZES[size])]
    annotation: dict[str, JSON] = {
        "description": "",
        "size": {"height": HEIGHT, "width": WIDTH},
        "tags": [],
        "objects": objects,
        "customBigData": {},
    }
    nothing: dict[str, JSON] = dict.fromkeys(
        ("source", "name", "path", "url", "project_id", "dataset_id", "image_id", "video_id", "frame_index")
    )
    return {"annotation": annotation, **nothing, "slides_data": {}, "data": {}}


def write_reply(path: Path, megabytes: int) -> None:
    """Write the answer to a pop, with as many results as make it so long."""
    texts = [json.dumps(item("mixed" if seed % 4 == 0 else "small", seed)) for seed in range(64)]
    count = megabytes * 1_000_000 // (sum(map(len, texts)) // len(texts))
    head: dict[str, JSON] = {
        "uuid": "0" * 32,
        "stage": "Running inference...",
        "progress": {"status": "Running inference...", "current": count, "total": count, "is_size": False},
        "exception": None,
        "is_inferring": True,
        "stopped": False,
        "paused": False,
        "finished": False,
        "has_result": False,
    }
    results = ", ".join(texts[number % len(texts)] for number in range(count))
    path.write_text(f'{json.dumps(head)[:-1]}, "pending_results": [{results}]}}')


def _figure(width: int, height: int, seed: int) -> dict[str, JSON]:
    """Return one object, somewhere in the picture."""
    left, top = seed * 37 % (WIDTH - width + 1), seed * 23 % (HEIGHT - height + 1)
    return {
        "classTitle": "wide" if width > height else "tall",
        "description": "",
        "tags": [{"name": "confidence", "value": 0.5 + seed % 50 / 100}],
        "bitmap": {"origin": [left, top], "data": encode_mask(mask(width, height, seed))},
        "shape": "bitmap",
        "geometryType": "bitmap",
        "nnCreated": True,
        "nnUpdated": True,
    }
