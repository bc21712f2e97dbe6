"""``predsession doctor``: what is wrong with the way to a server, in plain words."""

from __future__ import annotations

import argparse
import json
import os
import textwrap
from typing import TYPE_CHECKING

from predsession.cli.codes import OK, SERVER, speaks_utf8
from predsession.errors import SourceError

if TYPE_CHECKING:
    from predsession.doctor import Examination, Finding

EXAMPLES = """\
It takes some seconds; of a slow server a minute, and the time for one or two answers.

examples:
  predsession doctor http://192.168.1.20:8000
  predsession doctor https://models.example.com --ca company.pem
  PREDSESSION_TOKEN=... predsession doctor https://models.example.com --json

Exit codes: 0 nothing is bad, warnings or not; 3 something is bad; 2 wrong usage.
"""
_MARGIN = 21
"""Columns of verdict and check before the text."""
_WIDTH = 100


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    doctor = commands.add_parser(
        "doctor",
        help="what is wrong with the way to a server, and what to do",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    doctor.add_argument(
        "url", nargs="?", metavar="URL", help="the server's base URL; default: $PREDSESSION_URL"
    )
    doctor.add_argument(
        "--token", help="for the server; default: $PREDSESSION_TOKEN, which no list of processes shows"
    )
    doctor.add_argument("--ca", metavar="FILE", help="a CA bundle to trust")
    doctor.add_argument(
        "--timeout", type=_seconds, default=30.0, metavar="SECONDS", help="for an answer (default 30)"
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(run=run)


def _seconds(text: str) -> float:
    """Read a time."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.001 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds from 0.001 to 86400")
    return value


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from predsession.checks import URL_VARIABLE, check_token
    from predsession.doctor import Verdict, examine

    url = os.environ.get(URL_VARIABLE) or None if args.url is None else args.url
    if url is None:
        raise SourceError(f"pass the server's URL, or set {URL_VARIABLE}")
    if args.ca is not None and not os.path.exists(args.ca):  # noqa: PTH110 - a folder is fine, too
        raise SourceError(f"--ca {args.ca}: there is no such file")
    examination = examine(
        url,
        token=check_token(args.token),
        verify=args.ca or True,
        timeout=args.timeout,
        on_finding=None if args.json else _print,
    )
    if args.json:
        print(json.dumps(examination.to_json(), ensure_ascii=not speaks_utf8()))
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
    lines = textwrap.wrap(
        text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head),
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
