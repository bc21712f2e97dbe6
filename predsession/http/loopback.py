"""Which hosts are this machine: they are never reached through a proxy."""

from __future__ import annotations

import ipaddress
import socket


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine.

    Parameters
    ----------
    host : str
        A name or an address, as a URL has it.

    Returns
    -------
    bool
        True for ``localhost`` and names below it, for 127.0.0.0/8 in any notation, ::1, and the unspecified
        addresses, which lead here, too.
    """
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(name)
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.inet_aton(name))  # 127.1, 0x7f.1 and the like
        except OSError:
            return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified
