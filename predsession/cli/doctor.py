"""``predsession doctor``: what is wrong with the way to a server, in plain words."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from predsession.cli.codes import OK, SERVER, USAGE, print_json
from predsession.cli.commands import add_command
from predsession.cli.numbers import seconds
from predsession.cli.reach import add_ca, add_token, add_url, url_of, verify_of

if TYPE_CHECKING:
    from predsession.doctor import Examination, Finding

EXAMPLES = """\
It takes some seconds; of a slow server a minute, and the time for one or two answers.

examples:
  predsession doctor http://192.168.1.20:8000
  predsession doctor https://models.example.com --ca company.pem
  PREDSESSION_TOKEN=... predsession doctor https://models.example.com --json
"""
CODES = {OK: "nothing is bad, warnings or not", USAGE: "wrong usage", SERVER: "something is bad"}
_MARGIN = 21
"""Columns of verdict and check before the text."""
_WIDTH = 100


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    doctor = add_command(
        commands,
        "doctor",
        "what is wrong with the way to a server, and what to do",
        notes=EXAMPLES,
        codes=CODES,
    )
    add_url(doctor)
    add_token(doctor)
    add_ca(doctor)
    doctor.add_argument(
        "--timeout", type=seconds(86400), default=30.0, metavar="SECONDS", help="for an answer (default: 30)"
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from predsession.checks import check_token
    from predsession.doctor import Verdict, examine

    examination = examine(
        url_of(args),
        token=check_token(args.token),
        verify=verify_of(args),
        timeout=args.timeout,
        on_finding=None if args.json else _print,
    )
    if args.json:
        print_json(examination.to_json())
    else:
        _sum_up(examination)
    return SERVER if examination.verdict is Verdict.BAD else OK


def _print(finding: Finding) -> None:
    """Print a finding as soon as it is made: the whole takes some seconds."""
    print(_laid_out(f"{finding.verdict.value:<7}  {finding.check:<11} ", finding.text))
    for detail in finding.details:
        print(_laid_out(" " * _MARGIN + "- ", detail))
    if finding.advice:
        print(_laid_out(" " * _MARGIN + "-> ", finding.advice))
    print(end="", flush=True)  # also where there is no standard output at all


def _laid_out(head: str, text: str) -> str:
    """Return a text in lines behind its head; names and addresses stay whole."""
    from predsession.inputs.items import printable

    # What a server says stands in it, and must not reach the terminal as a command.
    lines = textwrap.wrap(
        printable(text), _WIDTH, initial_indent=head, subsequent_indent=" " * len(head),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines)


def _sum_up(examination: Examination) -> None:
    """Print the counts, and what was not seen."""
    from predsession.doctor import Verdict

    if examination.unseen:
        names = f"{', '.join(examination.unseen)}: what is bad, or slow, is in the way."
        print(_laid_out(f"{'-':<7}  {'not seen':<11} ", names))
    bad, warnings = examination.count(Verdict.BAD), examination.count(Verdict.WARNING)
    noun = "warning" if warnings == 1 else "warnings"
    print(f"\n{bad} bad, {warnings} {noun}, {examination.count(Verdict.OK)} ok")
