"""What requests and urllib3 raise -> our errors. A part of `transport`: no foreign exception leaves it."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from contextlib import contextmanager

import requests
import urllib3

from predsession import errors
from predsession.http.discretion import discreet


@contextmanager
def translated(shown: str) -> Iterator[None]:
    """Turn what requests raises into our errors; the original's text may hold a URL, so it is not kept."""
    try:
        with discreet():
            yield
    except requests.RequestException as error:
        raise _translate(error, shown) from None
    except urllib3.exceptions.HTTPError as error:
        # requests lets some of these through while a streamed body is read.
        if isinstance(error, urllib3.exceptions.TimeoutError):
            raise errors.RequestTimeoutError(f"the answer of {shown} comes too slowly", url=shown) from None
        text = f"the connection to {shown} broke: {_detail(_cause(error))}"
        raise errors.TransportError(text, url=shown) from None


_UNSENT = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.NameResolutionError,
    urllib3.exceptions.ConnectTimeoutError,
)


def _translate(error: requests.RequestException, shown: str) -> errors.TransportError:
    """Return our error for one of requests'."""
    cause = _cause(error)
    if isinstance(error, requests.exceptions.SSLError):
        return errors.ConnectError(
            f"cannot trust {shown}: {_detail(cause)}. For a certificate of your own authority pass "
            "verify='/path/to/ca.pem'.",
            url=shown,
            permanent=True,
        )
    if isinstance(error, requests.exceptions.ProxyError) or isinstance(cause, urllib3.exceptions.ProxyError):
        return errors.ConnectError(
            f"cannot reach {shown} through the proxy: {_detail(cause)}. To go past it add the host to "
            "no_proxy in the environment, or pass proxies={} in Python.",
            url=shown,
        )
    if isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema):
        return errors.ConnectError(f"{shown} is not a usable URL", url=shown, permanent=True)
    if isinstance(error, requests.ConnectTimeout) or isinstance(cause, _UNSENT):
        return errors.ConnectError(
            f"cannot reach {shown}: {_detail(cause)}. Is the server running, and the address right?",
            url=shown,
        )
    if isinstance(error, requests.Timeout) or "timed out" in str(cause):
        return errors.RequestTimeoutError(
            f"{shown} gave no answer in time; pass a larger timeout= if it may take that long", url=shown
        )
    return errors.TransportError(f"the connection to {shown} broke: {_detail(cause)}", url=shown)


def _cause(error: BaseException) -> BaseException:
    """Return the innermost exception: requests and urllib3 wrap it several times."""
    for _ in range(8):
        inner = getattr(error, "reason", None) or next(
            (arg for arg in error.args if isinstance(arg, BaseException)), None
        )
        if not isinstance(inner, BaseException):
            break
        error = inner
    return error


_REFUSED = re.compile(r"Tunnel connection failed: (\d{3})\b")
"""http.client's text for a proxy's answer to CONNECT that is no 200; what follows is the proxy's own."""
_IN_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (http.client.RemoteDisconnected, "it was closed without an answer"),
    (http.client.BadStatusLine, "what came is no HTTP"),
    (http.client.UnknownProtocol, "what came is no HTTP"),
    (http.client.LineTooLong, "a line of its headers is too long"),
    (http.client.IncompleteRead, "the answer ends too early"),
    (urllib3.exceptions.IncompleteRead, "the answer ends too early"),
    (http.client.HTTPException, "its headers are no sound HTTP, or too many"),
    (TimeoutError, "no answer in time"),
)


def _detail(cause: BaseException) -> str:
    """Describe a cause without the address it may hold."""
    reason = cause.__cause__ or cause.__context__ or cause
    text = getattr(reason, "strerror", None) or getattr(reason, "verify_message", None)
    if text:
        return str(text)
    refused = _REFUSED.match(str(cause))
    if refused is not None:
        return f"it refuses the way through, with status {refused[1]}"
    return next((words for kind, words in _IN_WORDS if isinstance(cause, kind)), type(cause).__name__)
