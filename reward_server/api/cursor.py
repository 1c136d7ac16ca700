"""Cursors of lists: opaque to the caller, and only those that this server made for this lab and list are taken.

A cursor is base64url of a MAC and the position (moment of creation in microseconds, id).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

from reward_server.errors import InvalidCursor
from reward_server.store.records import PageEnd

_MAC_BYTES = 12
_MAX_CHARACTERS = 256
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class CursorCodec:
    """Writes and reads cursors with a server secret."""

    def __init__(self, secret: bytes) -> None:
        # A key of its own, so that a cursor can never stand in for anything else the secret signs.
        self._key = hmac.digest(secret, b"labs list cursor", hashlib.sha256)

    def write(self, lab_id: str, position: PageEnd) -> str:
        """The cursor that continues after `position`."""
        payload = f"{(position.created_at - _EPOCH) // _MICROSECOND}:{position.id}".encode()
        return base64.urlsafe_b64encode(self._mac(lab_id, payload) + payload).rstrip(b"=").decode()

    def read(self, lab_id: str, cursor: str, *prefixes: str) -> PageEnd:
        """The position in a cursor; `InvalidCursor` for all that `write` did not return for ids of those kinds."""
        if len(cursor) > _MAX_CHARACTERS:
            raise InvalidCursor
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise InvalidCursor from None
        mac, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(lab_id, payload)):
            raise InvalidCursor
        microseconds, _, entry_id = payload.decode().partition(":")
        position = PageEnd(_EPOCH + int(microseconds) * _MICROSECOND, entry_id)
        # base64 has several spellings of the last bits; only the one that was given out counts.
        known = entry_id.startswith(tuple(f"{prefix}_" for prefix in prefixes))
        if not known or self.write(lab_id, position) != cursor:
            raise InvalidCursor
        return position

    def _mac(self, lab_id: str, payload: bytes) -> bytes:
        message = lab_id.encode() + b"\0" + payload
        return hmac.digest(self._key, message, hashlib.sha256)[:_MAC_BYTES]
