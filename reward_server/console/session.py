"""The session of a browser: a sealed cookie with the key that was entered, and the token that changes have to bring.

The cookie is all there is of a session: nothing is stored, so any replica opens it, and a restart ends none. It is
sealed with AES-256-GCM under a key that HKDF-SHA256 derives from the server's pepper. The key in it is verified in each
request as if it had come in a header, so one that is revoked opens nothing any more.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

COOKIE = "labs_console"
LIFETIME_S = 12 * 3600
MAX_KEY_CHARACTERS = 2400
"""A cookie may have 4096 bytes, and sealing makes a key a third longer."""
_NONCE_BYTES = 12
_BOUND_TO = b"labs console session 1"
_VALUE = b"labs console value 1"


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """One browser, from the first page to the last."""

    key: str | None = field(repr=False)
    """The API key or token that was entered; None in development mode, and before."""
    mark: str = field(repr=False)
    """Told apart by it: chosen at random."""
    begun_s: int
    """Seconds since 1970."""


class Sessions:
    """Seals and opens sessions."""

    def __init__(self, pepper: bytes) -> None:
        self._cipher = AESGCM(_derived(pepper, b"labs console cookie"))
        self._token_key = _derived(pepper, b"labs console token")

    def __repr__(self) -> str:
        return "<Sessions>"

    def begin(self, now: datetime, key: str | None = None) -> BrowserSession:
        """A new session."""
        return BrowserSession(key, secrets.token_urlsafe(16), int(now.timestamp()))

    def seal(self, session: BrowserSession) -> str:
        """The session as the value of a cookie."""
        nonce = os.urandom(_NONCE_BYTES)
        text = json.dumps([session.key, session.mark, session.begun_s]).encode()
        return base64.urlsafe_b64encode(nonce + self._cipher.encrypt(nonce, text, _BOUND_TO)).decode()

    def open(self, sealed: str, now: datetime) -> BrowserSession | None:
        """The session of a cookie; None for one that has run out, or that this server did not make."""
        try:
            whole = base64.urlsafe_b64decode(sealed)
            text = self._cipher.decrypt(whole[:_NONCE_BYTES], whole[_NONCE_BYTES:], _BOUND_TO)
        except (binascii.Error, InvalidTag, ValueError):
            return None
        key, mark, begun_s = json.loads(text)
        age_s = now.timestamp() - begun_s
        return BrowserSession(key, mark, begun_s) if age_s < LIFETIME_S else None

    def seal_value(self, value: object) -> str:
        """A JSON value that a page carries and brings back, and that nobody can read in it."""
        nonce = os.urandom(_NONCE_BYTES)
        return base64.urlsafe_b64encode(
            nonce + self._cipher.encrypt(nonce, json.dumps(value).encode(), _VALUE)
        ).decode()

    def open_value(self, sealed: str) -> Any:
        """The value; None for what this server did not seal."""
        try:
            whole = base64.urlsafe_b64decode(sealed)
            return json.loads(self._cipher.decrypt(whole[:_NONCE_BYTES], whole[_NONCE_BYTES:], _VALUE))
        except (binascii.Error, InvalidTag, ValueError):
            return None

    def token(self, session: BrowserSession) -> str:
        """The token that a form of this session has to bring."""
        return hmac.digest(self._token_key, session.mark.encode(), hashlib.sha256).hex()

    def is_token(self, session: BrowserSession, given: str) -> bool:
        """True if a form is one that this session was given."""
        return hmac.compare_digest(self.token(session).encode(), given.encode(errors="replace"))


def _derived(pepper: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=purpose).derive(pepper)
