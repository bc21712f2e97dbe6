"""``predsession stream``: an endless source through a model into a store."""

from __future__ import annotations

import argparse
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import quote

from predsession.cli.codes import (
    INTERRUPTED,
    OK,
    SERVER,
    SOME_FAILED,
    TERMINATED,
    USAGE,
    leave_on_signals,
    say,
    write_error,
)
from predsession.cli.commands import add_command
from predsession.cli.predict import setting
from predsession.cli.reach import TRUST, add_token
from predsession.errors import ItemError, PredSessionError, SourceError

if TYPE_CHECKING:
    from predsession.stream import StreamSession

EXAMPLES = """\
examples:
  predsession stream inbox/ --url http://127.0.0.1:8000 --store r.lance  watch a folder
  predsession stream inbox/ --store r.parquet --no-follow                what is in it
  predsession stream rtsp://camera/1 --store r.lance --flush-after 1
  predsession stream kafka://127.0.0.1:9092/alerts --model m.py:predict --store r.lance
  predsession stream --config night.toml                                 all in a file

Ctrl-C, or SIGTERM, finishes the batch in hand and ends; a second one ends at once.
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    stream = add_command(
        commands,
        "stream",
        "run an endless source through a model, into a store",
        notes=f"{EXAMPLES}{TRUST}",
        codes=(OK, SOME_FAILED, USAGE, SERVER),
    )
    _add_model(stream)
    add = stream.add_argument
    add("source", nargs="?", metavar="SOURCE",
        help="a folder that is watched, a video, a camera, kafka://host:port/topic")  # fmt: skip
    add("--store", metavar="PATH", help="results.lance or results.parquet; what is there is added to")
    add("--config", metavar="FILE", help="a TOML file with these; options of the command line go before")
    add("--batch-size", type=int, metavar="N", help="samples in a batch (default: 64)")
    add("--flush-after", type=float, metavar="SECONDS",
        help="for which the first sample of a batch waits for others (default: 5)")  # fmt: skip
    add("--on-error", choices=("raise", "skip"),
        help="what the model fails at ends the run, or becomes a dead letter (default: raise)")  # fmt: skip
    add("--no-follow", action="store_true", help="end after what is in the folder now")
    add("--group", metavar="NAME", help="Kafka's consumer group")
    add("--decode", metavar="NAME:FUNCTION",
        help="makes samples of Kafka's messages (default: they are JSON)")  # fmt: skip
    add("--quiet", action="store_true", help="show no progress bar")
    stream.set_defaults(run=run)


def _add_model(stream: argparse.ArgumentParser) -> None:
    """Add the options of the model."""
    which = stream.add_mutually_exclusive_group()
    which.add_argument("--url", metavar="URL",
        help="the server: http://host:port, grpc://host:port/model (default: $PREDSESSION_URL)")  # fmt: skip
    which.add_argument("--model", metavar="NAME:FUNCTION",
        help="a function of a batch instead: module:function, or file.py:function")  # fmt: skip
    add = stream.add_argument
    add("--conf", type=float, metavar="SCORE", help="the lowest score")
    add("--class", dest="classes", action="append", metavar="NAME", help="keep this class (repeatable)")
    add("--set", dest="settings", action="append", type=setting, default=[], metavar="NAME=VALUE",
        help="another of the model's settings; VALUE is JSON or text (repeatable)")  # fmt: skip
    add_token(stream)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from predsession.stream import StreamSession

    leave_on_signals()
    make: Callable[..., StreamSession] = StreamSession
    session = make(**_arguments(args))
    try:
        with session, _stopping(session) as signals:
            for _ in session:
                pass
    except ItemError as error:
        say(str(error))
        return SOME_FAILED
    except PredSessionError:
        raise
    except Exception as error:  # noqa: BLE001 - the model's own: all others are of the package
        _print_theirs(error)
        say("the model failed; the batch in hand comes again in the next run. --on-error skip goes on")
        return SERVER
    finally:
        _summary(session)
    if signals:
        return INTERRUPTED if signals[0] == signal.SIGINT else TERMINATED
    return SOME_FAILED if session.counts.dead else OK


def _print_theirs(error: BaseException) -> None:
    """Print a traceback without what is ours."""
    ours = str(Path(__file__).parents[1]) + os.sep
    whole = traceback.TracebackException.from_exception(error)
    waiting: list[traceback.TracebackException | None] = [whole]
    while waiting:
        each = waiting.pop()
        if each is not None:
            theirs = [frame for frame in each.stack if not frame.filename.startswith(ours)]
            each.stack = traceback.StackSummary.from_list(theirs)
            waiting += [each.__cause__, each.__context__]
    write_error("".join(whole.format()))


@contextmanager
def _stopping(session: StreamSession) -> Iterator[list[int]]:
    """Have the first signal stop the session, and the second end the process; yields those that came."""
    came: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        came.append(number)
        session.stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        leave_on_signals()

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _summary(session: StreamSession) -> None:
    """Say what became of it."""
    counts = session.counts
    say(
        f"{counts.stored} stored, {counts.skipped} skipped, {counts.dead} dead letters, "
        f"{counts.rate:.1f} a second"
    )


def _arguments(args: argparse.Namespace) -> dict[str, object]:
    """Return the session's arguments: of the file, then of the command line."""
    from predsession.checks import url_of_environment
    from predsession.http.auth import find_token
    from predsession.stream.config import load_model, load_object, read_table, resolved

    found: dict[str, object] = {}
    given = read_table(Path(args.config)) if args.config else {}
    ours = {
        "model": args.model or args.url or (None if "model" in given else url_of_environment()),
        "source": args.source,
        "store": args.store,
        "batch_size": args.batch_size,
        "flush_after": args.flush_after,
        "on_error": args.on_error,
        "decode": args.decode,
        "token": args.token,
    }
    ours = {key: value for key, value in ours.items() if value is not None}
    if args.config:  # what the command line replaces is not even loaded
        found = resolved({key: value for key, value in given.items() if key not in ours}, Path(args.config))
    found |= ours
    _check(found)
    here = Path()
    if "model" in ours:
        found["model"] = args.url or (load_model(str(ours["model"]), here))
    if "decode" in ours:
        found["decode"] = load_object(str(ours["decode"]), here)
    if "source" in ours:
        found["source"] = _source(args)
    elif args.no_follow or args.group:
        raise SourceError("--no-follow and --group belong to a SOURCE of the command line")
    found["token"] = found.get("token") or find_token(None, None, explicit_url=None)
    found["show_progress"] = False if args.quiet else given.get("show_progress", True)
    settings = _settings(args)
    if settings:
        if not isinstance(found["model"], str):
            raise SourceError("--conf, --class and --set are for a server's URL: a function has its own")
        before = found.get("settings")
        found["settings"] = {**(before if isinstance(before, dict) else {}), **settings}
    return found


def _check(found: dict[str, object]) -> None:
    """Say what is missing."""
    missing = {
        "source": "a SOURCE: a folder, a video, a camera, kafka://host:port/topic",
        "model": "a model: --url http://host:port, or --model file.py:function",
        "store": "a store: --store results.lance",
    }
    for key, words in missing.items():
        if key not in found:
            raise SourceError(f"pass {words}; or --config FILE with it")


def _source(args: argparse.Namespace) -> object:
    """Return the source that the command line means."""
    text = str(args.source)
    is_kafka = text.startswith("kafka://")
    if args.group is not None:
        if not is_kafka or "group=" in text:
            raise SourceError(
                f"--group is for kafka://host:port/topic without a group of its own, not {_shown(text)}"
            )
        text += f"{'&' if '?' in text else '?'}group={quote(args.group, safe='')}"
    if not args.no_follow:
        return text
    if not Path(text).exists():
        raise SourceError(f"--no-follow is for a folder that is there, not {_shown(text)}")
    if Path(text).is_file():
        return text  # a video ends in any case
    from predsession.stream import FolderSource

    return FolderSource(text, follow=False)


def _shown(text: str) -> str:
    """Return a source as it may be shown."""
    from predsession.inputs.items import printable, shown_url

    return shown_url(text) if "://" in text else printable(text)


def _settings(args: argparse.Namespace) -> dict[str, object]:
    """Return keywords for sessions of images."""
    given = {"conf": args.conf, "classes": args.classes, "settings": dict(args.settings) or None}
    return {key: value for key, value in given.items() if value is not None}
