"""GeoJSON of pictures that lie somewhere: read by rasterio and shapely, the pixels are the model's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from interop.formats.conftest import Theirs

from predsession import Prediction

CRS = {"wgs84": None, "world_file": None, "floats": 3857}


@pytest.fixture
def rasters(theirs: Theirs, tmp_path: Path) -> dict[str, list[float]]:
    """Files that say in several ways where they lie, by name; their transforms, as rasterio reads them."""
    made = theirs("their_rasterio.py", "write", tmp_path)
    assert isinstance(made, dict)
    return made


def test_features_are_where_rasterio_says(
    theirs: Theirs, rasters: dict[str, list[float]], tmp_path: Path
) -> None:
    """Burnt back into its raster, each mask has the pixels it had, whichever way the file says where."""
    mask = np.random.default_rng(0).random((48, 64)) < 0.5
    assert len(rasters) == 7
    np.save(tmp_path / "mask.npy", mask)
    for name, transform in rasters.items():
        p = Prediction.from_arrays(size=(64, 48), masks=mask[None], path=tmp_path / f"{name}.tif")
        made = p.to_geojson()
        code = CRS.get(name, 32633)
        assert made.get("crs", {}).get("properties", {}).get("name") == (
            None if code is None else f"urn:ogc:def:crs:EPSG::{code}"
        ), name
        again = p.to_geojson(transform)
        place, handed = (each["features"][0]["geometry"]["coordinates"][0][0] for each in (made, again))
        assert np.allclose(place, handed, rtol=0, atol=1e-9 if name == "wgs84" else 1e-6), name
        (tmp_path / "made.geojson").write_text(json.dumps(made))
        said = theirs(
            "their_rasterio.py",
            "burn",
            tmp_path / f"{name}.tif",
            tmp_path / "made.geojson",
            tmp_path / "mask.npy",
        )
        assert said == {
            "differ": 0,
            "pixels": int(mask.sum()),
            "valid": True,
            "epsg": {"wgs84": 4326}.get(name, code),
        }
