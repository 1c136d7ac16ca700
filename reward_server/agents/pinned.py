"""Connects to the address that was looked up and checked, whatever the name answers a moment later."""

from __future__ import annotations

import httpx2

from reward_server.webhooks.addresses import WebhookTarget


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Sends what is meant for one host to one address, over a pool that it shares and does not close."""

    def __init__(self, pool: httpx2.AsyncBaseTransport, target: WebhookTarget) -> None:
        self._pool = pool
        self._target = target

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send; the certificate is checked against the name, though the connection goes to the address."""
        if request.url.host != self._target.url.host:
            raise httpx2.ConnectError("a request to another host than the one that was checked")
        request.extensions = {**request.extensions, "sni_hostname": request.url.host}
        request.url = request.url.copy_with(host=self._target.address)
        return await self._pool.handle_async_request(request)
