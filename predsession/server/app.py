"""The ASGI application: every call's route, and every error's answer."""

from __future__ import annotations

import logging
import sqlite3
import traceback
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from predsession.server import answers
from predsession.server.access import Access
from predsession.server.config import is_loopback
from predsession.server.connection import HEALTH, unavailable
from predsession.server.deploy_routes import DEPLOY_CALLS, DeployRoutes
from predsession.server.disk import not_stored
from predsession.server.id_routes import IdRoutes
from predsession.server.info_routes import InfoRoutes
from predsession.server.job_routes import JobRoutes
from predsession.server.library_routes import LibraryRoutes
from predsession.server.operate_routes import OperateRoutes
from predsession.server.page_routes import OPEN_PATHS, PageRoutes
from predsession.server.refusal import SLOW, Fault, Refusal
from predsession.server.service import Service
from predsession.server.submit_routes import SubmitRoutes
from predsession.server.video_routes import VideoRoutes
from predsession.wire.jsontypes import JSON

Handler: TypeAlias = Callable[[Request], Awaitable["JSON | Response"]]
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
_METHODS = ("GET", "POST", "PUT", "DELETE")
_GONE = 499  # nobody reads it; it is for the log
_log = logging.getLogger("predsession.server")


def make_app(service: Service) -> ASGIApp:
    """Return the application.

    Parameters
    ----------
    service : Service
        What answers.

    Returns
    -------
    ASGI application
        Every call is a POST, also below a model's name; anything else is answered as a stock server does.
    """
    found = routes(service)
    app: ASGIApp = Starlette(routes=found, exception_handlers={HTTPException: _plain_detail})
    door = service.config.door
    if door.origins:
        headers = ["content-type", "x-api-key", "authorization", "idempotency-key"]
        app = CORSMiddleware(app, door.origins, allow_methods=_METHODS, allow_headers=headers)
    app = _Opening(app, service)
    known = frozenset(route.path.rsplit("/", 1)[-1] for route in found if "{" not in route.path) - {""}
    return Access(
        app,
        token=door.token,
        origins=door.origins,
        metrics=service.metrics,
        calls=known,
        open_paths=OPEN_PATHS,
        local=is_loopback(door.host),
        most=service.config.limits.connections,
    )


class _Opening:
    """ASGI middleware: until the models are loaded only health is answered."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say that it is too early."""
        if self._service.started or scope["path"] in HEALTH:
            await self._app(scope, receive, send)
        else:
            await unavailable(send, "The models are being loaded; try again.")


def routes(service: Service) -> list[Route]:
    """Return every route.

    Parameters
    ----------
    service : Service
        What answers.

    Returns
    -------
    list of Route
        Where there is an extension, each call also below a model's name.
    """
    plain = service.config.plain_errors
    found = _tensor_routes(service)
    found += [
        Route(f"/{name}", _guarded(read, plain=plain), methods=["GET"])
        for name, read in _reads(service).items()
    ]
    for name, call in _calls(service).items():
        found.append(Route(f"/{name}", _guarded(call, plain=plain), methods=["POST"]))
        if not service.stock:
            found.append(Route(f"/{{model}}/{name}", _guarded(call, plain=plain), methods=["POST"]))
    return found


def _tensor_routes(service: Service) -> list[Route]:
    """Return the routes of the Open Inference Protocol, where it is spoken."""
    if service.oip is None:
        return []
    from predsession.server.oip.routes import Routes

    return Routes(service.oip).routes()


def _calls(service: Service) -> dict[str, Handler]:
    """Return every call with its handler."""
    info, jobs, submits = InfoRoutes(service), JobRoutes(service), SubmitRoutes(service)
    calls: dict[str, Handler] = {
        "get_session_info": info.get_session_info,
        "get_model_meta": info.get_model_meta,
        "get_output_classes_and_tags": info.get_model_meta,
        "get_custom_inference_settings": info.get_custom_inference_settings,
        "get_tracking_settings": info.get_tracking_settings,
        "get_status": info.get_status,
        "is_deployed": info.is_deployed,
        "is_ready": info.is_ready,
        "inference_batch_async": submits.inference_batch_async,
        "inference_video_async": VideoRoutes(service).inference_video_async,
        "inference_image": submits.inference_image,
        "inference_batch": submits.inference_batch,
        "get_inference_progress": jobs.get_inference_progress,
        "get_inference_status": jobs.get_inference_status,
        "get_preparing_progress": jobs.get_preparing_progress,
        "get_inference_result": jobs.get_inference_result,
        "pop_inference_results": jobs.pop_inference_results,
        "stop_inference": jobs.stop_inference,
        "clear_inference_request": jobs.clear_inference_request,
    }
    deploy = DeployRoutes(service)
    for name in DEPLOY_CALLS:
        calls[name] = getattr(deploy, name)
    by_id = IdRoutes(service)
    calls["inference_image_id_async"] = by_id.inference_batch_ids_async
    for name in ("inference_batch_ids", "inference_project_id", "inference_video_id"):
        calls[f"{name}_async"] = getattr(by_id, f"{name}_async")
    for name in ("inference_image_id", "inference_batch_ids", "inference_video_id"):
        calls[name] = getattr(by_id, name)
    if not service.stock:
        calls["list_inference_requests"] = jobs.list_inference_requests
    return calls


def _reads(service: Service) -> dict[str, Handler]:
    """Return every path that is read with a GET."""
    operate = OperateRoutes(service)
    health: dict[str, Handler] = {"healthz": operate.healthz, "readyz": operate.readyz}
    library = {} if service.stock else LibraryRoutes(service).reads()
    return {**health, "metrics": operate.metrics, **library, **PageRoutes(service).reads()}


def _guarded(handler: Handler, *, plain: bool) -> Endpoint:
    """Return the endpoint that answers with JSON, also where the handler fails."""

    async def endpoint(request: Request) -> Response:
        try:
            answer = await handler(request)
            return answer if isinstance(answer, Response) else _json(answer)
        except Refusal as refusal:
            return _refused(refusal)
        except Fault as fault:
            return _fault(fault, plain=plain)
        except sqlite3.Error as error:
            return _refused(not_stored(error))
        except ClientDisconnect:
            return Response(status_code=_GONE)
        except Exception as error:  # noqa: BLE001 - the border: a bug is one call's failure, not the server's
            _log.error("%s", traceback.format_exc())
            return _fault(Fault(repr(error)), plain=plain)

    return endpoint


def _refused(refusal: Refusal) -> Response:
    """Return the answer of a refusal."""
    headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    if refusal.status == SLOW:
        headers["Connection"] = "close"  # what is left of the body would be taken for the next request
    return _json(refusal.body, refusal.status, headers)


def _json(body: JSON, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON answer."""
    return Response(answers.dump(body), status, headers, media_type="application/json")


def _fault(fault: Fault, *, plain: bool) -> Response:
    """Return status 500 as a stock server in production mode does, or in development mode."""
    if plain:
        return PlainTextResponse("Internal Server Error", 500)
    return _json(fault.body, 500)


async def _plain_detail(_: Request, error: Exception) -> Response:
    """Answer for a path or a method that is not there."""
    assert isinstance(error, HTTPException)
    return _json({"detail": error.detail}, error.status_code)
