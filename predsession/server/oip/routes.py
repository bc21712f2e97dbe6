"""The protocol's HTTP calls, below ``/v2``: bodies and statuses around `calls`.

References
----------
.. [1] Open Inference Protocol, "HTTP/REST"; Triton, its extensions.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from predsession.errors import ProtocolError
from predsession.server.oip.bodies import Bodies, is_large, json_length, packed
from predsession.server.oip.calls import Calls
from predsession.server.statuses import CallError
from predsession.server.texts import shortened
from predsession.wire.jsontext import dumps, loads
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.oip.messages import InferReply, InferRequest
from predsession.wire.oip.rest import reply_to_body, request_from_body

_Handler: TypeAlias = Callable[[Request], Awaitable["JSON | Response"]]
_STATUSES: Mapping[str, int] = MappingProxyType({
    "INVALID_ARGUMENT": 400,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "DEADLINE_EXCEEDED": 408,
    "ALREADY_EXISTS": 409,
    "OUT_OF_RANGE": 413,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
})  # fmt: skip
_AGAIN = frozenset({429, 503})
_GONE = 499  # nobody reads it; it is for the log
_FILE = "file:"
_log = logging.getLogger("predsession.server")


class Routes:
    """One method a call.

    Parameters
    ----------
    calls : Calls
        What answers.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._bodies = Bodies(calls.limits)

    def routes(self) -> list[Route]:
        """Return every route; what else is below ``/v2`` is answered in the protocol's own form."""
        found = [
            _route("/v2", self.server_metadata),
            _route("/v2/health/live", self.live),
            _route("/v2/health/ready", self.ready),
            _route("/v2/models/stats", self.statistics),
            _route("/v2/repository/index", self.index, "POST"),
            _route("/v2/repository/models/{model}/load", self.load, "POST"),
            _route("/v2/repository/models/{model}/unload", self.unload, "POST"),
            _route("/v2/predsession/sessions", self.sessions),
            _route("/v2/predsession/sessions/{session}", self.renew, "PUT"),
            _route("/v2/predsession/sessions/{session}", self.end, "DELETE"),
            _route("/v2/predsession/sessions/{session}/forget", self.forget, "POST"),
        ]
        for model in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            found += [
                _route(model, self.model_metadata),
                _route(f"{model}/ready", self.model_ready),
                _route(f"{model}/config", self.model_config),
                _route(f"{model}/stats", self.statistics),
                _route(f"{model}/infer", self.infer, "POST"),
            ]
        every = ["GET", "POST", "PUT", "DELETE", "PATCH"]
        return [*found, Route("/v2/{rest:path}", _guarded(self.nothing), methods=every)]

    # -- the server ------------------------------------------------------------------------------------

    async def live(self, _: Request) -> JSON:
        """Say that the server is there."""
        return {"live": True}

    async def ready(self, _: Request) -> Response:
        """Say whether models answer."""
        ready = self._calls.ready()
        return _json({"ready": ready}, 200 if ready else 503)

    async def server_metadata(self, _: Request) -> JSON:
        """Say who this is."""
        return self._calls.server_metadata()

    async def nothing(self, request: Request) -> JSON:
        """Say that there is no such call."""
        raise CallError("NOT_FOUND", f"there is no call {request.method} {request.url.path[:200]}")

    # -- models ----------------------------------------------------------------------------------------

    async def model_metadata(self, request: Request) -> JSON:
        """Describe a model."""
        return self._calls.model_metadata(*_model(request))

    async def model_ready(self, request: Request) -> Response:
        """Say whether a model answers."""
        name, version = _model(request)
        ready = self._calls.model_ready(name, version)
        return _json({"name": name, "ready": ready}, 200 if ready else 503)

    async def model_config(self, request: Request) -> JSON:
        """Return a model's configuration."""
        return self._calls.model_config(*_model(request))

    async def statistics(self, request: Request) -> JSON:
        """Return what one model has done, or all."""
        return self._calls.statistics(*_model(request))

    async def index(self, request: Request) -> JSON:
        """List the models."""
        with self._bodies.reading() as reading:
            content = _object(await reading.read(request))
        return self._calls.index(ready=bool(content.get("ready")))

    async def load(self, request: Request) -> JSON:
        """Load a model."""
        with self._bodies.reading() as reading:
            body = await reading.read(request)
            said = await asyncio.to_thread(_said, body) if is_large(body) else _said(body)
            await self._calls.load(_model(request)[0], said)
        return {}

    async def unload(self, request: Request) -> JSON:
        """Let a model go."""
        with self._bodies.reading() as reading:
            said = _said(await reading.read(request))
        await self._calls.unload(_model(request)[0], said)
        return {}

    async def infer(self, request: Request) -> Response:
        """Run a model."""
        name, version = _model(request)
        with self._bodies.reading() as reading:
            body = await reading.read(request)
            length = json_length(request)

            def read() -> InferRequest:
                return request_from_body(body, length, name, version=version)

            asked = await asyncio.to_thread(read) if is_large(body) else read()
            reply = await _unless_gone(request, self._calls.infer(asked))
            if any(one.data is not None and is_large(one.data) for one in reply.outputs):
                written = await asyncio.to_thread(reply_to_body, reply, asked)
            else:
                written = reply_to_body(reply, asked)
            content, headers = await packed(written, request.headers.get("accept-encoding", ""))
        return Response(content, 200, headers)

    # -- sessions --------------------------------------------------------------------------------------

    async def sessions(self, _: Request) -> JSON:
        """List the sessions."""
        return {"sessions": self._calls.list_sessions()}

    async def renew(self, request: Request) -> JSON:
        """Renew a session's lease, or open it."""
        with self._bodies.reading() as reading:
            lease = _object(await reading.read(request)).get("lease_s")
        if lease is not None and (isinstance(lease, bool) or not isinstance(lease, int | float)):
            raise CallError(
                "INVALID_ARGUMENT", f"lease_s is {str(lease)[:50]}; it must be a number of seconds"
            )
        return self._calls.renew(request.path_params["session"], None if lease is None else float(lease))

    async def end(self, request: Request) -> JSON:
        """End a session."""
        return await self._calls.end(request.path_params["session"])

    async def forget(self, request: Request) -> JSON:
        """Forget tensors of a session."""
        with self._bodies.reading() as reading:
            keys = as_list(_object(await reading.read(request)).get("keys"))
        if not all(isinstance(key, str) for key in keys):
            raise CallError("INVALID_ARGUMENT", "keys must be a list of texts")
        return self._calls.forget(request.path_params["session"], [str(key) for key in keys])


async def _unless_gone(request: Request, answering: Coroutine[object, object, InferReply]) -> InferReply:
    """Wait for an answer, as long as there is somebody to wait for it."""
    answer = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(request.receive())  # after the body nothing comes but the caller's going
    try:
        await asyncio.wait([answer, gone], return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnect
        return answer.result()
    finally:
        for each in (answer, gone):
            each.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)


def _route(path: str, handler: _Handler, method: str = "GET") -> Route:
    """Return a route."""
    return Route(path, _guarded(handler), methods=[method])


def _guarded(handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that answers in the protocol's form, also where the handler fails."""

    async def endpoint(request: Request) -> Response:
        try:
            answer = await handler(request)
            return answer if isinstance(answer, Response) else _json(answer)
        except CallError as error:
            return _refused(error)
        except ProtocolError as error:
            return _refused(CallError("INVALID_ARGUMENT", str(error)))
        except ClientDisconnect:
            return Response(status_code=_GONE)
        except Exception as error:  # noqa: BLE001 - the border: a bug is one call's failure, not the server's
            _log.error("%s", traceback.format_exc())
            return _refused(CallError("INTERNAL", f"Exception: {error!r}"))

    return endpoint


def _refused(error: CallError) -> Response:
    """Return the answer of a call that failed."""
    status = _STATUSES.get(error.code, 500)
    headers = {"Retry-After": "1"} if status in _AGAIN else {}
    if status in {408, 413}:
        headers["Connection"] = "close"  # what is left of the body would be taken for the next request
    return _json({"error": shortened(error.text)}, status, headers)


def _json(content: JSON, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON answer."""
    return Response(dumps(content), status, headers, media_type="application/json")


def _model(request: Request) -> tuple[str, str]:
    """Return the model and the version that a path names."""
    return request.path_params.get("model", ""), request.path_params.get("version", "")


def _object(body: bytes) -> JSONObject:
    """Read a body that is a JSON object, or nothing."""
    try:
        content = loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise CallError("INVALID_ARGUMENT", f"the body is no JSON: {error}") from None
    if not isinstance(content, Mapping):
        raise CallError("INVALID_ARGUMENT", "the body is no JSON object")
    return content


def _said(body: bytes) -> dict[str, bool | int | str | bytes]:
    """Read the parameters of a load; a file is in base64."""
    said: dict[str, bool | int | str | bytes] = {}
    for name, value in as_object(_object(body).get("parameters")).items():
        if not isinstance(value, bool | int | str):
            raise CallError("INVALID_ARGUMENT", f"{name[:100]} must be a text, a number, true or false")
        said[name] = _file(name, value) if name.startswith(_FILE) else value
    return said


def _file(name: str, value: bool | int | str) -> bytes:
    """Return what is in a file that was sent."""
    try:
        return base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise CallError("INVALID_ARGUMENT", f"{name[:100]} must be in base64: {error}") from None
