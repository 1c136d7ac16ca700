"""Sends one message once: to the address that was looked up, without redirects, proxies or an answer that is read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from reward_server.webhooks.addresses import LIMITS, RefusedAddress, UnresolvedName, resolve
from reward_server.webhooks.names import NameLookups

ATTEMPT_S = 15.0
GONE = 410


@dataclass(frozen=True)
class SendOutcome:
    """The outcome of an attempt: a status, or a word for why there is none."""

    status: int | None = None
    error: str | None = None

    @property
    def ok(self) -> bool:
        """True if the receiver took it."""
        return self.status is not None and 200 <= self.status < 300


class WebhookSender:
    """Sends over connections of its own; close it."""

    def __init__(self, *, private: bool, names: NameLookups, timeout_s: float = ATTEMPT_S) -> None:
        self._private = private
        self._names = names
        # What the environment says of proxies would send the name elsewhere.
        self._http = httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=timeout_s, limits=LIMITS)
        self._timeout_s = timeout_s

    async def close(self) -> None:
        """Close the pool."""
        await self._http.aclose()

    async def send(self, url: str, body: str, headers: Mapping[str, str]) -> SendOutcome:
        """POST a body; nothing is raised."""
        try:
            target = await resolve(url, private=self._private, names=self._names)
        except UnresolvedName:
            return SendOutcome(error="unresolved")
        except RefusedAddress:
            return SendOutcome(error="refused_address")
        sent = {**headers, "Host": target.host, "Content-Type": "application/json", "User-Agent": "labs-webhooks/1"}
        # The certificate is checked against the name, though the connection goes to the address.
        extensions = {"sni_hostname": target.url.host}
        try:
            # The client's own timeouts begin anew with every byte.
            async with (
                asyncio.timeout(self._timeout_s),
                self._http.stream(
                    "POST", target.pinned, content=body.encode(), headers=sent, extensions=extensions
                ) as response,
            ):
                redirected = "redirect" if response.is_redirect else None
                return SendOutcome(response.status_code, redirected)
        except (TimeoutError, httpx2.TimeoutException):
            return SendOutcome(error="timeout")
        except httpx2.HTTPError:
            return SendOutcome(error="unreachable")
