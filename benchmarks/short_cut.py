"""What the short cut of the hottest calls saves (`api.short_cut`): the same endpoints as ordinary routes, by turns.

Usage: python -m benchmarks.short_cut [--rounds 31] [--write]

The application runs in this process, admits everybody, and its endpoints return an example at once. So what is
measured is the reading of the body, the framework, and the writing of the answer, in CPU microseconds a request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Annotated, Any

from fastapi import FastAPI, Request
from pydantic import BaseModel

from benchmarks.report import Table, environment, write
from reward_server.api import examples, route, short_cut
from reward_server.api.access import for_keys
from reward_server.api.body import CONVERSATIONS, JsonBody
from reward_server.api.context import IdempotencyKey
from reward_server.api.middleware import NO_TELEMETRY, App
from reward_server.api.router import Router
from reward_server.auth.lab import DEVELOPMENT_LAB, Lab
from reward_server.auth.scopes import ANY
from reward_server.settings import Settings
from trainer_client.wire import (
    BatchTurnsRequest,
    BatchTurnsResponse,
    EvaluateRequest,
    EvaluateResponse,
    TurnRequest,
    TurnResponse,
)

BATCH = 100
Json = dict[str, Any]
Call = tuple[type[BaseModel], Json, type[BaseModel], Json]
_TURNS = [{**examples.BATCH_TURNS_REQUEST["items"][0], "episode_id": f"ep_{number}"} for number in range(BATCH)]
CALLS: dict[str, Call] = {
    "turn": (TurnRequest, examples.TURN_REQUEST, TurnResponse, examples.TURN_RESPONSE),
    "evaluate": (EvaluateRequest, examples.EVALUATE_REQUEST, EvaluateResponse, examples.EVALUATE_RESPONSE),
    f"batch of {BATCH} turns": (
        BatchTurnsRequest,
        {"items": _TURNS},
        BatchTurnsResponse,
        {**examples.BATCH_TURNS_RESPONSE, "results": examples.BATCH_TURNS_RESPONSE["results"][:1] * BATCH},
    ),
}
WAYS = ("ordinary", "short cut")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/short_cut.md")
    arguments = parser.parse_args()
    route.admit = short_cut.admit = _everybody  # type: ignore[attr-defined]
    text = asyncio.run(measured(arguments.rounds)).text()
    print(text)
    if arguments.write:
        write("short_cut", f"{environment()}\n\n{text}")


async def _everybody(request: Request) -> Lab:
    return DEVELOPMENT_LAB


async def measured(rounds: int) -> Table:
    """The medians of both ways, by turns."""
    app, table = application(), Table(f"CPU us a request, median of {rounds} rounds", ["", *WAYS, "saved"])
    for number, (name, (_, sent, _, answered)) in enumerate(CALLS.items()):
        body, spent = json.dumps(sent).encode(), dict[str, list[float]]()
        times = max(5, 20_000 // len(body))
        for _ in range(rounds):
            for way in WAYS:
                began = time.process_time()
                for _ in range(times):
                    answer = await posted(app, f"/{number}/{way.replace(' ', '-')}/ep_1", body)
                spent.setdefault(way, []).append(1e6 * (time.process_time() - began) / times)
                if json.loads(answer) != answered:
                    raise RuntimeError(f"{name}, {way}: another answer")
        ordinary, short = (statistics.median(spent[way]) for way in WAYS)
        table.add(name, f"{ordinary:.0f}", f"{short:.0f}", f"{ordinary - short:.0f}")
    return table


def application() -> FastAPI:
    """Every call in both ways."""
    router, app = Router(), App(telemetry=NO_TELEMETRY)
    for number, (request_model, _, response_model, answered) in enumerate(CALLS.values()):
        for way, add in (("ordinary", router.post), ("short-cut", router.hot)):
            add(f"/{number}/{way}/{{episode_id}}", response_model=response_model)(_endpoint(request_model, answered))
    app.router.routes.extend(router.routes)
    app.state.services = SimpleNamespace(settings=Settings())
    return app


def _endpoint(model: type[BaseModel], answered: Json) -> Callable[..., Awaitable[Json]]:
    async def endpoint(
        request: Request,
        lab: Annotated[Lab, for_keys(*ANY)],
        episode_id: str,
        wanted: Annotated[BaseModel, JsonBody(CONVERSATIONS)],
        key: IdempotencyKey = None,
    ) -> Json:
        return answered

    endpoint.__annotations__["wanted"] = Annotated[model, JsonBody(CONVERSATIONS)]
    return endpoint


async def posted(app: FastAPI, path: str, body: bytes) -> bytes:
    """The answer's body."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))],
        "app": app,
        "state": {"request_id": "req_1", "trace": {}},
    }
    sent: list[Any] = []

    async def receive() -> Json:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if sent[0]["status"] != 200:
        raise RuntimeError(sent[1]["body"].decode())
    return bytes(sent[1]["body"])


if __name__ == "__main__":
    main()
