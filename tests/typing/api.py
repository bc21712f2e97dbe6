"""How callers use the package, as a type checker sees it. Only checked, never run.

scripts/package checks it against the installed wheel, with mypy and pyright, both in their strict modes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt

import predsession
from predsession import (
    AuthError,
    ClassInfo,
    ConnectError,
    ConnectionOptions,
    DeployedModel,
    ItemError,
    JobError,
    JobFailedError,
    JobTimeoutError,
    MaskCrop,
    MissingExtraError,
    ModelMeta,
    Prediction,
    PredictionSession,
    PredSessionError,
    Report,
    ResponseError,
    Saved,
    ServerInfo,
    SessionProgress,
    SessionStatus,
    Size,
    Skeleton,
    SkeletonEdge,
    SkeletonNode,
    SourceError,
    Tag,
    TagInfo,
    Track,
    connect,
    grid,
    read_predictions,
    save_predictions,
)
from predsession.doctor import Examination, Finding, Verdict, examine
from predsession.edge import BatchInferItem, DetectedObject, InferenceClient, InferenceResult, ModelInfo
from predsession.stream import (
    Batch,
    DeadLetter,
    FolderSource,
    IterableSource,
    ResultDataset,
    Sample,
    Source,
    StreamSession,
    open_results,
    read_letters,
)
from predsession.tensor import (
    HTensor,
    TensorInfo,
    TensorSession,
    deinit_model,
    deinit_server,
    init_model,
    init_server,
)
from predsession.testing import Fault, FaultyServer, RandomFaults, RunningServer, box_number, number_picture

Pixels = npt.NDArray[np.uint8]


def iterate(array: Pixels) -> None:
    """Iterate predictions; `if prediction:` tells one from an item error."""
    with PredictionSession("http://127.0.0.1:8000", [array, "a.jpg", Path("b.png")], conf=0.5) as session:
        assert_type(len(session), int)
        for outcome in session:
            assert_type(outcome, Prediction | ItemError)
            if outcome:
                assert_type(outcome, Prediction)
                read(outcome)
            if isinstance(outcome, ItemError):  # pyright takes what has a length to be falsy now and then
                assert_type(outcome.reason, str)
    assert_type(session.report(), Report)


def look(session: PredictionSession) -> None:
    """Look at a session."""
    assert_type(session.progress(), SessionProgress)
    assert_type(session.status(), SessionStatus)
    assert_type(session.model_meta, ModelMeta)
    assert_type(session.errors, tuple[ItemError, ...])
    assert_type(session.inference_request_uuid, str | None)
    assert_type(session.next(timeout=1.0), Prediction | ItemError)


def read(prediction: Prediction) -> None:
    """Read a prediction."""
    assert_type(len(prediction), int)
    assert_type(prediction.name, str)
    assert_type(prediction.index, int)
    assert_type(prediction.path, str | None)
    assert_type(prediction.timestamp, float | None)
    assert_type(prediction.size, Size)
    assert_type(prediction.size.width, int)
    assert_type(prediction.boxes, npt.NDArray[np.float32])
    assert_type(prediction.scores, npt.NDArray[np.float32])
    assert_type(prediction.class_ids, npt.NDArray[np.int64])
    assert_type(prediction.classes, npt.NDArray[np.object_])
    assert_type(prediction.masks, npt.NDArray[np.bool_])
    assert_type(prediction.mask_crops, tuple[MaskCrop, ...])
    assert_type(prediction.mask_crops[0].mask, npt.NDArray[np.bool_])
    assert_type(prediction.polygons[0][0], npt.NDArray[np.float32])
    assert_type(prediction.keypoints, npt.NDArray[np.float32])
    assert_type(prediction.track_ids, npt.NDArray[np.int64] | None)
    assert_type(prediction.frame_index, int | None)
    assert_type(prediction.tags, tuple[Tag, ...])
    assert_type(prediction.tags[0].name, str)
    assert_type(prediction.load_image(), Pixels)
    assert_type(prediction.visualize(save_dir=Path("drawn"), opacity=0.5), Pixels)
    assert_type(prediction.where(prediction.scores > 0.5), Prediction)
    assert_type(Prediction.from_json(prediction.to_json()), Prediction)


def make(boxes: npt.NDArray[np.float32], names: list[str]) -> Prediction:
    """Make a prediction of arrays, and a model's classes."""
    meta = ModelMeta.from_names(names)
    assert_type(meta.names, tuple[str, ...])
    assert_type(meta.find("cat"), ClassInfo | None)
    skeleton = Skeleton((SkeletonNode("nose"), SkeletonNode("tail")), (SkeletonEdge("nose", "tail"),))
    fish = ClassInfo("fish", "graph", skeleton=skeleton)
    assert_type(ModelMeta((*meta.classes, fish), (TagInfo("confidence", "any_number"),)), ModelMeta)
    return Prediction.from_arrays(size=(640, 480), boxes=boxes, class_ids=[0], meta=meta)


def keep(session: PredictionSession, folder: Path) -> None:
    """Write predictions into files, and read them back."""
    assert_type(session.save(folder / "ann.json", overwrite=True), Saved)
    assert_type(session.to_html("report.html"), Saved)
    saved = session.save("dataset", "yolo", images="copy", scores=True)
    assert_type(saved.left_out, Mapping[str, int])
    assert_type(saved.path, str)
    assert_type(read_predictions("ann.json"), Iterator[Prediction])
    assert_type(read_predictions("preds.jsonl", on_error="yield"), Iterator[Prediction | ItemError])
    assert_type(save_predictions(read_predictions(folder, "voc"), "p.csv", append=True, root=folder), Saved)


def go_on(predictions: list[Prediction]) -> None:
    """Go on in other packages, and look at several."""
    assert_type(predictions[0].counts(), Counter[str])
    json.dumps(predictions[0].to_geojson((1, 0, 0, 0, -1, 0), crs=32633))
    assert_type(repr(grid(predictions, columns=2, limit=8)), str)


def follow(clip: Path) -> None:
    """Run a clip with tracking; go on after a crash, and from another process."""
    with PredictionSession(
        None, clip, tracking=True, stride=5, end_frame=100, resume="run.journal"
    ) as session:
        for outcome in session:
            assert_type(outcome, Prediction | ItemError)
        assert_type(session.tracks, list[Track])
        assert_type(session.tracks[0].boxes, npt.NDArray[np.float32])
        assert_type(session.detach(), str)
    with PredictionSession.attach("http://127.0.0.1:8000", "id", on_error="skip") as again:
        assert_type(again, PredictionSession)


def ask(token: str | None) -> None:
    """Ask a model."""
    model = connect("http://127.0.0.1:8000", token=token, connection=ConnectionOptions(verify="ca.pem"))
    assert_type(model, DeployedModel)
    with model:
        assert_type(model.info, ServerInfo)
        assert_type(model.classes, tuple[str, ...])
        assert_type(model.predict_one("a.jpg"), Prediction)
        assert_type(model.predict(["a.jpg"], conf=0.4), list[Prediction])
        assert_type(model.predict_detached("photos/"), PredictionSession)
        assert_type(model.is_deployed(), bool)


def fail() -> None:
    """Catch what can go wrong, the special before the general."""
    try:
        connect().predict_one("a.jpg")
    except ConnectError as error:
        assert_type(error.permanent, bool)
    except AuthError as error:
        assert_type(error.status, int)
    except ResponseError as error:
        assert_type(error.retry_after, float | None)
    except JobFailedError as error:
        assert_type(error.traceback, str)
    except JobTimeoutError as error:
        assert_type(error.uuid, str)
    except JobError as error:
        assert_type(error.items, tuple[str, ...])
    except ItemError as error:
        assert_type(error.index, int)
    except MissingExtraError as error:
        assert_type(error.extra, str)
    except (SourceError, PredSessionError) as error:
        assert_type(str(error), str)
    assert_type(predsession.__version__, str)


def look_after(url: str) -> None:
    """Look what is wrong."""
    told: list[str] = []

    def note(finding: Finding) -> None:
        told.append(finding.text)

    examination = examine(url, verify="ca.pem", on_finding=note)
    assert_type(examination, Examination)
    for finding in examination:
        assert_type(finding, Finding)
        assert_type(finding.verdict is Verdict.BAD, bool)


async def iterate_async() -> None:
    """Iterate from an event loop."""
    async with PredictionSession(input="photos/", api_setting=3, on_error="yield") as session:
        async for outcome in session:
            assert_type(outcome, Prediction | ItemError)


def edge(array: Pixels) -> None:
    """Ask an edge runtime."""
    with InferenceClient("127.0.0.1:50051") as client:
        assert_type(client.infer(array, "m"), InferenceResult)
        assert_type(client.infer_async(array, "m"), Future[InferenceResult])
        assert_type(client.infer_batch([BatchInferItem(array, "m")]), list[InferenceResult])
        assert_type(client.infer_with_tensors("m", [array]), list[npt.NDArray[np.generic]])
        assert_type(client.infer(array, "m").to_prediction(4, 4), Prediction)
        for number, result in client.subscribe("camera", "m"):
            assert_type(number, int)
            assert_type(result.objects, tuple[DetectedObject, ...])


def edge_models(client: InferenceClient) -> None:
    """Manage an edge runtime."""
    assert_type(client.register_model(Path("net.onnx"), "m"), str)
    assert_type(client.list_models(), list[ModelInfo])
    assert_type(client.encode_text("a cat"), npt.NDArray[np.float32])
    with client.genai_generate("s", ["Hello"]) as tokens:
        for token in tokens:
            assert_type(token, str)


def tensors(array: npt.NDArray[np.float32]) -> None:
    """Call a model of named tensors."""
    with TensorSession("grpc://127.0.0.1:8001", models=["net"]) as session:
        kept = HTensor(array, "server", "key")
        outputs = session({"image": array, "other": kept})
        for name, value in outputs.items():
            assert_type(name, str)
            np.asarray(value)
        assert_type(session.get_model_names(), list[str])
        assert_type(session.get_input_info("net"), dict[str, TensorInfo])
        session.submit({"image": array}).result()
        for each in session.map(({"image": array} for _ in range(3)), depth=2):
            each.keys()
    server = init_server("127.0.0.1", grpc_port=8001)
    model = init_model("net.onnx", server)
    deinit_model(model)
    deinit_server(server)


class Countdown:
    """A source of one's own fits by its shape."""

    def take(self, most: int, seconds: float) -> None:
        """End at once."""

    def done(self, positions: object) -> None:
        """Nothing."""

    def dead(self, letters: object) -> None:
        """Nothing."""

    def behind(self) -> int | None:
        """Return nothing known."""
        return None

    def close(self) -> None:
        """Nothing."""


def stream(model: DeployedModel) -> None:
    """Run a source into a store."""
    source: Source = Countdown()

    def samples() -> Iterator[Sample]:
        yield Sample({"image": number_picture(3)}, "3")

    def double(batch: Mapping[str, npt.NDArray[np.float32]]) -> dict[str, npt.NDArray[np.float32]]:
        return {"y": batch["x"] * 2}

    StreamSession(double, source).close()
    StreamSession("http://127.0.0.1:8000", FolderSource("inbox", follow=False), store=Path("r.lance")).close()
    with StreamSession(double, IterableSource(samples()), store="r.parquet", on_error="skip") as session:
        for batch, _ in session:
            assert_type(batch, Batch)
            assert_type(batch.ids, list[str])
    found = open_results("r.lance")
    assert_type(found, ResultDataset)
    assert_type(len(found), int)
    for prediction in found.to_predictions():
        assert_type(prediction, Prediction)
    for letter in read_letters("r.lance"):
        assert_type(letter, DeadLetter)


def own_tests() -> None:
    """Test one's own loop."""
    faults = RandomFaults([Fault("status", status=502)], 0.1, 7)
    with RunningServer("pixels", stock=True) as server, FaultyServer(server.url, faults) as faulty:
        assert_type(faulty.url, str)
        assert_type(faulty.calls("pop_inference_results")[0].endpoint, str)
    assert_type(box_number(number_picture(7)), int)
