"""A model that is not there yet, for a Triton that is told to load it: a configuration and a Python file.

Triton takes both with the call, as `config` and `file:1/model.py`; nothing has to lie in its repository.
"""

from __future__ import annotations

import json
from pathlib import Path

NAME = "twice"

CONFIG = {
    "backend": "python",
    "max_batch_size": 0,
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1]}],
    "instance_group": [{"count": 1, "kind": "KIND_CPU"}],
    "parameters": {
        "predsession_quantization": {"string_value": '{"y": {"scale": [0.5], "zero_point": [0]}}'}
    },
}
"""Without a name: one that is not the model's own is refused."""

MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x * np.float32(2))]))
        return answers
"""

COUNTING_CONFIG = {
    "backend": "python",
    "max_batch_size": 0,
    "input": [{"name": "n", "data_type": "TYPE_INT64", "dims": [1]}],
    "output": [{"name": "i", "data_type": "TYPE_INT64", "dims": [1]}],
    "instance_group": [{"count": 1, "kind": "KIND_CPU"}],
    "model_transaction_policy": {"decoupled": True},
}

COUNTING_MODEL = """
import sys
import time
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(int(pb_utils.get_input_tensor_by_name(request, "n").as_numpy()[0])):
                if request.is_cancelled():
                    print("counting was cancelled", file=sys.stderr, flush=True)
                    break
                time.sleep(0.02)
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("i", np.array([number]))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def write_model(folder: Path, name: str = NAME) -> Path:
    """Write the model as a folder: its configuration as JSON, as a call takes it, and its file."""
    place = folder / name
    (place / "1").mkdir(parents=True)
    (place / "config.json").write_text(json.dumps(CONFIG))
    (place / "1" / "model.py").write_text(MODEL)
    return place
