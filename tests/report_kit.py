"""Reports in a real headless Chromium: opening them, and what is asked of a page."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from predsession import ItemError, Prediction

CHROMIUM = shutil.which("chromium") or ""
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

NEEDS_CHROMIUM = pytest.mark.skipif(not CHROMIUM, reason="no chromium: apt-get install chromium")

SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
"""A function of the page that is true once what was asked of it is drawn."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Debian's Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


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


Visiting = Callable[..., Visit]


@contextmanager
def visiting(browser: Browser) -> Iterator[Visiting]:
    """Open reports, each in a browser profile of its own."""
    contexts = []

    def go(path: Path, *, width: int = 1200, dark: bool = False, touch: bool = False) -> Visit:
        contexts.append(
            browser.new_context(
                viewport={"width": width, "height": 800},
                color_scheme="dark" if dark else "light",
                has_touch=touch,
            )
        )
        visit = Visit(contexts[-1].new_page())
        visit.page.goto(path.as_uri())
        return visit

    yield go
    for context in contexts:
        context.close()


def overflow(page: Page) -> int:
    """Return by how many pixels a page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide


ACCENT = "getComputedStyle(document.querySelector('#histogram rect.in')).fill"
_AROUND = 8  # CSS pixels: what lies around an element, or within its edge, is its ring


def ringed(element: Locator) -> list[float]:
    """Return how much of each side of an element is seen to have a line in the accent's colour.

    Parameters
    ----------
    element : Locator
        In the window.

    Returns
    -------
    list of float
        Left, top, right, bottom: the share of that side that the second best line of pixels near it covers.
        The best may be no more than a border.
    """
    page = element.page
    page.wait_for_function(SETTLED)
    box = element.bounding_box()
    left, top = max(box["x"] - _AROUND, 0), max(box["y"] - _AROUND, 0)
    right, bottom = box["x"] + box["width"] + _AROUND, min(box["y"] + box["height"] + _AROUND, 800)
    clip = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    seen = np.asarray(Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")).astype(int)
    accent = [int(part) for part in re.findall(r"\d+", page.evaluate(ACCENT))]
    marked = (abs(seen - accent) < 12).all(axis=2)
    inner = marked[_AROUND:-_AROUND, _AROUND:-_AROUND]
    band = 2 * _AROUND
    across, down = marked[:, _AROUND:-_AROUND].sum(axis=1), marked[_AROUND:-_AROUND].sum(axis=0)
    height, width = inner.shape
    sides = ((down[:band], height), (across[:band], width), (down[-band:], height), (across[-band:], width))
    return [round(float(np.sort(lines)[-2] / side), 2) for lines, side in sides]


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


ORDER = ["b/10.jpg", "a/2.jpg", "a/10.jpg", "b/2.jpg", "c.jpg", "bad.jpg"]
"""The names of `pictures`, as the page has them."""


def frames(folder: Path, count: int = 30) -> list[Prediction]:
    """Return frames of one clip, with an object each; its pictures are black."""
    black = np.zeros((100, 200, 3), np.uint8)
    return [
        replace(
            Prediction.from_arrays(
                image=black,
                boxes=[[20, 10, 100, 60]],
                classes=["person" if number % 2 else "dog"],
                name="clip.mp4",
                frame_index=number,
                index=number,
            ),
            path=str(folder / "clip.mp4"),
            timestamp=number / 10,
        )
        for number in range(count)
    ]
