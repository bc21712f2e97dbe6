"""The command line, a file a command.

``predict | serve | info | jobs | convert | edge | tensor | stream | results | doctor | completion``

Only the result goes to standard output; progress and messages go to standard error. Exit codes: 0 all went
well, 1 some items failed, 2 wrong usage or source, 3 the server, 130 interrupted, 129 hung up, 143 ended.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from predsession import __version__
from predsession.cli import completion, convert, doctor, edge, inspect, predict, results, stream, tensor
from predsession.cli.codes import INTERRUPTED, MEANINGS, OK, SERVER, USAGE, say, write_error
from predsession.cli.commands import add_command, listed
from predsession.errors import (
    DiskError,
    JournalError,
    MissingExtraError,
    PredSessionError,
    SourceError,
    StoreError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; those of the process by default.

    Returns
    -------
    int
        The exit code.
    """
    if sys.stderr is None:  # it was closed; from here on nobody has to ask
        write_error("")
    # What the terminal cannot show is escaped; it must not end a run.
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="backslashreplace")
    warnings.showwarning = _tell
    args = _parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is ended; a second one changes only the exit code
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (SourceError, JournalError, StoreError, DiskError, MissingExtraError) as error:
        say(str(error))
        return USAGE
    except PredSessionError as error:
        # Before the built-in errors: a time-out of ours is an OSError, too.
        say(str(error))
        return SERVER
    except (TypeError, ValueError, OSError) as error:
        say(str(error))
        return USAGE


def _tell(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning: what is meant for users in a line of ours, others as Python does."""
    if issubclass(category, UserWarning):
        say(str(message))
        return
    text = warnings.formatwarning(message, category, filename, lineno, line)
    if file is None:
        write_error(text)
    else:
        file.write(text)


def _parser() -> argparse.ArgumentParser:
    """Build the parser; nothing heavy is imported for it."""
    parser = argparse.ArgumentParser(
        prog="predsession",
        description="Run images through a deployed model.",
        epilog=f"exit codes:\n{listed(MEANINGS)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"predsession {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    predict.add_to(commands)
    _add_serve(commands)
    inspect.add_to(commands)
    convert.add_to(commands)
    edge.add_to(commands)
    tensor.add_to(commands)
    stream.add_to(commands)
    results.add_to(commands)
    doctor.add_to(commands)
    completion.add_to(commands)
    return parser


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``serve``, whose options belong to the server's room."""
    from predsession.server import command

    serve = add_command(commands, "serve", "run the embedded server", codes=command.CODES)
    command.add_arguments(serve)
    serve.set_defaults(run=command.run)
