"""Pages for people, and what a browser is told about every answer.

Answers of the API are not pages: they load nothing and stand in no frame. A page may load what this server has, and
run the scripts that are written in it, each allowed by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re

from fastapi import Response

NOTHING = b"default-src 'none'; frame-ancestors 'none'"
"""The policy of an answer that is no page."""

SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def page(html: str) -> Response:
    """An HTML response with the policy that fits it. Styles may be inline: no script can be smuggled into them."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in _INLINE.findall(html))
    policy = (
        f"default-src 'none'; script-src 'self' {hashes}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    return Response(html, media_type="text/html", headers={"Content-Security-Policy": policy})


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
