"""The connection goes to the address that was checked; a name that answers otherwise later changes nothing."""

from __future__ import annotations

import httpx2
import pytest

from reward_server.agents.pinned import PinnedTransport
from reward_server.webhooks.addresses import WebhookTarget


class Seen(httpx2.AsyncBaseTransport):
    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return httpx2.Response(200)


async def test_the_host_stays_in_header_and_certificate() -> None:
    seen = Seen()
    target = WebhookTarget(httpx2.URL("https://agent.example/v1"), "93.184.216.34")
    async with httpx2.AsyncClient(transport=PinnedTransport(seen, target)) as client:
        await client.post("https://agent.example/v1/chat/completions")
        with pytest.raises(httpx2.ConnectError):
            await client.post("https://other.example/v1/chat/completions")
    [request] = seen.requests
    assert request.url.host == "93.184.216.34"
    assert request.headers["host"] == "agent.example"
    assert request.extensions["sni_hostname"] == "agent.example"
