"""Where a picture lies on the earth: what its file says, or the world file beside it, damaged or not."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import shapely
import shapely.geometry
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps, TiffImagePlugin
from predictions import found

from predsession.errors import SourceError
from predsession.prediction import Prediction
from predsession.wire.geometry import Size

NORTH_UP = (0.5, 0.0, 500000.0, 0.0, -0.5, 4600000.0)


def shape_of(feature: object) -> shapely.Geometry:
    """Return a feature's geometry as shapely reads it."""
    return shapely.geometry.shape(json.loads(json.dumps(feature))["geometry"])


def geotiff(
    path: Path, *, point: bool = False, matrix: bool = False, orientation: int = 1, code: int = 32633
) -> Path:
    """Write a GeoTIFF of 64 x 48 pixels whose transform is `NORTH_UP`."""
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    a, _, c, _, e, f = NORTH_UP
    shift = 0.5 if point else 0.0
    if matrix:
        tags[34264] = (a, 0.0, 0.0, c + a * shift, 0.0, e, 0.0, f + e * shift, *[0.0] * 7, 1.0)
        tags.tagtype[34264] = 12
    else:
        tags[33550], tags[33922] = (
            (a, -e, 0.0),
            (10.0, 4.0, 0.0, c + a * (10 + shift), f + e * (4 + shift), 0.0),
        )
        tags.tagtype[33550] = tags.tagtype[33922] = 12
    tags[34735] = (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 2 if point else 1, 3072, 0, 1, code)
    tags.tagtype[34735] = 3
    tags[274] = orientation
    Image.new("RGB", (64, 48)).save(path, tiffinfo=tags)
    return path


@pytest.mark.parametrize("point", [False, True])
@pytest.mark.parametrize("matrix", [False, True])
def test_a_geotiff_says_where_it_lies(tmp_path: Path, point: bool, matrix: bool) -> None:
    """Tie point and scale, or a matrix; of corners or of middles of pixels: the same place."""
    path = geotiff(tmp_path / "a.tif", point=point, matrix=matrix)
    made = found(path=path).to_geojson()
    assert made["crs"]["properties"]["name"] == "urn:ogc:def:crs:EPSG::32633"
    assert made["features"] == found(path=path).to_geojson(NORTH_UP)["features"]
    assert "crs" not in found(path=path).to_geojson(crs=4326)


@pytest.mark.parametrize("name", ["a.jgw", "a.jpgw", "a.wld", "a.JGW"])
def test_a_world_file_says_where_it_lies(tmp_path: Path, name: str) -> None:
    """Its last two numbers are the middle of the first pixel."""
    Image.new("RGB", (64, 48)).save(tmp_path / "a.jpg")
    (tmp_path / name).write_text("0.5\n0.0\n0.0\n-0.5\n500000.25\n4599999.75\n")
    path = tmp_path / "a.jpg"
    assert found(path=path).to_geojson() == found(path=path).to_geojson(NORTH_UP)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_that_lies_on_its_side(tmp_path: Path, orientation: int) -> None:
    """The transform belongs to the stored pixels, the prediction to the upright ones: one place."""
    path = geotiff(tmp_path / "a.tif", orientation=orientation)
    stored = np.zeros((48, 64), np.uint8)
    stored[5:9, 20:40] = 255
    exif = Image.Exif()
    exif[274] = orientation
    Image.fromarray(stored).save(tmp_path / "b.png", exif=exif)
    upright = np.asarray(ImageOps.exif_transpose(Image.open(tmp_path / "b.png"))) > 0
    p = Prediction.from_arrays(size=upright.shape[::-1], masks=upright[None], path=path)
    (feature,) = p.to_geojson()["features"]
    assert shape_of(feature).bounds == (500010.0, 4599995.5, 500020.0, 4599997.5)


def test_a_picture_that_says_nothing(tmp_path: Path) -> None:
    """No file, a file that is gone, no tags, a broken world file, another size, no number for its system."""
    path = tmp_path / "a.png"
    for p, words in ((found(), "no picture file"), (found(path=path), "cannot be read")):
        with pytest.raises(SourceError, match=f"{words}.*transform="):
            p.to_geojson()
    Image.new("RGB", (64, 48)).save(path)
    with pytest.raises(SourceError, match=r"a\.pgw.*transform="):
        found(path=path).to_geojson()
    (tmp_path / "a.pgw").write_text("0.5 0 0")
    with pytest.raises(SourceError, match=r"a\.pgw: a world file has six numbers"):
        found(path=path).to_geojson()
    with pytest.raises(SourceError, match=r"64 x 48 pixels.*65 x 48"):
        found(size=(65, 48), path=geotiff(tmp_path / "b.tif")).to_geojson()
    with pytest.raises(SourceError, match="pass crs="):
        found(path=geotiff(tmp_path / "c.tif", code=32767)).to_geojson()
    assert Size(64, 48) == found().size


def test_a_system_without_a_number_needs_one_handed_in(tmp_path: Path) -> None:
    """The file's own transform serves with a code that is handed in; without one it is said what to do."""
    path = geotiff(tmp_path / "a.tif", code=32767)
    made = found(path=path).to_geojson(crs=np.int64(32633))
    assert made["crs"]["properties"]["name"] == "urn:ogc:def:crs:EPSG::32633"
    assert made == found(path=path).to_geojson(NORTH_UP, crs=32633)


@pytest.mark.parametrize("scale", [0.0, float("nan"), float("inf"), -float("inf")])
def test_a_geotiff_s_scale_that_is_none(tmp_path: Path, scale: float) -> None:
    """No coordinate is made of it: the file is named, and what to do."""
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[33550], tags[33922] = (scale, 0.5, 0.0), (0.0, 0.0, 0.0, 5.0, 6.0, 0.0)
    tags.tagtype[33550] = tags.tagtype[33922] = 12
    Image.new("RGB", (64, 48)).save(tmp_path / "a.tif", tiffinfo=tags)
    with pytest.raises(SourceError, match=r"a\.tif: where it lies cannot be used.*pass transform="):
        found(path=tmp_path / "a.tif").to_geojson()


@pytest.mark.parametrize("text", ["0\n" * 6, "nan\n0\n0\n-0.5\n5\n6\n"])
def test_a_world_file_of_numbers_that_are_none(tmp_path: Path, text: str) -> None:
    """The world file is named, not only its numbers."""
    Image.new("RGB", (64, 48)).save(tmp_path / "a.png")
    (tmp_path / "a.pgw").write_text(text)
    with pytest.raises(SourceError, match=r"a\.pgw: where it lies cannot be used.*pass transform="):
        found(path=tmp_path / "a.png").to_geojson()


def tiff(order: str, *, big: bool) -> bytes:
    """Return the tags of a GeoTIFF whose transform is `NORTH_UP`, in either order of bytes and kind."""
    values = {
        256: ("H", [64]), 257: ("I", [48]), 274: ("H", [1]),
        33550: ("d", [0.5, 0.5, 0.0]), 33922: ("d", [0.0, 0.0, 0.0, 500000.0, 4600000.0, 0.0]),
        34735: ("H", [1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 32633]),
    }  # fmt: skip
    word, count, room = ("Q", "Q", 8) if big else ("I", "H", 4)
    start = 16 if big else 8
    header = (b"II" if order == "<" else b"MM") + struct.pack(
        order + ("HHHQ" if big else "HI"), *((43, 8, 0, start) if big else (42, start))
    )
    body, after = b"", start + struct.calcsize(order + count) + len(values) * (4 + 2 * room)
    entries = struct.pack(order + count, len(values))
    for tag, (kind, numbers) in values.items():
        data = struct.pack(f"{order}{len(numbers)}{kind}", *numbers)
        entries += struct.pack(order + "HH" + word, tag, {"H": 3, "I": 4, "d": 12}[kind], len(numbers))
        if len(data) <= room:
            entries += data.ljust(room, b"\0")
        else:
            entries += struct.pack(order + word, after + len(body))
            body += data
    return header + entries + body


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_kind_of_tiff_says_where_it_lies(tmp_path: Path, order: str, big: bool) -> None:
    """Little or big end first, of 32 or of 64 bits; none needs a picture that Pillow opens."""
    (tmp_path / "a.tif").write_bytes(tiff(order, big=big))
    p = found(path=tmp_path / "a.tif")
    assert p.to_geojson() == p.to_geojson(NORTH_UP, crs=32633)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=12), st.integers(0, 260), st.booleans(), st.integers(0, 260))
def test_a_damaged_tiff_is_a_source_error(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int, big: bool, cut: int
) -> None:
    """Whatever is changed, or cut off: coordinates that are numbers, or our own error, and no warning."""
    whole = tiff("<", big=big)
    path = tmp_path_factory.getbasetemp() / "fuzzed.tif"
    path.write_bytes((whole[:place] + noise + whole[place + len(noise) :])[: len(whole) - cut // 4])
    with contextlib.suppress(SourceError):
        made = found(path=path).to_geojson()
        assert np.isfinite(shape_of(made["features"][0]).area)


@pytest.mark.parametrize(
    "start", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe1", b"RIFF\0\0\0\0WEBP", b"BM", b""]
)
def test_a_damaged_picture_is_a_source_error(tmp_path: Path, start: bytes) -> None:
    """Its reader's own errors and warnings do not come through."""
    (tmp_path / "a.png").write_bytes(start + bytes(range(60)))
    with pytest.raises(SourceError, match=r"a\.png: where it lies cannot be read"):
        found(path=tmp_path / "a.png").to_geojson()
