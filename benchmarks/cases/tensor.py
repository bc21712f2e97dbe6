"""The tensor session: a chain of two models over frames of 3 x 720 x 1280 uint8; and tritonclient by hand.

What is between the models, 11 MB a frame, stays on the server: in our server's own memory, or in shared
memory with a real Triton on the same machine. Bytes are counted at a proxy, times are taken without it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench import Bench, Figures, say
from benchmarks.counting import CountingProxy
from benchmarks.process import ROOT, figures, run_client, run_theirs
from benchmarks.row import Row, at_least, at_most
from benchmarks.tensors import write_folders
from predsession.tensor import init_model, init_server
from predsession.testing import RunningServer
from predsession.wire.jsontypes import JSON

NAME = "tensor"
VARIABLE = "PREDSESSION_INTEROP_TRITON"
"""The environment variable with an interpreter that has Triton and its client, as for the tests."""
_COUNTED = 20


@dataclass(frozen=True, slots=True)
class _Server:
    """Where a chain runs: what it is, its address for gRPC, what calls carry, the two models' names."""

    name: str
    address: str
    headers: Mapping[str, str]
    models: tuple[str, ...]

    def task(self, count: int, *, kept: bool) -> dict[str, JSON]:
        """Return what a client is to do."""
        return {
            "address": f"grpc://{self.address}",
            "headers": dict(self.headers),
            "models": list(self.models),
            "count": count,
            "kept": kept,
        }


def measure(bench: Bench) -> Iterator[Row]:
    """Yield bytes and frames a second, on our server and on a Triton."""
    python = Path(os.environ.get(VARIABLE, ""))
    if not os.access(python, os.X_OK) or not python.is_file():
        say(f"without Triton and its client: {VARIABLE} names no interpreter; scripts/interop oip makes it")
        return
    with _ours() as server:
        yield from _chain(bench, server, python)
    with _triton(python) as server:
        yield from _chain(bench, server, python)


def _chain(bench: Bench, server: _Server, python: Path) -> Iterator[Row]:
    """Yield the rows of one server."""
    count = bench.count(1000, 10)
    what = f"chain of two, 3 x 720 x 1280, {server.name}"
    kept, sent = server.task(count, kept=True), server.task(count, kept=False)
    pairs = bench.measured(
        lambda: figures(run_client("tensor", kept)), lambda: figures(run_theirs(python, "tensor", sent))
    )
    yield pairs.row(NAME, f"frames, {what}; tritonclient", "rate", unit="frames/s", target=at_least(1.0))
    yield pairs.row(NAME, f"processor time, {what}; tritonclient", "cpu", unit="ms", target=at_most(1.0))
    pairs = bench.measured(
        lambda: figures(run_client("tensor", kept)), lambda: figures(run_client("tensor", sent))
    )
    yield pairs.row(
        NAME, f"frames, {what}; ours, nothing kept", "rate", unit="frames/s", target=at_least(1.0)
    )
    pairs = bench.measured(lambda: _bytes(server, None), lambda: _bytes(server, python))
    yield pairs.row(NAME, f"bytes a frame, {what}; tritonclient", "mb", unit="MB", target=at_most(1 / 2.5))


def _bytes(server: _Server, python: Path | None) -> Figures:
    """Count the bytes of a frame, for us or for tritonclient; the warming up is counted along."""
    host, _, port = server.address.rpartition(":")
    with CountingProxy((host, int(port))) as proxy:
        through = _Server(server.name, f"127.0.0.1:{proxy.port}", server.headers, server.models)
        task = through.task(_COUNTED, kept=python is None)
        if python is None:
            run_client("tensor", task)
        else:
            run_theirs(python, "tensor", task)
        return {"mb": proxy.count / 1e6 / (_COUNTED + 5)}


@contextmanager
def _ours() -> Iterator[_Server]:
    """Run our server with both models."""
    file = ROOT / "benchmarks" / "tensors.py"
    arguments = ["--oip-grpc", "127.0.0.1:0"]
    for name in ("Soften", "Summary"):
        arguments += ["--tensor-model", f"{name.lower()}={file}:{name}"]
    with RunningServer("pixels", arguments=arguments) as server:
        yield _Server("our server", server.oip[0], {}, ("soften", "summary"))


@contextmanager
def _triton(python: Path) -> Iterator[_Server]:
    """Run a real Triton, and put both models into its repository."""
    program = ROOT / "tests" / "interop" / "oip" / "triton_server.py"
    with tempfile.TemporaryDirectory(prefix="predsession-bench-") as folder:
        process = subprocess.Popen(
            [str(python), str(program)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            ready = json.loads(process.stdout.readline())
            headers = {"triton-grpc-protocol-triton-access-token": ready["token"]}
            with (
                init_server(ready["grpc"], headers=headers) as server,
                init_model(write_folders(Path(folder) / "models"), server) as models,
            ):
                yield _Server("Triton", ready["grpc"], headers, tuple(models.names.values()))
        finally:
            process.stdin.close()
            process.wait(60)
            process.stdout.close()
