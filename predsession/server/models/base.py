"""What the server asks of a model.

A model is any object with `predict` and `classes`; the rest has defaults. Boxes are ``xyxy``, pixels,
half-open, in the frame of the picture that was handed in. ``docs/models.md`` has examples.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from predsession.server.models.card import ModelCard, ModelLoadError
from predsession.wire.jsontypes import JSON

Pixels = npt.NDArray[np.uint8]
Settings = Mapping[str, JSON]
Arrays = Mapping[str, object]

_TASKS = {
    "rectangle": "object detection",
    "bitmap": "instance segmentation",
    "graph": "pose estimation",
}


class Model(Protocol):
    """The least a model is.

    Optional: ``load()``, called once before the first batch; and as attributes ``default_settings``, a dict
    of JSON values; ``max_batch_size``, an int; ``task``, a text such as "object detection"; ``shape``, the
    wire's word for the geometry of its results ("rectangle", "bitmap" or "graph"); ``tags``, the names of the
    tags it may put on a picture; ``keypoint_names`` and ``keypoint_edges`` for "graph"; ``files``, the paths
    of its weights: with the class's own file they tell this model from another.
    """

    @property
    def classes(self) -> Sequence[str]:
        """Names, in the order of the ids."""

    def predict(self, images: list[Pixels], settings: Settings) -> Sequence[object]:
        """Return one result for each picture: a dict of arrays, or a `predsession.Prediction`."""


def describe(model: Model) -> ModelCard:
    """Read a model's card off its attributes.

    Parameters
    ----------
    model : Model
        A loaded model.

    Returns
    -------
    ModelCard
        With the defaults for what it does not say.

    Raises
    ------
    ModelLoadError
        If an attribute is not what it must be; the message names it.
    """
    if not callable(getattr(model, "predict", None)):
        raise ModelLoadError(f"{type(model).__name__} has no method predict(images, settings)")
    shape = str(getattr(model, "shape", "rectangle"))
    if shape not in _TASKS:
        raise ModelLoadError(f"shape is {shape!r}; it must be one of {', '.join(_TASKS)}")
    return ModelCard(
        classes=_names(model, "classes", needed=True),
        shape=shape,
        settings=_settings(model),
        max_batch_size=_batch_size(model),
        task=str(getattr(model, "task", _TASKS[shape])),
        tags=_names(model, "tags"),
        keypoints=_names(model, "keypoint_names", needed=shape == "graph"),
        edges=tuple((int(one), int(other)) for one, other in getattr(model, "keypoint_edges", ())),
    )


def _names(model: Model, name: str, *, needed: bool = False) -> tuple[str, ...]:
    """Return an attribute that lists names."""
    value: object = getattr(model, name, () if not needed else None)
    # Ultralytics and others keep names as a dict from id to name.
    if isinstance(value, Mapping) and sorted(value) == list(range(len(value))):
        value = [value[number] for number in range(len(value))]
    names = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (None,)
    if not all(isinstance(each, str) for each in names) or (needed and not names):
        raise ModelLoadError(f"{type(model).__name__}.{name} must be a list of names")
    if len(set(names)) < len(names):
        raise ModelLoadError(f"{type(model).__name__}.{name} has the same name twice")
    return tuple(str(each) for each in names)


def _settings(model: Model) -> Mapping[str, JSON]:
    """Return the default settings, as JSON has them."""
    value = getattr(model, "default_settings", {})
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelLoadError(f"default_settings must be JSON values: {error}") from error
    settings = json.loads(text)
    if not isinstance(settings, dict):
        raise ModelLoadError("default_settings must be a dict")
    return settings


def _batch_size(model: Model) -> int | None:
    """Return the largest batch."""
    value = getattr(model, "max_batch_size", None)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ModelLoadError(f"max_batch_size is {value!r}; it must be a whole number of at least 1")
    return value
