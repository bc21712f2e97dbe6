"""What a model can say: its classes, tags and colours, in the wire's shape and as values.

Invariant: a class's id is its position in `ModelMeta.classes`; a title that is not there has the id -1.

References
----------
PROTOCOL.md, section 2: ``get_model_meta``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from predsession.errors import ProtocolError
from predsession.wire.colors import RGB, color_from, color_text, named_color, spread_color
from predsession.wire.fields import as_text
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.skeleton import Skeleton

TAG_COLOR: RGB = (71, 15, 138)


@dataclass(frozen=True, slots=True)
class ClassInfo:
    """One class of a model.

    Parameters
    ----------
    title : str
        Its name.
    shape : str
        The wire's word for what its figures are: rectangle, bitmap, polygon, graph, any, ...
    color : tuple of int
        R, G, B.
    skeleton : Skeleton or None
        The keypoints of a ``graph`` class.
    description : str
        Free text.
    hotkey : str
        A key in the platform's labelling tool.
    """

    title: str
    shape: str = "any"
    color: RGB = (138, 15, 113)
    skeleton: Skeleton | None = None
    description: str = ""
    hotkey: str = ""

    @classmethod
    def from_json(cls, item: JSONObject) -> ClassInfo:
        """Read one entry of the wire's ``classes``.

        Parameters
        ----------
        item : JSON object
            ``{"title", "description", "shape", "color", "geometry_config", "hotkey"}``.

        Returns
        -------
        ClassInfo
            What it says; all but the title may be missing.

        Raises
        ------
        ProtocolError
            If there is no title.
        """
        title = item.get("title")
        if not isinstance(title, str):
            raise ProtocolError(f"a class of the model has no title: {str(dict(item))[:200]}")
        return cls(
            title,
            as_text(item.get("shape")) or "any",
            color_from(item.get("color"), named_color(title)),
            Skeleton.from_json(item.get("geometry_config")),
            as_text(item.get("description")),
            as_text(item.get("hotkey")),
        )

    def to_json(self) -> dict[str, JSON]:
        """Return the wire's entry.

        Returns
        -------
        dict
            As `from_json` reads it, key by key as a stock server writes it.
        """
        return {
            "title": self.title,
            "description": self.description,
            "shape": self.shape,
            "color": color_text(self.color),
            "geometry_config": self.skeleton.to_json() if self.skeleton else {},
            "hotkey": self.hotkey,
        }


@dataclass(frozen=True, slots=True)
class TagInfo:
    """One tag that a model may put on a picture or an object.

    Parameters
    ----------
    name : str
        Its name.
    value_type : str
        The wire's word: any_number, any_string, none, oneof_string.
    color : tuple of int
        R, G, B.
    """

    name: str
    value_type: str = "none"
    color: RGB = TAG_COLOR

    def to_json(self) -> dict[str, JSON]:
        """Return the wire's entry.

        Returns
        -------
        dict
            Key by key as a stock server writes it.
        """
        return {
            "name": self.name,
            "value_type": self.value_type,
            "color": color_text(self.color),
            "hotkey": "",
            "applicable_type": "all",
            "classes": [],
            "target_type": "all",
        }


CONFIDENCE = TagInfo("confidence", "any_number")
_SETTINGS: Mapping[str, JSON] = {
    "multiView": {"enabled": False, "tagName": None, "tagId": None, "isSynced": False}
}


@dataclass(frozen=True, slots=True)
class ModelMeta:
    """The classes and tags of a model.

    Parameters
    ----------
    classes : tuple of ClassInfo
        In the model's order: a class's id is its position here.
    tags : tuple of TagInfo
        What may be said beside the class.
    """

    classes: tuple[ClassInfo, ...] = ()
    tags: tuple[TagInfo, ...] = ()
    _ids: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the titles: `class_id` is asked once for each object of each picture."""
        ids: dict[str, int] = {}
        for number, info in enumerate(self.classes):
            ids.setdefault(info.title, number)
        object.__setattr__(self, "_ids", ids)

    @property
    def names(self) -> tuple[str, ...]:
        """The classes' titles, in order."""
        return tuple(info.title for info in self.classes)

    def class_id(self, title: str) -> int:
        """Return a class's id.

        Parameters
        ----------
        title : str
            A class's name.

        Returns
        -------
        int
            Its position in `classes`; -1 where it is not there.
        """
        return self._ids.get(title, -1)

    def find(self, title: str) -> ClassInfo | None:
        """Return the class of that title.

        Parameters
        ----------
        title : str
            A class's name.

        Returns
        -------
        ClassInfo or None
            None where it is not there.
        """
        number = self._ids.get(title, -1)
        return self.classes[number] if number >= 0 else None

    def color(self, title: str) -> RGB:
        """Return a class's colour.

        Parameters
        ----------
        title : str
            A class's name, known or not.

        Returns
        -------
        tuple of int
            R, G, B; the same for the same title, whether or not the model knows it.
        """
        info = self.find(title)
        return info.color if info else named_color(title)

    @classmethod
    def from_names(cls, names: Sequence[str], shape: str = "rectangle") -> ModelMeta:
        """Make the meta of a model that is known by its class names.

        Parameters
        ----------
        names : sequence of str
            In the model's order.
        shape : str
            The wire's word for the figures of all of them.

        Returns
        -------
        ModelMeta
            With colours that are easy to tell apart, and the tag ``confidence``.
        """
        classes = (ClassInfo(name, shape, spread_color(number)) for number, name in enumerate(names))
        return cls(tuple(classes), (CONFIDENCE,))

    @classmethod
    def from_json(cls, value: JSON) -> ModelMeta:
        """Read the answer of ``get_model_meta``.

        Parameters
        ----------
        value : JSON
            ``{"classes": [...], "tags": [...], "projectSettings": {...}}``.

        Returns
        -------
        ModelMeta
            What it says.

        Raises
        ------
        ProtocolError
            If it is no object, ``classes`` is no list of objects, or a class has no title.
        """
        if not isinstance(value, Mapping):
            raise ProtocolError(f"the model's meta is no JSON object but {str(value)[:200]!r}")
        classes = value.get("classes", [])
        if not isinstance(classes, Sequence) or not all(isinstance(item, Mapping) for item in classes):
            raise ProtocolError(f"the model's meta: classes is no list of objects: {str(classes)[:200]}")
        tags = tuple(
            TagInfo(
                as_text(tag.get("name")),
                as_text(tag.get("value_type")) or "none",
                color_from(tag.get("color"), TAG_COLOR),
            )
            for tag in map(as_object, as_list(value.get("tags")))
        )
        return cls(tuple(ClassInfo.from_json(as_object(item)) for item in classes), tags)

    def to_json(self) -> dict[str, JSON]:
        """Return the answer of ``get_model_meta``.

        Returns
        -------
        dict
            Key by key as a stock server writes it.
        """
        return {
            "classes": [info.to_json() for info in self.classes],
            "tags": [tag.to_json() for tag in self.tags],
            "projectSettings": dict(_SETTINGS),
        }
