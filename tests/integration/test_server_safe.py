"""What is over a limit, unknown or unwanted is refused with a status that says so, as JSON."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests
from server_kit import PATIENCE, Caller, Server, numbers, png, until

TOKEN = "s3cret-Tøken"


def refused(reply: requests.Response, status: int, *, retry_after: str | None = None) -> str:
    """Check a refusal and return its message."""
    assert reply.status_code == status, reply.text
    assert reply.headers.get("retry-after") == retry_after
    body = reply.json()
    assert body["success"] is False
    message: str = body["message"]
    assert message == body["detail"]
    return message


def test_token_is_wanted_for_everything_but_health() -> None:
    """With a token every call and the metrics want it, in either header; health does not; no answer and no
    line of the log shows it.
    """
    with Server("pixels", env={"PREDSESSION_SERVER_TOKEN": TOKEN}) as server:
        good = {"x-api-key": TOKEN.encode()}
        for headers in (
            {},
            {"x-api-key": "wrong"},
            {"Authorization": "Bearer wrong"},
            {"Authorization": TOKEN.encode()},
        ):
            reply = requests.post(f"{server.url}/get_session_info", headers=headers, timeout=10)
            assert "token" in refused(reply, 401)
            assert reply.headers["www-authenticate"] == "Bearer"
        for headers in (
            good,
            {"Authorization": b"Bearer " + TOKEN.encode()},
            {"Authorization": b"bearer " + TOKEN.encode()},
        ):
            reply = requests.post(f"{server.url}/get_session_info", headers=headers, timeout=10)
            assert reply.status_code == 200
        files = [("files", ("a.png", png(1)))]
        assert requests.post(f"{server.url}/inference_image", files=files, timeout=10).status_code == 401
        reply = requests.post(f"{server.url}/inference_image", files=files, headers=good, timeout=10)
        assert numbers([reply.json()]) == [1]
        assert requests.get(f"{server.url}/metrics", timeout=10).status_code == 401
        for path in ("healthz", "readyz"):
            assert requests.get(f"{server.url}/{path}", timeout=10).status_code == 200
        reply = requests.post(f"{server.url}/get_session_info?token={TOKEN}", timeout=10)
        assert reply.status_code == 401, "a token in the URL counts for nothing"
        server.terminate()
        assert "s3cret" not in server.log


def test_open_to_others_needs_a_token_or_insecure() -> None:
    """An address beyond this machine without a token is refused, and taken with --insecure or a token."""
    with pytest.raises(RuntimeError, match=r"ended with 2.*--insecure"):
        Server("pixels", "--host", "0.0.0.0")
    with Server("pixels", "--host", "0.0.0.0", "--insecure"):
        pass
    with (
        Server("pixels", "--host", "0.0.0.0", "--token", "t") as server,
        Caller(server.url, token="t") as caller,
    ):
        assert caller.ask("is_ready")["status"] == "ready"


def test_tls(tmp_path: Path) -> None:
    """With a certificate the server speaks TLS, and its address says so; half of it is refused."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*make, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    with Server("pixels", "--certfile", str(cert), "--keyfile", str(key)) as server:
        assert server.url.startswith("https://")
        with Caller(server.url) as caller:
            caller.http.verify = str(cert)
            assert numbers([caller.upload([png(3)], endpoint="inference_image").json()]) == [3]
    with pytest.raises(RuntimeError, match=r"ended with 2.*both"):
        Server("pixels", "--certfile", str(cert))


def test_pages_of_other_origins_may_not_call() -> None:
    """A browser's page of another origin, or one that reached us under a foreign name, is refused, with no
    CORS header; an origin that was let in is answered with one.
    """
    with Server("pixels", "--cors-origin", "https://good.example") as server:
        port = server.port

        def ask(origin: str, host: str | None = None) -> requests.Response:
            headers = {"Origin": origin, "Host": host or f"127.0.0.1:{port}"}
            return requests.post(f"{server.url}/get_session_info", headers=headers, timeout=10)

        for origin in ("https://evil.example", "null", f"http://127.0.0.1:{port + 1}"):
            reply = ask(origin)
            refused(reply, 403)
            assert "access-control-allow-origin" not in reply.headers
        refused(ask(f"http://evil.example:{port}", f"evil.example:{port}"), 403)
        assert ask(f"http://127.0.0.1:{port}").status_code == 200
        assert ask(f"http://localhost:{port}", f"localhost:{port}").status_code == 200
        reply = ask("https://good.example")
        assert reply.headers["access-control-allow-origin"] == "https://good.example"


LIMITED = ("--limit-body", "200K", "--limit-files", "20", "--limit-jobs", "3", "--limit-queue", "60",
           "--limit-call", "10K", "--limit-text", "5K", "--limit-uploads", "2", "--limit-idle", "2",
           "--limit-grace", "0.2", "--limit-cleared", "0.1", "--limit-sweep", "0.1")  # fmt: skip


def test_limits() -> None:
    """Each limit has its status: 413 for sizes, 400 for counts of parts, 429 with Retry-After for others."""
    with Server("pixels", *LIMITED) as server, Caller(server.url) as caller:
        assert "larger than 204800" in refused(caller.upload([bytes(300_000)]), 413)
        assert "larger than 10240" in refused(caller.post("get_session_info", data=b" " * 11_000), 413)
        state: dict[str, Any] = {"state": {"inference_request_uuid": "x" * 11_000}}
        assert "larger than 10240" in refused(caller.post("get_inference_progress", json=state), 413)
        assert caller.upload([png(1)] * 21).json() == {
            "detail": "Too many files. Maximum number of files is 20."
        }
        reply = caller.upload([png(1)], session="x" * 6000)
        assert (reply.status_code, reply.json()) == (400, {"detail": "Part exceeded maximum size of 5KB."})
        parts = [(f"field{n}", (None, "x")) for n in range(1001)]
        reply = caller.post("inference_batch_async", files=[*parts, ("files", ("a.png", png(1)))])
        assert (reply.status_code, "Too many fields" in reply.text) == (400, True)

        slow = {"settings": {"hang_at": 1}, "item_errors": True}
        jobs = [caller.submit([png(1)] * 20, **slow) for _ in range(3)]
        assert "3 unfinished jobs" in refused(caller.upload([png(1)]), 429, retry_after="2")
        caller.clear(jobs.pop())
        until(lambda: len(caller.ask("list_inference_requests")["requests"]) == 2, "one fewer")


def test_calls_at_the_same_time() -> None:
    """Calls beyond the limit are told to come back; health is still answered."""
    with (
        Server("pixels", "--limit-connections", "2", "--limit-grace", "0.2") as server,
        Caller(server.url) as caller,
    ):
        uuid = caller.submit([png(1)], settings={"hang_at": 1})
        state = {"state": {"inference_request_uuid": uuid, "ack": 0, "wait": 20}}

        def hold() -> int:
            with Caller(server.url) as one:
                status = 429  # the looks below may be in the way
                while status == 429:
                    status = one.post("pop_inference_results", json=state).status_code
                return status

        with ThreadPoolExecutor(2) as pool:
            held = [pool.submit(hold) for _ in range(2)]
            ask = {"json": {"state": {}}}
            until(lambda: caller.post("get_session_info", **ask).status_code == 429, "both to be held")
            refused(caller.post("get_session_info", **ask), 429, retry_after="1")
            assert requests.get(f"{server.url}/healthz", timeout=10).status_code == 200
            server.process.terminate()
            assert [each.result() for each in held] == [200, 200]


def test_words_of_the_extension_are_short(tmp_path: Path) -> None:
    """A session or a key of more than 200 characters is refused, and so is one that is no text."""
    with Server("pixels", "--data", str(tmp_path)) as server, Caller(server.url) as caller:
        assert "session" in refused(caller.upload([png(1)], session="x" * 201), 400)
        assert "session" in refused(caller.upload([png(1)], session=7), 400)
        assert "first_index" in refused(caller.upload([png(1)], first_index="7"), 400)
        assert "Idempotency-Key" in refused(
            caller.upload([png(1)], headers={"Idempotency-Key": "x" * 201}), 400
        )
        assert list((tmp_path / "uploads").iterdir()) == []


def test_token_is_not_handed_to_the_model(tmp_path: Path) -> None:
    """A model's process does not have the token in its environment."""
    (tmp_path / "nosy.py").write_text(
        "import os\n"
        "from predsession.server.models.pixels import PixelNumbers\n"
        "class Nosy(PixelNumbers):\n"
        "    classes = tuple(os.environ) + PixelNumbers.classes\n"
    )
    env = {"PREDSESSION_SERVER_TOKEN": "secret"}
    with Server(f"{tmp_path}/nosy.py:Nosy", env=env) as server, Caller(server.url, token="secret") as caller:
        names = {each["title"] for each in caller.ask("get_model_meta")["classes"]}
        assert "PATH" in names
        assert "PREDSESSION_SERVER_TOKEN" not in names


def test_queue_limit() -> None:
    """More pictures than the queue takes are refused with 429, whoever sends them."""
    with (
        Server("pixels", "--limit-queue", "40", "--limit-grace", "0.2") as server,
        Caller(server.url) as caller,
    ):
        caller.submit([png(1)] * 30, settings={"hang_at": 1}, batch_size=1)
        wanted = "28 pictures wait for model pixels; the limit is 40."
        until(
            lambda: refused(caller.upload([png(1)] * 20), 429, retry_after="5") == wanted,
            "the worker to have one in hand and one ahead",
        )
        assert caller.upload([png(1)] * 10).status_code == 200


def test_body_that_does_not_come() -> None:
    """An upload that stops in the middle is refused with 408 after the limit, and holds up nobody."""
    with Server("pixels", *LIMITED) as server, Caller(server.url) as caller:
        slow = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        slow.putrequest("POST", "/inference_batch_async")
        slow.putheader("Content-Type", "multipart/form-data; boundary=x")
        slow.putheader("Content-Length", "1000")
        slow.endheaders()
        slow.send(b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\nhalf')
        assert numbers([caller.upload([png(4)], endpoint="inference_image").json()]) == [4]
        assert slow.getresponse().status == 408
        slow.close()


def test_upload_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    """A caller who hangs up in the middle of an upload leaves no file and no job."""
    with Server("pixels", "--data", str(tmp_path)) as server, Caller(server.url) as caller:
        with socket.create_connection(("127.0.0.1", server.port)) as rude:
            rude.sendall(
                b"POST /inference_batch_async HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
                b"Content-Type: multipart/form-data; boundary=x\r\n\r\n"
                b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
                + bytes(300_000)
            )
            until(lambda: list((tmp_path / "uploads").iterdir()), "its beginning")
        until(lambda: not list((tmp_path / "uploads").iterdir()), "its end")
        assert caller.ask("list_inference_requests")["requests"] == []


DAMAGED = {
    "empty": (b"", 422),
    "no parts": (b"--x--\r\n", 422),
    "garbage": (b"garbage", 400),
    "cut": (b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\ncut', 400),
    "many headers": (b"--x\r\n" + b"a: b\r\n" * 5000 + b"\r\n\r\n--x--\r\n", 400),
}


def test_damaged_forms() -> None:
    """A form that is none is refused, and the server lives on."""
    form = "multipart/form-data"
    with Server("pixels") as server, Caller(server.url) as caller:
        for name, (body, status) in DAMAGED.items():
            reply = caller.post(
                "inference_batch_async", data=body, headers={"Content-Type": f"{form}; boundary=x"}
            )
            assert reply.status_code == status, name
            reply = caller.post("inference_batch_async", data=body, headers={"Content-Type": form})
            assert reply.status_code == 400, name
        assert caller.ask("is_ready") == {"status": "ready"}


def test_json_that_is_none() -> None:
    """A body that is no JSON, or of another kind, is a 400 or the recorded fault; the server lives on."""
    with Server("pixels") as server, Caller(server.url) as caller:
        for body in (
            b"{",
            b"[]",
            b'{"state": 3}',
            b'{"state": {"inference_request_uuid": ["x"]}}',
            b"\xff",
            b"1e999",
        ):
            assert caller.post("pop_inference_results", data=body).status_code in {400, 500}
        assert caller.ask("is_ready") == {"status": "ready"}
        assert "Traceback" not in server.log


def test_texts_that_are_no_unicode(tmp_path: Path) -> None:
    """Half a character is refused with 400 wherever it stands, and the list of jobs is answered to all."""
    with Server("pixels", "--data", str(tmp_path)) as server, Caller(server.url) as caller:
        file = [("files", ("a.png", png(1)))]
        for text in (r'{"session": "\ud800"}', r'{"settings": {"\udfff": 1}}'):
            reply = caller.post("inference_batch_async", files=file, data={"state": text})
            assert "half a character" in refused(reply, 400)
        for body in (rb'{"state": {"session": "\uD8AA"}}', b'{"state": {"session": "\xed\xa0\x80"}}'):
            refused(caller.post("list_inference_requests", data=body), 400)
        uuid = caller.submit([png(1)], session="\U0001f600")
        listed = caller.ask("list_inference_requests", session="\U0001f600")["requests"]
        assert [job["uuid"] for job in listed] == [uuid]
        assert caller.http.get(f"{server.url}/overview.json", timeout=10).status_code == 200


def test_json_that_is_nested_deeply() -> None:
    """JSON that is nested more deeply than can be read is refused with 400, in a body and in a form."""
    deep = "[" * 100_000
    with Server("pixels") as server, Caller(server.url) as caller:
        body = f'{{"state": {deep}'
        assert "nested too deeply" in refused(caller.post("pop_inference_results", data=body), 400)
        reply = caller.post(
            "inference_batch_async", files=[("files", ("a.png", png(1)))], data={"state": f'{{"a": {deep}'}
        )
        assert "nested too deeply" in refused(reply, 400)


def start_upload(port: int, announced: int) -> socket.socket:
    """Send the beginning of an upload, and no more."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    head = f"POST /inference_batch_async HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {announced}\r\n"
    connection.sendall(f"{head}Content-Type: multipart/form-data; boundary=x\r\n\r\n--x".encode())
    return connection


def test_upload_that_stalls_takes_no_room_from_others() -> None:
    """What one connection announces and does not send is no reason to refuse another's upload."""
    with (
        Server("pixels", "--limit-disk", "10M", "--limit-body", "9900K") as server,
        Caller(server.url) as caller,
        start_upload(server.port, 10_000_000),
        start_upload(server.port, 10_000_000),
    ):
        until(lambda: numbers([caller.upload([png(1)], endpoint="inference_image").json()]) == [1], "one")
        assert numbers(caller.drain(caller.submit([png(n) for n in range(20)]))[0]) == list(range(20))


def test_upload_that_is_announced_as_too_large() -> None:
    """More than the limit is refused by what is announced, before any of it has come."""
    with (
        Server("pixels", "--limit-body", "200K") as server,
        start_upload(server.port, 20 << 30) as connection,
    ):
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_room_comes_back_with_the_ack() -> None:
    """A share of the disk that results filled is free again as soon as they were taken, acked or popped."""
    with Server("pixels", "--limit-disk", "1500K") as server, Caller(server.url) as caller:
        files = [png(n) for n in range(200)]

        def fill() -> list[str]:
            jobs = []
            while (reply := caller.upload(files, item_errors=True)).status_code == 200:
                jobs.append(reply.json()["inference_request_uuid"])
                until(lambda: caller.progress(jobs[-1])["finished"], "its end")
            refused(reply, 507, retry_after="30")
            return jobs

        for job in fill():
            assert caller.pop(job, ack=200)["pending_results"] == []
        for job in fill():
            assert len(caller.pop(job)["pending_results"]) == 200
        assert fill(), "there is room again"


def test_names_that_are_not_this_machines() -> None:
    """A server of this machine answers nothing under a foreign name, with or without an Origin; one with a
    token goes by any name.
    """
    with Server("pixels") as server:

        def get(host: str) -> requests.Response:
            return requests.get(f"{server.url}/overview.json", headers={"Host": host}, timeout=10)

        for host in (f"evil.example:{server.port}", "127.evil.example", "[::2]:80", "10.0.0.1"):
            refused(get(host), 403)
        for host in (f"localhost:{server.port}", "127.0.0.2", "[::1]:80"):
            assert get(host).status_code == 200
    with Server("pixels", "--token", "t") as server:
        headers = {"Host": "models.example", "x-api-key": "t"}
        assert requests.get(f"{server.url}/overview.json", headers=headers, timeout=10).status_code == 200


def test_token_in_the_path_is_not_logged() -> None:
    """A token that stands where a model's name belongs is masked in the log."""
    with Server("pixels", "--token", "s3cret") as server, Caller(server.url, token="s3cret") as caller:
        assert caller.post("s3cret/get_model_meta", json={"state": {}}).status_code == 404
        server.terminate()
        assert "POST /***/get_model_meta 404" in server.log
        assert "s3cret" not in server.log


def test_silent_connections_lock_nobody_out() -> None:
    """More silent connections than there is room for: others are answered, and health is."""
    with (
        Server("pixels", "--limit-connections", "2", "--limit-head", "1000") as server,
        ExitStack() as stack,
    ):
        for _ in range(140):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        for path in ("healthz", "readyz", "overview.json"):
            assert requests.get(f"{server.url}/{path}", timeout=PATIENCE).status_code == 200


def test_connections_beyond_the_limit() -> None:
    """Where every connection has had a request, one more is told to come back; health is answered."""
    with Server("pixels", "--limit-connections", "2") as server, ExitStack() as stack:
        for _ in range(130):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(4096).startswith(b"HTTP/1.1 200 ")
        refused(requests.get(f"{server.url}/overview.json", timeout=PATIENCE), 503, retry_after="2")
        assert requests.get(f"{server.url}/healthz", timeout=PATIENCE).status_code == 200


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: loc"])
def test_head_that_does_not_come(sent: bytes) -> None:
    """A connection that sends no request, or half of one, is closed after the limit."""
    with (
        Server("pixels", "--limit-head", "0.3") as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as silent,
    ):
        silent.sendall(sent)
        assert silent.recv(4096) == b""


def test_json_body_that_does_not_come() -> None:
    """A JSON body that stops in the middle is refused with 408, and the connection is closed."""
    with (
        Server("pixels", "--limit-idle", "0.3") as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as slow,
    ):
        slow.sendall(b"POST /is_ready HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        with slow.makefile("rb") as answer:
            assert answer.read().startswith(b"HTTP/1.1 408 ")


def test_rest_of_a_body_that_is_not_read() -> None:
    """Who goes on sending a body that was refused is cut off after the limit."""
    with (
        Server("pixels", "--limit-body", "1K", "--limit-idle", "0.3") as server,
        start_upload(server.port, 1 << 30) as stubborn,
        stubborn.makefile("rb") as answer,
    ):
        assert answer.read().startswith(b"HTTP/1.1 413 ")
