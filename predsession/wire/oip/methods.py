"""The calls of the two services: name, address, what goes in, what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from predsession.wire.oip import inference_pb2

SERVICE = "inference.GRPCInferenceService"
OUR_SERVICE = "predsession.TensorSessions"
MAX_MESSAGE_BYTES = (2 << 30) - 1
"""What protobuf takes in one message."""


@dataclass(frozen=True, slots=True)
class Method:
    """One call.

    Parameters
    ----------
    path : str
        Its address: "/inference.GRPCInferenceService/ModelInfer".
    request : type of Message
        What goes in.
    reply : type of Message
        What comes out.
    streams : bool
        Whether both come many times.
    """

    path: str
    request: type[Message]
    reply: type[Message]
    streams: bool


def _read(ours: str, wire: str) -> Mapping[str, Method]:
    """List a service's calls by name."""
    service = inference_pb2.DESCRIPTOR.services_by_name[ours]
    return MappingProxyType(
        {
            each.name: Method(
                f"/{wire}/{each.name}",
                GetMessageClass(each.input_type),
                GetMessageClass(each.output_type),
                bool(each.server_streaming),
            )
            for each in service.methods
        }
    )


METHODS = _read("GRPCInferenceService", SERVICE)
"""The protocol's, and Triton's, by name."""
OUR_METHODS = _read("TensorSessions", OUR_SERVICE)
"""Those of our extension, by name."""
