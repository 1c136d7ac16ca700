"""What surrounds a decision model: what is kept and under which key, who pays, and which settings make one."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reward_server.clock import SystemClock
from reward_server.decisions.build import decision_model, ping
from reward_server.decisions.local import LocalDecisions
from reward_server.decisions.model import DecisionModel
from reward_server.decisions.questions import ChoiceQuestion, LevelQuestion, Request, Typed, YesNoQuestion
from reward_server.decisions.systemone import SystemOneProvider
from reward_server.errors import BudgetExhausted, ConfigurationError
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.llm.budget import Budget, Prices
from reward_server.llm.caller import CallLimits
from reward_server.production import is_moving, settings_weaknesses
from reward_server.settings import Settings
from reward_server.store.records import BookingRow, Ceiling, Spend
from tests.decisions.servers import Served

ASKED: dict[str, Typed] = {"a": YesNoQuestion("A?"), "b": YesNoQuestion("B?")}


def yes(body: dict[str, Any]) -> Any:
    return {"answers": {name: {"type": "noul", "noul": 0.75} for name in body["questions"]}, "usage": USED}


USED = {"input_tokens": 100, "output_tokens": 2}


class Book:
    """A ledger that has room for so many tokens."""

    def __init__(self, tokens: int = 1_000_000) -> None:
        self.tokens = tokens
        self.charged: dict[str, int] = {}

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling) -> Ceiling | None:
        return ceiling if booking.spend.tokens > self.tokens else None

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        self.charged[booking.lab_id] = self.charged.get(booking.lab_id, 0) + used.tokens


def model_at(url: str, model: str = "m-1", kept: VerdictCache | None = None, book: Book | None = None) -> DecisionModel:
    budget = None if book is None else Budget(book, SystemClock(), Ceiling(tokens=book.tokens, nano_usd=None), Prices())
    return DecisionModel(SystemOneProvider(model, None, base_url=url), CallLimits(retries=0), kept, budget=budget)


async def test_a_decision_is_kept_by_content_and_model_and_by_nothing_else() -> None:
    kept = VerdictCache()
    with Served(yes) as server:
        first, other = model_at(server.url, kept=kept), model_at(server.url, "m-2", kept)
        for lab, state in (("acme", "s"), ("acme", "s"), ("globex", "s"), ("acme", "t")):
            found = await first.decide(state, ASKED, lab_id=lab)
            assert found["a"].yes == 0.75
        assert len(server.bodies) == 2
        await other.decide("s", ASKED, lab_id="acme")
        assert len(server.bodies) == 3
        await first.decide("s", {"a": ASKED["a"]}, lab_id="acme")
        assert len(server.bodies) == 4
        await asyncio.gather(first.close(), other.close())


async def test_a_decision_with_a_failure_in_it_is_an_error_and_is_not_kept() -> None:
    answers: list[Any] = [{"answers": {"a": {"type": "noul", "noul": 0.5}, "b": {"type": "refusal"}}}]
    with Served(lambda body: answers.pop() if answers else yes(body)) as server:
        model = model_at(server.url, kept=VerdictCache())
        with pytest.raises(LlmFailed) as caught:
            await model.decide("s", ASKED, lab_id="acme")
        assert caught.value.kind is FailureKind.REFUSED
        assert (await model.decide("s", ASKED, lab_id="acme"))["b"].yes == 0.75
        await model.close()


async def test_the_lab_that_asks_pays_and_one_that_may_not_is_not_asked_for() -> None:
    book = Book()
    with Served(yes) as server:
        model = model_at(server.url, book=book)
        await model.decide("s", ASKED, lab_id="acme")
        await model.decide("t", ASKED, lab_id="globex")
        await model.close()
        assert book.charged == {"acme": 102, "globex": 102}
        poor = model_at(server.url, book=Book(tokens=10))
        with pytest.raises(BudgetExhausted):
            await poor.decide("s", ASKED, lab_id="acme")
        assert len(server.bodies) == 2
        await poor.close()


def settings(tmp_path: Path, **changes: Any) -> Settings:
    return Settings(data=tmp_path, **changes)


def no_cosine(texts: Any, others: Any) -> Any:
    return np.zeros((len(texts), len(others)))


async def test_the_settings_make_one_and_its_version_begins_with_its_model(tmp_path: Path) -> None:
    given = settings(
        tmp_path,
        decisions="systemone",
        decisions_url="http://127.0.0.1:9",
        decisions_model="laya-1",
        reader="decisions",
        judges="decisions",
    )
    model = decision_model(given, (no_cosine, "e"))
    assert model is not None
    assert model.version.startswith("systemone/laya-1@")
    assert given.asked_decision_model == "laya-1"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reader": "decisions"}, "LABS_DECISIONS: must be set if LABS_READER is decisions"),
        ({"judges": "decisions"}, "LABS_DECISIONS: must be set if LABS_JUDGES is decisions"),
        ({"decisions": "systemone", "decisions_url": "http://x"}, "LABS_DECISIONS_MODEL: must name a model"),
        ({"decisions": "systemone", "decisions_model": "m"}, "LABS_DECISIONS_URL: must be given"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(
    tmp_path: Path, changes: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reward_server.settings import load_settings

    with pytest.raises(ConfigurationError, match=said):
        load_settings({"data": tmp_path, **changes})


def test_a_key_is_needed_where_openai_is_asked_and_shows_nowhere(tmp_path: Path) -> None:
    given = settings(tmp_path, decisions="openai", decisions_model="gpt-6-luna")
    with pytest.raises(ConfigurationError, match="LABS_DECISIONS_API_KEY"):
        decision_model(given, (no_cosine, "e"), environ={})
    model = decision_model(given, (no_cosine, "e"), environ={"OPENAI_API_KEY": "sk-secret"})
    assert model is not None
    assert "sk-secret" not in repr([model, model.describe(), model.version])


@pytest.mark.parametrize(
    ("name", "moves"), [("jev-latest", True), ("laya:latest", True), ("jev-1.13.0", False), ("latestmodel-2", False)]
)
def test_a_name_that_moves_is_refused_in_production(tmp_path: Path, name: str, moves: bool) -> None:
    given = {"decisions": "systemone", "decisions_url": "http://x", "decisions_model": name, "judges": "decisions"}
    assert is_moving(name) is moves
    found = [each for each in settings_weaknesses(settings(tmp_path, **given), keyless=False) if name in each]
    assert bool(found) is moves


def test_a_model_that_nobody_uses_makes_no_server_weak(tmp_path: Path) -> None:
    given = {"decisions": "systemone", "decisions_url": "http://x", "decisions_model": "jev-latest"}
    assert not [each for each in settings_weaknesses(settings(tmp_path, **given), keyless=False) if "jev" in each]


async def test_the_local_adapter_decides_by_likeness() -> None:
    def cosine(texts: Any, others: Any) -> Any:
        return np.array([[1.0 if set(a.split()) & set(b.split()) else 0.0 for b in others] for a in texts])

    provider = LocalDecisions(cosine, "encoder/1")
    asked: dict[str, Typed] = {
        "yes": YesNoQuestion("knee ?", "tooth", "tooth"),
        "no": YesNoQuestion("tooth ?", "knee", "knee"),
        "which": ChoiceQuestion("?", (("a", "tooth"), ("b", "my knee"))),
        "how": LevelQuestion("?", ("knee", "tooth")),
    }
    reply = await provider.complete(Request({"said": ["my knee hurts"]}, asked), 1.0)
    assert reply.outcomes["yes"].yes > 0.9  # type: ignore[union-attr]
    assert reply.outcomes["no"].yes < 0.1  # type: ignore[union-attr]
    assert reply.outcomes["which"].best == "b"  # type: ignore[union-attr]
    assert reply.outcomes["how"].expectation < 0.1  # type: ignore[union-attr]
    with pytest.raises(LlmFailed):
        await provider.complete(Request({"said": ["..."]}, asked), 1.0)


async def test_one_tiny_question_shows_that_a_model_answers() -> None:
    with Served(yes) as server:
        model = model_at(server.url)
        assert await ping(model) == 0.75
        await model.close()
