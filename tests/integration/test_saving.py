"""Predictions into files as they come from a session: on either server, in Python and on the command line."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import held_numbers
import makers
import numpy as np
import numpy.typing as npt
import pytest
from server_kit import until

from predsession import (
    DiskError,
    ItemError,
    ModelMeta,
    Prediction,
    PredictionSession,
    SessionClosedError,
    SourceError,
    read_predictions,
    save_predictions,
)
from predsession.cli.outputs import FORMATS as TOLD
from predsession.export.formats import FORMATS
from predsession.export.saving import Saving
from predsession.export.target import Existing, Target
from predsession.inputs.video import FrameLoader
from predsession.testing import RunningServer

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """a/1.jpg, b/1.jpg, b/1.png, and a file that is no picture."""
    folder = tmp_path / "photos"
    for name in ("a/1.jpg", "b/1.jpg", "b/1.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        makers.write_jpeg(folder / name)
    (folder / "b" / "2.jpg").write_bytes(b"")
    return folder


def predsession(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    done = subprocess.run(
        [sys.executable, "-m", "predsession", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def test_a_session_saves_itself(either: str, photos: Path, tmp_path: Path) -> None:
    """Every prediction and every item error, equal to what iterating gives."""
    with PredictionSession(either, photos, recursive=True, on_error="skip") as session:
        saved = session.save(tmp_path / "p.jsonl")
    with PredictionSession(either, photos, recursive=True, on_error="yield") as session:
        wanted = list(session)
    found = list(read_predictions(tmp_path / "p.jsonl", on_error="yield"))
    assert [each for each in found if each] == [each for each in wanted if each]
    assert [(each.name, each.reason) for each in found if isinstance(each, ItemError)] == [
        (each.name, each.reason) for each in wanted if isinstance(each, ItemError)
    ]
    assert (saved.predictions, saved.errors, saved.format, saved.left_out) == (3, 1, "jsonl", {})
    assert str(saved) == f"{tmp_path / 'p.jsonl'}: 3 predictions, 1 item without one"


def test_what_a_reader_does_with_errors(ours: str, photos: Path, tmp_path: Path) -> None:
    """Left out by default, or raised in their place."""
    with PredictionSession(ours, photos, recursive=True, on_error="skip") as session:
        session.save(tmp_path / "p.jsonl")
    assert len(list(read_predictions(tmp_path / "p.jsonl"))) == 3
    with pytest.raises(ItemError, match=r"2\.jpg: "):
        list(read_predictions(tmp_path / "p.jsonl", on_error="raise"))
    with pytest.raises(ValueError, match="on_error"):
        read_predictions(tmp_path / "p.jsonl", on_error="drop")


def test_a_bad_picture_ends_it_where_that_is_wanted(ours: str, photos: Path, tmp_path: Path) -> None:
    """With on_error="raise" as for a loop; what came before is in the file."""
    with (
        PredictionSession(ours, [photos / "a/1.jpg", photos / "b/2.jpg", photos / "b/1.jpg"]) as session,
        pytest.raises(ItemError, match=r"2\.jpg"),
    ):
        session.save(tmp_path / "p.jsonl")
    assert [each.name for each in read_predictions(tmp_path / "p.jsonl")] == ["1.jpg"]


def test_what_is_there_is_not_touched(ours: str, photos: Path, tmp_path: Path) -> None:
    """Unless it may be; an empty file may."""
    out = tmp_path / "p.jsonl"
    out.write_text("mine\n")
    with PredictionSession(ours, photos / "a") as session:
        with pytest.raises(SourceError, match=r"p\.jsonl is there already; overwrite it \(overwrite=True"):
            session.save(out)
        assert out.read_text() == "mine\n"
        assert session.save(tmp_path / "other.jsonl").predictions == 1, "the run is not lost for it"
    with PredictionSession(ours, photos / "a") as session:
        assert session.save(out, overwrite=True).predictions == 1
    with PredictionSession(ours, photos / "a") as session:
        assert session.save(out, append=True).predictions == 1
    assert len(list(read_predictions(out))) == 2
    (tmp_path / "empty.jsonl").touch()
    with PredictionSession(ours, photos / "a") as session:
        session.save(tmp_path / "empty.jsonl")


@pytest.mark.parametrize(
    ("path", "arguments", "told"),
    [
        ("p.xyz", {}, "the name does not say which format"),
        ("p.jsonl", {"format": "xyz"}, "there is no format 'xyz'"),
        ("p.jsonl", {"overwrite": True, "append": True}, "pass one of"),
        ("p.jsonl", {"images": "copy"}, "no place for pictures"),
        ("labels", {"format": "yolo", "images": "move"}, "images must be 'copy'"),
        ("/proc/no/p.jsonl", {}, "/proc/no/p.jsonl cannot be written"),
        (".", {"format": "jsonl"}, "is a folder; name a file"),
    ],
)
def test_places_that_cannot_be_used(
    path: str, arguments: dict[str, object], told: str, tmp_path: Path
) -> None:
    """Each is told before anything is read or sent, with what to do."""
    with pytest.raises(ValueError, match=told):  # a SourceError is one, too
        save_predictions(iter(()), tmp_path / path, **arguments)


def test_a_full_disk(tmp_path: Path) -> None:
    """Is an error that names the file; what was written before stays readable."""
    program = (
        "import resource, sys\n"
        "import predsession\n"
        "one = predsession.Prediction.from_arrays(size=(9, 9), boxes=[[1, 2, 3, 4]], classes=['a'])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "try: predsession.save_predictions((one for _ in range(10_000)), sys.argv[1])\n"
        "except predsession.DiskError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "p.jsonl")], capture_output=True, text=True, check=True
    )
    assert f"{tmp_path / 'p.jsonl'} cannot be written (File too large); make room there" in done.stdout
    with pytest.warns(UserWarning, match="written by half"):
        assert len(list(read_predictions(tmp_path / "p.jsonl"))) > 100
    with pytest.raises(DiskError, match="/dev/full cannot be written"):
        save_predictions(_many(1), "/dev/full", "jsonl")


def _many(count: int) -> list[Prediction]:
    """Return predictions of no picture."""
    return [
        Prediction.from_arrays(size=(9, 9), boxes=[[1, 2, 3, 4]], classes=["a"], index=number)
        for number in range(count)
    ]


def test_a_damaged_file_names_the_line(tmp_path: Path) -> None:
    """In the middle it is an error; at the end it is a run that was killed."""
    out = tmp_path / "p.jsonl"
    save_predictions(_many(3), out)
    lines = out.read_text().splitlines(keepends=True)
    out.write_text(lines[0] + "{oops\n" + lines[2])
    with pytest.raises(SourceError, match=r"p\.jsonl, line 2: not a prediction"):
        list(read_predictions(out))
    out.write_text(lines[0] + lines[1] + lines[2][:40])
    with pytest.warns(UserWarning, match="line 3 was written by half"):
        assert len(list(read_predictions(out))) == 2


def test_a_killed_run_goes_on(numbered: Callable[..., list[Path]], tmp_path: Path) -> None:
    """A document whose run was killed leaves JSON lines; with the journal it becomes whole, and they go."""
    folder, gate = numbered(12)[0].parent, tmp_path / "gate"
    out, whole = tmp_path / "ann.json", tmp_path / "whole" / "ann.json"
    partial = tmp_path / "ann.json.partial.jsonl"
    gate.touch()  # the model computes nothing behind the fifth picture until it is gone
    with RunningServer(f"{held_numbers.__file__}:HeldNumbers") as server:
        held = ("--set", f"hold_while={gate}", "--set", "hold_from=5")
        arguments = ["predict", folder, "--url", server.url, *held, "--quiet", "--out"]
        command = [sys.executable, "-m", "predsession", *map(str, (*arguments, out, "--resume"))]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
            until(lambda: partial.exists() and partial.read_bytes().count(b"\n") == 5, "five predictions")
            run.kill()
        assert not out.exists()
        assert [each.name for each in read_predictions(partial)] == [
            f"im_{number}.jpg" for number in range(5)
        ]
        gate.unlink()
        predsession(*arguments, out, "--resume")
        predsession(*arguments, whole)
        assert "is there already" in predsession(*arguments, out, code=2).stderr
    assert json.loads(out.read_text()) == json.loads(whole.read_text())
    assert sorted(each.name for each in tmp_path.glob("*ann*")) == ["ann.json", "ann.json.journal"]


def test_what_a_killed_run_left_is_not_lost(tmp_path: Path) -> None:
    """Beginning anew must be said; what is left can be converted."""
    partial = tmp_path / "ann.json.partial.jsonl"
    save_predictions(_many(3), partial)
    with pytest.raises(SourceError, match="a run that was ended left it"):
        save_predictions(_many(1), tmp_path / "ann.json")
    for more in ([], ["--overwrite"]):
        done = predsession("convert", partial, "--to", "coco", *more)
        assert f"{tmp_path / 'ann.json'}: 3 predictions" in done.stderr
        assert len(list(read_predictions(tmp_path / "ann.json"))) == len(list(read_predictions(partial))) == 3
    with pytest.raises(SourceError, match="is being written by this program"):
        save_predictions(read_predictions(partial), tmp_path / "ann.json", overwrite=True)
    assert len(list(read_predictions(partial))) == 3
    save_predictions(_many(1), tmp_path / "ann.json", overwrite=True)
    assert not partial.exists()


class Blank:
    """Loads a picture; whoever keeps the prediction keeps it, too."""

    def __call__(self) -> npt.NDArray[np.uint8]:
        """Return it."""
        return np.zeros((9, 9, 3), np.uint8)


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("video", "parquet")])
def test_memory_is_flat_and_nothing_is_kept(name: str, tmp_path: Path) -> None:
    """Predictions are written one by one, and each is let go of before the next but one."""
    loaders: list[weakref.ref[Blank]] = []
    most = 0

    def watched() -> Iterator[Prediction]:
        nonlocal most
        for each in map(_many(20).__getitem__, range(20)):
            loader = Blank()
            loaders.append(weakref.ref(loader))
            most = max(most, sum(known() is not None for known in loaders))
            yield replace(each, loader=loader)
            del loader

    suffix = next(iter(FORMATS[name].suffixes), "")
    assert save_predictions(watched(), tmp_path / f"out{suffix}", name).predictions == 20
    assert most <= 2, "the one that is made, and the one that was written last"


def test_the_command_line_writes_several_at_once(ours: str, photos: Path, tmp_path: Path) -> None:
    """--out, --html and what they leave out; refused as a whole if one of them is there."""
    out, page = tmp_path / "ann.json", tmp_path / "report"
    arguments = ("predict", photos, "--recursive", "--url", ours, "--out", out, "--html", page)
    done = predsession(*arguments, code=1)
    assert "not in coco: item errors 1" in done.stderr
    assert [each["file_name"] for each in json.loads(out.read_text())["images"]] == [
        "a/1.jpg", "b/1.jpg", "b/1.png",
    ]  # fmt: skip
    assert (page / "index.html").stat().st_size > 1000
    before = out.read_bytes()
    out.unlink()
    assert "index.html is there already" in predsession(*arguments, code=2).stderr
    assert not os.path.lexists(out)
    predsession(*arguments, "--overwrite", code=1)
    assert out.read_bytes() == before


def test_convert(ours: str, photos: Path, tmp_path: Path) -> None:
    """From lines to a document, and back, beside the source by default."""
    with PredictionSession(ours, photos, recursive=True, on_error="skip") as session:
        session.save(tmp_path / "preds.jsonl")
    predsession("convert", tmp_path / "preds.jsonl", "--to", "coco")
    predsession("convert", tmp_path / "preds.json", "--to", "jsonl", "--out", tmp_path / "back.jsonl")
    assert [each.boxes.tolist() for each in read_predictions(tmp_path / "back.jsonl")] == [
        each.boxes.tolist() for each in read_predictions(tmp_path / "preds.jsonl")
    ]
    again = predsession("convert", tmp_path / "preds.jsonl", "--to", "jsonl", code=2)
    assert "is what is read" in again.stderr
    long = predsession("convert", tmp_path / f"{'n' * 300}.jsonl", "--to", "coco", code=2)
    assert ".jsonl cannot be read (File name too long)" in long.stderr
    missing = predsession("convert", tmp_path / "no.jsonl", "--to", "coco", code=2)
    assert "no.jsonl: there is no such file or folder" in missing.stderr


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "video"])
def test_a_place_is_one_runs_alone(name: str, tmp_path: Path) -> None:
    """A second one is refused, with or without overwriting, and takes nothing from the first; then it may."""
    suffixes = FORMATS[name].suffixes
    place = tmp_path / f"out{suffixes[0] if suffixes else ''}"
    found = _many(3)
    first = Saving(Target(path=place), name)
    for one, existing in zip(found, (Existing.REFUSE, Existing.OVERWRITE, Existing.RESUME), strict=True):
        told = (
            "is not empty|being written" if existing is Existing.REFUSE else "is being written by another run"
        )
        with pytest.raises(SourceError, match=told):
            Saving(Target(path=place, existing=existing), name)
        first.write(one)
    assert first.finish().predictions == 3
    first.close()
    again = Saving(Target(path=place, existing=Existing.OVERWRITE), name)
    assert again.finish().predictions == 0
    again.close()


def test_resuming_touches_what_the_run_wrote_alone(ours: str, photos: Path, tmp_path: Path) -> None:
    """A file of somebody else's is refused, with a new journal and with one that knows another file."""
    notes = tmp_path / "notes.jsonl"
    notes.write_text("my notes\n")
    run = ("predict", photos / "a", "--url", ours, "--resume")
    assert "is there already" in predsession(*run, "--out", notes, code=2).stderr
    journal = ("--journal", tmp_path / "j")
    predsession(*run, "--out", tmp_path / "mine.jsonl", *journal)
    assert "is there already" in predsession(*run, "--out", notes, *journal, code=2).stderr
    predsession(*run, "--out", tmp_path / "mine.jsonl", *journal)
    with PredictionSession(ours, photos / "a", resume=tmp_path / "k") as session:
        with pytest.raises(SourceError, match="is there already"):
            session.save(notes)
        with pytest.raises(SourceError, match="would be there twice"):
            session.save(tmp_path / "more.jsonl", append=True)
        session.save(tmp_path / "own.csv")
    with PredictionSession(ours, photos / "a", resume=tmp_path / "k") as session:
        assert session.save(tmp_path / "own.csv").predictions == 1
    assert notes.read_text() == "my notes\n"


def test_what_can_only_be_written_whole_needs_a_file(tmp_path: Path) -> None:
    """A pipe is not replaced by one."""
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("coco", "parquet"):
        with pytest.raises(SourceError, match="is no file, which this format needs"):
            save_predictions(_many(1), tmp_path / "pipe.json", name)
    assert (tmp_path / "pipe.json").is_fifo()


def test_lines_from_a_pipe_are_converted(tmp_path: Path) -> None:
    """They can be read only once."""
    save_predictions(_many(3), tmp_path / "p.jsonl")
    command = ["convert", "/dev/stdin", "--from", "jsonl", "--to", "coco", "--out", tmp_path / "p.json"]
    subprocess.run(
        [sys.executable, "-m", "predsession", *map(str, command)],
        input=(tmp_path / "p.jsonl").read_bytes(),
        check=True,
    )
    assert len(json.loads((tmp_path / "p.json").read_text())["images"]) == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--out", "a.jsonl", "--journal", "a.jsonl"], "a.jsonl is named twice"),
        (["--out", "r.html", "--html", "r.html"], "r.html is named twice"),
        (["--format", "coco"], "pass it, too"),
        (["--images", "copy"], "pass it, too"),
        (["--out", "a.json", "--images", "copy"], "no place for pictures"),
        (["--out", "dataset"], "the name does not say which format"),
        (["--save-video", "out.mp4"], "--save-video is for one clip"),
        (["--out", "new.jsonl", "--html", "new"], "no such file"),
    ],
)
def test_what_makes_no_sense_is_told_and_leaves_nothing(
    arguments: list[str], told: str, tmp_path: Path
) -> None:
    """Before any server is asked; no empty file stays of a run that got nowhere."""
    source = "missing.jpg" if told == "no such file" else str(SAMPLES / "coffee.jpg")
    done = subprocess.run(
        [sys.executable, "-m", "predsession", "predict", source, "--url", "http://127.0.0.1:9", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert told in done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_damage_is_told_with_the_files_name(tmp_path: Path) -> None:
    """A mask that cannot be decoded is the file's fault, not the server's; nothing is left beside it."""
    line = _many(1)[0].to_json()
    line["annotation"]["objects"][0] |= {
        "geometryType": "bitmap",
        "bitmap": {"data": "AAAA", "origin": [0, 0]},
    }
    (tmp_path / "p.jsonl").write_text(json.dumps(line) + "\n")
    done = predsession("convert", tmp_path / "p.jsonl", "--to", "coco", code=2)
    assert f"{tmp_path / 'p.jsonl'} is damaged: " in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["p.jsonl"]


def test_converting_within_the_source_is_refused(tmp_path: Path) -> None:
    """It would read what it writes."""
    save_predictions(_many(2), tmp_path / "lm", "labelme")
    done = predsession("convert", tmp_path / "lm", "--to", "voc", "--out", tmp_path / "lm" / "voc", code=2)
    assert "is what is read, or in it" in done.stderr
    with pytest.raises(SourceError, match="is being written by this program"):
        save_predictions(read_predictions(tmp_path / "lm"), tmp_path / "lm", "labelme", overwrite=True)
    assert len(list(read_predictions(tmp_path / "lm"))) == 2


def test_lines_keep_the_models_classes(tmp_path: Path) -> None:
    """Told once, for all that follow; predictions of no model, and of another, are not given them."""
    names = [f"class {number}" for number in range(80)]
    of_model = [
        Prediction.from_arrays(size=(9, 9), boxes=[[1, 2, 3, 4]], class_ids=[number], class_names=names)
        for number in (3, 70, 3)
    ]
    alone = _many(1)
    save_predictions([*of_model, *alone, of_model[0]], tmp_path / "p.jsonl")
    back = list(read_predictions(tmp_path / "p.jsonl"))
    assert back == [*of_model, *alone, of_model[0]]
    assert [len(each.meta.classes) for each in back] == [80, 80, 80, 1, 80]
    one_model = "".join((tmp_path / "p.jsonl").read_text().splitlines()[:3])
    assert one_model.count('"class 50"') == 1
    save_predictions(read_predictions(tmp_path / "p.jsonl"), tmp_path / "again.jsonl")
    assert list(read_predictions(tmp_path / "again.jsonl")) == back


def test_another_models_description_is_not_given(tmp_path: Path) -> None:
    """What describes itself, or is of another model, is read back with its own classes, added to or not."""

    def of(names: list[str], *found: str) -> Prediction:
        boxes = np.full((len(found), 4), [1, 2, 3, 4])
        return Prediction.from_arrays(
            size=(9, 9), boxes=boxes, classes=found, meta=ModelMeta.from_names(names)
        )

    some = [
        of(["cat", "dog"], "cat"),
        of(["cat"], "cat"),
        of(["cat"]),
        of(["cat"], "cat"),
        of(["cat", "cow"]),
    ]
    out = tmp_path / "p.jsonl"
    save_predictions(some[:1], out)
    for one in some[1:]:
        save_predictions([one], out, append=True)
    save_predictions(some, tmp_path / "q.jsonl")
    for path in (out, tmp_path / "q.jsonl"):
        assert [each.meta.names for each in read_predictions(path)] == [each.meta.names for each in some]
    save_predictions([some[0]] * 99, tmp_path / "r.jsonl")
    assert (tmp_path / "r.jsonl").read_text().count('"model_meta"') == 1
    first = (tmp_path / "r.jsonl").read_text().splitlines()[0]
    assert Prediction.from_json(json.loads(first)) == some[0], "a line can be read by itself"


def test_a_line_that_only_lacks_its_end_is_kept(tmp_path: Path) -> None:
    """As editors leave it; what was written by half goes, and is told."""
    out = tmp_path / "p.jsonl"
    save_predictions(_many(2), out)
    out.write_bytes(out.read_bytes()[:-1])
    save_predictions(_many(1), out, append=True)
    assert [each.index for each in read_predictions(out)] == [0, 1, 0]
    for name in ("p.jsonl", "p.csv"):
        save_predictions(_many(2), tmp_path / name, overwrite=True)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-9])
        with pytest.warns(UserWarning, match="by half, and is left out"):
            save_predictions(_many(1), tmp_path / name, append=True)
        assert [each.index for each in read_predictions(tmp_path / name)] == [0, 0]


@pytest.mark.parametrize("line", ["{}", "[1]", '{"error": 1}', '{"model_meta": 1, "annotation": {}}'])
def test_lines_that_are_json_but_not_ours(line: str, tmp_path: Path) -> None:
    """Each is told by file and line."""
    (tmp_path / "x.jsonl").write_text(f"{line}\n")
    done = predsession("convert", tmp_path / "x.jsonl", "--to", "csv", code=2)
    assert f"{tmp_path / 'x.jsonl'}, line 1: not a prediction" in done.stderr


@pytest.mark.parametrize("name", ["p.jsonl", "p.csv"])
def test_what_is_read_is_not_written_over(name: str, tmp_path: Path) -> None:
    """However far the reading has come; at its end, or when it is let go of, it may."""
    save_predictions(_many(3), tmp_path / name)
    found = read_predictions(tmp_path / name)
    first = next(found)
    with pytest.raises(SourceError, match="is being read by this program"):
        save_predictions(itertools.chain([first], found), tmp_path / name, overwrite=True)
    assert len(list(read_predictions(tmp_path / name))) == 3
    del found
    assert save_predictions([first], tmp_path / name, overwrite=True).predictions == 1


def test_a_session_that_has_nothing_left_takes_no_file_away(ours: str, photos: Path, tmp_path: Path) -> None:
    """Its predictions were taken: that is told, also with a journal, and what is there stays."""
    with PredictionSession(ours, photos / "a", resume=tmp_path / "j") as session:
        session.save(tmp_path / "p.jsonl")
        before = (tmp_path / "p.jsonl").read_bytes()
        for again in (session.save, session.to_html):
            with pytest.raises(SessionClosedError, match="nothing left to be written"):
                again(tmp_path / "p.jsonl", overwrite=True)
    assert (tmp_path / "p.jsonl").read_bytes() == before
    closed = PredictionSession(ours, photos / "a")
    closed.close()
    with pytest.raises(SessionClosedError):
        closed.save(tmp_path / "q.jsonl")


def test_warnings_on_the_command_line_are_lines_of_ours(tmp_path: Path) -> None:
    """Without Python's own words for where they come from."""
    save_predictions(_many(2), tmp_path / "p.jsonl")
    (tmp_path / "p.jsonl").write_bytes((tmp_path / "p.jsonl").read_bytes()[:-9])
    done = predsession("convert", tmp_path / "p.jsonl", "--to", "csv")
    assert "predsession: " in done.stderr
    assert "line 2 was written by half" in done.stderr
    assert "Warning" not in done.stderr


def test_frames_that_were_read_back_have_their_pictures(tmp_path: Path) -> None:
    """They are decoded from the clip; so lines can be made into pictures."""
    clip = str(SAMPLES / "pedestrians.mp4")
    found = [
        Prediction.from_arrays(
            size=(512, 384), boxes=[[9, 9, 99, 99]], path=clip, frame_index=number, index=number
        )
        for number in (0, 7)
    ]
    save_predictions(found, tmp_path / "p.jsonl")
    back = list(read_predictions(tmp_path / "p.jsonl"))
    assert (back[1].load_image() == FrameLoader(clip, 7)()).all()
    saved = save_predictions(back, tmp_path / "labels", "yolo", images="copy")
    assert saved.left_out == {}
    assert (tmp_path / "labels" / "images" / "pedestrians_000007.png").is_file()


def test_the_command_lines_formats_are_the_librarys() -> None:
    """The parser names them without importing them."""
    assert set(TOLD) == set(FORMATS)
