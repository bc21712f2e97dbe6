"""Supervisely's server with a dummy model, for the benchmarks; run by its own interpreter.

    python server.py --folder FOLDER --model bars|idle

Listens on a free port of 127.0.0.1, announces it in one line of JSON, and ends when its standard input does.
Beside Supervisely's own calls it has two:

    /__idle    answers once every job has ended
    /__polls   what the calls that ask after a job took since it was last asked: their number, how many
               brought nothing, the seconds of each kind from the request's arrival to the answer's last
               byte, and the seconds from the first call of any kind to the last
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

POLLS = (
    "/pop_inference_results",
    "/get_inference_progress",
    "/get_inference_status",
    "/get_preparing_progress",
)


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--model", default="bars")
    args = parser.parse_args()
    _prepare(Path(args.folder))

    import uvicorn

    model = _model(args.model)
    model.serve()  # registers the calls; does not block
    stopwatch = Stopwatch(model.app.get_server())
    _add_calls(model, stopwatch)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(stopwatch, ws="websockets", log_level="warning"))
    threading.Thread(target=_follow_stdin, args=(server,), daemon=True).start()
    sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}) + "\n")
    sys.stdout.flush()
    server.run(sockets=[listener])
    # Their pool of workers would be waited for, whatever is still computed there.
    os._exit(0)


def _prepare(folder: Path) -> None:
    """Set what their package reads when it is imported."""
    for name in ("API_TOKEN", "SERVER_ADDRESS"):
        os.environ.pop(name, None)
    os.environ.update(
        ENV="production",
        TASK_ID="1",
        SLY_APP_DATA_DIR=str(folder / "data"),
        SMART_CACHE_CONTAINER_DIR=str(folder / "cache"),
    )
    for name in ("data", "cache"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    sys.argv = sys.argv[:1]  # which their classes read, too


def _model(name: str) -> Any:
    """Make the model: that of the interoperation tests, which looks for bright bars, or an idle one."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "interop"))
    from dummy_models import SETTINGS, Counts, Detector, Segmenter

    class Idle(Detector):
        def _find(self, image: Any, settings: dict[str, Any]) -> list[Any]:
            return []

    made = {"bars": Segmenter, "idle": Idle}[name](custom_inference_settings=dict(SETTINGS), use_gui=False)
    made.deploy(Counts())
    return made


class Stopwatch:
    """ASGI middleware: measures how long each poll is being answered."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._spans: list[tuple[str, float, float, int]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the call on, and note when it began and ended, and how long its answer was."""
        if scope["type"] != "http" or scope["path"].startswith("/__"):
            await self._app(scope, receive, send)
            return
        length = 0

        async def counted(message: Any) -> None:
            nonlocal length
            length += len(message.get("body", b""))
            await send(message)

        began = time.monotonic()
        try:
            await self._app(scope, receive, counted)
        finally:
            self._spans.append((scope["path"], began, time.monotonic(), length))

    def read(self) -> dict[str, float]:
        """Return the figures, and begin anew."""
        spans, self._spans = self._spans, []
        polls = [span for span in spans if span[0] in POLLS]
        # An answer without results is some hundred bytes; one result has a thousand.
        empty = [end - began for _, began, end, length in polls if length < EMPTY]
        return {
            "polls": len(polls),
            "empty_polls": len(empty),
            "seconds": sum(end - began for _, began, end, _ in polls),
            "empty_seconds": sum(empty),
            "whole": max(span[2] for span in spans) - min(span[1] for span in spans) if spans else 0.0,
        }


EMPTY = 1000
"""Bytes."""


def _add_calls(model: Any, stopwatch: Stopwatch) -> None:
    """Add the calls for the benchmarks."""
    app = model.app.get_server()

    @app.post("/__polls")
    async def polls() -> dict[str, float]:
        return stopwatch.read()

    @app.post("/__idle")
    async def idle() -> None:
        while not all(
            job.is_finished() for job in list(model.inference_requests_manager._inference_requests.values())
        ):
            await asyncio.sleep(0.05)


def _follow_stdin(server: Any) -> None:
    """End the server once nobody holds the other end."""
    sys.stdin.read()
    server.should_exit = True


if __name__ == "__main__":
    main()
