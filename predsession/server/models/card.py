"""A model as the server describes it to callers; needs neither the model nor arrays."""

from __future__ import annotations

from dataclasses import dataclass

from predsession.errors import PredSessionError
from predsession.wire.jsontypes import JSONObject, as_list, as_object


class ModelLoadError(PredSessionError):
    """A model cannot be found, read or started; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What callers may know of a model.

    Parameters
    ----------
    classes : tuple of str
        Class names, in the order of the model's ids.
    shape : str
        The wire's word for the geometry of its results.
    settings : mapping
        Every setting with its default.
    max_batch_size : int or None
        How many pictures it takes at once.
    task : str
        The wire's word for what it does.
    """

    classes: tuple[str, ...]
    shape: str
    settings: JSONObject
    max_batch_size: int | None
    task: str

    def to_json(self) -> JSONObject:
        """Return the fields as a JSON object."""
        return {
            "classes": list(self.classes),
            "shape": self.shape,
            "settings": self.settings,
            "max_batch_size": self.max_batch_size,
            "task": self.task,
        }

    @classmethod
    def from_json(cls, data: JSONObject) -> ModelCard:
        """Return the card that `to_json` wrote."""
        size = data["max_batch_size"]
        return cls(
            classes=tuple(str(name) for name in as_list(data["classes"])),
            shape=str(data["shape"]),
            settings=as_object(data["settings"]),
            max_batch_size=size if isinstance(size, int) else None,
            task=str(data["task"]),
        )
