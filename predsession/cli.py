"""The command line: ``predsession predict | info | serve``.

Only the result goes to standard output; progress and messages go to standard error. Exit codes: 0 all went
well, 1 some items failed, 2 wrong usage or source, 3 the server, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from predsession import __version__
from predsession.errors import ItemError, MissingExtraError, PredSessionError, SourceError

if TYPE_CHECKING:
    from predsession.prediction import Prediction

OK, SOME_FAILED, USAGE, SERVER, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143

PREDICT_EXAMPLES = """\
examples:
  predsession predict photos/                                run a folder on a server of its own
  predsession predict photos/ --url http://127.0.0.1:8000    run it on a server that is there
  predsession predict a.jpg b.png --out preds.jsonl          files in, JSON lines out
  predsession predict photos/ --recursive --conf 0.5 --class person --class dog
  predsession predict photos/ --save-images annotated/       draw the predictions
  predsession predict photos/ --json | jq .name              JSON lines on standard output
"""


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
    args = _parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (SourceError, MissingExtraError, TypeError, ValueError, OSError) as error:
        _say(str(error))
        return USAGE
    except PredSessionError as error:
        _say(str(error))
        return SERVER


def _say(text: str) -> None:
    """Tell the user something, beside the result."""
    print(f"predsession: {text}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    """Build the parser; nothing heavy is imported for it."""
    parser = argparse.ArgumentParser(prog="predsession", description="Run images through a deployed model.")
    parser.add_argument("--version", action="version", version=f"predsession {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_predict(commands)
    info = commands.add_parser("info", help="what a server is and can do")
    info.add_argument("url", help="the server's base URL")
    info.add_argument("--json", action="store_true", help="print JSON")
    info.set_defaults(run=_info)
    _add_serve(commands)
    return parser


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``serve``, whose options belong to the server's room."""
    from predsession.server import command

    serve = commands.add_parser("serve", help="run the embedded server")
    command.add_arguments(serve)
    serve.set_defaults(run=command.run)


def _add_predict(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``predict``."""
    predict = commands.add_parser(
        "predict",
        help="run images, folders or URLs through a model",
        epilog=PREDICT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = predict.add_argument
    add("source", nargs="+", metavar="SOURCE", help="image files, folders, image URLs")
    add("--url", help="the server; default: $PREDSESSION_URL, else an embedded server is started")
    add("--out", metavar="FILE", help="write the predictions to this file, as JSON lines")
    add("--save-images", metavar="DIR", help="write the pictures with the predictions drawn to this folder")
    add("--conf", type=float, help="lowest score")
    add("--class", dest="classes", action="append", metavar="NAME", help="keep this class (repeatable)")
    add("--set", dest="settings", action="append", type=_setting, default=[], metavar="NAME=VALUE",
        help="another of the model's settings; VALUE is JSON or text (repeatable)")  # fmt: skip
    add("--batch-size", type=int, help="images the model takes at once")
    add("--recursive", action="store_true", help="look into subfolders")
    add("--on-error", choices=("yield", "skip", "raise"), default="yield",
        help="a bad image is listed in its place (default), is left out, or ends the run")  # fmt: skip
    add("--json", action="store_true", help="print JSON lines instead of a table")
    add("--quiet", action="store_true", help="show no progress bar")
    add("--ca", metavar="FILE", help="a CA bundle to trust")
    predict.set_defaults(run=_predict)


def _setting(text: str) -> tuple[str, object]:
    """Read ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _predict(args: argparse.Namespace) -> int:
    """Run ``predict``."""
    from contextlib import ExitStack

    from predsession.export.jsonl import JsonlWriter
    from predsession.export.names import OutputNames
    from predsession.session import PredictionSession

    # A batch system ends a job with SIGTERM: leave by the same way out as everybody else.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    with ExitStack() as stack:
        session = stack.enter_context(
            PredictionSession(
                args.url,
                args.source[0] if len(args.source) == 1 else args.source,
                recursive=args.recursive,
                conf=args.conf,
                classes=args.classes,
                settings=dict(args.settings),
                batch_size=args.batch_size,
                on_error=args.on_error,
                show_progress=not args.quiet,
                verify=args.ca or True,
            )
        )
        writer = stack.enter_context(JsonlWriter(args.out)) if args.out else None
        names = OutputNames(args.save_images, args.source) if args.save_images else None
        report = _Report(as_json=args.json)
        try:
            for outcome in session:
                if writer is not None:
                    writer.write(outcome)
                if names is not None and not isinstance(outcome, ItemError):
                    outcome.visualize(save_path=names.path_for(outcome))
                report.add(outcome)
        except ItemError as error:
            _say(str(error))
    report.end()
    return SOME_FAILED if session.errors else OK


class _Report:
    """Prints outcomes: JSON lines as they come, or a table at the end.

    Parameters
    ----------
    as_json : bool
        Which.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._rows = [("file", "objects", "best score")]

    def add(self, outcome: Prediction | ItemError) -> None:
        """Take one outcome."""
        from predsession.export.jsonl import to_line

        if self._as_json:
            print(to_line(outcome), flush=True)
            return
        name = outcome.path or outcome.name
        if isinstance(outcome, ItemError):
            self._rows.append((name, "-", f"error: {outcome.reason}"))
            return
        scores, classes = outcome.scores, outcome.classes
        best = int(scores.argmax()) if len(scores) else -1
        text = f"{scores[best]:.2f} {classes[best]}" if best >= 0 else ""
        self._rows.append((name, str(len(scores)), text))

    def end(self) -> None:
        """Print the table."""
        if self._as_json:
            return
        shown = [[cell.encode("unicode_escape").decode() if not cell.isprintable() else cell for cell in row]
                 for row in self._rows]  # fmt: skip
        widths = [max(len(row[column]) for row in shown) for column in range(2)]
        for file, objects, best in shown:
            print(f"{file:<{widths[0]}}  {objects:>{widths[1]}}  {best}".rstrip())


def _info(args: argparse.Namespace) -> int:
    """Run ``info``."""
    from predsession.http.auth import find_token
    from predsession.http.caller import Caller
    from predsession.http.transport import HttpTransport
    from predsession.wire import calls
    from predsession.wire.httpreply import parse_json
    from predsession.wire.meta import ModelMeta
    from predsession.wire.replies import parse_info

    transport = HttpTransport(args.url, token=find_token(None, None, explicit_url=args.url))
    caller = Caller(transport)
    try:
        info = parse_info(caller.call(calls.session_info()))
        meta = ModelMeta.from_json(parse_json(caller.call(calls.model_meta())))
        settings = parse_json(caller.call(calls.custom_settings()))
    finally:
        transport.close()
    if args.json:
        print(json.dumps({"info": info.raw, "classes": meta.names, "settings": settings}, ensure_ascii=False))
        return OK
    names = ", ".join(meta.names[:8]) + (", ..." if len(meta.names) > 8 else "")
    inner = settings.get("settings") if isinstance(settings, dict) else settings
    print(f"server      {info.app_name or 'unnamed'}")
    print(f"task        {info.raw.get('task type', 'not said')}")
    print(f"classes     {len(meta.names)}: {names}")
    print(f"settings    {inner if isinstance(inner, str) else json.dumps(inner)}")
    print(f"extension   {', '.join(sorted(info.features)) or 'none: a stock server'}")
    return OK
