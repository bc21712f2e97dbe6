"""Opening ONNX files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnxruntime

from predsession.server.models.card import ModelLoadError


def open_network(
    source: Path | bytes, *, threads: int, entries: Mapping[str, str] | None = None, name: str = ""
) -> onnxruntime.InferenceSession:
    """Open an ONNX file for the processor.

    Parameters
    ----------
    source : Path or bytes
        The file, or what is in it.
    threads : int
        How many threads one run may use.
    entries : mapping of str to str, optional
        onnxruntime's own settings of a session.
    name : str
        What it is called in messages; its path where that is left out.

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
    settings = {"session.intra_op.allow_spinning": "0", **(entries or {})}
    options.log_severity_level = 3
    given = source if isinstance(source, bytes) else str(source)
    try:
        for key, value in settings.items():
            options.add_session_config_entry(key, value)
        # Its fallback would try the same again, and say so on stdout.
        return onnxruntime.InferenceSession(
            given, options, providers=["CPUExecutionProvider"], enable_fallback=0
        )
    except Exception as error:  # its own classes have no root of their own
        reason = " ".join(str(error).split())
        raise ModelLoadError(f"{name or source!s} is no ONNX file that can be opened: {reason}") from error
