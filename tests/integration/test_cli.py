"""The command line, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import makers
import numpy as np
import pytest
from PIL import Image

from predsession import Prediction, PredictionSession, Size, errors
from predsession.inputs.video import FrameLoader, probe
from predsession.server.models.pixels import box_number
from predsession.testing import RunningServer

SAMPLES = Path(__file__).parents[1] / "samples"
TOKEN = "a-token-of-the-tests"


def predsession(*arguments: str | Path, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command, and check its exit code."""
    command = [sys.executable, "-m", "predsession", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **env}
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_a_folder_gives_a_table_a_file_and_pictures(detector: str, tmp_path: Path) -> None:
    """Only the table is on standard output; JSON lines and pictures are where they were asked for."""
    photos = tmp_path / "photos"
    for name in ("a/astronaut.jpg", "b/astronaut.jpg"):
        makers.write(photos / name, (SAMPLES / "astronaut.jpg").read_bytes())
    out, drawn = tmp_path / "new" / "p.jsonl", tmp_path / "drawn"
    done = predsession(
        "predict", photos, "--url", detector, "--recursive", "--out", out, "--save-images", drawn
    )
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["file", "objects", "best", "score"]
    assert [line.split()[0] for line in lines[1:]] == [
        str(photos / "a/astronaut.jpg"),
        str(photos / "b/astronaut.jpg"),
    ]
    assert all("person" in line for line in lines[1:])
    predictions = [Prediction.from_json(json.loads(line)) for line in out.read_text().splitlines()]
    assert [one.path for one in predictions] == [line.split()[0] for line in lines[1:]]
    for name in ("a/astronaut.jpg", "b/astronaut.jpg"):
        assert np.asarray(Image.open(drawn / name)).shape == np.asarray(Image.open(photos / name)).shape


def test_json_lines_on_standard_output(ours: str, numbered: Callable[..., list[Path]]) -> None:
    """Nothing else is there, and progress is on standard error."""
    done = predsession("predict", *numbered(3), "--url", ours, "--json")
    predictions = [Prediction.from_json(json.loads(line)) for line in done.stdout.splitlines()]
    assert [box_number(one.boxes[0]) for one in predictions] == [0, 1, 2]
    assert "3/3" in done.stderr
    assert predsession("predict", *numbered(3), "--url", ours, "--json", "--quiet").stderr == ""


@pytest.mark.parametrize("error", ["2>&-", "2>/dev/full"])
def test_standard_error_that_takes_nothing(
    ours: str, numbered: Callable[..., list[Path]], error: str
) -> None:
    """Closed, or on a full disk: the result, its place and the exit code are the same."""
    [picture] = numbered(1)
    for words, code, lines in (
        (f"predict {picture} --url {ours} --json", 0, 1),
        (f"predict no-such --url {ours} --json", 2, 0),
        ("info nowhere", 3, 0),
    ):
        command = f"{sys.executable} -m predsession {words} {error}"
        done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, timeout=60, check=False)
        assert (done.returncode, done.stdout.count(b"\n")) == (code, lines), words


@pytest.mark.parametrize("on_error", ["yield", "skip", "raise"])
def test_some_failed(ours: str, tmp_path: Path, on_error: str) -> None:
    """Exit code 1, whatever becomes of the bad ones in the output."""
    makers.bad_neighbours(tmp_path)
    done = predsession("predict", tmp_path, "--url", ours, "--json", "--on-error", on_error, code=1)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == {"yield": 7, "skip": 4, "raise": 1}[on_error]
    assert sum("error" in line for line in lines) == (3 if on_error == "yield" else 0)


def test_wrong_usage(ours: str, tmp_path: Path) -> None:
    """Exit code 2, one line that says what to do, nothing on standard output."""
    for arguments, words in (
        (["predict", tmp_path / "gone.jpg", "--url", ours], "gone.jpg"),
        (["predict", tmp_path, "--url", ours], ".jpg"),
        (["predict", tmp_path, "--set", "nonsense"], "NAME=VALUE"),
        (["predict"], "SOURCE"),
        (["frobnicate"], "frobnicate"),
    ):
        done = predsession(*arguments, code=2)
        assert words in done.stderr
        assert done.stdout == ""


def test_nobody_there() -> None:
    """Exit code 3, and a line that names the address."""
    done = predsession("predict", SAMPLES / "coffee.jpg", "--url", "http://127.0.0.1:9", "--quiet", code=3)
    assert "127.0.0.1:9" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_pictures_are_never_written_over(ours: str, tmp_path: Path) -> None:
    """Neither into the sources' own folder, nor through a link that leads there."""
    picture = makers.write_jpeg(tmp_path / "in" / "a.jpg")
    before = picture.read_bytes()
    for folder in (tmp_path / "in", tmp_path / "in" / ".." / "in"):
        done = predsession("predict", tmp_path / "in", "--url", ours, "--save-images", folder, code=2)
        assert "choose another folder" in done.stderr
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.jpg").symlink_to(picture)
    predsession("predict", tmp_path / "in", "--url", ours, "--save-images", tmp_path / "out", "--overwrite")
    assert picture.read_bytes() == before
    assert (tmp_path / "out" / "a_2.jpg").exists()


def test_names_that_are_no_text(ours: str, tmp_path: Path) -> None:
    """A file name that is not UTF-8, and a terminal that knows only ASCII: escaped, and nothing is lost."""
    odd = os.fsencode(tmp_path) + b"/b\xff.jpg"
    Path(os.fsdecode(odd)).write_bytes(makers.jpeg())
    makers.write_jpeg(tmp_path / "東.jpg")
    out = tmp_path / "p.jsonl"
    predsession("predict", tmp_path, "--url", ours, "--out", out)
    paths = {Prediction.from_json(json.loads(line)).path for line in out.read_text().splitlines()}
    assert paths == {os.fsdecode(odd), str(tmp_path / "東.jpg")}
    for arguments in ([], ["--json"]):
        done = predsession("predict", tmp_path, "--url", ours, *arguments, PYTHONIOENCODING="ascii")
        assert done.stdout.isascii()
    assert {json.loads(line)["path"] for line in done.stdout.splitlines()} == paths


def test_a_run_that_gets_nowhere_leaves_the_old_results(tmp_path: Path) -> None:
    """The file is replaced with the first outcome, not before."""
    out = tmp_path / "keep.jsonl"
    out.write_text("kept\n")
    again = ("predict", SAMPLES / "coffee.jpg", "--url", "http://127.0.0.1:9", "--out", out)
    assert f"{out} is there already" in predsession(*again, code=2).stderr
    predsession(*again, "--overwrite", code=3)
    assert out.read_text() == "kept\n"
    denied = predsession(
        "predict", SAMPLES / "coffee.jpg", "--out", "/proc/no/p.jsonl", "--url", "http://h", code=2
    )
    assert "/proc/no" in denied.stderr


def test_settings_reach_the_model(detector: str) -> None:
    """--conf, --class and --set; a class that is not there leaves nothing."""
    picture = SAMPLES / "astronaut.jpg"
    plain = json.loads(predsession("predict", picture, "--url", detector, "--json").stdout)
    assert len(plain["annotation"]["objects"]) >= 1
    for arguments in (["--conf", "0.99"], ["--class", "bus"], ["--set", "conf=0.99"]):
        none = json.loads(predsession("predict", picture, "--url", detector, "--json", *arguments).stdout)
        assert none["annotation"]["objects"] == []


def test_info(detector: str, stock: str) -> None:
    """What a server is: its classes and settings, and whether it speaks the extension."""
    text = predsession("info", detector).stdout
    assert "80: person" in text
    assert "float_boxes" in text
    assert "a stock server" in predsession("info", stock).stdout
    assert len(json.loads(predsession("info", detector, "--json").stdout)["classes"]) == 80


def test_jobs_are_listed_stopped_and_cleared(
    ours: str, stock: str, numbered: Callable[..., list[Path]]
) -> None:
    """A session's jobs are seen from outside; a stock server cannot list, and an unknown job is told."""
    with PredictionSession(ours, numbered(30), delay=1.2, batch_size=1) as session:
        next(session)
        listed = json.loads(predsession("jobs", ours, "--json").stdout)
        uuid = next(job["uuid"] for job in reversed(listed) if job["progress"]["total"] == 8)
        assert uuid in session.status().jobs
        assert uuid in predsession("jobs", ours).stdout
        predsession("jobs", ours, "--stop", uuid)
        with pytest.raises(errors.JobCancelledError, match="somebody else"):
            list(session)
    predsession("jobs", ours, "--clear", uuid)
    assert "stock server" in predsession("jobs", stock, code=3).stderr
    assert "no job nonsense" in predsession("jobs", ours, "--stop", "nonsense", code=3).stderr


ODD = """
from predsession.server.models.pixels import PixelNumbers
class Odd(PixelNumbers):
    classes = ("Straße", "\\x1b]0;owned\\x07\\nred", *PixelNumbers.classes)
"""


def test_what_a_server_says_is_no_command_to_the_terminal(tmp_path: Path) -> None:
    """Escapes and line ends are shown as such; JSON is JSON also where the terminal takes ASCII alone."""
    (tmp_path / "odd.py").write_text(ODD)
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with RunningServer(f"{tmp_path}/odd.py:Odd") as server:
        text = predsession("info", server.url).stdout
        names = json.loads(predsession("info", server.url, "--json", **ascii_only).stdout)["classes"]
    assert names[:2] == ["Straße", "\x1b]0;owned\x07\nred"]
    assert "\\x1b]0;owned\\x07\\nred" in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 5


def test_a_blank_variable_names_no_server() -> None:
    """It is as good as none."""
    assert (
        "pass the server's URL, or set PREDSESSION_URL"
        in predsession("info", code=2, PREDSESSION_URL="  ").stderr
    )


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """A server that wants a token."""
    with RunningServer("pixels", arguments=["--token", TOKEN]) as server:
        yield server.url


@pytest.mark.parametrize("words", ["info", "jobs --json", "jobs --clear x", "jobs --attach x"])
def test_a_server_of_the_environment(words: str, guarded: str) -> None:
    """URL and token are as good from there as from the command line; a wrong token is told of, not shown."""
    command, *rest = words.split()
    code = 3 if "x" in rest else 0  # it knows no such job
    by_option = predsession(command, guarded, *rest, "--token", TOKEN, code=code)
    by_environment = predsession(command, *rest, code=code, PREDSESSION_URL=guarded, PREDSESSION_TOKEN=TOKEN)
    assert by_environment.stdout == by_option.stdout
    if code:
        assert " x" in by_option.stderr
    refused = predsession(command, guarded, *rest, "--token", "another-token-of-mine", code=3)
    assert "token" in refused.stderr
    assert TOKEN not in by_option.stderr
    assert "another-token" not in refused.stderr


def test_a_token_for_a_run(guarded: str, numbered: Callable[..., list[Path]]) -> None:
    """`predict` takes one, too."""
    picture = numbered(1)[0]
    done = predsession("predict", picture, "--url", guarded, "--token", TOKEN, "--json")
    assert json.loads(done.stdout)["name"] == picture.name


def test_a_video_with_tracking(detector: str, tmp_path: Path) -> None:
    """A row a frame, and a clip of the same rate with the tracks drawn; never over the clip itself."""
    clip = tmp_path / "clip.mp4"
    clip.write_bytes((SAMPLES / "pedestrians.mp4").read_bytes())
    out = tmp_path / "new" / "out.mp4"
    options = ["--track", "--num-frames", "30", "--conf", "0.15", "--quiet"]
    done = predsession("predict", clip, "--url", detector, *options, "--save-video", out)
    assert len(done.stdout.splitlines()) == 1 + 30
    assert "clip.mp4 #29" in done.stdout
    written = probe(out)
    assert len(written) == 30
    assert written.size == Size(512, 384)
    assert written.times == pytest.approx(probe(clip).times[:30], abs=0.001)
    change = np.abs(FrameLoader(str(out), 20)().astype(int) - FrameLoader(str(clip), 20)()).max(axis=2) > 60
    assert change.sum() > 500, "something is drawn"
    before = clip.read_bytes()
    done = predsession("predict", clip, "--url", detector, "--num-frames", "1", "--save-video", clip, code=2)
    assert "choose another name" in done.stderr
    assert clip.read_bytes() == before


def test_help_has_examples() -> None:
    """And the version can be asked for; neither needs the server's libraries."""
    assert "--save-images annotated/" in predsession("predict", "--help").stdout
    assert predsession("--version").stdout.startswith("predsession 0.")
    for command in ("info", "serve"):
        assert "--help" in predsession(command, "--help").stdout
