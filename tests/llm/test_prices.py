"""List prices: whose they are, what a question costs by them, and what a budget in money makes of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from reward_server.clock import ManualClock
from reward_server.errors import BudgetExhausted
from reward_server.llm.base import TokenUsage
from reward_server.llm.build import language_model
from reward_server.llm.prices import list_prices
from reward_server.settings import Settings
from reward_server.store.records import BookingRow, Ceiling, Spend
from tests.llm.asking import a_question

MODEL = "gpt-4o-mini-2024-07-18"


def test_a_known_model_costs_its_list_price() -> None:
    prices = list_prices("openai", MODEL, None)
    assert prices is not None
    assert prices.of(TokenUsage(input_tokens=2_000, output_tokens=100)) == Spend(tokens=2_100, nano_usd=360_000)
    assert prices.of(TokenUsage(input_tokens=0, output_tokens=0)) == Spend(tokens=0, nano_usd=0)


def test_a_long_prompt_costs_what_the_provider_takes_for_long_ones() -> None:
    prices = list_prices("anthropic", "claude-sonnet-4-5", None)
    assert prices is not None
    short, long = (prices.of(TokenUsage(input_tokens=n, output_tokens=0)).nano_usd for n in (100_000, 400_000))
    assert long == 8 * short


@pytest.mark.parametrize(
    ("provider", "model", "url"),
    [("openai", "no-such-model", None), ("vllm", MODEL, None), ("openai", MODEL, "http://127.0.0.1:1/v1")],
)
def test_what_is_not_bought_from_the_provider_has_no_list_price(provider: str, model: str, url: str | None) -> None:
    assert list_prices(provider, model, url) is None


def settings(**changes: Any) -> Settings:
    return Settings(llm_provider="openai", llm_api_key="k", llm_daily_usd=0.25, **changes)


def test_a_budget_in_money_needs_no_prices_of_a_known_model() -> None:
    assert settings(llm_model=MODEL).llm_daily_usd == 0.25
    with pytest.raises(
        ValidationError, match="LABS_LLM_USD_PER_MTOK_OUT, as the list prices of new-model are not known"
    ):
        settings(llm_model="new-model")
    with pytest.raises(ValidationError, match="needs LABS_LLM_USD_PER_MTOK_IN"):
        settings(llm_model=MODEL, llm_usd_per_mtok_in=1.0)


class Noting:
    """A ledger that notes what was booked, and books nothing."""

    def __init__(self) -> None:
        self.booked: list[Spend] = []

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling) -> Ceiling | None:
        self.booked.append(booking.spend)
        return ceiling

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        raise AssertionError("nothing was booked")


@pytest.mark.parametrize(
    ("changes", "is_free"), [({}, False), ({"llm_usd_per_mtok_in": 0, "llm_usd_per_mtok_out": 0}, True)]
)
async def test_an_operators_price_counts_before_the_list(changes: dict[str, float], is_free: bool) -> None:
    ledger = Noting()
    model = language_model(settings(llm_model=MODEL, **changes), ledger, clock=ManualClock(), environ={})
    assert model is not None
    with pytest.raises(BudgetExhausted):
        await model.ask(a_question(), lab_id="acme")
    await model.close()
    assert (ledger.booked[0].nano_usd == 0) is is_free
