"""Requests that carry arrays, as bytes: a frame is copied once, not by every layer on its way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy.typing as npt

from predsession.wire.edge import inference_pb2 as pb
from predsession.wire.edge.tensors import CODES, Array, as_wire_array
from predsession.wire.edge.writing import written
from predsession.wire.protofields import after, read_varint, write_varint

_TENSOR_DATA, _REQUEST_INPUTS, _BATCH_REQUESTS = b"\x1a", b"\x12", b"\x0a"  # number << 3 | 2: with a length


@dataclass(frozen=True, slots=True, eq=False)
class InferCall:
    """One request for one model, checked, not yet bytes.

    Parameters
    ----------
    fields : bytes
        Everything but the arrays.
    inputs : sequence of ndarray
        Ready for the wire.
    """

    fields: bytes
    inputs: Sequence[Array]

    @classmethod
    def of(
        cls,
        model_id: str,
        inputs: Iterable[npt.ArrayLike],
        *,
        timeout_ms: int,
        priority: int,
        session_id: str = "",
    ) -> InferCall:
        """Check what is to be sent.

        Parameters
        ----------
        model_id : str
            Which model.
        inputs : iterable of array-like
            Its inputs, in its own order.
        timeout_ms : int
            Milliseconds, as the wire has them.
        priority : int
            0 to 7, 7 first.
        session_id : str
            Whose quota it takes.

        Returns
        -------
        InferCall
            Holding the arrays themselves where they are fit to be sent.

        Raises
        ------
        SourceError
            If an array cannot be sent as it is, or the wire cannot hold a field.
        """
        message = written(
            pb.InferRequest,
            model_id=model_id,
            timeout_ms=timeout_ms,
            priority=priority,
            session_id=session_id,
        )
        ready = [as_wire_array(each, name=f"input {number}") for number, each in enumerate(inputs)]
        return cls(message.SerializeToString(), ready)

    def pieces(self) -> list[bytes | memoryview]:
        """Return what to put together.

        Returns
        -------
        list of bytes or memoryview
            In order.
        """
        pieces: list[bytes | memoryview] = [self.fields]
        for array in self.inputs:
            head = pb.Tensor(shape=array.shape, dtype=CODES[array.dtype]).SerializeToString()
            head += _TENSOR_DATA + write_varint(array.nbytes)
            pieces += [_REQUEST_INPUTS + write_varint(len(head) + array.nbytes) + head, array.data]
        return pieces

    def to_bytes(self) -> bytes:
        """Write the request.

        Returns
        -------
        bytes
            An ``InferRequest``.
        """
        return b"".join(self.pieces())


def batch_to_bytes(calls: Sequence[InferCall], timeout_ms: int) -> bytes:
    """Write a request with several in it.

    Parameters
    ----------
    calls : sequence of InferCall
        In order.
    timeout_ms : int
        For all of them together, milliseconds.

    Returns
    -------
    bytes
        An ``InferBatchRequest``.
    """
    pieces: list[bytes | memoryview] = [pb.InferBatchRequest(timeout_ms=timeout_ms).SerializeToString()]
    for call in calls:
        inner = call.pieces()
        size = sum(len(piece) if isinstance(piece, bytes) else piece.nbytes for piece in inner)
        pieces += [_BATCH_REQUESTS + write_varint(size), *inner]
    return b"".join(pieces)


def has_more_items(batch: bytes, most: int) -> bool:
    """Tell whether a batch has too many items, without reading them.

    Parameters
    ----------
    batch : bytes
        An ``InferBatchRequest``.
    most : int
        How many may be.

    Returns
    -------
    bool
        False as well where the bytes are none: reading them says so.
    """
    place, items = 0, 0
    while place < len(batch) and items <= most:
        tag, place = read_varint(batch, place)
        items += tag == _BATCH_REQUESTS[0]
        place = after(batch, place, tag & 7)[1]
    return items > most
