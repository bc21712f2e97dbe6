"""Sphinx: every command and option, from the parsers that `predsession` itself uses.

The page `commands` holds a comment, ``<!-- commands -->``, which is replaced when the site is built.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from sphinx.application import Sphinx

from predsession.cli import _parser
from predsession.cli.commands import WIDTH

PAGE = "commands"
MARKER = "<!-- commands -->"


def commands(parser: argparse.ArgumentParser, depth: int = 2) -> Iterator[str]:
    """Yield the Markdown of a parser's commands, and of theirs."""
    for group in parser._actions:
        if not isinstance(group, argparse._SubParsersAction):
            continue
        for command in group.choices.values():
            yield f"{'#' * depth} {command.prog.partition(' ')[2]}\n"
            yield f"{sentence(command.description or '')}\n"
            yield from describe(command)
            yield from commands(command, depth + 1)


def describe(command: argparse.ArgumentParser) -> Iterator[str]:
    """Yield one command: how it is called, its arguments, its options, its examples."""
    yield f"```text\n{usage_of(command)}\n```\n"
    yield f"```{{program}} {command.prog}\n```\n"
    for group in command._action_groups:
        if group.title not in {"positional arguments", "options"} and group._group_actions:
            about = f": {escaped(group.description)}" if group.description else ""
            yield f"**{escaped((group.title or '').capitalize())}**{about}\n"
        for action in group._group_actions:
            if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
                yield option(action, command)
    if command.epilog:
        yield f"```text\n{command.epilog.strip()}\n```\n"


def usage_of(command: argparse.ArgumentParser) -> str:
    """Return how a command is called, in lines for a page, whatever the terminal's width."""
    formatter = command.formatter_class(prog=command.prog, width=WIDTH)
    formatter.add_usage(command.usage, command._actions, command._mutually_exclusive_groups, prefix="")
    return formatter.format_help().rstrip()


def option(action: argparse.Action, command: argparse.ArgumentParser) -> str:
    """Return one argument or option."""
    formatter = command._get_formatter()
    if action.option_strings:
        takes = "" if action.nargs == 0 else f" {formatter._format_args(action, metavar(action))}"
        names = ", ".join(f"{name}{takes}" for name in action.option_strings)
    else:
        names = formatter._format_args(action, metavar(action))
    text = formatter._expand_help(action) if action.help else ""
    return f"```{{option}} {names}\n{sentence(text)}\n```\n"


def metavar(action: argparse.Action) -> str:
    """Return what stands for the value."""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(str(choice) for choice in action.choices) + "}"
    return action.dest.upper() if action.option_strings else action.dest


def escaped(text: str) -> str:
    """Return a text in which nothing is markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", text)


def sentence(text: str) -> str:
    """Return a help text as a sentence."""
    text = escaped(text)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', ':')) else '.'}" if text else ""


def fill(app: Sphinx, docname: str, content: list[str]) -> None:
    """Put the commands in their place."""
    if docname == PAGE:
        content[0] = content[0].replace(MARKER, "\n".join(commands(_parser())))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
