"""What notebooks show of several predictions and of a session: complete, escaped, bounded, never an error."""

from __future__ import annotations

import base64
import html.parser
import io
import re
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from predictions import Black, found

from predsession import ItemError, Prediction, grid
from predsession.inputs.images import image_loader
from predsession.inputs.items import ArrayContent, PictureContent, item_at
from predsession.prediction.markup import described
from predsession.progress import SessionProgress
from predsession.showing import FIRST, SessionState, Showcase, session_html

HOSTILE = '<script>alert(1)</script>" onload="x\ud800'
ALLOWED = {
    "b", "br", "div", "em", "figcaption", "figure", "i", "img", "p", "span",
    "table", "tbody", "td", "th", "thead", "tr",
}  # fmt: skip


class _Page(html.parser.HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        source.encode("utf-8")
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.texts = ""
        self.feed(source)
        assert self.open == [], "each element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in {"img", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts += data


def pictured(**more: object) -> Prediction:
    """Return a prediction whose picture is black."""
    return found(loader=Black(), **more)


def state(**more: object) -> SessionState:
    """Return the state of a session that runs."""
    values = {
        "title": "photos on http://x",
        "progress": SessionProgress(20, 40, "Running inference...", 12, 0, 0),
        "ended": False,
        "closed": False,
        "is_done": False,
        "error": None,
        "errors": [],
        **more,
    }
    return SessionState(**values)


# -- a grid --------------------------------------------------------------------------------------------


def test_a_grid_has_every_outcome_in_its_place() -> None:
    """Pictures with name and counts, an item error with its reason, a picture that is gone with why."""
    outcomes = [
        pictured(name="a.png", classes=["cat", "dog"]),
        ItemError("b.png: no image", index=1, name="b.png", reason="no image"),
        found(path="gone.png", classes=["cat", "cat"]),
        pictured(name="d.png", boxes=[]),
    ]
    made = grid(outcomes)
    page = _Page(made._repr_html_())
    places = [page.texts.index(text) for text in ("a.png", "no image", "b.png", "gone.png", "d.png")]
    assert places == sorted(places)
    assert page.tags.count("figure") == 4
    assert page.tags.count("img") == 2
    for text in ("cat\xa01", "dog\xa01", "item error", "no picture", "nothing found"):
        assert text in page.texts
    assert repr(made) == "<Grid of 4 predictions, 1 of them item errors>"


def test_a_grid_says_what_it_leaves_out() -> None:
    """Of a list how many more there are; of an iterator only that there is a limit, as it takes no more."""
    outcomes = [pictured(name=f"{number}.png") for number in range(5)]
    assert "2 more are not shown" in grid(outcomes, limit=3)._repr_html_()
    source = iter(outcomes)
    some = grid(source, limit=3)
    assert "the first 3" in some._repr_html_()
    assert next(source).name == "3.png"
    assert "first" not in grid(iter(outcomes[:2]), limit=3)._repr_html_()
    assert "no predictions" in grid([])._repr_html_()


def test_an_item_error_says_which_input_and_why() -> None:
    """At the end of a cell, in a list, in a debugger."""
    error = ItemError("b.png: no image", index=1, name="b.png", reason="no image")
    assert repr(error) == "ItemError(index=1, name='b.png', reason='no image')"


def test_a_stage_of_one_job_is_not_the_sessions() -> None:
    """The server's word for a job that is over is not said of a session that goes on."""
    over = SessionProgress(1, 4, "Finished", 1, 0, 0)
    assert state().words() == "Running inference..."
    assert state(progress=over).words() == "running"
    assert state(progress=over, ended=True).words() == "finished"


def test_a_grid_reads_pictures_when_it_is_shown() -> None:
    """Making it decodes nothing; showing it twice reads twice, as nothing is kept."""
    loader = Black()
    made = grid([found(loader=loader)] * 3)
    assert loader.calls == 0
    made._repr_html_()
    made._repr_html_()
    assert loader.calls == 6


def test_a_grid_s_pictures_are_small() -> None:
    """A picture of 3000 pixels takes a few thousand bytes."""
    p = Prediction.from_arrays(image=np.zeros((1500, 3000, 3), np.uint8))
    assert len(grid([p])._repr_html_()) < 8_000


@pytest.mark.parametrize("wrong", [{"columns": 0}, {"limit": 0}, {"columns": 2.5}, {"limit": True}])
def test_a_grid_refuses_what_makes_none(wrong: dict[str, int]) -> None:
    """The message names the argument; nothing is taken from the source."""
    source = iter([pictured()])
    with pytest.raises(ValueError, match=next(iter(wrong))):
        grid(source, **wrong)
    assert next(source)


def test_names_are_only_text() -> None:
    """Names, classes, reasons and errors are shown as they are, and make no element and no attribute."""
    outcomes = [
        pictured(name=HOSTILE, classes=[HOSTILE, "x"]),
        ItemError(HOSTILE, name=HOSTILE, reason=HOSTILE),
        found(path=f"/{HOSTILE.encode('ascii', 'ignore').decode()}", classes=[HOSTILE, HOSTILE]),
    ]
    showcase = Showcase()
    for each in outcomes:
        if isinstance(each, Prediction):
            showcase.add(each)
    failed = state(title=HOSTILE, error=RuntimeError(HOSTILE), errors=[outcomes[1]], closed=True)
    for source in (grid(outcomes)._repr_html_(), session_html(failed, showcase)):
        page = _Page(source)
        assert set(page.tags) <= ALLOWED
        assert not {name for name in page.attributes if name.startswith("on")}
        assert "<script>alert(1)</script>" in page.texts


# -- a session -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "Running inference...: 12 of 40 taken, 20 arrived"),
        ({"ended": True, "closed": True}, "finished:"),
        ({"closed": True}, "closed:"),
        ({"closed": True, "error": KeyboardInterrupt()}, "interrupted:"),
        ({"closed": True, "error": ValueError("why")}, "failed:"),
        ({"is_done": True}, "stopped:"),
        ({"progress": SessionProgress(7, None, "x", 5, 0, 0)}, "x: 5 taken, 7 arrived"),
        ({"progress": SessionProgress(40, 40, "x", 5, 0, 0), "is_done": True}, "all predictions are here:"),
    ],
)
def test_a_session_says_where_it_stands(more: dict[str, object], words: str) -> None:
    """State and counts in words, whatever is known."""
    page = _Page(session_html(state(**more), Showcase()))
    assert words in page.texts
    assert ("ValueError: why" in page.texts) is ("error" in more and isinstance(more["error"], ValueError))


def test_a_session_s_bar_never_leaves_its_frame() -> None:
    """Two lengths, what was taken and what has arrived; a total that was too small makes neither too long."""
    source = session_html(state(progress=SessionProgress(50, 40, "x", 10, 0, 0)), Showcase())
    assert [float(each) for each in re.findall(r"width:([\d.]+)%;background", source)] == [100.0, 25.0]


def test_a_session_shows_classes_first_results_and_errors() -> None:
    """The most frequent classes with a row of their own, the first few pictures, the first ten errors."""
    showcase = Showcase()
    names = [f"class {number}" for number in range(15)]
    for index in range(20):
        p = pictured(boxes=np.tile([1, 1, 9, 9], (16, 1)), classes=[*names, "class 14"], index=index)
        showcase.add(replace(p, name=f"{index}.png"))
    errors = [ItemError("x", index=number, name=f"bad {number}", reason="no image") for number in range(12)]
    page = _Page(session_html(state(errors=errors), showcase))
    assert page.texts.index("class 14") < page.texts.index("class 0")
    assert "others: 5100" in page.texts
    assert page.tags.count("figure") == FIRST
    assert "3.png" in page.texts
    assert "4.png" not in page.texts
    assert "12 item errors" in page.texts
    assert "bad 9" in page.texts
    assert "bad 10" not in page.texts
    assert "and 2 more" in page.texts


def test_a_session_keeps_no_picture_and_asks_no_server() -> None:
    """Loaders, which hold pictures or fetch them, are let go of: the picture is then not shown."""
    loader = Black()
    showcase = Showcase()
    showcase.add(found(loader=loader))
    assert "no picture" in _Page(session_html(state(), showcase)).texts
    assert loader.calls == 0


def test_a_session_over_arrays_shows_them_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first few, kept small, with their boxes; outside of a notebook none is read."""
    red = np.zeros((600, 900, 3), np.uint8)
    red[..., 0] = 200
    contents = [ArrayContent(red), PictureContent(Image.fromarray(red)), *[ArrayContent(red)] * 3]
    items = [item_at(index, content) for index, content in enumerate(contents)]
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    pages = []
    for _ in range(2):
        showcase = Showcase()
        for item in items:
            p = found(size=(900, 600), boxes=[[450, 300, 890, 590]], loader=image_loader(item))
            showcase.add(p)
        pages.append(session_html(state(), showcase))
        kept = sum(each.loader.small.nbytes for each in showcase._first if hasattr(each.loader, "small"))
        monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    assert pages[0].count("no picture") == FIRST
    assert pages[1].count("<img") == FIRST
    assert 0 < kept <= FIRST * 400 * 400 * 3
    shown = re.findall(r"base64,([^\"]+)", pages[1])[1]
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(shown))))
    assert picture[20, 20].tolist() == pytest.approx([200, 0, 0], abs=8)
    assert picture.shape == (267, 400, 3)
    edge = picture[200, 195:205].astype(int)  # the box's left edge, at 450 of 900 pixels
    assert abs(edge - [200, 0, 0]).sum(axis=1).max() > 60


def test_a_session_is_shown_by_two_threads_at_once() -> None:
    """Each gets all first pictures, and none is there twice."""
    showcase = Showcase()
    for index in range(FIRST):
        showcase.add(found(loader=Black(), path="clip.mp4", frame_index=index))
    with ThreadPoolExecutor(4) as pool:
        pages = list(pool.map(lambda _: showcase.pictures(), range(4)))
    assert [page.count("<figure") for page in pages] == [FIRST] * 4
    assert showcase.pictures() == pages[0]


def test_a_prediction_s_picture_says_what_it_shows() -> None:
    """To those who cannot see it, in as many words as can be listened to; markup is only text."""
    source = pictured(name="a<b.png", classes=["cat", "cat"])._repr_html_()
    assert 'alt="a&lt;b.png: cat 2"' in source
    many = described("x", {f"class {number}": number for number in range(50)})
    assert many.startswith("x: class 49 49, class 48 48")
    assert many.endswith("and 42 more")
    assert described("", {}) == "picture: nothing found"


def test_one_prediction_is_as_good_as_a_list_of_one() -> None:
    """A grid takes it, or an item error, alone."""
    assert len(grid(pictured())) == 1
    assert "no image" in grid(ItemError("x", reason="no image"))._repr_html_()
    assert len(grid([pictured()] * 3, limit=np.int64(2))) == 2


def test_a_session_reads_each_first_picture_once() -> None:
    """What was drawn is kept as it is shown: showing the session again decodes nothing."""
    loader = Black()
    showcase = Showcase()
    showcase.add(found(loader=loader, path="clip.mp4", frame_index=0))
    assert session_html(state(), showcase) == session_html(state(), showcase)
    assert loader.calls == 1


def test_what_is_remembered_does_not_grow() -> None:
    """A model that makes up a class for each picture fills no memory."""
    showcase = Showcase()
    for number in range(3000):
        showcase.add(found(classes=[f"a{number}", f"b{number}"]))
    assert len(showcase._counts) == len(showcase._colors) == 1000
    assert len(showcase._first) == FIRST


def test_damage_is_no_reason_to_fail() -> None:
    """A session whose memory is damaged shows what it can."""

    class Broken(Showcase):
        def classes(self) -> str:
            raise ZeroDivisionError("by nothing")

    assert "by nothing" in _Page(session_html(state(), Broken())).texts
