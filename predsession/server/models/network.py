"""Opening ONNX files."""

from __future__ import annotations

from pathlib import Path

import onnxruntime


def open_network(path: Path, *, threads: int) -> onnxruntime.InferenceSession:
    """Open an ONNX file for the processor.

    Parameters
    ----------
    path : Path
        The file.
    threads : int
        How many threads one run may use.

    Returns
    -------
    onnxruntime.InferenceSession
        Ready to run.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Spinning threads fight with any other busy process: on two cores two of them are slower than one.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
