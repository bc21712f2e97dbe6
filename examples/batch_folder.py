"""Run a folder as a batch job: one JSON line a picture, bad pictures passed over, a report at the end.

Usage: python examples/batch_folder.py FOLDER OUT.jsonl [URL]

Another name, such as ann.json or report.html, makes another format; see docs/exports.md.
"""

from __future__ import annotations

import sys

from predsession import PredictionSession


def main(folder: str, out: str, url: str | None = None) -> int:
    """Run the folder; return the exit code."""
    with PredictionSession(url, folder, recursive=True, on_error="skip", show_progress=True) as session:
        print(session.save(out))
    for error in session.errors:
        print(f"passed over {error.path}: {error.reason}", file=sys.stderr)
    return 1 if session.errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
