"""A handle on a deployed model: `connect`, then ask it, run sources through it, or one picture at once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Self

from predsession import errors
from predsession.checks import (
    URL_VARIABLE,
    Api,
    check_connection,
    check_token,
    retry_policy,
    url_of_environment,
)
from predsession.http.auth import Secret, find_token, show_url
from predsession.http.caller import Caller
from predsession.http.retry import RetryPolicy
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.inputs.images import prepare
from predsession.inputs.sources import open_source
from predsession.inputs.uploads import Part
from predsession.jobs.remote import fetched, loader_for
from predsession.options import merge_settings
from predsession.prediction import Prediction
from predsession.session import PredictionSession
from predsession.wire import calls
from predsession.wire.calls import Call
from predsession.wire.httpreply import parse_json
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.meta import ModelMeta
from predsession.wire.replies import ServerInfo, parse_info


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    api: Api | None = None,
    connection: ConnectionOptions | None = None,
) -> DeployedModel:
    """Return a handle on the model that a server has deployed; nothing is sent yet.

    Parameters
    ----------
    url : str, optional
        The server's base URL; the environment's ``PREDSESSION_URL`` by default.
    token : str, optional
        For the server.
    api : Api, optional
        An object with ``token`` and ``retry_count``; a Supervisely ``Api`` fits.
    connection : ConnectionOptions, optional
        Timeouts, certificates, proxies.

    Returns
    -------
    DeployedModel
        The handle.

    Raises
    ------
    ConnectError
        If there is no URL, or it is none.
    """
    target = url or url_of_environment()
    if not target:
        raise errors.ConnectError(f"pass the server's url, or set {URL_VARIABLE}", permanent=True)
    found = check_token(find_token(token, getattr(api, "token", None), explicit_url=url))
    return DeployedModel(target, found, api, options=check_connection(connection or ConnectionOptions()))


class DeployedModel:
    """What a server has deployed; made by `connect`.

    What does not change while it is deployed (`info`, `meta`, `settings`) is asked once, when it is first
    wanted. Use it as a context manager, or call `close`, to let go of its connections.

    Parameters
    ----------
    url : str
        The server's base URL.
    token : str or None
        For the server.
    api : Api or None
        Handed on to sessions.
    options : ConnectionOptions
        Timeouts, certificates, proxies.
    """

    def __init__(
        self, url: str, token: str | None, api: Api | None = None, *, options: ConnectionOptions
    ) -> None:
        self._url = Secret(url)
        self._token = token
        self._api = api
        self._options = options
        self._transport = HttpTransport(url, token=token, options=options)
        self._caller = Caller(self._transport, retry_policy(api))

    def __repr__(self) -> str:
        return f"DeployedModel({show_url(self._url)!r})"

    # What it is.

    @cached_property
    def info(self) -> ServerInfo:
        """What the server says of itself; ``info.raw`` is its whole answer."""
        return parse_info(self._caller.call(calls.session_info()))

    @cached_property
    def meta(self) -> ModelMeta:
        """The model's classes and tags, with their colours."""
        return ModelMeta.from_json(parse_json(self._caller.call(calls.model_meta())))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the model's classes, in the order of their ids."""
        return self.meta.names

    @cached_property
    def settings(self) -> JSON:
        """The model's settings and their defaults; a server may give them as YAML text."""
        return as_object(self._ask("get_custom_inference_settings")).get("settings", {})

    @cached_property
    def tracking_settings(self) -> JSONObject:
        """The settings of each tracker, by its name; empty where the server does not track."""
        return as_object(self._ask("get_tracking_settings"))

    def status(self) -> JSONObject:
        """Return how the deployment stands: ``is_deployed``, progress, memory."""
        return as_object(self._ask("get_status"))

    def is_deployed(self) -> bool:
        """Return whether the model is ready for pictures, without waiting until it is."""
        once = Caller(self._transport, RetryPolicy(tries=1))
        try:
            return as_object(parse_json(once.call(Call("is_ready")))).get("status") == "ready"
        except errors.ServerFaultError:
            return False  # a server answers 503 until it is

    # What it does.

    def predict(self, input: object = None, **keywords: object) -> list[Prediction]:  # noqa: A002 - as the session
        """Run a source to its end, with a bar.

        Parameters
        ----------
        input : object
            As for `PredictionSession`.
        **keywords : object
            As for `PredictionSession`; ``on_error="yield"`` is not for this: a list holds predictions.

        Returns
        -------
        list of Prediction
            In the source's order.

        Raises
        ------
        ValueError
            For ``on_error="yield"``.
        """
        if keywords.get("on_error") == "yield":
            raise ValueError(
                "on_error='yield' is for predict_detached(); a list of predictions holds no errors"
            )
        keywords.setdefault("show_progress", True)
        with self.predict_detached(input, **keywords) as session:
            return [outcome for outcome in session if isinstance(outcome, Prediction)]

    def predict_detached(self, input: object = None, **keywords: object) -> PredictionSession:  # noqa: A002 - as above
        """Start a source and return its session at once.

        Parameters
        ----------
        input : object
            As for `PredictionSession`.
        **keywords : object
            As for `PredictionSession`.

        Returns
        -------
        PredictionSession
            Started.
        """
        own: dict[str, object] = {
            "api": self._api,
            "token": self._token,
            "timeout": self._options.read_timeout,
            "connect_timeout": self._options.connect_timeout,
            "verify": self._options.verify,
            "cert": self._options.cert,
            "proxies": self._options.proxies,
        }
        return _start_session(self._url, input, {**own, **keywords})

    def predict_one(self, image: object, settings: JSONObject | None = None, **loose: object) -> Prediction:
        """Run one picture and wait for it: one request, no job, no polls.

        Parameters
        ----------
        image : array, PIL image, bytes, str or PathLike
            One picture.
        settings : mapping, optional
            The model's settings.
        **loose : str, int, float or bool
            More of them.

        Returns
        -------
        Prediction
            Its prediction.

        Raises
        ------
        SourceError
            If it is no single picture.
        ItemError
            If it cannot be read.
        """
        source = open_source(image)
        if len(source) != 1:
            raise errors.SourceError(f"predict_one takes one picture, not {len(source)}: use predict()")
        item = fetched(source[0], self._caller)
        encoded = prepare(item)
        name = f"{secrets.token_hex(16)}{encoded.suffix}"
        part = Part(name, encoded.content_type, encoded.nbytes, encoded.open)
        call = Call("inference_image", {"settings": merge_settings((settings,), {}, loose)})
        return Prediction.from_wire(
            as_object(parse_json(self._caller.call(call, [part]))),
            meta=self.meta,
            index=0,
            name=item.name,
            path=item.path,
            url=item.url,
            loader=loader_for(source[0], self._options),
        )

    # What is deployed.

    def list_pretrained_models(self) -> list[JSON]:
        """Return the models that the server could deploy."""
        return list(as_list(self._ask("list_pretrained_models")))

    def list_pretrained_model_infos(self) -> list[JSON]:
        """Return the same, with what is known of each."""
        return list(as_list(self._ask("list_pretrained_model_infos")))

    def load(self, model: str, *, device: str | None = None, runtime: str | None = None) -> JSONObject:
        """Deploy another model on the server.

        Parameters
        ----------
        model : str
            One of `list_pretrained_models`.
        device : str, optional
            Such as ``cuda:0``.
        runtime : str, optional
            Such as ``onnx``.

        Returns
        -------
        mapping
            The server's answer.
        """
        parameters: dict[str, JSON] = {
            "model_files": {},
            "model_source": "Pretrained models",
            "model_info": {},
            "device": device,
            "runtime": runtime,
        }
        state: dict[str, JSON] = {"deploy_params": parameters, "model_name": model}
        answer = as_object(self._ask("deploy_from_api", state))
        self._forget()
        return answer

    def freeze(self) -> JSONObject:
        """Let the model go to sleep: it gives its memory back, and wakes with the next picture."""
        return as_object(self._ask("freeze_model"))

    def shutdown(self) -> JSONObject:
        """End the deployment."""
        answer = as_object(self._ask("tasks.stop"))
        self._forget()
        return answer

    def close(self) -> None:
        """Let go of the connections; the deployment goes on."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, endpoint: str, state: Mapping[str, JSON] | None = None) -> JSON:
        """Send a call that may be missing on a server; then say so."""
        try:
            return parse_json(self._caller.call(Call(endpoint, state or {})))
        except errors.NotFoundError as error:
            raise errors.NotFoundError(
                f"{show_url(self._url)} offers no {endpoint}: this server cannot do that",
                status=error.status,
                body_head=error.body_head,
                url=error.url,
            ) from None

    def _forget(self) -> None:
        """Ask again what another deployment may have changed."""
        for name in ("info", "meta", "settings", "tracking_settings"):
            self.__dict__.pop(name, None)


def _start_session(url: str, source: object, keywords: Mapping[str, object]) -> PredictionSession:
    """Start a session; its signature checks the keywords."""
    start: Callable[..., PredictionSession] = PredictionSession
    return start(url, source, **keywords)
