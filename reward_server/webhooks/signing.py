"""Standard Webhooks signatures: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.

The specification is standardwebhooks' "Standard Webhooks", version 1.0. The secret of a webhook is derived from the
server's pepper and the webhook's id, so that no copy of the database holds it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime

PREFIX = "whsec_"


def secret_of(pepper: bytes, webhook_id: str) -> str:
    """The secret of a webhook as its owner is shown it: `whsec_` and base64 of 32 bytes."""
    return PREFIX + base64.b64encode(_key(pepper, webhook_id)).decode()


def signed_headers(pepper: bytes, webhook_id: str, message_id: str, body: str, now: datetime) -> dict[str, str]:
    """The three headers of an attempt that is made now."""
    timestamp = str(int(now.timestamp()))
    content = f"{message_id}.{timestamp}.{body}".encode()
    digest = hmac.digest(_key(pepper, webhook_id), content, hashlib.sha256)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _key(pepper: bytes, webhook_id: str) -> bytes:
    return hmac.digest(pepper, b"labs webhook secret\0" + webhook_id.encode(), hashlib.sha256)
