"""The key that a request or a handshake brings: as `Bearer`, as the password of `Basic`, or as `X-API-Key`.

Why there is none is told from the headers alone, so that it says nothing about the keys of the server.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

NO_KEY = "This call needs an API key; send the header Authorization: Bearer lab_…"
NOT_A_KEY = "The header Authorization holds no API key; write it as Authorization: Bearer lab_…"
NOT_VALID = "The API key is not valid; send a key of this server as Authorization: Bearer lab_…"
"""The same for a key that is malformed, unknown, revoked or expired."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The key and the token that a caller brought."""

    key: str | None = field(default=None, repr=False)
    is_unreadable: bool = False
    """There is a header for it, and no key can be read from it."""

    @property
    def refusal(self) -> str:
        """The message for a caller who may not come in with them."""
        if self.key:
            return NOT_VALID
        return NOT_A_KEY if self.is_unreadable else NO_KEY


def credentials_of(connection: HTTPConnection) -> Credentials:
    """The key of the header `Authorization`, or else of `X-API-Key`.

    `Basic` is what clients send that are told nothing but an address: `http://labs:KEY@host`. `X-API-Key` is what the
    clients of the Open Reward Standard send.
    """
    authorization = connection.headers.get("authorization")
    if authorization is None:
        return Credentials(connection.headers.get("x-api-key", "").strip() or None)
    key = _key_in(authorization)
    return Credentials(key, is_unreadable=key is None)


def _key_in(authorization: str) -> str | None:
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return given.strip() or None
    if scheme.lower() != "basic":
        return None
    try:
        _, _, password = base64.b64decode(given.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return password or None
