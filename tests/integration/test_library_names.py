"""Pictures of one name, and the times of frames, through the library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from predsession import PredictionSession, Size
from predsession.inputs.video import ClipWriter
from predsession.testing import RunningServer, box_number, number_picture


def test_pictures_of_one_name_are_never_mixed(tmp_path: Path) -> None:
    """Two pictures called 0001.png in one new project: two files, each with its own objects."""
    for number, place in enumerate(("p1/train/0001.png", "p2/train/0001.png"), start=1):
        (tmp_path / place).parent.mkdir(parents=True)
        Image.fromarray(number_picture(number)).save(tmp_path / place)
    with RunningServer("pixels", arguments=["--library", str(tmp_path)]) as server:
        with PredictionSession(server.url, image_ids=[1, 2], upload_mode="create") as session:
            assert [box_number(one.boxes[0]) for one in session] == [1, 2]
        with PredictionSession(server.url, image_ids=[2, 1, 2]) as session:
            assert [box_number(one.boxes[0]) for one in session] == [2, 1, 2]
    made = sorted(
        path for path in tmp_path.rglob("*.json") if "predictions" in str(path) and path.parent.name == "ann"
    )
    titles = [[each["classTitle"] for each in json.loads(path.read_text())["objects"]] for path in made]
    assert sorted(titles) == [["ends in 1"], ["ends in 2"]]


def test_frames_by_id_have_their_times(tmp_path: Path) -> None:
    """On the clip's own clock; the picture is fetched with the token that was passed."""
    times = [0.0, 0.1, 0.5, 0.6, 2.0]
    (tmp_path / "p" / "d").mkdir(parents=True)
    with ClipWriter(tmp_path / "p" / "d" / "clip.mp4", Size(64, 32), rate=10) as writer:
        for number, seconds in enumerate(times):
            writer.write(number_picture(number), seconds)
    with (
        RunningServer("pixels", arguments=["--library", str(tmp_path), "--token", "sesam"]) as server,
        PredictionSession(server.url, video_id=1, token="sesam") as session,
    ):
        predictions = list(session)
        assert [one.timestamp for one in predictions] == pytest.approx(times, abs=0.002)
        assert predictions[3].load_image().shape == (32, 64, 3)
    assert "sesam" not in repr(predictions[3].loader)
