"""Any ONNX detector, by a description file that says how to feed and read it.

The file is TOML; ``docs/models.md`` explains each key. What is not said is as the networks of the YOLO family
that are exported with square inputs have it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
from PIL import Image

from predsession.server.models.base import Arrays, Pixels, Settings
from predsession.server.models.card import ModelLoadError
from predsession.server.models.heads import HEADS, Candidates, Head
from predsession.server.models.network import open_network
from predsession.server.models.nms import keep_best

Floats = npt.NDArray[np.float32]

_SECTIONS = {"file", "classes", "max_batch_size", "threads", "input", "output", "settings"}
_INPUT = {"size", "color", "layout", "letterbox", "pad", "scale", "mean", "std"}
_SCORED = {"yolov8": (0, 4), "yolov5": (1, 5)}
"""Kinds with a score for each class: the axis on which those are, and how many numbers are there beside."""
_OUTPUT = {"kind", "normalized", "boxes", "scores", "labels", "nms"}


@dataclass(frozen=True, slots=True)
class _Feed:
    """How pictures become the network's input."""

    width: int
    height: int
    bgr: bool
    channels_last: bool
    letterbox: bool
    pad: int
    scale: float
    mean: Floats
    std: Floats

    def fit(self, image: Pixels) -> tuple[Floats, npt.NDArray[np.float64]]:
        """Return the input for one picture, and by what its x and y were multiplied."""
        height, width = image.shape[:2]
        factors = np.array([self.width / width, self.height / height])
        if self.letterbox:
            factors[:] = factors.min()
        size = max(1, round(width * factors[0])), max(1, round(height * factors[1]))
        scaled = Image.fromarray(image).resize(size, Image.Resampling.BILINEAR)
        canvas = np.full((self.height, self.width, 3), self.pad, np.float32)
        canvas[: size[1], : size[0]] = np.asarray(scaled)
        canvas = canvas[:, :, ::-1] if self.bgr else canvas
        values = (canvas / self.scale - self.mean) / self.std
        values = values if self.channels_last else values.transpose(2, 0, 1)
        return np.ascontiguousarray(values, np.float32), factors


class OnnxDetector:
    """A detector from a description file; made by `read_description`.

    Parameters
    ----------
    path : Path
        The network.
    classes : tuple of str
        In the order of the network's ids.
    feed : object
        How pictures become input.
    head : Head
        How outputs become boxes.
    options : mapping
        ``kind``, ``threads``, ``max_batch_size``, ``nms`` and the default settings.
    """

    def __init__(
        self, path: Path, classes: tuple[str, ...], *, feed: _Feed, head: Head, options: Mapping[str, object]
    ) -> None:
        self.classes = classes
        self.max_batch_size = int(str(options["max_batch_size"]))
        self.default_settings = options["settings"]
        self._path = path
        self._feed = feed
        self._head = head
        self._kind = str(options["kind"])
        self._nms = bool(options["nms"])
        self._threads = int(str(options["threads"])) or os.cpu_count() or 1
        self.files = (path,)
        self._network: onnxruntime.InferenceSession | None = None

    def load(self) -> None:
        """Read the network from its file.

        Raises
        ------
        ModelLoadError
            If it has more than one input, or does not fit its description.
        """
        self._network = open_network(self._path, threads=self._threads)
        inputs = self._network.get_inputs()
        if len(inputs) != 1:
            raise ModelLoadError(f"{self._path.name} has {len(inputs)} inputs; one is supported")
        if isinstance(inputs[0].shape[0], int):
            self.max_batch_size = inputs[0].shape[0]
        self._try()

    def _try(self) -> None:
        """Look at one blank picture: what does not fit the description is found now, not by a caller."""
        assert self._network is not None, "load() comes first"
        blank = np.zeros((self._feed.height, self._feed.width, 3), np.uint8)
        try:
            outputs = self._run(self._network, [self._feed.fit(blank)[0]])
            self._check_width(next(iter(outputs.values()))[0].shape)
            self.predict([blank], {"conf": 0.25, "iou": 0.5, "max_objects": 300})
        except Exception as error:
            reason = " ".join(str(error).split())
            text = f"{self._path.name} does not fit its description: {type(error).__name__}: {reason}"
            raise ModelLoadError(text) from error

    def _check_width(self, shape: tuple[int, ...]) -> None:
        """Refuse an output with more or fewer scores than classes, where each has its own."""
        axis, others = _SCORED.get(self._kind, (0, 0))
        wanted = others + len(self.classes)
        if others and (len(shape) != 2 or shape[axis] != wanted):
            size = f"[{wanted}, N]" if axis == 0 else f"[N, {wanted}]"
            classes = f"{len(self.classes)} classes"
            raise ValueError(f"its output is {list(shape)}; of kind {self._kind} with {classes} it is {size}")

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
        assert self._network is not None, "load() comes first"
        fitted = [self._feed.fit(image) for image in images]
        outputs = self._run(self._network, [tensor for tensor, _ in fitted])
        return [
            self._read({name: values[row] for name, values in outputs.items()}, factors, image, settings)
            for row, (image, (_, factors)) in enumerate(zip(images, fitted, strict=True))
        ]

    def _run(self, network: onnxruntime.InferenceSession, tensors: list[Floats]) -> dict[str, Floats]:
        """Run the network; one of a fixed batch size gets its batch filled up."""
        count = len(tensors)
        entry = network.get_inputs()[0]
        fixed = entry.shape[0] if isinstance(entry.shape[0], int) else count
        batch = np.stack(tensors + [tensors[-1]] * (fixed - count))
        names = [output.name for output in network.get_outputs()]
        values = network.run(names, {entry.name: batch})
        return {name: np.asarray(array)[:count] for name, array in zip(names, values, strict=True)}

    def _read(
        self,
        outputs: dict[str, Floats],
        factors: npt.NDArray[np.float64],
        image: Pixels,
        settings: Settings,
    ) -> Arrays:
        """Turn the outputs for one picture into boxes in its own frame."""
        conf, iou, most = (float(str(settings[key])) for key in ("conf", "iou", "max_objects"))
        found: Candidates = self._head(outputs, conf)
        height, width = image.shape[:2]
        unit = np.array([self._feed.width, self._feed.height] * 2) if found.normalized else 1.0
        boxes = found.boxes * unit / np.tile(factors, 2)
        boxes32: Floats = boxes.clip(0, [width, height, width, height]).astype(np.float32)
        kept = keep_best(
            boxes32, found.scores, found.class_ids, iou=iou if self._nms else 1.0, most=int(most)
        )
        return {"boxes": boxes32[kept], "scores": found.scores[kept], "class_ids": found.class_ids[kept]}


def read_description(path: Path) -> OnnxDetector:
    """Read a description file.

    Parameters
    ----------
    path : Path
        TOML; paths in it are relative to its folder.

    Returns
    -------
    OnnxDetector
        Not loaded yet.

    Raises
    ------
    ModelLoadError
        If the file cannot be read, or says something that cannot be; the message names the key.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"cannot read {path}: {error}") from error
    try:
        _check_keys(data, _SECTIONS, "")
        inputs, outputs = dict(data.get("input", {})), dict(data.get("output", {}))
        _check_keys(inputs, _INPUT, "input.")
        _check_keys(outputs, _OUTPUT, "output.")
        network = path.parent / str(data["file"])
        if not network.is_file():
            raise ModelLoadError(f"{path}: there is no file {network}")
        return OnnxDetector(
            network,
            _classes(data["classes"], path.parent),
            feed=_feed(inputs),
            head=_head(outputs),
            options={
                "kind": outputs.get("kind", "yolov8"),
                "threads": data.get("threads", 0),
                "max_batch_size": data.get("max_batch_size", 8),
                "nms": outputs.get("nms", outputs.get("kind") != "end2end"),
                "settings": {"conf": 0.25, "iou": 0.5, "max_objects": 300, **data.get("settings", {})},
            },
        )
    except KeyError as error:
        raise ModelLoadError(f"{path}: the key {error} is missing or not known") from error
    except (TypeError, ValueError) as error:
        raise ModelLoadError(f"{path}: {error}") from error


def _check_keys(data: Mapping[str, object], known: set[str], where: str) -> None:
    """Refuse a key that means nothing, because it was meant to mean something."""
    for key in data:
        if key not in known:
            raise ValueError(f"{where}{key} is no key; known are {', '.join(sorted(known))}")


def _classes(value: object, folder: Path) -> tuple[str, ...]:
    """Return the class names: a list, or a file with one a line."""
    if isinstance(value, str):
        lines = (folder / value).read_text(encoding="utf-8").splitlines()
        return tuple(line.strip() for line in lines if line.strip())
    if not isinstance(value, list):
        raise TypeError("classes must be a list of names, or a file with one name a line")
    return tuple(str(name) for name in value)


def _feed(data: Mapping[str, object]) -> _Feed:
    """Read the section ``input``."""
    size = data.get("size", 640)
    width, height = (int(str(side)) for side in (size if isinstance(size, list) else (size, size)))
    return _Feed(
        width=width,
        height=height,
        bgr={"rgb": False, "bgr": True}[str(data.get("color", "rgb"))],
        channels_last={"nchw": False, "nhwc": True}[str(data.get("layout", "nchw"))],
        letterbox=bool(data.get("letterbox", True)),
        pad=int(str(data.get("pad", 114))),
        scale=float(str(data.get("scale", 255))),
        mean=np.array(data.get("mean", 0.0), np.float32),
        std=np.array(data.get("std", 1.0), np.float32),
    )


def _head(data: Mapping[str, object]) -> Head:
    """Read the section ``output``."""
    kind = str(data.get("kind", "yolov8"))
    names = {key: str(data[key]) for key in ("boxes", "scores", "labels") if key in data}
    return HEADS[kind](names, normalized=bool(data.get("normalized", False)))
