"""A server that is killed goes on where it stood; one that is to keep nothing leaves nothing."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from server_kit import Caller, Server, numbers, png, until


def test_killed_in_the_middle_of_500_images(tmp_path: Path) -> None:
    """SIGKILL, again and again, in the middle of 500 images: all results come, each once, in order, and the
    server computes nothing twice that was stored.
    """
    arguments = ("pixels", "--data", str(tmp_path), "--quiet")
    jobs: list[str] = []
    got: dict[str, list[dict[str, object]]] = {}
    stored_at_kill = 0
    computed_after = 0
    for life in range(4):
        with Server(*arguments) as server, Caller(server.url) as caller:
            if not jobs:
                for first in range(0, 500, 100):
                    files = [png(first + n) for n in range(100)]
                    jobs.append(
                        caller.submit(files, settings={"delay": 0.002}, session="s", first_index=first)
                    )
                    got[jobs[-1]] = []
            listed = {
                job["uuid"]: job for job in caller.ask("list_inference_requests", session="s")["requests"]
            }
            assert sorted(listed) == sorted(jobs), "every job is there again"
            done = sum(job["progress"]["current"] for job in listed.values())
            assert done >= stored_at_kill, "nothing that was stored is lost"
            if life < 3:
                goal = min(500, done + 60)
                for uuid in jobs:
                    # Read some, ack less: what was read and not acked must come again.
                    acked = len(got[uuid])
                    fresh = caller.pop(uuid, ack=acked, limit=20)["pending_results"]
                    got[uuid].extend(fresh[: max(0, len(fresh) - 5)])
                until(lambda goal=goal: _done(caller) >= goal, "progress")
                stored_at_kill = _done(caller)
                server.kill()
            else:
                for uuid in jobs:
                    items, last = caller.read(uuid, ack=len(got[uuid]))
                    assert last["stage"] == "Finished"
                    got[uuid].extend(items)
                computed_after = _computed(caller)
                left = 500 - done
                assert computed_after <= left, "what was stored is not computed again"
    answers = [number for uuid in jobs for number in numbers(got[uuid])]
    assert answers == list(range(500))
    for uuid in jobs:
        assert [item["number"] for item in got[uuid]] == list(range(1, 101))


def _done(caller: Caller) -> int:
    """Count the results of the session."""
    jobs = caller.ask("list_inference_requests", session="s")["requests"]
    return sum(job["progress"]["current"] for job in jobs)


def _computed(caller: Caller) -> int:
    """Count what the model was given in this life, by the server's own metrics."""
    text = caller.http.get(f"{caller.url}/metrics", timeout=10).text
    lines = [line for line in text.splitlines() if line.startswith("predsession_items_total")]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines)


def test_unread_results_and_keys_survive(tmp_path: Path) -> None:
    """Results that nobody read, the key of a submit, an error and a stop are there after a kill."""
    arguments = ("pixels", "--data", str(tmp_path), "--quiet")
    key = {"Idempotency-Key": "k"}
    with Server(*arguments) as server, Caller(server.url) as caller:
        good = caller.submit([png(1), png(2)], headers=key)
        bad = caller.submit([png(1), png(2)], settings={"fail_at": 2})
        stopped = caller.submit([png(n) for n in range(100)], settings={"delay": 0.05}, batch_size=1)
        until(lambda: caller.progress(good)["finished"] and caller.progress(bad)["finished"], "the end")
        caller.stop(stopped)
        until(lambda: caller.progress(stopped)["finished"], "the stop")
        before = caller.ask("get_inference_status", inference_request_uuid=stopped)["progress"]["current"]
        server.kill()
    with Server(*arguments) as server, Caller(server.url) as caller:
        assert caller.submit([png(1), png(2)], headers=key) == good
        assert numbers(caller.read(good)[0]) == [1, 2]
        items, last = caller.drain(bad)
        assert numbers(items) == [1]
        assert last["exception"]["message"] == "model pixels: told to fail at 2"
        items, last = caller.drain(stopped)
        assert (len(items), last["stage"]) == (before, "Cancelled")


def test_terminate_finishes_the_batch_and_keeps_the_rest(tmp_path: Path) -> None:
    """SIGTERM ends with code 0, the batch under way is stored, the next life does the rest."""
    arguments = ("pixels", "--data", str(tmp_path))
    with Server(*arguments) as server, Caller(server.url) as caller:
        uuid = caller.submit([png(n) for n in range(40)], settings={"delay": 0.05}, batch_size=4)
        until(lambda: caller.pop(uuid, ack=0, limit=1)["progress"]["current"] >= 4, "a batch")
        before = caller.pop(uuid, ack=0, limit=1)["progress"]["current"]
        caller.http.close()
        assert server.terminate() == 0
        assert "Traceback" not in server.log
    with Server(*arguments) as server, Caller(server.url) as caller:
        assert caller.pop(uuid, ack=0, limit=1)["progress"]["current"] > before, "its batch was finished"
        assert numbers(caller.read(uuid)[0]) == list(range(40))


def test_half_an_upload_leaves_nothing(tmp_path: Path) -> None:
    """Files of an upload that never became a job are removed by the next server."""
    stray = tmp_path / "uploads" / "0123"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"half")
    with Server("pixels", "--data", str(tmp_path)):
        assert not stray.exists()


def test_folder_belongs_to_one_server(tmp_path: Path) -> None:
    """A second server on the same folder ends with one line that says what to do."""
    with (
        Server("pixels", "--data", str(tmp_path)),
        pytest.raises(RuntimeError, match=r"ended with 3.*--data"),
    ):
        Server("pixels", "--data", str(tmp_path))


def test_ephemeral_leaves_nothing(tmp_path: Path) -> None:
    """An ephemeral server's folder is gone after its end; that of a killed one with the next server."""
    env = {"TMPDIR": str(tmp_path)}
    assert tempfile.gettempdir() != str(tmp_path)
    with Server("pixels", env=env) as server, Caller(server.url) as caller:
        caller.submit([png(1)])
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    with Server("pixels", env=env) as server:
        server.kill()
    assert len(list(tmp_path.iterdir())) == 1
    with Server("pixels", env=env):
        assert len(list(tmp_path.iterdir())) == 1, "its own; the other was removed"


STUCK = '''
import ctypes
class Stuck:
    """Hangs inside a library without letting go of Python, so that no thread of its process runs."""
    classes = ["a"]
    def predict(self, images, settings):
        ctypes.PyDLL(None).sleep(3600)
'''


@pytest.mark.parametrize("end", ["kill", "stdin", "terminate"])
def test_no_worker_outlives_its_server(tmp_path: Path, end: str) -> None:
    """However the server ends, its worker is gone, even one that hangs inside a library."""
    (tmp_path / "stuck.py").write_text(STUCK)
    with Server(f"{tmp_path}/stuck.py:Stuck", "--limit-grace", "0.2") as server, Caller(server.url) as caller:
        uuid = caller.submit([png(1)])
        until(lambda: caller.progress(uuid)["is_inferring"], "the start")
        (worker,) = server.workers()
        if end == "kill":
            server.kill()
        elif end == "stdin":
            server.hang_up()
        else:
            assert server.terminate() == 0
        until(lambda: not _alive(worker), "the end of the worker")


def _alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet reaped does not."""
    try:
        os.kill(pid, 0)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_full_quota_is_507_and_room_comes_back(tmp_path: Path) -> None:
    """Over the server's share of the disk an upload is refused with 507 and Retry-After; once its jobs are
    gone the next is taken.
    """
    limits = ("disk=300K", "cleared=0.1", "sweep=0.1", "grace=0.2")
    words = [word for limit in limits for word in f"--limit-{limit}".split("=")]
    arguments = ("--data", str(tmp_path), *words)
    big = png(1) + bytes(120_000)
    with Server("pixels", *arguments) as server, Caller(server.url) as caller:
        uuid = caller.submit([big, big], settings={"hang_at": 1}, item_errors=True)
        reply = caller.upload([big, big])
        assert reply.status_code == 507
        assert reply.headers["retry-after"] == "30"
        assert reply.json()["success"] is False
        caller.clear(uuid)
        until(lambda: caller.upload([big]).status_code == 200, "room")
        assert server.process.poll() is None


def test_restart_without_the_model(tmp_path: Path) -> None:
    """Jobs of a model that the next server does not have end with an error that names it."""
    with Server("pixels", "--data", str(tmp_path)) as server, Caller(server.url) as caller:
        uuid = caller.submit([png(n) for n in range(50)], settings={"delay": 0.05}, batch_size=1)
        server.kill()
    with Server("--model", "other=pixels", "--data", str(tmp_path)) as server, Caller(server.url) as caller:
        state = caller.progress(uuid)
        assert state["stage"] == "Error"
        assert "'pixels'" in state["exception"]["message"]
        caller.clear(uuid)


def test_stop_that_was_acknowledged_is_kept(tmp_path: Path) -> None:
    """A stop that was answered holds after a kill, also while the worker still has pictures of the job."""
    arguments = ("pixels", "--data", str(tmp_path), "--quiet")
    with Server(*arguments) as server, Caller(server.url) as caller:
        uuid = caller.submit([png(1), png(2)], settings={"hang_at": 1}, batch_size=1)
        until(lambda: caller.progress(uuid)["is_inferring"], "the start")
        caller.stop(uuid)
        assert not caller.progress(uuid)["finished"]
        server.kill()
    with Server(*arguments) as server, Caller(server.url) as caller:
        assert caller.progress(uuid)["stage"] == "Cancelled"
        until(lambda: not list((tmp_path / "uploads").iterdir()), "its upload to be dropped")


def test_database_that_is_locked(tmp_path: Path) -> None:
    """While another process holds the database, what has to be stored is refused with 503; then it works."""
    grace = ("--limit-grace", "0.2")  # the model hangs
    with Server("pixels", "--data", str(tmp_path), *grace) as server, Caller(server.url) as caller:
        uuid = caller.submit([png(1), png(2)], settings={"hang_at": 1}, batch_size=1)
        with contextlib.closing(sqlite3.connect(tmp_path / "jobs.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            reply = caller.post("stop_inference", json={"state": {"inference_request_uuid": uuid}})
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "2")
            assert "busy" in reply.json()["message"]
            other.execute("ROLLBACK")
        caller.stop(uuid)


def test_servers_that_start_together_sweep_nobody_away(tmp_path: Path) -> None:
    """Ephemeral servers that start at the same time each keep their folder."""
    code = (
        "from predsession.server.folders import server_folder\n"
        "for _ in range(60):\n"
        "    with server_folder(None, ephemeral=True, port=0) as folder:\n"
        "        assert (folder / 'lock').exists()\n"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    each = [subprocess.Popen([sys.executable, "-c", code], env=env) for _ in range(6)]
    assert [one.wait(60) for one in each] == [0] * 6
    assert list(tmp_path.iterdir()) == []


def test_threaded_server_that_is_killed_is_swept(tmp_path: Path) -> None:
    """The folder of a server on a thread is removed by the next server, if its process was killed."""
    code = (
        "import os\n"
        "from predsession.testing import RunningServer\n"
        "with RunningServer(process=False):\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    with Server("pixels", env=env):
        assert not left.exists()
