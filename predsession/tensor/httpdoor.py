"""A server over HTTP: JSON, and the tensors' bytes after it where the server knows the binary extension."""

from __future__ import annotations

import base64
import gzip
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar
from urllib.parse import quote

from predsession.errors import (
    ConnectError,
    NotFoundError,
    ProtocolError,
    RequestTimeoutError,
    ResponseError,
    SessionClosedError,
    SourceError,
)
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.tensor.address import Address
from predsession.tensor.door import END_SECONDS, LoadParameter, Replies
from predsession.wire.httpreply import Reply, check_status, parse_json
from predsession.wire.jsontext import dumps
from predsession.wire.jsontypes import JSON, JSONObject, as_list, as_object
from predsession.wire.oip.facts import (
    Counters,
    ModelConfig,
    ModelFacts,
    ModelState,
    ServerFacts,
    read_config,
    read_counters,
    read_index,
    read_model,
    read_server,
)
from predsession.wire.oip.messages import InferReply, InferRequest
from predsession.wire.oip.residency import SESSION
from predsession.wire.oip.rest import BINARY, HEADER_LENGTH, reply_from_body, request_to_body

T = TypeVar("T")
THREADS = 8
"""Calls that are on their way at once, at most: HTTP waits in a thread."""
LEAVE_SECONDS = 2.0
"""For which the end waits for those; longer ones are left to themselves, in their threads."""
_JSON = {"Content-Type": "application/json"}
_TRIES = 3


class HttpDoor:
    """A server over HTTP, on kept connections.

    Parameters
    ----------
    address : Address
        Where.
    headers : mapping of str to str
        Sent along with every call, a secret perhaps.
    token : str or None
        The server's token.
    compress : tuple of bool
        Whether requests are, and whether replies are to be.
    seconds : float
        How long calls without a deadline of their own may take.
    """

    def __init__(
        self,
        address: Address,
        *,
        headers: Mapping[str, str],
        token: str | None,
        compress: tuple[bool, bool],
        seconds: float,
    ) -> None:
        self._target, self._token = address.target, token
        self._lock = threading.Lock()
        self._begin()
        self._headers = dict(headers)
        self._packs, self._unpacks = compress
        self._seconds = seconds
        self._shown = address.shown
        self._binary: bool | None = None
        self._closed = False

    def _begin(self) -> None:
        """Make what each process has of its own: two on one connection would read each other's answers."""
        # What a call may take is handed over with it; this is the bound that requests must have.
        options = ConnectionOptions(read_timeout=1e6)
        self._transport = HttpTransport(self._target, token=self._token, options=options)
        self._pool: ThreadPoolExecutor | None = None
        self._going: weakref.WeakSet[Future[None]] = weakref.WeakSet()
        self._inside = threading.local()
        self._pid = os.getpid()

    @property
    def shown(self) -> str:
        """The address, as it may be shown."""
        return self._shown

    def server(self) -> ServerFacts:
        """Ask what the server is."""
        facts = read_server(self._json("GET", "v2"))
        self._binary = BINARY in facts.extensions
        return facts

    def ready(self) -> bool:
        """Ask whether the server answers calls."""
        return self._ask("GET", "v2/health/ready").status == 200

    def model_ready(self, name: str) -> bool:
        """Ask whether a model does."""
        return self._ask("GET", f"{_model(name)}/ready").status == 200

    def model(self, name: str) -> ModelFacts:
        """Ask what a model takes and gives."""
        return read_model(self._json("GET", _model(name)))

    def config(self, name: str) -> ModelConfig:
        """Ask how a model is configured; an empty answer where the server does not say."""
        try:
            return read_config(self._json("GET", f"{_model(name)}/config"))
        except NotFoundError:
            return ModelConfig()

    def infer(self, request: InferRequest, seconds: float) -> InferReply:
        """Run a model, and wait."""
        if self._binary is None:
            self.server()
        body = request_to_body(request, binary=bool(self._binary))
        headers = {"Content-Type": "application/octet-stream" if body.json_length else "application/json"}
        if body.json_length is not None:
            headers[HEADER_LENGTH] = str(body.json_length)
        content = bytes(body)
        if self._packs:
            # The lowest level: what it gains beyond is little, and time is what is short.
            content, headers["Content-Encoding"] = gzip.compress(content, 1), "gzip"
        headers["Accept-Encoding"] = "gzip" if self._unpacks else "identity"
        place = f"{_model(request.model)}/infer"
        try:
            reply = self._ask("POST", place, content, headers, seconds)
        except RequestTimeoutError:
            where = f"{self._shown}/{place}"
            raise RequestTimeoutError(f"{where}: no answer within {seconds:g} s", url=where) from None
        check_status(reply)
        length = reply.headers.get(HEADER_LENGTH.lower())
        try:
            return reply_from_body(reply.body, None if length is None else int(length))
        except ValueError:
            raise ProtocolError(f"{reply.url}: {HEADER_LENGTH} is {length!r}", url=reply.url) from None

    def submit(self, request: InferRequest, seconds: float, then: Callable[[InferReply], T]) -> Future[T]:
        """Run a model, and go on."""
        with self._lock:
            self._check()
            if self._pool is None:
                self._pool = ThreadPoolExecutor(THREADS, "predsession-tensor", initializer=self._enter)
            future = self._pool.submit(lambda: then(self.infer(request, seconds)))
        ended: Future[None] = Future()
        self._going.add(ended)
        future.add_done_callback(lambda _: ended.set_result(None))
        return future

    def _enter(self) -> None:
        """Note that this thread is one of the pool's."""
        self._inside.here = True

    def stream(self, request: InferRequest, *, bare: bool) -> Replies:
        """Refuse: streams need gRPC."""
        del bare
        raise SourceError(
            f"{request.model!r} is to be streamed, which takes gRPC: open the session with grpc://host:port, "
            f"not with {self._shown}"
        )

    def index(self) -> Sequence[ModelState]:
        """Ask which models the server's repository has."""
        return read_index(self._json("POST", "v2/repository/index", {}))

    def load(self, name: str, parameters: Mapping[str, LoadParameter], seconds: float) -> None:
        """Have a model loaded."""
        written: dict[str, JSON] = {
            key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
            for key, value in parameters.items()
        }
        body: JSONObject = {"parameters": written} if written else {}
        self._repository(name, "load", body, seconds)

    def unload(self, name: str, seconds: float, session: str = "") -> None:
        """Have a model unloaded; as far as one session is concerned, where our server is told of one."""
        self._repository(name, "unload", {"parameters": {SESSION: session}} if session else {}, seconds)

    def counters(self, name: str) -> Counters | None:
        """Ask how often and how long a model ran; None where the server does not count."""
        try:
            return read_counters(self._json("GET", f"{_model(name)}/stats"))
        except NotFoundError:
            return None

    def counted(self) -> list[str]:
        """Ask which models the server counts calls of."""
        listed = as_list(as_object(self._json("GET", "v2/models/stats")).get("model_stats"))
        return list(dict.fromkeys(str(as_object(each).get("name")) for each in listed))

    def register(self, region: str, key: str, size: int) -> None:
        """Tell the server of a region of shared memory."""
        place = f"v2/systemsharedmemory/region/{_quoted(region)}/register"
        self._done("POST", place, {"key": key, "offset": 0, "byte_size": size})

    def knows(self, region: str) -> bool:
        """Ask whether the server knows a region of shared memory."""
        try:
            listed = as_list(self._json("GET", f"v2/systemsharedmemory/region/{_quoted(region)}/status"))
        except ResponseError:
            return False
        return any(as_object(each).get("name") == region for each in listed)

    def unregister(self, region: str) -> None:
        """Tell the server to forget one."""
        self._done("POST", f"v2/systemsharedmemory/region/{_quoted(region)}/unregister", {})

    def renew(self, session: str, lease: float) -> None:
        """Keep a session's tensors and models for so many seconds."""
        self._done("PUT", _session(session), {"lease_s": lease})

    def end(self, session: str) -> None:
        """Let a session's tensors and models go."""
        check_status(self._ask("DELETE", _session(session), seconds=END_SECONDS))

    def forget(self, session: str, keys: Sequence[str]) -> None:
        """Let some of a session's tensors go."""
        self._done("POST", f"{_session(session)}/forget", {"keys": list(keys)})

    def close(self) -> None:
        """Close the connections; it may be done twice."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if os.getpid() == self._pid:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                own = getattr(self._inside, "here", False)  # who closes from a callback waits for itself
                if not own and not wait(list(self._going), LEAVE_SECONDS).not_done:
                    pool.shutdown()
            self._transport.close()

    def _check(self) -> None:
        """Refuse what comes after the end; start again in the child of a fork."""
        if self._closed:
            raise SessionClosedError("the session was closed")
        if os.getpid() != self._pid:
            self._begin()

    def _repository(self, name: str, what: str, body: JSONObject, seconds: float) -> None:
        """Have something done to a model."""
        place = f"v2/repository/models/{_quoted(name)}/{what}"
        check_status(self._ask("POST", place, dumps(body), _JSON, seconds))

    def _json(self, method: str, place: str, body: JSONObject | None = None) -> JSON:
        """Make a call that answers with JSON."""
        return parse_json(self._ask(method, place, b"" if body is None else dumps(body), _JSON))

    def _done(self, method: str, place: str, body: JSONObject | None = None) -> None:
        """Make a call whose answer says nothing."""
        check_status(self._ask(method, place, b"" if body is None else dumps(body), _JSON))

    def _ask(
        self,
        method: str,
        place: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Reply:
        """Send a request; what was never sent is tried again."""
        self._check()
        for tries_left in reversed(range(_TRIES)):
            try:
                return self._transport.ask(
                    method,
                    place,
                    body=body,
                    headers={**self._headers, **(headers or {})},
                    read_timeout=self._seconds if seconds is None else seconds,
                )
            except ConnectError as error:
                if error.permanent or not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")


def _quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="")


def _model(name: str) -> str:
    """Return a model's path."""
    return f"v2/models/{_quoted(name)}"


def _session(name: str) -> str:
    """Return a session's path."""
    return f"v2/predsession/sessions/{_quoted(name)}"
