"""The calls for clips, and those of the library, written as data.

References
----------
docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from predsession.server.openapi_calls import KEYED, SUBMIT, SUBMIT_MORE, Operation
from predsession.server.openapi_schemas import array, obj, ref, typed
from predsession.wire.jsontypes import JSONObject

_CLIPS, _IDS, _LIBRARY = "Clips", "Ids", "Library"
_FRAMES: JSONObject = {
    "startFrameIndex": typed("integer", "The first frame; by default the first, backward the last."),
    "framesCount": typed("integer", "So many frames of the clip, before the stride is taken."),
    "endFrameIndex": typed("integer", "The last frame."),
    "duration": typed("number", "Seconds of the clip."),
    "stride": typed("integer", "Every so many frames one; also step.", minimum=1),
    "direction": typed("string", enum=["forward", "backward"]),
}
_TRACKING: JSONObject = {
    "tracker": typed("string", "Track with this one of tracking_algorithms."),
    "tracker_settings": typed("object", "Its settings that shall differ from their defaults."),
}
_ID = typed("integer", minimum=1)
_WRITING: JSONObject = {
    "upload_mode": typed(
        "string", "Write the predictions back.", enum=["append", "replace", "create", "iou_merge"]
    ),
    "iou_merge_threshold": typed("number", "With iou_merge: what overlaps more is left out."),
    "output_project_id": typed("integer", "The project they are written to."),
    "model_prediction_suffix": typed("string", "Added to a class that is there with another geometry."),
}


def more_operations(*, stock: bool) -> list[Operation]:
    """Return the calls for clips and ids.

    Parameters
    ----------
    stock : bool
        Whether the server imitates a stock one, which has no library.

    Returns
    -------
    list of Operation
        In the order in which they are read.
    """
    calls = [_clip(stock=stock), *_by_id(stock=stock)]
    return calls if stock else [*calls, *_library()]


def _keys(keys: JSONObject, *, stock: bool) -> JSONObject:
    """Return the keys of a submit's state."""
    return {**keys, **SUBMIT} if stock else {**keys, **SUBMIT, **SUBMIT_MORE}


def _clip(*, stock: bool) -> Operation:
    """Return the call that brings a clip."""
    keys = _keys({**_FRAMES, **_TRACKING}, stock=stock)
    state = obj(keys, optional=list(keys), about="JSON text.")
    files = array(typed("string", format="binary"), "One video file.", minItems=1, maxItems=1)
    form: JSONObject = {
        "schema": obj({"files": files, "state": state}, optional=["state"]),
        "encoding": {"state": {"contentType": "application/json"}},
    }
    body: JSONObject = {"required": True, "content": {"multipart/form-data": form}}
    return Operation(
        "/inference_video_async",
        _CLIPS,
        "Start a job on the frames of a clip.",
        ref("Started"),
        body,
        [400, 404, 413, 422, 429, 500, 503, 507],
        "" if stock else KEYED,
    )


def _by_id(*, stock: bool) -> list[Operation]:
    """Return the calls that name pictures and videos by ids."""
    images: JSONObject = {"images_ids": array(_ID, "The images."), **_WRITING}
    one: JSONObject = {"image_id": _ID, **_WRITING}
    project: JSONObject = {"project_id": _ID, "dataset_ids": array(_ID), **_WRITING}
    video: JSONObject = {"video_id": _ID, **_FRAMES, **_TRACKING}
    item, items, started = ref("Item"), array(ref("Item")), ref("Started")
    whole = obj({"ann": items, "video_ann": typed("object", "The tracks.", null=True)})
    return [
        _named("inference_image_id", "Answer with the result of one image.", item, one, stock=stock),
        _named("inference_batch_ids", "Answer with the results of images.", items, images, stock=stock),
        _named("inference_video_id", "Answer with the results of a video.", whole, video, stock=stock),
        _named("inference_image_id_async", "Start a job on images.", started, images, stock=stock),
        _named("inference_batch_ids_async", "Start a job on images.", started, images, stock=stock),
        _named("inference_project_id_async", "Start a job on a project.", started, project, stock=stock),
        _named("inference_video_id_async", "Start a job on a video.", started, video, stock=stock),
    ]


def _named(name: str, summary: str, answer: JSONObject, keys: JSONObject, *, stock: bool) -> Operation:
    """Return one of those calls."""
    state = obj(_keys(keys, stock=stock), optional=[*keys, *SUBMIT, *SUBMIT_MORE])
    body: JSONObject = {
        "required": True,
        "content": {"application/json": {"schema": obj({"state": state})}},
    }
    details = KEYED if name.endswith("_async") and not stock else ""
    refusals = [400, 404, 413, 429, 500, 503, 507]
    return Operation(f"/{name}", _IDS, summary, answer, body, refusals, details)


def _library() -> list[Operation]:
    """Return what is read of the library with a GET."""
    project, dataset = ref("Project"), ref("Dataset")
    listed = obj({"projects": array(project), "total": typed("integer"), "next": typed("integer", null=True)})
    return [
        _read("/library", "List the projects; after and limit choose a page.", listed, [400, 404]),
        _read("/library/projects/{id}", "Describe a project.", project, [404]),
        _read("/library/datasets/{id}", "Describe a dataset, with a page of its items.", dataset, [400, 404]),
        _read("/library/images/{id}", "An image's file.", "image/*", [404]),
        _read("/library/images/{id}/annotation", "An image's annotation.", typed("object"), [404, 500]),
        _read("/library/videos/{id}/frames/{frame}", "A frame; format is png or jpg.", "image/*", [400, 404]),
    ]


def _read(path: str, summary: str, answer: JSONObject | str, refusals: Sequence[int]) -> Operation:
    """Return one of those paths."""
    return Operation(path, _LIBRARY, summary, answer, refusals=refusals, method="get")
