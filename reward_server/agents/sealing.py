"""Keys of agents' endpoints, encrypted for the database: unlike labs' API keys they are sent on, so no hash will do.

AES-256-GCM under a key that HKDF-SHA256 (RFC 5869) derives from the server's pepper; lab and agent are authenticated
with it, so that a row that is copied to another agent opens nothing. A copy of the database alone holds no key.
"""

from __future__ import annotations

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_NONCE_BYTES = 12


class Unsealable(Exception):  # noqa: N818 (it is an outcome, no accident)
    """The error for a key that was sealed by another pepper, or for another agent."""


class Sealer:
    """Seals and opens keys."""

    def __init__(self, pepper: bytes) -> None:
        derived = HKDF(SHA256(), 32, salt=None, info=b"labs agent endpoint key").derive(pepper)
        self._cipher = AESGCM(derived)

    def __repr__(self) -> str:
        return "<Sealer>"

    def seal(self, secret: str, lab_id: str, agent_id: str) -> str:
        """The secret as base64 of nonce and ciphertext."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, secret.encode(), _bound_to(lab_id, agent_id))
        return base64.b64encode(nonce + sealed).decode()

    def open(self, sealed: str, lab_id: str, agent_id: str) -> str:
        """The secret; `Unsealable`."""
        whole = base64.b64decode(sealed)
        try:
            return self._cipher.decrypt(
                whole[:_NONCE_BYTES], whole[_NONCE_BYTES:], _bound_to(lab_id, agent_id)
            ).decode()
        except InvalidTag:
            raise Unsealable from None


def _bound_to(lab_id: str, agent_id: str) -> bytes:
    return f"{lab_id}/{agent_id}".encode()
