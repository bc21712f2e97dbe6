"""The report in a real headless Chromium, opened as a file: what it shows, and that it asks nobody."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from predictions import zoo

from predsession import ItemError, Prediction, PredictionSession, save_predictions
from predsession.export.html import HtmlWriter

CHROMIUM = shutil.which("chromium") or ""
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PHOTOS = Path(__file__).parents[2] / "examples" / "photos"
HOSTILE = '</script><img src=x onerror="window.pwned=1"><b>\n\udcff'
MANY = 5000

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Visit:
    """A report that is open, with all it has asked for and complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda line: self.complaints.append(line.text) if line.type != "log" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))

    @property
    def names(self) -> list[str]:
        """The names on the cards that are in the document."""
        return self.page.locator("#grid .names").evaluate_all("all => all.map((each) => each.title)")

    @property
    def cards(self) -> Locator:
        """The cards in the document."""
        return self.page.locator("#grid .item button")

    def shows(self, items: int, objects: int) -> None:
        """Wait until so many items and objects pass the filters."""
        words = re.compile(rf"^{items:,} of [\d,]+ items? shown, {objects:,} objects?$")
        expect(self.page.locator("#shown")).to_have_text(words)

    def set_range(self, which: str, value: float) -> None:
        """Move an end of the range of scores."""
        self.page.locator(f"#{which}").evaluate(
            "(end, value) => { end.value = value; end.dispatchEvent(new Event('input')); }", value
        )

    def bars(self, kind: str = "rect") -> dict[int, int]:
        """Return the histogram: the bars that are not empty."""
        counts = self.page.locator(f"#histogram {kind}").evaluate_all(
            "all => all.map((bar) => [Math.round(Number(bar.getAttribute('x'))), Number(bar.dataset.count)])"
        )
        return {place: count for place, count in counts if count}


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a report, in a browser profile of its own."""
    contexts = []

    def go(path: Path, *, width: int = 1200, dark: bool = False, still: bool = False) -> Visit:
        contexts.append(
            browser.new_context(
                viewport={"width": width, "height": 800},
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce" if still else "no-preference",
            )
        )
        visit = Visit(contexts[-1].new_page())
        visit.page.goto(path.as_uri())
        return visit

    yield go
    for context in contexts:
        context.close()


def pictures(folder: Path) -> list[Prediction | ItemError]:
    """Return six outcomes: three classes, scores from 0.05 to 0.95, no objects, a failure, a picture gone."""
    found = (
        ("b/10.jpg", [0.95, 0.55], ["cat", "dog"]),
        ("a/2.jpg", [0.35], ["dog"]),
        ("a/10.jpg", [], []),
        ("b/2.jpg", [0.75, 0.65, 0.05], ["cat", "cat", "person"]),
        ("c.jpg", [0.85], ["person"]),
    )
    outcomes: list[Prediction | ItemError] = []
    for index, (name, scores, classes) in enumerate(found):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (200, 100), (0, 40 * index, 90)).save(path)
        boxes = [[20 + 10 * row, 10, 100, 60.5] for row in range(len(scores))]
        outcomes.append(
            Prediction.from_arrays(
                size=(200, 100),
                boxes=np.reshape(boxes, (-1, 4)),
                scores=scores,
                classes=classes,
                path=path,
                name=path.name,
                index=index,
                track_ids=[4] * len(scores) if index == 1 else None,
            )
        )
    (folder / "c.jpg").unlink()
    reason = "truncated JPEG: the end-of-image marker is missing"
    outcomes.append(ItemError("it", index=5, name="bad.jpg", path="/x/bad.jpg", reason=reason))
    return outcomes


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small report beside its pictures."""
    folder = tmp_path_factory.mktemp("report")
    save_predictions(pictures(folder / "photos"), folder / "report.html", root=folder / "photos")
    return folder / "report.html"


ORDER = ["b/10.jpg", "a/2.jpg", "a/10.jpg", "b/2.jpg", "c.jpg", "bad.jpg"]


def test_page_opens_from_a_file_and_asks_nobody(visit: Callable[..., Visit], report: Path) -> None:
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


def test_class_filter_changes_cards_boxes_counts_and_bars(visit: Callable[..., Visit], report: Path) -> None:
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


def test_score_filter_has_two_ends_that_the_histogram_shows(
    visit: Callable[..., Visit], report: Path
) -> None:
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


def test_kinds_names_and_order(visit: Callable[..., Visit], report: Path) -> None:
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


SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


def test_keyboard_alone_is_enough(visit: Callable[..., Visit], report: Path) -> None:
    """The grid is one stop of Tab; arrows go from card to card; Enter opens, arrows go on, Esc comes back."""
    here = visit(report)
    press = here.page.keyboard.press
    press("Tab")
    expect(here.page.locator(".skip")).to_be_focused()
    press("Enter")
    press("Tab")
    expect(here.cards.nth(0)).to_be_focused()
    assert here.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
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


def test_larger_view_has_boxes_names_and_a_table(visit: Callable[..., Visit], report: Path) -> None:
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


def test_filters_hold_in_the_larger_view(visit: Callable[..., Visit], report: Path) -> None:
    """It goes through what is shown, with the boxes that are shown, and says what is hidden."""
    here = visit(report)
    here.set_range("least", 0.7)
    here.shows(3, 3)
    here.cards.nth(1).click()
    expect(here.page.locator("#detail-name")).to_have_text("b/2.jpg")
    expect(here.page.locator("#detail-note")).to_have_text("1 object · 2 hidden by the filters")
    expect(here.page.locator("#detail-facts")).to_contain_text("2 of 3")


def test_report_without_its_pictures_is_whole(
    visit: Callable[..., Visit], report: Path, tmp_path: Path
) -> None:
    """Moved away from its pictures it shows the thumbnails, small and large."""
    moved = Path(shutil.copy(report, tmp_path / "alone.html"))
    here = visit(moved)
    here.shows(6, 7)
    here.cards.first.click()
    image = here.page.locator("#sheet img")
    expect(image).to_have_attribute("src", re.compile("^data:image/"))
    assert image.evaluate("each => each.decode().then(() => each.naturalWidth)") == 200


def test_failures_are_text_that_a_browser_finds(visit: Callable[..., Visit], report: Path) -> None:
    """Each failure, and each picture that is missing, is a row with index, name, path and reason."""
    here = visit(report)
    rows = here.page.locator("#failures tbody tr")
    expect(rows).to_have_count(2)
    assert rows.nth(1).locator("td").all_inner_texts() == [
        "5", "bad.jpg", "/x/bad.jpg", "truncated JPEG: the end-of-image marker is missing",
    ]  # fmt: skip
    assert "no picture" in rows.nth(0).inner_text()
    assert here.page.evaluate("find('end-of-image marker')")


def test_run_that_failed_wholly_opens_as_quickly(visit: Callable[..., Visit], tmp_path: Path) -> None:
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


def test_markup_is_only_text(visit: Callable[..., Visit], tmp_path: Path) -> None:
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


def test_five_thousand_pictures_are_no_more_than_a_window_holds(
    visit: Callable[..., Visit], many: Path
) -> None:
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
    visit: Callable[..., Visit], many: Path, tmp_path: Path, share: float
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


def test_crowds_and_many_classes_stay_small(visit: Callable[..., Visit], tmp_path: Path) -> None:
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


def test_scores_that_are_missing_or_beyond_one(visit: Callable[..., Visit], tmp_path: Path) -> None:
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


def test_every_geometry_is_drawn(visit: Callable[..., Visit], tmp_path: Path) -> None:
    """All geometries of a stock server's answer are on the card and in the larger view."""
    save_predictions([zoo()], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(1, len(zoo()))
    for kind in ("area", "line", "dot"):
        assert here.cards.first.locator(f"path.{kind}").count()
    here.cards.first.click()
    expect(here.page.locator("#sheet g:not(.label)")).to_have_count(len(zoo()))
    assert here.complaints == []


def test_nothing_at_all_is_a_page_too(visit: Callable[..., Visit], tmp_path: Path) -> None:
    """A report of no prediction says so."""
    save_predictions([], tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    expect(here.page.locator("#nothing")).to_have_text("This report holds no picture.")
    expect(here.page.locator("#cut")).to_be_hidden()
    assert here.complaints == []


def overflow(page: Page) -> int:
    """Return by how many pixels a page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide


def test_fits_a_phone(visit: Callable[..., Visit], report: Path) -> None:
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


def luminance(colour: str) -> float:
    """Return the relative luminance of a CSS colour, as WCAG defines it."""
    parts = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


CONTRASTS = """() => [["#totals dt", "body"], ["#totals dd", "body"], ["h1", "body"], ["#shown", "body"],
    ["#failures h2", ".card"], [".count", ".card"], [".caption .quiet", ".item button"],
    [".failed .reason", ".failed .reason"], ["#scheme", "#scheme"]].map(([text, ground]) =>
    [getComputedStyle(document.querySelector(text)).color,
     getComputedStyle(document.querySelector(ground)).backgroundColor])"""


def test_dark_and_light_can_both_be_read_and_chosen(visit: Callable[..., Visit], report: Path) -> None:
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


def test_every_control_has_a_name(visit: Callable[..., Visit], report: Path) -> None:
    """Whoever hears the page hears what each control is, where a card stands, and what is on it."""
    here = visit(report)
    here.shows(6, 7)
    assert here.page.evaluate(UNNAMED) == []
    card = here.page.locator("#grid [role=listitem]").first
    assert card.get_attribute("aria-setsize") == "6"
    assert card.get_attribute("aria-posinset") == "1"
    assert here.cards.first.get_attribute("aria-label") == "b/10.jpg: 2 objects: cat 1, dog 1"


def test_paper_has_all_cards_and_no_controls(visit: Callable[..., Visit], many: Path, report: Path) -> None:
    """Printed, the cards stand one after the other, as many as somebody may want, without controls."""
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
    large = visit(many)
    large.shows(MANY, 2 * (MANY - 5))
    large.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(large.cards).to_have_count(300)
    expect(large.page.locator("#grid p")).to_have_text("and 4,700 more")


def test_report_of_the_detector(visit: Callable[..., Visit], detector: str, tmp_path: Path) -> None:
    """What the bundled detector finds in the example photographs is in the page, count for count."""
    with PredictionSession(detector, str(PHOTOS)) as session:
        predictions = list(session)
    save_predictions(predictions, tmp_path / "r.html")
    here = visit(tmp_path / "r.html")
    here.shows(len(predictions), sum(map(len, predictions)))
    assert here.names == [each.name for each in predictions]
    expect(here.page.locator("#grid img")).to_have_count(len(predictions))
    assert here.complaints == []
