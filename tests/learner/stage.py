"""A small stand-in for a Labs server: a persona that answers, and a reward the test decides.

`StageServer` is a handler for a mock transport; `listening` puts the same handler on loopback for
commands that need an address. Nothing here is random.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2

from trainer_client import AsyncLabsClient, RetryPolicy

Score = Callable[[Sequence[str]], float]


def share_of_good_lines(said: Sequence[str]) -> float:
    """How many of the turns were worth saying."""
    return sum("tell" in line.lower() for line in said) / max(len(said), 1)


class StageServer:
    """Plays episodes of `turns` turns; every agent turn is scored by `score` of all agent lines so far."""

    def __init__(self, turns: int = 3, score: Score = share_of_good_lines) -> None:
        self.turns = turns
        self.score = score
        self.created: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self.logs: dict[str, list[dict[str, str]]] = {}
        self.rewards: dict[str, list[float]] = {}
        self.faults: dict[int, httpx2.Response] = {}
        """Answer of the first turn of the episode with this number (from 1)."""
        self.reason = "completed"
        self.collection, self.catalog = "c", ["s"]
        self._lock = threading.Lock()

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        with self._lock:
            return self.answer(request.method, request.url.path, request.content)

    def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
        parts = path.removeprefix("/api/v1/").split("/")
        if method == "GET" and parts[0] == "catalog":
            names = ("name", "slug", "description", "dimensions", "max_turns", "tools")
            cards = [self._scenario([slug]).json() for slug in self.catalog]
            collection = {
                "slug": self.collection,
                "name": "C",
                "description": "A collection.",
                "version": "1",
                "scenarios": [{name: card[name] for name in names} for card in cards],
            }
            return httpx2.Response(200, json={"collections": [collection], "request_id": "req_1"})
        if method == "GET" and parts[0] == "collections":
            return self._scenario(parts)
        if method in ("GET", "DELETE"):
            return self._episode(parts[1])
        content = json.loads(body)
        if parts == ["batch", "episodes"]:
            started = [self._create(item) for item in content["items"]]
            refused = [each for each in started if each.status_code != 200]
            answer = {"episodes": [each.json() for each in started], "request_id": "req_1"}
            return refused[0] if refused else httpx2.Response(200, json=answer)
        if parts == ["batch", "turns"]:
            results = [_result(item["episode_id"], self._turn(item["episode_id"], item)) for item in content["items"]]
            return httpx2.Response(200, json={"results": results, "request_id": "req_1"})
        return self._create(content) if len(parts) == 1 else self._turn(parts[1], content)

    def _scenario(self, parts: list[str]) -> httpx2.Response:
        if parts[-1] == "nowhere":
            return refusal(404, "scenario_not_found")
        names = {"slug": parts[-1], "name": "Stage", "description": "A stage."}
        more = {"dimensions": [], "max_turns": self.turns, "tools": 0, "personas": [], "request_id": "req_1"}
        return httpx2.Response(200, json={**names, **more})

    def _create(self, content: dict[str, Any]) -> httpx2.Response:
        self.created.append(content)
        name = f"ep_{len(self.created)}"
        opening = f"hello, I am number {content['config']['seed'] % 10}"
        self.logs[name] = [{"role": "user", "content": opening}]
        self.rewards[name] = []
        answer = {
            "episode_id": name,
            "initial_observation": {"role": content["config"]["observation_role"], "content": opening},
            "tools": [],
            "max_turns": self.turns,
            "expires_at": "2026-01-01T00:00:00Z",
            "request_id": "req_1",
        }
        return httpx2.Response(200, json=answer)

    def _turn(self, name: str, content: dict[str, Any]) -> httpx2.Response:
        self.received.append(content)
        number = int(name.removeprefix("ep_"))
        if number in self.faults:
            return self.faults[number]
        log = self.logs[name]
        given, said = content["messages"][-2:]
        if given["content"] != log[-1]["content"]:
            return refusal(409, "history_mismatch")
        log += [said, {"role": "user", "content": f"yes, that is so {len(log) % 7}"}]
        reward = self.score([message["content"] for message in log if message["role"] == "assistant"])
        before = self.rewards[name][-1] if self.rewards[name] else 0.0
        self.rewards[name].append(reward)
        complete = len(self.rewards[name]) == self.turns
        answer = {
            "turn": len(self.rewards[name]),
            "observation": {"role": "user", "content": log[-1]["content"]},
            "reward": reward,
            "reward_delta": reward - before,
            "scores": {"D1_Talk": reward},
            "episode_complete": complete,
            "request_id": "req_1",
        }
        if complete:
            answer["terminal_reason"] = self.reason
        return httpx2.Response(200, json=answer)

    def _episode(self, name: str) -> httpx2.Response:
        answer = {
            "episode_id": name,
            "collection_slug": "c",
            "scenario_slug": "s",
            "status": "complete",
            "turn": len(self.rewards[name]),
            "max_turns": self.turns,
            "messages": self.logs[name],
            "rewards": self.rewards[name],
            "created_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-01T00:00:00Z",
        }
        return httpx2.Response(200, json=answer)


def _result(name: str, answer: httpx2.Response) -> dict[str, Any]:
    """The answer of a turn as one of a batch."""
    found = answer.json()
    if answer.status_code == 200:
        return {"episode_id": name, "status": "success", **found}
    return {"episode_id": name, "status": "error", "message": found["message"], "code": found["data"]["code"]}


def refusal(status: int, code: str) -> httpx2.Response:
    return httpx2.Response(status, json={"message": "No.", "data": {"request_id": "req_1", "code": code}})


def client_of(server: StageServer) -> AsyncLabsClient:
    retry = RetryPolicy(attempts=2, first_pause_s=0.0)
    return AsyncLabsClient("http://lab", "k", retry=retry, transport=httpx2.MockTransport(server))


@contextmanager
def listening(server: StageServer) -> Iterator[str]:
    """The address of this server on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            return

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = server(httpx2.Request(self.command, f"http://lab{self.path}", content=body))
            self.send_response(answer.status_code)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_DELETE = do_GET

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

    http = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
