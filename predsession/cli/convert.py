"""``predsession convert``: predictions from one format into another."""

from __future__ import annotations

import argparse
import stat
from contextlib import closing
from pathlib import Path

from predsession.cli import outputs
from predsession.cli.codes import OK, USAGE
from predsession.cli.commands import add_command
from predsession.errors import ProtocolError, SourceError

EXAMPLES = """\
examples:
  predsession convert preds.jsonl --to coco                writes preds.json
  predsession convert preds.jsonl --to yolo --images copy  writes the folder preds-yolo
  predsession convert preds.jsonl --to html --out report.html
  predsession convert annotations/ --to jsonl --out preds.jsonl
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    convert = add_command(
        commands,
        "convert",
        "write predictions of one format in another",
        notes=EXAMPLES,
        codes=(OK, USAGE),
    )
    add = convert.add_argument
    add("source", metavar="SOURCE", help="a file or folder of predictions or annotations")
    add("--to", required=True, choices=outputs.FORMATS, metavar="FORMAT",
        help="the format to write: " + ", ".join(outputs.FORMATS))  # fmt: skip
    add("--from", dest="read_as", metavar="FORMAT",
        help="the format of the source, where neither its name nor what is in it tells it: a name of --to, "
        "html and video excepted")  # fmt: skip
    add(
        "--out",
        metavar="PATH",
        help="where to write; a page is .html, or a folder (default: beside the source)",
    )
    add(
        "--root",
        metavar="DIR",
        help="the folder that pictures are named from (default: what they have in common)",
    )
    outputs.add_to(convert)
    convert.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from predsession.export.formats import FORMATS, Format
    from predsession.export.places import common_folder
    from predsession.export.reading import read_predictions
    from predsession.export.target import existing_of

    wanted: Format = FORMATS[args.to]
    out = args.out or _beside(Path(args.source), wanted.name, wanted.suffixes)
    read, written = Path(args.source).resolve(), Path(out).resolve()
    if read == written or read in written.parents:
        raise SourceError(f"{out} is what is read, or in it; name another place with --out")
    if args.images and not wanted.takes_images:
        raise SourceError(f"--images is not for {wanted.name}: it has no place for pictures")
    root = args.root
    if root is None and _kind(Path(args.source)) in (stat.S_IFREG, stat.S_IFDIR, 0):  # no pipe, read but once
        root = common_folder(each.path for each in read_predictions(args.source, args.read_as))
    with closing(outputs.Outputs(args, root=root, rescue=False)) as files:
        files.open(out, args.to, existing=existing_of(overwrite=args.overwrite), images=True)
        try:
            for outcome in read_predictions(args.source, args.read_as, on_error="yield"):
                files.write(outcome)
            files.finish(all_told=True)
        except ProtocolError as error:
            raise SourceError(f"{args.source} is damaged: {error}") from None
    return OK


def _beside(source: Path, name: str, suffixes: tuple[str, ...]) -> str:
    """Return where a format is written if nothing is said."""
    name_of_whole = source.name.removesuffix(".partial.jsonl") or source.name
    stem = source.with_name(name_of_whole) if _kind(source) == stat.S_IFREG else source
    return str(stem.with_suffix(suffixes[0]) if suffixes else stem.with_name(f"{stem.stem}-{name}"))


def _kind(path: Path) -> int:
    """Return what a path is, as the system has it; 0 where it cannot be looked at: its reader tells why."""
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError):
        return 0
