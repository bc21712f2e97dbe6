"""What a model can say: its classes, tags and colours, in the wire's shape and as values.

Invariant: a class's id is its position in `ModelMeta.classes`; a title that is not there has the id -1.

References
----------
PROTOCOL.md, section 2: ``get_model_meta``.
"""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from predsession.errors import ProtocolError
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

RGB = tuple[int, int, int]

NODE_COLOR: RGB = (0, 0, 255)
EDGE_COLOR: RGB = (0, 255, 0)
TAG_COLOR: RGB = (71, 15, 138)


def spread_color(number: int) -> RGB:
    """Return the colour of that number: neighbours in number are far apart in hue.

    Parameters
    ----------
    number : int
        0 or greater.

    Returns
    -------
    tuple of int
        R, G, B, each 0 to 255; never near white or black, so that it shows on most photographs.
    """
    # A turn of 0.618 of the circle leaves the largest gap to every hue before it; the lightness changes
    # with it, because the eye tells few hues apart.
    hue = (0.02 + number * 0.618034) % 1.0
    light = (0.52, 0.40, 0.62)[number % 3]
    red, green, blue = colorsys.hls_to_rgb(hue, light, 0.85)
    return round(red * 255), round(green * 255), round(blue * 255)


def _color_from(value: JSON, otherwise: RGB) -> RGB:
    """Read ``#RRGGBB``; a colour that cannot be read is not worth an error."""
    if isinstance(value, str) and len(value) == 7 and value[0] == "#":
        try:
            number = int(value[1:], 16)
        except ValueError:
            return otherwise
        return number >> 16, number >> 8 & 255, number & 255
    return otherwise


def _hex(color: RGB) -> str:
    """Write ``#RRGGBB``."""
    return "#{:02X}{:02X}{:02X}".format(*color)


def _text(value: JSON) -> str:
    """Return a string as it is, anything else as an empty one."""
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class SkeletonNode:
    """One keypoint of a skeleton.

    Parameters
    ----------
    id : str
        The key under which figures name it.
    label : str
        What people read.
    x, y : float
        Where it sits in the class's template, in pixels of that template.
    color : tuple of int
        R, G, B.
    """

    id: str
    label: str = ""
    x: float = 0.0
    y: float = 0.0
    color: RGB = NODE_COLOR


@dataclass(frozen=True, slots=True)
class SkeletonEdge:
    """A line between two keypoints, by their ids.

    Parameters
    ----------
    src, dst : str
        Ids of the nodes it joins.
    color : tuple of int
        R, G, B.
    """

    src: str
    dst: str
    color: RGB = EDGE_COLOR


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The keypoints of a ``graph`` class, in order, and the lines between them.

    Parameters
    ----------
    nodes : tuple of SkeletonNode
        Their order is the order of the columns of `Prediction.keypoints`.
    edges : tuple of SkeletonEdge
        The lines to draw.
    """

    nodes: tuple[SkeletonNode, ...] = ()
    edges: tuple[SkeletonEdge, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The nodes' ids, in order."""
        return tuple(node.id for node in self.nodes)

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Return the edges as pairs of positions in `nodes`; an edge to nowhere is left out.

        Returns
        -------
        tuple of (int, int)
            Positions of the two ends.
        """
        place = {node.id: number for number, node in enumerate(self.nodes)}
        return tuple(
            (place[edge.src], place[edge.dst])
            for edge in self.edges
            if edge.src in place and edge.dst in place
        )

    @classmethod
    def from_json(cls, config: JSON) -> Skeleton | None:
        """Read a class's ``geometry_config``.

        Parameters
        ----------
        config : JSON
            ``{"nodes": {id: {"label", "loc", "color"}}, "edges": [{"src", "dst", "color"}]}``.

        Returns
        -------
        Skeleton or None
            None where it has no nodes.
        """
        parts = as_object(config)
        nodes = tuple(_node_from(key, as_object(node)) for key, node in as_object(parts.get("nodes")).items())
        edges = tuple(
            SkeletonEdge(
                _text(edge.get("src")), _text(edge.get("dst")), _color_from(edge.get("color"), EDGE_COLOR)
            )
            for edge in map(as_object, as_list(parts.get("edges")))
        )
        return cls(nodes, edges) if nodes else None

    def to_json(self) -> dict[str, JSON]:
        """Return the wire's ``geometry_config``.

        Returns
        -------
        dict
            As `from_json` reads it.
        """
        nodes: dict[str, JSON] = {
            node.id: {"label": node.label, "loc": [node.x, node.y], "color": _hex(node.color)}
            for node in self.nodes
        }
        edges: list[JSON] = [
            {"src": edge.src, "dst": edge.dst, "color": _hex(edge.color)} for edge in self.edges
        ]
        return {"nodes": nodes, "edges": edges}


def _node_from(key: str, node: JSONObject) -> SkeletonNode:
    """Read one node of a template; a place that cannot be read is 0, 0."""
    place = [value for value in as_list(node.get("loc")) if isinstance(value, (int, float))]
    x, y = (place[0], place[1]) if len(place) == 2 else (0, 0)
    return SkeletonNode(key, _text(node.get("label")), x, y, _color_from(node.get("color"), NODE_COLOR))


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
            _text(item.get("shape")) or "any",
            _color_from(item.get("color"), named_color(title)),
            Skeleton.from_json(item.get("geometry_config")),
            _text(item.get("description")),
            _text(item.get("hotkey")),
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
            "color": _hex(self.color),
            "geometry_config": self.skeleton.to_json() if self.skeleton else {},
            "hotkey": self.hotkey,
        }


def named_color(title: str) -> RGB:
    """Return the colour of a title that no model describes: always the same for the same title.

    Parameters
    ----------
    title : str
        A class's name.

    Returns
    -------
    tuple of int
        R, G, B.
    """
    return spread_color(zlib.crc32(title.encode("utf-8", "replace")) % 4096)


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
            "color": _hex(self.color),
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
                _text(tag.get("name")),
                _text(tag.get("value_type")) or "none",
                _color_from(tag.get("color"), TAG_COLOR),
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
