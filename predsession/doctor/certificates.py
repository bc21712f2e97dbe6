"""Whether a certificate is good, and what is wrong with one that is not."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from predsession.doctor.findings import Finding, bad, ok, warning
from predsession.doctor.wires import Dial, Tongue, agree, for_grpc, tongue_of, trusting_all

SOON_DAYS = 14
"""A certificate that ends sooner is worth a word."""
_CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True)
class Peer:
    """Who shows a certificate.

    Parameters
    ----------
    name : str
        The host that it must be for.
    port : int
        Where it is shown.
    whose : str
        How it is called: "The server's".
    """

    name: str
    port: int
    whose: str = "The server's"


def trusting(ca: str | None) -> ssl.SSLContext:
    """Return a context that trusts the authorities of a file or a folder, and, as requests, no others."""
    if ca is not None and Path(ca).is_dir():
        return ssl.create_default_context(capath=ca)
    return ssl.create_default_context(cafile=ca)


def look_at_certificate(dial: Dial, peer: Peer, *, ca: str | None) -> tuple[bool, Finding]:
    """Agree on TLS as a request would.

    Parameters
    ----------
    dial : callable
        Makes a connection to whoever shows it.
    peer : Peer
        Whose certificate it must be.
    ca : str or None
        The authorities that are trusted, a file or a folder; None trusts everybody.

    Returns
    -------
    bool
        Whether a request can go on.
    Finding
        What is to be said of it.
    """
    unusable = look_at_authorities(ca)
    if unusable is not None:
        return False, unusable
    try:
        with dial() as connection:
            shown = agree(connection, trusting_all() if ca is None else trusting(ca), peer.name).getpeercert()
    except ssl.SSLCertVerificationError as error:
        return False, bad(_CERTIFICATE, *_distrusted(error, peer))
    except OSError as error:
        return False, bad(_CERTIFICATE, *_disagreed(error, dial, peer))
    if ca is None:
        text = (
            "Certificates are not checked (verify=False): anybody in between can read and change everything."
        )
        return True, warning(_CERTIFICATE, text, "Pass the authority's certificate instead: --ca FILE.")
    ends = (shown or {}).get("notAfter")
    return True, _ending(ends if isinstance(ends, str) else None, peer)


def _disagreed(error: OSError, dial: Dial, peer: Peer) -> tuple[str, str]:
    """Say why TLS is not agreed on."""
    if "WRONG_VERSION_NUMBER" in str(error) or "record layer" in str(error).lower():
        return _without_tls(peer, tongue_of(dial))
    reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
    if isinstance(error, TimeoutError):
        reason = "no answer in time"
    text = f"No TLS connection comes about with port {peer.port}: {str(reason).replace('_', ' ').lower()}."
    return text, "Is it the right port? An old server may offer old TLS only."


def look_at_authorities(ca: str | None) -> Finding | None:
    """Load what is trusted, before anything is sent.

    Parameters
    ----------
    ca : str or None
        A file or a folder of authorities.

    Returns
    -------
    Finding or None
        What is wrong with it.
    """
    advice = "--ca FILE, verify= in Python, or REQUESTS_CA_BUNDLE named it: correct that."
    try:
        if ca is not None:
            os.stat(ca)  # noqa: PTH116 - "" is no folder, which Path("") is
        trusting(ca)
    except ssl.SSLError:
        text = f"{ca}, whose authorities are to be trusted, holds no certificate that can be read."
        return bad(_CERTIFICATE, text, "It must be PEM: text with a line BEGIN CERTIFICATE. " + advice)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        text = f"{ca}, whose authorities are to be trusted, cannot be read: {reason}."
        return bad(_CERTIFICATE, text, advice)
    return None


def _without_tls(peer: Peer, spoken: Tongue) -> tuple[str, str]:
    """Say what is at a port that knows no TLS."""
    if spoken is Tongue.HTTP:
        return (
            f"Port {peer.port} speaks no TLS: it is a plain HTTP server's.",
            "Write http:// instead of https://.",
        )
    if spoken is Tongue.GRPC:
        return f"Port {peer.port} speaks no TLS, but {spoken.value}.", for_grpc(peer.name, peer.port)
    return f"Port {peer.port} speaks no TLS, and {spoken.value}.", "Is it the right port?"


def _distrusted(error: ssl.SSLCertVerificationError, peer: Peer) -> tuple[str, str]:
    """Say what is wrong with a certificate; the numbers are OpenSSL's X509_V_ERR_*."""
    code = error.verify_code
    if code == 10:
        return f"{peer.whose} certificate has expired.", "Whoever runs it must renew it."
    if code == 9:
        advice = "Set this machine's clock right; if it is right, the certificate was made too early."
        return f"{peer.whose} certificate is not valid yet.", advice
    if code in (62, 64):
        advice = "Use the name that the certificate was made for in the URL; it was made for another host."
        return f"{peer.whose} certificate is not for {peer.name}.", advice
    if code in (18, 19, 20, 21):
        advice = (
            "If it is your company's own, pass that authority's certificate: --ca FILE, verify='FILE' in "
            "Python, or REQUESTS_CA_BUNDLE=FILE in the environment."
        )
        return f"{peer.whose} certificate was made by an authority that is not trusted here.", advice
    return f"{peer.whose} certificate is refused: {error.verify_message}.", "Ask whoever runs it."


def _ending(ends: str | None, peer: Peer) -> Finding:
    """Say how long a good certificate is valid."""
    if ends is None:
        return ok(_CERTIFICATE, f"{peer.whose} certificate is good.")
    until = datetime.fromtimestamp(ssl.cert_time_to_seconds(ends), UTC)
    days = (until - datetime.now(UTC)).days
    text = f"{peer.whose} certificate is good until {until:%Y-%m-%d}"
    if days < SOON_DAYS:
        return warning(_CERTIFICATE, f"{text}: {days} more days.", "Whoever runs it must renew it soon.")
    return ok(_CERTIFICATE, f"{text}.")
