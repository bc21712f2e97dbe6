"""What every command has: its place among the others, and a help that says what it does and how it ends."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping

from predsession.cli.codes import MEANINGS, OK, SERVER, USAGE

WIDTH = 88
"""Columns that a line of examples has at most: the site shows so many beside its lists."""
USUAL: tuple[int, ...] = (OK, USAGE, SERVER)
"""How a command ends that asks a server once."""


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    *,
    notes: str = "",
    codes: Iterable[int] | Mapping[int, str] = USUAL,
) -> argparse.ArgumentParser:
    """Add a command.

    Parameters
    ----------
    commands : subparsers
        Those of `predsession`, or of one of its commands.
    name : str
        What is typed.
    text : str
        What it does: the list of commands says it, and the command's own help.
    notes : str
        Examples and the like, for the end of its help.
    codes : iterable of int, or mapping of int to str
        The exit codes that it may end with, signals excepted; with what they mean where that differs. None
        for a command that has commands.

    Returns
    -------
    ArgumentParser
        To which arguments may be added.
    """
    meanings = codes if isinstance(codes, Mapping) else {code: MEANINGS[code] for code in codes}
    parts = [notes.strip("\n"), *(["exit codes:\n" + listed(meanings)] if meanings else [])]
    return commands.add_parser(
        name,
        help=text,
        description=text,
        epilog="\n\n".join(filter(None, parts)) or None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def listed(meanings: Mapping[int, str]) -> str:
    """Return exit codes and what they mean, a line each."""
    return "\n".join(f"  {code:<3}  {meaning}" for code, meaning in meanings.items())
