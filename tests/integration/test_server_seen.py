"""What operators see: health, metrics, log lines; and what the command says and does."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from server_kit import PATIENCE, Caller, Server, numbers, png, until


def metrics(caller: Caller) -> dict[str, float]:
    """Read the metrics, each line checked."""
    reply = caller.http.get(f"{caller.url}/metrics", timeout=10)
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = {}
    for line in reply.text.splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r'(predsession_\w+(?:\{(?:\w+="[^"]*",?)*\})?) (\S+)', line)
            assert match, line
            found[match[1]] = float(match[2])
    return found


def test_metrics_count_what_happened() -> None:
    """Requests, pictures, batches, jobs and gauges say what was done; bad pictures are counted apart."""
    with Server("pixels") as server, Caller(server.url) as caller:
        caller.read(caller.submit([png(1), b"", png(2)], item_errors=True))
        caller.post("no_such_call")
        found = metrics(caller)
        assert found['predsession_items_total{model="pixels",outcome="ok"}'] == 2
        assert found['predsession_items_total{model="pixels",outcome="BadImageError"}'] == 1
        assert found['predsession_jobs_total{model="pixels",stage="Finished"}'] == 1
        assert found['predsession_batch_size_count{model="pixels"}'] == 1
        assert found['predsession_batch_size_sum{model="pixels"}'] == 3
        assert found['predsession_batch_size_bucket{model="pixels",le="2"}'] == 0
        assert found['predsession_batch_size_bucket{model="pixels",le="4"}'] == 1
        assert found['predsession_queue_seconds_count{model="pixels"}'] == 1
        assert found['predsession_model_ready{model="pixels"}'] == 1
        assert found['predsession_queue_items{model="pixels"}'] == 0
        assert found['predsession_jobs{stage="finished"}'] == 1
        assert found['predsession_requests_total{call="inference_batch_async",status="200"}'] == 1
        assert found['predsession_requests_total{call="other",status="404"}'] == 1
        assert found["predsession_upload_bytes"] == 0, "uploads that are done with are gone"
        assert found["predsession_database_bytes"] > 0
        assert found["predsession_resident_bytes"] > 0


def test_readiness_follows_the_worker() -> None:
    """While a worker is started again the server lives, is not ready, and takes jobs."""
    with Server("pixels") as server, Caller(server.url) as caller:
        assert requests.get(f"{server.url}/healthz", timeout=10).json() == {"status": "ok"}
        ready = {"ready": True, "models": {"pixels": True}, "disk": True}
        assert requests.get(f"{server.url}/readyz", timeout=10).json() == ready
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)
        until(lambda: requests.get(f"{server.url}/readyz", timeout=10).status_code == 503, "its loss")
        assert caller.post("is_ready", json={}).status_code == 503
        assert requests.get(f"{server.url}/healthz", timeout=10).status_code == 200
        assert numbers([caller.upload([png(5)], endpoint="inference_image").json()]) == [5]
        assert requests.get(f"{server.url}/readyz", timeout=10).status_code == 200
        assert metrics(caller)['predsession_worker_restarts_total{model="pixels"}'] == 1


def test_model_that_cannot_be_started_again(tmp_path: Path) -> None:
    """If no successor of a worker can load, those who wait are told, new jobs are refused with 503, and the
    server goes on trying.
    """
    path = tmp_path / "fragile.py"
    path.write_text(
        "from pathlib import Path\n"
        "from predsession.server.models.pixels import PixelNumbers\n"
        "class Fragile(PixelNumbers):\n"
        "    def load(self):\n"
        "        if Path(__file__).with_name('broken').exists(): raise RuntimeError('no weights')\n"
    )
    with Server(f"{path}:Fragile", "--limit-grace", "0.2") as server, Caller(server.url) as caller:
        (tmp_path / "broken").touch()
        uuid = caller.submit([png(1), png(2)], settings={"exit_at": 1}, batch_size=1, item_errors=True)
        items, last = caller.read(uuid)
        assert items == [], "a picture alone is blamed for a second death only"
        assert last["exception"]["type"] == "ModelLoadError"
        assert "no weights" in last["exception"]["message"]
        reply = caller.upload([png(1)])
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "10")
        (tmp_path / "broken").unlink()
        until(lambda: caller.upload([png(3)]).status_code == 200, "the next try")


def test_log_has_one_line_a_request() -> None:
    """Each request is a line with client, method, path, status, time and sizes; a query is not shown."""
    with Server("pixels") as server:
        requests.post(f"{server.url}/get_session_info?secret=1", json={"state": {}}, timeout=10)
        until(lambda: "/get_session_info" in server.log, "the line")
        (line,) = [line for line in server.log.splitlines() if "/get_session_info" in line]
        rest = r"127\.0\.0\.1 POST /get_session_info 200 [\d.]+ ms, 13 in, \d+ out"
        pattern = rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d {rest}"
        assert re.fullmatch(pattern, line)
        requests.get(f"{server.url}/bad%0Aline", timeout=10)
        until(lambda: "bad\\nline" in server.log, "the escaped line")


def test_log_as_json() -> None:
    """With --log-json every line is an object, requests and messages alike."""
    with Server("pixels", "--log-json") as server:
        requests.post(f"{server.url}/nope", timeout=10)
        server.terminate()
        lines = [json.loads(line) for line in server.log.splitlines()]
    assert {"time", "level"} <= set.intersection(*(set(line) for line in lines))
    (request,) = [line for line in lines if "path" in line]
    assert (request["method"], request["path"], request["status"], request["client"]) == (
        "POST",
        "/nope",
        404,
        "127.0.0.1",
    )
    assert any("serving pixels on" in line.get("message", "") for line in lines)


def test_port_in_use_is_one_line() -> None:
    """A port that is taken ends the command with code 3 and a line that says what to do."""
    with Server("pixels") as server:
        with pytest.raises(
            RuntimeError, match=r"ended with 3: predsession serve: cannot listen .*--port"
        ) as caught:
            Server("pixels", "--ephemeral", port=server.port)
        assert str(caught.value).count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port", "99999"), "cannot listen"),
        (("--limit-files", "-1"), "--limit-files"),
        (("--workers", "0"), "--workers"),
        (("--model", "a=pixels", "--model", "a=detect"), "two models are called a"),
        (("--data", "/proc/nope"), "--data"),
        (("--limit-pixels", "many"), "--limit-pixels"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], words: str) -> None:
    """Wrong arguments end the command with 2 or 3 and say which."""
    with pytest.raises(RuntimeError, match=r"ended with [23]") as caught:
        Server("--ephemeral", *arguments) if "--data" not in arguments else Server(*arguments)
    assert words in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_gracefully(number: signal.Signals) -> None:
    """SIGTERM and SIGINT end with code 0, without a traceback, and the worker with it."""
    with Server("pixels") as server:
        (worker,) = server.workers()
        server.process.send_signal(number)
        assert server.wait() == 0
        assert "Traceback" not in server.log
        assert not Path(f"/proc/{worker}").exists()


def test_ctrl_c_for_the_whole_group() -> None:
    """A Ctrl-C in a terminal reaches server and worker at once, and ends both quietly."""
    command = [sys.executable, "-m", "predsession", "serve", "pixels", "--port", "0", "--announce"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "KeyboardInterrupt" not in errors


def test_held_calls_answer_when_the_server_ends() -> None:
    """A pop that waits is answered, not cut off, when the server is told to end."""
    with Server("pixels") as server, Caller(server.url) as caller:
        uuid = caller.submit([png(1)], settings={"delay": 0.5})
        import threading

        answers: list[int] = []
        state = {"state": {"inference_request_uuid": uuid, "ack": 5, "wait": 30}}
        held = threading.Thread(
            target=lambda: answers.append(caller.post("pop_inference_results", json=state).status_code)
        )
        held.start()
        until(lambda: caller_is_inside(server, uuid), "the call")
        server.process.terminate()
        held.join(PATIENCE)
        assert answers == [200]


def caller_is_inside(server: Server, uuid: str) -> bool:
    """Whether the job has begun, so that the held call has had its time to arrive."""
    with Caller(server.url) as other:
        return bool(other.progress(uuid)["is_inferring"] or other.progress(uuid)["finished"])


def test_while_the_models_are_loaded(tmp_path: Path) -> None:
    """Before the models are loaded health is answered, readiness is 503, and so is everything else."""
    (tmp_path / "gated.py").write_text(
        "import pathlib, time\n"
        "from predsession.server.models.pixels import PixelNumbers\n"
        "class Gated(PixelNumbers):\n"
        "    def load(self):\n"
        "        while not (pathlib.Path(__file__).parent / 'go').exists(): time.sleep(0.02)\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"

    def lives() -> bool:
        try:
            return requests.get(f"{url}/healthz", timeout=10).status_code == 200
        except requests.ConnectionError:
            return False

    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(Server, f"{tmp_path}/gated.py:Gated", "--ephemeral", port=port)
        until(lives, "the first answer")
        ready = requests.get(f"{url}/readyz", timeout=10)
        assert (ready.status_code, ready.json()["ready"]) == (503, False)
        other = requests.post(f"{url}/get_session_info", timeout=10)
        assert (other.status_code, other.headers["retry-after"]) == (503, "2")
        assert not starting.done(), "it is announced only when it is ready"
        (tmp_path / "go").touch()
        with starting.result() as server:
            assert requests.get(f"{server.url}/readyz", timeout=10).status_code == 200


def test_sigterm_for_the_whole_group(tmp_path: Path) -> None:
    """What ends a service reaches worker and server: what is under way is computed, nothing started."""
    (tmp_path / "gated.py").write_text(
        "import pathlib, time\n"
        "from predsession.server.models.pixels import PixelNumbers\n"
        "class Gated(PixelNumbers):\n"
        "    def predict(self, images, settings):\n"
        "        (pathlib.Path(__file__).parent / 'begun').touch()\n"
        "        while not (pathlib.Path(__file__).parent / 'go').exists(): time.sleep(0.02)\n"
        "        return super().predict(images, settings)\n"
    )
    arguments = (f"{tmp_path}/gated.py:Gated", "--data", str(tmp_path / "data"))
    with Server(*arguments) as server, Caller(server.url) as caller:
        (worker,) = server.workers()
        uuid = caller.submit([png(7)])
        until((tmp_path / "begun").exists, "the batch")
        os.kill(worker, signal.SIGTERM)
        server.process.terminate()
        until(lambda: "ending" in server.log, "the signal")
        (tmp_path / "go").touch()
        assert server.wait() == 0
        assert "its process ended" not in server.log
        assert "Traceback" not in server.log
    (tmp_path / "begun").unlink()
    with Server(*arguments) as server, Caller(server.url) as caller:
        assert numbers(caller.drain(uuid)[0]) == [7]
        assert not (tmp_path / "begun").exists(), "it was computed before, and stored"


def test_sigterm_for_the_whole_group_while_the_model_is_loaded() -> None:
    """That the worker is gone with the server, before it can load, is no failure to load."""
    command = [sys.executable, "-m", "predsession", "serve", "pixels", "--port", "0", "--ephemeral"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: children.read_text(), "the worker")
        os.killpg(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "loading" not in errors


def test_only_the_server_ends_its_worker() -> None:
    """A SIGTERM for the worker alone does nothing; a program that a model starts is ended by one."""
    with Server("pixels") as server, Caller(server.url) as caller:
        (worker,) = server.workers()
        os.kill(worker, signal.SIGTERM)
        assert numbers([caller.upload([png(5)], endpoint="inference_image").json()]) == [5]
        assert server.workers() == [worker]
        assert metrics(caller).get('predsession_worker_restarts_total{model="pixels"}', 0) == 0
        ignored = re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{worker}/status").read_text())
        assert ignored is not None
        assert not int(ignored[1], 16) >> (signal.SIGTERM - 1) & 1


def test_tensors_over_http_alone() -> None:
    """Without --oip-grpc nothing is said of gRPC, and no address of it is announced."""
    with Server("pixels", "--oip", "--ephemeral") as server:
        assert requests.get(f"{server.url}/v2/health/ready", timeout=10).status_code == 200
        assert "oip" not in server.announced
        assert server.terminate() == 0
        assert "gRPC" not in server.log
        assert "Traceback" not in server.log
