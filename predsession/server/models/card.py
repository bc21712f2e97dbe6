"""A model as the server describes it to callers; needs neither the model nor arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

from predsession.errors import PredSessionError
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.meta import ClassInfo, ModelMeta, TagInfo
from predsession.wire.skeleton import Skeleton, SkeletonEdge, SkeletonNode

STOCK_BATCH = 16
"""The batch size of a stock server."""


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
    tags : tuple of str
        Tags it may put on a picture.
    keypoints : tuple of str
        Names of the keypoints, where the shape is "graph".
    edges : tuple of (int, int)
        Which of them are joined by a line.
    digest : str
        Of the files that the model is made of.
    files : tuple of str
        The paths of its weights, where it says.
    """

    classes: tuple[str, ...]
    shape: str
    settings: JSONObject
    max_batch_size: int | None
    task: str
    tags: tuple[str, ...] = ()
    keypoints: tuple[str, ...] = ()
    edges: tuple[tuple[int, int], ...] = field(default=())
    digest: str = ""
    files: tuple[str, ...] = ()

    @property
    def batch_limit(self) -> int:
        """The largest batch it is given; without a word from the model as on a stock server."""
        return self.max_batch_size or STOCK_BATCH

    @property
    def meta(self) -> ModelMeta:
        """The answer of ``get_model_meta``, as a value."""
        plain = ModelMeta.from_names(self.classes, self.shape)
        classes = plain.classes
        if self.shape == "graph":
            nodes = tuple(
                SkeletonNode(name, name, 20.0 * place, 20.0) for place, name in enumerate(self.keypoints)
            )
            edges = tuple(
                SkeletonEdge(self.keypoints[one], self.keypoints[other]) for one, other in self.edges
            )
            skeleton = Skeleton(nodes, edges)
            classes = tuple(ClassInfo(info.title, info.shape, info.color, skeleton) for info in classes)
        return ModelMeta(classes, (*plain.tags, *(TagInfo(name, "any_string") for name in self.tags)))

    def to_json(self) -> JSONObject:
        """Return the fields as a JSON object."""
        return {
            "classes": list(self.classes),
            "shape": self.shape,
            "settings": self.settings,
            "max_batch_size": self.max_batch_size,
            "task": self.task,
            "tags": list(self.tags),
            "keypoints": list(self.keypoints),
            "edges": [list(edge) for edge in self.edges],
            "digest": self.digest,
            "files": list(self.files),
        }

    @classmethod
    def from_json(cls, data: JSONObject) -> ModelCard:
        """Return the card that `to_json` wrote."""
        size = data["max_batch_size"]
        return cls(
            classes=_texts(data["classes"]),
            shape=str(data["shape"]),
            settings=as_object(data["settings"]),
            max_batch_size=size if isinstance(size, int) else None,
            task=str(data["task"]),
            tags=_texts(data["tags"]),
            keypoints=_texts(data["keypoints"]),
            edges=tuple(_edge(pair) for pair in as_list(data["edges"])),
            digest=str(data["digest"]),
            files=_texts(data["files"]),
        )


def _texts(value: JSON) -> tuple[str, ...]:
    """Return a list of texts."""
    return tuple(str(text) for text in as_list(value))


def _edge(value: JSON) -> tuple[int, int]:
    """Return a pair of positions."""
    one, other = (int(str(place)) for place in as_list(value))
    return one, other
