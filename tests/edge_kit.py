"""An edge runtime for tests: a real gRPC server whose messages are built from the interface's table.

The table below is the interface's own, not our .proto: a wrong number or type there cannot hide here.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "aipc.inference.InferenceService"

MESSAGES = """
Empty:
Status: success=1:bool, message=2:string, code=3:int32
TensorSpec: shape=1:rep int32, dtype=2:DataType, name=3:string, layout=4:string, byte_size=5:uint32
Tensor: shape=1:rep int32, dtype=2:DataType, data=3:bytes, dma_fd=4:int32, buffer_id=5:uint64
ModelRegisterRequest: model_path=1:string, model_id=2:string, inputs=3:rep TensorSpec, \
outputs=4:rep TensorSpec, estimated_tops=10:float, estimated_memory=11:uint32, owner_id=12:string, \
model_type=13:string, model_variant=14:string, transient=15:bool, raw_output_only=16:bool, \
batch_size=17:uint32
ModelRegisterResponse: model_id=1:string, status=2:Status
ModelInfo: model_id=1:string, name=2:string, model_path=3:string, version=4:string, inputs=5:rep TensorSpec, \
outputs=6:rep TensorSpec, estimated_tops=10:float, estimated_memory=11:uint32, load_timestamp=12:uint64, \
owner_id=13:string, transient=14:bool, batch_size=15:uint32
ModelListResponse: models=1:rep ModelInfo
InferRequest: model_id=1:string, inputs=2:rep Tensor, timeout_ms=10:uint32, priority=11:uint32, \
session_id=12:string
InferResponse: outputs=1:rep Tensor, status=2:Status, post_result=5:PostResult, infer_time_us=10:uint64, \
queue_time_us=11:uint64, hw_infer_time_us=12:uint64
BBox: x=1:float, y=2:float, w=3:float, h=4:float
Detection: bbox=1:BBox, confidence=2:float, class_id=3:int32, label=4:string
Point2D: x=1:float, y=2:float, confidence=3:float
LandmarkSet: type=1:string, points=2:rep Point2D
Classification: type=1:string, class_id=2:int32, label=3:string, confidence=4:float
SegmentationMask: class_id=1:int32, label=2:string, confidence=3:float, bbox=4:BBox, mask_rle=5:bytes, \
mask_width=6:int32, mask_height=7:int32
OcrLine: bbox=1:BBox, text=2:string, confidence=3:float
Embedding: data=1:rep float, dim=2:uint32
DepthMap: width=1:uint32, height=2:uint32, depth_data=3:bytes
PostResult: detections=1:rep Detection, classifications=2:rep Classification, landmarks=3:rep LandmarkSet, \
masks=4:rep SegmentationMask, ocr_lines=5:rep OcrLine, embeddings=6:rep Embedding, depth_maps=7:rep DepthMap
InferBatchRequest: requests=1:rep InferRequest, timeout_ms=2:uint32
InferBatchResponse: responses=1:rep InferResponse, status=2:Status, total_time_us=3:uint64
StreamInferRequest: model_id=1:string, stream_id=2:string, fps_limit=3:uint32, session_id=4:string, \
raw_output_only=5:bool
StreamInferResponse: frame_sequence=1:uint64, timestamp_ns=2:uint64, outputs=3:rep Tensor, status=4:Status, \
post_result=5:PostResult, skew_us=6:int64
SessionConfig: session_id=1:string, app_id=2:string, allowed_models=10:rep string, max_qps=11:uint32, \
max_concurrent=12:uint32, priority=13:uint32
SessionCreateResponse: session_id=1:string, status=2:Status
InferenceStats: model_id=1:string, total_inferences=2:uint64, total_errors=3:uint64, \
avg_latency_us=4:uint64, current_qps=5:float, queue_depth=6:uint32, hw_fps=7:float, avg_skew_us=8:uint64, \
max_skew_us=9:uint64, skew_samples=10:uint64
GetStatsRequest: sampling_window_ms=1:uint32
SystemStats: model_stats=1:rep InferenceStats, device_utilization=2:float, device_temperature=3:float, \
total_memory_bytes=4:uint64, used_memory_bytes=5:uint64, cpu_utilization=10:float, dsp_utilization=11:float, \
ram_total_kib=12:int64, ram_used_kib=13:int64
UpdatePostprocessConfigRequest: model_id=1:string, config_json=2:string
UpdatePostprocessConfigResponse: status=1:Status
EncodeTextRequest: text=1:string
EncodeTextResponse: embedding=1:Embedding, status=2:Status
GenaiGeneratorParams: temperature=1:float, top_p=2:float, top_k=3:uint32, frequency_penalty=4:float, \
max_generated_tokens=5:uint32, do_sample=6:bool
GenaiCreateSessionRequest: hef_path=1:string, kind=2:GenaiKind, lora_name=3:string, optimize_memory=4:bool, \
session_id=5:string
GenaiCreateSessionResponse: session_id=1:string, status=2:Status
GenaiGenerateRequest: session_id=1:string, messages_json=2:rep string, params=3:GenaiGeneratorParams, \
image_frames=4:rep bytes, stop_tokens=5:rep string
GenaiGenerateResponse: token=1:string/event, finish=2:GenaiFinishReason/event
GenaiAbortRequest: session_id=1:string
"""

ENUMS = {
    "DataType": "UINT8 INT8 UINT16 INT16 FLOAT16 FLOAT32 INT32 UINT32",
    "GenaiKind": "GENAI_KIND_LLM GENAI_KIND_VLM",
    "GenaiFinishReason": "DONE ABORTED MAX_TOKENS ERROR",
}

METHODS = {
    "RegisterModel": ("ModelRegisterRequest", "ModelRegisterResponse", False),
    "UnregisterModel": ("ModelInfo", "Status", False),
    "ListModels": ("Empty", "ModelListResponse", False),
    "GetModelInfo": ("ModelInfo", "ModelInfo", False),
    "Infer": ("InferRequest", "InferResponse", False),
    "InferBatch": ("InferBatchRequest", "InferBatchResponse", False),
    "StreamInfer": ("StreamInferRequest", "StreamInferResponse", True),
    "CreateSession": ("SessionConfig", "SessionCreateResponse", False),
    "DestroySession": ("SessionConfig", "Status", False),
    "GetStats": ("GetStatsRequest", "SystemStats", False),
    "UpdatePostprocessConfig": ("UpdatePostprocessConfigRequest", "UpdatePostprocessConfigResponse", False),
    "EncodeText": ("EncodeTextRequest", "EncodeTextResponse", False),
    "GenaiCreateSession": ("GenaiCreateSessionRequest", "GenaiCreateSessionResponse", False),
    "GenaiDestroySession": ("GenaiCreateSessionRequest", "Status", False),
    "GenaiGenerate": ("GenaiGenerateRequest", "GenaiGenerateResponse", True),
    "GenaiAbort": ("GenaiAbortRequest", "Status", False),
}

_FIELD = descriptor_pb2.FieldDescriptorProto


def description() -> descriptor_pb2.FileDescriptorProto:
    """The interface as protobuf describes it, built from the table."""
    file = descriptor_pb2.FileDescriptorProto(name="table", package="aipc.inference", syntax="proto3")
    for name, values in ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number, value in enumerate(values.split()):
            enum.value.add(name=value, number=number)
    for line in MESSAGES.strip().splitlines():
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for text in filter(None, (each.strip() for each in fields.split(", "))):
            _add_field(message, text)
    service = file.service.add(name="InferenceService")
    for name, (request, reply, streams) in METHODS.items():
        service.method.add(
            name=name,
            input_type=f".aipc.inference.{request}",
            output_type=f".aipc.inference.{reply}",
            server_streaming=streams,
        )
    return file


def _add_field(message: descriptor_pb2.DescriptorProto, text: str) -> None:
    """Add ``name=number:[rep ]type[/oneof]``."""
    name, _, rest = text.partition("=")
    number, _, kind = rest.partition(":")
    kind, _, oneof = kind.partition("/")
    field = message.field.add(name=name, number=int(number))
    field.label = _FIELD.LABEL_REPEATED if kind.startswith("rep ") else _FIELD.LABEL_OPTIONAL
    kind = kind.removeprefix("rep ")
    if kind[0].islower():
        field.type = _FIELD.Type.Value(f"TYPE_{kind.upper()}")
    else:
        field.type = _FIELD.TYPE_ENUM if kind in ENUMS else _FIELD.TYPE_MESSAGE
        field.type_name = f".aipc.inference.{kind}"
    if oneof:
        if not message.oneof_decl:
            message.oneof_decl.add(name=oneof)
        field.oneof_index = 0


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(description())


class Messages:
    """The table's messages as classes: ``Messages.Status(success=True)``."""

    def __getattr__(self, name: str) -> Any:
        """Return a message's class."""
        return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"aipc.inference.{name}"))


M = Messages()
OK = M.Status(success=True)

Answer = Callable[[Any, grpc.ServicerContext], Any]


class Runtime:
    """A runtime that answers by the functions it is given, one by method, and keeps what it was asked.

    Parameters
    ----------
    address : str
        Where to listen; ``127.0.0.1:0`` for a free port.
    **answers : callable
        By method: (request, context) -> reply, or an iterator of replies.
    """

    def __init__(self, address: str = "127.0.0.1:0", **answers: Answer) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers: dict[str, Answer] = {
            "Infer": echo,
            "ListModels": lambda *_: M.ModelListResponse(),
            **answers,
        }
        self.cancelled = threading.Event()
        self._server = grpc.server(
            ThreadPoolExecutor(16),
            options=[
                ("grpc.max_receive_message_length", 64 << 20),
                ("grpc.max_send_message_length", 64 << 20),
                ("grpc.so_reuseport", 0),
            ],
        )
        handlers = {name: self._handler(name, *types) for name, types in METHODS.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        port = self._server.add_insecure_port(address)
        self.endpoint = address if address.startswith("unix:") else f"127.0.0.1:{port}"
        self._server.start()

    def _handler(self, name: str, request: str, reply: str, streams: bool) -> grpc.RpcMethodHandler[Any, Any]:
        """Serve one method."""

        def unary(message: Any, context: grpc.ServicerContext) -> Any:
            """Answer once."""
            self.asked.append((name, message))
            if name not in self.answers:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, "not here")
            return self.answers[name](message, context)

        def stream(message: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            """Answer many times, and note when the caller has enough."""
            context.add_callback(lambda: self.cancelled.set())
            yield from unary(message, context)

        make = grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
        return make(
            stream if streams else unary,
            request_deserializer=getattr(M, request).FromString,
            response_serializer=lambda message: (
                message if isinstance(message, bytes) else message.SerializeToString()
            ),
        )

    def last(self, name: str) -> Any:
        """The last request of a method."""
        return next(message for asked, message in reversed(self.asked) if asked == name)

    def stop(self) -> None:
        """End at once, whatever is on its way."""
        self._server.stop(None).wait()

    def __enter__(self) -> Runtime:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self.stop()


def echo(request: Any, _context: grpc.ServicerContext | None = None) -> Any:
    """Answer with the tensors that came; a model called "none" does not exist."""
    if request.model_id == "none":
        return M.InferResponse(status=M.Status(success=False, message="Model not found"))
    return M.InferResponse(
        outputs=request.inputs, status=OK, infer_time_us=7, queue_time_us=3, hw_infer_time_us=2
    )


def slowly(seconds: float) -> Answer:
    """Answer as `echo` does, later."""

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        """Wait, then answer."""
        time.sleep(seconds)
        return echo(request, context)

    return answer


@contextmanager
def slow_link(endpoint: str, seconds: float, silent: threading.Event | None = None) -> Iterator[str]:
    """A link to a runtime that keeps each packet for so long, and all of them while `silent` is set."""
    host, _, port = endpoint.rpartition(":")
    open_sockets: list[socket.socket] = []
    silent = silent or threading.Event()
    lock = threading.Lock()

    def pump(source: socket.socket, target: socket.socket) -> None:
        """Hand on what comes."""
        with suppress(OSError):
            while data := source.recv(65536):
                time.sleep(seconds)
                while silent.is_set():
                    time.sleep(0.01)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def accept(listener: socket.socket) -> None:
        """Take connections until it is closed."""
        with suppress(OSError):
            while True:
                here, _ = listener.accept()
                with lock:
                    open_sockets.append(here)
                there = socket.create_connection((host, int(port)))
                with lock:
                    open_sockets.append(there)
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    listener = socket.create_server(("127.0.0.1", 0))
    taking = threading.Thread(target=accept, args=(listener,), daemon=True)
    taking.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        silent.clear()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        taking.join(10)  # whatever it took is in the list now
        for each in (listener, *open_sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def abort(code: grpc.StatusCode, details: str = "so it is") -> Answer:
    """Answer with a status of gRPC."""

    def answer(_request: Any, context: grpc.ServicerContext) -> Any:
        """Abort."""
        context.abort(code, details)

    return answer


def endless(_request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
    """Send frames until nobody wants them."""
    number = 0
    while context.is_active():
        yield M.StreamInferResponse(frame_sequence=number, timestamp_ns=time.time_ns(), status=OK)
        number += 1
        time.sleep(0.005)


def frames(*good: bool, then: grpc.StatusCode | None = None) -> Answer:
    """Send a frame for each truth value, a failed one for each False; then end, or abort."""

    def answer(_request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """Send them."""
        for number, fine in enumerate(good):
            status = OK if fine else M.Status(success=False, message=f"frame {number} is bad")
            yield M.StreamInferResponse(frame_sequence=number, timestamp_ns=time.time_ns(), status=status)
        if then is not None:
            context.abort(then, "the camera left")

    return answer


def demonstration() -> Runtime:
    """A runtime that answers everything docs/edge.md asks."""
    cat = M.Detection(label="cat", class_id=15, confidence=0.5, bbox=M.BBox(x=0.25, y=0.25, w=0.5, h=0.5))

    def see(request: Any, context: grpc.ServicerContext | None = None) -> Any:
        """Find a cat, with the one model there is."""
        if request.model_id != "yolov8n":
            return M.InferResponse(status=M.Status(message="Model not found"))
        return M.InferResponse(status=OK, post_result=M.PostResult(detections=[cat]), infer_time_us=5000)

    return Runtime(
        Infer=see,
        InferBatch=lambda request, _: M.InferBatchResponse(
            responses=[see(each) for each in request.requests]
        ),
        StreamInfer=endless,
        RegisterModel=lambda request, _: M.ModelRegisterResponse(model_id=request.model_id, status=OK),
        ListModels=lambda *_: M.ModelListResponse(models=[M.ModelInfo(model_id="yolov8n")]),
        GetModelInfo=abort(grpc.StatusCode.NOT_FOUND),
        UpdatePostprocessConfig=lambda *_: M.UpdatePostprocessConfigResponse(status=OK),
        GetStats=lambda *_: M.SystemStats(cpu_utilization=0.5),
        CreateSession=lambda *_: M.SessionCreateResponse(session_id="s", status=OK),
        DestroySession=lambda *_: OK,
    )
