"""The report in a real headless Chromium, opened as a file: filters, order, keys, larger view, looks."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect
from report_kit import (
    NEEDS_CHROMIUM,
    ORDER,
    SETTLED,
    Visiting,
    overflow,
    pictures,
    ringed,
)

from predsession import save_predictions

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small report beside its pictures."""
    folder = tmp_path_factory.mktemp("report")
    save_predictions(pictures(folder / "photos"), folder / "report.html", root=folder / "photos")
    return folder / "report.html"


def test_page_opens_from_a_file_and_asks_nobody(visit: Visiting, report: Path) -> None:
    """All cards are there, each with its boxes; nothing is asked of a server, nothing complained of."""
    here = visit(report)
    here.shows(6, 7)
    assert here.names == ORDER
    totals = dict(
        here.page.locator("#totals div").evaluate_all(
            "all => all.map((each) => [...each.children].map((part) => part.textContent))"
        )
    )
    assert totals == {
        "Pictures": "5", "Objects": "7", "Classes": "3", "Without objects": "1", "Failed": "1",
        "Picture missing": "1",
    }  # fmt: skip
    expect(here.page.locator("#grid img")).to_have_count(4)
    loaded = "all => all.every((each) => each.complete && each.naturalWidth === 200)"
    here.page.wait_for_function(f"({loaded})([...document.querySelectorAll('#grid img')])")
    drawn = here.cards.first.locator("path.line").evaluate_all(
        "all => all.map((each) => each.getAttribute('d'))"
    )
    assert drawn == ["M30 10L100 10L100 60.5L30 60.5Z", "M20 10L100 10L100 60.5L20 60.5Z"]
    expect(here.page.locator("#cut")).to_be_hidden()
    assert here.complaints == []
    assert {url.split(":")[0] for url in here.asked} <= {"file", "data"}
    assert here.page.title() == "Predictions: photos"


def test_class_filter_changes_cards_boxes_counts_and_bars(visit: Visiting, report: Path) -> None:
    """Without a class its boxes, its bars and what has nothing else are gone; all and none are one click."""
    here = visit(report)
    classes = here.page.locator("#classes li")
    assert classes.all_inner_texts() == ["cat\n3", "dog\n2", "person\n2"]
    before = here.bars()
    assert sum(before.values()) == 7
    classes.filter(has_text="dog").click()
    here.shows(3, 5)
    assert here.names == ["b/10.jpg", "b/2.jpg", "c.jpg"]
    assert here.cards.first.locator("path.line").count() == 1
    assert {bar for bar in before if bar not in here.bars()} == {14, 22}
    here.page.locator("#no-classes").click()
    here.shows(0, 0)
    expect(here.page.locator("#nothing")).to_be_visible()
    assert here.bars() == {}
    here.page.locator("#class-search").fill("PER")
    expect(classes.filter(visible=True)).to_have_count(1)
    here.page.locator("#all-classes").click()
    here.shows(2, 2)
    here.page.locator("#class-search").fill("nobody")
    expect(here.page.locator("#no-class")).to_be_visible()
    here.page.locator("#reset").click()
    here.shows(6, 7)
    expect(classes.filter(visible=True)).to_have_count(3)


def test_score_filter_has_two_ends_that_the_histogram_shows(visit: Visiting, report: Path) -> None:
    """Only scores between the ends count; the bars outside of them fade; the ends cannot pass each other."""
    here = visit(report)
    here.set_range("least", 0.5)
    here.shows(3, 5)
    expect(here.page.locator("#least-value")).to_have_text("0.50")
    assert sum(here.bars("rect.in").values()) == 5
    assert sum(here.bars("rect.out").values()) == 2
    assert here.page.locator("#classes li").all_inner_texts() == ["cat\n3", "dog\n1", "person\n1"]
    here.set_range("most", 0.8)
    here.shows(2, 3)
    here.set_range("least", 0.95)
    expect(here.page.locator("#least-value")).to_have_text("0.80")
    label = here.page.locator("#histogram").get_attribute("aria-label")
    assert re.match(r"Histogram of 7 scores; most, 1, from 0\.05 to 0\.0[78]$", label)


def test_kinds_names_and_order(visit: Visiting, report: Path) -> None:
    """What failed, has no objects or no picture is shown alone; names are searched; orders go both ways."""
    here = visit(report)
    show, sort = here.page.locator("#show"), here.page.locator("#sort")
    for kind, names in {
        "some": ["b/10.jpg", "a/2.jpg", "b/2.jpg", "c.jpg"],
        "none": ["a/10.jpg"],
        "failed": ["bad.jpg"],
        "gone": ["c.jpg"],
        "all": ORDER,
    }.items():
        show.select_option(kind)
        here.page.wait_for_function(SETTLED)
        assert here.names == names, kind
    orders = {
        "name": ["a/2.jpg", "a/10.jpg", "b/2.jpg", "b/10.jpg", "bad.jpg", "c.jpg"],
        "count": ["a/10.jpg", "a/2.jpg", "c.jpg", "b/10.jpg", "b/2.jpg", "bad.jpg"],
        "best": ["a/2.jpg", "b/2.jpg", "c.jpg", "b/10.jpg", "a/10.jpg", "bad.jpg"],
        "worst": ["b/2.jpg", "a/2.jpg", "b/10.jpg", "c.jpg", "a/10.jpg", "bad.jpg"],
        "order": ORDER,
    }
    for order, names in orders.items():
        sort.select_option(order)
        here.page.wait_for_function(SETTLED)
        assert here.names == names, order
    here.page.locator("#direction").click()
    here.page.wait_for_function(SETTLED)
    assert here.names == ORDER[::-1]
    sort.select_option("best")
    here.page.wait_for_function(SETTLED)
    assert here.names == ["b/10.jpg", "c.jpg", "b/2.jpg", "a/2.jpg", "a/10.jpg", "bad.jpg"]
    here.page.locator("#name-search").fill("A/")
    here.shows(2, 1)


def test_keyboard_alone_is_enough(visit: Visiting, report: Path) -> None:
    """The grid is one stop of Tab; arrows go from card to card; Enter opens, arrows go on, Esc comes back."""
    here = visit(report)
    press = here.page.keyboard.press
    press("Tab")
    expect(here.page.locator(".skip")).to_be_focused()
    press("Enter")
    press("Tab")
    expect(here.cards.nth(0)).to_be_focused()
    assert min(ringed(here.cards.nth(0))) > 0.8
    press("ArrowRight")
    expect(here.cards.nth(1)).to_be_focused()
    press("End")
    expect(here.cards.nth(5)).to_be_focused()
    press("ArrowDown")
    expect(here.cards.nth(5)).to_be_focused()
    press("Home")
    assert here.cards.evaluate_all("all => all.map((each) => each.tabIndex)") == [0, -1, -1, -1, -1, -1]
    press("Enter")
    dialog = here.page.locator("#detail")
    expect(dialog).to_be_visible()
    expect(here.page.locator("#detail-name")).to_have_text("b/10.jpg")
    expect(here.page.locator("#previous")).to_be_disabled()
    press("ArrowDown")
    rows = dialog.locator("tbody tr")
    expect(rows.nth(0)).to_be_focused()
    press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    faint = dialog.locator("svg > .faint")
    expect(faint).to_have_count(2)  # the other object, and its name
    press("ArrowRight")
    expect(here.page.locator("#detail-name")).to_have_text("a/2.jpg")
    press("ArrowLeft")
    press("ArrowRight")
    press("Escape")
    expect(dialog).to_be_hidden()
    expect(here.cards.nth(1)).to_be_focused()
    assert here.complaints == []


def test_larger_view_has_boxes_names_and_a_table(visit: Visiting, report: Path) -> None:
    """The picture itself is shown where it is there; boxes lie where they belong; the table has all."""
    here = visit(report)
    here.cards.nth(1).click()
    dialog = here.page.locator("#detail")
    assert [text.strip() for text in dialog.locator("tbody td").all_inner_texts()] == [
        "dog", "0.350", "20, 10, 100, 61", "4",
    ]  # fmt: skip
    expect(dialog.locator("svg text")).to_have_text("dog  0.35  #4")
    expect(dialog.locator("#sheet img")).to_have_attribute("src", "photos/a/2.jpg")
    sheet = here.page.locator("#sheet").bounding_box()
    box = dialog.locator("path.line").bounding_box()
    scale = sheet["width"] / 200
    assert scale > 2
    assert box["x"] - sheet["x"] == pytest.approx(20 * scale, abs=3)
    assert box["width"] == pytest.approx(80 * scale, abs=4)
    expect(here.page.locator("#detail-facts")).to_contain_text("200 × 100 pixels")
    here.page.locator("#next").click()
    expect(here.page.locator("#detail-note")).to_have_text("0 objects")
    for _ in range(2):
        here.page.locator("#next").click()
    expect(here.page.locator("#detail-reason")).to_contain_text("The picture is missing")
    expect(dialog.locator("tbody tr")).to_have_count(1)
    expect(dialog.locator("path.line")).to_have_count(1)
    here.page.locator("#next").click()
    expect(here.page.locator("#detail-reason")).to_have_text(
        "truncated JPEG: the end-of-image marker is missing"
    )
    expect(here.page.locator("#next")).to_be_disabled()
    here.page.locator("#close").click()
    expect(dialog).to_be_hidden()
    assert here.complaints == []


def test_filters_hold_in_the_larger_view(visit: Visiting, report: Path) -> None:
    """It goes through what is shown, with the boxes that are shown, and says what is hidden."""
    here = visit(report)
    here.set_range("least", 0.7)
    here.shows(3, 3)
    here.cards.nth(1).click()
    expect(here.page.locator("#detail-name")).to_have_text("b/2.jpg")
    expect(here.page.locator("#detail-note")).to_have_text("1 object · 2 hidden by the filters")
    expect(here.page.locator("#detail-facts")).to_contain_text("2 of 3")


def test_report_without_its_pictures_is_whole(visit: Visiting, report: Path, tmp_path: Path) -> None:
    """Moved away from its pictures it shows the thumbnails, small and large."""
    moved = Path(shutil.copy(report, tmp_path / "alone.html"))
    here = visit(moved)
    here.shows(6, 7)
    here.cards.first.click()
    image = here.page.locator("#sheet img")
    expect(image).to_have_attribute("src", re.compile("^data:image/"))
    assert image.evaluate("each => each.decode().then(() => each.naturalWidth)") == 200


def test_failures_are_text_that_a_browser_finds(visit: Visiting, report: Path) -> None:
    """Each failure, and each picture that is missing, is a row with index, name, path and reason."""
    here = visit(report)
    rows = here.page.locator("#failures tbody tr")
    expect(rows).to_have_count(2)
    assert rows.nth(1).locator("td").all_inner_texts() == [
        "5", "bad.jpg", "/x/bad.jpg", "truncated JPEG: the end-of-image marker is missing",
    ]  # fmt: skip
    assert "no picture" in rows.nth(0).inner_text()
    assert here.page.evaluate("find('end-of-image marker')")


def test_fits_a_phone(visit: Visiting, report: Path) -> None:
    """On a phone, and magnified, nothing is moved sideways; the filters are folded away and can be had."""
    here = visit(report, width=400)
    here.shows(6, 7)
    for width in (640, 320, 400):  # 640 is 1280 at 200 %
        here.page.set_viewport_size({"width": width, "height": 800})
        here.page.wait_for_function(SETTLED)
        assert overflow(here.page) == 0, width
        assert here.page.locator("#grid").evaluate("grid => grid.scrollWidth <= grid.clientWidth"), width
    expect(here.page.locator("#classes")).to_be_hidden()
    here.page.locator("#filters summary").click()
    expect(here.page.locator("#classes")).to_be_visible()
    assert overflow(here.page) == 0
    here.cards.first.click()
    box = here.page.locator("#detail").bounding_box()
    assert (box["x"], box["width"]) == (0, 400)
    expect(here.page.locator("#found tbody tr").first).to_be_visible()


CONTRASTS = """() => [["#totals dt", "body"], ["#totals dd", "body"], ["h1", "body"], ["#shown", "body"],
    ["#failures h2", ".card"], [".count", ".card"], [".caption .quiet", ".item button"],
    [".failed .reason", ".failed .reason"], ["#scheme", "#scheme"]].map(([text, ground]) =>
    [getComputedStyle(document.querySelector(text)).color,
     getComputedStyle(document.querySelector(ground)).backgroundColor])"""


def luminance(colour: str) -> float:
    """Return the relative luminance of a CSS colour, as WCAG defines it."""
    parts = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_dark_and_light_can_both_be_read_and_chosen(visit: Visiting, report: Path) -> None:
    """The colours follow the system or the button; in both, text stands out from its ground by 4.5 to 1."""
    grounds = []
    for dark in (False, True):
        here = visit(report, dark=dark)
        here.shows(6, 7)
        pairs = here.page.evaluate(CONTRASTS)
        for text, ground in pairs:
            light, dim = sorted((luminance(text), luminance(ground)), reverse=True)
            assert (light + 0.05) / (dim + 0.05) >= 4.5, (dark, text, ground)
        grounds.append(pairs[0][1])
    assert luminance(grounds[0]) > 0.8
    assert luminance(grounds[1]) < 0.05
    scheme = here.page.locator("#scheme")
    shown = []
    for _ in range(3):
        scheme.click()
        ground = here.page.evaluate("getComputedStyle(document.body).backgroundColor")
        shown.append((scheme.inner_text(), grounds.index(ground)))
    assert shown == [("Colours: light", 0), ("Colours: dark", 1), ("Colours: system", 1)]


UNNAMED = """() => {
    const controls = document.querySelectorAll("button, input, select, summary, [role=img], [tabindex='0']");
    const named = (each) => each.getAttribute("aria-label") || each.getAttribute("aria-labelledby")
        || each.labels?.length || each.textContent.trim();
    return [...controls].filter((each) => !named(each)).map((each) => each.outerHTML);
}"""


def test_every_control_has_a_name(visit: Visiting, report: Path) -> None:
    """Whoever hears the page hears what each control is, where a card stands, and what is on it."""
    here = visit(report)
    here.shows(6, 7)
    assert here.page.evaluate(UNNAMED) == []
    card = here.page.locator("#grid [role=listitem]").first
    assert card.get_attribute("aria-setsize") == "6"
    assert card.get_attribute("aria-posinset") == "1"
    assert here.cards.first.get_attribute("aria-label") == "b/10.jpg: 2 objects: cat 1, dog 1"


def test_paper_has_all_cards_and_no_controls(visit: Visiting, report: Path) -> None:
    """Printed, the cards stand one after the other, what failed is open, and there are no controls."""
    here = visit(report)
    here.shows(6, 7)
    here.page.emulate_media(media="print")
    here.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(here.cards).to_have_count(6)
    expect(here.page.locator("#filters")).to_be_hidden()
    expect(here.page.locator("#failures tbody tr").first).to_be_visible()
    assert overflow(here.page) == 0
    boxes = [here.cards.nth(at).bounding_box() for at in range(6)]
    for one, other in itertools.combinations(boxes, 2):
        assert (
            one["x"] + one["width"] <= other["x"] + 1
            or other["x"] + other["width"] <= one["x"] + 1
            or (one["y"] + one["height"] <= other["y"] + 1 or other["y"] + other["height"] <= one["y"] + 1)
        )
    here.page.evaluate("dispatchEvent(new Event('afterprint'))")
    here.page.emulate_media(media="screen")
    expect(here.page.locator("#grid.printed")).to_have_count(0)
