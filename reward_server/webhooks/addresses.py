"""Addresses that a webhook may point to, so that nobody can use the server to reach what only it can reach.

A name is resolved once for each attempt, all its addresses have to be public, and the connection goes to one of exactly
those: a name that answers differently a moment later changes nothing. An operator may allow private and loopback
addresses (`LABS_WEBHOOK_PRIVATE_ADDRESSES`), for receivers in his own network; link-local ones, where clouds keep
credentials of machines, stay refused.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

import httpx2

from reward_server.webhooks.names import Address, NameLookups

MAX_URL_CHARACTERS = 2048
LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=0)
"""Of pools for `WebhookTarget.pinned`: no connection is used again. A pool tells connections apart by their address, so
one whose certificate was checked for a name could serve another name at the same address."""
MAX_HOST_CHARACTERS = 253
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
"""Of a name, as RFC 1035 has it; underscores are in use all the same."""
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20", "fec0::/10")))
"""Networks for protocols, relays, examples and sites (RFC 6890, 7526, 9637, 3879), which `is_global` has as public."""
_OF_MACHINES = tuple(
    map(ipaddress.ip_address, ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"))
)
"""Addresses at which clouds tell a machine its credentials; none is link-local, one is public."""
_INNER_NAMES = ("localhost", "localdomain", "local", "internal", "intranet", "lan", "home.arpa")
"""Names of the machine and of networks (RFC 6761, 6762, 8375; `internal` by ICANN): those of clouds end like that."""
_ENDING_IN_IPV4 = tuple(
    map(ipaddress.ip_network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"))
)
"""IPv4 addresses as IPv6 ones: compatible, mapped, translated (RFC 4291, 2765), and through NAT64 (RFC 6052, 8215)."""


class RefusedAddress(Exception):  # noqa: N818 (it is an outcome, no accident)
    """A URL that nothing is sent to; the text says what is wrong with it."""


class PrivateAddress(RefusedAddress):
    """It is refused only because the operator has not allowed private and loopback addresses and http."""

    def allowed_by(self, setting: str) -> str:
        """The fault, and the setting with which the operator would allow it."""
        return f"{self} The operator of the server can allow it with {setting}=true."


class UnresolvedName(RefusedAddress):
    """The name has no address at the moment."""


@dataclass(frozen=True)
class WebhookTarget:
    """A URL and the address to connect to."""

    url: httpx2.URL
    address: str

    @property
    def pinned(self) -> httpx2.URL:
        """The URL with the address in the place of the name."""
        return self.url.copy_with(host=self.address)

    @property
    def host(self) -> str:
        """The host that the request and its certificate are about."""
        return self.url.netloc.decode("ascii")


def checked_url(text: str, *, private: bool) -> httpx2.URL:
    """The URL, if it is one that something might be sent to.

    Raises:
        PrivateAddress: it is not, but would be with `private`.
        RefusedAddress: it is not.
    """
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError):
        raise RefusedAddress("Is not a URL.") from None
    if len(text) > MAX_URL_CHARACTERS or not url.host or url.userinfo or url.fragment:
        raise RefusedAddress("Must be an absolute URL without a user, a password and a fragment.")
    if not _may_exist(url.raw_host.decode("ascii")):
        raise RefusedAddress("Must have a valid host name or address.")
    if url.port is not None and url.port not in (80, 443) and not 1024 <= url.port <= 65_535:
        raise RefusedAddress("Must have port 80, 443, or one from 1,024 to 65,535.")
    if url.scheme not in ("https", "http"):
        raise RefusedAddress("Must be an https URL.")
    if url.scheme == "http" and not private:
        raise PrivateAddress("Must be an https URL.")
    if not private and _is_inner(url.raw_host.decode("ascii")):
        raise PrivateAddress("Must have a public host name.")
    return url


def _is_inner(host: str) -> bool:
    name = f".{host.removesuffix('.').lower()}"
    return any(name.endswith(f".{inner}") for inner in _INNER_NAMES)


def _may_exist(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    if len(host) <= MAX_HOST_CHARACTERS and all(map(_LABEL.fullmatch, labels)):
        return True
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


async def resolve(text: str, *, private: bool, names: NameLookups) -> WebhookTarget:
    """Look a URL up; every address of its name has to be allowed.

    Raises:
        UnresolvedName: the name has no address.
        PrivateAddress: it is no place to send to, but would be with `private`.
        RefusedAddress: it is no place to send to.
    """
    url = checked_url(text, private=private)
    addresses = await names.addresses(url.host, url.port or 443)
    if not addresses:
        raise UnresolvedName("The name has no address.")
    if not all(is_allowed(address, private=True) for address in addresses):
        raise RefusedAddress("Must not point to a link-local, multicast or unspecified address, or to a cloud's own.")
    if not all(is_allowed(address, private=private) for address in addresses):
        raise PrivateAddress("Must not point to a private, loopback or reserved address.")
    return WebhookTarget(url, str(addresses[0]))


def is_allowed(address: Address, *, private: bool) -> bool:
    """True if something may be sent there; an address inside an IPv6 one counts as well."""
    inner = _embedded(address)
    if inner is not None and not is_allowed(inner, private=private):
        return False
    if address in _OF_MACHINES or address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    return private or inner is not None or _is_public(address)


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_reserved and not any(address in network for network in _SPECIAL)


def _embedded(address: Address) -> Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if any(address in network for network in _ENDING_IN_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.sixtofour or (teredo[1] if teredo else None)
