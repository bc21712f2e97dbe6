"""Predictions as people see them: the picture read upright, drawn on, saved, and shown in a notebook."""

from __future__ import annotations

import html.parser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from predictions import Black, found, zoo_item

from predsession.errors import SourceError
from predsession.prediction import Prediction
from predsession.prediction.pictures import file_name, read_picture


def test_a_file_is_read_upright(tmp_path: Path) -> None:
    """Without a loader the file at the path is opened, turned by its EXIF orientation."""
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.new("RGB", (40, 20))
    image.paste((255, 0, 0), (0, 0, 20, 20))
    image.save(tmp_path / "a.jpg", exif=exif, quality=95)
    p = Prediction.from_arrays(size=(20, 40), path=tmp_path / "a.jpg")
    picture = p.load_image()
    assert picture.shape == (40, 20, 3)
    assert picture.flags.writeable
    assert picture[5, 10, 0] > 200
    assert picture[35, 10, 0] < 50


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "LA"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    """Whatever a file holds, the picture is (H, W, 3) uint8 with about the same colour."""
    suffix = ".tif" if mode == "CMYK" else ".png"
    Image.new("RGB", (6, 4), (255, 255, 255)).convert(mode).save(tmp_path / f"a{suffix}")
    picture = read_picture(tmp_path / f"a{suffix}")
    assert (picture.shape, picture.dtype) == ((4, 6, 3), np.uint8)
    assert picture.min() > 240


def test_sixteen_bits_are_scaled_not_clipped(tmp_path: Path) -> None:
    """40000 of 65535 is 156 of 255."""
    Image.fromarray(np.full((4, 6), 40000, np.uint16)).save(tmp_path / "a.png")
    assert (read_picture(tmp_path / "a.png") == 156).all()


@pytest.mark.parametrize("content", [None, b"", b"hello", b"\x89PNG\r\n\x1a\n"])
def test_a_picture_that_is_gone_or_broken_is_our_error(tmp_path: Path, content: bytes | None) -> None:
    """Missing, empty, text, cut short: the error names the file and says what to do."""
    if content is not None:
        (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(SourceError, match=r"a\.png.*image="):
        found(path=tmp_path / "a.png").load_image()


def test_no_way_to_the_picture_is_our_error() -> None:
    """Neither path nor loader: the message says how to hand one in."""
    with pytest.raises(SourceError, match=r"image=.*loader="):
        found().load_image()


def test_visualize_draws_and_saves(tmp_path: Path) -> None:
    """The picture that is returned is the one that is written, in folders that are made for it."""
    loader = Black()
    p = found(loader=loader, name="a/b.png", index=7, classes=["cat", "dog"])
    drawn = p.visualize(save_path=tmp_path / "x" / "y.png", save_dir=tmp_path / "z")
    assert (drawn.shape, drawn.dtype, drawn.flags.writeable) == ((48, 64, 3), np.uint8, True)
    assert drawn.any()
    assert loader.calls == 1
    assert (np.asarray(Image.open(tmp_path / "x" / "y.png")) == drawn).all()
    assert [path.name for path in (tmp_path / "z").iterdir()] == ["000007_b.png"]
    assert (p.visualize(draw_tags=False) != drawn).any()
    assert (p.visualize(color=(1, 2, 3), draw_tags=False).reshape(-1, 3) == (1, 2, 3)).all(axis=1).any()


def test_visualize_fills_what_it_is_told_to_fill() -> None:
    """Rectangles are filled on demand only; the opacity counts."""
    p = found(boxes=[[4, 4, 40, 40]], loader=Black())
    assert not p.visualize(draw_tags=False)[20, 20].any()
    weak, strong = (
        p.visualize(draw_tags=False, fill_rectangles=True, opacity=share)[20, 20] for share in (0.2, 0.9)
    )
    assert 0 < weak.max() < strong.max()


def test_visualize_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    """A picture of another size, and a file type that is none."""
    with pytest.raises(SourceError, match="64 x 48"):
        found(loader=Black(65, 48)).visualize()
    with pytest.raises(ValueError, match="image is"):
        found().visualize(image=np.zeros((48, 64, 3)))
    with pytest.raises(ValueError, match=r"a\.gif.*\.png"):
        found(loader=Black()).visualize(tmp_path / "a.gif")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("1.jpg", "000003_1.jpg"),
        ("a/1.JPG", "000003_1.jpg"),
        ("a\\1.bmp", "000003_1.bmp"),
        ("clip.mp4", "000003_clip.png"),
        ('東京 "a"\n.png', "000003_東京 _a__.png"),
        ("../..", "000003_.png"),
        ("", "000003_.png"),
        ("x" * 500 + ".png", "000003_" + "x" * 50 + ".png"),
    ],
)
def test_file_names_are_safe(name: str, written: str) -> None:
    """No path, no sign that a file system refuses, never too long."""
    assert file_name(name, 3) == written
    assert file_name(name, 3) != file_name(name, 4)


# -- in a notebook ---------------------------------------------------------------------------------


class _Texts(html.parser.HTMLParser):
    """Collects tags and texts; knows nothing of what was escaped."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts += data


def test_a_notebook_shows_picture_and_table() -> None:
    """One picture inline, one line an object, with class, score, box and track."""
    shown = _Texts(
        found(loader=Black(), classes=["cat", "dog"], scores=[0.5, 1], track_ids=[3, -1])._repr_html_()
    )
    assert shown.tags.count("img") == 1
    assert shown.tags.count("tr") == 3
    for text in ("cat", "0.500", "1.52.030.040.0", "rectangle", "track", "3"):
        assert text in shown.texts
    assert "track" not in found(loader=Black())._repr_html_()


def test_a_picture_in_a_notebook_is_not_larger_than_needed() -> None:
    """A picture of 3000 pixels is sent as one of 960."""
    source = Prediction.from_arrays(image=np.zeros((1500, 3000, 3), np.uint8))._repr_html_()
    assert len(source) < 20_000


def test_a_notebook_without_the_picture_has_the_table() -> None:
    """The file is gone: the table, and why there is no picture; never an exception."""
    shown = _Texts(found(path="gone.jpg")._repr_html_())
    assert "img" not in shown.tags
    assert shown.tags.count("tr") == 3
    assert "gone.jpg" in shown.texts


def test_a_notebook_survives_damage_and_anything_a_loader_does() -> None:
    """A damaged object, and a loader that raises what it should not."""

    def broken() -> np.ndarray:
        raise ZeroDivisionError

    assert "ZeroDivisionError" in found(loader=broken)._repr_html_()
    item = zoo_item()
    item["annotation"]["objects"][0] = {}
    assert "ProtocolError" in Prediction.from_json(item)._repr_html_()


def test_html_is_escaped() -> None:
    """Names and classes are data, wherever they come from; half a surrogate is no reason to fail."""
    p = found(classes=["<script>alert(1)</script>", "\ud800"], path="<img src=x>.jpg")
    source = p._repr_html_()
    allowed = {"div", "p", "strong", "em", "span", "table", "thead", "tbody", "tr", "th", "td"}
    assert set(_Texts(source).tags) <= allowed
    assert "<script>alert(1)</script>" in _Texts(source).texts
    source.encode("utf-8")


def test_a_crowd_is_cut_short() -> None:
    """Two hundred objects are thirty lines and a count."""
    p = Prediction.from_arrays(size=(64, 48), boxes=[[1, 2, 3, 4]] * 200)
    shown = _Texts(p._repr_html_())
    assert shown.tags.count("tr") == 31
    assert "and 170 more" in shown.texts
