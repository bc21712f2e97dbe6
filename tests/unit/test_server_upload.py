"""The form reader: whatever pieces a body comes in, the files are the same."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from predsession.server.config import Limits
from predsession.server.refusal import Refusal
from predsession.server.slices import slices
from predsession.server.upload import Form, Intake

NAMES = ["a.png", "", "b c.jpg", '東京 "a".png', "фото.jpg", "new\nline.png", "../up.png", "semi;colon.png"]


def encoded(files: list[tuple[str, bytes]], fields: dict[str, str]) -> tuple[str, bytes]:
    """Let requests encode a form; return the header and the body."""
    request = requests.Request(
        "POST", "http://x", files=[("files", (name or "none", data)) for name, data in files], data=fields
    ).prepare()
    assert isinstance(request.body, bytes)
    return request.headers["Content-Type"], request.body


def contents(form: Form) -> list[bytes]:
    """Return the bytes of each file."""
    found = []
    for picture in form.pictures:
        with picture.open() as file:
            found.append(file.read())
    return found


def receive(folder: Path, kind: str, pieces: list[bytes], limits: Limits | None = None) -> Form:
    """Read a form from pieces."""

    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def run() -> Form:
        return await Intake(chunks(), limits or Limits()).form(kind, folder, keep=lambda _: None)

    return asyncio.run(run())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    files=st.lists(st.tuples(st.sampled_from(NAMES), st.binary(max_size=300)), min_size=1, max_size=6),
    text=st.text(max_size=50),
    cuts=st.lists(st.integers(0, 4000), max_size=8),
)
def test_pieces_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, bytes]], text: str, cuts: list[int]
) -> None:
    """However the body is cut, names, bytes and text parts arrive as they were sent."""
    kind, body = encoded(files, {"state": text})
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[one:other] for one, other in itertools.pairwise(places)]
    form = receive(tmp_path_factory.mktemp("form") / "job", kind, pieces)
    assert contents(form) == [data for _, data in files]
    assert form.sizes == [len(data) for _, data in files]
    assert form.fields == {"state": text}


def test_byte_by_byte(tmp_path: Path) -> None:
    """A body that comes byte by byte is read like any other; names keep their characters."""
    kind, body = encoded([(name, name.encode()) for name in NAMES if name], {"state": "{}"})
    form = receive(tmp_path / "job", kind, [bytes([byte]) for byte in body])
    assert [data.decode() for data in contents(form)] == [name for name in NAMES if name]
    assert form.names[:1] == ["a.png"]
    assert "фото.jpg" in form.names


def test_other_parts_are_left_out(tmp_path: Path) -> None:
    """A file part or a text part of another name is not kept."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="other"; filename="a"\r\n\r\nAAAA\r\n'
        b"--x\r\ncontent-disposition: form-data; name=files; filename=b\r\n\r\nBB\r\n"
        b'--x\r\nContent-Disposition: form-data; name="more"\r\n\r\nlong\r\n'
        b'--x\r\nContent-Disposition: form-data; name="state"\r\n\r\n{}\r\n--x--\r\n'
    )
    form = receive(tmp_path / "job", "multipart/form-data; boundary=x", [body])
    assert (form.names, form.sizes, form.fields) == (["b"], [2], {"state": "{}"})
    assert (tmp_path / "job").read_bytes() == b"BB"


def test_all_text_parts_together_are_bounded(tmp_path: Path) -> None:
    """Many text parts, each within its limit, are refused once they are too much together."""
    kind, body = encoded([("a", b"")], {f"x{n}": "y" * 90 for n in range(10)})
    limits = Limits(text=100, texts=1000)
    assert receive(tmp_path / "job", kind, [body], limits).fields == {}
    with pytest.raises(Refusal, match=r"413.*larger than 899"):
        receive(tmp_path / "job", kind, [body], Limits(text=100, texts=899))


def test_room_is_asked_for_before_it_is_taken(tmp_path: Path) -> None:
    """The caller is told what has come before it is written, and may refuse."""
    kind, body = encoded([("a", bytes(2_000_000))], {})
    told: list[int] = []

    def keep(total: int) -> None:
        told.append(total)
        if total > 1_000_000:
            raise Refusal(507, {})

    async def chunks() -> AsyncIterator[bytes]:
        for place in range(0, len(body), 65536):
            yield body[place : place + 65536]

    async def run() -> None:
        await Intake(chunks(), Limits()).form(kind, tmp_path / "job", keep=keep)

    with pytest.raises(Refusal):
        asyncio.run(run())
    assert told == sorted(told)
    assert (tmp_path / "job").stat().st_size <= 1_000_000


@pytest.mark.parametrize("size", [0, 10, 5_000_000])
def test_slices_read_like_files(tmp_path: Path, size: int) -> None:
    """A part of a file reads like a file of its own, small or large, wherever one seeks."""
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    (tmp_path / "pack").write_bytes(b"before" + data + b"after")
    (_, middle, _) = slices(tmp_path / "pack", [6, size, 5])
    with middle.open() as file:
        assert file.read() == data
        assert file.read(1) == b""
        assert file.seek(-min(3, size), 2) == size - min(3, size)
        assert file.read() == data[size - min(3, size) :]
        file.seek(size // 2)
        assert (file.tell(), file.read(7)) == (size // 2, data[size // 2 : size // 2 + 7])
        with pytest.raises(ValueError, match=r"."):
            file.seek(-1)
