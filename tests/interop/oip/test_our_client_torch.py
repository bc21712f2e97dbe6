"""Our tensor client with real torch: what goes in comes out, on our own server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from tensor_kit import TESTS, tensor_server

PYTHON = os.environ.get("PREDSESSION_INTEROP", "")
SCRIPT = """
import sys
sys.path.append(sys.argv[1])  # behind torch's own environment: gRPC, protobuf, ml_dtypes
import numpy as np, torch
from predsession.errors import SourceError
from predsession.tensor import HTensor, TensorSession

def refused(call, text):
    try:
        call()
    except SourceError as error:
        assert text in str(error), error
        return
    raise AssertionError(text)

for host in sys.argv[2:]:
    with TensorSession(host, models=["mixed", "scale", "sums", "add", "echo"]) as session:
        one = torch.arange(8, dtype=torch.float32).reshape(2, 4).requires_grad_()
        found = session({"a": one, "b": one}, model_name="add")
        assert isinstance(found["c"], torch.Tensor) and torch.equal(found["c"], 2 * one.detach()), found
        found["c"] += 1
        turned = torch.arange(8, dtype=torch.float32).reshape(4, 2).t()
        assert torch.equal(session({"a": turned, "b": turned}, model_name="add")["c"], 2 * turned)
        mixed = {
            "half": torch.linspace(-1, 1, 3, dtype=torch.float16),
            "brain": torch.linspace(-1, 1, 3, dtype=torch.bfloat16),
            "nibbles": torch.tensor([-8, 0, 7], dtype=torch.int8),
            "flags": torch.tensor([[True, False]]),
            "big": torch.tensor(7, dtype=torch.uint64),
        }
        refused(lambda: session({**mixed, "words": np.array([b"a"])}, model_name="mixed"), "mixed: big")
        refused(lambda: session({"a": one, "b": one.detach().numpy()}, model_name="add"), "hand in one kind")
        refused(lambda: session({"a": one, "b": one.double()}, model_name="add"), "FP32")
        refused(lambda: session({"a": one, "b": one.to("meta")}, model_name="add"), "several devices")
        words = HTensor(np.array([b"a"], object), "server", "words")
        kept = {key: HTensor(value, "server", key) for key, value in mixed.items()}
        refused(lambda: session({**kept, "words": words}, model_name="mixed"), "mixed")

        frame = torch.randint(0, 255, (16, 24, 3), dtype=torch.uint8)
        fixed = HTensor(frame, ["cpu", "server"], "f")
        config = {"small": {"device": "server", "key": "k"}, "total": {"device": "cpu"}}
        made = session({"frame": fixed}, config, "scale")
        assert torch.equal(made["total"].data, frame.sum(dtype=torch.int64).reshape(1))
        sums = session({"small": made["small"]}, model_name="sums")
        assert isinstance(sums["mean"], torch.Tensor), "what a torch call kept gives torch"
        assert abs(sums["mean"].item() - frame.float().mean().item()) < 0.01
        refused(lambda: setattr(fixed, "data", frame.numpy()), "cannot become ndarray")
        fixed.data = frame + 1
        assert torch.equal(session({"frame": fixed}, model_name="scale")["total"][0], fixed.data.sum())
        data = {"fp16": mixed["half"], "bool": torch.tensor([True]), "int64": torch.tensor([5])}
        every = dict.fromkeys(session.get_input_info("echo"))
        kinds = {"fp": "float"}
        for name in every:
            if name == "bytes":
                continue
            dtype = getattr(torch, name.replace("fp", "float"))
            every[name] = torch.tensor([0, 1], dtype=dtype)
        every["bytes"] = None
        del every["bytes"]
        refused(lambda: session(every, model_name="echo"), "missing 'bytes'")
    with TensorSession(host, models=["mixed"]) as session:
        info = session.get_output_info()["nibbles"]
        assert info["scale_data"] == [0.5]
assert "numpy" in sys.modules
print("well", torch.__version__)
"""


def test_torch() -> None:
    """Torch in is torch out, chains of kept tensors too; mixtures and several devices are refused."""
    if not PYTHON:
        pytest.skip("needs an interpreter that has torch: scripts/interop makes one")
    assert grpc.__file__ is not None
    packages = str(Path(grpc.__file__).parent.parent)
    with tensor_server() as server:
        done = subprocess.run(
            [PYTHON, "-c", SCRIPT, packages, f"grpc://{server.oip[0]}", server.url],
            env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.stdout.startswith("well "), done.stderr
    assert sys.version_info >= (3, 11)
