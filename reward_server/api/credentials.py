"""The key that a request or a handshake brings: as `Bearer`, as the password of `Basic`, or as `X-API-Key`."""

from __future__ import annotations

import base64
import binascii

from starlette.requests import HTTPConnection


def key_of(connection: HTTPConnection) -> str | None:
    """The key of the header `Authorization`, or else of `X-API-Key`; None without one.

    `Basic` is what clients send that are told nothing but an address: `http://labs:KEY@host`. `X-API-Key` is what the
    clients of the Open Reward Standard send.
    """
    authorization = connection.headers.get("authorization")
    if authorization is None:
        return connection.headers.get("x-api-key", "").strip() or None
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
