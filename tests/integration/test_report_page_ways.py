"""The report by keyboard alone, by ear, of a clip, and on a narrow page: in a real headless Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from report_kit import NEEDS_CHROMIUM, SETTLED, Visiting, frames, overflow, pictures

from predsession import save_predictions

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small report, and one of a clip beside it."""
    folder = tmp_path_factory.mktemp("a rather long name of photographs")
    photos = folder / "photogrammetry of the northern meadows"
    save_predictions(pictures(photos), folder / "report.html", root=photos)
    save_predictions(frames(folder), folder / "clip.html")
    return folder / "report.html"


def test_keys_work_at_both_ends(visit: Visiting, report: Path) -> None:
    """At the first and at the last picture the button keeps the focus, and the arrows go on."""
    here = visit(report)
    name, press = here.page.locator("#detail-name"), here.page.keyboard.press
    here.cards.nth(1).click()
    here.page.locator("#previous").focus()
    press("Enter")
    expect(name).to_have_text("b/10.jpg")
    expect(here.page.locator("#previous")).to_be_focused()
    expect(here.page.locator("#previous")).to_have_attribute("aria-disabled", "true")
    press("Enter")
    expect(name).to_have_text("b/10.jpg")
    press("ArrowRight")
    expect(name).to_have_text("a/2.jpg")
    expect(here.page.locator("#previous")).to_have_attribute("aria-disabled", "false")
    here.page.locator("#next").focus()
    for _ in range(6):
        press("Enter")
    expect(name).to_have_text("bad.jpg")
    expect(here.page.locator("#next")).to_be_focused()
    press("ArrowLeft")
    expect(name).to_have_text("c.jpg")
    assert here.complaints == []


def test_keys_work_from_an_object_on(visit: Visiting, report: Path) -> None:
    """The object that was chosen goes with its picture: the arrows go on, to pictures and to objects."""
    here = visit(report)
    name, press = here.page.locator("#detail-name"), here.page.keyboard.press
    here.cards.first.click()
    press("ArrowDown")
    for expected in ("a/2.jpg", "a/10.jpg", "b/2.jpg"):
        press("ArrowRight")
        expect(name).to_have_text(expected)
    press("ArrowDown")
    expect(here.page.locator("#found tbody tr").first).to_be_focused()
    expect(here.page.locator(".keys")).to_be_visible()


def test_frames_of_a_clip_are_told_apart(visit: Visiting, report: Path) -> None:
    """By ear, small and large, and by the search: each has the number of its frame."""
    here = visit(report.with_name("clip.html"))
    here.shows(30, 30)
    labels = here.cards.evaluate_all("all => all.map((each) => each.getAttribute('aria-label'))")
    assert labels[7] == "clip.mp4 · frame 7: 1 object: person 1"
    assert len(set(labels)) == len(labels)
    here.page.locator("#name-search").fill("frame 7")
    here.shows(1, 1)
    here.cards.first.click()
    assert here.page.locator("#sheet img").get_attribute("alt") == labels[7]


def test_a_change_of_picture_is_heard(visit: Visiting, report: Path) -> None:
    """The larger view says what it shows when it is another; when it opens, its name is enough."""
    here = visit(report)
    here.cards.first.click()
    said = here.page.locator("#detail [role=status]")
    expect(said).to_have_text("")
    here.page.keyboard.press("ArrowRight")
    expect(said).to_have_text("a/2.jpg: 1 object: dog 1")
    here.page.locator("#next").click()
    expect(said).to_have_text("a/10.jpg: 0 objects")


def test_counts_and_bars_are_of_what_is_asked_for(visit: Visiting, report: Path) -> None:
    """The name and the kind narrow them; a class that is not ticked keeps its count, to be ticked again."""
    here = visit(report)
    classes = here.page.locator("#classes li")
    here.page.locator("#name-search").fill("b/")
    here.shows(2, 5)
    assert classes.all_inner_texts() == ["cat\n3", "dog\n1", "person\n1"]
    assert sum(here.bars().values()) == 5
    classes.filter(has_text="dog").click()
    here.shows(2, 4)
    assert classes.all_inner_texts() == ["cat\n3", "dog\n1", "person\n1"]
    assert sum(here.bars().values()) == 4
    here.page.locator("#reset").click()
    here.page.locator("#show").select_option("gone")
    here.shows(1, 1)
    assert classes.all_inner_texts() == ["cat\n0", "dog\n0", "person\n1"]
    here.page.locator("#show").select_option("failed")
    here.shows(1, 0)
    assert here.bars() == {}


BROKEN = """(title) => {
    const text = title.firstChild, range = document.createRange();
    return [...text.data.matchAll(/\\S+/g)].map(({ 0: word, index }) => {
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        return range.getClientRects().length > 1 ? word : "";
    }).filter(Boolean);
}"""


def test_a_title_is_broken_between_words_only(visit: Visiting, report: Path) -> None:
    """On a narrow page as well, or one that is magnified: 320 is 1280 at 400 %."""
    here = visit(report)
    for width in (1200, 640, 400, 320):
        here.page.set_viewport_size({"width": width, "height": 800})
        here.page.wait_for_function(SETTLED)
        assert here.page.locator("h1").evaluate(BROKEN) == [], width
        assert overflow(here.page) == 0, width
