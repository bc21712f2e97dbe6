"""Predictions in other tools' forms, checked with the tools themselves: supervision, pandas, shapely."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shapely
import shapely.geometry
from hypothesis import given, settings
from hypothesis import strategies as st
from predictions import found, zoo

import predsession
from predsession.errors import ItemError, MissingExtraError, PredSessionError
from predsession.prediction import Prediction
from predsession.wire.geometry import MaskCrop

# It says so when it is imported without OpenCV, which is as good for what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:OpenCV")

NORTH_UP = (0.5, 0.0, 500000.0, 0.0, -0.5, 4600000.0)


def masked(*masks: object, **more: object) -> Prediction:
    """Return a prediction with masks on a picture of 64 x 48 pixels."""
    return Prediction.from_arrays(size=(64, 48), masks=np.array(masks, np.bool_), **more)


def blob(x: int, y: int, side: int) -> np.ndarray:
    """Return a mask of a square with a hole of one pixel."""
    mask = np.zeros((48, 64), np.bool_)
    mask[y : y + side, x : x + side] = True
    mask[y + 1, x + 1] = False
    return mask


# -- supervision --------------------------------------------------------------------------------------


def test_supervision_gets_every_column() -> None:
    """Boxes, scores, ids, names and tracks are ours; writable, and changing them changes no prediction."""
    p = found(scores=[0.5, 0.25], class_ids=[1, 0], class_names=["cat", "dog"], track_ids=[7, -1])
    made = p.to_supervision()
    assert made.xyxy.dtype == np.float32
    assert made.xyxy.tolist() == p.boxes.tolist()
    assert made.confidence.tolist() == [0.5, 0.25]
    assert made.class_id.tolist() == [1, 0]
    assert made.data["class_name"].tolist() == ["dog", "cat"]
    assert made.data["class_name"].dtype.kind == "U"
    assert made.tracker_id.tolist() == [7, -1]
    assert made.mask is None
    made.xyxy += 1
    assert p.boxes[0, 0] == 1.5


def test_supervision_slices_and_merges() -> None:
    """Detections of several pictures, an empty one among them, can be cut and put together."""
    import supervision as sv

    first, second = found(classes=["cat", "dog"]), found(classes=["bird", "cat"], index=1, name="b")
    nothing = found(boxes=[])
    whole = sv.Detections.merge([each.to_supervision() for each in (first, nothing, second)])
    assert whole.data["class_name"].tolist() == ["cat", "dog", "bird", "cat"]
    assert len(whole[whole.data["class_name"] == "cat"]) == 2


def test_supervision_annotates(tmp_path: Path) -> None:
    """Its annotators draw boxes, masks and labels of ours, and draw nothing for nothing."""
    import supervision as sv

    ground = np.zeros((48, 64, 3), np.uint8)
    made = masked(blob(4, 4, 20), blob(30, 10, 9), classes=["cat", "dog"]).to_supervision()
    for annotator in (sv.BoxAnnotator(), sv.MaskAnnotator(), sv.LabelAnnotator(), sv.PolygonAnnotator()):
        assert annotator.annotate(ground.copy(), made).any()
        assert not annotator.annotate(ground.copy(), found(boxes=[]).to_supervision()).any()


def test_supervision_of_nothing_is_its_own_nothing() -> None:
    """Where nothing was found all columns are there, with the dtypes that they always have."""
    made, some = found(boxes=[]).to_supervision(), found().to_supervision()
    assert made.is_empty()
    assert made.xyxy.shape == (0, 4)
    for name in ("xyxy", "confidence", "class_id"):
        assert getattr(made, name).dtype == getattr(some, name).dtype
    assert made.data["class_name"].shape == (0,)
    assert made.data["class_name"].dtype.kind == "U"


def test_supervision_masks_full_and_compact_say_the_same() -> None:
    """Both kinds of masks have the same pixels, for boxes among masks and for an empty mask too."""
    p = masked(blob(4, 4, 20), np.zeros((48, 64)), blob(40, 20, 24), boxes=[[4, 4, 24, 24]] * 3)
    full, compact = p.to_supervision().mask, p.to_supervision(masks="compact").mask
    assert isinstance(full, np.ndarray)
    assert (full.dtype, full.shape) == (np.bool_, (3, 48, 64))
    assert (full == p.masks).all()
    assert (np.asarray(compact) == full).all()
    assert p.to_supervision(masks="none").mask is None
    assert (zoo().to_supervision(masks="compact").mask.to_dense() == zoo().to_supervision().mask).all()


def test_supervision_masks_that_fit_nowhere() -> None:
    """Full masks of a picture beyond memory are our error, which names the way out; that way works."""
    crop = MaskCrop(70_000, 10, np.ones((20, 30), np.bool_))
    p = Prediction.from_arrays(size=(200_000, 100_000), masks=[crop])
    with pytest.raises(PredSessionError, match='masks="compact"'):
        p.to_supervision()
    assert p.to_supervision(masks="compact").mask.area.tolist() == [600]
    with pytest.raises(ValueError, match="masks is 'half'"):
        p.to_supervision(masks="half")


def test_supervision_without_compact_masks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A supervision from before them: our error says which, and what to do."""
    import supervision as sv

    monkeypatch.delattr(sv, "CompactMask")
    with pytest.raises(PredSessionError, match=r"supervision [\d.]+ has no CompactMask.*--upgrade"):
        masked(blob(4, 4, 20)).to_supervision(masks="compact")


def test_supervision_gets_the_corners_of_oriented_boxes() -> None:
    """Where all are oriented boxes, its own field for their corners is there."""
    import supervision as sv

    turned = zoo().where(np.array(zoo().shapes) == "oriented_bbox")
    made = turned.to_supervision()
    assert made.data["xyxyxyxy"].shape == (1, 4, 2)
    assert "xyxyxyxy" not in zoo().to_supervision().data
    ground = np.zeros((720, 1280, 3), np.uint8)
    assert sv.OrientedBoxAnnotator().annotate(ground, made).any()


@pytest.mark.parametrize("name", ["supervision", "pandas"])
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Without the other package the error is an ImportError that says what to install."""
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"predsession\[{name}\]"):
        getattr(found(), f"to_{name}")()


# -- pandas -------------------------------------------------------------------------------------------


def test_a_table_has_a_row_an_object() -> None:
    """Each column has the object's or the input's value, and what is not known is missing."""
    p = found(
        scores=[0.5, 0.25],
        classes=["cat", "dog"],
        track_ids=[7, -1],
        path="a/b.png",
        index=3,
        frame_index=9,
    )
    table = p.to_pandas()
    row = table.to_dict("records")[0]
    assert np.isnan(row.pop("timestamp"))
    assert row == {
        "index": 3, "name": "b.png", "path": "a/b.png", "frame_index": 9, "object": 0,
        "class_id": 0, "class": "cat", "score": 0.5, "x1": 1.5, "y1": 2.0, "x2": 30.0, "y2": 40.0,
        "width": 64, "height": 48, "shape": "rectangle", "track_id": 7,
    }  # fmt: skip
    assert table["track_id"].isna().tolist() == [False, True]
    assert found().to_pandas()["frame_index"].isna().all()


def test_tables_have_one_form() -> None:
    """Full, empty, or of no prediction at all: the same columns and dtypes, joined without a warning."""
    tables = [found().to_pandas(), found(boxes=[]).to_pandas(), predsession.to_pandas([]), zoo().to_pandas()]
    for one, other in itertools.permutations(tables, 2):
        assert one.dtypes.equals(other.dtypes)
    whole = pd.concat(tables, ignore_index=True)
    assert whole.dtypes.equals(tables[0].dtypes)
    assert len(whole) == 2 + len(zoo())


def test_a_table_takes_names_that_are_no_text() -> None:
    """A file name that is not UTF-8, and a class of half a character: written out, and nothing is lost."""
    odd = found(name="\udcff.jpg", path="in/\udcff.jpg", classes=["a\ud800", "犬"])
    table = predsession.to_pandas(iter([found(name="good.jpg"), odd]))
    assert table["name"].tolist() == ["good.jpg", "good.jpg", r"\udcff.jpg", r"\udcff.jpg"]
    assert table["path"].tolist()[2:] == [r"in/\udcff.jpg"] * 2
    assert table["class"].tolist()[2:] == [r"a\ud800", "犬"]
    assert table.dtypes.equals(found().to_pandas().dtypes)
    assert table.to_json()


def test_a_table_of_one() -> None:
    """A prediction alone is as good as a list of it; an item error has no rows."""
    assert predsession.to_pandas(found()).equals(found().to_pandas())
    assert len(predsession.to_pandas(ItemError("bad"))) == 0


def test_a_table_of_many_leaves_item_errors_out() -> None:
    """An iterator of outcomes gives one table, in order, of what there is."""
    outcomes = [found(index=0), ItemError("bad", index=1), found(boxes=[], index=2), found(index=3)]
    table = predsession.to_pandas(iter(outcomes))
    assert table["index"].tolist() == [0, 0, 3, 3]
    assert table["object"].tolist() == [0, 1, 0, 1]


# -- GeoJSON ------------------------------------------------------------------------------------------


def shape_of(feature: object) -> shapely.Geometry:
    """Return a feature's geometry as shapely reads it."""
    return shapely.geometry.shape(json.loads(json.dumps(feature))["geometry"])


def rings_of(shape: shapely.Geometry) -> list[tuple[bool, shapely.LinearRing]]:
    """Return every ring of a polygon, or several, and whether it is an outline."""
    parts = getattr(shape, "geoms", [shape])
    return [(True, part.exterior) for part in parts] + [
        (False, hole) for part in parts for hole in part.interiors
    ]


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([NORTH_UP, (1, 0, 0, 0, 1, 0), (0.0, 2.0, 7.0, -3.0, 0.5, -1.0)]),
)
def test_a_mask_s_area_is_that_of_its_pixels(seed: int, transform: tuple[float, ...]) -> None:
    """Any mask, upright or mirrored by the transform: valid, right way round, and its area is exact."""
    mask = np.random.default_rng(seed).random((48, 64)) < 0.5
    (feature,) = masked(mask).to_geojson(transform)["features"]
    shape = shape_of(feature)
    assert shape.is_valid
    pixel = abs(transform[0] * transform[4] - transform[1] * transform[3])
    assert shape.area == pytest.approx(mask.sum() * pixel, rel=1e-9)
    assert all(ring.is_ccw is outer and ring.is_closed for outer, ring in rings_of(shape))


def test_every_geometry_is_written() -> None:
    """One Feature an object, each of the kind that holds what it is, all valid and inside the picture."""
    p = zoo()
    made = p.to_geojson((1, 0, 0, 0, 1, 0))
    assert made["type"] == "FeatureCollection"
    kinds = {kind: shape_of(each).geom_type for kind, each in zip(p.shapes, made["features"], strict=True)}
    assert kinds["rectangle"] == kinds["polygon"] == kinds["oriented_bbox"] == kinds["cuboid"] == "Polygon"
    assert kinds["line"] == "LineString"
    assert kinds["point"] == "Point"
    assert kinds["graph"] == "MultiPoint"
    assert kinds["bitmap"] in {"Polygon", "MultiPolygon"}
    frame = shapely.box(0, 0, *p.size)
    for row, feature in enumerate(made["features"]):
        assert shape_of(feature).is_valid
        assert frame.covers(shape_of(feature))
        assert feature["properties"]["class"] == p.classes[row]
        assert feature["properties"]["score"] == pytest.approx(p.scores[row])
    assert {"keypoints"} == set(made["features"][p.shapes.index("graph")]["properties"]) - set(
        made["features"][0]["properties"]
    )


def test_a_box_is_its_four_corners() -> None:
    """Boxes are edges of pixels: no half pixel is lost on the way to coordinates."""
    (feature,) = found(boxes=[[10, 20, 30, 40]], track_ids=[5], scores=[0.9]).to_geojson(NORTH_UP)["features"]
    assert shape_of(feature).bounds == (500005.0, 4599980.0, 500015.0, 4599990.0)
    assert feature["properties"] == {
        "name": "", "index": 0, "class": "object", "class_id": 0, "score": 0.9, "shape": "rectangle",
        "track_id": 5,
    }  # fmt: skip


def test_a_mask_without_a_pixel_is_nowhere() -> None:
    """RFC 7946, 3.2: a Feature without a place has the geometry null; nothing found is an empty list."""
    made = masked(np.zeros((48, 64)), boxes=[[1, 1, 5, 5]]).to_geojson(NORTH_UP)
    assert made["features"][0]["geometry"] is None
    assert found(boxes=[]).to_geojson(NORTH_UP) == {"type": "FeatureCollection", "features": []}


@pytest.mark.parametrize(
    ("crs", "name"),
    [
        (32633, "urn:ogc:def:crs:EPSG::32633"),
        ("epsg:3857", "urn:ogc:def:crs:EPSG::3857"),
        ("urn:ogc:def:crs:EPSG::25833", "urn:ogc:def:crs:EPSG::25833"),
        (4326, None),
        ("OGC:CRS84", None),
    ],
)
def test_another_coordinate_system_is_named(crs: object, name: str | None) -> None:
    """All but WGS 84 are named in the member that GDAL reads."""
    made = found().to_geojson(NORTH_UP, crs=crs)
    assert made.get("crs") == (name and {"type": "name", "properties": {"name": name}})


@pytest.mark.parametrize(
    "transform", [5, (1, 2, 3), "abcdef", (1, 0, 0, 1, 0, 0), (1, 0, np.nan, 0, 1, 0), [None] * 6]
)
def test_what_is_no_transform_is_refused(transform: object) -> None:
    """The message says what is wanted."""
    with pytest.raises(ValueError, match="transform is"):
        found().to_geojson(transform)


@pytest.mark.parametrize("crs", [0, True, "WGS84", "EPSG:", object()])
def test_what_is_no_coordinate_system_is_refused(crs: object) -> None:
    """The message says what is wanted."""
    with pytest.raises(ValueError, match="crs is"):
        found().to_geojson(NORTH_UP, crs=crs)


def test_an_object_with_six_names_is_a_transform() -> None:
    """As rasterio's and affine's are."""

    class Affine:
        a, b, c, d, e, f = NORTH_UP

    assert found().to_geojson(Affine()) == found().to_geojson(NORTH_UP)
