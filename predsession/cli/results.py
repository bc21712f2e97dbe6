"""``predsession results``: what a stream has stored, shown or written into a file of another kind."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING

from predsession.cli.codes import OK, USAGE, print_json, print_line, say
from predsession.cli.commands import add_command

if TYPE_CHECKING:
    from predsession.stream import ResultDataset

EXAMPLES = """\
examples:
  predsession results show results.lance
  predsession results show results.lance --count 100 --json
  predsession results export results.lance --out preds.jsonl   also .csv, .parquet, .npz
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    results = add_command(commands, "results", "what a stream has stored", notes=EXAMPLES, codes=())
    inner = results.add_subparsers(required=True, metavar="CALL")
    codes = (OK, USAGE)
    text = "how many rows, of what, and what could not be processed"
    show = add_command(inner, "show", text, codes=codes)
    show.add_argument(
        "--count", type=int, default=10, metavar="N", help="object ids to be listed (default: 10)"
    )
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(run=_show)
    export = add_command(inner, "export", "write all rows into a file", codes=codes)
    export.add_argument("--out", required=True, metavar="FILE",
        help=".jsonl, .csv, .parquet, or .npz, by its name")  # fmt: skip
    export.set_defaults(run=_export)
    for each in (show, export):
        each.add_argument("store", metavar="STORE", help="results.lance or results.parquet")


def _show(args: argparse.Namespace) -> int:
    """Run ``show``."""
    from itertools import islice

    from predsession.stream import ResultDataset, open_results  # says which extra is missing
    from predsession.stream.tables import open_table
    from predsession.stream.writer import read_letters

    letters = list(read_letters(args.store))
    dataset = ResultDataset(open_table(args.store)) if letters else open_results(args.store)
    ids = list(islice(dataset.iter_ids(), max(0, args.count)))
    reasons = Counter(each.reason for each in letters)
    facts = {
        "store": args.store,
        "kind": dataset.kind,
        "rows": len(dataset),
        "outputs": _outputs(dataset),
        "object_ids": ids,
        "dead_letters": sum(reasons.values()),
        "reasons": dict(reasons.most_common()),
    }
    if args.json:
        print_json(facts)
        return OK
    print(f"{len(dataset)} rows" + (f" of {dataset.kind}" if dataset.kind else ""))
    for name, output in _outputs(dataset).items():
        print_line(f"  {_line(name)}  {output['dtype']}  {output['shape']}")
    for each in ids:
        print_line(f"    {_line(each)}")
    if len(ids) < len(dataset):
        print(f"    and {len(dataset) - len(ids)} more")
    print(f"{sum(reasons.values())} dead letters")
    for reason, count in reasons.most_common():
        print_line(f"  {count:>6}  {_line(reason)}")
    return OK


def _outputs(dataset: ResultDataset) -> dict[str, dict[str, object]]:
    """Return the outputs as JSON."""
    return {each.name: {"shape": list(each.shape), "dtype": each.dtype.name} for each in dataset.outputs}


def _line(text: str) -> str:
    """Return a text that is not too long."""
    return text if len(text) <= 200 else f"{text[:200]}..."


def _export(args: argparse.Namespace) -> int:
    """Run ``export``."""
    from predsession.stream import open_results  # says which extra is missing
    from predsession.stream.exporting import export

    say(f"{args.out} has {export(open_results(args.store), args.out)} rows of {args.store}")
    return OK
