"""One HTTP answer as a value: its JSON, or the error that its status stands for.

Messages carry the endpoint, the status and the first part of the body; the URL is shown as the transport
shows it, with secrets taken out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from predsession import errors
from predsession.wire.jsontext import loads
from predsession.wire.jsontypes import JSON

MOST_NESTED = 100
"""Levels of lists and objects in an answer; the deepest that is known has a dozen. Readers may recurse."""

_PLAIN = bytes(set(range(256)) - set(b'[]{}"'))
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_STRINGS = re.compile(rb'(?:"[^"]*")+')


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP answer.

    Parameters
    ----------
    status : int
        HTTP status.
    headers : mapping
        Names in lower case; ``retry-after`` in seconds and ``location`` without secrets, as the
        transport prepares them.
    body : bytes
        The whole body.
    url : str
        Where it came from, with secrets taken out.
    secrets : tuple of str
        What was sent and must not be shown: many a server repeats in its answer what it was asked.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    url: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def head(self) -> str:
        """The first characters of the body, on one line, without secrets."""
        text = self.veiled(self.body[: errors.BODY_HEAD * 8].decode("utf-8", "replace"))
        return " ".join(text.split())[: errors.BODY_HEAD]

    def veiled(self, text: str) -> str:
        """Return a text of this answer without the secrets that it repeats."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def parse_json(reply: Reply) -> JSON:
    """Turn a good answer into JSON, a bad one into an error.

    Parameters
    ----------
    reply : Reply
        The answer.

    Returns
    -------
    JSON
        The parsed body.

    Raises
    ------
    ResponseError
        For a status other than 2xx: the subclass that fits.
    ProtocolError
        For a body that is not JSON, or is nested more than `MOST_NESTED` levels deep.
    """
    check_status(reply)
    try:
        body = loads(reply.body)
        if not _is_deep(reply.body):
            repeats = any(secret.encode() in reply.body for secret in reply.secrets)
            return _veiled(body, reply) if repeats else body
        failure = errors.ProtocolError(
            f"{reply.url} answered JSON that is nested more than {MOST_NESTED} levels deep", url=reply.url
        )
    except (ValueError, RecursionError):
        failure = not_json(reply)
    raise failure


def _veiled(value: JSON, reply: Reply) -> JSON:
    """Return a value without the secrets that it repeats."""
    if isinstance(value, str):
        return reply.veiled(value)
    if isinstance(value, Mapping):
        return {reply.veiled(key): _veiled(inner, reply) for key, inner in value.items()}
    return [_veiled(inner, reply) for inner in value] if isinstance(value, list) else value


def _is_deep(text: bytes) -> bool:
    """Return whether JSON has more than `MOST_NESTED` levels; far cheaper than walking through it."""
    if len(text) <= 2 * MOST_NESTED:
        return False
    if b"\0" in text:  # UTF-16 or 32: there the bytes of a letter may look like brackets
        text = text.decode(json.detect_encoding(text), "surrogatepass").encode("utf-8", "surrogatepass")
    if b"\\" in text:
        text = _ESCAPED.sub(b"", text)
    brackets = _STRINGS.sub(b"", text.translate(None, _PLAIN))
    for _ in range(MOST_NESTED):  # each round takes the innermost level away
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return bool(brackets)


def not_json(reply: Reply) -> errors.ProtocolError:
    """Return the error for a good answer whose body is a page, or was cut off."""
    kind = reply.headers.get("content-type", "no content type")
    return errors.ProtocolError(
        f"{reply.url} answered {reply.status} with {kind}, not JSON: {reply.head!r}. "
        "Is it an inference server, and not a login page or a proxy?",
        url=reply.url,
    )


def is_garbled(reply: Reply) -> bool:
    """Whether the body is no JSON: a proxy's page in its place, or only a part of it."""
    body = reply.body
    if body[:1] == b"{" and body[-1:] == b"}" and body.count(b"{") == body.count(b"}"):
        return False  # whoever wanted the answer parses it: for a long one that is not to be done twice
    try:
        loads(body)
    except ValueError:
        return True
    except RecursionError:
        return False  # it would be the same the next time
    return False


def check_status(reply: Reply) -> None:
    """Raise the error that a status other than 2xx stands for."""
    if not 200 <= reply.status < 300:
        raise error_of(reply)


_BY_STATUS: dict[int, type[errors.ResponseError]] = {
    400: errors.InvalidRequestError,
    401: errors.AuthError,
    403: errors.AuthError,
    404: errors.NotFoundError,
    405: errors.NotFoundError,
    413: errors.UploadTooLargeError,
    415: errors.InvalidRequestError,
    422: errors.InvalidRequestError,
    429: errors.RateLimitError,
}

_REMEDY: dict[type[errors.ResponseError], str] = {
    errors.AuthError: " Pass token=..., or set PREDSESSION_TOKEN.",
    errors.NotFoundError: " Is the URL the server's base URL?",
}


def error_of(reply: Reply) -> errors.ResponseError:
    """Return the error for an answer whose status is not 2xx.

    Parameters
    ----------
    reply : Reply
        The answer.

    Returns
    -------
    ResponseError
        Of the subclass that fits the status.
    """
    kind = _BY_STATUS.get(reply.status)
    if kind is None:
        kind = errors.ServerFaultError if reply.status >= 500 else errors.ResponseError
    words = error_text(reply).rstrip(".")
    remedy = _REMEDY.get(kind, "")
    if kind is errors.NotFoundError and is_own_text(reply):
        remedy = ""  # it knows the address, and misses something else
    text = f"{reply.url} answered {reply.status}: {words}.{remedy}"
    if 300 <= reply.status < 400:
        target = reply.headers.get("location", "nowhere")
        text = f"{reply.url} redirects to {target}; uploads do not follow: use that address as the URL."
    return kind(
        text, status=reply.status, body_head=reply.head, retry_after=_retry_after(reply), url=reply.url
    )


def _retry_after(reply: Reply) -> float | None:
    """Return the seconds the server asks to wait; the transport has turned dates into seconds."""
    try:
        return float(reply.headers["retry-after"])
    except (KeyError, ValueError):
        return None


def error_text(reply: Reply) -> str:
    """Return in one line what an error answer says, whichever of the known shapes it has."""
    try:
        body = json.loads(reply.body)
    except (ValueError, RecursionError):
        return _without_markup(reply.head) or "an empty body"
    if isinstance(body, str):
        return reply.veiled(body)[: errors.BODY_HEAD]
    if isinstance(body, dict):
        detail = body.get("detail")
        inner = detail.get("message") if isinstance(detail, dict) else detail
        for text in (body.get("message"), inner, body.get("error")):
            if isinstance(text, str) and text:
                return reply.veiled(text)[: errors.BODY_HEAD]
    return reply.head


def is_own_text(reply: Reply) -> bool:
    """Whether an error is told by an inference server in words of its own, not by what stands before it."""
    try:
        body = json.loads(reply.body)
    except (ValueError, RecursionError):
        return False
    detail = body.get("detail") if isinstance(body, dict) else None
    return isinstance(body, dict) and detail not in ("Not Found", "Method Not Allowed")


def _without_markup(text: str) -> str:
    """Shorten an HTML page to its title; other text stays."""
    lower = text.lower()
    start, end = lower.find("<title>"), lower.find("</title>")
    if 0 <= start < end:
        return f"an HTML page, {text[start + 7 : end].strip()!r}"
    return "an HTML page" if lower.startswith(("<!doctype", "<html")) else text


def is_own_fault(status: int, head: str) -> bool:
    """Whether a 500 is told by the server itself, in JSON, not by a page or in no words at all."""
    return status == 500 and head.startswith("{")


def is_unknown_job(reply: Reply) -> bool:
    """Whether the server says that it does not know the uuid (a stock server: status 500)."""
    return reply.status in (404, 410, 500) and b"no such uuid" in reply.body
