"""What a source lists, in which order, and what it refuses before anything is sent."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import makers
import numpy as np
import pytest
from PIL import Image

from predsession.errors import SourceError
from predsession.inputs.images import prepare
from predsession.inputs.sources import (
    ArrayContent,
    BytesContent,
    FileContent,
    PictureContent,
    UrlContent,
    open_source,
    with_bytes,
)

AS_ROOT = os.geteuid() == 0


def names(source: object, **options: bool) -> list[str]:
    """Return the names of a source's items, in order."""
    return [item.name for item in open_source(source, **options)]


def paths_in(folder: Path, *, recursive: bool = False) -> list[str]:
    """Return the paths of a folder's items, relative to it."""
    return [os.path.relpath(item.path or "", folder) for item in open_source(folder, recursive=recursive)]


def refused(source: object, **options: bool) -> str:
    """Return the message with which a source is refused."""
    with pytest.raises(SourceError) as caught:
        open_source(source, **options)
    return str(caught.value)


class TestSingleInputs:
    """One thing that is no list gives one item."""

    def test_array(self) -> None:
        """An array is one item without a path, named by its place."""
        (item,) = open_source(makers.pixels())
        assert isinstance(item.content, ArrayContent)
        assert (item.index, item.name, item.label, item.path, item.url) == (
            0,
            "image_0000",
            "image_0000",
            None,
            None,
        )

    def test_picture(self) -> None:
        """A PIL image made in memory has no name of its own."""
        (item,) = open_source(makers.picture())
        assert isinstance(item.content, PictureContent)
        assert item.name == "image_0000"

    def test_opened_picture_keeps_its_name(self, tmp_path: Path) -> None:
        """A PIL image opened from a file has its name, and no path: it may have been changed since."""
        with Image.open(makers.write_jpeg(tmp_path / "cat.jpg")) as image:
            (item,) = open_source(image)
        assert (item.name, item.path) == ("cat.jpg", None)

    @pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
    def test_encoded_bytes(self, wrap: type) -> None:
        """Bytes in any wrapping are one item, and are kept as they were when the source was opened."""
        data = bytearray(makers.jpeg())
        (item,) = open_source(wrap(data))
        data[:] = b"\x00" * len(data)
        assert isinstance(item.content, BytesContent)
        assert item.content.data == makers.jpeg()

    @pytest.mark.parametrize("wrap", [str, Path])
    def test_path(self, tmp_path: Path, wrap: type) -> None:
        """A path, str or PathLike, is one item that knows it."""
        path = makers.write_jpeg(tmp_path / "a b.jpg")
        (item,) = open_source(wrap(path))
        assert item.content == FileContent(str(path))
        assert (item.name, item.label) == ("a b.jpg", str(path))

    def test_any_name_will_do(self, tmp_path: Path) -> None:
        """A file that is named and whose content is an image is taken, whatever its suffix."""
        path = makers.write_jpeg(tmp_path / "download.tmp")
        assert names(path) == ["download.tmp"]

    def test_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A leading ~ means the home folder, unless there is a file of that name."""
        monkeypatch.setenv("HOME", str(tmp_path))
        path = makers.write_jpeg(tmp_path / "x.jpg")
        assert [item.path for item in open_source("~/x.jpg")] == [str(path)]

    def test_url(self) -> None:
        """A URL is one item named by its last part; nothing is fetched, no secret is shown."""
        url = "https://user:pw@example.com/photos/c%20at.jpg?X-Signature=secret#top"
        source = open_source(url)
        (item,) = source
        assert (item.name, item.url, item.path) == ("c at.jpg", url, None)
        shown = f"{item.label} {item!r} {source!r} {source.description}"
        assert "secret" not in shown
        assert "pw" not in shown
        assert item.label == "https://example.com/photos/c%20at.jpg?..."

    def test_url_without_name(self) -> None:
        """A URL that ends in a slash or in nothing is named by its place."""
        assert names("http://example.com") == ["image_0000"]

    def test_fetched_url_stays_a_url(self) -> None:
        """Bytes that were fetched belong to the same item: index, name, label and URL are unchanged."""
        (item,) = open_source("http://example.com/cat.jpg")
        fetched = with_bytes(item, makers.jpeg())
        assert (fetched.index, fetched.name, fetched.url, fetched.label) == (
            0,
            "cat.jpg",
            item.url,
            item.label,
        )
        assert prepare(fetched).size == makers.SIZE


class TestSource:
    """A source is sized, ordered, and can be gone through as often as needed."""

    def test_protocol(self, tmp_path: Path) -> None:
        """Length, iteration and indexing agree, from both ends; beyond them is an IndexError."""
        makers.mac_folder(tmp_path)
        source = open_source(tmp_path)
        assert len(source) == 3
        assert list(source) == list(source) == [source[i] for i in range(3)]
        assert source[-1] == source[2]
        with pytest.raises(IndexError):
            source[3]

    def test_description_is_short(self, tmp_path: Path) -> None:
        """The description of a thousand inputs is not a thousand lines."""
        path = str(makers.write_jpeg(tmp_path / "x.jpg"))
        assert open_source([path] * 1000).description == "list of 1000"
        assert open_source(tmp_path).description == str(tmp_path)

    def test_pickles(self, tmp_path: Path) -> None:
        """A source travels to another process."""
        makers.mac_folder(tmp_path)
        source = open_source(tmp_path)
        assert list(pickle.loads(pickle.dumps(source))) == list(source)

    def test_label_is_one_line(self, tmp_path: Path) -> None:
        """Newlines and bytes that are no text are escaped in labels; the path itself is untouched."""
        odd = tmp_path / "new\nline.jpg"
        undecodable = tmp_path / os.fsdecode(b"caf\xe9.jpg")
        source = open_source([makers.write_jpeg(odd), makers.write_jpeg(undecodable)])
        assert [item.path for item in source] == [str(odd), str(undecodable)]
        assert source[0].label == str(odd).replace("\n", "\\n")
        source[1].label.encode("utf-8")


class TestLists:
    """A list mixes anything; folders in it stand for their images."""

    def test_mixed(self, tmp_path: Path) -> None:
        """Order and numbering are those of the list, a folder expanded in its place."""
        makers.mac_folder(tmp_path / "folder")
        single = makers.write_jpeg(tmp_path / "single.jpg")
        values = [
            makers.pixels(),
            str(single),
            tmp_path / "folder",
            makers.jpeg(),
            makers.picture(),
            "http://h/u.png",
        ]
        source = open_source(values)
        assert [item.index for item in source] == list(range(8))
        assert [item.name for item in source] == [
            "image_0000", "single.jpg", "1.jpg", "2.JPG", "10.JpEg", "image_0005", "image_0006", "u.png",
        ]  # fmt: skip
        assert isinstance(source[7].content, UrlContent)

    def test_tuple_and_repeats(self, tmp_path: Path) -> None:
        """A tuple is a list, and the same file twice is two items."""
        path = makers.write_jpeg(tmp_path / "1.jpg")
        assert names((path, path)) == ["1.jpg", "1.jpg"]

    def test_recursive_reaches_folders_in_lists(self, tmp_path: Path) -> None:
        """`recursive` holds for every folder of a list."""
        makers.write_jpeg(tmp_path / "a" / "b" / "1.jpg")
        assert names([tmp_path], recursive=True) == ["1.jpg"]


class TestRefusals:
    """The caller's mistakes are errors at once, which name the input and the remedy."""

    def test_missing_path(self, tmp_path: Path) -> None:
        """A path that is not there is named."""
        assert "no such file" in refused(tmp_path / "gone.jpg")
        assert "gone.jpg" in refused(str(tmp_path / "gone.jpg"))

    def test_all_missing_files_are_counted(self, tmp_path: Path) -> None:
        """Of many missing files the first are named, the others counted, before anything is sent."""
        there = makers.write_jpeg(tmp_path / "there.jpg")
        message = refused([there, *(tmp_path / f"gone{i}.jpg" for i in range(9))])
        assert "gone0.jpg" in message
        assert "and 6 more" in message
        assert "there.jpg" not in message

    def test_pattern(self) -> None:
        """Who passes a pattern is told that it is not expanded."""
        assert "patterns are not expanded" in refused("photos/*.jpg")

    def test_relative_path_says_where_it_starts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A relative path that is not there is mostly looked for in the wrong place."""
        monkeypatch.chdir(tmp_path)
        assert str(tmp_path) in refused("gone.jpg")

    def test_empty_folder(self, tmp_path: Path) -> None:
        """An empty folder is named, with the suffixes that were looked for."""
        message = refused(tmp_path)
        assert str(tmp_path) in message
        assert ".jpg" in message
        assert "recursive" not in message

    def test_images_one_level_down(self, tmp_path: Path) -> None:
        """Where the images are in a folder of the folder, recursive=True is the remedy."""
        makers.write_jpeg(tmp_path / "sub" / "1.jpg")
        assert "recursive=True" in refused(tmp_path)

    def test_empty_recursive(self, tmp_path: Path) -> None:
        """A recursive search that finds nothing says that it was recursive."""
        assert "in its folders too" in refused(tmp_path, recursive=True)

    def test_folder_of_videos(self, tmp_path: Path) -> None:
        """A folder with nothing but videos says why they are not taken."""
        makers.write(tmp_path / "clip.MP4", b"")
        assert "videos" in refused(tmp_path)

    @pytest.mark.parametrize("empty", [[], ()])
    def test_empty_list(self, empty: object) -> None:
        """An empty list is refused."""
        assert "empty" in refused(empty)

    def test_empty_folder_in_list(self, tmp_path: Path) -> None:
        """An empty folder in a list is a mistake too."""
        (tmp_path / "none").mkdir()
        assert "none" in refused([makers.pixels(), tmp_path / "none"])

    def test_text_file(self, tmp_path: Path) -> None:
        """A text file that is named is refused before anything is sent."""
        assert "text" in refused(makers.write(tmp_path / "notes.txt", b"hello\n"))

    def test_video_file(self, tmp_path: Path) -> None:
        """A video is named as what it is."""
        assert "in a list of videos" in refused(makers.write(tmp_path / "clip.mp4", b""))
        assert "download it" in refused("https://example.com/clip.mp4?x=1")

    @pytest.mark.parametrize(
        "url", ["s3://bucket/key.jpg", "ftp://host/a.jpg", "file:///a.jpg", "rtsp://cam/1"]
    )
    def test_other_schemes(self, url: str) -> None:
        """Only http and https are fetched."""
        assert "only http and https" in refused(url)

    @pytest.mark.parametrize(
        "url", ["http://[::1/a.jpg?token=secret", "http:///a.jpg?token=secret", "https://"]
    )
    def test_no_url(self, url: str) -> None:
        """What begins like a URL and is none is refused, and shown without its query."""
        message = refused(url)
        assert "not a valid URL" in message
        assert "secret" not in message

    def test_generator(self) -> None:
        """A generator is not supported yet; the message says what to pass."""
        assert "list(...)" in refused(makers.pixels() for _ in range(2))

    @pytest.mark.parametrize(
        ("value", "named"),
        [
            (7, "int"),
            (None, "NoneType"),
            ({"a": 1}, "dict"),
            ({"a"}, "set"),
            ([["a.jpg"]], "list"),
            ([makers.pixels(), 7], "input[1]: int"),
            (np.float32(1), "numpy.float32"),
        ],
    )
    def test_unsupported(self, value: object, named: str) -> None:
        """What is of no supported type is refused with the name of its type and its place."""
        assert named in refused(value)

    def test_open_file(self, tmp_path: Path) -> None:
        """An open file is refused with the remedy."""
        with makers.write_jpeg(tmp_path / "1.jpg").open("rb") as file:
            assert "file.read()" in refused(file)

    def test_tensor(self) -> None:
        """What can become an array is refused with the way to one."""

        class Tensor:
            def __array__(self) -> np.ndarray:
                return makers.pixels()

        assert "np.asarray" in refused(Tensor())

    @pytest.mark.parametrize("path", ["", "a\x00b.jpg", "x" * 5000, "x/" * 1500])
    def test_impossible_paths(self, path: str) -> None:
        """An empty path, a NUL, or what is far too long for a path is refused, and not dumped whole."""
        assert len(refused(path)) < 400

    def test_device(self) -> None:
        """A device is neither file nor folder."""
        assert "neither a file nor a folder" in refused("/dev/null")

    @pytest.mark.skipif(AS_ROOT, reason="root may read everything")
    def test_unreadable_folder(self, tmp_path: Path) -> None:
        """A folder without permission is an error, also below, where its images would be lost in silence."""
        makers.write_jpeg(tmp_path / "1.jpg")
        locked = tmp_path / "locked"
        locked.mkdir(mode=0)
        assert "cannot read the folder" in refused(locked)
        assert "locked" in refused(tmp_path, recursive=True)

    def test_folder_that_vanishes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A folder that cannot be listed is a SourceError, whatever the system says."""

        def scandir(path: str) -> object:
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(os, "scandir", scandir)
        assert "Permission denied" in refused(tmp_path)


class TestArrays:
    """Wrong arrays are refused before anything is sent, with shape, dtype and the remedy."""

    @pytest.mark.parametrize("shape", [(8, 8), (8, 8, 1), (8, 8, 3), (8, 8, 4), (1, 1, 3)])
    def test_accepted_shapes(self, shape: tuple[int, ...]) -> None:
        """Gray, RGB and RGBA are images."""
        assert len(open_source(np.zeros(shape, np.uint8))) == 1

    @pytest.mark.parametrize(
        ("array", "remedy"),
        [
            (np.zeros((8, 8, 3), np.float32), "(a * 255).astype(np.uint8)"),
            (np.full((8, 8, 3), 200.0), "a.astype(np.uint8)"),
            (np.zeros((8, 8, 3), np.int64), "a.astype(np.uint8)"),
            (np.full((8, 8), 40_000, np.uint16), "(a // 257).astype(np.uint8)"),
            (np.zeros((8, 8), bool), "* 255"),
            (np.zeros((3, 8, 8), np.uint8), "a.transpose(1, 2, 0)"),
            (np.zeros((2, 8, 8, 3), np.uint8), "list(a)"),
            (np.zeros((2, 3, 8, 8), np.uint8), "list(a.transpose(0, 2, 3, 1))"),
            (np.zeros((0, 8, 3), np.uint8), "no pixels"),
            (np.zeros((8, 8, 0), np.uint8), "no pixels"),
            (np.zeros((0,), np.float64), "no pixels"),
            (np.zeros(8, np.uint8), "shape is not"),
            (np.zeros((8, 8, 2), np.uint8), "shape is not"),
            (np.array(None), "objects"),
            (np.array([["a"]]), "dtype is not"),
            (np.full((8, 8), np.nan), "a.astype(np.uint8)"),
        ],
    )
    def test_refused(self, array: np.ndarray, remedy: str) -> None:
        """Shape, dtype and remedy are in the message."""
        message = refused([makers.pixels(), array])
        assert "input[1]" in message
        assert str(array.shape) in message
        assert str(array.dtype) in message
        assert remedy in message

    def test_two_faults_at_once(self) -> None:
        """A tensor as PyTorch has it is told both its faults."""
        message = refused(np.zeros((3, 8, 8), np.float32))
        assert "transpose" in message
        assert "* 255" in message

    def test_empty_picture(self) -> None:
        """A PIL image without pixels is refused."""
        assert "no pixels" in refused(Image.new("RGB", (0, 4)))
