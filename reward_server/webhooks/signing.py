"""Signs messages as Standard Webhooks 1.0 says, through its own library.

The secret of a webhook is derived from the server's pepper and the webhook's id, so that no copy of the database holds
it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

from standardwebhooks import Webhook

PREFIX = "whsec_"


def secret_of(pepper: bytes, webhook_id: str) -> str:
    """The secret of a webhook as its owner is shown it: `whsec_` and base64 of 32 bytes."""
    return PREFIX + base64.b64encode(_key(pepper, webhook_id)).decode()


def signed_headers(pepper: bytes, webhook_id: str, message_id: str, body: str, now: datetime) -> dict[str, str]:
    """The three headers of an attempt that is made now."""
    signature = Webhook(_key(pepper, webhook_id)).sign(message_id, now.astimezone(UTC), body)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature,
    }


def _key(pepper: bytes, webhook_id: str) -> bytes:
    return hmac.digest(pepper, b"labs webhook secret\0" + webhook_id.encode(), hashlib.sha256)
