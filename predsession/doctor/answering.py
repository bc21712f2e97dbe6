"""What comes back to the first question: an inference server's answer, a login page, a proxy's error."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

from predsession import errors
from predsession.doctor.findings import Finding, bad, ok, warning
from predsession.doctor.proxies import NOWHERE, look_at_its_own, past, told_of_proxy, wants_password
from predsession.doctor.target import Target
from predsession.doctor.wires import Tongue, for_grpc
from predsession.http.auth import Secret, show_url
from predsession.http.loopback import is_loopback
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.wire import calls
from predsession.wire.httpreply import Reply, error_text, is_garbled, is_own_text, parse_json
from predsession.wire.jsontypes import as_object

_KNOWN_KEYS = frozenset({"app_name", "session_id", "number_of_classes", "task type", "predsession"})
"""A server of the protocol says at least one of these (docs/protocol.md, get_session_info)."""
_TLS = {"grpc": "without", "grpcs": "with"}
_PARENTS = 3
"""Addresses above a wrong one that are asked."""
_TOKEN = "Pass --token, token= in Python, or set PREDSESSION_TOKEN."  # noqa: S105 - advice


def ask_info(transport: HttpTransport) -> Reply:
    """Ask what the server is, once: what fails now and then is to be seen."""
    return transport.send(calls.session_info())


def is_of_protocol(reply: Reply) -> bool:
    """Whether an answer is one of an inference server of this protocol."""
    if reply.status != 200 or is_garbled(reply):
        return False
    try:
        return bool(_KNOWN_KEYS & as_object(parse_json(reply)).keys())
    except errors.ProtocolError:
        return False


def look_at_failure(
    error: errors.TransportError, target: Target, *, timeout: float, spoken: Callable[[], Tongue]
) -> Finding:
    """Say why no answer came, though there is a connection.

    Parameters
    ----------
    error : TransportError
        What came instead.
    target : Target
        From where.
    timeout : float
        Seconds that were waited.
    spoken : callable
        Finds out what the port speaks.

    Returns
    -------
    Finding
        A bad one.
    """
    if target.proxy is not None:
        return _failed_behind(error, target, timeout)
    if isinstance(error, errors.RequestTimeoutError):
        text = f"The server takes connections but gave no answer within {timeout:g} s."
        return bad("answer", text, "It hangs, or is overloaded: look at its log; restart it.")
    tongue = spoken() if target.scheme == "http" else Tongue.UNKNOWN
    if tongue is Tongue.GRPC:
        return bad(
            "answer",
            f"Port {target.port} speaks {tongue.value}, not HTTP.",
            for_grpc(target.host, target.port),
        )
    if tongue is Tongue.TLS:
        return bad("answer", f"Port {target.port} speaks TLS.", "Write https:// instead of http://.")
    text = f"No sound answer came: {error}."
    if tongue is Tongue.HTTP:
        advice = "The port does speak HTTP: look at the server's log, or that of a proxy before it."
        return bad("answer", text, advice)
    return bad("answer", text, "Is it the right port? If so, look at the server's log.")


def _failed_behind(error: errors.TransportError, target: Target, timeout: float) -> Finding:
    """Say why no answer came through a proxy."""
    if isinstance(error, errors.RequestTimeoutError):
        text = f"No answer came through the proxy {target.shown_proxy} within {timeout:g} s."
        return bad(
            "answer", text, f"It hangs, or the server behind it: look at the logs of both. {past(target)}"
        )
    if isinstance(error, errors.ConnectError) and error.permanent:
        return bad("answer", f"{error}", "That is no fault of the proxy's: look at what is named there.")
    advice = f"Ask whoever runs the proxy, or add {target.host} to no_proxy to go past it."
    return bad("answer", f"No answer came through the proxy {target.shown_proxy}: {error}", advice)


def look_at_grpc(target: Target, tongue: Tongue) -> Finding:
    """Say what is behind an address of gRPC's: this examination goes no further than that.

    Parameters
    ----------
    target : Target
        The address.
    tongue : Tongue
        What its port speaks.

    Returns
    -------
    Finding
        Well if it is gRPC, as far as that can be seen.
    """
    if tongue is Tongue.HTTP:
        advice = f"Pass http://{target.host}:{target.port}, or the port of its gRPC."
        return bad("answer", f"Port {target.port} speaks HTTP/1.1, which is no gRPC.", advice)
    wanted = Tongue.TLS if target.scheme == "grpcs" else Tongue.GRPC
    if tongue is wanted:
        text = f"Port {target.port} speaks {tongue.value}. More than that is not looked at over gRPC."
        return ok("answer", text, for_grpc(target.host, target.port))
    if tongue is Tongue.UNKNOWN:
        return bad("answer", f"Port {target.port} speaks {tongue.value}.", "Is it the right port?")
    right = "grpcs://" if tongue is Tongue.TLS else "grpc://"
    text = f"Port {target.port} speaks {tongue.value}; {target.scheme}:// means it {_TLS[target.scheme]} TLS."
    return bad("answer", text, f"Write {right}.")


def look_at_answer(reply: Reply, target: Target, *, token: str | None, options: ConnectionOptions) -> Finding:
    """Say whether the first answer is one of an inference server, and what it is otherwise.

    Parameters
    ----------
    reply : Reply
        The answer to get_session_info.
    target : Target
        From where.
    token : str or None
        What was sent along.
    options : ConnectionOptions
        To ask other addresses of the same server.

    Returns
    -------
    Finding
        Well if a run can go on.
    """
    if target.proxy is not None and target.scheme == "http" and not is_of_protocol(reply):
        # Over TLS it is the server's for sure, or a proxy's that looks into it, and knows CONNECT.
        own = look_at_its_own(target, reply, nowhere=lambda: _quietly(ask_info, NOWHERE, None, options))
        if own is not None:
            return own
    return told_of_proxy(target, _look(reply, target, token=token, options=options))


def _look(reply: Reply, target: Target, *, token: str | None, options: ConnectionOptions) -> Finding:
    """Say what the first answer means, whoever gave it."""
    status = reply.status
    if is_of_protocol(reply):
        front = reply.headers.get("server")
        return ok("answer", "An inference server answers" + (f" ({front})." if front else "."))
    if status == 200:
        return bad("answer", *_another_page(reply))
    if 300 <= status < 400:
        return bad("answer", *_redirect(reply, target))
    if status in (401, 403):
        return bad("answer", *_no_entry(reply, token))
    if status == 407:
        return bad("answer", *wants_password(target))
    if status == 429:
        return warning("answer", "The server asks to come back later (429).", "Try again in a minute.")
    if 400 <= status < 500 or status == 501:
        return bad("answer", *(_elsewhere(target, token=token, options=options) or _wrong_path(reply)))
    return bad("answer", *_failing(reply))


def _another_page(reply: Reply) -> tuple[str, str]:
    """Say what status 200 with something else means."""
    kind = reply.headers.get("content-type", "no content type").partition(";")[0]
    if is_garbled(reply) and "json" in kind.lower():
        text = f"What came is called {kind}, and is no JSON, or only a part of it: {reply.head[:120]!r}."
        return text, "Look at the server's log, and for a proxy that cuts answers off."
    if is_garbled(reply):
        text = f"A page came instead of an answer: status 200 with {kind}, {error_text(reply)}."
        advice = (
            "It is a login page, mostly, of what stands before the server: ask for an address, or a token, "
            "that programs may use. Or the URL is that of some web site."
        )
        return text, advice
    text = f"A server answers in JSON, but not as an inference server does: {reply.head[:120]!r}."
    return text, "Is it the right port and path? The base URL is the one below which get_session_info is."


def redirects_to(reply: Reply, target: Target) -> str:
    """Return the whole address that an answer sends on to, empty where that cannot be told."""
    place = reply.headers.get("location", "")
    try:
        return urljoin(f"{target.shown}/", place) if place else ""
    except ValueError:
        return ""


def _redirect(reply: Reply, target: Target) -> tuple[str, str]:
    """Say what to do about a redirect, which a POST must not follow."""
    place = redirects_to(reply, target)
    goal = place.removesuffix("/").removesuffix("/get_session_info")
    text = f"The server redirects to {place or 'nowhere'} ({reply.status}); uploads do not follow."
    if any(word in goal.lower() for word in ("login", "signin", "sign-in", "auth", "sso")):
        return text, f"It wants a login there. {_TOKEN}"
    return text, f"Use that address: {goal}" if goal else "Ask whoever runs the server for its address."


def _no_entry(reply: Reply, token: str | None) -> tuple[str, str]:
    """Say what 401 and 403 mean."""
    words = error_text(reply).rstrip(".")
    if token is None and reply.status == 401:
        return f"The server wants a token (401), and none was sent: {words}.", _TOKEN
    if token is None:
        return f"The server lets nobody in without a token, or not this way (403): {words}.", _TOKEN
    text = f"The server refuses the token that was sent ({reply.status}): {words}."
    return text, "Is it the token of this server? Quotes or a line break in the variable spoil it, too."


def _elsewhere(target: Target, *, token: str | None, options: ConnectionOptions) -> tuple[str, str] | None:
    """Look where the server is instead, or which other one is there; a Triton answers 404, an old one 400."""
    path = urlsplit(target.url).path
    parents = [path.rsplit("/", count)[0] for count in range(1, min(path.count("/"), _PARENTS) + 1)]
    root = target.url.removesuffix(path)
    for place in [root + parent for parent in parents]:
        found = _quietly(ask_info, Secret(place), token, options)
        if found is not None and is_of_protocol(found):
            text = "There is a web server, but no inference server at this path."
            return text, f"The server is at {show_url(place)}: use that as the URL."
    oip = _quietly(lambda asked: asked.ask("GET", "v2/health/ready"), Secret(root), token, options)
    if oip is not None and oip.status == 200 and not oip.head.startswith("<"):
        advice = f"Use `predsession tensor info {show_url(root)}`, or the address of a server of images."
        return "The server speaks the Open Inference Protocol (Triton, MLServer), not that of jobs.", advice
    return None


def _wrong_path(reply: Reply) -> tuple[str, str]:
    """Say what 404 and its like mean, where nothing better is known."""
    if reply.status not in (404, 405, 501):
        return _failing(reply)
    text = f"There is a web server, but no inference server at this path ({reply.status})."
    if is_own_text(reply):
        text = f"The server says: {error_text(reply)} ({reply.status})"
    return text, "Check the path and the port; the base URL is the one below which get_session_info is."


def _quietly(
    question: Callable[[HttpTransport], Reply], url: str, token: str | None, options: ConnectionOptions
) -> Reply | None:
    """Ask another address of the server, None where nothing comes."""
    transport = HttpTransport(url, token=token, options=options)
    try:
        return question(transport)
    except errors.TransportError:
        return None
    finally:
        transport.close()


def _failing(reply: Reply) -> tuple[str, str]:
    """Say what any other status means."""
    words, status = error_text(reply).rstrip("."), reply.status
    if "not yet been deployed" in words or "not deployed" in words:
        return f"The server is there, but has no model yet: {words}.", "Deploy a model on it, then try again."
    if status == 503 and is_own_text(reply):
        return f"The server is there, but not ready (503): {words}.", "Wait until its model is loaded."
    if status in (502, 503, 504):
        text = f"A proxy answers in the server's place ({status}: {words})."
        return text, "The server behind it is down, starting, or hangs: start it, or ask whoever runs it."
    if status >= 500:
        return f"The server fails at the simplest question ({status}: {words}).", "Look at its log."
    return f"The server refuses the simplest question ({status}: {words}).", "Is it an inference server?"


def bad_token() -> Finding:
    """Say that a token cannot be sent at all."""
    text = "The token holds a line break, a blank or a letter that no header can carry."
    return bad("token", text, f"Quotes, or the end of a file's line, are a part of it, mostly. {_TOKEN}")


def look_at_token(target: Target, token: str | None, *, options: ConnectionOptions) -> Finding:
    """Say whether a token is wanted, and whether it travels unseen.

    Parameters
    ----------
    target : Target
        Where to.
    token : str or None
        What was accepted.
    options : ConnectionOptions
        How to reach the server.

    Returns
    -------
    Finding
        A warning where the token can be read on its way.
    """
    if token is None:
        return ok("token", "No token was sent, and none is wanted: whoever reaches the server can use it.")
    bare = _quietly(ask_info, Secret(target.url), None, options)
    wanted = bare is not None and bare.status in (401, 403)
    text = (
        "The token is accepted." if wanted else "A token was sent, but the server answers without one, too."
    )
    if target.scheme == "http" and not is_loopback(target.host):
        advice = "Reach the server over https://, or through a tunnel."
        return warning("token", f"{text} It travels over plain HTTP, readable for all in between.", advice)
    return ok("token", text)
