"""What the server asks of a model.

A model is any object with `predict` and `classes`; the rest has defaults. Boxes are ``xyxy``, pixels,
half-open, in the frame of the picture that was handed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from predsession.server.models.card import ModelCard
from predsession.wire.jsontypes import JSON

Pixels = npt.NDArray[np.uint8]
Settings = Mapping[str, JSON]
Arrays = Mapping[str, object]


class Model(Protocol):
    """The least a model is.

    Optional attributes: ``load()``, called once before the first batch; ``default_settings``, a dict of
    JSON values; ``max_batch_size``, an int; ``task``, a str such as "object detection"; ``shape``, the wire's
    word for the geometry of its classes ("rectangle" or "bitmap").
    """

    @property
    def classes(self) -> Sequence[str]:
        """Names, in the order of the ids."""

    def predict(self, images: list[Pixels], settings: Settings) -> Sequence[Arrays]:
        """Return one dict of arrays for each picture: ``boxes``, ``scores``, ``class_ids``, ``masks``."""


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
    """
    shape = str(getattr(model, "shape", "rectangle"))
    task = "object detection" if shape == "rectangle" else "instance segmentation"
    return ModelCard(
        classes=tuple(str(name) for name in model.classes),
        shape=shape,
        settings=dict(getattr(model, "default_settings", {})),
        max_batch_size=getattr(model, "max_batch_size", None),
        task=str(getattr(model, "task", task)),
    )
