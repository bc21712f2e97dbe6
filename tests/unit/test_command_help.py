"""What `--help` says: every command, argument and default, in one style."""

from __future__ import annotations

import argparse
import inspect
import re
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from predsession import PredictionSession
from predsession.cli import _parser, main
from predsession.cli.codes import MEANINGS
from predsession.cli.commands import WIDTH
from predsession.cli.outputs import FORMATS
from predsession.export import formats
from predsession.stream import StreamSession

DOCS = Path(__file__).parents[2] / "docs"
METAVARS = {
    "ADDRESS", "CALL", "COMMAND", "DIR", "FILE", "FORMAT", "HOST", "ID", "INPUT", "MODEL", "N", "NAME",
    "ORIGIN", "PATH", "PORT", "SCORE", "SECONDS", "SOURCE", "STORE", "STREAM", "TOKEN", "URL", "UUID",
    "NAME:FUNCTION", "NAME:VALUE", "NAME=PATH", "NAME=SHAPE", "NAME=VALUE", "[NAME=]MODEL",
}  # fmt: skip
"""What stands for values: add a word only for what none of these means."""
HTTP = ("predict", "info", "jobs", "doctor")
"""Commands that speak with a server of images only."""


def walk(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Yield each command and those in it, with what the list that it stands in says of it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                yield command, helps[name]
                yield from walk(command)


COMMANDS = {command.prog.partition(" ")[2]: (command, text) for command, text in walk(_parser())}
every_command = pytest.mark.parametrize("name", COMMANDS)


def options(name: str) -> list[argparse.Action]:
    """Return a command's own arguments and options."""
    passed = argparse._HelpAction | argparse._SubParsersAction
    return [action for action in COMMANDS[name][0]._actions if not isinstance(action, passed)]


def is_leaf(command: argparse.ArgumentParser) -> bool:
    """Whether a command has none of its own."""
    return not any(isinstance(action, argparse._SubParsersAction) for action in command._actions)


def test_there_are_commands() -> None:
    """All that the tests below walk over."""
    assert {"predict", "serve", "jobs", "edge infer", "tensor bench", "results show"} < COMMANDS.keys()


@every_command
def test_a_command_says_what_it_does(name: str) -> None:
    """Its own help, and the list of commands, in the same words."""
    command, text = COMMANDS[name]
    assert text
    assert command.description == text
    assert text in command.format_help()


@every_command
def test_a_command_says_how_it_ends(name: str) -> None:
    """Each that does something tells its exit codes, of which 0 and 2 are everybody's."""
    command, _ = COMMANDS[name]
    told = re.findall(r"^  (\d+) {2,}\S", (command.epilog or "").partition("exit codes:\n")[2], re.MULTILINE)
    assert told == sorted(told)
    assert {"0", "2"} <= {*told} if is_leaf(command) else told == []


def test_the_exit_codes_are_the_same_everywhere() -> None:
    """`predsession --help` and docs/commands.md have all of them, in the same words."""
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", (DOCS / "commands.md").read_text(), re.MULTILINE)
    assert {int(code): text for code, text in rows} == MEANINGS
    shown = _parser().format_help()
    assert all(re.search(rf"^  {code} +{re.escape(text)}$", shown, re.MULTILINE) for code, text in rows)


@every_command
def test_every_argument_is_explained(name: str) -> None:
    """Each has a help; what stands for its value is in capitals, and one of few words."""
    for action in options(name):
        assert action.help, f"{action.option_strings or action.dest} has no help"
        if action.nargs == 0 or (action.choices is not None and action.metavar is None):
            continue
        assert action.metavar in METAVARS, f"{action.option_strings or action.dest} takes {action.metavar!r}"


@every_command
def test_defaults_are_told_in_one_way(name: str) -> None:
    """At the end, as "(default: X)"; a number or word that the parser fills in is always told, and right."""
    formatter = COMMANDS[name][0]._get_formatter()
    for action in options(name):
        help_text = formatter._expand_help(action)
        told = re.search(r" \(default: ([^()]+)\)$", help_text)
        assert len(re.findall("default", help_text)) == (told is not None), help_text
        assert not re.search(r"\(\d+\)", help_text), help_text
        if action.default is None or isinstance(action.default, bool | list) or action.nargs == 0:
            continue
        assert told is not None, f"{action.option_strings} is {action.default!r} by default: say so"
        if isinstance(action.default, str):
            assert told[1] == action.default
        else:
            units = {"K": 2**10, "M": 2**20, "G": 2**30}
            assert float(told[1].rstrip("KMG")) * units.get(told[1][-1], 1) == action.default


@pytest.mark.parametrize(("name", "session"), [("predict", PredictionSession), ("stream", StreamSession)])
def test_defaults_of_sessions_are_theirs(name: str, session: type) -> None:
    """What the parser leaves to the session is told as the session has it."""
    parameters = inspect.signature(session).parameters
    compared = 0
    for action in options(name):
        told = re.search(r"\(default: ([\d.]+|yield|raise)\)$", action.help or "")
        if told is None or action.default == told[1]:
            continue
        assert str(told[1]) == f"{parameters[action.dest].default}".removesuffix(".0")
        compared += 1
    assert compared >= 2


@every_command
def test_what_may_come_often_says_so(name: str) -> None:
    """An option that gathers is "(repeatable)", and no other is."""
    for action in options(name):
        assert ("(repeatable)" in (action.help or "")) == isinstance(action, argparse._AppendAction)


@every_command
def test_lines_of_examples_fit(name: str) -> None:
    """On a terminal of usual width, and beside the site's lists."""
    assert [line for line in (COMMANDS[name][0].epilog or "").splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("name", HTTP)
def test_a_server_is_reached_alike(name: str) -> None:
    """URL, token and CA bundle, each with the variable that is read where it is not given."""
    found = {(action.option_strings or [action.dest])[0].strip("-"): action for action in options(name)}
    for what, variable in {
        "url": "PREDSESSION_URL", "token": "PREDSESSION_TOKEN", "ca": "REQUESTS_CA_BUNDLE",
    }.items():  # fmt: skip
        assert not found[what].required
        assert f"(default: ${variable}" in (found[what].help or "")


@every_command
def test_who_takes_a_token_says_which_authorities_are_trusted(name: str) -> None:
    """By --ca, or by the variables; `serve` is no client."""
    command, _ = COMMANDS[name]
    if name != "serve" and any(action.dest == "token" for action in command._actions):
        shown = command.format_help()
        assert "--ca " in shown or {"REQUESTS_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"} <= {
            *re.findall(r"[A-Z_]{8,}", shown)
        }


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run commands in this process, which gets its signal handlers and its way to show warnings back."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("words", ["info", "jobs", "jobs --stop 1", "jobs --attach 1", "doctor"])
def test_no_url_at_all(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Is wrong usage, and the message names both ways to give one."""
    monkeypatch.delenv("PREDSESSION_URL", raising=False)
    assert main(words.split()) == 2
    assert "pass the server's URL, or set PREDSESSION_URL" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("words", ["info", "jobs", "jobs --attach 1", "predict photo.jpg", "doctor"])
def test_authorities_that_are_not_there(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Are wrong usage, in every command, before anything is sent."""
    url = ["--url"] if words.startswith("predict") else []
    assert main([*words.split(), *url, "https://127.0.0.1:1", "--ca", "/no/such.pem"]) == 2
    assert "--ca /no/such.pem: there is no such file" in capsys.readouterr().err


def test_formats_that_are_read() -> None:
    """The help of `convert --from` excepts just those that cannot be."""
    unread = {name for name in FORMATS if formats.FORMATS[name].read is None}
    [action] = [action for action in options("convert") if action.option_strings == ["--from"]]
    assert unread == {"html", "video"}
    assert (action.help or "").endswith("a name of --to, html and video excepted")
