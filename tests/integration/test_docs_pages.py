"""Every page can be followed in a fresh clone: Python blocks and commands run in its order, in one folder.

The folder has the clone's examples, and what the page calls the reader's own. What begins with ``$`` in a
console block is run as it stands there, or the table below says where else it is; a server that is started
has to answer.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import documents
import pytest
from docs_kit import URL, Surroundings, surroundings
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
FOLLOWED = [
    document
    for document in DOCUMENTS
    if name_of(document) not in COMPARED and (document in SHOWN or documents.of(document, "python"))
]
RUN_ALL = """
import runpy, sys
for path in sys.argv[1:]:
    runpy.run_path(path, run_name="__main__")
print("all have run")
"""


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


def types(line: str, place: Path, around: Surroundings) -> None:
    """Try a line of a console block."""
    if (how := way(line)) != "elsewhere":
        {"serves": serves, "goes on": goes_on, "runs": runs}[how](around.located(line), place, around)


def programs(blocks: list[str], place: Path, around: Surroundings) -> None:
    """Run Python blocks that follow each other in one process, each with names of its own.

    One that begins with the name of a file is written into that, too: a command below may need it.
    """
    folder = place / "blocks"
    folder.mkdir(exist_ok=True)
    paths = []
    for block in blocks:
        paths.append(folder / f"block_{len(list(folder.iterdir()))}.py")
        paths[-1].write_text(around.located(block))
        if name := re.match(r"# (\w+\.py)\n", block):
            (place / name[1]).write_text(block)
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, *paths],
        cwd=place,
        env=around.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all have run\n"), "one of them ended the process"


@pytest.mark.parametrize("document", FOLLOWED, ids=name_of)
def test_every_page_can_be_followed(document: Path, tmp_path: Path, around: Surroundings) -> None:
    """From its first block to its last."""
    around.furnish(tmp_path, document)
    shown = [pair for pair in documents.blocks(document.read_text()) if pair[0] in {"python", "console"}]
    for language, group in groupby(shown, key=lambda pair: pair[0]):
        bodies = [body for _, body in group]
        if language == "python":
            programs(bodies, tmp_path, around)
        else:
            for line in (line for body in bodies for line in documents.lines(body)):
                types(line, tmp_path, around)


@pytest.mark.parametrize("document", FOLLOWED, ids=name_of)
def test_a_server_is_there_before_it_is_asked(document: Path) -> None:
    """A page says that one runs, or how to start it, above the first block that goes to its address."""
    for language, body in documents.blocks(text := document.read_text()):
        if language in {"python", "console"} and (URL in body or "//127.0.0.1:8001" in body):
            above = text[: text.index(body)] + body[: body.index("127.0.0.1:")]
            assert re.search(r"predsession serve|servers? that runs?\b", above)
            return


def test_no_two_pages_write_one_file() -> None:
    """Who has followed one page is not told by another that a file is there already."""
    writers: dict[str, set[str]] = {}
    for document in FOLLOWED:
        for line in documents.commands(document):
            if line.startswith("predsession ") and "--overwrite" not in line:
                for path in re.findall(r"--(?:out|save-video|html) (\S+)", line):
                    writers.setdefault(path, set()).add(name_of(document))
    assert {path: names for path, names in writers.items() if len(names) > 1} == {}


def test_the_table_is_no_longer_than_it_must_be() -> None:
    """What is not run here stands in some document."""
    lines = [line for document in SHOWN for line in documents.commands(document)]
    assert [
        beginning for beginning in ELSEWHERE if not any(re.match(beginning, line) for line in lines)
    ] == []
    assert [name for name in COMPARED if not (ROOT / name).is_file()] == []
