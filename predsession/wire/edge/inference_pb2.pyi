from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DataType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UINT8: _ClassVar[DataType]
    INT8: _ClassVar[DataType]
    UINT16: _ClassVar[DataType]
    INT16: _ClassVar[DataType]
    FLOAT16: _ClassVar[DataType]
    FLOAT32: _ClassVar[DataType]
    INT32: _ClassVar[DataType]
    UINT32: _ClassVar[DataType]

class GenaiKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GENAI_KIND_LLM: _ClassVar[GenaiKind]
    GENAI_KIND_VLM: _ClassVar[GenaiKind]

class GenaiFinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DONE: _ClassVar[GenaiFinishReason]
    ABORTED: _ClassVar[GenaiFinishReason]
    MAX_TOKENS: _ClassVar[GenaiFinishReason]
    ERROR: _ClassVar[GenaiFinishReason]
UINT8: DataType
INT8: DataType
UINT16: DataType
INT16: DataType
FLOAT16: DataType
FLOAT32: DataType
INT32: DataType
UINT32: DataType
GENAI_KIND_LLM: GenaiKind
GENAI_KIND_VLM: GenaiKind
DONE: GenaiFinishReason
ABORTED: GenaiFinishReason
MAX_TOKENS: GenaiFinishReason
ERROR: GenaiFinishReason

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Status(_message.Message):
    __slots__ = ("success", "message", "code")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    success: bool
    message: str
    code: int
    def __init__(self, success: bool = ..., message: _Optional[str] = ..., code: _Optional[int] = ...) -> None: ...

class TensorSpec(_message.Message):
    __slots__ = ("shape", "dtype", "name", "layout", "byte_size")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    BYTE_SIZE_FIELD_NUMBER: _ClassVar[int]
    shape: _containers.RepeatedScalarFieldContainer[int]
    dtype: DataType
    name: str
    layout: str
    byte_size: int
    def __init__(self, shape: _Optional[_Iterable[int]] = ..., dtype: _Optional[_Union[DataType, str]] = ..., name: _Optional[str] = ..., layout: _Optional[str] = ..., byte_size: _Optional[int] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ("shape", "dtype", "data", "dma_fd", "buffer_id")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DMA_FD_FIELD_NUMBER: _ClassVar[int]
    BUFFER_ID_FIELD_NUMBER: _ClassVar[int]
    shape: _containers.RepeatedScalarFieldContainer[int]
    dtype: DataType
    data: bytes
    dma_fd: int
    buffer_id: int
    def __init__(self, shape: _Optional[_Iterable[int]] = ..., dtype: _Optional[_Union[DataType, str]] = ..., data: _Optional[bytes] = ..., dma_fd: _Optional[int] = ..., buffer_id: _Optional[int] = ...) -> None: ...

class ModelRegisterRequest(_message.Message):
    __slots__ = ("model_path", "model_id", "inputs", "outputs", "estimated_tops", "estimated_memory", "owner_id", "model_type", "model_variant", "transient", "raw_output_only", "batch_size")
    MODEL_PATH_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_TOPS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_MEMORY_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_TYPE_FIELD_NUMBER: _ClassVar[int]
    MODEL_VARIANT_FIELD_NUMBER: _ClassVar[int]
    TRANSIENT_FIELD_NUMBER: _ClassVar[int]
    RAW_OUTPUT_ONLY_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    model_path: str
    model_id: str
    inputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    outputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    estimated_tops: float
    estimated_memory: int
    owner_id: str
    model_type: str
    model_variant: str
    transient: bool
    raw_output_only: bool
    batch_size: int
    def __init__(self, model_path: _Optional[str] = ..., model_id: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping[str, object]]]] = ..., outputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping[str, object]]]] = ..., estimated_tops: _Optional[float] = ..., estimated_memory: _Optional[int] = ..., owner_id: _Optional[str] = ..., model_type: _Optional[str] = ..., model_variant: _Optional[str] = ..., transient: bool = ..., raw_output_only: bool = ..., batch_size: _Optional[int] = ...) -> None: ...

class ModelRegisterResponse(_message.Message):
    __slots__ = ("model_id", "status")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    status: Status
    def __init__(self, model_id: _Optional[str] = ..., status: _Optional[_Union[Status, _Mapping[str, object]]] = ...) -> None: ...

class ModelInfo(_message.Message):
    __slots__ = ("model_id", "name", "model_path", "version", "inputs", "outputs", "estimated_tops", "estimated_memory", "load_timestamp", "owner_id", "transient", "batch_size")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODEL_PATH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_TOPS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_MEMORY_FIELD_NUMBER: _ClassVar[int]
    LOAD_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    TRANSIENT_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    name: str
    model_path: str
    version: str
    inputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    outputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    estimated_tops: float
    estimated_memory: int
    load_timestamp: int
    owner_id: str
    transient: bool
    batch_size: int
    def __init__(self, model_id: _Optional[str] = ..., name: _Optional[str] = ..., model_path: _Optional[str] = ..., version: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping[str, object]]]] = ..., outputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping[str, object]]]] = ..., estimated_tops: _Optional[float] = ..., estimated_memory: _Optional[int] = ..., load_timestamp: _Optional[int] = ..., owner_id: _Optional[str] = ..., transient: bool = ..., batch_size: _Optional[int] = ...) -> None: ...

class ModelListResponse(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[ModelInfo]
    def __init__(self, models: _Optional[_Iterable[_Union[ModelInfo, _Mapping[str, object]]]] = ...) -> None: ...

class InferRequest(_message.Message):
    __slots__ = ("model_id", "inputs", "timeout_ms", "priority", "session_id")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    inputs: _containers.RepeatedCompositeFieldContainer[Tensor]
    timeout_ms: int
    priority: int
    session_id: str
    def __init__(self, model_id: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[Tensor, _Mapping[str, object]]]] = ..., timeout_ms: _Optional[int] = ..., priority: _Optional[int] = ..., session_id: _Optional[str] = ...) -> None: ...

class InferResponse(_message.Message):
    __slots__ = ("outputs", "status", "post_result", "infer_time_us", "queue_time_us", "hw_infer_time_us")
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    POST_RESULT_FIELD_NUMBER: _ClassVar[int]
    INFER_TIME_US_FIELD_NUMBER: _ClassVar[int]
    QUEUE_TIME_US_FIELD_NUMBER: _ClassVar[int]
    HW_INFER_TIME_US_FIELD_NUMBER: _ClassVar[int]
    outputs: _containers.RepeatedCompositeFieldContainer[Tensor]
    status: Status
    post_result: PostResult
    infer_time_us: int
    queue_time_us: int
    hw_infer_time_us: int
    def __init__(self, outputs: _Optional[_Iterable[_Union[Tensor, _Mapping[str, object]]]] = ..., status: _Optional[_Union[Status, _Mapping[str, object]]] = ..., post_result: _Optional[_Union[PostResult, _Mapping[str, object]]] = ..., infer_time_us: _Optional[int] = ..., queue_time_us: _Optional[int] = ..., hw_infer_time_us: _Optional[int] = ...) -> None: ...

class BBox(_message.Message):
    __slots__ = ("x", "y", "w", "h")
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    W_FIELD_NUMBER: _ClassVar[int]
    H_FIELD_NUMBER: _ClassVar[int]
    x: float
    y: float
    w: float
    h: float
    def __init__(self, x: _Optional[float] = ..., y: _Optional[float] = ..., w: _Optional[float] = ..., h: _Optional[float] = ...) -> None: ...

class Detection(_message.Message):
    __slots__ = ("bbox", "confidence", "class_id", "label")
    BBOX_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    bbox: BBox
    confidence: float
    class_id: int
    label: str
    def __init__(self, bbox: _Optional[_Union[BBox, _Mapping[str, object]]] = ..., confidence: _Optional[float] = ..., class_id: _Optional[int] = ..., label: _Optional[str] = ...) -> None: ...

class Point2D(_message.Message):
    __slots__ = ("x", "y", "confidence")
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    x: float
    y: float
    confidence: float
    def __init__(self, x: _Optional[float] = ..., y: _Optional[float] = ..., confidence: _Optional[float] = ...) -> None: ...

class LandmarkSet(_message.Message):
    __slots__ = ("type", "points")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    type: str
    points: _containers.RepeatedCompositeFieldContainer[Point2D]
    def __init__(self, type: _Optional[str] = ..., points: _Optional[_Iterable[_Union[Point2D, _Mapping[str, object]]]] = ...) -> None: ...

class Classification(_message.Message):
    __slots__ = ("type", "class_id", "label", "confidence")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    type: str
    class_id: int
    label: str
    confidence: float
    def __init__(self, type: _Optional[str] = ..., class_id: _Optional[int] = ..., label: _Optional[str] = ..., confidence: _Optional[float] = ...) -> None: ...

class SegmentationMask(_message.Message):
    __slots__ = ("class_id", "label", "confidence", "bbox", "mask_rle", "mask_width", "mask_height")
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    BBOX_FIELD_NUMBER: _ClassVar[int]
    MASK_RLE_FIELD_NUMBER: _ClassVar[int]
    MASK_WIDTH_FIELD_NUMBER: _ClassVar[int]
    MASK_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    class_id: int
    label: str
    confidence: float
    bbox: BBox
    mask_rle: bytes
    mask_width: int
    mask_height: int
    def __init__(self, class_id: _Optional[int] = ..., label: _Optional[str] = ..., confidence: _Optional[float] = ..., bbox: _Optional[_Union[BBox, _Mapping[str, object]]] = ..., mask_rle: _Optional[bytes] = ..., mask_width: _Optional[int] = ..., mask_height: _Optional[int] = ...) -> None: ...

class OcrLine(_message.Message):
    __slots__ = ("bbox", "text", "confidence")
    BBOX_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    bbox: BBox
    text: str
    confidence: float
    def __init__(self, bbox: _Optional[_Union[BBox, _Mapping[str, object]]] = ..., text: _Optional[str] = ..., confidence: _Optional[float] = ...) -> None: ...

class Embedding(_message.Message):
    __slots__ = ("data", "dim")
    DATA_FIELD_NUMBER: _ClassVar[int]
    DIM_FIELD_NUMBER: _ClassVar[int]
    data: _containers.RepeatedScalarFieldContainer[float]
    dim: int
    def __init__(self, data: _Optional[_Iterable[float]] = ..., dim: _Optional[int] = ...) -> None: ...

class DepthMap(_message.Message):
    __slots__ = ("width", "height", "depth_data")
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_DATA_FIELD_NUMBER: _ClassVar[int]
    width: int
    height: int
    depth_data: bytes
    def __init__(self, width: _Optional[int] = ..., height: _Optional[int] = ..., depth_data: _Optional[bytes] = ...) -> None: ...

class PostResult(_message.Message):
    __slots__ = ("detections", "classifications", "landmarks", "masks", "ocr_lines", "embeddings", "depth_maps")
    DETECTIONS_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    LANDMARKS_FIELD_NUMBER: _ClassVar[int]
    MASKS_FIELD_NUMBER: _ClassVar[int]
    OCR_LINES_FIELD_NUMBER: _ClassVar[int]
    EMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    DEPTH_MAPS_FIELD_NUMBER: _ClassVar[int]
    detections: _containers.RepeatedCompositeFieldContainer[Detection]
    classifications: _containers.RepeatedCompositeFieldContainer[Classification]
    landmarks: _containers.RepeatedCompositeFieldContainer[LandmarkSet]
    masks: _containers.RepeatedCompositeFieldContainer[SegmentationMask]
    ocr_lines: _containers.RepeatedCompositeFieldContainer[OcrLine]
    embeddings: _containers.RepeatedCompositeFieldContainer[Embedding]
    depth_maps: _containers.RepeatedCompositeFieldContainer[DepthMap]
    def __init__(self, detections: _Optional[_Iterable[_Union[Detection, _Mapping[str, object]]]] = ..., classifications: _Optional[_Iterable[_Union[Classification, _Mapping[str, object]]]] = ..., landmarks: _Optional[_Iterable[_Union[LandmarkSet, _Mapping[str, object]]]] = ..., masks: _Optional[_Iterable[_Union[SegmentationMask, _Mapping[str, object]]]] = ..., ocr_lines: _Optional[_Iterable[_Union[OcrLine, _Mapping[str, object]]]] = ..., embeddings: _Optional[_Iterable[_Union[Embedding, _Mapping[str, object]]]] = ..., depth_maps: _Optional[_Iterable[_Union[DepthMap, _Mapping[str, object]]]] = ...) -> None: ...

class InferBatchRequest(_message.Message):
    __slots__ = ("requests", "timeout_ms")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[InferRequest]
    timeout_ms: int
    def __init__(self, requests: _Optional[_Iterable[_Union[InferRequest, _Mapping[str, object]]]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class InferBatchResponse(_message.Message):
    __slots__ = ("responses", "status", "total_time_us")
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TIME_US_FIELD_NUMBER: _ClassVar[int]
    responses: _containers.RepeatedCompositeFieldContainer[InferResponse]
    status: Status
    total_time_us: int
    def __init__(self, responses: _Optional[_Iterable[_Union[InferResponse, _Mapping[str, object]]]] = ..., status: _Optional[_Union[Status, _Mapping[str, object]]] = ..., total_time_us: _Optional[int] = ...) -> None: ...

class StreamInferRequest(_message.Message):
    __slots__ = ("model_id", "stream_id", "fps_limit", "session_id", "raw_output_only")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    FPS_LIMIT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    RAW_OUTPUT_ONLY_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    stream_id: str
    fps_limit: int
    session_id: str
    raw_output_only: bool
    def __init__(self, model_id: _Optional[str] = ..., stream_id: _Optional[str] = ..., fps_limit: _Optional[int] = ..., session_id: _Optional[str] = ..., raw_output_only: bool = ...) -> None: ...

class StreamInferResponse(_message.Message):
    __slots__ = ("frame_sequence", "timestamp_ns", "outputs", "status", "post_result", "skew_us")
    FRAME_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_NS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    POST_RESULT_FIELD_NUMBER: _ClassVar[int]
    SKEW_US_FIELD_NUMBER: _ClassVar[int]
    frame_sequence: int
    timestamp_ns: int
    outputs: _containers.RepeatedCompositeFieldContainer[Tensor]
    status: Status
    post_result: PostResult
    skew_us: int
    def __init__(self, frame_sequence: _Optional[int] = ..., timestamp_ns: _Optional[int] = ..., outputs: _Optional[_Iterable[_Union[Tensor, _Mapping[str, object]]]] = ..., status: _Optional[_Union[Status, _Mapping[str, object]]] = ..., post_result: _Optional[_Union[PostResult, _Mapping[str, object]]] = ..., skew_us: _Optional[int] = ...) -> None: ...

class SessionConfig(_message.Message):
    __slots__ = ("session_id", "app_id", "allowed_models", "max_qps", "max_concurrent", "priority")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    APP_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_MODELS_FIELD_NUMBER: _ClassVar[int]
    MAX_QPS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    app_id: str
    allowed_models: _containers.RepeatedScalarFieldContainer[str]
    max_qps: int
    max_concurrent: int
    priority: int
    def __init__(self, session_id: _Optional[str] = ..., app_id: _Optional[str] = ..., allowed_models: _Optional[_Iterable[str]] = ..., max_qps: _Optional[int] = ..., max_concurrent: _Optional[int] = ..., priority: _Optional[int] = ...) -> None: ...

class SessionCreateResponse(_message.Message):
    __slots__ = ("session_id", "status")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    status: Status
    def __init__(self, session_id: _Optional[str] = ..., status: _Optional[_Union[Status, _Mapping[str, object]]] = ...) -> None: ...

class InferenceStats(_message.Message):
    __slots__ = ("model_id", "total_inferences", "total_errors", "avg_latency_us", "current_qps", "queue_depth", "hw_fps", "avg_skew_us", "max_skew_us", "skew_samples")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    TOTAL_INFERENCES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ERRORS_FIELD_NUMBER: _ClassVar[int]
    AVG_LATENCY_US_FIELD_NUMBER: _ClassVar[int]
    CURRENT_QPS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DEPTH_FIELD_NUMBER: _ClassVar[int]
    HW_FPS_FIELD_NUMBER: _ClassVar[int]
    AVG_SKEW_US_FIELD_NUMBER: _ClassVar[int]
    MAX_SKEW_US_FIELD_NUMBER: _ClassVar[int]
    SKEW_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    total_inferences: int
    total_errors: int
    avg_latency_us: int
    current_qps: float
    queue_depth: int
    hw_fps: float
    avg_skew_us: int
    max_skew_us: int
    skew_samples: int
    def __init__(self, model_id: _Optional[str] = ..., total_inferences: _Optional[int] = ..., total_errors: _Optional[int] = ..., avg_latency_us: _Optional[int] = ..., current_qps: _Optional[float] = ..., queue_depth: _Optional[int] = ..., hw_fps: _Optional[float] = ..., avg_skew_us: _Optional[int] = ..., max_skew_us: _Optional[int] = ..., skew_samples: _Optional[int] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ("sampling_window_ms",)
    SAMPLING_WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    sampling_window_ms: int
    def __init__(self, sampling_window_ms: _Optional[int] = ...) -> None: ...

class SystemStats(_message.Message):
    __slots__ = ("model_stats", "device_utilization", "device_temperature", "total_memory_bytes", "used_memory_bytes", "cpu_utilization", "dsp_utilization", "ram_total_kib", "ram_used_kib")
    MODEL_STATS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    DEVICE_TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    USED_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    DSP_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    RAM_TOTAL_KIB_FIELD_NUMBER: _ClassVar[int]
    RAM_USED_KIB_FIELD_NUMBER: _ClassVar[int]
    model_stats: _containers.RepeatedCompositeFieldContainer[InferenceStats]
    device_utilization: float
    device_temperature: float
    total_memory_bytes: int
    used_memory_bytes: int
    cpu_utilization: float
    dsp_utilization: float
    ram_total_kib: int
    ram_used_kib: int
    def __init__(self, model_stats: _Optional[_Iterable[_Union[InferenceStats, _Mapping[str, object]]]] = ..., device_utilization: _Optional[float] = ..., device_temperature: _Optional[float] = ..., total_memory_bytes: _Optional[int] = ..., used_memory_bytes: _Optional[int] = ..., cpu_utilization: _Optional[float] = ..., dsp_utilization: _Optional[float] = ..., ram_total_kib: _Optional[int] = ..., ram_used_kib: _Optional[int] = ...) -> None: ...

class UpdatePostprocessConfigRequest(_message.Message):
    __slots__ = ("model_id", "config_json")
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    model_id: str
    config_json: str
    def __init__(self, model_id: _Optional[str] = ..., config_json: _Optional[str] = ...) -> None: ...

class UpdatePostprocessConfigResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: Status
    def __init__(self, status: _Optional[_Union[Status, _Mapping[str, object]]] = ...) -> None: ...

class EncodeTextRequest(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class EncodeTextResponse(_message.Message):
    __slots__ = ("embedding", "status")
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    embedding: Embedding
    status: Status
    def __init__(self, embedding: _Optional[_Union[Embedding, _Mapping[str, object]]] = ..., status: _Optional[_Union[Status, _Mapping[str, object]]] = ...) -> None: ...

class GenaiGeneratorParams(_message.Message):
    __slots__ = ("temperature", "top_p", "top_k", "frequency_penalty", "max_generated_tokens", "do_sample")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_PENALTY_FIELD_NUMBER: _ClassVar[int]
    MAX_GENERATED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DO_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_p: float
    top_k: int
    frequency_penalty: float
    max_generated_tokens: int
    do_sample: bool
    def __init__(self, temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_k: _Optional[int] = ..., frequency_penalty: _Optional[float] = ..., max_generated_tokens: _Optional[int] = ..., do_sample: bool = ...) -> None: ...

class GenaiCreateSessionRequest(_message.Message):
    __slots__ = ("hef_path", "kind", "lora_name", "optimize_memory", "session_id")
    HEF_PATH_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LORA_NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZE_MEMORY_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    hef_path: str
    kind: GenaiKind
    lora_name: str
    optimize_memory: bool
    session_id: str
    def __init__(self, hef_path: _Optional[str] = ..., kind: _Optional[_Union[GenaiKind, str]] = ..., lora_name: _Optional[str] = ..., optimize_memory: bool = ..., session_id: _Optional[str] = ...) -> None: ...

class GenaiCreateSessionResponse(_message.Message):
    __slots__ = ("session_id", "status")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    status: Status
    def __init__(self, session_id: _Optional[str] = ..., status: _Optional[_Union[Status, _Mapping[str, object]]] = ...) -> None: ...

class GenaiGenerateRequest(_message.Message):
    __slots__ = ("session_id", "messages_json", "params", "image_frames", "stop_tokens")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_JSON_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FRAMES_FIELD_NUMBER: _ClassVar[int]
    STOP_TOKENS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    messages_json: _containers.RepeatedScalarFieldContainer[str]
    params: GenaiGeneratorParams
    image_frames: _containers.RepeatedScalarFieldContainer[bytes]
    stop_tokens: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, session_id: _Optional[str] = ..., messages_json: _Optional[_Iterable[str]] = ..., params: _Optional[_Union[GenaiGeneratorParams, _Mapping[str, object]]] = ..., image_frames: _Optional[_Iterable[bytes]] = ..., stop_tokens: _Optional[_Iterable[str]] = ...) -> None: ...

class GenaiGenerateResponse(_message.Message):
    __slots__ = ("token", "finish")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    token: str
    finish: GenaiFinishReason
    def __init__(self, token: _Optional[str] = ..., finish: _Optional[_Union[GenaiFinishReason, str]] = ...) -> None: ...

class GenaiAbortRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...
