"""A Supervisely server as it is, without a platform, with one of our dummy models; run by their interpreter.

    python supervisely_server.py --folder FOLDER [--model seg|det|zoo] [--mode production|development]

Listens on a free port of 127.0.0.1, announces it in one line of JSON on standard output, and ends when its
standard input does. Beside Supervisely's own calls it has four for tests, none of which counts as computing:

    /__direct    what the model answers when it is called directly, no request, no job, no cache in between
    /__computed  how many pictures were computed under a key (see dummy_models)
    /__jobs      what became of each job
    /__forget    make it forget a job, as it does when its time is over
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--model", default="seg")
    parser.add_argument("--mode", default="production")
    args = parser.parse_args()
    _prepare(Path(args.folder), args.mode)

    import uvicorn
    from dummy_models import MODELS, SETTINGS, Counts

    model = MODELS[args.model](custom_inference_settings=dict(SETTINGS), use_gui=False)
    model.deploy(Counts())
    model.serve()  # registers the calls; does not block
    app = model.app.get_server()
    _add_calls(app, model)

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, ws="websockets", log_level="warning"))
    threading.Thread(target=_follow_stdin, args=(server,), daemon=True).start()
    sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}) + "\n")
    sys.stdout.flush()
    server.run(sockets=[listener])
    # Their pool of workers would be waited for, whatever is still computed there.
    os._exit(0)


def _prepare(folder: Path, mode: str) -> None:
    """Set what their package reads when it is imported."""
    for name in ("API_TOKEN", "SERVER_ADDRESS"):
        os.environ.pop(name, None)
    # In production they ask for a task's number, and only there answer faults with JSON.
    os.environ.update(
        ENV=mode,
        TASK_ID="1",
        SLY_APP_DATA_DIR=str(folder / "data"),
        SMART_CACHE_CONTAINER_DIR=str(folder / "cache"),
    )
    for name in ("data", "cache"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    sys.argv = sys.argv[:1]  # which their classes read, too


def _follow_stdin(server: Any) -> None:
    """End the server once nobody holds the other end."""
    sys.stdin.read()
    server.should_exit = True


def _add_calls(app: Any, model: Any) -> None:
    """Add the calls for tests."""

    @app.post("/__direct")
    def direct(body: dict[str, Any]) -> list[dict[str, Any]]:
        return [_described(annotation, model) for annotation in _compute(model, body)]

    @app.post("/__computed")
    def computed(body: dict[str, Any]) -> int:
        return int(model.counts.get(body["key"]))

    @app.post("/__forget")
    def forget(body: dict[str, Any]) -> None:
        model.inference_requests_manager.remove(body["uuid"])

    @app.post("/__jobs")
    def jobs() -> dict[str, dict[str, Any]]:
        requests = dict(model.inference_requests_manager._inference_requests)
        return {
            uuid: {
                "stage": request.stage,
                "finished": request.is_finished(),
                "stopped": request.is_stopped(),
                "cleared": request._ttl == CLEARED_TTL,
                "pending": request.pending_num(),
            }
            for uuid, request in requests.items()
        }


CLEARED_TTL = 60
"""Seconds for which they keep a job that was cleared."""


def _compute(model: Any, body: dict[str, Any]) -> list[Any]:
    """Call the model: on the pictures of the named files, or on frames of a clip, tracked or not."""
    import supervisely as sly

    settings = {
        **model.custom_inference_settings_dict,
        **body.get("settings", {}),
        "key": "direct",
        "delay": 0.0,
    }
    if "video" not in body:
        return [_annotate(model, sly.image.read(path), settings) for path in body["images"]]
    reader = sly.video.VideoFrameReader(body["video"])
    frames = reader.read_frames(body["frames"])
    annotations = [_annotate(model, frame, settings) for frame in frames]
    if body.get("tracker_settings") is None:
        return annotations
    return _track(frames, annotations, body["tracker_settings"])


def _annotate(model: Any, image: Any, settings: dict[str, Any]) -> Any:
    """Return a picture's annotation."""
    found = model.predict_batch([image], settings)[0]
    return model._predictions_to_annotation(image, found, settings.get("classes"))


def _track(frames: list[Any], annotations: list[Any], settings: dict[str, Any]) -> list[Any]:
    """Put tracks to the objects of frames that follow each other; what has none is left out, as they do."""
    from supervisely.nn.tracker import BotSortTracker

    tracker = BotSortTracker(settings=settings, device="cpu")
    tracked = []
    for frame, annotation in zip(frames, annotations, strict=True):
        matches = tracker.update(frame, annotation)
        labels = [match["label"] for match in matches]
        ids = [match["track_id"] for match in matches]
        tracked.append(annotation.clone(labels=labels, custom_data=ids))
    return tracked


def _described(annotation: Any, model: Any) -> dict[str, Any]:
    """Return an annotation as their own client's class shows it."""
    import numpy as np
    from supervisely.nn.model.prediction import Prediction

    prediction = Prediction(annotation, model_meta=model.model_meta)
    tracks = prediction.track_ids
    return {
        "annotation": annotation.to_json(),
        "boxes": prediction.boxes.reshape(-1, 4).tolist(),
        "scores": list(prediction.scores),
        "classes": list(prediction.classes),
        "masks": [base64.b64encode(np.packbits(mask).tobytes()).decode() for mask in prediction.masks],
        "track_ids": None if tracks is None else tracks.tolist(),
    }


if __name__ == "__main__":
    main()
