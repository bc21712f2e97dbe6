"""Every command that the documents show is run as it stands there, or the table below says where else it is.

What begins with ``$`` in a console block is run in the order of the document, in one folder; a server that is
started has to answer.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import documents
import pytest
from docs_kit import Surroundings, surroundings
from documents import DOCUMENTS, ROOT, name_of
from server_kit import PATIENCE

ELSEWHERE = {
    r"pip install ": "scripts/package installs the wheel with and without extras",
    r"git clone ": "whoever runs this has done so",
    r"scripts/": "CI, or hands: most of them take long, and scripts/test would call itself",
    r"(YOLO_WEIGHTS|TORCHVISION_MODEL)=": "test_server_examples.py, with stand-ins for the libraries",
}
"""Lines that are not run here, by how they begin, and what runs them."""
COMPARED = {"docs/protocol.md"}
"""tests/integration/test_server_docs.py runs these, and compares what they print."""
ENDLESS = re.compile(r"predsession stream (?!.*--no-follow)")
"""Goes on until it is told to end."""
STARTED: set[str] = set()
"""Servers that have answered: several documents begin with the same one."""
SHOWN = [document for document in DOCUMENTS if documents.commands(document)]


@pytest.fixture(scope="module")
def around() -> Iterator[Surroundings]:
    """The servers that the documents speak of."""
    with surroundings() as made:
        yield made


def serves(line: str, place: Path, around: Surroundings) -> None:
    """Start the server on free ports, ask whether it is ready, and end it."""
    line = re.sub(r"(--(?:oip-)?grpc 127\.0\.0\.1):\d+", r"\1:0", line.partition(" #")[0].rstrip())
    if line in STARTED:
        return
    with subprocess.Popen(
        ["bash", "-c", f"{line} --port 0 --announce --follow-stdin"],
        cwd=place,
        env=around.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        announced = process.stdout.readline()
        if announced:
            port = json.loads(announced)["url"].rpartition(":")[2]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE) as answer:
                assert answer.status == 200
        _, said = process.communicate(timeout=PATIENCE)  # which closes its stdin
    assert (bool(announced), process.returncode) == (True, 0), said
    STARTED.add(line)


def goes_on(line: str, place: Path, around: Surroundings) -> None:
    """Start a stream, wait until something is in its store, and end it as Ctrl-C does."""
    from predsession.errors import PredSessionError
    from predsession.stream import open_results

    (name,) = re.findall(r"--store (\S+)", line)
    with subprocess.Popen(
        ["bash", "-c", f"exec {line}"], cwd=place, env=around.environment, stderr=subprocess.PIPE, text=True
    ) as process:
        end = time.monotonic() + PATIENCE
        stored = 0
        while not stored and time.monotonic() < end and process.poll() is None:
            time.sleep(0.1)
            try:
                stored = len(open_results(place / name))
            except PredSessionError:  # it is not there yet
                continue
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert stored > 0, said
    assert process.returncode in {0, 130}, said


def runs(line: str, place: Path, around: Surroundings) -> None:
    """Run a line to its end, which has to be a good one."""
    done = subprocess.run(
        ["bash", "-c", line], cwd=place, env=around.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-500:]}{done.stderr}"


def way(line: str) -> str:
    """Return how a line is tried: ``elsewhere``, ``serves``, ``goes on`` or ``runs``."""
    if any(re.match(beginning, line) for beginning in ELSEWHERE):
        return "elsewhere"
    if re.search(r"\bpredsession serve\b", line):
        return "serves"
    return "goes on" if ENDLESS.match(line) else "runs"


@pytest.mark.parametrize("document", [each for each in SHOWN if name_of(each) not in COMPARED], ids=name_of)
def test_every_command_runs(document: Path, tmp_path: Path, around: Surroundings) -> None:
    """All of a document, in its order."""
    around.furnish(tmp_path)
    ways = {"serves": serves, "goes on": goes_on, "runs": runs}
    for line in documents.commands(document):
        if (how := way(line)) != "elsewhere":
            ways[how](around.located(line), tmp_path, around)


def test_the_table_is_no_longer_than_it_must_be() -> None:
    """What is not run here stands in some document, and whole in one line."""
    lines = [line for document in SHOWN for line in documents.commands(document)]
    assert [
        beginning for beginning in ELSEWHERE if not any(re.match(beginning, line) for line in lines)
    ] == []
    assert [name for name in COMPARED if not (ROOT / name).is_file()] == []
    assert [line for line in lines if line.endswith("\\")] == []
