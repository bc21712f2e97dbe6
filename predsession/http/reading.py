"""Reading an answer of requests: bounded in size, no redirect looked at. A part of `transport`."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

import requests

from predsession import errors
from predsession.http.auth import Secret, show_url
from predsession.http.patience import MOST_BYTES
from predsession.http.retry import parse_retry_after
from predsession.wire.httpreply import Reply

REDIRECTS = frozenset((301, 302, 303, 307, 308))
TARGET = "(target)"
"""Where a redirect of a foreign URL leads, beside the headers; no header can have such a name."""


class Untempted(requests.Session):
    """Looks at no redirect: requests would read all of its body, and stumble over an odd address."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Say that there is none."""


def redirected(answer: requests.Response, url: str) -> dict[str, str]:
    """Return the headers of a redirect, and where it leads if that can be told."""
    headers = prepared(answer.headers)
    try:
        target = urljoin(url, answer.headers["location"].encode("latin-1").decode("utf-8"))
        usable = urlsplit(target).scheme in ("http", "https")
    except (KeyError, ValueError):
        usable = False
    return {**headers, TARGET: Secret(target)} if usable else headers


def read_reply(answer: requests.Response, shown: str, *, secrets: tuple[str, ...]) -> Reply:
    """Read the whole answer, bounded in size; `patience` bounds the time."""
    data = bytearray()
    # Not `content`: it takes any amount, also of what was a thousand times smaller on its way.
    while block := answer.raw.read1(1 << 16, decode_content=True):
        data += block
        if len(data) > MOST_BYTES:
            raise errors.ProtocolError(f"{shown} answers more than {MOST_BYTES} bytes", url=shown)
    return Reply(answer.status_code, prepared(answer.headers), bytes(data), shown, secrets)


def prepared(headers: Mapping[str, str]) -> dict[str, str]:
    """Lower the names; turn ``Retry-After`` into seconds and take secrets out of ``Location``."""
    prepared = {name.lower(): value for name, value in headers.items()}
    if "retry-after" in prepared:
        prepared["retry-after"] = str(parse_retry_after(prepared["retry-after"]))
    if "location" in prepared:
        prepared["location"] = show_url(prepared["location"])
    return prepared
