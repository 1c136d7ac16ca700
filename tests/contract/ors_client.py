"""The requests of ORS clients, made as openreward 0.1.167 and ors-sdk 0.1.0 make them, without the packages.

Both bring more than forty packages with them; `benchmarks.door_clients` runs the real ones. Paths, headers, bodies and
the reading of streams are theirs: the key in `X-API-Key`, `application/octet-stream` for no body, the path of the
server's address dropped. openreward asks at the root and names the environment in `X-Deployment`, ors-sdk in the path.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx2

Json = dict[str, Any]
NOTHING = {"Content-Type": "application/octet-stream"}


class StreamError(Exception):
    """The event `error`, which ends a rollout."""


@dataclass
class OrsClient:
    """A client of one environment, with one session."""

    http: httpx2.AsyncClient
    environment: str
    key: str | None = None
    in_path: bool = False
    """As ors-sdk; otherwise as openreward."""
    sid: str = ""
    received: list[str] = field(default_factory=list)

    def headers(self, **more: str) -> dict[str, str]:
        found = {"X-Session-ID": self.sid} if self.sid else {}
        found |= {"X-API-Key": self.key or ""} if self.key is not None else {}
        return found | ({} if self.in_path else {"X-Deployment": self.environment}) | more

    def path(self, call: str) -> str:
        return f"/{self.environment}/{call}" if self.in_path else f"/{call}"

    async def get(self, call: str) -> httpx2.Response:
        return await self.http.get(self.path(call), headers=self.headers())

    async def post(self, call: str, body: Json | None = None, *, own: bool = True) -> httpx2.Response:
        """`own` calls are of the environment, the others of the session."""
        path = self.path(call) if own else f"/{call}"
        if body is None:
            return await self.http.post(path, headers=self.headers(**NOTHING))
        return await self.http.post(path, json=body, headers=self.headers())

    async def ok(self, call: str, body: Json | None = None) -> Any:
        response = await (self.get(call) if body is None else self.post(call, body))
        assert response.status_code == 200, response.text
        self.received.append(response.text)
        return response.json()

    async def open(self, **task: Any) -> None:
        """Open a session and begin its task."""
        opened = await self.post("create_session", {}, own=False)
        assert opened.status_code == 200, opened.text
        self.sid = dict(events_of(opened.text.splitlines()))["task_id"]
        begun = await self.post("create", task, own=False)
        assert begun.status_code == 200, begun.text
        assert begun.json()["sid"] == self.sid

    async def close(self) -> None:
        for call in ("delete", "delete_session"):
            assert (await self.post(call, own=False)).status_code == 200

    async def call(self, name: str, task_id: str | None = None, **arguments: Any) -> Json:
        """What a tool call gave; `StreamError` for the event `error`."""
        body = {"name": name, "input": arguments} | ({"task_id": task_id} if task_id else {})
        response = await self.post("call", body)
        assert response.status_code == 200, response.text
        self.received.append(response.text)
        return outcome_of(list(events_of(response.text.splitlines())))

    async def lines(self, name: str, **arguments: Any) -> AsyncIterator[str]:
        """The lines of the stream of a tool call as they come."""
        body = {"name": name, "input": arguments}
        async with self.http.stream("POST", self.path("call"), json=body, headers=self.headers()) as response:
            assert response.status_code == 200
            async for line in response.aiter_lines():
                yield line


def events_of(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """The events of a stream, read as the clients do: blanks at the beginning of data are lost."""
    event, data = None, []
    for line in lines:
        if not line:
            if event:
                yield event, "\n".join(data)
            event, data = None, []
        elif not line.startswith(":"):
            name, value = line.split(":", 1)
            if name == "event":
                event = value.lstrip()
            elif name == "data":
                data.append(value.lstrip())


def outcome_of(events: list[tuple[str, str]]) -> Json:
    """The outcome that the events of a call say."""
    said = ""
    for name, data in events:
        if name == "error":
            raise StreamError(data)
        said += data if name in ("chunk", "end") else ""
        if name == "end":
            outcome: Json = json.loads(said)
            return outcome
    raise AssertionError(f"no end: {events}")
