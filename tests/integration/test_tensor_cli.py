"""``predsession tensor``: every command and every mistake; and what none of it shows, the secrets."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensor_models
from secret_kit import TOKEN, everything_logged, leaks, told
from server_kit import Server
from tensor_kit import tensor_server

from predsession.cli import main
from predsession.errors import AuthError, PredSessionError
from predsession.tensor import HTensor, TensorSession, init_model, init_server

Output = pytest.CaptureFixture[str]


def run(out: Output, *words: object) -> tuple[int, str, str]:
    """Run a command."""
    code = main(["tensor", *map(str, words)])
    said = out.readouterr()
    return code, said.out, said.err


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Two inputs in a file."""
    np.savez(tmp_path / "ab.npz", a=np.ones((2, 4), np.float32), b=np.full((2, 4), 3, np.float32))
    return tmp_path / "ab.npz"


def test_info(doors: str, capsys: Output) -> None:
    """The server and its models, for people and as JSON."""
    code, out, _ = run(capsys, "info", doors, "--model", "signed")
    assert code == 0
    assert out.startswith("predsession ")
    assert "predsession_residency" in out
    assert "x      [-1, 3]      DATA_TYPE_S8  QUANTI_TYPE_SCALE  3, axis 1" in out
    told = json.loads(run(capsys, "info", doors, "--json")[1])
    assert told["server"]["name"] == "predsession"
    assert told["models"]["signed"]["inputs"]["x"]["scale_data"] == [0.5, 0.25, 2.0]
    assert set(told["models"]) > {"add", "signed", "mixed"}


def test_infer(doors: str, capsys: Output, pair: Path) -> None:
    """.npz in and out, .npy by name; what came is listed."""
    out = pair.with_name("out.npz")
    code, said, errors = run(capsys, "infer", doors, pair, "--model", "add", "--out", out)
    assert (code, said) == (0, "c  [2, 4]  float32\nd  [2, 4]  float32\n")
    assert "has c, d" in errors
    with np.load(out) as found:
        assert found["c"].tolist() == [[4.0] * 4] * 2
        assert found["d"].tolist() == [[-2.0] * 4] * 2
    np.save(pair.with_name("a.npy"), np.ones((1, 4), np.float32))
    path = pair.with_name("a.npy")
    code, said, _ = run(capsys, "infer", doors, f"a={path}", f"b={path}", "--model", "add", "--json")
    assert [json.loads(line)["name"] for line in said.splitlines()] == ["c", "d"]


def test_infer_with_odd_datatypes(doors: str, capsys: Output, tmp_path: Path) -> None:
    """bfloat16 goes in and comes out as float32, texts as NumPy's; four bits as bytes of them."""
    brain = np.linspace(-1, 1, 3, dtype=np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.savez(
        tmp_path / "in.npz", half=np.zeros(1, np.float16), brain=brain, nibbles=np.array([-8], np.int8),
        words=np.array([b"a", b"bc"]), flags=np.zeros((1, 2), bool), big=np.array(7, np.uint64),
    )  # fmt: skip
    out = tmp_path / "out.npz"
    code, _, errors = run(capsys, "infer", doors, tmp_path / "in.npz", "--model", "mixed", "--out", out)
    assert code == 0, errors
    with np.load(out) as found:
        assert found["brain"].tolist() == brain.tolist()
        assert found["words"].tolist() == [b"a", b"bc"]
        assert (found["nibbles"].tolist(), found["big"].tolist()) == ([-8], 7)


def test_a_model_of_this_machine(doors: str, capsys: Output, tmp_path: Path) -> None:
    """A network is put on the server for as long as the command takes."""
    net = tmp_path / "net.onnx"
    net.write_bytes(tensor_models.identity())
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    assert run(capsys, "infer", doors, tmp_path / "x.npy", "--local", net)[1] == "y  [2, 3]  float32\n"
    assert "net" not in json.loads(run(capsys, "info", doors, "--json")[1])["models"]


def test_profile_and_bench(doors: str, capsys: Output, pair: Path) -> None:
    """Times that add up, and calls a second; with a file or with noise."""
    code, out, _ = run(capsys, "profile", doors, pair, "--model", "add", "--count", 3)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [
        "milliseconds", "frame_duration", "sd2rv_duration", "commu_duration", "board_duration",
        "prepr_duration", "infer_duration", "pospr_duration",
    ]  # fmt: skip
    times = json.loads(run(capsys, "profile", doors, pair, "--model", "add", "--count", 2, "--json")[1])
    assert times["frame_duration"]["max"] >= times["sd2rv_duration"]["max"]
    noise = ["--model", "add", "--shape", "a=1,4", "--shape", "b=1,4"]
    code, out, _ = run(capsys, "bench", doors, *noise, "--count", 9, "--depth", 3)
    assert out.startswith("9 calls, 3 at once: ")
    told = json.loads(run(capsys, "bench", doors, *noise, "--count", 2, "--json", "--compress", "IN")[1])
    assert (told["calls"], told["depth"]) == (2, 1)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["infer", "URL", "ab.npz"], 2, "--model is needed"),
        (["infer", "URL", "none.npy", "--model", "add"], 2, "none.npy cannot be read"),
        (["infer", "URL", "empty.npy", "--model", "add"], 2, "empty.npy cannot be read"),
        (["infer", "URL", "cut.npz", "--model", "add"], 2, "cut.npz cannot be read"),
        (["infer", "URL", "pickled.npz", "--model", "add"], 2, "pickled.npz cannot be read"),
        (["infer", "URL", "a=ab.npz", "--model", "add"], 2, "leave out a="),
        (["infer", "URL", "one.npy", "--model", "add"], 2, "say NAME="),
        (["infer", "URL", "a=one.npy", "a=one.npy", "--model", "add"], 2, "'a' is given twice"),
        (["infer", "URL", "a=one.npy", "--model", "add"], 2, "missing 'b'"),
        (["infer", "URL", "ab.npz", "--model", "add", "--out", "x.npy"], 2, "written as .npz"),
        (["infer", "URL", "ab.npz", "--model", "add", "--out", "no/x.npz"], 2, "there is no folder"),
        (["infer", "URL", "one.npy", "--model", "fail"], 3, "this model always fails"),
        (["infer", "URL", "one.npy", "--model", "nope"], 2, "'nope' is not ready"),
        (["infer", "URL", "one.npy", "--model", "a", "--local", "b"], 2, "leave out --model"),
        (["info", "URL", "--local", "none.onnx"], 2, "there is no such model"),
        (["info", "URL", "--header", "nothing"], 2, "wanted NAME:VALUE"),
        (["bench", "URL", "--model", "scale"], 2, "such as --shape frame=224,224,3"),
        (["bench", "URL", "--model", "told"], 2, "takes texts"),
        (["bench", "URL", "--model", "scale", "--shape", "frame"], 2, "wanted NAME="),
        (["bench", "URL", "--model", "scale", "--shape", "frame=1,x"], 2, "wanted NAME="),
        (["bench", "URL", "--model", "scale", "--shape", "frame=0,1,3"], 2, "wanted NAME="),
        (["bench", "URL", "--model", "scale", "--shape", "frame=1,3"], 2, "takes shape"),
        (["info", "ftp://box"], 2, "no server's address"),
        (["info", "NOBODY"], 3, "Connection refused|no connection"),
    ],
)
def test_mistakes(
    doors: str,
    capsys: Output,
    pair: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    text: str,
) -> None:
    """Each is one line that says what was wrong, and a code: 2 for the caller's, else 3; no traceback."""
    monkeypatch.chdir(pair.parent)
    np.save("one.npy", np.ones(1, np.float32))
    Path("empty.npy").write_bytes(b"")
    Path("cut.npz").write_bytes(pair.read_bytes()[:100])
    np.savez("pickled.npz", a=np.array([{}], object))
    nobody = f"{doors.partition('//')[0]}//127.0.0.1:9"
    named = {"URL": doors, "NOBODY": nobody}
    found, out, errors = run(capsys, *(named.get(word, word) for word in words))
    assert (found, out) == (code, ""), errors
    assert any(each in errors for each in text.split("|")), errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    "words", [["--count", "0"], ["--depth", "x"], ["--timeout", "0"], ["--compress", "MAX"]]
)
def test_numbers_that_are_none(capsys: Output, words: list[str]) -> None:
    """They are refused by the parser."""
    with pytest.raises(SystemExit):
        main(["tensor", "bench", "127.0.0.1", *words])
    assert words[0] in capsys.readouterr().err


# -- secrets ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that asks for the token."""
    with tensor_server("--token", TOKEN) as server:
        yield server


@pytest.mark.parametrize("way", ["grpc", "http"])
def test_secrets_are_shown_nowhere(
    guarded: Server, capsys: Output, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in what is shown of sessions, handles and tensors, nor in errors, logs, the command's words."""
    host = f"grpc://{guarded.oip[0]}" if way == "grpc" else guarded.url
    shown: list[str] = []
    failed: list[PredSessionError] = []

    def fails(call: Any) -> None:
        with pytest.raises(PredSessionError) as caught:
            call()
        failed.append(caught.value)

    with everything_logged() as logged:
        extra = {"x-extra": f"also-{TOKEN}"}
        with (
            init_server(host, token=TOKEN, headers=extra) as server,
            init_model(None, server, models=["add", "fail"]) as handle,
            TensorSession(model_handle=handle, with_profile=True, debug=True) as session,
        ):
            one = np.ones((1, 4), np.float32)
            fixed = HTensor(one, ["cpu", "server"], "k")
            assert session({"a": fixed, "b": one}, model_name="add")["c"].shape == (1, 4)
            shown += map(repr, (session, server, handle, fixed, server.door, session.server_facts))
            fails(lambda: session({"a": one[0, :1]}, model_name="fail"))
            fails(lambda: session({"a": one}, model_name="add"))
            assert TOKEN in str(pickle.loads(pickle.dumps(server))._token)
        fails(lambda: TensorSession(host, models=["nope"], token=TOKEN))
        fails(lambda: TensorSession(host, token=TOKEN + "x"))
        fails(lambda: TensorSession(host, headers={"authorization": f"Bearer {TOKEN}\n"}))
        nobody = f"{host.partition('//')[0]}//127.0.0.1:9"
        fails(lambda: TensorSession(nobody, token=TOKEN))
        assert isinstance(failed[3], AuthError)
        assert run(capsys, "info", host, "--model", "add", "--token", TOKEN)[0] == 0
        monkeypatch.setenv("PREDSESSION_TOKEN", TOKEN)
        assert run(capsys, "info", host, "--model", "add")[0] == 0
        shown += run(capsys, "info", host, "--model", "nope")[1:]
        monkeypatch.delenv("PREDSESSION_TOKEN")
        code, _, errors = run(capsys, "info", host)
        assert code == 3
        shown.append(errors)
    everything = "\n".join([*shown, *map(told, failed), *logged.lines])
    lines = everything.splitlines()
    assert [line for line in lines if leaks(line)] == []
    assert logging.getLogger("predsession.tensor").handlers == []
