"""Opening ONNX files."""

from __future__ import annotations

from pathlib import Path

import onnxruntime

from predsession.server.models.card import ModelLoadError


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

    Raises
    ------
    ModelLoadError
        If it is no such file, or a damaged one.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Spinning threads fight with any other busy process: on two cores two of them are slower than one.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own classes have no root of their own
        reason = " ".join(str(error).split())
        raise ModelLoadError(f"{path} is no ONNX file that can be opened: {reason}") from error
