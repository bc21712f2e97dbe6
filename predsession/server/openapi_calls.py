"""Every call of the server, written as data.

Invariant: it names the routes that the application has, all and no others; a test compares them.

References
----------
docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from predsession.server.openapi_schemas import UUID, array, obj, ref, typed
from predsession.wire.jsontypes import JSONObject


@dataclass(frozen=True, slots=True)
class Operation:
    """One call.

    Parameters
    ----------
    path : str
        Where.
    tag : str
        The group it is read in.
    summary : str
        One sentence.
    answer : JSONObject or str
        The schema of the JSON with status 200, or the media type of anything else.
    body : JSONObject or None
        The requestBody.
    refusals : sequence of int
        The statuses it may be refused with, beside 401.
    details : str
        More sentences.
    method : str
        In lower case.
    open : bool
        Whether no token is wanted.
    """

    path: str
    tag: str
    summary: str
    answer: JSONObject | str
    body: JSONObject | None = None
    refusals: Sequence[int] = ()
    details: str = ""
    method: str = "post"
    open: bool = False


_SETTINGS = typed("object", "The model's settings that shall differ from their defaults.")
SUBMIT: JSONObject = {
    "settings": _SETTINGS,
    "batch_size": typed("integer", "The largest batch wanted.", minimum=1),
}
SUBMIT_MORE: JSONObject = {
    "item_errors": typed("boolean", "Extension: a bad picture becomes an error in its place."),
    "session": typed("string", "Extension: the session that the job belongs to."),
    "first_index": typed("integer", "Extension: where its first picture stands in the caller's source."),
    "indexes": array(
        typed("integer"), "Extension: where each picture stands, if they do not follow one another."
    ),
    "deploy": typed("string", "Extension: the model, by its name."),
}
_POP_MORE: JSONObject = {
    "ack": typed("integer", "Extension: the highest number that has arrived; 0 at first.", minimum=0),
    "after": typed("integer", "Extension: with ack, what is answered begins after this.", minimum=0),
    "limit": typed("integer", "Extension: how many results at most.", minimum=0),
    "wait": typed("number", "Extension: seconds to hold the answer until there is news.", minimum=0),
}
KEYED = "The header Idempotency-Key makes it safe to send again: the same key gives the same job."
_POPPED = "What was answered is gone from the server."
_ACKED = (
    " With ack it stays until a later call acknowledges it, so that a lost answer can be asked for again."
)


def _upload(*, stock: bool) -> JSONObject:
    """Return the body of a call that brings pictures."""
    keys = SUBMIT if stock else {**SUBMIT, **SUBMIT_MORE}
    files = array(typed("string", format="binary"), "The encoded pictures, in order.", minItems=1)
    state = obj(keys, optional=list(keys), about="JSON text.")
    form: JSONObject = {
        "schema": obj({"files": files, "state": state}, optional=["state"]),
        "encoding": {"state": {"contentType": "application/json"}},
    }
    return {"required": True, "content": {"multipart/form-data": form}}


def _state(properties: JSONObject, *, optional: Sequence[str] = ()) -> JSONObject:
    """Return the body of a call that carries a state."""
    schema = obj({"state": obj(properties, optional=optional)})
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _info(name: str, summary: str, answer: JSONObject, *, more: Sequence[int] = ()) -> Operation:
    """Return a call that needs no body."""
    return Operation(f"/{name}", "Server and model", summary, answer, refusals=[404, 413, *more])


def _submit(name: str, summary: str, answer: JSONObject, *, stock: bool, details: str = "") -> Operation:
    """Return a call that brings pictures."""
    refusals = [400, 404, 413, 422, 429, 500, 503, 507]
    return Operation(f"/{name}", "Pictures", summary, answer, _upload(stock=stock), refusals, details)


def _on_job(
    name: str, summary: str, answer: JSONObject, *, details: str = "", more: JSONObject | None = None
) -> Operation:
    """Return a call that names a job."""
    body = _state({"inference_request_uuid": UUID, **(more or {})}, optional=list(more or {}))
    return Operation(f"/{name}", "Jobs", summary, answer, body, [400, 413, 500], details)


def _read(path: str, tag: str, summary: str, answer: JSONObject | str, *, free: bool = True) -> Operation:
    """Return a path that is read with a GET; `free` ones want no token."""
    refusals = {"/readyz": [503], "/page/{name}": [404]}.get(path, [])
    return Operation(path, tag, summary, answer, refusals=refusals, method="get", open=free)


def _infos() -> list[Operation]:
    """Return the calls that ask what the server is and has."""
    return [
        _info("get_session_info", "Say what the server is and can do.", ref("SessionInfo")),
        _info("get_model_meta", "Say what the model finds.", ref("ModelMeta")),
        _info("get_output_classes_and_tags", "The same as get_model_meta.", ref("ModelMeta")),
        _info("get_custom_inference_settings", "Say what can be set, with the defaults.", ref("Settings")),
        _info("get_tracking_settings", "Say what can be set for tracking.", typed("object")),
        _info(
            "get_status", "Say whether the model is there, and how much memory is used.", ref("ServerStatus")
        ),
        _info("is_deployed", "Say whether the model is there.", ref("Deployed")),
        _info("get_deploy_info", "Say what runs; null is what nobody knows.", ref("DeployInfo")),
        _info("list_pretrained_models", "Name the models that are served.", array(typed("string"))),
        _info("list_pretrained_model_infos", "Describe them.", array(ref("ModelInfo"))),
        _info("freeze_model", "Say that the model stays loaded.", obj({"message": typed("string")})),
        _info("is_ready", "Say whether the model is there, in one word.", ref("Ready"), more=[503]),
    ]


def _refusing() -> list[Operation]:
    """Return the calls of a stock server that are answered, but hardly ever granted."""
    deploy = {"model_name": typed("string"), "deploy_params": typed("object", "device and runtime.")}
    about = "Deploy the model that runs already; any other is refused."
    done = obj({"result": typed("string")})
    body = _state(deploy, optional=["deploy_params"])
    tag, url = "Server and model", _state({"image_url": typed("string")})
    return [
        Operation("/deploy_from_api", tag, about, done, body, [400, 404, 413]),
        Operation(
            "/inference_image_url", "Pictures", "Refused: this server fetches nothing.", done, url, [403]
        ),
    ]


def _submits(*, stock: bool) -> list[Operation]:
    """Return the calls that bring pictures."""
    item = ref("Item")
    keyed = "" if stock else KEYED
    return [
        _submit("inference_image", "Answer with the result of one picture.", item, stock=stock),
        _submit("inference_batch", "Answer with the results of all pictures.", array(item), stock=stock),
        _submit("inference_batch_async", "Start a job.", ref("Started"), stock=stock, details=keyed),
    ]


def _on_jobs(*, stock: bool) -> list[Operation]:
    """Return the calls that read, stop and clear jobs."""
    video = typed("object", "The tracks, where the clip was tracked.", null=True)
    final: JSONObject = {**obj({"ann": array(ref("Item")), "video_ann": video}), "type": ["object", "null"]}
    popped, more = (_POPPED, None) if stock else (_POPPED + _ACKED, _POP_MORE)
    pop = ("pop_inference_results", "Return the results that wait.", ref("JobResults"))
    calls = [
        _on_job("get_inference_progress", "Say how far a job is; takes nothing.", ref("JobProgress")),
        _on_job("get_inference_status", "Say where a job stands.", ref("JobStatus")),
        _on_job("get_preparing_progress", "Say how far a job is, and only that.", ref("Progress")),
        _on_job("get_inference_result", "Return the final result of a clip; else null.", final),
        _on_job(*pop, details=popped, more=more),
        _on_job("stop_inference", "Stop a job; what a worker has begun is finished.", ref("Done")),
        _on_job("clear_inference_request", "Stop a job and let go of it.", ref("Done")),
    ]
    if not stock:
        body = _state({"session": typed("string", null=True)}, optional=["session"])
        about = "List the jobs of a session, or all."
        calls.append(
            Operation("/list_inference_requests", "Jobs", about, ref("Listed"), body, [400, 413, 500])
        )
    return calls


def _reads() -> list[Operation]:
    """Return what is read with a GET."""
    tools, people = "For operators", "For people"
    return [
        _read("/healthz", tools, "Say that the process lives.", ref("Health")),
        _read("/readyz", tools, "Say whether work is taken: models, by name, and disk.", ref("Readiness")),
        _read("/metrics", tools, "The metrics, as Prometheus reads them.", "text/plain", free=False),
        _read("/", people, "The page: models, jobs, memory, errors, and a picture to try.", "text/html"),
        _read("/page/{name}", people, "A file of the page.", "*/*"),
        _read("/overview.json", people, "What the page shows.", ref("Overview"), free=False),
        _read("/docs", people, "This description, to be read.", "text/html"),
        _read("/openapi.json", people, "This description, as OpenAPI 3.1.", typed("object")),
    ]


def operations(*, stock: bool) -> list[Operation]:
    """Return every call.

    Parameters
    ----------
    stock : bool
        Whether the server imitates a stock one.

    Returns
    -------
    list of Operation
        In the order in which they are read.
    """
    return [*_infos(), *_refusing(), *_submits(stock=stock), *_on_jobs(stock=stock), *_reads()]
