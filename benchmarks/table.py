"""The rows as a table that can be pasted into a page, and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.row import Row
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object

HEAD = ("case", "what; against what", "ours", "peer", "ratio", "target", "")
_PACKAGES = (
    "predsession",
    "numpy",
    "pillow",
    "requests",
    "urllib3",
    "av",
    "starlette",
    "uvicorn",
    "orjson",
    "msgspec",
)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Write a table.

    Parameters
    ----------
    rows : sequence of sequence of str
        The texts of each row, as `Row.cells` gives them.

    Returns
    -------
    str
        A table in Markdown; in a terminal its columns stand below each other.
    """
    cells = [HEAD, *rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [_line(line, widths) for line in cells]
    lines.insert(1, _line(["-" * width for width in widths], widths))
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Write one line."""
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"


def write_json(path: Path, rows: Sequence[Row], *, quick: bool) -> None:
    """Write the rows, every single run included, and where they were measured.

    Parameters
    ----------
    path : Path
        The file. What it has of other cases stays: cases may be measured one at a time.
    rows : sequence of Row
        Of one case or several.
    quick : bool
        Whether it was only a look.
    """
    cases = {row.case for row in rows}
    kept = [row for row in (read_rows(path) if path.exists() else []) if row["case"] not in cases]
    found: dict[str, JSON] = {
        "machine": machine(),
        "versions": versions(),
        "quick": quick,
        "rows": [*kept, *(row.to_json() for row in rows)],
    }
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_rows(path: Path) -> list[JSONObject]:
    """Return the rows that `write_json` wrote."""
    return [as_object(row) for row in as_list(as_object(json.loads(path.read_text("utf-8")))["rows"])]


def lines(rows: Sequence[JSONObject], order: Sequence[str]) -> list[list[str]]:
    """Return the texts of such rows, in the order of their cases."""
    ordered = sorted(rows, key=lambda row: order.index(str(row["case"])))
    return [[str(cell) for cell in as_list(row["shown"])] for row in ordered]


def machine() -> dict[str, JSON]:
    """Return what it runs on."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, JSON]:
    """Return the versions of what takes part."""
    found: dict[str, JSON] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
