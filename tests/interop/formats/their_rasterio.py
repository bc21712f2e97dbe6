"""Rasters by rasterio, and our GeoJSON burnt back into them. Prints how many pixels differ as JSON.

write FOLDER: makes GeoTIFFs, in several ways of saying where they lie.
burn TIFF GEOJSON PIXELS: whether the features, burnt into the raster, are the pixels that the file has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import rasterio
import rasterio.features
from rasterio.transform import Affine
from shapely.geometry import shape

TURNED = Affine.translation(500_000, 4_600_000) @ Affine.rotation(30) @ Affine.scale(0.5, -0.5)
NORTH_UP = Affine(0.5, 0, 500_000, 0, -0.5, 4_600_000)
WAYS = {
    "north_up": {"crs": "EPSG:32633", "transform": NORTH_UP},
    "turned": {"crs": "EPSG:32633", "transform": TURNED},
    "wgs84": {"crs": "EPSG:4326", "transform": Affine(1e-5, 0, 15, 0, -1e-5, 47)},
    "floats": {"crs": "EPSG:3857", "transform": NORTH_UP, "dtype": "float32", "count": 5},
    "big": {"crs": "EPSG:32633", "transform": NORTH_UP, "BIGTIFF": "YES"},
    "world_file": {"transform": NORTH_UP, "PROFILE": "BASELINE", "TFW": "YES"},
}


def write(folder: Path) -> dict[str, object]:
    """Write the rasters; return each one's transform as rasterio reads it."""
    found = {}
    for name, more in WAYS.items():
        options = {"width": 64, "height": 48, "count": 3, "dtype": "uint8", **more}
        path = folder / f"{name}.tif"
        with rasterio.open(path, "w", driver="GTiff", **options) as raster:
            raster.write(np.zeros((options["count"], 48, 64), options["dtype"]))
        with rasterio.open(path) as raster:
            found[name] = list(raster.transform)[:6]
    middles = folder / "middles.tif"
    with rasterio.Env(GTIFF_POINT_GEO_IGNORE="FALSE"):
        with rasterio.open(
            middles, "w", driver="GTiff", width=64, height=48, count=1, dtype="uint8",
            crs="EPSG:32633", transform=NORTH_UP,
        ) as raster:  # fmt: skip
            raster.update_tags(AREA_OR_POINT="Point")
            raster.write(np.zeros((1, 48, 64), "uint8"))
        with rasterio.open(middles) as raster:
            found["middles"] = list(raster.transform)[:6]
    return found


def burn(tiff: str, geojson: str, pixels: str) -> dict[str, object]:
    """Return how many pixels the features miss or have too many, and what shapely says of them."""
    collection = json.loads(Path(geojson).read_text())
    shapes = [shape(each["geometry"]) for each in collection["features"]]
    with rasterio.open(tiff) as raster:
        burnt = rasterio.features.rasterize(shapes, raster.shape, transform=raster.transform) > 0
        known = raster.crs and raster.crs.to_epsg()
    wanted = np.load(pixels)
    return {
        "differ": int((burnt != wanted).sum()),
        "pixels": int(wanted.sum()),
        "valid": all(each.is_valid for each in shapes),
        "epsg": known,
    }


sys.stdout.write(json.dumps(write(Path(sys.argv[2])) if sys.argv[1] == "write" else burn(*sys.argv[2:])))
