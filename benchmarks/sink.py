"""A server that takes uploads and looks at nothing: what is left is the client's own work.

Speaks as much of the protocol as a session needs; every upload is done at once, with nothing found. It reads
a body as fast as it comes and counts the files by their headers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from benchmarks.process import ROOT
from predsession.wire.jsontypes import JSON

SIZE: dict[str, JSON] = {"height": 720, "width": 1280}
_FILE = b'name="files"'
_BLOCK = 1 << 20


@contextmanager
def sink() -> Iterator[str]:
    """Run one in a process of its own.

    Yields
    ------
    str
        Its address.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.sink"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection's calls."""

    protocol_version = "HTTP/1.1"
    jobs: ClassVar[dict[str, int]] = {}

    def do_POST(self) -> None:
        """Answer a call."""
        name = self.path.rsplit("/", 1)[-1]
        files, body = self._read()
        body_json = json.dumps(self._answer(name, files, body)).encode()
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body_json)}\r\n\r\n"
        )
        # In one piece: a second packet would wait for the first one's receipt.
        self.wfile.write(head.encode() + body_json)

    def _read(self) -> tuple[int, bytes]:
        """Read the body; return the number of its files, and its last block."""
        left, files, block = int(self.headers.get("Content-Length", 0)), 0, b""
        while left:
            # A header may lie across two blocks.
            kept = block[-len(_FILE) + 1 :]
            block = kept + self.rfile.read(min(left, _BLOCK))
            left -= len(block) - len(kept)
            files += block.count(_FILE)
        return files, block

    def _answer(self, name: str, files: int, body: bytes) -> JSON:
        """Return the answer to a call."""
        if name == "inference_batch_async":
            made = uuid.uuid4().hex
            self.jobs[made] = files
            return {"message": "Scheduled inference task.", "inference_request_uuid": made}
        if name == "get_session_info":
            return {"app_name": "sink", "max_batch_size": None, "async_image_inference_support": True}
        if name == "get_model_meta":
            return {"classes": [], "tags": []}
        if name in {"clear_inference_request", "stop_inference"}:
            return {"success": True}
        return self._state(json.loads(body)["state"]["inference_request_uuid"], popped=name.startswith("pop"))

    def _state(self, job: str, *, popped: bool) -> JSON:
        """Return where a job stands: it is done."""
        count = self.jobs[job]
        annotation: dict[str, JSON] = {"size": SIZE, "objects": [], "tags": [], "description": ""}
        results: list[JSON] = [{"annotation": annotation} for _ in range(count)]
        if popped:
            self.jobs[job] = 0
        progress: dict[str, JSON] = {"current": count, "total": count}
        return {
            "uuid": job,
            "stage": "Finished",
            "progress": progress,
            "pending_results": results if popped else count,
            "exception": None,
            "is_inferring": False,
            "stopped": False,
            "paused": False,
            "finished": True,
            "has_result": False,
        }

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


def main() -> None:
    """Serve until standard input ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
