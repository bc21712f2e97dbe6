"""The lines of docs/protocol.md and docs/models.md, as run against the embedded server."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from server_kit import Server

ROOT = Path(__file__).parents[2]


def steps(text: str) -> list[tuple[str, list[str]]]:
    """Return each command of the console blocks with the lines that are shown below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found[-1][0].endswith("\\"):
                found[-1] = (f"{found[-1][0]}\n{line}", [])
            else:
                found[-1][1].append(line)
    return found


def pattern(shown: str) -> str:
    """Return what a shown line stands for: an ellipsis for anything."""
    return ".*".join(re.escape(part) for part in shown.split("…"))


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_lines_of_the_protocol_run(tmp_path: Path) -> None:
    """Every command succeeds and prints what the document shows."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    beach = tmp_path / "library" / "holiday" / "beach"
    beach.mkdir(parents=True)
    for name in ("astronaut.jpg", "coffee.jpg"):
        shutil.copy(ROOT / "examples" / "photos" / name, beach)
    with Server("detect", "--library", str(tmp_path / "library")) as server:
        script = "set -eo pipefail\n"
        listed = steps((ROOT / "docs" / "protocol.md").read_text())
        assert len(listed) >= 15
        for number, (command, _) in enumerate(listed):
            script += f"echo; echo '<<<{number}>>>'\n{command}\n"
        script = script.replace("http://127.0.0.1:8000", server.url)
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (done.stdout[-2000:], done.stderr)
    printed = dict(re.findall(r"<<<(\d+)>>>\n(.*?)(?=\n<<<|\Z)", done.stdout, re.DOTALL))
    for number, (command, shown) in enumerate(listed):
        wanted = r"\s*".join(pattern(line.lstrip()) for line in shown)  # long ones are wrapped there
        assert re.match(wanted, printed[str(number)].strip(), re.DOTALL), (
            command,
            printed[str(number)][:500],
        )
