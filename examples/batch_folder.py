"""Run a folder as a batch job: one JSON line a picture, bad pictures passed over, a report at the end.

Usage: python examples/batch_folder.py FOLDER OUT.jsonl [URL]
"""

from __future__ import annotations

import sys

from predsession import ItemError, PredictionSession
from predsession.export.jsonl import JsonlWriter


def main(folder: str, out: str, url: str | None = None) -> int:
    """Run the folder; return the exit code."""
    with (
        PredictionSession(url, folder, recursive=True, on_error="yield", show_progress=True) as session,
        JsonlWriter(out) as writer,
    ):
        for outcome in session:
            writer.write(outcome)
            if isinstance(outcome, ItemError):
                print(f"passed over {outcome.path}: {outcome.reason}", file=sys.stderr)
    report = session.report()
    print(f"{report.predictions} of {report.items} pictures predicted, {report.item_errors} passed over")
    return 1 if report.item_errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
