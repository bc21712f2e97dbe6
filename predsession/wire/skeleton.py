"""Skeletons: the keypoints of a ``graph`` class and the lines between them.

References
----------
PROTOCOL.md, section 2: ``geometry_config`` of a class of shape graph.
"""

from __future__ import annotations

from dataclasses import dataclass

from predsession.wire.colors import RGB, color_from, color_text
from predsession.wire.fields import MAX_COORDINATE, as_text
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

NODE_COLOR: RGB = (0, 0, 255)
EDGE_COLOR: RGB = (0, 255, 0)


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
                as_text(edge.get("src")), as_text(edge.get("dst")), color_from(edge.get("color"), EDGE_COLOR)
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
            node.id: {"label": node.label, "loc": [node.x, node.y], "color": color_text(node.color)}
            for node in self.nodes
        }
        edges: list[JSON] = [
            {"src": edge.src, "dst": edge.dst, "color": color_text(edge.color)} for edge in self.edges
        ]
        return {"nodes": nodes, "edges": edges}


def _node_from(key: str, node: JSONObject) -> SkeletonNode:
    """Read one node of a template; a place that cannot be read is 0, 0."""
    place = [
        value
        for value in as_list(node.get("loc"))
        if isinstance(value, (int, float)) and abs(value) <= MAX_COORDINATE
    ]
    x, y = (place[0], place[1]) if len(place) == 2 else (0, 0)
    return SkeletonNode(key, as_text(node.get("label")), x, y, color_from(node.get("color"), NODE_COLOR))
