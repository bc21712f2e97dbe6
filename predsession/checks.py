"""The values of a session's own keywords, checked before anything is sent."""

from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol, cast
from urllib.parse import urlsplit

from predsession.errors import PredSessionError, SourceError
from predsession.http.auth import Secret
from predsession.http.loopback import is_loopback
from predsession.http.retry import RetryPolicy
from predsession.http.transport import ConnectionOptions, HttpTransport
from predsession.inputs.encoding import COMPACT, QUICK, Encoding, read_encoding
from predsession.inputs.images import ImageLimits
from predsession.wire.jsontypes import JSON, JSONObject, as_object

OnError = Literal["raise", "skip", "yield"]

URL_VARIABLE = "PREDSESSION_URL"
"""The environment variable that names the server where no url is passed."""


def url_of_environment() -> str | None:
    """Return the server that the environment names; None where it names none, or is blank."""
    return os.environ.get(URL_VARIABLE, "").strip() or None


class Api(Protocol):
    """What is read of an ``api`` object; a Supervisely ``Api`` fits."""

    @property
    def token(self) -> str | None:
        """The token to send."""

    @property
    def retry_count(self) -> int | None:
        """How many tries a call gets."""


def check_seconds(name: str, value: object, *, least: float = 1e-3) -> float:
    """Return a finite number of seconds, at least so many; else raise `ValueError` with the name."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or float(str(value)) < least:
        raise ValueError(f"{name} must be a number of seconds, at least {least:g}, not {value!r}")
    return float(str(value))


def check_count(name: str, value: object) -> int | None:
    """Return a whole number of at least 1, or None; else raise `ValueError` with the name."""
    if value is None:
        return None
    try:
        count = 0 if isinstance(value, bool) else operator.index(cast("int", value))
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
    return count


def check_on_error(value: str) -> OnError:
    """Return the choice, or raise `ValueError`."""
    if value not in ("raise", "skip", "yield"):
        raise ValueError(f"on_error must be 'raise', 'skip' or 'yield', not {value!r}")
    return cast("OnError", value)


def check_token(token: str | None) -> str | None:
    """Return the token, or raise `ValueError`; the token itself is in no message."""
    if token is None:
        return None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("the token must be a text of printable ASCII characters without blanks")
    return Secret(token)


def check_connection(options: ConnectionOptions) -> ConnectionOptions:
    """Check how the server is to be reached.

    Parameters
    ----------
    options : ConnectionOptions
        As the caller gave them.

    Returns
    -------
    ConnectionOptions
        The same, paths as text.

    Raises
    ------
    ValueError
        If a time is no time, a file is missing, or the proxies are no mapping; names the keyword.
    """
    check_seconds("connect_timeout", options.connect_timeout)
    check_seconds("timeout", options.read_timeout)
    if options.proxies is not None and not isinstance(options.proxies, Mapping):
        raise ValueError("proxies must be a mapping such as {'https': 'http://proxy:3128'}")
    verify = options.verify if isinstance(options.verify, bool) else _existing("verify", options.verify)
    cert = options.cert
    if isinstance(cert, tuple | list):
        first, second = (_existing("cert", each) for each in cert)
        cert = (first, second)
    elif cert is not None:
        cert = _existing("cert", cert)
    return replace(options, verify=verify, cert=cert)


def _existing(name: str, path: object) -> str:
    """Return a path that exists."""
    if not isinstance(path, str | os.PathLike) or not Path(path).exists():
        raise ValueError(f"{name}={path!r} is no file that exists")
    return os.fspath(path)


def limits(max_pixels: int | None) -> ImageLimits:
    """Return the limits for images."""
    count = check_count("max_pixels", max_pixels)
    return ImageLimits() if count is None else ImageLimits(count)


def encoding_for(url: str | None, chosen: str | None) -> Encoding:
    """Return how pixels travel: as chosen, else by where the server is; None is the embedded one."""
    if chosen is not None:
        return read_encoding(chosen)
    try:
        host = "localhost" if url is None else urlsplit(url).hostname or ""
    except ValueError:
        return COMPACT  # no URL, as will be told
    return QUICK if is_loopback(host) else COMPACT


def listed(classes: Sequence[str] | None) -> list[JSON] | None:
    """Return the classes as a list; a single name is taken for one class, not for its letters."""
    if classes is None:
        return None
    return [classes] if isinstance(classes, str) else list(classes)


def retry_policy(api: Api | None) -> RetryPolicy:
    """Return the policy, bounded as the ancestor's is where an api is given."""
    tries = getattr(api, "retry_count", None)
    if not isinstance(tries, int):
        return RetryPolicy()
    return RetryPolicy(tries=max(1, tries), bounded_connect=True)


def tracking_of(tracking: bool | None, config: Mapping[str, JSON] | None) -> JSONObject | None:
    """Return the tracking configuration, None not to track.

    Parameters
    ----------
    tracking : bool or None
        Whether to track.
    config : mapping or None
        The configuration; implies tracking.

    Returns
    -------
    mapping or None
        The configuration.

    Raises
    ------
    ValueError
        If it is no mapping, or the two contradict each other.
    """
    if config is not None and not isinstance(config, Mapping):
        raise ValueError(f"tracking_config must be a dict, not {type(config).__name__}")
    if tracking is False and config:
        raise ValueError("tracking=False contradicts tracking_config=")
    return dict(config or {}) if tracking or config else None


def project_of(
    dataset: int, api: Api | None, *, url: str | None, token: str | None, options: ConnectionOptions
) -> int:
    """Find the project of a dataset: by the ``api``, else by the server's library.

    Parameters
    ----------
    dataset : int
        The dataset's id.
    api : Api or None
        A Supervisely ``Api``, or anything with ``dataset.get_info_by_id``.
    url, token, options
        The server, where there is no api.

    Returns
    -------
    int
        The project's id.

    Raises
    ------
    SourceError
        If neither knows it.
    """
    datasets = getattr(api, "dataset", None)
    if datasets is not None:
        found = getattr(datasets.get_info_by_id(dataset), "project_id", None)
    else:
        found = _ask_library(dataset, url or url_of_environment(), token, options)
    if not isinstance(found, int):
        raise SourceError(
            f"the project of dataset {dataset} cannot be found; pass api=, or a server whose library has it"
        )
    return found


def _ask_library(dataset: int, url: str | None, token: str | None, options: ConnectionOptions) -> object:
    """Ask the server for a dataset's project."""
    if url is None:
        return None
    transport = HttpTransport(url, token=token, options=options)
    try:
        answer = json.loads(transport.fetch_own(f"library/datasets/{dataset}", max_bytes=1 << 20))
    except (PredSessionError, ValueError):
        return None
    finally:
        transport.close()
    return as_object(answer).get("project_id")
