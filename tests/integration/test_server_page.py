"""The server's page, in a real headless Chromium: what it shows, what it asks, and what it never runs."""

from __future__ import annotations

import base64
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import requests
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from predsession.launch import EmbeddedServer
from predsession.server.models.pixels import number_picture
from predsession.wire.figures import Figure

CHROMIUM = shutil.which("chromium") or ""
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
ASTRONAUT = Path(__file__).parents[1] / "samples" / "astronaut.jpg"
ZOO = json.loads((ASTRONAUT.parent / "geometry_zoo.json").read_text())
MARKUP = "<img src=x onerror=window.pwned=1>"
TOKEN = "a token, with (brackets)"

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Visit:
    """A page that is open, with all it has asked for and complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        # Early, as a chooser that opens while the browser is still being told to hand it over is lost.
        page.on("filechooser", lambda chooser: None)

    def polls(self) -> int:
        """Return how often the overview was asked for."""
        return sum(url.endswith("/overview.json") for url in self.asked)

    def sees_picture(self, name: str, data: bytes, kind: str = "image/png") -> None:
        """Choose a picture."""
        self.page.set_input_files("#file", {"name": name, "mimeType": kind, "buffer": data})


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a server's page, in a browser profile of its own."""
    contexts = []

    def go(url: str, path: str = "/", *, width: int = 1200, dark: bool = False, still: bool = False) -> Visit:
        contexts.append(
            browser.new_context(
                viewport={"width": width, "height": 800},
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce" if still else "no-preference",
            )
        )
        visit = Visit(contexts[-1].new_page())
        if still:
            visit.page.clock.install()
        visit.page.goto(url + path)
        return visit

    yield go
    for context in contexts:
        context.close()


def png(number: int) -> bytes:
    """Return a picture of a number."""
    buffer = io.BytesIO()
    Image.fromarray(number_picture(number)).save(buffer, "PNG")
    return buffer.getvalue()


def submit(url: str, count: int, **state: object) -> str:
    """Start a job; return its uuid."""
    files = [("files", (f"page_{number}.png", png(number), "image/png")) for number in range(count)]
    reply = requests.post(
        f"{url}/inference_batch_async", files=files, data={"state": json.dumps(state)}, timeout=30
    )
    return str(reply.json()["inference_request_uuid"])


def clear(url: str, uuid: str) -> None:
    """Stop a job and let go of it."""
    requests.post(
        f"{url}/clear_inference_request", json={"state": {"inference_request_uuid": uuid}}, timeout=30
    )


def drop(page: Page, path: Path) -> None:
    """Drop a file onto the page, as a mouse would."""
    data = base64.b64encode(path.read_bytes()).decode()
    carried = page.evaluate_handle(
        """([data, name]) => {
            const carried = new DataTransfer();
            const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
            carried.items.add(new File([bytes], name, { type: "image/jpeg" }));
            return carried;
        }""",
        [data, path.name],
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": carried})


def overflow(page: Page) -> int:
    """Return by how many pixels a page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide


def test_loads_from_its_own_server_alone(visit: Callable[..., Visit], detector: str) -> None:
    """The page shows the model without an error in the console, and asks no other server for anything."""
    here = visit(detector)
    expect(here.page.locator("#title")).to_have_text("detect")
    expect(here.page.locator("#state")).to_have_text("ready")
    expect(here.page.locator("#facts")).to_contain_text("80 classes")
    expect(here.page.locator("#no-jobs")).to_contain_text(detector)
    expect(here.page.locator("#no-errors")).to_be_visible()
    expect(here.page.locator("#memory dd").first).to_contain_text("iB")
    assert here.complaints == []
    assert {url for url in here.asked if not url.startswith(detector + "/")} == set()


def test_policy_forbids_everything_that_is_not_ours(detector: str) -> None:
    """No script or style may stand in the page itself, and none may come from elsewhere."""
    for path in ("/", "/docs", "/page/main.js"):
        headers = requests.get(detector + path, timeout=30).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/page/%2e%2e/app.py", "/page/../app.py", "/page/none.js", "/page/"])
def test_serves_only_its_own_files(detector: str, path: str) -> None:
    """A path that leads out of the page's folder, or to nothing, is 404."""
    request = requests.Request("GET", detector + path).prepare()
    request.url = detector + path  # as it is: requests would tidy it up
    with requests.Session() as session:
        assert session.send(request, timeout=30).status_code == 404


def test_dropped_picture_shows_the_detector_s_boxes(visit: Callable[..., Visit], detector: str) -> None:
    """A dropped picture gives the boxes that a client gets, in the table and on the canvas."""
    with ASTRONAUT.open("rb") as file:
        reply = requests.post(f"{detector}/inference_image", files={"files": file}, timeout=30)
    objects = reply.json()["annotation"]["objects"]
    here = visit(detector)
    drop(here.page, ASTRONAUT)
    rows = here.page.locator("#objects tr")
    expect(rows).to_have_count(len(objects))
    for place, found in enumerate(objects):
        title, score, sides = rows.nth(place).locator("td").all_inner_texts()
        assert title.strip() == found["classTitle"] == "person"
        assert float(score) == pytest.approx(found["tags"][0]["value"], abs=0.006)
        assert np.allclose([float(side) for side in sides.split()], found["box"], atol=0.51)
    expect(here.page.locator("#canvas")).to_have_attribute("aria-label", "astronaut.jpg: person 0.73")
    # The middle of the box's left side has the colour that the table shows.
    x1, y1, _, y2 = objects[0]["box"]
    swatch, side = here.page.evaluate(
        """([x, y]) => {
            const canvas = document.getElementById("canvas");
            const scale = canvas.width / 256;
            const pixel = canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data;
            const swatch = getComputedStyle(document.querySelector("#objects .swatch")).backgroundColor;
            return [swatch.match(/\\d+/g).map(Number), [...pixel].slice(0, 3)];
        }""",
        [x1, (y1 + y2) / 2],
    )
    assert np.allclose(swatch, side, atol=40)
    assert here.complaints == []


def test_every_geometry_is_drawn_where_it_lies(visit: Callable[..., Visit], ours: str) -> None:
    """All geometries of a stock server's answer get the boxes that our client reads, and are drawn."""
    item = ZOO["pop_inference_results"]["pending_results"][0]
    objects = item["annotation"]["objects"]
    here = visit(ours)
    here.page.route("**/get_model_meta", lambda route: route.fulfill(json=ZOO["get_model_meta"]))
    here.page.route("**/inference_image", lambda route: route.fulfill(json=item))
    here.sees_picture("scan.tif", b"a picture that only the server can read", "image/tiff")
    rows = here.page.locator("#objects tr")
    expect(rows).to_have_count(len(objects))
    expect(here.page.locator("#outcome")).to_contain_text("This browser cannot show the picture itself.")
    for number, found in enumerate(objects):
        sides = rows.nth(number).locator("td").last.inner_text().split()
        assert np.allclose([float(side) for side in sides], Figure(found, number).box(), atol=0.51), found
    drawn = (
        "document.getElementById('canvas').getContext('2d').getImageData(0, 0, 400, 300).data.some(Boolean)"
    )
    assert here.page.evaluate(drawn)
    assert here.complaints == []


def test_keyboard_alone_is_enough(visit: Callable[..., Visit], detector: str) -> None:
    """With Tab, Enter and the arrow keys a picture is chosen, a setting changed, and an object pointed at."""
    here = visit(detector)
    expect(here.page.locator("#setting-conf")).to_be_visible()
    here.page.locator("#choose").focus()
    with here.page.expect_file_chooser() as chooser:
        here.page.keyboard.press("Enter")
    chooser.value.set_files(str(ASTRONAUT))
    expect(here.page.locator("#objects tr")).to_have_count(1)
    here.page.locator("#setting-conf").focus()
    here.page.keyboard.press("End")
    expect(here.page.locator("#outcome")).to_contain_text("0 objects")
    here.page.keyboard.press("Home")
    expect(here.page.locator("#objects tr").nth(1)).to_be_visible()
    here.page.locator("#objects tr").first.focus()
    style = "getComputedStyle(document.activeElement).outlineStyle"
    assert here.page.evaluate(style) == "solid"


def test_job_advances_and_ends(visit: Callable[..., Visit], ours: str) -> None:
    """A job appears with its session, its bar moves on, and it ends as finished."""
    here = visit(ours)
    uuid = submit(ours, 40, settings={"delay": 0.1}, session="nightly", batch_size=4)
    row = here.page.locator("#jobs tr", has_text=uuid[:8])
    expect(row).to_have_attribute("data-stage", "running")
    expect(row).to_contain_text("session nightly")
    some = (
        "(row) => { const bar = row.querySelector('progress'); return bar.value > 0 && bar.value < bar.max; }"
    )
    here.page.wait_for_function(some, arg=row.element_handle())
    expect(row.locator("td").nth(3)).to_contain_text("/s")
    expect(row).to_have_attribute("data-stage", "finished", timeout=30_000)
    expect(row.locator("progress")).to_have_attribute("aria-label", f"Job {uuid[:8]}: 40 of 40")
    clear(ours, uuid)
    assert here.complaints == []


def test_failed_job_says_why(visit: Callable[..., Visit], ours: str) -> None:
    """A job that failed shows its error, and the error is among the recent ones."""
    here = visit(ours)
    uuid = submit(ours, 3, settings={"fail_at": 1})
    row = here.page.locator("#jobs tr", has_text=uuid[:8])
    expect(row).to_have_attribute("data-stage", "failed")
    expect(row).to_contain_text("told to fail at 1")
    expect(here.page.locator("#errors")).to_contain_text("told to fail at 1")
    expect(here.page.locator("#no-errors")).to_be_hidden()
    clear(ours, uuid)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose model has markup for a class, and raises markup."""
    code = f'''
class Hostile:
    classes = ["{MARKUP}"]
    default_settings = {{"conf": 0.0, "angry": False, "{MARKUP}": "{MARKUP}"}}

    def predict(self, images, settings):
        if settings["angry"]:
            raise ValueError("{MARKUP}")
        return [{{"boxes": [[1, 1, 9, 9]], "scores": [0.9], "class_ids": [0]}} for _ in images]
'''
    path = tmp_path_factory.mktemp("hostile") / "hostile.py"
    path.write_text(code)
    server = EmbeddedServer([f"{path}:Hostile"])
    yield server.url
    server.stop()


def test_markup_is_only_text(visit: Callable[..., Visit], hostile: str) -> None:
    """Names of files, classes, settings and sessions, and errors, are shown as they are, and nothing runs."""
    here = visit(hostile)
    here.sees_picture(f"{MARKUP}.png", png(1))
    expect(here.page.locator("#objects")).to_contain_text(MARKUP)
    expect(here.page.locator("#outcome")).to_contain_text(f"{MARKUP}.png")
    expect(here.page.locator("#settings")).to_contain_text(MARKUP)
    expect(here.page.locator("#canvas")).to_have_attribute("aria-label", f"{MARKUP}.png: {MARKUP} 0.90")
    uuid = submit(hostile, 1, settings={"angry": True}, session=MARKUP)
    row = here.page.locator("#jobs tr", has_text=uuid[:8])
    expect(row).to_contain_text(f"session {MARKUP}")
    expect(row.locator(".why")).to_contain_text(MARKUP)
    expect(here.page.locator("#errors")).to_contain_text(MARKUP)
    here.sees_picture(f"{MARKUP}.png", b"no picture")
    expect(here.page.locator("#problem")).to_contain_text(f"{MARKUP}.png")
    assert here.page.locator("img[src=x]").count() == 0
    assert here.page.evaluate("window.pwned") is None
    clear(hostile, uuid)


def luminance(colour: str) -> float:
    """Return the relative luminance of a CSS colour, as WCAG defines it."""
    parts = [float(part) / 255 for part in colour[4:-1].split(",")[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_dark_and_light_differ_and_both_can_be_read(visit: Callable[..., Visit], detector: str) -> None:
    """The colours follow the system's scheme, and in both text stands out from its ground by 4.5 to 1."""
    grounds = []
    for dark in (False, True):
        here = visit(detector, dark=dark)
        expect(here.page.locator("#memory dt").first).to_be_visible()
        pairs = here.page.evaluate(
            """() => [["#facts", "body"], ["#title", "body"], [".empty", ".card"], ["#memory dt", ".card"],
                      ["#choose", "#choose"], ["nav a", "body"], ["#state", "#state"]].map(([text, ground]) =>
                [getComputedStyle(document.querySelector(text)).color,
                 getComputedStyle(document.querySelector(ground)).backgroundColor])"""
        )
        for text, ground in pairs:
            light, dim = sorted((luminance(text), luminance(ground)), reverse=True)
            assert (light + 0.05) / (dim + 0.05) >= 4.5, (dark, text, ground)
        grounds.append(luminance(pairs[0][1]))
    assert grounds[0] > 0.8
    assert grounds[1] < 0.05


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_fits_a_phone(visit: Callable[..., Visit], ours: str, path: str) -> None:
    """At 360 pixels nothing has to be moved sideways: not with a long session, a long name, and a picture."""
    uuid = submit(ours, 40, settings={"delay": 0.1}, session="a-session-with-a-name-as-long-as-" + "x" * 80)
    here = visit(ours, path, width=360)
    if path == "/":
        here.sees_picture("a_name_without_a_place_to_break_" + "y" * 120 + ".png", png(5))
        expect(here.page.locator("#objects tr")).to_have_count(1)
        expect(here.page.locator("#jobs tr", has_text=uuid[:8])).to_be_visible()
        here.page.locator("summary").click()
    assert overflow(here.page) == 0
    clear(ours, uuid)


def test_no_motion_for_those_who_do_not_want_it(visit: Callable[..., Visit], detector: str) -> None:
    """With reduced motion nothing glides."""
    here = visit(detector, still=True)
    assert here.page.evaluate("getComputedStyle(document.getElementById('drop')).transitionDuration") == "0s"


def test_asks_nothing_while_nobody_looks(visit: Callable[..., Visit], detector: str) -> None:
    """A hidden tab sends no request, however long it is hidden; once it is seen again, it asks at once."""
    here = visit(detector, still=True)
    expect(here.page.locator("#title")).to_have_text("detect")
    turn = """(state) => {
        Object.defineProperty(document, "visibilityState", { get: () => state, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    here.page.evaluate(turn, "hidden")
    before = here.polls()
    for _ in range(10):
        here.page.clock.run_for(60_000)
    assert here.polls() == before
    with here.page.expect_response("**/overview.json"):
        here.page.evaluate(turn, "visible")


def test_says_that_the_server_is_gone_and_asks_less_and_less(
    visit: Callable[..., Visit], detector: str
) -> None:
    """While the server is gone the page says so and backs off; a click asks at once and all is well."""
    here = visit(detector, still=True)
    expect(here.page.locator("#state")).to_have_text("ready")
    here.page.route("**/overview.json", lambda route: route.abort())
    before = here.polls()
    for _ in range(100):
        here.page.clock.run_for(1000)
        here.page.evaluate("new Promise((done) => queueMicrotask(done))")
    expect(here.page.locator("#gone-what")).to_have_text("The server does not answer.")
    expect(here.page.locator("#state")).to_have_text("no answer")
    assert 4 <= here.polls() - before <= 9  # 1, 2, 4, 8, 16, 30, 30 seconds apart, instead of 33 times
    here.page.unroute("**/overview.json")
    here.page.locator("#gone-now").click()
    expect(here.page.locator("#gone")).to_be_hidden()
    expect(here.page.locator("#state")).to_have_text("ready")


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """A server that wants a token."""
    server = EmbeddedServer(["--model", "hush=pixels", "--token", TOKEN])
    yield server.url
    server.stop()


def test_token_stays_in_memory(visit: Callable[..., Visit], guarded: str) -> None:
    """The page asks for the token, refuses a wrong one, works with the right one, and stores it nowhere."""
    here = visit(guarded)
    expect(here.page.locator("#token-form")).to_be_visible()
    expect(here.page.locator("#trial")).to_be_hidden()
    here.page.locator("#token").fill("wrong")
    here.page.keyboard.press("Enter")
    expect(here.page.locator("#token-problem")).to_contain_text("does not take this token")
    here.page.locator("#token").fill(TOKEN)
    here.page.keyboard.press("Enter")
    expect(here.page.locator("#title")).to_have_text("hush")
    here.sees_picture("one.png", png(77))
    expect(here.page.locator("#objects")).to_contain_text("ends in 7")
    assert here.page.url == guarded + "/"
    assert all("token" not in url for url in here.asked)
    assert here.page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    here.page.reload()
    expect(here.page.locator("#token-form")).to_be_visible()


def test_overview_is_behind_the_token_and_the_page_is_not(guarded: str) -> None:
    """Without a token the page's files can be read, and nothing that tells of this server."""
    for path in ("/", "/page/main.js", "/docs", "/openapi.json"):
        assert requests.get(guarded + path, timeout=30).status_code == 200, path
        assert "hush" not in requests.get(guarded + path, timeout=30).text, path
    for path in ("/overview.json", "/metrics"):
        assert requests.get(guarded + path, timeout=30).status_code == 401, path
    shown = requests.get(guarded + "/overview.json", headers={"x-api-key": TOKEN}, timeout=30)
    assert shown.status_code == 200
    assert TOKEN not in shown.text


def test_stock_server_has_the_page_too(visit: Callable[..., Visit], stock: str) -> None:
    """On a server with a stock server's protocol a picture can be tried all the same."""
    here = visit(stock)
    here.sees_picture("one.png", png(123))
    expect(here.page.locator("#objects")).to_contain_text("ends in 3")
    expect(here.page.locator("#version")).to_contain_text("as a stock server")
    assert here.complaints == []
