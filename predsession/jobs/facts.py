"""What the server says of itself, asked once, beside the first upload."""

from __future__ import annotations

from concurrent.futures import Future

from predsession import errors
from predsession.http.caller import Caller
from predsession.wire import calls
from predsession.wire.httpreply import parse_json
from predsession.wire.jsontypes import JSON, as_object
from predsession.wire.meta import ModelMeta
from predsession.wire.replies import ServerInfo, parse_info


class ServerFacts:
    """The server's features and the model's classes, known once `ask` has run.

    Parameters
    ----------
    caller : Caller
        Sends the calls.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._info: Future[ServerInfo] = Future()
        self._meta: Future[ModelMeta] = Future()

    def ask(self) -> None:
        """Ask, on the thread that calls; what goes wrong is raised to those who want to know."""
        try:
            self._info.set_result(self._ask_info())
            self._meta.set_result(ModelMeta.from_json(parse_json(self._caller.call(calls.model_meta()))))
        except errors.PredSessionError as error:
            self.give_up(error)

    def _ask_info(self) -> ServerInfo:
        """Ask for the features; a server that has no such endpoint is a stock one."""
        try:
            return parse_info(self._caller.call(calls.session_info()))
        except errors.NotFoundError:
            return ServerInfo()

    def give_up(self, error: BaseException) -> None:
        """Let everybody who waits see the error."""
        for future in (self._info, self._meta):
            if not future.done():
                future.set_exception(error)

    def info(self) -> ServerInfo:
        """Return the server's features, waiting for them; raises what asking raised."""
        return self._info.result()

    def is_known(self) -> bool:
        """Return whether `info` can tell without waiting."""
        return self._info.done() and self._info.exception() is None

    def known_lease(self) -> float | None:
        """Return the server's lease in seconds, if it has one and that is known already."""
        return self._info.result().lease if self.is_known() else None

    def meta(self) -> ModelMeta:
        """Return the model's classes, waiting for them; raises what asking raised."""
        return self._meta.result()


def identity_of(info: ServerInfo, meta: ModelMeta, defaults: JSON) -> dict[str, JSON]:
    """Return what a model is known by: name, task, classes, defaults, and its files' digest if it is told."""
    ours = as_object(info.raw.get("predsession"))
    return {
        "name": [info.app_name, ours.get("models")],
        "task": info.raw.get("task type"),
        "classes": meta.to_json(),
        "default settings": defaults,
        "files": ours.get("digest"),
    }
