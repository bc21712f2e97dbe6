"""``predsession predict``: images in, a table or JSON lines out."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from predsession.cli import outputs
from predsession.cli.codes import OK, SERVER, SOME_FAILED, USAGE, leave_on_signals, say, speaks_utf8
from predsession.cli.commands import add_command
from predsession.cli.reach import add_ca, add_token, verify_of
from predsession.errors import ItemError, SourceError

if TYPE_CHECKING:
    from predsession.prediction import Prediction

EXAMPLES = """\
examples:
  predsession predict photos/                                on a server of its own
  predsession predict photos/ --url http://127.0.0.1:8000    on one that is there
  predsession predict a.jpg b.png --out preds.jsonl          files in, JSON lines out
  predsession predict photos/ --recursive --conf 0.5 --class person --class dog
  predsession predict photos/ --out preds.jsonl --resume     go on where a run was ended
  predsession predict photos/ --out ann.json --format coco   in another tool's format
  predsession predict photos/ --html report/                 a page to look at
  predsession predict photos/ --save-images annotated/       draw the predictions
  predsession predict photos/ --json | jq .name              lines on standard output
  predsession predict clip.mp4 --track --save-video out.mp4  a video with tracking
"""

TIMES = {
    "timeout": "for one answer of the server (default: 60)",
    "start-timeout": "after which a job that has not begun is given up",
    "idle-timeout": "after which a job without any change is given up (default: 600)",
    "total-timeout": "after which the whole run is given up",
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    predict = add_command(
        commands,
        "predict",
        "run images, folders, videos or URLs through a model",
        notes=EXAMPLES,
        codes=(OK, SOME_FAILED, USAGE, SERVER),
    )
    add = predict.add_argument
    add("source", nargs="+", metavar="SOURCE", help="image files, folders, image URLs, or video files")
    add("--url", metavar="URL",
        help="the server (default: $PREDSESSION_URL, else an embedded server is started)")  # fmt: skip
    add("--out", metavar="PATH", help="write the predictions into this file or folder")
    add("--format", choices=outputs.FORMATS, metavar="FORMAT",
        help="of --out, where its name does not say it: " + ", ".join(outputs.FORMATS))  # fmt: skip
    add("--html", metavar="DIR", help="write a page to look at into this folder (or file, named .html)")
    add("--save-images", metavar="DIR", help="write the pictures with the predictions drawn to this folder")
    add("--conf", type=float, metavar="SCORE", help="the lowest score")
    add("--class", dest="classes", action="append", metavar="NAME", help="keep this class (repeatable)")
    add("--set", dest="settings", action="append", type=setting, default=[], metavar="NAME=VALUE",
        help="another of the model's settings; VALUE is JSON or text (repeatable)")  # fmt: skip
    add("--batch-size", type=int, metavar="N", help="images the model takes at once")
    add("--recursive", action="store_true", help="look into subfolders")
    add("--on-error", choices=("yield", "skip", "raise"), default="yield",
        help="a bad image is listed in its place, is left out, or ends the run (default: yield)")  # fmt: skip
    add("--resume", action="store_true",
        help="go on where a run that was ended left off; keeps what arrives in OUT.journal")  # fmt: skip
    add("--journal", metavar="FILE", help="keep it in this file instead; implies --resume")
    add("--restart", action="store_true", help="begin the journal anew")
    add("--json", action="store_true", help="print JSON lines instead of a table")
    add("--quiet", action="store_true", help="show no progress bar")
    for name in ("timeout", "start-timeout", "idle-timeout", "total-timeout"):
        add(f"--{name}", type=float, metavar="SECONDS", help=TIMES[name])
    add_token(predict)
    add_ca(predict)
    outputs.add_to(predict)
    _add_video(predict.add_argument_group("videos"))
    predict.set_defaults(run=run)


def _add_video(group: argparse._ArgumentGroup) -> None:
    """Add the options for videos."""
    add = group.add_argument
    add("--track", action="store_true", help="follow objects from frame to frame")
    add("--tracker", metavar="NAME", help="one of the server's trackers; implies --track")
    add("--start-frame", type=int, metavar="N", help="the first frame (the last one with --backward)")
    add("--num-frames", type=int, metavar="N", help="so many frames of the clip, before the stride is taken")
    add("--end-frame", type=int, metavar="N", help="the first frame that is no longer wanted")
    add("--duration", type=float, metavar="SECONDS", help="so many seconds of the clip")
    add("--stride", type=int, metavar="N", help="every so many frames one")
    add("--backward", action="store_true", help="from the end to the beginning")
    add("--save-video", metavar="FILE", help="write the frames with the predictions drawn to this clip")


def setting(text: str) -> tuple[str, object]:
    """Read ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from predsession.session import PredictionSession

    leave_on_signals()
    journal = _journal(args)
    places = _places(args, journal)
    with ExitStack() as stack:
        files = stack.enter_context(closing(_files(args, places, journal)))
        session = stack.enter_context(
            PredictionSession(args.url, **_keywords(args), resume=journal, restart=args.restart)
        )
        for each in places:
            session._own(each.path)
        report = Report(as_json=args.json)
        try:
            for outcome in session:
                files.write(outcome)
                report.add(outcome)
            files.finish()
        except ItemError as error:
            say(str(error))
    report.end()
    return SOME_FAILED if session.errors else OK


@dataclass(frozen=True, slots=True)
class _Place:
    """A file or folder that the run writes: its path, format, whether pictures may go there."""

    path: str
    format: str | None = None
    images: bool = False


def _places(args: argparse.Namespace, journal: str | None) -> list[_Place]:
    """Return what is to be written, or refuse what makes no sense together."""
    from predsession.export.formats import FORMATS
    from predsession.export.target import refuse_input
    from predsession.inputs.folders import is_clip

    places = []
    if args.save_images:  # before what may be put into the same folder
        places.append(_Place(args.save_images, outputs.DRAWN))
    if args.out:
        out = str(FORMATS[args.format].place(Path(args.out))) if args.format else args.out
        places.append(_Place(out, args.format, images=True))
    elif args.format or args.images or args.scores:
        raise SourceError(
            "--format, --images and --scores are about the file or folder of --out: pass it, too"
        )
    if args.html:
        places.append(_Place(str(FORMATS["html"].place(Path(args.html))), "html"))
    if args.save_video:
        if len(args.source) > 1 or not is_clip(args.source[0]):
            raise SourceError("--save-video is for one clip: run clips one by one")
        places.append(_Place(args.save_video, "video"))
    files = [Path(path).absolute() for path in (*(each.path for each in places), *filter(None, [journal]))]
    for path in files:
        if files.count(path) > 1:
            raise SourceError(f"{path} is named twice: each needs a place of its own")
    for each in places:
        refuse_input(each.path, args.source)
    return places


def _files(args: argparse.Namespace, places: Sequence[_Place], journal: str | None) -> outputs.Outputs:
    """Open all files, before anything is computed."""
    from predsession.export.target import existing_of

    known = _known(places, journal)
    files = outputs.Outputs(args, root=outputs.sources_root(args.source))
    try:
        for each in places:
            existing = existing_of(overwrite=args.overwrite, resume=each.path in known)
            if each.format == outputs.DRAWN:
                files.draw(each.path, args.source, existing=existing)
            else:
                files.open(each.path, each.format, existing=existing, images=each.images)
    except BaseException:
        files.close()
        raise
    return files


def _known(places: Sequence[_Place], journal: str | None) -> frozenset[str]:
    """Return which of them the run has written that is gone on with: these, and no others, may be there."""
    from predsession.jobs.journal import Journal

    if journal is None or not Path(journal).exists():
        return frozenset()
    with closing(Journal(journal)) as kept:
        return frozenset(each.path for each in places if kept.knows_file(each.path))


def _journal(args: argparse.Namespace) -> str | None:
    """Return the journal's path."""
    if args.journal or not (args.resume or args.restart):
        return str(args.journal) if args.journal else None
    if not args.out:
        raise SourceError("--resume keeps what arrives beside --out: pass --out FILE, or --journal FILE")
    return f"{args.out}.journal"


def _keywords(args: argparse.Namespace) -> dict[str, Any]:
    """Return the session's keywords."""
    return {
        "input": args.source[0] if len(args.source) == 1 else args.source,
        "recursive": args.recursive,
        "conf": args.conf,
        "classes": args.classes,
        "settings": dict(args.settings),
        "batch_size": args.batch_size,
        "on_error": args.on_error,
        "show_progress": not args.quiet,
        "token": args.token,
        "verify": verify_of(args),
        **{
            name.replace("-", "_"): value
            for name in TIMES
            if (value := getattr(args, name.replace("-", "_"))) is not None
        },
        "tracking": True if args.track or args.tracker else None,
        "tracking_config": {"tracker": args.tracker} if args.tracker else None,
        "start_frame": args.start_frame,
        "num_frames": args.num_frames,
        "end_frame": args.end_frame,
        "duration": args.duration,
        "stride": args.stride,
        "direction": "backward" if args.backward else None,
    }


class Report:
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
            print(to_line(outcome, ascii_only=not speaks_utf8()), flush=True)
            return
        name = outcome.path or outcome.name
        frame = None if isinstance(outcome, ItemError) else outcome.frame_index
        name = name if frame is None else f"{name} #{frame}"
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
        from predsession.inputs.items import printable

        shown = [[printable(cell) for cell in row] for row in self._rows]
        widths = [max(len(row[column]) for row in shown) for column in range(2)]
        for file, objects, best in shown:
            print(f"{file:<{widths[0]}}  {objects:>{widths[1]}}  {best}".rstrip())
