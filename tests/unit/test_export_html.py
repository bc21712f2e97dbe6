"""The report: what is in the page, how much, what becomes of bad input. A browser opens it elsewhere."""

from __future__ import annotations

import base64
import gc
import hashlib
import io
import json
import os
import re
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from predictions import Black, found, zoo

from predsession import DiskError, ItemError, Prediction, SourceError, save_predictions
from predsession.export import thumbnails
from predsession.export.html import HtmlWriter
from predsession.export.sketches import MOST_OBJECTS, MOST_POINTS, simplified, sketch_of
from predsession.export.target import Existing, Target
from predsession.export.thumbnails import MOST_BYTES, SIDE, packed, small_picture
from predsession.prediction import display
from predsession.wire.geometry import MaskCrop
from predsession.wire.meta import ModelMeta

HOSTILE = '</script><img src=x onerror="window.pwned=1"><!-- <script>\n\u2028\udcff'
BLOCK = re.compile(r'<script type="application/json" class="data">\n(.*?)(?:</script>|\Z)', re.DOTALL)


def said(page: Path | str) -> list[dict[str, object]]:
    """Return what the data of a page say, line by line, without what was cut short."""
    text = page if isinstance(page, str) else page.read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(text) for line in block.split("\n") if line]
    whole = []
    for line in lines:
        try:
            whole.append(json.loads(line))
        except ValueError:
            assert line is lines[-1]
    return whole


def items(page: Path | str) -> list[dict[str, object]]:
    """Return the items of a page."""
    return [each["item"] for each in said(page) if "item" in each]


def written(path: Path, *outcomes: Prediction | ItemError) -> HtmlWriter:
    """Write a page."""
    with HtmlWriter(path) as writer:
        for outcome in outcomes:
            writer.write(outcome)
        writer.finish()
    return writer


def failed(index: int = 1, **more: str) -> ItemError:
    """Return the error of an item."""
    fields = {"name": "x.jpg", "path": "photos/x.jpg", "reason": "empty file", **more}
    return ItemError("a sentence", index=index, **fields)


def photo(path: Path, size: tuple[int, int] = (640, 480), **more: object) -> Path:
    """Write a photograph: the left half red, the right half blue."""
    pixels = np.zeros((size[1], size[0], 3), np.uint8)
    pixels[:, : size[0] // 2, 0] = pixels[:, size[0] // 2 :, 2] = 200
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **more)
    return path


def test_page_says_what_was_found(tmp_path: Path) -> None:
    """Items in their order, each class once before it is first needed, boxes and scores as they are."""
    path = photo(tmp_path / "in" / "a" / "1.jpg")
    made = [
        Prediction.from_arrays(
            size=(640, 480),
            boxes=[[1.25, 2, 30, 40], [5, 6, 70.5, 80]],
            scores=[0.25, 0.75],
            class_ids=[1, 0],
            class_names=["cat", "dog"],
            track_ids=[-1, 7],
            path=path,
            index=index,
        )
        for index in range(2)
    ]
    saved = save_predictions([made[0], failed(), made[1]], tmp_path / "new" / "r.html", root=tmp_path / "in")
    assert (saved.format, saved.predictions, saved.errors, saved.left_out) == ("html", 2, 1, {})
    lines = said(tmp_path / "new" / "r.html")
    assert [next(iter(line)) for line in lines] == ["class", "class", "item", "item", "item", "end"]
    colours = [made[0].meta.color(title) for title in ("dog", "cat")]
    assert [line["class"] for line in lines[:2]] == [
        [number, title, "#{:02X}{:02X}{:02X}".format(*color)]
        for number, title, color in zip((1, 0), ("dog", "cat"), colours, strict=True)
    ]
    first, error, _ = items(tmp_path / "new" / "r.html")
    assert first["objects"] == [[0, 0.75, 5, 6, 70.5, 80, 7], [1, 0.25, 1.2, 2, 30, 40]]
    assert (first["index"], first["name"], first["path"]) == (0, "a/1.jpg", str(path))
    assert (first["size"], first["file"]) == ([640, 480], "../in/a/1.jpg")
    assert error == {"index": 1, "name": "x.jpg", "path": "photos/x.jpg", "error": "empty file"}
    small = Image.open(io.BytesIO(base64.b64decode(first["thumb"])))
    assert small.size == (SIDE, SIDE * 480 // 640)
    assert small.getpixel((20, 50))[0] > 150 > 60 > small.getpixel((20, 50))[2]


def test_what_comes_from_outside_is_data(tmp_path: Path) -> None:
    """Names, classes, paths and reasons with markup, line ends and what is no text change nothing else."""
    plain, hostile = tmp_path / "plain.html", tmp_path / "hostile.html"
    written(plain, found(name="a", classes=["b", "b"]), failed())
    written(
        hostile,
        found(name=HOSTILE, classes=[HOSTILE, HOSTILE], path=HOSTILE),
        failed(name=HOSTILE, path=HOSTILE, reason=HOSTILE),
    )
    text = hostile.read_text(encoding="utf-8")
    assert text.count("<") == plain.read_text(encoding="utf-8").count("<")
    first, second = items(hostile)
    assert first["name"] == first["path"] == HOSTILE
    assert (second["name"], second["path"], second["error"]) == (HOSTILE, HOSTILE, HOSTILE)
    assert said(hostile)[0]["class"][1] == HOSTILE


def test_title_is_escaped(tmp_path: Path) -> None:
    """The page is called by the folder of its pictures, whatever that is called."""
    target = Target(path=tmp_path / "r.html", root="/x/<b>&amp; {{script}}")
    with HtmlWriter(target) as writer:
        writer.finish()
    assert "<title>Predictions: &lt;b&gt;&amp;amp; {{script}}</title>" in target.path.read_text("utf-8")


def test_policy_lets_in_what_the_page_holds_and_nothing_else(tmp_path: Path) -> None:
    """The hashes in the policy are those of the one script and the one style; no address is allowed."""
    written(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    for tag, name in (("<style>", "style"), ('<script type="module">', "script")):
        inside = text.split(tag)[1].split(f"</{name}>")[0]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    # The one address in the page is the name of SVG, which is never fetched.
    assert set(re.findall(r"\bhttps?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(?:link|script|img)[^>]+(?:src|href)=\"(?!data:)", text)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_page_that_was_cut_off_has_what_came_before(tmp_path: Path, share: float) -> None:
    """Cut anywhere, the page has the first of its items, whole; only the end's own mark is missing."""
    path = tmp_path / "r.html"
    with HtmlWriter(path) as writer:
        for index in range(150):  # more than two blocks
            writer.write(found(index=index))
        size = path.stat().st_size
    data = path.read_bytes()
    assert len(data) == size, "every outcome is handed over at once"
    assert [item["index"] for item in items(path)] == list(range(150))
    begin = data.index(b'class="data"')
    cut = data[: begin + 60 + int((len(data) - begin - 60) * share)].decode()
    assert [item["index"] for item in items(cut)] == list(range(len(items(cut))))
    assert len(items(cut)) in range(int(150 * share) - 3, int(150 * share) + 2)
    assert not any("end" in line for line in said(cut))


@pytest.mark.parametrize("kind", ["webp", "jpeg"])
@pytest.mark.parametrize("size", [(3000, 2000), (400, 400), (3000, 3), (1, 1)])
def test_thumbnail_is_small_whatever_it_shows(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], kind: str
) -> None:
    """Noise, the worst there is, keeps the bound, and the picture its shape, in either kind."""
    monkeypatch.setattr(thumbnails, "KIND", kind)
    noise = np.random.default_rng(3).integers(0, 256, (size[1], size[0], 3), np.uint8)
    picture = small_picture(Prediction.from_arrays(image=noise, boxes=np.zeros((0, 4))))
    assert max(picture.size) == min(max(size), SIDE)
    data = packed(picture)
    assert len(data) <= MOST_BYTES
    width, height = Image.open(io.BytesIO(data)).size
    assert width / height == pytest.approx(picture.width / picture.height, rel=0.05)


def test_large_photograph_is_decoded_scaled_and_upright(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JPEG of 20 megapixels on its side becomes an upright thumbnail, and is never decoded at its size."""
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned to the right: the left half becomes the upper one
    path = photo(tmp_path / "p.jpg", (5200, 3900), exif=exif)
    monkeypatch.setattr(display.Shown, "load_image", lambda self: pytest.fail("it was decoded whole"))
    made = Prediction.from_arrays(size=(3900, 5200), boxes=np.zeros((0, 4)), path=path)
    picture = small_picture(made)
    assert picture.size == (SIDE * 3 // 4, SIDE)
    above, below = picture.getpixel((100, 40)), picture.getpixel((100, 250))
    assert above[0] > 150 > 60 > above[2]
    assert below[2] > 150 > 60 > below[0]


def test_picture_that_is_gone_leaves_its_boxes(tmp_path: Path) -> None:
    """No file, a loader that fails, another picture there: the boxes stay, the reason is said and counted."""

    def broken() -> np.ndarray:
        raise RuntimeError("the camera is off")

    other = photo(tmp_path / "other.jpg", (100, 50))
    writer = written(
        tmp_path / "r.html",
        found(path=str(tmp_path / "gone.jpg")),
        found(loader=broken),
        found(path=str(other)),
        found(path="a\0b.jpg"),
        found(loader=Black()),
    )
    assert writer.left_out == {"pictures that are gone": 4}
    pages = items(tmp_path / "r.html")
    assert [len(page["objects"]) for page in pages] == [2] * 5
    assert pages[0]["gone"] == "its file is no longer there"
    assert pages[1]["gone"] == "the camera is off"
    assert pages[2]["gone"] == "it is now 100 x 50 pixels, the prediction was made on 64 x 48"
    assert pages[3]["gone"]
    assert all("file" not in page and "thumb" not in page for page in pages[:4])
    assert "thumb" in pages[4]


def test_damaged_prediction_is_among_what_failed(tmp_path: Path) -> None:
    """An object that cannot be read makes a failure that names it, not an exception."""
    item = {"annotation": {"size": {"width": 9, "height": 9}, "objects": [{"geometryType": "blob"}]}}
    bad = Prediction.from_json({**item, "name": "bad.jpg", "index": 3})
    writer = written(tmp_path / "r.html", bad, found(index=4))
    assert writer.left_out["damaged predictions"] == 1
    assert [page["index"] for page in items(tmp_path / "r.html")] == [3, 4]
    assert "blob" in items(tmp_path / "r.html")[0]["error"]


def test_path_that_cannot_be_looked_at_is_a_picture_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the file system says of a path, the page goes on, and says it in the picture's place."""
    locked, real = str(tmp_path / "locked" / "1.jpg"), os.stat

    def look(path: object, *args: object, **more: object) -> os.stat_result:
        if str(path) == locked:
            raise PermissionError(13, "Permission denied", locked)
        return real(path, *args, **more)

    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    (tmp_path / "folder.jpg").mkdir()
    monkeypatch.setattr(os, "stat", look)
    paths = {
        locked: "its file cannot be read: permission denied",
        f"/{'x' * 5000}.jpg": "its file cannot be read: file name too long",
        "/nul\0.jpg": "its file is no longer there",
        f"{tmp_path}/loop.jpg": "its file cannot be read: too many levels of symbolic links",
        f"{tmp_path}/folder.jpg": "it is no file",
    }
    saved = save_predictions([found(path=path) for path in paths], tmp_path / "r.html")
    assert [item["gone"] for item in items(tmp_path / "r.html")] == list(paths.values())
    assert saved.left_out == {"pictures that are gone": len(paths)}


def test_reasons_are_for_readers_of_a_page(tmp_path: Path) -> None:
    """What a message says to those who write Python is not in the page."""
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    written(tmp_path / "r.html", found(), found(path=tmp_path / "bad.jpg"))
    none, bad = (str(item["gone"]) for item in items(tmp_path / "r.html"))
    assert none == "it was not kept"
    assert bad.startswith(f"the picture '{tmp_path / 'bad.jpg'}' cannot be read (")
    assert "image=" not in bad


def test_score_that_is_missing_is_not_made_up(tmp_path: Path) -> None:
    """An object without a score has none in the page either."""
    made = zoo()
    item = made.to_json()
    item["annotation"]["objects"][0]["tags"] = []
    sketch = sketch_of(Prediction.from_json(item), lambda title: 0)
    assert [each[1] for each in sketch.objects].count(None) == 1


def test_every_geometry_is_drawn() -> None:
    """Masks, polygons, lines, points, skeletons, oriented boxes, cuboids have figures; rectangles a box."""
    made = zoo()
    sketch = sketch_of(made, lambda title: made.meta.class_id(title))
    assert len(sketch.objects) == len(made)
    assert sketch.left_out == {"hidden keypoints": 1}
    figures = {}
    for entry in sketch.objects:
        row = made.meta.names[entry[0]]
        figures[row] = entry[7] if len(entry) > 7 else {}
    kinds = dict(zip(made.classes, made.shapes, strict=True))
    for title, figure in figures.items():
        drawn = {"line": "lines", "graph": "points", "point": "points", "rectangle": None}.get(
            kinds[title], "rings"
        )
        assert (drawn in figure) if drawn else not figure, (title, kinds[title], figure)
    bones = next(figure["bones"] for title, figure in figures.items() if kinds[title] == "graph")
    points = next(figure["points"] for title, figure in figures.items() if kinds[title] == "graph")
    assert max(bones, default=0) < len(points) / 2


def test_mask_of_twenty_megapixels_becomes_a_short_outline() -> None:
    """A disc of 20 megapixels with a hole has few points, and its outline the disc's area within 2 %."""
    page = Image.new("L", (4500, 4500))
    ImageDraw.Draw(page).ellipse((250, 250, 4249, 4249), fill=255)
    ImageDraw.Draw(page).ellipse((1650, 1650, 2849, 2849), fill=0)
    disc = np.asarray(page) > 0
    made = Prediction.from_arrays(size=(5000, 4600), masks=[MaskCrop(300, 50, disc)], scores=[0.5])
    ((*_, figure),) = sketch_of(made, lambda title: 0).objects
    rings = [np.reshape(ring, (-1, 2)) for ring in figure["rings"]]
    assert sum(map(len, rings)) < 120
    areas = [
        abs(ring[:, 0] @ np.roll(ring[:, 1], -1) - ring[:, 1] @ np.roll(ring[:, 0], -1)) / 2 for ring in rings
    ]
    assert areas[0] - areas[1] == pytest.approx(disc.sum(), rel=0.02)
    assert [*rings[0].min(axis=0), *rings[0].max(axis=0)] == pytest.approx([550, 300, 4550, 4300], abs=18)


def test_thin_and_tiny_masks_are_still_there() -> None:
    """A line of one pixel across a large picture, and a single pixel, keep an outline at their place."""
    thin = np.ones((1, 4000), bool)
    made = Prediction.from_arrays(
        size=(4000, 3000),
        masks=[MaskCrop(0, 1000, thin), MaskCrop(3999, 2999, np.ones((1, 1), bool))],
    )
    for entry, box in zip(sketch_of(made, lambda title: 0).objects, made.boxes, strict=True):
        ring = np.reshape(entry[7]["rings"][0], (-1, 2))
        assert [*ring.min(axis=0), *ring.max(axis=0)] == box.tolist()


@pytest.mark.parametrize("closed", [True, False])
def test_simpler_line_looks_the_same(closed: bool) -> None:
    """No point that is left out lies farther from the line than is allowed; corners and order are kept."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        points = np.cumsum(rng.normal(size=(rng.integers(1, 60), 2)), axis=0)
        fewer = simplified(points, 0.7, closed=closed)
        way = np.concatenate((fewer, fewer[:1])) if closed else fewer
        starts, along = way[:-1, None], np.diff(way, axis=0)[:, None]
        length = np.maximum((along**2).sum(-1), 1e-12)
        share = np.clip(((points - starts) * along).sum(-1) / length, 0, 1)
        distances = np.linalg.norm(points - starts - share[..., None] * along, axis=-1)
        if len(way) > 1:
            assert distances.min(axis=0).max() <= 0.7 + 1e-9
        assert fewer[0].tolist() == points[0].tolist()
        places = [points.tolist().index(point) for point in fewer.tolist()]
        assert places == sorted(places)
    square = np.array([[0.0, 0], [5, 0], [10, 0], [10, 10], [0, 10], [0, 5]])
    assert simplified(square, 0.5, closed=True).tolist() == [[0, 0], [10, 0], [10, 10], [0, 10]]


def test_crowd_is_bounded_and_counted(tmp_path: Path) -> None:
    """Of more objects than a page takes the surest are kept; outlines end where the points are used up."""
    count = MOST_OBJECTS + 5
    scores = np.linspace(0.1, 0.9, count)
    crowd = found(boxes=np.tile([1, 2, 3, 4], (count, 1)), scores=scores)
    stars = [rng_star(number) for number in range(40)]
    outlined = Prediction.from_arrays(size=(300, 300), polygons=stars)
    writer = written(tmp_path / "r.html", crowd, outlined)
    first, second = items(tmp_path / "r.html")
    assert len(first["objects"]) == MOST_OBJECTS
    assert min(entry[1] for entry in first["objects"]) > scores[4]
    assert first["further"] == [[0, *([round(score, 4), 1] for score in scores[4::-1].tolist())]]
    figures = [entry[7] for entry in second["objects"] if len(entry) > 7]
    used = sum(len(figure["rings"][0]) // 2 for figure in figures)
    assert 0 < used <= MOST_POINTS
    assert len(second["objects"]) == 40 == len(figures) + writer.left_out["outlines"]
    assert writer.left_out["objects"] == 5
    assert "further" not in second
    assert len(json.dumps(first)) < 60 * MOST_OBJECTS


def rng_star(seed: int) -> np.ndarray:
    """Return a polygon of which no point can be left out."""
    turns = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    radius = np.where(np.arange(60) % 2, 140, 40) - seed / 10
    return np.stack((150 + radius * np.cos(turns), 150 + radius * np.sin(turns)), axis=1)


def test_frames_are_asked_for_once_and_in_order(tmp_path: Path) -> None:
    """A clip is read from its beginning to its end: each frame is loaded once, when it is written."""
    asked: list[int] = []

    def loader(number: int) -> display.Loader:
        return lambda: asked.append(number) or np.zeros((48, 64, 3), np.uint8)

    clip = str(photo(tmp_path / "clip.jpg"))  # it is there, and must not be taken for a picture
    frames = (
        found(name="c.mp4", path=clip, frame_index=number, index=number, loader=loader(number))
        for number in range(5)
    )
    written(tmp_path / "r.html", *frames)
    assert asked == [0, 1, 2, 3, 4]
    last = items(tmp_path / "r.html")[-1]
    assert last["frame"] == 4
    assert "file" not in last


def test_what_is_there_is_not_lost(tmp_path: Path) -> None:
    """A page is refused or, if asked for, replaced when the first outcome comes; it cannot be added to."""
    path = tmp_path / "r.html"
    path.write_text("old")
    with pytest.raises(SourceError, match="is there already"):
        HtmlWriter(path)
    with HtmlWriter(Target(path=path, existing=Existing.OVERWRITE)):
        pass
    assert path.read_text() == "old"
    for existing in (Existing.OVERWRITE, Existing.RESUME):
        with HtmlWriter(Target(path=path, existing=existing)) as writer:
            writer.write(found(index=6))
            writer.finish()
        assert [item["index"] for item in items(path)] == [6]
        assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(SourceError, match="added to"):
        HtmlWriter(Target(path=path, existing=Existing.APPEND))
    with pytest.raises(SourceError, match="is a folder"):
        HtmlWriter(tmp_path)


def test_full_disk_names_the_file() -> None:
    """No room is one error of ours, which names the page."""
    writer = HtmlWriter(Path("/dev/full"))
    with pytest.raises(DiskError, match="/dev/full"):
        writer.write(found())
    with suppress(DiskError):
        writer.close()


def test_memory_does_not_grow_with_the_pictures(tmp_path: Path) -> None:
    """Of 400 pictures nothing is kept but the names of their classes."""
    meta = ModelMeta.from_names(["a"])
    with HtmlWriter(tmp_path / "r.html") as writer:
        tracemalloc.start()
        kept = []
        for index in range(400):
            writer.write(found(name="x" * 500 + str(index), index=index, class_ids=[0, 0], meta=meta))
            if index in (100, 399):
                gc.collect()
                kept.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        writer.finish()
    assert kept[1] - kept[0] < 80_000, "the names alone would be 150,000"
    assert (tmp_path / "r.html").stat().st_size > 200_000
