"""Networks that addresses stand for, where callers are counted by address."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv6Address, IPv6Network

HOST_BITS_FROM = 64
"""The network that one host is given whole under IPv6 (RFC 4291, 2.5.1): it may call from any address in it."""


def network_of(address: str) -> str:
    """An IPv4 address as it is, an IPv6 address as its /64; what is neither (no address is known) as it is."""
    if ":" not in address:
        return address
    try:
        whole = IPv6Address(address)
    except AddressValueError:
        return address
    if whole.ipv4_mapped is not None:
        return str(whole.ipv4_mapped)
    if whole.is_loopback:
        return address
    return str(IPv6Network((whole.packed[:8] + bytes(8), HOST_BITS_FROM)))
