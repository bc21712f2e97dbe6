"""Odd pictures, over the wire to the model: decoded as a person would see them, or an error of that item."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import makers
import numpy as np
import pytest
from server_kit import Caller, Server

SPY = '''
class Spy:
    """Answers the colours of both halves and the corner as the score of a box that spans the picture."""
    classes = ["picture"]
    tags = ["left", "right", "corner"]
    def predict(self, images, settings):
        results = []
        for image in images:
            h, w, _ = image.shape
            spots = {"left": image[h - 2, w // 4], "right": image[h - 2, 3 * w // 4], "corner": image[1, 1]}
            tags = {name: ",".join(map(str, spot)) for name, spot in spots.items()}
            results.append({"boxes": [[0, 0, w, h]], "scores": [1.0], "tags": tags})
        return results
'''


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """Calls a model that tells what it sees."""
    path = tmp_path_factory.mktemp("spy") / "spy.py"
    path.write_text(SPY)
    with Server(f"{path}:Spy", "--limit-pixels", "1000000") as server, Caller(server.url) as one:
        yield one


def seen(caller: Caller, data: bytes, name: str = "x.jpg") -> dict[str, Any]:
    """Return what the model saw: the size, and colours by place."""
    reply = caller.upload([(name, data)], endpoint="inference_image")
    assert reply.status_code == 200, reply.text
    annotation = reply.json()["annotation"]
    spots = {tag["name"]: [int(each) for each in tag["value"].split(",")] for tag in annotation["tags"]}
    return {**spots, "size": (annotation["size"]["width"], annotation["size"]["height"])}


def check(found: dict[str, Any], size: tuple[int, int] = makers.SIZE) -> None:
    """Check the colours of the makers' picture."""
    assert found["size"] == size
    for place, colour in (("left", makers.RED), ("right", makers.BLUE), ("corner", makers.GREEN)):
        assert np.abs(np.array(found[place]) - colour).max() < 60, (place, found[place])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_exif_orientation_is_applied(caller: Caller, kind: str, orientation: int) -> None:
    """Whatever way the camera was held, the model sees the picture upright, and ``size`` says so."""
    check(seen(caller, makers.turned(kind, orientation)))


@pytest.mark.parametrize("maker", ["cmyk_jpeg", "palette_png_with_transparency", "rgba_png", "animated_gif"])
def test_colour_models(caller: Caller, maker: str) -> None:
    """CMYK, palette, alpha and the first frame of an animation arrive as RGB."""
    found = seen(caller, getattr(makers, maker)())
    assert found["size"] == makers.SIZE
    if maker != "animated_gif":
        assert found["left"][0] > found["left"][2], "the left half is red"


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "TIFF", "PPM"])
def test_formats(caller: Caller, kind: str) -> None:
    """What is listed is decoded, whatever the name says."""
    check(seen(caller, makers.encoded(makers.picture(), kind), "wrong.name"))


def test_sixteen_bits_are_scaled(caller: Caller) -> None:
    """40000 of 65535 is 156 of 255, not 255."""
    assert seen(caller, makers.png16(value=40_000))["left"] == [156, 156, 156]
    assert np.abs(np.array(seen(caller, makers.rgb_png16(value=40_000))["left"]) - 156).max() <= 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty file"),
        (b"this is text", "not a picture of a known format"),
        (makers.truncated_jpeg(), "damaged picture"),
        (makers.truncated(makers.png((200, 200))), "damaged picture"),
        (makers.bomb_png_header(), "50000 x 50000 pixels; the limit is 1000000"),
        (b"GIF89a", "not a picture of a known format"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture of a known format"),
    ],
    ids=["empty", "text", "cut jpeg", "cut png", "bomb", "header only", "postscript"],
)
def test_bad_pictures_are_errors_in_their_place(caller: Caller, data: bytes, words: str) -> None:
    """A bad picture between good ones is an error of its own; to a stock client the upload is refused."""
    good = makers.png()
    items, last = caller.read(caller.submit([good, data, good], item_errors=True))
    assert ["error" in item for item in items] == [False, True, False]
    assert items[1]["error"]["type"] == "BadImageError"
    assert words in items[1]["error"]["message"]
    assert last["stage"] == "Finished"
    reply = caller.upload([good, ("which.jpg", data), good])
    assert reply.status_code == 500
    assert "'which.jpg': " in reply.json()["detail"]["message"]
    assert words in reply.json()["detail"]["message"]


def test_stock_server_guesses_what_was_cut_off(tmp_path: Path) -> None:
    """With --stock a truncated JPEG is accepted and its rest guessed, as the recorded server does."""
    (tmp_path / "spy.py").write_text(SPY)
    with Server(f"{tmp_path}/spy.py:Spy", "--stock") as server, Caller(server.url) as caller:
        assert seen(caller, makers.truncated_jpeg())["size"] == (160, 120)


def test_names_are_never_paths(tmp_path: Path) -> None:
    """Names that climb, are absolute, empty or very odd are only names: nothing is written outside, and each
    answers for its own picture.
    """
    data = tmp_path / "data"
    (tmp_path / "spy.py").write_text(SPY)
    names = ["../../climb.png", "/etc/absolute.png", "", "..", "a/b/c.png", "nul\x01.png", *makers.ODD_NAMES]
    with Server(f"{tmp_path}/spy.py:Spy", "--data", str(data)) as server, Caller(server.url) as caller:
        uuid = caller.submit([(name, makers.png((40 + place, 20))) for place, name in enumerate(names)])
        items, _ = caller.drain(uuid)
        widths = [item["annotation"]["size"]["width"] for item in items]
        assert widths == [40 + place for place in range(len(names))]
    outside = {path.name for path in tmp_path.rglob("*")} - {"data", "spy.py", "__pycache__"}
    assert not {name for name in outside if name.endswith((".png", ".jpg"))}


def test_long_names_are_refused() -> None:
    """A name over the limit is a 400 that says which file."""
    with Server("pixels", "--limit-name", "20") as server, Caller(server.url) as caller:
        reply = caller.upload([("x" * 21, makers.png())])
        assert (reply.status_code, reply.json()["success"]) == (400, False)
        assert "file 1" in reply.json()["message"]
