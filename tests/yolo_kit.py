"""YOLO folders, as tests write and look at them. Importable as ``import yolo_kit`` (``pythonpath``)."""

from __future__ import annotations

from pathlib import Path

import makers

from predsession import Prediction, read_predictions, save_predictions
from predsession.wire.meta import ClassInfo, ModelMeta
from predsession.wire.skeleton import Skeleton, SkeletonNode


def texts(folder: Path) -> dict[str, str]:
    """Return all labels of a folder."""
    labels = folder / "labels"
    return {path.relative_to(labels).as_posix(): path.read_text() for path in sorted(labels.rglob("*.txt"))}


def back(predictions: list[Prediction], folder: Path, task: str = "yolo", **more: object) -> list[Prediction]:
    """Write a folder, and read it."""
    save_predictions(predictions, folder, task, **more)
    return list(read_predictions(folder))


def picture(path: Path, size: tuple[int, int] = (64, 48)) -> str:
    """Write a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    makers.write(path, makers.png(size))
    return str(path)


def body(*names: str) -> ModelMeta:
    """Return a model of one class with these keypoints."""
    skeleton = Skeleton(tuple(SkeletonNode(f"k{number}", name) for number, name in enumerate(names)))
    return ModelMeta((ClassInfo("person", "graph", skeleton=skeleton),))


def theirs(root: Path, label: str, *, data: str = "names: [a, b]\n", name: str = "train/1") -> Path:
    """Write a folder as others do: pictures and labels, no facts."""
    picture(root / "images" / f"{name}.PNG", (100, 50))
    (root / "labels" / name).parent.mkdir(parents=True, exist_ok=True)
    (root / "labels" / f"{name}.txt").write_text(label)
    (root / "data.yaml").write_text(data)
    return root
