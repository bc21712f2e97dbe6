"""``predsession stream`` and ``predsession results``: what they do, say, and end with."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import makers
import numpy as np
import pyarrow.parquet as pq
import pytest
from server_kit import until
from stream_kit import KINDS, ids, reasons

from predsession.cli import main
from predsession.prediction import Prediction
from predsession.stream import open_results

Output = pytest.CaptureFixture[str]
MODEL = """
import numpy as np

def sizes(batch):
    count = len(batch["path"])
    return {"n.x": np.arange(count), "v": np.full((count, 2), np.nan, np.float32)}

def fails(batch):
    raise KeyError("not today")

def decode(raw):
    return {}
"""


def run(out: Output, *words: object) -> tuple[int, str, str]:
    """Run a command."""
    code = main([*map(str, words)])
    said = out.readouterr()
    return code, said.out, said.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a model and three images."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREDSESSION_URL", raising=False)
    (tmp_path / "model.py").write_text(MODEL)
    for name in ("1.png", "2.png", "3.png"):
        makers.write(tmp_path / "in" / name, makers.png())
    return tmp_path


GOOD = ["stream", "in", "--model", "model.py:sizes", "--store", "r.lance"]
ONCE = ("--no-follow", "--quiet", "--flush-after", 1)


def test_images(ours: str, folder: Path, capsys: Output) -> None:
    """A folder through a server; the last line has the counts. Damaged images: 1. Nothing is done twice."""
    words = ["stream", "in", "--url", ours, "--store", "r.lance", "--conf", 0.1, "--batch-size", 2, *ONCE]
    code, out, err = run(capsys, *words)
    assert (code, out) == (0, "")
    assert err.splitlines()[-1].startswith("predsession: 3 stored, 0 skipped, 0 dead letters, ")
    makers.write(folder / "in" / "cut.png", makers.truncated(makers.png()))
    code, _, err = run(capsys, *words)
    assert code == 1
    assert err.splitlines()[-1].startswith("predsession: 0 stored, 3 skipped, 1 dead letters, ")
    code, out, _ = run(capsys, "results", "show", "r.lance", "--count", 2)
    assert code == 0
    assert out == (
        "3 rows of predictions\n    1.png\n    2.png\n    and 1 more\n1 dead letters\n"
        "       1  truncated PNG: the end chunk is missing\n"
    )
    code, _, err = run(capsys, "results", "export", "r.lance", "--out", "out/p.jsonl")
    assert (code, err) == (0, "predsession: out/p.jsonl has 3 rows of r.lance\n")
    lines = [json.loads(line) for line in (folder / "out" / "p.jsonl").read_text().splitlines()]
    assert [each.pop("object_id") for each in lines] == ["1.png", "2.png", "3.png"]
    assert [Prediction.from_json(each) for each in lines] == list(open_results("r.lance").to_predictions())
    run(capsys, "results", "export", "r.lance", "--out", "p.csv")
    rows = list(csv.reader((folder / "p.csv").read_text().splitlines()))
    assert rows[0] == ["object_id", "class", "score", "x1", "y1", "x2", "y2"]
    assert len(rows) == 1 + sum(len(each.scores) for each in open_results("r.lance").to_predictions())
    code, _, err = run(capsys, "results", "export", "r.lance", "--out", "p.npz")
    assert code == 2
    assert "predictions do not go into .npz" in err


@pytest.mark.parametrize("kind", KINDS)
def test_function(folder: Path, capsys: Output, kind: str) -> None:
    """A function of a file instead of a server; arrays go into every kind of file."""
    code, _, _ = run(capsys, "stream", "in", "--model", "model.py:sizes", "--store", f"r.{kind}", *ONCE)
    assert code == 0
    code, out, _ = run(capsys, "results", "show", f"r.{kind}", "--json")
    assert json.loads(out) == {
        "store": f"r.{kind}", "kind": "arrays", "rows": 3, "object_ids": ["1.png", "2.png", "3.png"],
        "outputs": {"n.x": {"shape": [], "dtype": "int64"}, "v": {"shape": [2], "dtype": "float32"}},
        "dead_letters": 0, "reasons": {},
    }  # fmt: skip
    for suffix in ("jsonl", "csv", "parquet", "npz"):
        assert run(capsys, "results", "export", f"r.{kind}", "--out", f"o.{suffix}")[0] == 0
    first = json.loads((folder / "o.jsonl").read_text().splitlines()[1])
    assert first == {"object_id": "2.png", "n.x": 1, "v": [None, None]}
    assert (folder / "o.csv").read_text().splitlines()[:2] == ["object_id,n.x,v[0],v[1]", "1.png,0,nan,nan"]
    with np.load(folder / "o.npz") as arrays:
        assert arrays["object_id"].tolist() == ["1.png", "2.png", "3.png"]
        assert arrays["n.x"].tolist() == [0, 1, 2]
        assert arrays["v"].shape == (3, 2)
    assert pq.read_table(folder / "o.parquet").num_rows == 3


def test_model_that_fails(folder: Path, capsys: Output) -> None:
    """3 and its own traceback where the model fails, also with --on-error skip where it fails at all of them
    alike and nothing was ever stored; else 1, and the letters are shown.
    """
    words = ["stream", "in", "--model", "model.py:fails", "--store", "r.lance", *ONCE]
    code, _, err = run(capsys, *words)
    assert code == 3
    assert "KeyError: 'not today'" in err
    assert "comes again in the next run" in err
    assert "model.py" in err
    assert "stream/session.py" not in err, "frames of ours are nothing to them"
    assert run(capsys, *words, "--on-error", "skip")[0] == 3
    assert not reasons(folder / "r.lance")
    code, _, _ = run(capsys, *words, "--on-error", "skip", "--batch-size", 1)
    assert code == 1
    assert len(reasons(folder / "r.lance")) == 3
    code, out, _ = run(capsys, "results", "show", "r.lance")
    assert (code, out) == (0, "0 rows\n3 dead letters\n       3  KeyError: 'not today'\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["stream"], 2, "pass a SOURCE"),
        (["stream", "in", "--store", "r.lance"], 2, "pass a model: --url"),
        (["stream", "in", "--model", "model.py:sizes"], 2, "pass a store"),
        (["stream", "none", *GOOD[2:]], 2, "'none' is no folder"),
        (["stream", "none", *GOOD[2:], "--no-follow"], 2, "--no-follow"),
        (["stream", "in", "--model", "model.py:none", "--store", "r.lance"], 2, "AttributeError"),
        (["stream", "in", "--model", "model.py", "--store", "r.lance"], 2, "names no function"),
        (["stream", "in", "--model", "model.py:sizes", "--store", "r.zip"], 2, "ends in .lance or .parquet"),
        (["stream", "in", "--model", "model.py:sizes", "--store", "model.py"], 2, "is no store"),
        ([*GOOD, "--group", "g"], 2, "--group is for"),
        ([*GOOD, "--conf", "1"], 2, "--conf, --class"),
        ([*GOOD, "--batch-size", "0"], 2, "batch_size"),
        ([*GOOD, "--decode", "model.py:decode"], 2,
         "decode= is for"),
        (["stream", "--config", "none.toml"], 2, "none.toml cannot be read"),
        (["results", "show", "none.lance"], 2, "there is no store"),
        (["results", "show", "model.py"], 2, "model.py is no store"),
        (["results", "show", "photos"], 2, "photos is no store"),
        (["results", "export", "none.lance", "--out", "a.csv"], 2, "there is no store"),
    ],
)  # fmt: skip
def test_mistakes(folder: Path, capsys: Output, words: list[str], code: int, said: str) -> None:
    """Mistakes are told in words, with the exit code of wrong usage; nothing is made."""
    got, _, err = run(capsys, *words)
    assert got == code
    assert said in err
    assert not (folder / "r.lance").exists()


def test_export_mistakes(folder: Path, capsys: Output) -> None:
    """A name that says no kind, a folder, a place that cannot be written: told, and nothing is left lying."""
    run(capsys, "stream", "in", "--model", "model.py:sizes", "--store", "r.parquet", *ONCE)
    for out, said in (
        ("o.txt", "the name says the kind"),
        ("r.parquet", "is a folder"),
        ("model.py/o.csv", "written"),
    ):
        code, _, err = run(capsys, "results", "export", "r.parquet", "--out", out)
        assert code == 2
        assert said in err
    assert sorted(path.name for path in folder.iterdir() if "o." in path.name) == []


def test_config(folder: Path, capsys: Output) -> None:
    """All of it in a file; the command line goes before, and what it replaces is not even loaded."""
    (folder / "run.toml").write_text(
        'model = "none.py:f"\nstore = "c.lance"\nbatch_size = 2\nshow_progress = false\n'
        '[source]\nkind = "folder"\npath = "in"\nfollow = false\nsettle = 0\n'
    )
    code, _, err = run(capsys, "stream", "--config", "run.toml")
    assert code == 2
    assert "run.toml: model: " in err
    assert run(capsys, "stream", "--config", "run.toml", "--model", "model.py:sizes")[0] == 0
    assert ids(folder / "c.lance") == ["1.png", "2.png", "3.png"]
    code, _, err = run(capsys, "stream", "--config", "run.toml", "--model", "model.py:sizes", "--no-follow")
    assert code == 2
    assert "belong to a SOURCE of the command line" in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(folder: Path, number: signal.Signals, code: int) -> None:
    """A signal finishes the batch in hand and ends; what was stored is there, the counts are said."""
    words = [*GOOD, "--flush-after", "0.1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "predsession", *words], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    until(lambda: (folder / "r.lance" / "_versions").exists() and len(ids(folder / "r.lance")) == 3, "rows")
    makers.write(folder / "in" / "4.png", makers.png())
    until(lambda: len(ids(folder / "r.lance")) == 4, "the one that came later")
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err.splitlines()[-1].startswith("predsession: 4 stored, 0 skipped, 0 dead letters, ")
    assert "Traceback" not in err


def test_second_signal(folder: Path) -> None:
    """A second signal ends at once what the first cannot: a model that never returns."""
    (folder / "model.py").write_text(
        "import signal, time\n"
        "def hangs(batch):\n"
        "    print('in', flush=True)\n"
        "    while signal.getsignal(signal.SIGINT) is not signal.default_int_handler:\n"
        "        time.sleep(0.01)\n"
        "    print('told', flush=True)\n"  # the first signal was seen: two at once would be one
        "    time.sleep(100)\n"
    )
    words = ["stream", "in", "--model", "model.py:hangs", "--store", "r.lance", *map(str, ONCE)]
    process = subprocess.Popen(
        [sys.executable, "-m", "predsession", *words], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "told\n"
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in err


def test_token_is_not_shown(ours: str, folder: Path, capsys: Output, caplog: Any) -> None:
    """A token is in nothing that is said."""
    token = "s3cret-t0ken-word"
    code, out, err = run(capsys, "stream", "in", "--url", ours, "--token", token, "--store", "r.lance", *ONCE)
    assert code == 0
    assert token not in out + err + caplog.text
