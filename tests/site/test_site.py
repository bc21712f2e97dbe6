"""The documentation site, as `scripts/docs` has just built it."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import public_api
import pytest
from sphinx.util.inventory import InventoryFile

from predsession import errors
from predsession.cli import _parser

pytestmark = pytest.mark.site

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs-build" / "html"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
COLUMNS = 90
"""That a block shows beside the menus of a window 1366 pixels wide; in a list it is two fewer a level."""
ROOMS = sorted({*public_api.PUBLIC, "predsession.plots"})


class Page(HTMLParser):
    """Where a page leads to, what it loads, the places in it that can be led to, what it says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.kinds: set[str] = set()
        self.places: set[str] = set()
        self.text = ""
        self.blocks: list[str] = []
        self._within: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element leads to, loads, or is called."""
        found = {name: value for name, value in attrs if value is not None}
        if tag in {"pre", "script", "style"}:
            self._within.append(tag)
            self.blocks += [""] if tag == "pre" else []
        self.places.update(found[name] for name in ("id", "name") if name in found)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and (kinds := {"stylesheet", "icon", "preload"} & {*found.get("rel", "").split()}):
            self.loads.append(found["href"])
            self.kinds |= kinds
        elif tag in {"img", "script"} and "src" in found:
            self.loads.append(found["src"])

    def handle_endtag(self, tag: str) -> None:
        """Note what is left."""
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        """Note what can be read: blocks, and the rest."""
        if "pre" in self._within:
            self.blocks[-1] += data
        if not {"script", "style"} & {*self._within}:
            self.text += data


@cache
def page(name: str) -> Page:
    """Read a page."""
    return Page((SITE / name).read_text())


def is_outside(link: str) -> bool:
    """Whether a link leaves the site."""
    return re.match(r"[a-z]+:", link) is not None


def target(name: str, link: str) -> tuple[Path, str]:
    """Return the file that a page's link means, and the place in it."""
    address, place = urldefrag(link)
    address = unquote(address).partition("?")[0]
    return ((SITE / name).parent / address).resolve() if address else SITE / name, unquote(place)


def has_place(file: Path, place: str) -> bool:
    """Whether a page of the site has something of that name."""
    return place in page(file.relative_to(SITE).as_posix()).places


@cache
def inventory() -> dict[str, set[str]]:
    """Return what the site explains: the names of each kind."""
    with (SITE / "objects.inv").open("rb") as file:
        kinds = InventoryFile.load(file, "", lambda _, place: place)
        return {kind: set(found) for kind, found in kinds.items()}


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield every command that is one, and those inside of it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from commands(command)


def test_there_is_a_site() -> None:
    """`scripts/docs` builds before it comes here; a test of nothing would pass."""
    assert "index.html" in PAGES, "run scripts/docs"
    assert len(PAGES) > 20


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_explained(room: str) -> None:
    """What `__all__` lists stands in docs/reference, under the name by which it is imported."""
    explained = {name for kind, names in inventory().items() if kind.startswith("py:") for name in names}
    public = {f"{room}.{name}" for name in importlib.import_module(room).__all__}
    assert public - explained == set()


def test_names_of_other_modules_are_explained() -> None:
    """So are those that the documents import from elsewhere."""
    explained = inventory()["py:class"] | inventory()["py:data"]
    beyond = {f"{room}.{name}" for room, names in public_api.BEYOND.items() for name in names}
    assert beyond - explained == set()


def test_every_error_is_explained() -> None:
    """Each class of `predsession.errors` is in the reference, by its public name or by that of its home."""
    explained = inventory()["py:exception"]
    missing = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, BaseException)
        if not {f"predsession.{name}", f"predsession.errors.{name}"} & explained
    ]
    assert missing == []


def test_every_command_and_option_is_explained() -> None:
    """The page of commands has what the parsers have."""
    explained = inventory()["std:cmdoption"]
    found = list(commands(_parser()))
    assert len(found) > 8
    missing = [
        f"{command.prog} {option}"
        for command in found
        for action in command._actions
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction)
        for option in action.option_strings
        if f"{command.prog.replace(' ', '-')}.{option}" not in explained
    ]
    assert missing == []


def test_a_command_is_described_once() -> None:
    """In the words of its help, which every command has; and how it is called fits."""
    for command in commands(_parser()):
        text = command.description or ""
        sentence = f"{text[:1].upper()}{text[1:]}."
        assert page("commands.html").text.count(f"\n{sentence}\n") == 1, sentence


def test_options_are_spelt_with_hyphens() -> None:
    """A dash that a typesetter makes of two, or a curled quote, cannot be typed, copied or searched for."""
    made = {
        name: re.findall(r"\S*[\u2012-\u2015]\w\S*|\S*[\u2018\u201c]\S+", page(name).text) for name in PAGES
    }
    assert {name: found for name, found in made.items() if found} == {}
    assert "Of --out" in page("commands.html").text


def test_no_block_is_cut_off() -> None:
    """Code is read whole, also in a narrower window; a backslash, or a name more, parts a long line."""
    wide = {
        name: [line for block in page(name).blocks for line in block.splitlines() if len(line) > COLUMNS]
        for name in PAGES
    }
    assert {name: lines for name, lines in wide.items() if lines} == {}


def test_a_status_can_be_searched_for() -> None:
    """The search passes over bare numbers, so each that has a section has words beside it."""
    text = page("troubleshooting.html").text
    for number in (400, 401, 403, 404, 405, 413, 415, 422, 429, 500, 502, 503, 504, 507):
        assert re.search(rf"\b{number}\s\([a-z ]+\)", text), number


def test_every_page_is_reached_from_the_front_page() -> None:
    """By links alone, without the search."""
    seen, waiting = {"index.html"}, ["index.html"]
    while waiting:
        name = waiting.pop()
        for link in page(name).links:
            if is_outside(link):
                continue
            file, _ = target(name, link)
            found = file.relative_to(SITE).as_posix() if file.is_relative_to(SITE) else ""
            if found in PAGES and found not in seen:
                seen.add(found)
                waiting.append(found)
    assert set(PAGES) - seen - {"search.html", "404.html"} == set()


def test_no_link_is_dead() -> None:
    """Each link within the site leads to a file, and to a place in it that exists."""
    dead = []
    for name in PAGES:
        for link in {*page(name).links, *page(name).loads}:
            if is_outside(link) or link == "#":
                continue
            file, place = target(name, link)
            if not file.is_relative_to(SITE) or not file.is_file():
                dead.append(f"{name}: {link}")
            elif place and file.suffix == ".html" and not has_place(file, place):
                dead.append(f"{name}: {link} (no such place)")
    assert dead == []


def test_every_picture_is_shown() -> None:
    """A file of docs/images that no document shows is a leftover; one too large is slow to come."""
    documents = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    shown = {
        name for path in documents for name in re.findall(r"images/([\w.-]+)\)", path.read_text("utf-8"))
    }
    pictures = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images").iterdir()}
    assert set(pictures) == shown
    assert max(pictures.values()) < 200_000


def test_every_page_has_an_icon() -> None:
    """Browsers ask for one; a page that names none gets an error."""
    assert [name for name in PAGES if "icon" not in page(name).kinds] == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    """A page needs no other host: no fonts, scripts, counters."""
    assert [(name, load) for name in PAGES for load in page(name).loads if is_outside(load)] == []


def test_no_path_of_this_machine_is_in_it() -> None:
    """Neither the clone's place nor a home folder, in text, scripts or the search index."""
    private = [str(ROOT), f"{Path.home()}/"]
    found = [
        f"{path.relative_to(SITE)}: {words}"
        for path in SITE.rglob("*")
        if path.suffix in {".html", ".js", ".txt", ".inv", ".css"}
        for words in private
        if words.encode() in path.read_bytes()
    ]
    assert found == []
