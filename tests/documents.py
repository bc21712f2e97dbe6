"""README.md and what is in docs/, taken apart: fenced blocks, commands, links, headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
LANGUAGES = {"python", "console", "text", "toml", "json"}
"""What a block may be, so that none with code escapes: directives of the site are in braces."""


def name_of(document: Path) -> str:
    """Return a document's place in the clone."""
    return document.relative_to(ROOT).as_posix()


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield language and text of each fenced block, wherever it is indented to."""
    for _, _, language, body in re.findall(
        r"^( *)(`{3,}|:{3,})([^\n]*)\n(.*?)^\1\2 *$", text, re.DOTALL | re.MULTILINE
    ):
        yield language.strip(), body


def of(document: Path, language: str) -> list[str]:
    """Return the blocks of one language."""
    return [body for found, body in blocks(document.read_text()) if found == language]


def lines(body: str) -> list[str]:
    """Return what follows each ``$`` in a console block, joined where a backslash parts it."""
    whole = re.sub(r" *\\\n *", " ", body)
    return [line.removeprefix("$ ") for line in whole.splitlines() if line.startswith("$ ")]


def commands(document: Path) -> list[str]:
    """Return the lines of all console blocks."""
    return [line for body in of(document, "console") for line in lines(body)]


def yours(document: Path) -> list[str]:
    """Return what a page calls the reader's own, in words such as "`photos/` and `clip.mp4` are yours"."""
    text = re.sub(r"^( *)(`{3,}|:{3,}).*?^\1\2 *$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    said = re.findall(r"((?:`[^`]+`[\s,]*(?:and\s+)?)+)(?:is|are)\s+yours\b", text)
    return [name.rstrip("/") for names in said for name in re.findall("`([^`]+)`", names)]


def prose(document: Path) -> str:
    """Return a document without its blocks and code."""
    text = re.sub(r"^( *)(`{3,}|:{3,}).*?^\1\2 *$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "CODE", text)


def headings(document: Path) -> list[str]:
    """Return the headings."""
    text = re.sub(r"^( *)(`{3,}|:{3,}).*?^\1\2 *$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """Return the places of a document that a link may lead to, as a forge names them."""
    found: dict[str, int] = {}
    for heading in headings(document):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {f"{slug}-{count}" if count else slug for slug, last in found.items() for count in range(last + 1)}
