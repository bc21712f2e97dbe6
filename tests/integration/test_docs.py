"""What the documents show works as it stands there, and what they link to is there."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import documents
import pytest
from documents import DOCUMENTS, LANGUAGES, ROOT, name_of
from tensor_models import arithmetic

from predsession import errors
from predsession.cli import _parser


def test_the_network_of_the_examples() -> None:
    """examples/add.onnx is what `tensor_models.arithmetic` makes: there are no other tools for it."""
    assert (ROOT / "examples" / "add.onnx").read_bytes() == arithmetic()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_block_is_of_a_kind_that_is_tried(document: Path) -> None:
    """Python and console are run, TOML and JSON read, text is output; what is in braces is the site's."""
    for language, body in documents.blocks(document.read_text()):
        assert language in LANGUAGES or language.startswith("{"), f"a block of {language or 'no language'!r}"
        if language == "toml":
            tomllib.loads(body)
        elif language == "json":
            json.loads(body)


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_every_link_leads_somewhere(document: Path) -> None:
    """To a file of the clone and, after a #, to a heading in it: as a forge shows them, unbuilt."""
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", documents.prose(document)):
        if re.match("[a-z]+:", link):
            continue
        path, _, place = link.partition("#")
        file = (document.parent / path).resolve() if path else document
        if not file.exists() or (place and place not in documents.anchors(file)):
            dead.append(link)
    assert dead == []


def test_every_error_has_its_section() -> None:
    """docs/troubleshooting.md has a heading for each class of `predsession.errors`, and for nothing else."""
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    found = [each for each in documents.headings(ROOT / "docs" / "troubleshooting.md") if " " not in each]
    assert sorted({*found} - {"Troubleshooting", "Warnings"}) == sorted(classes)
    assert len(found) == len(set(found))


def helps(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the example lines of a parser's help, and of its commands'."""
    for line in (parser.epilog or "").splitlines():
        if line.startswith("  predsession "):
            yield re.split(r"\s{2,}| [|>] ", line.strip())[0]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from helps(command)


def test_the_examples_of_the_help_are_calls() -> None:
    """What `--help`, and with it the site's page of commands, shows is taken by the parsers."""
    examples = list(helps(_parser()))
    assert len(examples) > 15
    for line in examples:
        _parser().parse_args(shlex.split(line)[1:])
