"""The address and the key: arguments first, then LABS_URL and LABS_API_KEY.

The key never appears in a repr or an error.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:8321"
_API_PREFIX = "/api/v1"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Connection:
    """A checked address and key."""

    url: str
    """Base of all calls, with `/api/v1` and without a trailing slash."""
    api_key: str | None = field(repr=False)
    host: str
    """Host and port, for messages."""
    loopback: bool
    """True: proxies of the environment are not asked for a server on this machine."""


def resolve_connection(base_url: str | None = None, api_key: str | None = None) -> Connection:
    """Check the address and the key; a ValueError says what is wrong without repeating the key."""
    url = (base_url or os.environ.get("LABS_URL") or DEFAULT_URL).strip().rstrip("/").removesuffix(_API_PREFIX)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"the server's address must look like {DEFAULT_URL}, not {url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("the server's address must not hold a user, a password, a query or a fragment")
    key = (api_key if api_key is not None else os.environ.get("LABS_API_KEY", "")).strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("the API key has characters that no key has; check LABS_API_KEY")
    return Connection(
        url=url + _API_PREFIX, api_key=key or None, host=parts.netloc, loopback=parts.hostname in _LOOPBACK
    )
