"""The rows as a table that can be pasted into a page, and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.row import Row
from predsession.wire.jsontypes import JSON

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


def table(rows: Sequence[Row]) -> str:
    """Write the rows.

    Parameters
    ----------
    rows : sequence of Row
        In order.

    Returns
    -------
    str
        A table in Markdown; in a terminal its columns stand below each other.
    """
    cells = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    lines = [_line(line, widths) for line in cells]
    lines.insert(1, _line(["-" * width for width in widths], widths))
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Write one line."""
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"


def write_json(path: Path, rows: Sequence[Row], *, runs: int, quick: bool) -> None:
    """Write the rows, every single run included, and where they were measured.

    Parameters
    ----------
    path : Path
        The file.
    rows : sequence of Row
        In order.
    runs : int
        How often each was measured.
    quick : bool
        Whether it was only a look.
    """
    found: dict[str, JSON] = {
        "machine": machine(),
        "versions": versions(),
        "runs": runs,
        "quick": quick,
        "rows": [row.to_json() for row in rows],
    }
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


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
