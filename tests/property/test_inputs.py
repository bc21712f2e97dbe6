"""What holds for every folder, every header, and every damaged file."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import os
import re
import tempfile
import warnings
from pathlib import Path
from random import Random

import makers
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image, ImageOps

from predsession.errors import ItemError
from predsession.inputs.folders import in_order, natural_key
from predsession.inputs.images import Encoded, ImageLimits, image_loader, prepare, reencode
from predsession.inputs.sources import open_source
from predsession.wire.geometry import Size

settings.register_profile("inputs", deadline=None, max_examples=60)
UNTIMED = settings.get_profile("inputs")

KINDS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF")
SIZES = st.tuples(st.integers(1, 48), st.integers(1, 48))
# Any name a POSIX file system takes, text or not, that is no dotfile.
STEMS = st.one_of(
    st.text(st.characters(exclude_characters="/\x00", exclude_categories=("Cs",)), min_size=1, max_size=12),
    st.binary(min_size=1, max_size=12).map(
        lambda raw: os.fsdecode(raw.replace(b"/", b"_").replace(b"\0", b"_"))
    ),
).filter(lambda stem: not stem.startswith("."))
RELATIVE = st.lists(
    st.from_regex(r"[a-cA-C]{0,2}[0-9]{1,3}[a-b_-]?", fullmatch=True), min_size=1, max_size=3
).map("/".join)


def prepared(data: bytes, limits: ImageLimits | None = None) -> Encoded:
    """Prepare encoded bytes."""
    return prepare(open_source(data)[0], limits or ImageLimits())


@functools.cache
def noise(kind: str) -> bytes:
    """Return a small picture of noise, encoded."""
    samples = np.random.default_rng(7).integers(0, 256, (24, 32, 3), dtype=np.uint8)
    return makers.encoded(Image.fromarray(samples), kind)


class TestNaturalOrder:
    """The order of a folder is total, and depends on the names alone."""

    @UNTIMED
    @given(st.sets(RELATIVE, min_size=1, max_size=12), st.randoms(use_true_random=False))
    def test_any_order_of_listing_gives_the_same(self, paths: set[str], random: Random) -> None:
        """In whatever order the files are listed, they come in one; equal but for case or zeros, too."""
        paths |= {path.upper() for path in paths} | {path.replace("1", "01") for path in paths}
        shuffled = list(paths)
        random.shuffle(shuffled)
        assert in_order(shuffled) == in_order(sorted(paths))

    @UNTIMED
    @given(RELATIVE, RELATIVE)
    def test_keys_say_what_the_order_is(self, one: str, other: str) -> None:
        """Two paths have one key only if they are the same but for case and leading zeros."""
        plain = [re.sub("0*([0-9]+)", r"\1", path.casefold()) for path in (one, other)]
        assert (natural_key(one) == natural_key(other)) == (plain[0] == plain[1])

    @UNTIMED
    @given(st.text("ab_-", max_size=3), st.integers(0, 10**9), st.integers(0, 10**9))
    def test_numbers_count_by_value(self, stem: str, one: int, other: int) -> None:
        """Names that differ in a number only are ordered by it."""
        keys = [natural_key(f"{stem}{number}.jpg") for number in (one, other)]
        assert (keys[0] < keys[1]) == (one < other)

    @UNTIMED
    @given(st.sets(RELATIVE, min_size=2, max_size=12))
    def test_folders_stay_together(self, paths: set[str]) -> None:
        """All files directly or deeper in one folder follow each other."""
        ordered = in_order(f"{path}/x.jpg" for path in paths)
        tops = [path.split("/")[0] for path in ordered]
        groups = [top for top, _ in itertools.groupby(tops)]
        assert len(groups) == len(set(groups))

    @UNTIMED
    @given(st.sets(STEMS, min_size=1, max_size=6))
    def test_every_name_is_found_and_kept(self, stems: set[str]) -> None:
        """Whatever the files are called, each is listed once, by its true name, and can be prepared."""
        with tempfile.TemporaryDirectory() as folder:
            names = {f"{stem}.jpg" for stem in stems}
            for name in names:
                (Path(folder) / name).write_bytes(noise("JPEG"))
            source = open_source(folder)
            assert sorted(item.name for item in source) == sorted(
                path.name for path in Path(folder).iterdir()
            )
            for item in source:
                assert prepare(item).nbytes == len(noise("JPEG"))
                assert item.label.isprintable()


class TestFrames:
    """The size that is announced is the size of what is sent, upright."""

    @UNTIMED
    @given(SIZES, st.sampled_from(KINDS), st.integers(1, 8))
    def test_header_and_decoder_agree(self, size: tuple[int, int], kind: str, orientation: int) -> None:
        """For every format, size and orientation: header, loader, re-encoding and a server's view agree."""
        if kind in {"BMP", "GIF"}:
            data = makers.encoded(makers.picture(size), kind)
        else:
            data = makers.turned(kind, orientation, size=size)
        item = open_source(data)[0]
        encoded = prepare(item)
        loader = image_loader(item)
        assert loader is not None
        with encoded.open() as stream, Image.open(stream) as image:
            served = ImageOps.exif_transpose(image).size
        assert encoded.size == Size(*size) == Size(*served) == reencode(item).size
        assert loader().shape == (size[1], size[0], 3)

    @UNTIMED
    @given(
        arrays.arrays(
            np.uint8,
            st.one_of(
                st.tuples(st.integers(1, 9), st.integers(1, 9)),
                st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3, 4])),
            ),
        )
    )
    def test_arrays_lose_nothing(self, array: npt.NDArray[np.uint8]) -> None:
        """The pixels that arrive are the pixels that were handed in, without alpha."""
        encoded = prepare(open_source(array)[0])
        with encoded.open() as stream, Image.open(stream) as image:
            arrived = np.asarray(image)
        expected = array if array.ndim == 2 else array[..., 0] if array.shape[2] == 1 else array[..., :3]
        assert np.array_equal(arrived, expected)
        assert encoded.size == Size(array.shape[1], array.shape[0])


class TestDamage:
    """Whatever the bytes, the answer is something to send or an ItemError."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_cut_is_found(self, kind: str) -> None:
        """A file that lacks one byte or more is never sent as it is."""
        data = noise(kind)
        # The last byte of a GIF is its trailer, which decoders do without.
        for length in range(len(data) - (kind == "GIF")):
            with pytest.raises(ItemError):
                prepared(data[:length])

    @settings(UNTIMED, max_examples=400)
    @given(
        st.sampled_from(KINDS),
        st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=8),
        st.integers(0, 64),
    )
    def test_flipped_bytes(self, kind: str, changes: list[tuple[int, int]], header_only: int) -> None:
        """Changed bytes, in the header or anywhere, give a result or an ItemError, and no other exception."""
        damaged = bytearray(noise(kind))
        span = len(damaged) if header_only > 32 else min(len(damaged), 64 + header_only)
        for place, value in changes:
            damaged[place % span] = value
        self._survives(bytes(damaged))

    @settings(UNTIMED, max_examples=200)
    @given(
        st.sampled_from(
            [
                b"\xff\xd8\xff",
                b"\x89PNG\r\n\x1a\n",
                b"GIF89a",
                b"II*\x00",
                b"MM\x00+",
                b"RIFF\x10\x00\x00\x00WEBP",
                b"BM",
            ]
        ),
        st.binary(max_size=200),
    )
    def test_only_a_signature(self, signature: bytes, rest: bytes) -> None:
        """A signature followed by anything gives a result or an ItemError."""
        self._survives(signature + rest)

    @UNTIMED
    @given(st.sampled_from(KINDS), st.binary(max_size=300))
    def test_what_follows_the_end_does_not_matter(self, kind: str, tail: bytes) -> None:
        """Bytes after the end of a file change neither the verdict nor the size."""
        assert prepared(noise(kind) + tail).size == Size(32, 24)

    @UNTIMED
    @given(st.binary(max_size=120))
    def test_any_exif(self, payload: bytes) -> None:
        """Whatever EXIF data hold, the picture is sent, and its frame has one of its two shapes."""
        data = makers.jpeg_with(b"Exif\x00\x00" + payload, data=noise("JPEG"))
        assert set(prepared(data).size) == {32, 24}

    @settings(UNTIMED, max_examples=300)
    @given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3), st.integers(0, 200))
    def test_damaged_exif_gives_one_frame(self, changes: list[tuple[int, int]], length: int) -> None:
        """However EXIF data are damaged, a server that turns by them sees the frame that was announced."""
        metadata = makers.exif(6)
        metadata[0x010F], metadata[0x011A], metadata[0x0131] = "maker of the camera", 72.0, "software"
        damaged = bytearray(metadata.tobytes().removeprefix(b"Exif\x00\x00"))
        for place, value in changes:
            damaged[place % len(damaged)] = value
        data = makers.jpeg_with(b"Exif\x00\x00" + bytes(damaged[: length + 40]), data=noise("JPEG"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            encoded = prepared(data)
            with encoded.open() as stream, Image.open(stream) as image:
                try:
                    orientation = image.getexif().get(0x0112, 1)
                except (
                    Exception
                ):  # this Pillow gives up on such data: so does a server with it, which refuses
                    return
                turned = orientation in {5, 6, 7, 8}
                assert encoded.size == Size(*(image.size[::-1] if turned else image.size))

    def _survives(self, data: bytes) -> None:
        """Prepare and re-encode: each either works or raises an ItemError."""
        item = open_source(data)[0]
        limits = ImageLimits(max_pixels=1_000_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # decoders may warn of damage; what they raise is the question
            for attempt in (prepare, reencode):
                with contextlib.suppress(ItemError):
                    encoded = attempt(item, limits)
                    with encoded.open() as stream:
                        assert len(stream.read()) == encoded.nbytes
                    assert encoded.size.width * encoded.size.height <= limits.max_pixels


def test_noise_is_whole() -> None:
    """The pictures that are damaged above are fine before."""
    for kind in KINDS:
        with Image.open(io.BytesIO(noise(kind))) as image:
            image.load()
        assert prepared(noise(kind)).size == Size(32, 24)
