"""What a folder or a project lists, and in which order."""

from __future__ import annotations

import os
from pathlib import Path

import makers
import pytest
from PIL import Image

from predsession.errors import SourceError
from predsession.inputs.images import prepare
from predsession.inputs.sources import open_source


def names(folder: Path, *, recursive: bool = False) -> list[str]:
    """Return the names of a folder's items, in order."""
    return [item.name for item in open_source(folder, recursive=recursive)]


def paths_in(folder: Path, *, recursive: bool = False) -> list[str]:
    """Return the paths of a folder's items, relative to it."""
    return [os.path.relpath(item.path or "", folder) for item in open_source(folder, recursive=recursive)]


class TestFolders:
    """A folder gives its images: all of them, nothing else, in natural order."""

    def test_natural_order(self, tmp_path: Path) -> None:
        """Numbers count by value, whatever the order in which the files were made."""
        for name in ("img_10.jpg", "img_2.jpg", "IMG_3.jpg", "img_1.jpg"):
            makers.write_jpeg(tmp_path / name)
        assert names(tmp_path) == ["img_1.jpg", "img_2.jpg", "IMG_3.jpg", "img_10.jpg"]

    def test_suffixes_in_any_case(self, tmp_path: Path) -> None:
        """.JPG, .JpEg and .TIFF are images; d.jpg.txt is none."""
        for name in ("A.JPG", "b.JpEg", "c.TIFF", "d.jpg.txt"):
            makers.write(tmp_path / name, b"")
        assert names(tmp_path) == ["A.JPG", "b.JpEg", "c.TIFF"]

    @pytest.mark.parametrize("recursive", [False, True])
    def test_what_systems_leave_is_left_out(self, tmp_path: Path, recursive: bool) -> None:
        """Dotfiles, Thumbs.db, desktop.ini and __MACOSX hold no photographs."""
        expected = [path.name for path in makers.mac_folder(tmp_path)]
        assert names(tmp_path, recursive=recursive) == expected

    def test_recursive(self, tmp_path: Path) -> None:
        """Equal names in different folders are different items; hidden folders are left out."""
        for name in ("b/1.png", "b/1.jpg", "a/1.jpg", "a/2/3.jpg", "a10/x.jpg", "a2/x.jpg", ".hidden/1.jpg"):
            makers.write_jpeg(tmp_path / name)
        makers.write_jpeg(tmp_path / "z.jpg")
        assert paths_in(tmp_path) == ["z.jpg"]
        assert paths_in(tmp_path, recursive=True) == [
            "a/1.jpg", "a/2/3.jpg", "a2/x.jpg", "a10/x.jpg", "b/1.jpg", "b/1.png", "z.jpg",
        ]  # fmt: skip

    def test_links(self, tmp_path: Path) -> None:
        """Links that lead up or round end the search; each file is found once, by its real path."""
        makers.write_jpeg(tmp_path / "outside.jpg")
        expected = [str(path) for path in makers.linked_folder(tmp_path / "photos")]
        found = open_source(tmp_path / "photos", recursive=True)
        assert [item.path for item in found] == expected

    def test_linked_folder_elsewhere(self, tmp_path: Path) -> None:
        """A link to a folder outside is followed, once, also where that folder links back."""
        makers.write_jpeg(tmp_path / "archive" / "1.jpg")
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "old").symlink_to(tmp_path / "archive")
        (tmp_path / "photos" / "older").symlink_to(tmp_path / "archive")
        (tmp_path / "archive" / "back").symlink_to(tmp_path / "photos")
        assert paths_in(tmp_path / "photos", recursive=True) == ["old/1.jpg"]

    def test_folder_that_is_a_link(self, tmp_path: Path) -> None:
        """The folder itself may be a link."""
        makers.write_jpeg(tmp_path / "real" / "1.jpg")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        assert [item.path for item in open_source(tmp_path / "link", recursive=True)] == [
            str(tmp_path / "link" / "1.jpg")
        ]

    def test_linked_files_are_kept(self, tmp_path: Path) -> None:
        """A link to a file is a name of its own; one that leads nowhere does not vanish silently."""
        makers.write_jpeg(tmp_path / "1.jpg")
        (tmp_path / "2.jpg").symlink_to("1.jpg")
        (tmp_path / "3.jpg").symlink_to("nowhere.jpg")
        (tmp_path / "4.jpg").symlink_to("4.jpg")
        assert names(tmp_path) == ["1.jpg", "2.jpg", "3.jpg", "4.jpg"]

    def test_folder_named_like_an_image(self, tmp_path: Path) -> None:
        """A folder called x.jpg is a folder."""
        makers.write_jpeg(tmp_path / "x.jpg" / "1.jpg")
        assert paths_in(tmp_path, recursive=True) == ["x.jpg/1.jpg"]

    def test_named_pipe_is_no_image(self, tmp_path: Path) -> None:
        """A pipe with the suffix of an image is left out: reading it would wait for ever."""
        makers.write_jpeg(tmp_path / "1.jpg")
        os.mkfifo(tmp_path / "2.jpg")
        assert names(tmp_path) == ["1.jpg"]

    def test_odd_names(self, tmp_path: Path) -> None:
        """Spaces, quotes, newlines, Chinese, Cyrillic: the caller sees the true names."""
        makers.odd_names(tmp_path)
        assert sorted(names(tmp_path)) == sorted(makers.ODD_NAMES)

    def test_trailing_slash_and_relative(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Paths begin with the folder as the caller wrote it."""
        makers.write_jpeg(tmp_path / "photos" / "1.jpg")
        monkeypatch.chdir(tmp_path)
        assert [item.path for item in open_source("photos/")] == ["photos/1.jpg"]
        assert [item.path for item in open_source(".", recursive=True)] == ["./photos/1.jpg"]

    def test_photographs_of_the_demo(self) -> None:
        """The demo has four photographs, one with its suffix in capitals, one stored on its side."""
        photos = Path(__file__).parents[2] / "examples" / "photos"
        assert names(photos) == ["astronaut.jpg", "cat.JPG", "coffee.jpg", "portrait.jpg"]
        portrait = prepare(open_source(photos)[3])
        with Image.open(photos / "portrait.jpg") as image:
            assert image.getexif()[0x0112] == 6
            assert portrait.size == image.size[::-1]


class TestProjects:
    """A Supervisely project gives its datasets' images, dataset by dataset."""

    @pytest.mark.parametrize("recursive", [False, True])
    def test_order(self, tmp_path: Path, recursive: bool) -> None:
        """A dataset's images in natural order, then those of the datasets in it, then the next dataset."""
        expected = [str(path) for path in makers.project(tmp_path)]
        assert [item.path for item in open_source(tmp_path, recursive=recursive)] == expected

    def test_in_a_list(self, tmp_path: Path) -> None:
        """A project in a list stands for its images."""
        makers.project(tmp_path)
        assert len(open_source([tmp_path, tmp_path / "ds2" / "img"])) == 6

    def test_meta_json_alone_makes_no_project(self, tmp_path: Path) -> None:
        """Images beside meta.json are an ordinary folder: none of them is lost to a folder called img."""
        makers.write(tmp_path / "meta.json", b"{}")
        makers.write_jpeg(tmp_path / "1.jpg")
        makers.write_jpeg(tmp_path / "x" / "img" / "2.jpg")
        assert names(tmp_path) == ["1.jpg"]

    def test_project_without_images(self, tmp_path: Path) -> None:
        """A project whose datasets are empty is refused like an empty folder."""
        makers.write(tmp_path / "meta.json", b"{}")
        (tmp_path / "ds" / "img").mkdir(parents=True)
        with pytest.raises(SourceError, match="no images"):
            open_source(tmp_path)
