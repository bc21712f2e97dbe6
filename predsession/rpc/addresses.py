"""gRPC's forms of an address."""

from __future__ import annotations


def is_local(endpoint: str) -> bool:
    """Say whether an address is on this machine, where no proxy stands between.

    Parameters
    ----------
    endpoint : str
        In any of gRPC's forms.

    Returns
    -------
    bool
        True for unix sockets and loopback addresses, in any of gRPC's ways to write them.
    """
    scheme, colon, rest = endpoint.partition(":")
    if scheme in {"unix", "unix-abstract"}:
        return True
    if scheme in {"dns", "ipv4", "ipv6"} and colon:
        # dns://server/name:port has the name server first; a list of addresses is local if all are.
        return all(is_local(each) for each in rest.rpartition("/")[2].split(","))
    return endpoint.lower().startswith(("127.", "localhost:", "[::1]:"))
