"""``predsession edge`` against a real gRPC server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from edge_kit import OK, M, Runtime, endless
from PIL import Image

from predsession.cli import main


def _answer(request: object, _context: object) -> object:
    """Find a cat over the left half of whatever comes; refuse what is gray."""
    height, width, _ = request.inputs[0].shape
    if (width, height) == (5, 5):
        return M.InferResponse(status=M.Status(message="too small"))
    cat = M.Detection(label="cat", class_id=15, confidence=0.5, bbox=M.BBox(x=0, y=0, w=0.5, h=1))
    return M.InferResponse(status=OK, post_result=M.PostResult(detections=[cat]))


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """A runtime with a model, a camera and counters."""
    model = M.ModelInfo(model_id="m", model_path="/m.hef", version="2")
    stats = M.SystemStats(cpu_utilization=-1, device_utilization=0.25)
    stats.model_stats.add(model_id="m", total_inferences=12, avg_latency_us=5000)
    with Runtime(
        Infer=_answer,
        StreamInfer=endless,
        ListModels=lambda *_: M.ModelListResponse(models=[model]),
        RegisterModel=lambda request, _: M.ModelRegisterResponse(model_id=request.model_id, status=OK),
        UnregisterModel=lambda *_: OK,
        GetStats=lambda *_: stats,
    ) as made:
        monkeypatch.setenv("AI_RUNTIME_ENDPOINT", made.endpoint)
        yield made


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with pictures of several sizes, one damaged, one that the runtime refuses."""
    for number, size in enumerate([(40, 20), (5, 5), (30, 30)]):
        Image.new("RGB", size, (number, 0, 0)).save(tmp_path / f"{number}.png")
    (tmp_path / "1b.png").write_bytes(b"\x89PNG\r\n\x1a\n damaged")
    return tmp_path


def test_infer(runtime: Runtime, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each picture has its line, in order, in pixels of its own size; bad ones are listed in their place."""
    drawn = tmp_path / "drawn"
    assert main(["edge", "infer", str(photos), "--model", "m", "--json", "--save-images", str(drawn)]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["name"] for each in lines] == ["0.png", "1.png", "1b.png", "2.png"]
    assert [each["index"] for each in lines] == [0, 1, 2, 3]
    boxes = [each["annotation"]["objects"][0]["box"] for each in (lines[0], lines[3])]
    assert boxes == [[0, 0, 20, 20], [0, 0, 15, 30]]
    assert "too small" in lines[1]["error"]["message"]
    assert lines[2]["error"]["type"] == "ItemError"
    assert len([*drawn.iterdir()]) == 2
    again = ["edge", "infer", str(photos / "0.png"), "--model", "m", "--save-images", str(drawn)]
    assert main(again) == 2
    assert "is not empty; choose another folder" in capsys.readouterr().err
    assert main([*again, "--overwrite"]) == 0
    capsys.readouterr()
    assert main(["edge", "infer", str(photos / "0.png"), "--model", "m"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [str(photos / "0.png"), "1", "0.50", "cat"]


def test_subscribe(runtime: Runtime, capsys: pytest.CaptureFixture[str]) -> None:
    """So many frames as asked for, a line each; then the call ends on the runtime."""
    assert main(["edge", "subscribe", "cam", "--model", "m", "--fps", "3", "--count", "2", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["frame_sequence"] for each in lines] == [0, 1]
    assert runtime.last("StreamInfer").fps_limit == 3
    assert runtime.cancelled.wait(10)


def test_models_and_stats(runtime: Runtime, capsys: pytest.CaptureFixture[str]) -> None:
    """Models are listed, loaded and removed; counters are shown."""
    assert main(["edge", "models", "--endpoint", runtime.endpoint]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["m", "2", "/m.hef"]
    assert main(["edge", "models", "--register", "/a/b.hef", "--unregister", "m", "--json"]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)[0]["model_id"] == "m"
    assert "registered b" in out.err
    assert runtime.last("UnregisterModel").model_id == "m"
    assert main(["edge", "stats"]) == 0
    out = capsys.readouterr().out
    assert "25%" in out
    assert out.splitlines()[-1].split() == ["m", "12", "0", "5.0", "0.0", "0"]
    assert main(["edge", "stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cpu_utilization"] == -1


def test_exit_codes(runtime: Runtime, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2 for a wrong address or source, 3 for a runtime that is not there or says no."""
    assert main(["edge", "models", "--endpoint", "nowhere"]) == 2
    assert main(["edge", "infer", str(photos / "none.png"), "--model", "m"]) == 2
    assert main(["edge", "models", "--endpoint", "unix:///tmp/none/none.sock"]) == 3
    runtime.answers["UnregisterModel"] = lambda *_: M.Status(message="in use")
    assert main(["edge", "models", "--unregister", "m"]) == 3
    assert "in use" in capsys.readouterr().err


def test_one_picture_with_numbers_that_are_none(
    runtime: Runtime, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A box beyond all pictures is that picture's error, in its place; the others have their lines."""

    def answer(request: object, _context: object) -> object:
        far = 1e38 if request.inputs[0].shape[0] == 20 else 0
        found = M.Detection(label="cat", confidence=0.5, bbox=M.BBox(x=far, y=0, w=0.5, h=1))
        return M.InferResponse(status=OK, post_result=M.PostResult(detections=[found]))

    runtime.answers["Infer"] = answer
    (photos / "1b.png").unlink()
    assert main(["edge", "infer", str(photos), "--model", "m", "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ["error" in each for each in lines] == [True, False, False]
    assert "the runtime sent 1e+38" in lines[0]["error"]["message"]


def test_json_has_no_nan(runtime: Runtime, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers that are none are null: what is printed is JSON that any reader takes."""

    def refuse(text: str) -> None:
        raise AssertionError(text)

    found = M.Detection(label="cat", confidence=float("nan"), bbox=M.BBox(x=float("inf")))
    frame = M.StreamInferResponse(status=OK, post_result=M.PostResult(detections=[found]))
    runtime.answers["StreamInfer"] = lambda *_: iter([frame])
    runtime.answers["GetStats"] = lambda *_: M.SystemStats(
        device_temperature=float("nan"), cpu_utilization=-1
    )
    assert main(["edge", "subscribe", "cam", "--model", "m", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out, parse_constant=refuse)["objects"]
    assert (told["score"], told["bbox"]) == (None, [None, 0, 0, 0])
    assert main(["edge", "stats", "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert (told["device_temperature"], told["cpu_utilization"]) == (None, -1)


def test_words_that_do_not_go_together(
    runtime: Runtime, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be done is told with its remedy, before anything is sent."""
    clip, file = photos / "clip.mp4", photos / "file"
    for path in (clip, file):
        path.touch()
    infer = ["infer", "--model", "m"]
    for words, said in (
        ([*infer, str(clip)], "takes pictures only"),
        ([*infer, str(photos / "0.png"), "--save-images", str(file)], "is a file; name a folder"),
        (["models", "--id", "foo"], "add --register PATH"),
    ):
        assert main(["edge", *words]) == 2
        assert said in capsys.readouterr().err
    assert not runtime.asked


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["subscribe", "cam", "--model", "m", "--count", "-1"], "'-1' is no number of frames"),
        (["infer", "a.png", "--model", "m", "--timeout", "nan"], "'nan' is no time"),
        (["infer", "a.png", "--model", "m", "--timeout", "inf"], "'inf' is no time"),
        (["infer", "a.png", "--model", "m", "--timeout", "0"], "'0' is no time"),
        (
            ["subscribe", "cam", "--model", "m", "--fps", "99999999999"],
            "0 (the runtime's choice) to 4294967295",
        ),
    ],
)
def test_numbers_that_make_no_sense(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A count or a time that cannot be is the caller's mistake, and told as such."""
    with pytest.raises(SystemExit) as caught:
        main(["edge", *words])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err
