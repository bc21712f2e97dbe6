"""A runtime built on the vendor's compiled messages and service; run by their interpreter.

It prints its address, then a line for each request: the method, and the request as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf import json_format
from neoruntime_ipc_sdk.proto import inference_pb2 as pb
from neoruntime_ipc_sdk.proto import inference_pb2_grpc

OK = pb.Status(success=True)
FOUND = pb.PostResult(
    detections=[
        pb.Detection(bbox=pb.BBox(x=0.25, y=0.5, w=0.5, h=0.25), confidence=0.5, class_id=3, label="cat")
    ],
    classifications=[pb.Classification(type="scene", class_id=1, label="street", confidence=0.75)],
    landmarks=[pb.LandmarkSet(type="face", points=[pb.Point2D(x=0.5, y=0.25, confidence=1.0)])],
    # Two runs: start 1, length 2; start 133, length 3.
    masks=[
        pb.SegmentationMask(
            class_id=2, label="road", mask_rle=b"\x01\x02\x85\x01\x03", mask_width=20, mask_height=10
        )
    ],
    ocr_lines=[pb.OcrLine(bbox=pb.BBox(x=0, y=0, w=1, h=0.5), text="STOP", confidence=0.5)],
    embeddings=[pb.Embedding(data=[1.0, -2.0], dim=2)],
    depth_maps=[pb.DepthMap(width=2, height=1, depth_data=b"\0\0\x80?\0\0\0@")],
)


def tell(value: object) -> None:
    """Write a line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


class Servicer(inference_pb2_grpc.InferenceServiceServicer):
    """Answers by the book, and tells what it was asked."""

    def _told(self, name: str, request: Any) -> None:
        """Print a request."""
        message = json_format.MessageToDict(request, preserving_proto_field_name=True)
        tell([name, message])

    def RegisterModel(self, request: Any, context: Any) -> Any:
        """Take any but one."""
        self._told("RegisterModel", request)
        if request.model_path == "/bad":
            return pb.ModelRegisterResponse(status=pb.Status(success=False, message="Failed to load"))
        return pb.ModelRegisterResponse(model_id=request.model_id, status=OK)

    def UnregisterModel(self, request: Any, context: Any) -> Any:
        """Know one."""
        self._told("UnregisterModel", request)
        known = request.model_id == "m"
        return OK if known else pb.Status(success=False, message="Failed to unregister")

    def _info(self) -> Any:
        """The only model."""
        spec = pb.TensorSpec(shape=[1, 640, 640, 3], dtype=pb.UINT8, name="images", layout="NHWC")
        return pb.ModelInfo(
            inputs=[spec], outputs=[pb.TensorSpec(shape=[84], dtype=pb.FLOAT32, name="out")],
            model_id="m", name="M", model_path="/m.hef", version="1", load_timestamp=7, owner_id="me",
        )  # fmt: skip

    def ListModels(self, request: Any, context: Any) -> Any:
        """One."""
        self._told("ListModels", request)
        return pb.ModelListResponse(models=[self._info()])

    def GetModelInfo(self, request: Any, context: Any) -> Any:
        """Know one."""
        self._told("GetModelInfo", request)
        if request.model_id != "m":
            context.abort(grpc.StatusCode.NOT_FOUND, "Model not found")
        return self._info()

    def Infer(self, request: Any, context: Any) -> Any:
        """Answer the picture's first bytes as tensors, and everything there is."""
        if request.model_id != "m":
            return pb.InferResponse(status=pb.Status(success=False, message="Model not found"))
        if request.model_id == "m" and request.timeout_ms == 50:
            time.sleep(1)
        return pb.InferResponse(
            outputs=request.inputs, status=OK, post_result=FOUND,
            infer_time_us=request.timeout_ms, queue_time_us=request.priority, hw_infer_time_us=3,
        )  # fmt: skip

    def InferBatch(self, request: Any, context: Any) -> Any:
        """Answer each."""
        answers = [self.Infer(one, context) for one in request.requests]
        good = sum(one.status.success for one in answers)
        status = pb.Status(success=good == len(answers), message=f"{good}/{len(answers)} succeeded")
        return pb.InferBatchResponse(responses=answers, status=status, total_time_us=9)

    def StreamInfer(self, request: Any, context: Any) -> Iterator[Any]:
        """Send frames until nobody wants them; every fourth is a failed one."""
        self._told("StreamInfer", request)
        if request.model_id != "m":
            context.abort(grpc.StatusCode.NOT_FOUND, "Model not found")
        gone = threading.Event()
        context.add_callback(gone.set)
        number = 0
        while not gone.wait(0.005):
            status = pb.Status(success=False, message="bad") if number % 4 == 3 else OK
            yield pb.StreamInferResponse(
                frame_sequence=number, timestamp_ns=time.time_ns(), status=status, post_result=FOUND
            )
            number += 1
        tell(["cancelled", {}])

    def CreateSession(self, request: Any, context: Any) -> Any:
        """Choose a name of its own, as theirs does."""
        self._told("CreateSession", request)
        return pb.SessionCreateResponse(session_id=f"{request.app_id}-stream-model-1", status=OK)

    def DestroySession(self, request: Any, context: Any) -> Any:
        """Know one."""
        self._told("DestroySession", request)
        known = request.session_id == "app-stream-model-1"
        return OK if known else pb.Status(success=False, message="Session not found")

    def GetStats(self, request: Any, context: Any) -> Any:
        """Some counters."""
        stats = pb.InferenceStats(model_id="m", total_inferences=5, current_qps=2.5, queue_depth=1)
        return pb.SystemStats(
            model_stats=[stats], device_utilization=0.5, cpu_utilization=-1, ram_total_kib=4
        )

    def UpdatePostprocessConfig(self, request: Any, context: Any) -> Any:
        """Know one key."""
        self._told("UpdatePostprocessConfig", request)
        good = "detection_threshold" in request.config_json
        status = OK if good else pb.Status(success=False, message="Failed to update config: -3")
        return pb.UpdatePostprocessConfigResponse(status=status)

    def EncodeText(self, request: Any, context: Any) -> Any:
        """Leave `success` unset, as theirs does."""
        if not request.text:
            return pb.EncodeTextResponse(status=pb.Status(code=1, message="empty text"))
        return pb.EncodeTextResponse(embedding=pb.Embedding(data=[0.5, 0.25], dim=2))

    def GenaiCreateSession(self, request: Any, context: Any) -> Any:
        """Open one."""
        self._told("GenaiCreateSession", request)
        return pb.GenaiCreateSessionResponse(session_id="genai_1")

    def GenaiDestroySession(self, request: Any, context: Any) -> Any:
        """Say what came: the id lies in another field."""
        self._told("GenaiDestroySession", request)
        return pb.Status()

    def GenaiGenerate(self, request: Any, context: Any) -> Iterator[Any]:
        """Two tokens and a reason."""
        self._told("GenaiGenerate", request)
        for token in ("Hel", "lo"):
            yield pb.GenaiGenerateResponse(token=token)
        yield pb.GenaiGenerateResponse(finish=pb.GENAI_FINISH_MAX_TOKENS)

    def GenaiAbort(self, request: Any, context: Any) -> Any:
        """Know one."""
        self._told("GenaiAbort", request)
        return pb.Status(success=request.session_id == "genai_1")


def main() -> None:
    """Serve until stdin ends."""
    size = 64 << 20
    options = [("grpc.max_receive_message_length", size), ("grpc.max_send_message_length", size)]
    server = grpc.server(ThreadPoolExecutor(8), options=options)
    inference_pb2_grpc.add_InferenceServiceServicer_to_server(Servicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    tell(f"127.0.0.1:{port}")
    sys.stdin.read()
    server.stop(None).wait()


if __name__ == "__main__":
    main()
