"""The report as it is seen and touched, in a real headless Chromium: handles, focus, tall pictures, paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect
from report_kit import NEEDS_CHROMIUM, SETTLED, Visiting, overflow, pictures, ringed

from predsession import ItemError, Prediction, save_predictions

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small report beside its pictures."""
    folder = tmp_path_factory.mktemp("report")
    save_predictions(pictures(folder / "photos"), folder / "report.html", root=folder / "photos")
    return folder / "report.html"


def by_mouse(page: Page, start: tuple[float, float], end: float) -> None:
    """Press at a place, move sideways, let go."""
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(end, start[1], steps=4)
    page.mouse.up()


def by_touch(page: Page, start: tuple[float, float], end: float) -> None:
    """Put a finger on a place, move it sideways, take it away."""
    send = page.context.new_cdp_session(page).send
    way = np.linspace(start[0], end, 5).tolist()
    for kind, places in (("touchStart", way[:1]), *(("touchMove", [x]) for x in way[1:]), ("touchEnd", [])):
        points = [{"x": x, "y": start[1]} for x in places]
        send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


@pytest.mark.parametrize("drag", [by_mouse, by_touch])
def test_handles_come_apart_again(
    visit: Visiting, report: Path, drag: Callable[[Page, tuple[float, float], float], None]
) -> None:
    """Where both ends lie on one another, at either end of the scale or within it, one can be drawn away."""
    here = visit(report, touch=drag is by_touch)
    track = here.page.locator("#least").bounding_box()

    def move(start: float, end: float) -> tuple[float, float]:
        places = [track["x"] + 8 + value * (track["width"] - 16) for value in (start, end)]
        drag(here.page, (places[0], track["y"] + track["height"] / 2), places[1])
        here.page.wait_for_function(SETTLED)
        least, most = (float(here.page.locator(f"#{end}-value").inner_text()) for end in ("least", "most"))
        return least, most

    assert move(0, 1) == (1, 1)
    assert move(1, 0.3) == (pytest.approx(0.3, abs=0.03), 1)
    assert move(1, 0.3) == (pytest.approx(0.3, abs=0.03), pytest.approx(0.3, abs=0.03))
    least, most = move(0.3, 0.6)
    assert (least, most) == (pytest.approx(0.3, abs=0.03), pytest.approx(0.6, abs=0.03))
    move(0.3, 0)
    assert move(0.6, 0) == (0, 0)
    assert move(0, 0.8) == (0, pytest.approx(0.8, abs=0.03))


@pytest.mark.parametrize("dark", [False, True])
def test_focus_is_seen_wherever_it_is(visit: Visiting, report: Path, dark: bool) -> None:
    """Cards with a picture, without one, of what failed, the grid, a row, a region: a ring all round."""
    here = visit(report, dark=dark)
    press = here.page.keyboard.press
    press("Tab")
    press("Enter")
    grid = here.page.locator("#grid")
    expect(grid).to_be_focused()
    assert min(ringed(grid)[::2]) > 0.8  # its upper and lower ends may lie outside of the window
    press("Tab")
    for at in (0, 4, 5):
        card = here.cards.nth(at)
        card.focus()
        press("ArrowRight")
        press("ArrowLeft" if at < 5 else "End")
        expect(card).to_be_focused()
        assert min(ringed(card)) > 0.8, at
    here.cards.first.focus()
    assert max(ringed(here.cards.nth(5))) < 0.2
    press("Enter")
    press("ArrowDown")
    row = here.page.locator("#found tbody tr").first
    expect(row).to_be_focused()
    assert min(ringed(row)) > 0.8
    press("ArrowRight")
    expect(here.page.locator("#found")).to_be_focused()
    assert min(ringed(here.page.locator("#found"))) > 0.8


def test_long_class_name_leaves_its_count_whole(visit: Visiting, tmp_path: Path) -> None:
    """The count stands on one line, whatever stands before it."""
    name = "a class with a name that is rather longer than a list of classes is wide"
    boxes = np.tile([1, 2, 30, 40], (1234, 1))
    many = Prediction.from_arrays(size=(64, 48), boxes=boxes, classes=[name] * 1234, scores=[0.5] * 1234)
    save_predictions([many], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    count = here.page.locator("#classes .count")
    expect(count).to_have_text("1,234")
    lines = (
        "each => { const all = document.createRange(); all.selectNodeContents(each);"
        " return all.getClientRects().length; }"
    )
    assert count.evaluate(lines) == 1


LONG = "a name that is longer than half of the place that there is"
SIZES = [(20, 6000), (6000, 20), (500, 5000)]
AT = "([x, y]) => document.elementsFromPoint(x, y).some((each) => each.matches('.label rect'))"


def test_labels_of_a_strip_are_whole(visit: Visiting, tmp_path: Path) -> None:
    """However thin a picture is, the names of its objects can be read, and the picture itself can be had."""
    shares = np.array([[0.1, 0.1, 0.4, 0.2], [0.5, 0.6, 0.9, 0.8]])
    strips = []
    for at, size in enumerate(SIZES):
        Image.new("RGB", size, (90, 60, 30)).save(tmp_path / f"{at}.png")
        strips.append(
            Prediction.from_arrays(
                size=size, boxes=shares * np.tile(size, 2), classes=["a name", LONG],
                scores=[0.5, 0.25], path=tmp_path / f"{at}.png", name=f"{at}.png", index=at,
            )
        )  # fmt: skip
    save_predictions(strips, tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.cards.first.click()
    labels = here.page.locator("#sheet .label")
    for at in range(len(SIZES)):
        expect(here.page.locator("#sheet img")).to_have_attribute("src", f"{at}.png")
        expect(labels.locator("text")).to_have_text(["a name  0.50", f"{LONG}  0.25"])
        stage = here.page.locator("#stage").bounding_box()
        for each in labels.all():
            label, written = (each.locator(part).bounding_box() for part in ("rect", "text"))
            assert written["width"] <= label["width"]
            assert label["x"] >= stage["x"] - 1
            assert label["x"] + label["width"] <= stage["x"] + stage["width"] + 1
            # That it is drawn, not only laid out: its ground is seen at its left and at its right end.
            y = label["y"] + label["height"] / 2
            for x in (label["x"] + 2, label["x"] + label["width"] - 2):
                assert here.page.evaluate(AT, [x, y]), (SIZES[at], x)
        here.page.keyboard.press("ArrowRight")
    link = here.page.locator("#original")
    expect(link).to_have_attribute("href", f"{at}.png")
    with here.page.context.expect_page() as opened:
        link.click()
    assert opened.value.url == (tmp_path / f"{at}.png").as_uri()
    assert here.complaints == []


def test_original_is_offered_only_while_it_is_there(visit: Visiting, report: Path, tmp_path: Path) -> None:
    """A page that was moved away, and a picture that is missing or failed, lead nowhere."""
    here = visit(report)
    link = here.page.locator("#original")
    here.cards.first.click()
    expect(link).to_be_visible()
    link.focus()
    for _ in range(4):
        here.page.keyboard.press("ArrowRight")
    expect(here.page.locator("#detail-name")).to_have_text("c.jpg")
    expect(link).to_be_hidden()
    expect(here.page.locator("#found")).to_be_focused()
    (tmp_path / "moved.html").write_bytes(report.read_bytes())
    away = visit(tmp_path / "moved.html")
    away.cards.first.click()
    expect(away.page.locator("#original")).to_be_hidden()


def test_keys_are_told_where_they_do_something(visit: Visiting, report: Path) -> None:
    """Without objects nothing is said of going through them; alone, nothing of other pictures."""
    here = visit(report)
    objects, others = here.page.locator("#object-keys"), here.page.locator("#picture-keys")
    here.cards.nth(2).click()
    expect(here.page.locator("#detail-note")).to_have_text("0 objects")
    expect(objects).to_be_hidden()
    expect(others).to_be_visible()
    here.page.keyboard.press("ArrowLeft")
    expect(objects).to_be_visible()
    here.page.keyboard.press("Escape")
    here.page.locator("#name-search").fill("c.jpg")
    here.shows(1, 1)
    here.cards.first.click()
    expect(others).to_be_hidden()


def test_facts_are_whole_on_a_phone(visit: Visiting, tmp_path: Path) -> None:
    """A long name and a long path go on in the next line: all of it can be seen, or be scrolled to."""
    path = tmp_path / ("a rather long folder " * 3) / ("of photographs " * 4) / f"{'long' * 12}.png"
    path.parent.mkdir(parents=True)
    Image.new("RGB", (60, 40)).save(path)
    found = Prediction.from_arrays(size=(60, 40), boxes=[[1, 1, 9, 9]], path=path, name=path.name)
    save_predictions([found], tmp_path / "r.html", root=tmp_path)
    here = visit(tmp_path / "r.html", width=400)
    here.cards.first.click()
    expect(here.page.locator("#detail-facts")).to_contain_text(path.name)
    for place in ("#detail-name", "#detail-facts"):
        hidden = here.page.locator(place).evaluate(
            "each => [each.scrollWidth - each.clientWidth, "
            "getComputedStyle(each).overflowY !== 'auto' && each.scrollHeight - each.clientHeight]"
        )
        assert hidden == [0, False], place
    assert overflow(here.page) == 0


def test_failed_and_missing_are_two_things(visit: Visiting, report: Path, tmp_path: Path) -> None:
    """What failed is counted as above; pictures that are missing have a count of their own."""
    title = "#failures-title"
    expect(visit(report).page.locator(title)).to_have_text("What failed: 1 · Pictures missing: 1")
    gone = Prediction.from_arrays(size=(9, 9), boxes=[[1, 1, 5, 5]], path="/x/gone.jpg")
    save_predictions([gone], tmp_path / "gone.html")
    expect(visit(tmp_path / "gone.html").page.locator(title)).to_have_text("Pictures missing: 1")


def test_paper_has_all_that_failed_and_the_screen_is_as_before(visit: Visiting, tmp_path: Path) -> None:
    """Every failure is printed and no button; then the table is as it was, closed and with its first rows."""
    errors = [ItemError("it", index=at, name=f"{at}.jpg", reason="empty file") for at in range(1200)]
    save_predictions(errors, tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(1200, 0)
    rows, box = here.page.locator("#failures tbody tr"), here.page.locator("#failures")
    here.page.emulate_media(media="print")
    here.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(rows).to_have_count(1200)
    expect(rows.last).to_be_visible()
    expect(here.page.locator("#more-failures")).to_be_hidden()
    expect(here.page.locator("#failures-rest")).to_be_hidden()
    here.page.evaluate("dispatchEvent(new Event('afterprint'))")
    here.page.emulate_media(media="screen")
    expect(rows).to_have_count(500)
    expect(box).not_to_have_attribute("open", "")
    here.page.locator("#failures summary").click()
    here.page.locator("#more-failures").click()
    expect(rows).to_have_count(1200)
    here.page.evaluate("dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))")
    expect(box).to_have_attribute("open", "")
    expect(rows).to_have_count(1200)
    assert here.complaints == []
