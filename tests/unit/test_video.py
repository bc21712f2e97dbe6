"""Clips: probed, read frame by frame, written; the odd ones, too."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from predsession import ItemError, Size, SourceError
from predsession.inputs.clips import open_clips
from predsession.inputs.folders import names_clips
from predsession.inputs.frames import FrameOptions
from predsession.inputs.video import ClipWriter, FrameLoader, count_frames, probe
from predsession.server.models.pixels import read_number
from predsession.testing import number_picture

SIZE = (128, 96)


def write_clip(
    path: Path,
    count: int = 30,
    *,
    codec: str = "libx264",
    times: list[float] | None = None,
    rotation: int = 0,
    gop: int = 10,
) -> Path:
    """Write a clip whose frame i holds the number i."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        stream.codec_context.gop_size = gop
        stream.codec_context.time_base = Fraction(1, 1000)
        if rotation:
            stream.set_display_rotation(rotation)
        for number in range(count):
            picture = number_picture(number, SIZE)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = round(1000 * (times[number] if times else number / 10))
            frame.time_base = Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(
    ("suffix", "codec"),
    [(".mp4", "libx264"), (".mov", "libx264"), (".mkv", "libx264"), (".webm", "libvpx"), (".avi", "mpeg4"),
     (".m4v", "libx264"), (".MP4", "libx264")],
)  # fmt: skip
def test_every_container_is_counted_and_read(tmp_path: Path, suffix: str, codec: str) -> None:
    """Whether or not its header knows the number of frames; every frame can be had in any order."""
    path = write_clip(tmp_path / f"clip{suffix}", codec=codec)
    clip = probe(path)
    assert len(clip) == 30
    assert clip.size == Size(*SIZE)
    assert clip.rate == pytest.approx(10, rel=0.05)
    assert clip.times[:3] == pytest.approx([0, 0.1, 0.2], abs=0.02)
    for index in (0, 1, 2, 29, 15, 15, 9, 10, 11, 3):
        assert read_number(FrameLoader(str(path), index)()) == index


def test_a_variable_rate_keeps_its_times(tmp_path: Path) -> None:
    """From the stream's own clock, not from index / rate."""
    times = [0.0, 0.1, 0.5, 0.6, 2.0, 2.04]
    clip = probe(write_clip(tmp_path / "vfr.mkv", 6, times=times))
    assert clip.times == pytest.approx(times, abs=0.002)
    assert clip.time_of(4) == pytest.approx(2.0, abs=0.002)


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_a_clip_from_a_phone_is_upright(tmp_path: Path, rotation: int) -> None:
    """Its size is the upright one, and so is every frame."""
    path = write_clip(tmp_path / "phone.mp4", 3, rotation=rotation)
    clip = probe(path)
    width, height = SIZE
    assert clip.size == (Size(height, width) if rotation % 180 else Size(width, height))
    frame = FrameLoader(str(path), 2)()
    assert frame.shape == (clip.size.height, clip.size.width, 3)
    upright = FrameLoader(str(write_clip(tmp_path / "plain.mp4", 3)), 2)()
    with av.open(str(path)) as container:
        stated = round(next(container.decode(video=0)).rotation / 90)
    assert np.abs(frame.astype(int) - np.rot90(upright, stated)).mean() < 3


def test_sound_is_not_needed_and_not_enough(tmp_path: Path) -> None:
    """A clip with only sound is told as one."""
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=44100)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 44100), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 44100
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with pytest.raises(SourceError, match=r"sound\.mp4 has no video stream"):
        probe(path)


def test_what_is_no_clip_is_named(tmp_path: Path) -> None:
    """A text, an empty file, a missing one, half an mp4 whose index is gone."""
    whole = write_clip(tmp_path / "whole.mp4").read_bytes()
    for name, data in (("text.mp4", b"this is no clip"), ("cut.mp4", whole[: len(whole) // 2])):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(SourceError, match=name):
            probe(tmp_path / name)
    (tmp_path / "empty.mp4").touch()
    for name in ("empty.mp4", "gone.mp4"):
        with pytest.raises(SourceError, match=name):
            open_clips(str(tmp_path / name), FrameOptions())


def test_a_clip_that_is_cut_short(tmp_path: Path) -> None:
    """A container without an index at its end plays as far as it goes; both numbers can be had."""
    data = write_clip(tmp_path / "whole.mkv").read_bytes()
    (tmp_path / "cut.mkv").write_bytes(data[: int(len(data) * 0.6)])
    promised = len(probe(tmp_path / "cut.mkv"))
    assert 0 < count_frames(probe(tmp_path / "cut.mkv")) <= promised < 30


def test_a_frame_that_is_not_there(tmp_path: Path) -> None:
    """Is an error with the clip's name and length."""
    path = write_clip(tmp_path / "clip.mp4", 3)
    with pytest.raises(ItemError, match="it has 3"):
        FrameLoader(str(path), 3)()


def test_a_loader_is_pickled(tmp_path: Path) -> None:
    """And loads the same frame in another process's place."""
    loader = pickle.loads(pickle.dumps(FrameLoader(str(write_clip(tmp_path / "clip.mp4", 3)), 1)))
    assert read_number(loader()) == 1


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Odd sizes are widened by one; the times are kept."""
    times = [0.0, 0.1, 0.35, 0.4]
    with ClipWriter(tmp_path / "out.mp4", Size(127, 95), rate=10) as writer:
        for number, seconds in enumerate(times):
            writer.write(number_picture(number, (127, 95)), seconds)
    clip = probe(tmp_path / "out.mp4")
    assert clip.size == Size(128, 96)
    assert clip.times == pytest.approx(times, abs=0.001)
    assert [read_number(FrameLoader(clip.path, index)()) for index in range(4)] == [0, 1, 2, 3]


def test_a_source_of_clips(tmp_path: Path) -> None:
    """Their frames are counted before anything is sent; images and clips do not mix."""
    paths = [write_clip(tmp_path / f"{count}.mp4", count) for count in (3, 5)]
    source = open_clips(paths, FrameOptions(stride=2))
    assert source is not None
    assert source.total == 2 + 3
    assert [item.first_index for item in source] == [0, 2]
    with pytest.raises(SourceError, match="not both"):
        open_clips([paths[0], tmp_path / "a.jpg"], FrameOptions())
    assert not names_clips([tmp_path / "a.jpg"])
    assert not names_clips(tmp_path)


@pytest.mark.parametrize(
    ("codec", "suffix"), [("mpeg4", ".avi"), ("mpeg2video", ".avi"), ("libx264", ".avi")]
)
def test_frames_that_lean_across_keyframes(tmp_path: Path, codec: str, suffix: str) -> None:
    """In an AVI frames can only be counted: any order of reading gives the right ones all the same."""
    path = tmp_path / "open.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        stream.codec_context.max_b_frames = 2
        stream.codec_context.gop_size = 12
        if codec == "libx264":
            stream.options = {"x264-params": "open-gop=1:bframes=2"}
        for number in range(40):
            frame = av.VideoFrame.from_ndarray(number_picture(number, SIZE), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    count = len(probe(path))
    assert count >= 38
    for index in (25, 13, 12, 30, 5, count - 1, 26, 0):
        assert read_number(FrameLoader(str(path), index)()) == index


def test_a_clip_that_takes_another_ones_place(tmp_path: Path) -> None:
    """Is read, not the one that was open under its name."""
    path = write_clip(tmp_path / "clip.mp4", 5)
    assert read_number(FrameLoader(str(path), 2)()) == 2
    with ClipWriter(tmp_path / "other.mp4", Size(*SIZE), rate=10) as writer:
        for number in range(5):
            writer.write(number_picture(100 + number, SIZE), number / 10)
    (tmp_path / "other.mp4").replace(path)
    assert read_number(FrameLoader(str(path), 2)()) == 102
