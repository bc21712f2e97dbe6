"""The report in a real headless Chromium: very many pictures, runs that were cut off, and bad input."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from predictions import zoo
from report_kit import NEEDS_CHROMIUM, SETTLED, Visiting, overflow

from predsession import ItemError, Prediction, PredictionSession, save_predictions
from predsession.export.html import HtmlWriter

pytestmark = NEEDS_CHROMIUM

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"
HOSTILE = '</script><img src=x onerror="window.pwned=1"><b>\n\udcff'
MANY = 5000


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of 5,000 pictures: twelve of each hundred with a dog, every thousandth failed."""
    path = tmp_path_factory.mktemp("many") / "report.html"
    pixels = np.full((18, 24, 3), 90, np.uint8)
    with HtmlWriter(path) as writer:
        for index in range(MANY):
            if index % 1000 == 999:
                writer.write(ItemError("it", index=index, name=f"{index}.jpg", reason="empty file"))
                continue
            kinds = ["dog" if index % 100 < 12 else "cat", "cat"]
            scores = [(index % 97) / 97, 0.5]
            writer.write(
                Prediction.from_arrays(
                    size=(24, 18),
                    boxes=[[1, 1, 12, 12], [5, 5, 22, 17]],
                    classes=kinds,
                    scores=scores,
                    name=f"{index}.jpg",
                    index=index,
                    loader=lambda: pixels,
                )
            )
        writer.finish()
    return path


def test_five_thousand_pictures_are_no_more_than_a_window_holds(visit: Visiting, many: Path) -> None:
    """However far it is scrolled, only what is near the window is held; filters, orders, keys see all."""
    here = visit(many)
    here.shows(MANY, 2 * (MANY - 5))
    nodes = "document.querySelectorAll('*').length"
    assert here.cards.count() <= 40
    assert here.page.evaluate(nodes) < 1500
    assert here.names[:3] == ["0.jpg", "1.jpg", "2.jpg"]
    for share in (0.3, 0.9, 1):
        here.page.evaluate(f"scrollTo(0, document.documentElement.scrollHeight * {share})")
        here.page.wait_for_function(SETTLED)
        assert here.cards.count() <= 60
        assert here.page.evaluate(nodes) < 2000
        low = min(range(here.cards.count()), key=lambda at: abs(here.cards.nth(at).bounding_box()["y"] - 300))
        assert int(here.names[low].split(".")[0]) == pytest.approx(share * MANY, abs=100)
    here.page.locator("#no-classes").click()
    here.page.locator("#classes li", has_text="dog").click()
    here.shows(600, 600)
    here.page.locator("#reset").click()
    here.page.locator("#sort").select_option("best")
    here.page.locator("#direction").click()
    here.page.wait_for_function(SETTLED)
    here.cards.first.focus()
    here.page.keyboard.press("Home")
    expect(here.page.locator("#grid .item button:focus")).to_have_attribute(
        "aria-label", re.compile("^96.jpg: 2 objects")
    )
    here.page.keyboard.press("End")
    expect(here.page.locator("#grid .item button:focus")).to_have_attribute(
        "aria-label", "4999.jpg: failed: empty file"
    )
    here.page.locator("#name-search").fill("4321")
    here.shows(1, 2)
    assert here.complaints == []


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_page_that_was_cut_off_says_so_and_shows_what_it_has(
    visit: Visiting, many: Path, tmp_path: Path, share: float
) -> None:
    """A page that ends in the middle of a line opens without an error, with all before it."""
    data = many.read_bytes()
    cut = tmp_path / "cut.html"
    cut.write_bytes(data[: 60_000 + int(len(data) * share)])
    whole = len(re.findall(rb'\n\{"item":.*(?=\n)', cut.read_bytes()))
    here = visit(cut)
    expect(here.page.locator("#cut")).to_contain_text("was broken off")
    expect(here.page.locator("#cut")).to_contain_text(f"first {whole:,} items")
    assert here.names[0] == "0.jpg"
    here.page.locator("#name-search").fill("7.jpg")
    expect(here.cards.first).to_be_visible()
    assert here.complaints == []


def crowd(classes: int, objects: int) -> Prediction:
    """Return a prediction of so many classes with names of 500 characters, and so many objects."""
    places = np.arange(objects)
    corners = np.stack((places % 40 * 10, places // 40 * 8), axis=1)
    names = [f"{number} " + "name" * 125 for number in range(classes)]
    return Prediction.from_arrays(
        image=np.full((300, 420, 3), 120, np.uint8),
        boxes=np.concatenate((corners, corners + 7), axis=1), class_ids=places % classes, class_names=names,
        scores=np.linspace(0.01, 1, objects), name="crowd.jpg",
    )  # fmt: skip


def test_crowds_and_many_classes_stay_small(visit: Visiting, tmp_path: Path) -> None:
    """1,000 objects of 200 classes with long names: the card is some paths, the table has all."""
    save_predictions([crowd(200, 1000)], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(1, 1000)
    expect(here.page.locator("#classes li")).to_have_count(200)
    assert here.cards.first.locator("*").count() < 420
    assert overflow(here.page) == 0
    here.cards.first.click()
    expect(here.page.locator("#found tbody tr")).to_have_count(1000)
    assert here.complaints == []


def test_run_that_failed_wholly_opens_as_quickly(visit: Visiting, tmp_path: Path) -> None:
    """Of very many failures the first are rows, all are counted, and all can be had."""
    errors = [ItemError("it", index=at, name=f"{at}.jpg", reason="empty file") for at in range(1200)]
    save_predictions(errors, tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(1200, 0)
    rows = here.page.locator("#failures tbody tr")
    expect(rows).to_have_count(500)
    here.page.locator("#failures summary").click()
    here.page.locator("#more-failures").click()
    expect(rows).to_have_count(1200)
    expect(here.page.locator("#failures-title")).to_have_text("What failed: 1,200")
    assert here.complaints == []


def test_scores_that_are_missing_or_beyond_one(visit: Visiting, tmp_path: Path) -> None:
    """Objects without a score are shown and counted; a model's own scale of scores is the histogram's."""
    plain = Prediction.from_json(
        {
            "annotation": {
                "size": {"width": 90, "height": 90},
                "objects": [
                    {
                        "classTitle": "a",
                        "geometryType": "rectangle",
                        "points": {"exterior": [[1, 1], [9, 9]], "interior": []},
                    }
                ],
            }
        }
    )
    logits = Prediction.from_arrays(
        size=(90, 90), boxes=[[1, 1, 9, 9]] * 2, scores=[-3, 12.5], classes=["a", "b"]
    )
    save_predictions([plain, logits], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(2, 3)
    expect(here.page.locator("#unscored")).to_have_text("1 object without a score")
    expect(here.page.locator("#least-value")).to_have_text("-3.00")
    expect(here.page.locator("#most-value")).to_have_text("12.50")
    assert here.bars() == {0: 1, 39: 1}
    here.set_range("least", 0)
    here.shows(1, 1)


def test_markup_is_only_text(visit: Visiting, tmp_path: Path) -> None:
    """Names of files and classes, paths and reasons are shown as they are, and nothing in them runs."""
    found = Prediction.from_arrays(
        image=np.zeros((40, 40, 3), np.uint8),
        boxes=[[1, 1, 30, 30]],
        classes=[HOSTILE],
        name=HOSTILE,
        path=HOSTILE,
    )
    error = ItemError("it", index=1, name=HOSTILE, path=HOSTILE, reason=HOSTILE)
    save_predictions([found, error], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(2, 1)
    for place in ("#classes ul", "#failures tbody", "#grid"):
        assert "onerror" in here.page.locator(place).inner_text()
    here.cards.first.click()
    for place in ("#detail-name", "#found tbody", "#sheet text"):
        expect(here.page.locator(place)).to_contain_text("script><img src=x onerror=")
    assert here.page.locator("img[src=x]").count() == 0
    assert here.page.evaluate("window.pwned") is None
    assert here.complaints == []


def test_every_geometry_is_drawn(visit: Visiting, tmp_path: Path) -> None:
    """All geometries of a stock server's answer are on the card and in the larger view."""
    save_predictions([zoo()], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(1, len(zoo()))
    for kind in ("area", "line", "dot"):
        assert here.cards.first.locator(f"path.{kind}").count()
    here.cards.first.click()
    expect(here.page.locator("#sheet g:not(.label)")).to_have_count(len(zoo()))
    assert here.complaints == []


def test_nothing_at_all_is_a_page_too(visit: Visiting, tmp_path: Path) -> None:
    """A report of no prediction says so."""
    save_predictions([], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    expect(here.page.locator("#nothing")).to_have_text("This report holds no picture.")
    expect(here.page.locator("#cut")).to_be_hidden()
    assert here.complaints == []


def test_report_of_the_detector(visit: Visiting, detector: str, tmp_path: Path) -> None:
    """What the bundled detector finds in the example photographs is in the page, count for count."""
    with PredictionSession(detector, str(PHOTOS)) as session:
        predictions = list(session)
    save_predictions(predictions, tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(len(predictions), sum(map(len, predictions)))
    assert here.names == [each.name for each in predictions]
    expect(here.page.locator("#grid img")).to_have_count(len(predictions))
    turned = here.names.index("portrait.jpg")  # by EXIF: a browser shows it upright too, so its boxes fit
    here.cards.nth(turned).click()
    expect(here.page.locator("#sheet img")).to_have_attribute("src", re.compile(r"photos/portrait\.jpg$"))
    assert here.complaints == []


def test_paper_has_as_many_cards_as_somebody_may_want(visit: Visiting, many: Path) -> None:
    """Of 5,000 pictures the first are printed, and the others counted."""
    here = visit(many)
    here.shows(MANY, 2 * (MANY - 5))
    here.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(here.cards).to_have_count(300)
    expect(here.page.locator("#grid p")).to_have_text("and 4,700 more")
