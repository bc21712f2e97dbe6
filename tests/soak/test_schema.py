"""Calls that schemathesis makes up from the server's description: thousands, each answered as described.

It runs as a process, out of an environment of its own: ``scripts/schema`` makes that, and sets the variable.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from server_kit import Server, numbers, png

VARIABLE = "PREDSESSION_SCHEMATHESIS"
HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"scripts/schema sets {VARIABLE} and runs this"),
]

CHECKS = "status_code_conformance,content_type_conformance,response_schema_conformance"
"""Not ``not_a_server_error``: a stock server answers 500 to a bad picture, a call without its keys and a job
that is not known, in words that its clients read. A fault of our own is told apart by the server's log."""


def run(url: str, folder: Path, *options: str) -> None:
    """Let schemathesis call everything that the description names, and say what it found."""
    seed, examples = os.environ.get("PREDSESSION_SEED", "1"), os.environ.get("PREDSESSION_EXAMPLES", "200")
    sys.stdout.write(f"seed {seed}, {examples} examples a call\n")
    found = subprocess.run(
        [os.environ[VARIABLE], "run", f"{url}/openapi.json", "--checks", CHECKS, "--seed", seed,
         "--max-examples", examples, "--phases", "examples,coverage,fuzzing", "--continue-on-failure",
         "--no-color", "--request-timeout", "60", *options],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    sys.stdout.write(found.stdout[-2000:])
    assert found.returncode == 0, found.stdout[-20_000:] + found.stderr[-2000:]


def tree(folder: Path) -> set[str]:
    """List what is below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


KINDS = {
    "ours": ("--library", "library"),
    "stock": ("--stock",),
    "token": ("--token", "a-token"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_as_described(kind: str, tmp_path: Path) -> None:
    """Each status, type and body is one that the description names; no fault of the server is in its log,
    it goes on serving, and writes nothing outside its folder.
    """
    data, work, library = tmp_path / "data", tmp_path / "work", tmp_path / "library"
    work.mkdir()
    shutil.copytree(HERE.parent / "samples", library)
    before = tree(library)
    headers = {"x-api-key": "a-token"} if kind == "token" else {}
    options = ["--header", "x-api-key: a-token"] if headers else []
    arguments = [str(library) if each == "library" else each for each in KINDS[kind]]
    with Server("pixels", *arguments, "--data", str(data), "--limit-jobs", "100000") as server:
        run(server.url, work, *options)
        answer = requests.post(
            f"{server.url}/inference_image",
            files={"files": ("a.png", png(7))},
            data={"state": json.dumps({})},
            headers=headers,
            timeout=60,
        )
        assert numbers([answer.json()]) == [7]
        server.terminate()
        assert [part[:3000] for part in server.log.split("Traceback")[1:]] == []
    assert {path.split("/")[0] for path in tree(tmp_path)} == {"data", "work", "library"}
    assert before <= tree(library), "what is written back is added beside the pictures"
