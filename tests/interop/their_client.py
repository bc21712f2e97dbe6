"""Supervisely's own clients, as they are; run by their interpreter.

Reads tasks from standard input, each a line of JSON, and answers each with a line of JSON on standard output.
A task names one of the functions below under ``do``, the rest are its arguments. Where their client raises,
the answer is ``{"error": "Type: text"}``.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from dataclasses import asdict, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from their_folders import imported, project


def session(task: dict[str, Any]) -> dict[str, Any]:
    """Run their `PredictionSession`; optionally look at it, stop it, draw its pictures."""
    from supervisely.nn.model.prediction_session import PredictionSession

    began = time.monotonic()
    made = PredictionSession(task["url"], _source(task["input"]), **task.get("keywords", {}))
    answer: dict[str, Any] = {"length": len(made), "names": _names(task["input"], task.get("keywords", {}))}
    if task.get("look"):
        answer["looks"] = [{"status": made.status(), "progress": made.progress(), "done": made.is_done()}]
    found = []
    for prediction in made:
        found.append(prediction)
        if len(found) == task.get("stop_after"):
            made.stop()
            break
    answer.update(
        predictions=[_described(one) for one in found],
        seconds=time.monotonic() - began,
        uuid=made.inference_request_uuid,
        final=made.final_result,
        settings=made.inference_settings,
        classes=[one.name for one in made.model_meta.obj_classes],
    )
    if task.get("look"):
        answer["looks"].append({"status": made.status(), "progress": made.progress(), "done": made.is_done()})
    if "draw" in task:
        answer["pictures"] = [_drawn(one, task["draw"]) for one in found]
    return answer


def block(task: dict[str, Any]) -> dict[str, Any]:
    """Leave a ``with`` block of their `PredictionSession` after some predictions."""
    from supervisely.nn.model.prediction_session import PredictionSession

    found = []
    with PredictionSession(task["url"], _source(task["input"]), **task.get("keywords", {})) as made:
        for _ in range(task["leave_after"]):
            found.append(_described(made.next()))
    return {"predictions": found, "uuid": made.inference_request_uuid}


def model_api(task: dict[str, Any]) -> dict[str, Any]:
    """Ask of their `ModelAPI` what needs no platform; optionally load a model, and predict."""
    from supervisely.nn.model.model_api import ModelAPI

    model = ModelAPI(url=task["url"])
    answer: dict[str, Any] = {}
    for name in task["ask"]:
        value = getattr(model, name)()
        answer[name] = value.to_json() if name == "get_model_meta" else value
    if "load" in task:
        answer["load"] = model.load(**task["load"])
    if "input" in task:
        source = _source(task["input"])
        answer["predictions"] = [_described(one) for one in model.predict(source, **task.get("keywords", {}))]
    return answer


def old_session(task: dict[str, Any]) -> dict[str, Any]:
    """Call methods of their older `Session`; each of ``calls`` is a name and its keywords."""
    import supervisely as sly

    # What it needs of an api is a token, and how often a call may be tried.
    api = SimpleNamespace(token=task.get("token"), retry_count=task.get("tries", 1))
    kind = sly.nn.inference.SessionJSON if task.get("json") else sly.nn.inference.Session
    old = kind(api, session_url=task["url"], inference_settings=task.get("settings"))
    return {"answers": [_answered(getattr(old, name)(**keywords)) for name, keywords in task["calls"]]}


def _answered(value: Any) -> Any:
    """Return what a method gave as JSON; an iterator is run to its end."""
    if hasattr(value, "_asdict"):
        return value._asdict()
    if is_dataclass(value):
        return asdict(value)
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, (str, int, float, dict, type(None))):
        return value
    return [_answered(one) for one in value]


def _source(value: Any) -> Any:
    """Return what the task names: paths as they are; pictures to be read into arrays, or to bytes."""
    import supervisely as sly

    if isinstance(value, dict):
        read = sly.image.read if value["as"] == "array" else lambda path: Path(path).read_bytes()
        pictures = [read(path) for path in value["paths"]]
        return pictures if value.get("list", True) else pictures[0]
    return value


def _names(value: Any, keywords: dict[str, Any]) -> list[str] | None:
    """Return a folder's files in the order in which their client sends them; it does not tell itself."""
    from supervisely.imaging.image import SUPPORTED_IMG_EXTS
    from supervisely.io.fs import list_files, list_files_recursively

    if not isinstance(value, str) or not Path(value).is_dir():
        return None
    listed = list_files_recursively if keywords.get("recursive") else list_files
    return [str(path) for path in listed(value, valid_extensions=SUPPORTED_IMG_EXTS)]


def _described(prediction: Any) -> dict[str, Any]:
    """Return a prediction as their class shows it."""
    import numpy as np

    tracks = prediction.track_ids
    return {
        "annotation": prediction.annotation_json,
        "boxes": prediction.boxes.reshape(-1, 4).tolist(),
        "scores": list(prediction.scores),
        "classes": list(prediction.classes),
        "class_idxs": prediction.class_idxs.tolist(),
        "masks": [base64.b64encode(np.packbits(mask).tobytes()).decode() for mask in prediction.masks],
        "track_ids": None if tracks is None else tracks.tolist(),
        "frame_index": prediction.frame_index,
        "path": prediction.path,
    }


def _drawn(prediction: Any, folder: str) -> dict[str, Any]:
    """Load a prediction's picture, and draw it into a file."""
    picture = prediction.load_image()
    drawn = prediction.visualize(save_dir=folder, thickness=1)
    return {"shape": picture.shape, "changed": bool((drawn != prediction.load_image()).any())}


TASKS = {
    "session": session,
    "block": block,
    "model_api": model_api,
    "old_session": old_session,
    "project": project,
    "imported": imported,
}


def main() -> None:
    """Do the tasks, one after the other."""
    # Their package writes to standard output; the answer goes to a copy of it, theirs to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer = TASKS[task["do"]](task)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
