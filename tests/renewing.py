"""Write anew what tests keep as it is: the list of the public API, the completions of shells.

``scripts/renew`` runs it; tests/unit/test_public_api.py and tests/unit/test_completions.py compare.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import shtab
from public_api import API_FILE, describe_all

from predsession.cli import _parser
from predsession.cli.completion import SHELLS

COMPLETIONS = Path(__file__).parents[1] / "predsession" / "cli" / "completions"
FILES = re.compile(r"\b(FILE|PATH|SOURCE|STORE|INPUT|CLIP)\b|FILE\.")
"""In the name of what an argument takes: files are offered for it."""
FOLDERS = re.compile(r"\b(DIR|FOLDER)\b")


def completion_for(shell: str) -> str:
    """Return the script for a shell, as it should be."""
    parser = _parser()
    for each in _parsers(parser):
        for action in each._actions:
            _say_what_it_takes(action)
    return shtab.complete(parser, shell)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and all below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                yield from _parsers(inner)


def _say_what_it_takes(action: argparse.Action) -> None:
    """Tell shtab which arguments are files and folders."""
    name = str(action.metavar or "")
    if FOLDERS.search(name):
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif FILES.search(name) and ":" not in name:
        action.complete = shtab.FILE  # type: ignore[attr-defined]


def main() -> None:
    """Write all of it."""
    for shell in SHELLS:
        (COMPLETIONS / f"predsession.{shell}").write_text(completion_for(shell), "utf-8")
    API_FILE.write_text(describe_all(), "utf-8")


if __name__ == "__main__":
    main()
