"""Predictions as GeoJSON: one Feature an object, in the coordinates of a map.

Invariant: outlines run counter-clockwise and holes clockwise in the coordinates that are written, and every
ring ends where it began, whatever the transform does.

References
----------
RFC 7946. Its coordinates are WGS 84; others are named by the member ``crs`` of its forerunner (GeoJSON 2008,
section 3), which GDAL and QGIS read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from predsession.errors import SourceError
from predsession.prediction.display import Shown
from predsession.prediction.georeference import Georeference, Transform, as_transform, read_georeference
from predsession.wire.jsontypes import JSON
from predsession.wire.rings import Piece, mask_rings

Points = npt.NDArray[np.generic]
Geometry = dict[str, JSON]

_WGS84 = frozenset(
    ("urn:ogc:def:crs:EPSG::4326", "urn:ogc:def:crs:OGC::CRS84", "urn:ogc:def:crs:OGC:1.3:CRS84")
)
_OUTLINED = frozenset(("bitmap", "alpha_mask"))
_MIDDLE = 0.5  # vertices name pixels: each is put into the middle of its own


def feature_collection(prediction: Shown, transform: object, crs: object) -> dict[str, JSON]:
    """Write a prediction as GeoJSON: see `Prediction.to_geojson`.

    Parameters
    ----------
    prediction : Prediction
        Of a picture that lies somewhere.
    transform : object or None
        From edges of pixels to coordinates; None reads it from the picture.
    crs : object or None
        The coordinate system; None is what the picture says.

    Returns
    -------
    dict
        A FeatureCollection.

    Raises
    ------
    ValueError
        If `transform` or `crs` is none.
    SourceError
        If the picture does not say where it lies.
    """
    name = None if crs is None else _crs_name(crs)
    place = _place(prediction, transform)
    if crs is None and place.is_described:
        raise SourceError(
            f"{prediction.path}: its coordinate system is one of its own, without a number; pass crs="
        )
    if crs is None and place.epsg is not None:
        name = _crs_name(place.epsg)
    features = [_feature(prediction, row, place.transform) for row in range(len(prediction))]
    collection: dict[str, JSON] = {"type": "FeatureCollection", "features": list[JSON](features)}
    if name is not None and name not in _WGS84:
        collection["crs"] = {"type": "name", "properties": {"name": name}}
    return collection


def _place(prediction: Shown, transform: object) -> Georeference:
    """Return where the picture lies: as handed in, or as it says itself."""
    if transform is not None:
        return Georeference(as_transform(transform))
    if prediction.path is None:
        raise SourceError(
            f"{prediction.name or 'prediction'}: it has no picture file that could say where it lies; "
            "pass transform="
        )
    return read_georeference(prediction.path, prediction.size)


def _crs_name(crs: object) -> str:
    """Return the URN of a coordinate system: of a number, an authority's code, or rasterio's or pyproj's."""
    to_epsg = getattr(crs, "to_epsg", None)
    code = to_epsg() if callable(to_epsg) else crs
    if isinstance(code, int | np.integer) and not isinstance(code, bool) and code > 0:
        return f"urn:ogc:def:crs:EPSG::{code}"
    if isinstance(code, str) and (match := re.fullmatch(r"(EPSG|OGC):(\w+)", code.strip(), re.IGNORECASE)):
        return f"urn:ogc:def:crs:{match[1].upper()}::{match[2].upper()}"
    if isinstance(code, str) and re.fullmatch(r"urn:ogc:def:crs:[\w.:-]+", code):
        return code
    raise ValueError(f"crs is {crs!r}; wanted an EPSG code, such as 32633 or 'EPSG:32633'")


def _feature(prediction: Shown, row: int, transform: Transform) -> Geometry:
    """Write one object."""
    tracks = prediction.track_ids
    properties: Geometry = {
        "name": prediction.name,
        "index": prediction.index,
        "class": prediction.classes[row],
        "class_id": int(prediction.class_ids[row]),
        # Eight digits tell all float32 apart, and 0.9 stays 0.9.
        "score": float(str(prediction.scores[row])),
        "shape": prediction.shapes[row],
        "track_id": None if tracks is None or tracks[row] < 0 else int(tracks[row]),
    }
    if prediction.frame_index is not None:
        properties |= {"frame_index": prediction.frame_index, "timestamp": prediction.timestamp}
    if prediction.shapes[row] == "graph":
        visible = prediction.keypoints[row][:, 2] > 0
        ids = [key for key, seen in zip(prediction.keypoint_ids, visible, strict=True) if seen]
        properties["keypoints"] = list[JSON](ids)
    geometry = _geometry(prediction, row, transform)
    return {"type": "Feature", "id": row, "geometry": geometry, "properties": properties}


def _geometry(prediction: Shown, row: int, transform: Transform) -> Geometry | None:
    """Write an object's geometry; None for a mask without a pixel."""
    kind = prediction.shapes[row]
    if kind in _OUTLINED:
        crop = prediction.mask_crops[row]
        return _polygons(mask_rings(crop.mask, x=crop.x, y=crop.y), transform)
    if kind in {"graph", "point"}:
        points = prediction.keypoints[row]
        return _points(points[points[:, 2] > 0, :2], transform)
    if kind == "line":
        return _line(prediction.lines[row], transform)
    rings = [_open(ring) for ring in prediction.polygons[row]]
    if rings and len(rings[0]) > 2:
        shift = 0.0 if kind == "oriented_bbox" else _MIDDLE
        moved = [ring + shift for ring in rings if len(ring) > 2]
        return _polygons([(moved[0], moved[1:])], transform)
    if rings:  # a polygon of one or two points is a dot or a line
        crop = prediction.mask_crops[row]
        return _polygons(mask_rings(crop.mask, x=crop.x, y=crop.y), transform)
    x1, y1, x2, y2 = prediction.boxes[row].tolist()
    return _polygons([(np.array([(x1, y1), (x2, y1), (x2, y2), (x1, y2)]), ())], transform)


def _open(ring: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return a ring without the point that closes it."""
    exact = ring.astype(np.float64)
    return exact[:-1] if len(exact) > 1 and (exact[0] == exact[-1]).all() else exact


def _polygons(
    pieces: Sequence[Piece | tuple[Points, Sequence[Points]]], transform: Transform
) -> Geometry | None:
    """Write outlines with their holes: a Polygon, or a MultiPolygon of several."""
    written: list[JSON] = [
        [_ring(outline, transform, turn=1), *(_ring(hole, transform, turn=-1) for hole in holes)]
        for outline, holes in pieces
    ]
    if not written:
        return None
    if len(written) == 1:
        return {"type": "Polygon", "coordinates": written[0]}
    return {"type": "MultiPolygon", "coordinates": written}


def _ring(ring: Points, transform: Transform, *, turn: int) -> list[JSON]:
    """Write a ring that ends where it begins, counter-clockwise for turn 1, clockwise for -1."""
    places = transform(ring)
    x, y = (places - places[0]).T  # large coordinates would eat the digits of a small area
    area = float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())
    ordered = places if area * turn >= 0 else places[::-1]
    return [*ordered.tolist(), ordered[0].tolist()]


def _points(points: Points, transform: Transform) -> Geometry | None:
    """Write keypoints: those that can be seen."""
    places = transform(points.astype(np.float64) + _MIDDLE).tolist()
    if len(places) == 1:
        return {"type": "Point", "coordinates": places[0]}
    return {"type": "MultiPoint", "coordinates": places} if places else None


def _line(points: Points, transform: Transform) -> Geometry | None:
    """Write a line."""
    places = transform(points.astype(np.float64) + _MIDDLE).tolist()
    if len(places) < 2:
        return {"type": "Point", "coordinates": places[0]} if places else None
    return {"type": "LineString", "coordinates": places}
