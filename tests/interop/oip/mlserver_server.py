"""A real MLServer with models for the tests; run by their interpreter.

It writes settings into its folder, with free ports, and prints one line of JSON once it is ready. It ends on
SIGTERM, or when its stdin does.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PATIENCE = 60.0


def tensor(name: str, datatype: str, *shape: int) -> dict[str, Any]:
    """Describe one."""
    return {"name": name, "datatype": datatype, "shape": list(shape)}


MODELS = {
    "scale": (
        [tensor("frame", "UINT8", -1, -1, 3)],
        [tensor("small", "FP32", -1, -1, 3), tensor("total", "INT64", 1)],
    ),
    "sums": ([tensor("small", "FP32", -1, -1, 3)], [tensor("sum", "FP32", 1), tensor("mean", "FP32", 1)]),
    "echo": ([], []),
    "add": (
        [tensor("a", "FP32", -1, 4), tensor("b", "FP32", -1, 4)],
        [tensor("c", "FP32", -1, 4), tensor("d", "FP32", -1, 4)],
    ),
    "slow": ([tensor("seconds", "FP32", 1)], [tensor("slept", "FP32", 1)]),
    "fail": ([tensor("a", "FP32", 1)], [tensor("b", "FP32", 1)]),
    "codec": ([tensor("a", "FP32", -1)], [tensor("b", "FP32", -1)]),
    "counter": ([tensor("n", "INT64", 1), tensor("pause", "FP32", 1)], [tensor("i", "INT64", 1)]),
}


def free_ports(count: int) -> list[int]:
    """Find ports that nobody has."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def write_settings(folder: Path) -> dict[str, Any]:
    """Write the server's, and each model's, and return the server's."""
    http, grpc, metrics = free_ports(3)
    settings = {
        "host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "metrics_port": metrics,
        "parallel_workers": 0, "debug": False, "grpc_max_message_length": (2 << 30) - 1,
    }  # fmt: skip
    (folder / "settings.json").write_text(json.dumps(settings))
    for name, (inputs, outputs) in MODELS.items():
        (folder / name).mkdir(exist_ok=True)
        described = {
            "name": name, "implementation": f"mlserver_models.{name.title()}",
            "inputs": inputs, "outputs": outputs, "parameters": {"version": "1"},
        }  # fmt: skip
        (folder / name / "model-settings.json").write_text(json.dumps(described))
    return settings


def wait_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until all models are there."""
    end = time.monotonic() + PATIENCE
    while True:
        if server.poll() is not None or time.monotonic() > end:
            sys.exit(f"MLServer did not start: {server.poll()}")
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"{url}/v2/health/ready", timeout=2).close()
            return
        time.sleep(0.2)


def main() -> None:
    """Serve from the present folder until told to end."""
    folder = Path.cwd()
    settings = write_settings(folder)
    url = f"http://127.0.0.1:{settings['http_port']}"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    # Its workings are an extra process: its own handling of signals stays as it is.
    command = [sys.executable, "-m", "mlserver.cli.main", "start", str(folder)]
    server = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=2)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    try:
        wait_ready(url, server)
        ready = {"http": url, "grpc": f"127.0.0.1:{settings['grpc_port']}", "token": "", "server": server.pid}
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        ended.wait()
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
