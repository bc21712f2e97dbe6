"""Class numbers and names: the model's own, from format to format, whatever order the classes are met in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import makers
import pytest

from predsession import ModelMeta, Prediction, read_predictions, save_predictions
from predsession.export.classes import ClassTable
from predsession.export.formats import FORMATS
from predsession.export.growingmeta import KnownMeta

MODEL = ModelMeta.from_names(["person", "car", "bus", "dog"])
READABLE = [name for name, each in FORMATS.items() if each.read is not None]
HOLDS_ALL = ("jsonl", "parquet", "coco", "supervisely", "yolo", "yolo-segment", "yolo-pose")
"""Formats that have the classes that were not found as well."""


def found(folder: Path) -> list[Prediction]:
    """Return a picture of each class but one, the last class first."""
    return [
        Prediction.from_arrays(
            size=(9, 9),
            boxes=[[1, 2, 3, 4]] * len(titles),
            classes=titles,
            meta=MODEL,
            path=str(folder / f"{number}.jpg"),
            index=number,
        )
        for number, titles in enumerate((["dog"], ["car"], ["person", "dog"]))
    ]


def write(some: list[Prediction], folder: Path, name: str) -> Path:
    """Write a format into a folder."""
    suffixes = FORMATS[name].suffixes
    where = folder / f"out{suffixes[0] if suffixes else ''}"
    assert not save_predictions(some, where, name).left_out.get("ids of classes")
    return where


def numbers(some: list[Prediction]) -> dict[str, set[tuple[int, ...]]]:
    """Return the class ids by picture."""
    return {each.name: set(zip(each.classes, each.class_ids.tolist(), strict=True)) for each in some}


@pytest.mark.parametrize("second", READABLE)
@pytest.mark.parametrize("first", READABLE)
def test_a_class_keeps_its_number_between_any_two_formats(first: str, second: str, tmp_path: Path) -> None:
    """Also one that was found nowhere, in formats that say all classes; and so it is in a third, COCO."""
    some = found(tmp_path)
    (tmp_path / "b").mkdir()
    for name in (some[0].path, some[1].path, some[2].path):
        Path(name or "").write_bytes(makers.jpeg((9, 9)))
    middle = list(read_predictions(write(some, tmp_path, first), first))
    assert numbers(middle) == numbers(some)
    again = list(read_predictions(write(middle, tmp_path / "b", second), second))
    assert numbers(again) == numbers(some)
    document = json.loads(write(again, tmp_path / "c", "coco").read_bytes())
    categories = {each["name"]: each["id"] for each in document["categories"]}
    wanted = {name: number + 1 for number, name in enumerate(MODEL.names)}
    if first not in HOLDS_ALL or second not in HOLDS_ALL:
        del wanted["bus"]
        categories.pop("class_2", None)  # what YOLO calls a number that no class has
    assert categories == wanted


def test_pictures_that_share_a_model_and_differ_in_its_numbers() -> None:
    """What a table of classes learns of one picture is not all that it could learn of the next."""
    table = ClassTable()
    for title, number in (("dog", 3), ("car", 1), ("person", 0)):
        one = Prediction.from_arrays(size=(9, 9), boxes=[[1, 2, 3, 4]], classes=[title], meta=MODEL)
        table.learn(replace(one, ids={title: number}))
    assert table.titles == {0: "person", 1: "car", 3: "dog"}


def test_a_project_without_our_numbers_is_read(tmp_path: Path) -> None:
    """As their SDK writes it again: the pictures' own numbers count."""
    where = write(found(tmp_path)[:2], tmp_path, "supervisely")
    meta = json.loads((where / "meta.json").read_text())
    assert meta.pop("predsession") == {"class_ids": {"person": 0, "car": 1, "bus": 2, "dog": 3}}
    meta["classes"].reverse()
    (where / "meta.json").write_text(json.dumps(meta))
    back = list(read_predictions(where))
    assert [each.class_ids.tolist() for each in back] == [[3], [1]]
    assert back[0].meta.names == ("dog", "bus", "car", "person")


@pytest.mark.parametrize("name", [each for each in READABLE if not each.startswith("yolo")])
def test_a_models_names_stand_at_their_numbers(name: str, tmp_path: Path) -> None:
    """Where all classes were found, the last one first, and in one picture as in several."""
    model = ModelMeta.from_names(["a", "b"])
    some = [
        Prediction.from_arrays(
            size=(9, 9), boxes=[[1, 2, 3, 4]] * len(titles), classes=titles, meta=model, index=index
        )
        for index, titles in enumerate((["b", "a"], ["b"], ["a"]))
    ]
    for each in read_predictions(write(some, tmp_path, name), name):
        assert each.meta.names == ("a", "b")
        assert [each.meta.names[number] for number in each.class_ids] == each.classes.tolist()
    (alone,) = read_predictions(write(some[:1], tmp_path / "alone", name), name)
    assert alone.meta.names == ("a", "b")


@pytest.mark.parametrize("tags", [(), MODEL.tags, (*MODEL.tags, replace(MODEL.tags[0], name="sunny"))])
def test_a_models_tags_survive_json_lines(tags: tuple[object, ...], tmp_path: Path) -> None:
    """None at all, the one that all models have, and more."""
    meta = ModelMeta(MODEL.classes[:1], tags)
    one = Prediction.from_arrays(size=(9, 9), boxes=[[1, 2, 3, 4]], classes=["person"], meta=meta)
    (back,) = read_predictions(write([one], tmp_path, "jsonl"))
    assert back.meta == meta


def test_json_lines_tell_a_models_numbers_once(tmp_path: Path) -> None:
    """Where they are not the classes' places: the first line says them, and all classes come back."""
    ids = {"person": 7, "car": 5, "bus": 3, "dog": 1}
    some = [replace(each, ids=ids) for each in found(tmp_path)]
    where = write(some, tmp_path, "jsonl")
    assert [b"model_meta" in line for line in where.read_bytes().splitlines()] == [True, False, False]
    back = list(read_predictions(where))
    assert back == some
    assert all(each.meta == MODEL and each.ids == ids for each in back)


def test_json_lines_keep_an_order_that_is_not_that_of_the_numbers(tmp_path: Path) -> None:
    """Also where a picture has all of the model's classes."""
    one = Prediction.from_arrays(
        size=(9, 9), boxes=[[1, 2, 3, 4]] * 2, classes=["a", "b"], class_names=["a", "b"]
    )
    (back,) = read_predictions(write([replace(one, ids={"a": 5, "b": 1})], tmp_path, "jsonl"))
    assert (back.meta.names, back.class_ids.tolist()) == (("a", "b"), [5, 1])


def test_a_project_that_is_written_over_keeps_its_numbers(tmp_path: Path) -> None:
    """Those of classes that the second run does not know, and those that their SDK has taken away."""
    some = found(tmp_path)
    where = write(some[:1], tmp_path, "supervisely")
    only = Prediction.from_json(some[1].to_json())  # of its classes, those that were found
    wanted = {"person": 0, "car": 1, "bus": 2, "dog": 3}
    for numbered, after in ((True, wanted), (False, {"car": 1})):
        meta = json.loads((where / "meta.json").read_text())
        if not numbered:
            del meta["predsession"]
        (where / "meta.json").write_text(json.dumps(meta))
        save_predictions([only], where, "supervisely", overwrite=True)
        assert json.loads((where / "meta.json").read_text())["predsession"] == {"class_ids": after}


def test_a_picture_that_differs_from_its_file_says_the_rest_as_the_file_does() -> None:
    """Its own numbers count; those of classes that it does not have are the file's."""
    known = KnownMeta(MODEL, {title: number for number, title in enumerate(MODEL.names)})
    assert known.with_numbers({"dog": 3, "new": -1}) == (MODEL, None)
    assert known.with_numbers({"dog": 9}) == (MODEL, {"person": 0, "car": 1, "bus": 2, "dog": 9})
