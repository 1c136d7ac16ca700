"""A real server for contract tests: the whole app over an in-process transport, on its own database.

Time stands still until a test moves it; the text encoder is the real one, shared by all tests, and can be
told to wait or to fail; so can scoring.
"""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from fastapi import FastAPI
from numpy.typing import NDArray
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from personas.case.compiled import CompiledCase
from personas.reading.acts import ReadCandidate, Reading, Sentence
from personas.reading.matcher import Matcher
from personas.reading.reader import LocalReader, Reader, Turn
from reward_server.auth.key_ring import KeyRing
from reward_server.auth.lab import Plan
from reward_server.auth.pepper import load_pepper
from reward_server.clock import ManualClock
from reward_server.errors import LabsError
from reward_server.llm.base import LanguageModel
from reward_server.scoring.disclosure import DisclosurePolicy
from reward_server.scoring.pending import StartedScoring
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.scorer import Scorer
from reward_server.server.app import Ports, create_app
from reward_server.server.engine import ExtraJudges, build_scorer, load_reader
from reward_server.settings import Settings
from reward_server.store.records import BookingRow, Spend
from reward_server.store.store import Store
from reward_server.telemetry.metrics import Metrics
from reward_server.telemetry.traces import Traces
from scenarios.library import Library
from tests.contract.documented import Documented, documented

COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"
COLLECTION, SCENARIO = "bike-shop", "flat-tyre"
WHERE = {"collection_slug": COLLECTION, "scenario_slug": SCENARIO}
OTHER = {"collection_slug": "front-desk", "scenario_slug": "lost-key"}
WAIT_S = 20.0

Json = dict[str, Any]


class HeldMatcher:
    """The real matcher behind a gate: open by default; closed, whoever asks waits; broken, it raises."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._gate = threading.Event()
        self._gate.set()
        self.waiting = threading.Semaphore(0)
        self.broken = False

    @property
    def version(self) -> str:
        return self._matcher.version

    def cosine(self, texts: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float64]:
        self.passed()
        return self._matcher.cosine(texts, anchors)

    def passed(self) -> None:
        """Wait at the gate."""
        if self.broken:
            raise RuntimeError("the encoder said: quokka-provider-text")
        if not self._gate.is_set():
            self.waiting.release()
            if not self._gate.wait(WAIT_S):
                raise RuntimeError("the test never opened the gate")

    def close(self) -> None:
        self._gate.clear()

    def open(self) -> None:
        self._gate.set()

    async def somebody_waits(self) -> None:
        assert await asyncio.to_thread(self.waiting.acquire, timeout=WAIT_S)


class HeldReader(Reader):
    """The real reader behind the gate of the matcher: whoever reads waits there, too."""

    def __init__(self, reader: LocalReader, gate: HeldMatcher) -> None:
        self._reader = reader
        self._gate = gate

    @property
    def version(self) -> str:
        return self._reader.version

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        self._gate.passed()
        return self._reader.read(case, turns)

    def beside(self, case: CompiledCase, line: str, said: Sequence[Sentence]) -> list[tuple[ReadCandidate, ...]]:
        return self._reader.beside(case, line, said)


class GivenSettings(Settings):
    """Settings as a test gives them; looking all of them up in the environment as well takes a quarter of a start."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, **others: object
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


@cache
def packaged_reader() -> LocalReader:
    """Loaded once per process, like the matcher."""
    return load_reader(Settings())


def held(scorer: Scorer, house: House) -> Scorer:
    """The real scorer; `failure` of the house says which requests fail, and how."""
    real = scorer._outcomes

    async def outcomes(begun: Sequence[StartedScoring]) -> list[Scored | Unscored]:
        house.scored.append(len(begun))
        failures = [None if each.request is None else house.failure(each.request) for each in begun]
        return [Unscored(f) if f else o for f, o in zip(failures, await real(begun), strict=True)]

    scorer._outcomes = outcomes  # type: ignore[method-assign]
    return scorer


@dataclass
class House:
    """A running server and what a test may do to it."""

    app: FastAPI
    clock: ManualClock
    matcher: HeldMatcher
    settings: Settings
    logs: io.StringIO
    seeds: list[int] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    """How many transcripts each call of the scorer had."""
    failure: Callable[[ScoreRequest], LabsError | None] = lambda request: None

    @property
    def store(self) -> Store:
        store: Store = self.app.state.services.store
        return store

    @property
    def metrics(self) -> Metrics:
        metrics: Metrics = self.app.state.services.metrics
        return metrics

    @asynccontextmanager
    async def client(self, key: str | None = None) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as http:
            yield Client(http, documented())

    async def spend(self, tokens: int, lab_id: str = "development") -> None:
        """Have the lab use so many tokens of language models today."""
        now = self.clock.now()
        row = BookingRow(booking_id="spent", lab_id=lab_id, day=now.date(), spend=Spend(), runs_out_at=now)
        async with self.store.transaction() as unit:
            await unit.spending.settle(row, Spend(tokens=tokens), calls=1)

    def keys(self) -> KeyRing:
        """The operator's key ring, as another process would have it."""
        return KeyRing(self.store, self.clock, load_pepper(self.settings.data))

    def end_development_mode(self) -> None:
        """The server notices within a second of real time that another process made a key; here at once."""
        self.app.state.services.gatekeeper._checked = float("-inf")

    async def key(self, lab_id: str = "acme", **permissions: Any) -> str:
        """A new key; without a limit worth mentioning unless told otherwise."""
        permissions = {"plan": Plan.CUSTOM, "rate_per_minute": 100_000} | permissions
        return (await self.keys().create(lab_id, **permissions)).text


class Client:
    """Calls of one key; every response is held against the OpenAPI document. `ok` insists on 200."""

    def __init__(self, http: httpx2.AsyncClient, document: Documented) -> None:
        self.http = http
        self._document = document

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        path = path if path.startswith(("/docs", "/healthz", "/readyz")) else f"/api/v1{path}"
        if body is not None:
            options["json"] = body
        elif method == "POST":
            options["headers"] = {"Content-Type": "application/json"} | dict(options.get("headers") or {})
        response = await self.http.request(method, path, **options)
        self._document.check(response)
        return response

    async def ok(self, method: str, path: str, body: Any = None, **options: Any) -> Json:
        response = await self.call(method, path, body, **options)
        assert response.status_code == 200, response.text
        content: Json = response.json()
        return content

    async def create(self, **fields: Any) -> Json:
        config = {"seed": 7, "persona_slug": "plainspoken"} | fields.pop("config", {})
        return await self.ok("POST", "/episodes", {**WHERE, "config": config, **fields})

    async def turn(self, episode: Json, *messages: Any, **fields: Any) -> httpx2.Response:
        """Texts stand for agent messages; `key` is the Idempotency-Key."""
        key = fields.pop("key", None)
        headers = {"Idempotency-Key": key} if key else {}
        sent = [agent(m) if isinstance(m, str) else m for m in messages]
        path = f"/episodes/{episode['episode_id']}/turns"
        return await self.call("POST", path, {"messages": sent, **fields}, headers=headers)

    async def say(self, episode: Json, *messages: Any, **fields: Any) -> Json:
        response = await self.turn(episode, *messages, **fields)
        assert response.status_code == 200, response.text
        content: Json = response.json()
        return content

    async def read(self, episode: Json) -> Json:
        return await self.ok("GET", f"/episodes/{episode['episode_id']}")

    async def log(self, episode: Json) -> list[Json]:
        messages: list[Json] = (await self.read(episode))["messages"]
        return messages


def agent(content: str, *calls: Json) -> Json:
    message: Json = {"role": "user", "content": content}
    return {**message, "tool_calls": list(calls)} if calls else message


def assert_error(response: httpx2.Response, status: int, code: str) -> Json:
    """The error envelope, to the letter."""
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"message", "data"}
    assert isinstance(body["message"], str)
    assert body["message"]
    data: Json = body["data"]
    assert set(data) <= {"request_id", "code", "errors", "retry_after_s"}
    assert str(data.get("retry_after_s", "")) == response.headers.get("retry-after", "")
    assert data["code"] == code
    assert data["request_id"] == response.headers["x-request-id"]
    assert data["request_id"].startswith("req_")
    for problem in data.get("errors", []):
        assert set(problem) == {"loc", "msg"}
    return data


@asynccontextmanager
async def running_house(
    data: Path,
    matcher: Matcher,
    library: Library,
    *,
    language_model: LanguageModel | None = None,
    traces: Traces | None = None,
    **settings: Any,
) -> AsyncIterator[House]:
    gate, logs = HeldMatcher(matcher), io.StringIO()
    house: House

    def scorer(
        library: Library,
        matcher: Matcher,
        reader: Reader,
        threads: Executor,
        *,
        disclosure: DisclosurePolicy,
        guests: ExtraJudges,
    ) -> Scorer:
        return held(build_scorer(library, matcher, reader, threads, disclosure=disclosure, guests=guests), house)

    ports = Ports(
        clock=ManualClock(),
        matcher=gate,
        reader=HeldReader(packaged_reader(), gate),
        library=library,
        build_scorer=scorer,
        new_seed=lambda: house.seeds.pop(0) if house.seeds else 11,
        log_stream=logs,
        language_model=language_model,
        traces=traces,
        own_process=False,
    )
    # Nobody could play against this server over a port, so its runs wait.
    kept = Path(os.environ["LABS_CACHE"])
    made = GivenSettings(data=data, **{"cache": kept, "training_run_workers": 0, **settings})
    app = create_app(made, ports=ports)
    assert isinstance(ports.clock, ManualClock)
    house = House(app, ports.clock, gate, made, logs)
    async with app.router.lifespan_context(app):
        yield house
