"""Two models of tensors that make a chain: a frame to numbers of the same size, and these to three of them.

For our server they are the classes here; for a Triton folders that are put into its repository. The work is
kept small, so that what is measured is the way.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

SIDES = (3, 720, 1280)


class Soften:
    """A frame to the same, in single precision."""

    inputs: ClassVar[dict[str, tuple[str, list[int]]]] = {"frame": ("UINT8", list(SIDES))}
    outputs: ClassVar[dict[str, tuple[str, list[int]]]] = {"soft": ("FP32", list(SIDES))}

    def infer(self, inputs: dict[str, npt.NDArray[np.uint8]]) -> dict[str, npt.NDArray[np.float32]]:
        """Return it."""
        return {"soft": inputs["frame"].astype(np.float32)}


class Summary:
    """The first number of each channel."""

    inputs: ClassVar[dict[str, tuple[str, list[int]]]] = {"soft": ("FP32", list(SIDES))}
    outputs: ClassVar[dict[str, tuple[str, list[int]]]] = {"first": ("FP32", [3])}

    def infer(self, inputs: dict[str, npt.NDArray[np.float32]]) -> dict[str, npt.NDArray[np.float32]]:
        """Return them."""
        return {"first": inputs["soft"][:, 0, 0].copy()}


_EXECUTE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            given = pb_utils.get_input_tensor_by_name(request, {given!r}).as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor({made!r}, {formula})]))
        return answers
"""


def write_folders(place: Path) -> list[Path]:
    """Write both models as a Triton takes them.

    Parameters
    ----------
    place : Path
        An empty folder.

    Returns
    -------
    list of Path
        A folder each, in the chain's order.
    """
    sides = list(SIDES)
    return [
        _write(place / "soften", ("frame", "TYPE_UINT8", sides), ("soft", "TYPE_FP32", sides),
            "given.astype(np.float32)"),
        _write(place / "summary", ("soft", "TYPE_FP32", sides), ("first", "TYPE_FP32", [3]),
            "given[:, 0, 0].copy()"),
    ]  # fmt: skip


def _write(
    folder: Path, given: tuple[str, str, list[int]], made: tuple[str, str, list[int]], formula: str
) -> Path:
    """Write one."""
    (folder / "1").mkdir(parents=True)
    one, other = ({"name": name, "data_type": kind, "dims": sides} for name, kind, sides in (given, made))
    config = {
        "backend": "python",
        "max_batch_size": 0,
        "input": [one],
        "output": [other],
        "instance_group": [{"count": 1, "kind": "KIND_CPU"}],
    }
    (folder / "config.json").write_text(json.dumps(config))
    text = _EXECUTE.format(given=given[0], made=made[0], formula=formula)
    (folder / "1" / "model.py").write_text(text)
    return folder
