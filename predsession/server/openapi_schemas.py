"""The shapes of what is sent and answered, as JSON Schema; `openapi` names the calls that use them.

References
----------
docs/protocol.md; JSON Schema 2020-12, which OpenAPI 3.1 uses as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from predsession.wire.jsontypes import JSON, JSONObject
from predsession.wire.stages import Stage


def ref(name: str) -> JSONObject:
    """Return a reference to a schema below."""
    return {"$ref": f"#/components/schemas/{name}"}


def obj(properties: JSONObject, *, optional: Sequence[str] = (), about: str = "") -> JSONObject:
    """Return the schema of an object.

    Parameters
    ----------
    properties : JSONObject
        Name to schema.
    optional : sequence of str
        Those that may be missing.
    about : str
        A sentence on the whole.

    Returns
    -------
    JSONObject
        More properties are allowed, as the protocol's readers must survive them.
    """
    schema: dict[str, JSON] = {"type": "object", "properties": properties}
    required = [name for name in properties if name not in optional]
    if required:
        schema["required"] = required
    if about:
        schema["description"] = about
    return schema


def typed(kind: str, about: str = "", *, null: bool = False, **more: JSON) -> dict[str, JSON]:
    """Return the schema of a plain value.

    Parameters
    ----------
    kind : str
        JSON Schema's name of the type.
    about : str
        What it means.
    null : bool
        Whether it may be null.
    **more : JSON
        Further keywords.

    Returns
    -------
    dict
        The schema.
    """
    schema: dict[str, JSON] = {"type": [kind, "null"] if null else kind}
    if about:
        schema["description"] = about
    return {**schema, **more}


def array(items: JSONObject, about: str = "", **more: int) -> dict[str, JSON]:
    """Return the schema of an array of such items."""
    return {**typed("array", about), "items": items, **more}


UUID = typed("string", "The job, as its submit answered.")
_COUNT = typed("integer", minimum=0)
_POINT = array(typed("number"), "x, y in pixels.", minItems=2, maxItems=2)
_ANY = typed("object", "Free.")

_PROGRESS = obj(
    {
        "status": typed("string"),
        "current": typed("integer", "Items that are done; bytes that have arrived while it prepares."),
        "total": typed("integer"),
        "is_size": typed("boolean"),
    },
    optional=("status", "is_size"),
)

_EXCEPTION = typed(
    "object",
    "Why the job ended in the stage Error.",
    null=True,
    properties={"type": typed("string"), "message": typed("string"), "traceback": typed("string")},
    required=["type", "message", "traceback"],
)

_FLAGS: JSONObject = {
    "uuid": UUID,
    "stage": typed("string", "Where it stands.", enum=[s.value for s in Stage if s is not Stage.UNKNOWN]),
    "exception": _EXCEPTION,
    "is_inferring": typed("boolean"),
    "stopped": typed("boolean", "Whether a stop was asked for."),
    "paused": typed("boolean"),
    "finished": typed("boolean", "Whether nothing more will come."),
}

_JOB: JSONObject = {
    **_FLAGS,
    "progress": ref("Progress"),
    "final_result": typed("boolean"),
    "created_at": typed("number", "Seconds on the server's own clock, not since 1970."),
    "updated_at": typed("number"),
    "cancel_inference": typed("boolean"),
    "has_result": typed("boolean"),
    "preparing_progress": ref("Progress"),
    "result": typed("boolean"),
}

_MEMORY = obj(
    {"allocated": typed("integer", null=True), "total": typed("integer", null=True)}, about="Bytes."
)

_OBJECT = obj(
    {
        "classTitle": typed("string"),
        "description": typed("string"),
        "tags": array(ref("Tag"), "The score is the tag confidence."),
        "geometryType": typed("string", "rectangle, bitmap, polygon, graph, ..."),
        "shape": typed("string", "The same once more."),
        "points": typed("object", "Exterior and interior; the corners of a rectangle are inclusive."),
        "bitmap": obj(
            {"origin": _POINT, "data": typed("string", "base64 of a PNG packed with zlib.")},
            about="Of a mask, cut to its object.",
        ),
        "nodes": typed("object", "Of a graph: id to loc."),
        "box": array(
            typed("number"),
            "The extension's float_boxes: x1, y1, x2, y2, half-open; read in preference.",
            minItems=4,
            maxItems=4,
        ),
    },
    optional=("points", "bitmap", "nodes", "box"),
)

_SHAPES: dict[str, JSONObject] = {
    "Progress": _PROGRESS,
    "Memory": _MEMORY,
    "Tag": obj({"name": typed("string"), "value": {"description": "Any."}}, optional=("value",)),
    "Object": _OBJECT,
    "Annotation": obj(
        {
            "description": typed("string"),
            "size": obj({"height": _COUNT, "width": _COUNT}, about="Of the upright picture, in pixels."),
            "tags": array(ref("Tag")),
            "objects": array(ref("Object")),
            "customBigData": {"description": "Track ids, one for each object, where there are any."},
        }
    ),
    "Item": obj(
        {
            "annotation": ref("Annotation"),
            "number": typed("integer", "With ack: its place in the job, from 1.", minimum=1),
        },
        optional=("number",),
        about="The result for one picture; further keys, such as name and url, are null here.",
    ),
    "ItemError": obj(
        {
            "error": obj({"type": typed("string"), "message": typed("string")}),
            "number": typed("integer", minimum=1),
        },
        optional=("number",),
        about="With item_errors: stands in the place of one bad picture.",
    ),
    "JobProgress": obj({**_JOB, "pending_results": typed("integer", "How many results wait.")}),
    "JobResults": obj(
        {**_JOB, "pending_results": array({"anyOf": [ref("Item"), ref("ItemError")]}, "The results.")}
    ),
    "JobStatus": obj(
        {**_FLAGS, "progress": ref("Progress"), "gpu_memory": ref("Memory"), "ram_memory": ref("Memory")}
    ),
    "Started": obj({"message": typed("string"), "inference_request_uuid": UUID}),
    "Done": obj({"success": typed("boolean"), "message": typed("string")}, optional=("message",)),
    "Refusal": obj(
        {
            "detail": {"description": "A sentence; with status 422 a list, with 500 title and message."},
            "message": typed("string"),
            "success": typed("boolean"),
        },
        optional=("detail", "message", "success"),
    ),
}

_INFO: dict[str, JSONObject] = {
    "SessionInfo": obj(
        {
            "app_name": typed("string"),
            "session_id": typed("integer", null=True),
            "number_of_classes": _COUNT,
            "sliding_window_support": typed("string"),
            "videos_support": typed("boolean"),
            "async_video_inference_support": typed("boolean"),
            "tracking_on_videos_support": typed("boolean"),
            "async_image_inference_support": typed("boolean"),
            "tracking_algorithms": array(typed("string")),
            "batch_inference_support": typed("boolean"),
            "max_batch_size": typed("integer", null=True),
            "task type": typed("string"),
            "predsession": obj(
                {"version": typed("integer"), "features": array(typed("string"))},
                about="The extension; missing on a stock server.",
            ),
        },
        optional=("predsession",),
    ),
    "ModelMeta": obj(
        {
            "classes": array(
                obj(
                    {"title": typed("string"), "shape": typed("string"), "color": typed("string", "#RRGGBB.")}
                )
            ),
            "tags": array(obj({"name": typed("string"), "value_type": typed("string")})),
        }
    ),
    "Settings": obj({"settings": typed("object", "Every setting with its default.")}),
    "ServerStatus": obj(
        {
            "is_deployed": typed("boolean"),
            "progress": obj({"message": typed("string"), "current": _COUNT, "total": _COUNT}),
            "gpu_memory": ref("Memory"),
            "ram_memory": ref("Memory"),
        }
    ),
    "DeployInfo": obj(
        {
            "checkpoint_name": typed("string"),
            "model_name": typed("string"),
            "architecture": typed("string", null=True),
            "checkpoint_url": typed("string", null=True),
            "custom_checkpoint_path": typed("string", null=True),
            "model_source": typed("string", enum=["Pretrained models", "Custom models"]),
            "task_type": typed("string"),
            "device": typed("string", null=True),
            "runtime": typed("string", null=True),
            "model_precision": typed("string", null=True),
            "hardware": typed("string", "The processor.", null=True),
            "deploy_params": _ANY,
        }
    ),
    "ModelInfo": obj(
        {
            "model_name": typed("string"),
            "task_type": typed("string"),
            "number_of_classes": _COUNT,
            "max_batch_size": typed("integer", null=True),
            "model_source": typed("string"),
            "meta": obj({"model_name": typed("string"), "task_type": typed("string")}),
        }
    ),
    "Deployed": obj({"deployed": typed("boolean"), "description:": typed("string", "With the colon.")}),
    "Ready": obj({"status": typed("string")}),
    "Health": obj({"status": typed("string")}),
    "Readiness": obj(
        {
            "ready": typed("boolean"),
            "models": typed("object", "Name to whether it is ready.", additionalProperties=typed("boolean")),
            "disk": typed("boolean", "Whether results can be stored."),
        }
    ),
    "Listed": obj(
        {
            "requests": array(
                obj(
                    {
                        "uuid": UUID,
                        "session": typed("string", null=True),
                        "first_index": typed("integer", null=True),
                        "indexes": {"type": ["array", "null"], "items": typed("integer")},
                        "stage": typed("string"),
                        "progress": ref("Progress"),
                        "pending_results": _COUNT,
                        "acked": _COUNT,
                        "stopped": typed("boolean"),
                        "finished": typed("boolean"),
                        "created_at": typed("number"),
                        "updated_at": typed("number"),
                        "lease": typed("boolean"),
                    }
                )
            )
        }
    ),
}

_DATASET: JSONObject = {
    "id": typed("integer"),
    "name": typed("string"),
    "project_id": typed("integer"),
    "images_count": _COUNT,
    "videos_count": _COUNT,
}

_RECORDS: dict[str, JSONObject] = {
    "Project": obj({"id": typed("integer"), "name": typed("string"), "datasets": array(obj(_DATASET))}),
    "Dataset": obj(
        {
            **_DATASET,
            "items": array(
                obj({"id": typed("integer"), "kind": typed("string"), "name": typed("string")}),
                "A page, in natural order; kind is image or video.",
            ),
            "total": _COUNT,
            "next": typed("integer", "The after of the next page.", null=True),
        }
    ),
}

_PAGE: dict[str, JSONObject] = {
    "Overview": obj(
        {
            "version": typed("string"),
            "stock": typed("boolean"),
            "uptime_s": typed("number"),
            "models": array(
                obj(
                    {
                        "name": typed("string"),
                        "path": typed("string", "What stands before its calls, such as detect/.", null=True),
                        "state": typed("string", enum=["ready", "starting"]),
                        "problem": typed("string", "Why it is not ready.", null=True),
                        "task": typed("string"),
                        "class_count": _COUNT,
                        "max_batch_size": typed("integer", null=True),
                        "settings": _ANY,
                        "waiting": _COUNT,
                    }
                )
            ),
            "queue": obj({"waiting": _COUNT, "working": _COUNT}, about="Pictures."),
            "jobs": array(
                obj(
                    {
                        "uuid": UUID,
                        "session": typed("string", null=True),
                        "model": typed("string"),
                        "stage": typed("string", "In one word, such as inference."),
                        "stopped": typed("boolean"),
                        "done": _COUNT,
                        "total": _COUNT,
                        "pending": _COUNT,
                        "rate": typed("number", "Pictures a second.", null=True),
                        "age_s": typed("number"),
                        "error": typed("string", null=True),
                    }
                ),
                "Those that have not ended, then the latest of the others; 100 at most.",
            ),
            "job_count": _COUNT,
            "memory": obj(
                {
                    "server": typed("integer", null=True),
                    "workers": array(obj({"model": typed("string"), "bytes": typed("integer", null=True)})),
                    "machine": obj(
                        {"used": typed("integer", null=True), "total": typed("integer", null=True)}
                    ),
                },
                about="Bytes; null where the system does not say.",
            ),
            "errors": array(
                obj(
                    {
                        "at": typed("number", "Seconds since 1970."),
                        "message": typed("string"),
                        "count": _COUNT,
                    }
                ),
                "The latest first; 50 at most.",
            ),
        }
    ),
}

SCHEMAS: dict[str, JSONObject] = {**_SHAPES, **_INFO, **_RECORDS, **_PAGE}
"""Name to schema."""
