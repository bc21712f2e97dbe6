"""What a model can say: read from the wire, written to it, and coloured."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path

import pytest

from predsession.errors import ProtocolError
from predsession.wire.meta import ClassInfo, ModelMeta

RECORDED = json.loads((Path(__file__).parents[1] / "samples" / "geometry_zoo.json").read_text())[
    "get_model_meta"
]


def test_recorded_meta_is_written_as_it_was_read() -> None:
    """Key by key what a stock server said, skeleton and all."""
    assert ModelMeta.from_json(RECORDED).to_json() == RECORDED


def test_classes_have_ids_by_position() -> None:
    """A class's id is its place in the list; one that is not there has -1."""
    meta = ModelMeta.from_names(["cat", "dog"])
    assert meta.names == ("cat", "dog")
    assert [meta.class_id(name) for name in ("cat", "dog", "cow")] == [0, 1, -1]
    found = meta.find("dog")
    assert found is not None
    assert found.title == "dog"
    assert meta.find("cow") is None


def test_from_names_says_what_a_detector_says() -> None:
    """Rectangles unless told otherwise, and the tag confidence, in the wire's words."""
    written = ModelMeta.from_names(["cat"]).to_json()
    assert written["classes"][0]["shape"] == "rectangle"
    assert [(tag["name"], tag["value_type"]) for tag in written["tags"]] == [("confidence", "any_number")]
    assert set(written) == set(RECORDED)
    assert set(written["classes"][0]) == set(RECORDED["classes"][0])
    assert set(written["tags"][0]) == set(RECORDED["tags"][0])
    assert ModelMeta.from_names(["cat"], "bitmap").classes[0].shape == "bitmap"
    assert ModelMeta.from_json(written) == ModelMeta.from_names(["cat"])


def test_colours_are_distinct_and_readable() -> None:
    """Eighty classes have eighty colours, none near black or white, and no two neighbours alike."""
    colors = [info.color for info in ModelMeta.from_names(list(map(str, range(80)))).classes]
    assert len(set(colors)) == 80
    assert all(max(color) > 80 and min(color) < 190 for color in colors)
    apart = [
        sum(abs(a - b) for a, b in zip(one, two, strict=True)) for one, two in itertools.pairwise(colors)
    ]
    assert min(apart) > 150


def test_unknown_titles_have_a_colour_of_their_own() -> None:
    """The same title has the same colour in every model that does not know it, and after a restart."""
    one, other = ModelMeta(), ModelMeta.from_names(["cat"])
    assert one.color("zebra") == other.color("zebra")
    assert one.color("zebra") != one.color("cow")
    assert one.color("zebra") == (46, 237, 29)
    assert other.color("cat") == other.classes[0].color


def test_equality_hash_and_pickle() -> None:
    """Two metas are equal if they say the same, and stay so through a pickle."""
    meta = ModelMeta.from_json(RECORDED)
    again = pickle.loads(pickle.dumps(meta))
    assert again == meta
    assert hash(again) == hash(meta)
    assert again.class_id("graph") == 9
    assert meta != ModelMeta.from_names(["graph"])


def test_skeleton_joins_columns() -> None:
    """Edges are pairs of positions; one that names no node is left out."""
    graph = ModelMeta.from_json(RECORDED).find("graph")
    assert graph is not None
    assert graph.skeleton is not None
    assert graph.skeleton.ids == ("nose", "neck", "tail")
    assert graph.skeleton.pairs() == ((0, 1), (1, 2))
    config = {"nodes": {"a": {}}, "edges": [{"src": "a", "dst": "gone"}]}
    info = ClassInfo.from_json({"title": "x", "geometry_config": config})
    assert info.skeleton is not None
    assert info.skeleton.pairs() == ()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "no JSON object"),
        ("<html>", "no JSON object"),
        ([], "no JSON object"),
        ({"classes": 3}, "classes"),
        ({"classes": "cat"}, "classes"),
        ({"classes": ["cat"]}, "classes"),
        ({"classes": [{"name": "cat"}]}, "no title"),
        ({"classes": [{"title": 3}]}, "no title"),
    ],
)
def test_what_is_no_meta_is_a_protocol_error(value: object, problem: str) -> None:
    """The message says which part is not what it should be."""
    with pytest.raises(ProtocolError, match=problem):
        ModelMeta.from_json(value)


def test_odd_trifles_are_survived() -> None:
    """Colours, templates and tags that cannot be read cost nothing; an empty meta is a meta."""
    assert ModelMeta.from_json({}) == ModelMeta()
    item = {"title": "cat", "color": "red", "shape": None, "geometry_config": [1], "hotkey": 5}
    meta = ModelMeta.from_json({"classes": [item], "tags": [None, {"name": "t"}], "projectSettings": 0})
    assert meta.classes[0] == ClassInfo("cat", "any", meta.color("cat"))
    assert ModelMeta.from_json({"classes": [{"title": "cat", "color": "#GGGGGG"}]}).names == ("cat",)
