"""The 16 calls: name, path, what goes in, what comes out; read off the interface's own description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from predsession.wire.edge import inference_pb2

SERVICE = "aipc.inference.InferenceService"
MAX_MESSAGE_BYTES = 64 << 20
"""What the runtime sends and takes; gRPC's own limit for what arrives is 4 MiB."""


@dataclass(frozen=True, slots=True)
class Method:
    """One call of the service.

    Parameters
    ----------
    name : str
        As the service has it: "Infer".
    request : type of Message
        What goes in.
    reply : type of Message
        What comes out.
    streams : bool
        Whether it comes out many times.
    """

    name: str
    request: type[Message]
    reply: type[Message]
    streams: bool

    @property
    def path(self) -> str:
        """Its address on the wire."""
        return f"/{SERVICE}/{self.name}"


def _read() -> Mapping[str, Method]:
    """List the service's calls by name."""
    service = inference_pb2.DESCRIPTOR.services_by_name["InferenceService"]
    return MappingProxyType(
        {
            each.name: Method(
                each.name,
                GetMessageClass(each.input_type),
                GetMessageClass(each.output_type),
                bool(each.server_streaming),
            )
            for each in service.methods
        }
    )


METHODS = _read()
"""Every call by its name."""
