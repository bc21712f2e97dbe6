"""Tokens: where they come from and where they may go; URLs as they may be shown."""

from __future__ import annotations

import pytest

from predsession.errors import ConnectError
from predsession.http.auth import Credentials, check_endpoint, find_token, show_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://app.example.com/net/s3cr3t/get_status", "https://app.example.com/net/***/get_status"),
        ("https://user:pass@host/x", "https://host/x"),
        ("https://bucket/a.jpg?X-Amz-Signature=s3cr3t#s3cr3t", "https://bucket/a.jpg?***"),
    ],
)
def test_secrets_are_not_shown(url: str, shown: str) -> None:
    """User info, query, fragment and a session token in the path are taken out."""
    assert show_url(url) == shown


@pytest.mark.parametrize(
    "other",
    [
        "http://host/x",
        "https://host:444/x",
        "https://host.evil.com/x",
        "https://evil.com/host",
        "https://evil@x/",
    ],
)
def test_a_token_goes_to_its_own_origin_only(other: str) -> None:
    """Another scheme, port or host never receives it."""
    credentials = Credentials("https://host/base", "s3cr3t")
    assert credentials.headers_for("https://HOST:443/any") == {"x-api-key": "s3cr3t"}
    assert credentials.headers_for(other) == {}


def test_a_token_is_in_no_repr() -> None:
    """Neither is the endpoint, whose path may hold one."""
    assert "s3cr3t" not in repr(Credentials("https://host/net/s3cr3t", "s3cr3t"))


def test_tokens_are_looked_for_in_order() -> None:
    """The caller's own, the api's, the environment's."""
    env = {"PREDSESSION_TOKEN": "env"}
    assert find_token("own", "api", explicit_url=None, env=env) == "own"
    assert find_token(None, "api", explicit_url=None, env=env) == "api"
    assert find_token(None, None, explicit_url=None, env=env) == "env"
    assert find_token(None, None, explicit_url=None, env={}) is None


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("https://app.supervisely.com/net/abc", "platform"),
        ("https://my.company/net/abc", "platform"),
        ("http://127.0.0.1:8000", None),
        ("https://notsupervisely.com/", None),
        (None, None),
    ],
)
def test_api_token_goes_to_a_platform_that_was_named(url: str | None, token: str | None) -> None:
    """API_TOKEN is on many machines: it is used only where the caller named a platform's URL."""
    assert find_token(None, None, explicit_url=url, env={"API_TOKEN": "platform"}) == token


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "ftp://host", "http://", "http://h:99999", "http://[::1"]
)
def test_a_bad_endpoint_is_refused_before_anything_is_sent(url: str) -> None:
    """The error shows what was passed and what is wanted, and is not worth a retry."""
    with pytest.raises(ConnectError, match=r"http://127\.0\.0\.1:8000") as caught:
        check_endpoint(url)
    assert caught.value.permanent
    assert "s3cr3t" not in str(caught.value)
