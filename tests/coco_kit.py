"""COCO documents, as tests write and look at them. Importable as ``import coco_kit`` (``pythonpath``)."""

from __future__ import annotations

import json
from pathlib import Path

from predsession import save_predictions


def saved(predictions: object, path: Path, **more: object) -> dict[str, object]:
    """Write a document, and return it as JSON."""
    save_predictions(predictions, path, "coco", **more)
    return json.loads(path.read_text())
