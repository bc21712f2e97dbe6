"""The server under attack: it refuses in JSON, serves others meanwhile, and writes nothing elsewhere."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import requests
from server_kit import PATIENCE, Caller, Server, numbers, png, until


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """List what is below a folder, with sizes and times."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size if path.is_file() else 0, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the server's own in it, and a file beside that must stay as it is."""
    folder = tmp_path_factory.mktemp("yard")
    (folder / "data").mkdir()
    (folder / "treasure.png").write_bytes(png(1))
    return folder


@pytest.fixture(scope="module")
def server(yard: Path) -> Iterator[Server]:
    """One server for all attacks."""
    with Server(
        "pixels", "--data", str(yard / "data"), "--limit-batch", "20", "--limit-idle", "20"
    ) as running:
        yield running


@pytest.fixture
def caller(server: Server, yard: Path) -> Iterator[Caller]:
    """Calls it; afterwards it still answers, logged no fault of its own, and wrote only into its folder."""
    before = {name: facts for name, facts in tree(yard).items() if not name.startswith("data")}
    with Caller(server.url) as one:
        yield one
        assert numbers([one.upload([png(5)], endpoint="inference_image").json()]) == [5]
        until(lambda: not list((yard / "data" / "uploads").iterdir()) or not live(one), "its uploads to end")
    assert {name: facts for name, facts in tree(yard).items() if not name.startswith("data")} == before
    assert "Traceback" not in server.log


def live(caller: Caller) -> list[str]:
    """Return the jobs that have not ended."""
    listed = caller.ask("list_inference_requests")["requests"]
    return [job["uuid"] for job in listed if job["stage"] not in ("Finished", "Error", "Cancelled")]


def is_refusal(reply: requests.Response) -> None:
    """Check that an answer is a refusal in JSON, which shows no path of this machine."""
    assert 400 <= reply.status_code < 600, reply.text
    assert reply.headers["content-type"] == "application/json"
    reply.json()
    assert "/tmp" not in reply.text


@pytest.fixture
def bystander(server: Server) -> Iterator[list[float]]:
    """Somebody who asks all the while, and is answered each time."""
    waits: list[float] = []
    over = threading.Event()

    def ask() -> None:
        with Caller(server.url) as one:
            while not over.is_set():
                began = time.monotonic()
                while (reply := one.upload([png(9)], endpoint="inference_image")).status_code == 429:
                    assert time.monotonic() < began + PATIENCE, "told to come back again and again"
                    time.sleep(0.1)
                assert numbers([reply.json()]) == [9]
                waits.append(time.monotonic() - began)
                over.wait(0.02)

    thread = threading.Thread(target=ask)
    thread.start()
    yield waits
    over.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert waits, "it was answered"


NAMES = [
    "../treasure.png", "../../../../etc/passwd", "/etc/passwd", "..\\treasure.png", "C:\\treasure.png", "..",
    ".", "", "a\0b.png", "treasure.png\0.png", "CON", "%2e%2e%2ftreasure.png", "a\r\nb.png", "☃" * 100, "-rf",
    "data/jobs.sqlite", "~/x.png", "$(touch x).png", "\ud800.png",
]  # fmt: skip


def form(parts: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, dict[str, str]]:
    """Return a form of which each part has these headers and this body, whatever they are."""
    body = b"".join(b"--x\r\n" + head + b"\r\n\r\n" + data + b"\r\n" for head, data in parts) + b"--x--\r\n"
    return body, {"Content-Type": "multipart/form-data; boundary=x"}


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_that_climb(caller: Caller, yard: Path, name: str) -> None:
    """A file's name is a name and no place: the picture is answered or refused, nothing written there."""
    disposition = b'Content-Disposition: form-data; name="files"; filename="%s"'
    body, headers = form([(disposition % name.encode("utf-8", "surrogatepass"), png(7))])
    reply = caller.post("inference_batch", data=body, headers=headers)
    if reply.status_code == 200:
        assert numbers(reply.json()) == [7]
    else:
        is_refusal(reply)
    assert (yard / "treasure.png").read_bytes() == png(1)


def test_a_name_of_10_kb(caller: Caller) -> None:
    """Too long a name is refused, in a form and where a model's name belongs in the path."""
    is_refusal(caller.upload([("n" * 10_000 + ".png", png(1))]))
    is_refusal(caller.post("m" * 10_000 + "/get_model_meta", json={}))
    for path in (
        "../../../etc/passwd",
        "page/../../../../etc/passwd",
        "page/%2e%2e%2f%2e%2e%2fetc/passwd",
        "page/a%00b",
    ):
        prepared = requests.Request("GET", caller.url).prepare()
        prepared.url = f"{caller.url}/{path}"
        is_refusal(caller.http.send(prepared, timeout=PATIENCE))
    for uuid in ("../treasure", "/etc/passwd", "a\0b", "u" * 10_000):
        for call in ("pop_inference_results", "get_inference_status", "get_inference_result"):
            is_refusal(caller.post(call, json={"state": {"inference_request_uuid": uuid}}))


def chunk(name: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def picture(width: int, height: int, *more: bytes, data: bytes = zlib.compress(bytes(100))) -> bytes:
    """Return a PNG that claims a size and has more chunks before its pixels."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


ZEROS = zlib.compress(bytes(100_000_000), 9)  # 100 kB
BOMBS = {
    "claims 10^9 pixels": picture(40_000, 25_000, data=ZEROS),
    "claims 2^62 pixels": picture(2**31 - 1, 2**31 - 1),
    "claims no pixel": picture(0, 0),
    "more pixels than it claims": picture(64, 32, data=ZEROS),
    "fewer pixels than it claims": picture(9000, 9000),
    "a text that unpacks to 100 MB": picture(64, 32, chunk(b"zTXt", b"a\0\0" + ZEROS)),
    "a profile that unpacks to 100 MB": picture(64, 32, chunk(b"iCCP", b"a\0\0" + ZEROS)),
    "100,000 chunks": picture(64, 32, chunk(b"tEXt", b"a\0b") * 100_000),
    "a chunk that is longer than all": picture(64, 32)[:33] + struct.pack(">I", 2**31 - 1) + b"IDAT",
    "zlib alone": ZEROS,
    "a BMP of 2^31 pixels":
        b"BM" + struct.pack("<IHHIIiiHHIIiiII", 99, 0, 0, 54, 40, 65536, 32768, 1, 24, 0, 0, 0, 0, 0, 0),
    "a GIF of 2^32 pixels":
        b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + b",\0\0\0\0\xff\xff\xff\xff\0\x02\0;",
    "a PPM of 10^18 pixels": b"P6 1000000000 1000000000 255 ",
}  # fmt: skip


@pytest.mark.parametrize("kind", BOMBS)
def test_bombs(caller: Caller, bystander: list[float], kind: str) -> None:
    """A file that is small and claims to be large is an error of its item, with and without item errors;
    the picture beside it is answered, and the server's memory does not follow the claim.
    """
    is_refusal_or_picture(caller.upload([("a.png", BOMBS[kind])], endpoint="inference_image"))
    uuid = caller.submit([png(3), ("b.png", BOMBS[kind]), png(4)], item_errors=True)
    found = numbers_or_nothing(caller.read(uuid)[0])
    assert (found[0], found[2]) == (3, 4)
    assert found[1] in ("BadImageError", None)
    caller.clear(uuid)


def is_refusal_or_picture(reply: requests.Response) -> None:
    """Some bombs are pictures once what is too much is left aside."""
    if reply.status_code != 200:
        is_refusal(reply)


def numbers_or_nothing(items: Sequence[dict[str, object]]) -> list[int | str | None]:
    """Return the number of each item, its error's type, or None for a picture that shows no number."""
    return [
        numbers([item])[0] if "error" in item or item["annotation"]["objects"] else None for item in items
    ]


FILE = b'Content-Disposition: form-data; name="%s"; filename="a.png"'
PARTS = {
    "files": [(FILE % b"files", b"x")] * 100_000,
    "files of another field": [(FILE % b"other", b"x")] * 100_000,
    "texts": [(b'Content-Disposition: form-data; name="state"', b"{}")] * 100_000,
    "parts without a name": [(b"A: b", b"")] * 100_000,
    "parts without headers": [(b"", b"")] * 100_000,
    "headers": [(b"\r\n".join(b"A%d: b" % n for n in range(100_000)), b"")],
}


@pytest.mark.parametrize("kind", PARTS)
def test_a_form_of_very_many_parts(caller: Caller, bystander: list[float], kind: str) -> None:
    """A form of 100,000 parts of whatever kind is refused once there are too many."""
    body, headers = form(PARTS[kind])
    reply = caller.post("inference_batch_async", data=body, headers=headers)
    is_refusal(reply)
    assert reply.status_code == 400


@pytest.mark.parametrize("call", ["pop_inference_results", "stop_inference", "inference_batch_ids_async"])
def test_json_of_10_000_levels(caller: Caller, call: str) -> None:
    """JSON that is nested deeply, closed as it should be, in a body and in a form's state."""
    for deep in ("[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000):
        is_refusal(caller.post(call, data=f'{{"state": {deep}}}'))
        is_refusal(caller.post(call, data=deep))
    files = [("files", ("a.png", png(1)))]
    is_refusal(caller.post("inference_image", files=files, data={"state": deep}))


def test_numbers_that_are_none(caller: Caller) -> None:
    """Numbers of thousands of digits, NaN and infinity where numbers are read."""
    job = caller.submit([png(1)])
    odd = ("9" * 5000, "1" + "0" * 400, str(2**64), str(2**63), "NaN", "-1", "true", '"1"', "[]", "{}")
    for number in (*odd, "1e999", "1.5"):
        for name in ("ack", "limit", "after", *(["wait"] if number in odd else [])):
            state = f'{{"state": {{"inference_request_uuid": "{job}", "ack": 0, "{name}": {number}}}}}'
            is_refusal(caller.post("pop_inference_results", data=state))
        for call in ("inference_image_id", "inference_video_id"):
            for name in ("image_id", "images_ids", "video_id"):
                is_refusal(caller.post(call, data=f'{{"state": {{"{name}": {number}}}}}'))
        for name in ("batch_size", "first_index", "startFrameIndex"):
            files = [("files", ("a.png", png(6)))]
            reply = caller.post("inference_batch", files=files, data={"state": f'{{"{name}": {number}}}'})
            assert reply.status_code == 200 or is_refusal(reply) is None


def test_a_body_in_chunks_of_a_byte(caller: Caller, server: Server) -> None:
    """A body in 20,000 chunks, and chunks that claim more than can be: answered, or refused."""
    body, _ = form([(FILE % b"files", png(2))])
    head = (b"POST /inference_image HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\nConnection: close\r\n\r\n")  # fmt: skip
    whole = b"".join(b"1;%s\r\n%c\r\n" % (b"e" * 50, byte) for byte in body) + b"0\r\n\r\n"
    for data, statuses in ((whole, {200}), (b"ffffffffffffffff\r\nab", set()), (b"-1\r\nab\r\n", {400})):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as one:
            one.sendall(head + data)
            if statuses:
                assert int(one.makefile("rb").readline().split()[1]) in statuses


def test_200_connections_that_send_a_byte_a_second(
    caller: Caller, server: Server, bystander: list[float]
) -> None:
    """Half of them trickle a request's head, half an upload's body, more than there are seats for uploads:
    others are answered all the while, once a seat was taken from one that hardly moves.
    """
    head = b"POST /inference_image HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
    upload = head + b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
    connections = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) for _ in range(200)]
    try:
        for place, one in enumerate(connections):
            one.sendall(head if place % 2 else upload)
        answered = len(bystander)
        for _ in range(3):
            for one in connections:
                with contextlib.suppress(OSError):  # closed, as one that keeps a place for too long
                    one.sendall(b"A")
            time.sleep(0.5)
        until(lambda: len(bystander) > answered + 5, "answers to others")
        assert requests.get(f"{server.url}/healthz", timeout=PATIENCE).status_code == 200
    finally:
        for one in connections:
            one.close()
