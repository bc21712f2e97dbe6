"""Networks for tests, made byte by byte, that always answer the same, and their descriptions."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def field(number: int, payload: bytes | int) -> bytes:
    """Encode one protobuf field: a varint or bytes."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def varint(value: int) -> bytes:
    """Encode a whole number."""
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def tensor(name: str, array: np.ndarray) -> bytes:
    """Encode a TensorProto of floats."""
    dims = b"".join(field(1, size) for size in array.shape)
    return dims + field(2, 1) + field(8, name.encode()) + field(9, array.astype("<f4").tobytes())


def value(name: str, shape: tuple[int | str, ...]) -> bytes:
    """Encode a ValueInfoProto of floats."""
    dims = b"".join(field(1, field(1, s) if isinstance(s, int) else field(2, s.encode())) for s in shape)
    return field(1, name.encode()) + field(2, field(1, field(1, 1) + field(2, dims)))


def network(outputs: dict[str, np.ndarray], size: tuple[int, int] = (64, 32), batch: int = 1) -> bytes:
    """Encode a network of that input which always answers these outputs, for a fixed batch."""
    nodes, infos, constants = b"", b"", b""
    for name, array in outputs.items():
        batched = np.repeat(array[None], batch, axis=0)
        constants += field(5, tensor(f"{name}_c", batched))
        nodes += field(1, field(1, f"{name}_c".encode()) + field(2, name.encode()) + field(4, b"Identity"))
        infos += field(12, value(name, batched.shape))
    inputs = field(11, value("images", (batch, 3, size[1], size[0])))
    graph = nodes + field(2, b"g") + constants + inputs + infos
    return field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 13))


def described(folder: Path, outputs: dict[str, np.ndarray], more: str = "", *, batch: int = 1) -> Path:
    """Write a network and its description."""
    (folder / "net.onnx").write_bytes(network(outputs, batch=batch))
    path = folder / "net.toml"
    path.write_text(f'file = "net.onnx"\nclasses = ["cat", "dog"]\n[input]\nsize = [64, 32]\n{more}')
    return path


# Two boxes in the input's 64 x 32 pixels: a cat at 8,4..24,12 and a weak dog.
YOLOV8 = np.array([[16, 8, 16, 8, 0.9, 0.0], [40, 20, 8, 8, 0.0, 0.1]], np.float32)
