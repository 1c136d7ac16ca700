"""From settings to a language model: who is asked with which key, and one line about what is missing."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest

from benchmarks.scripted_provider import NO_LOGPROBS, Fail, Mode, Say, ScriptedProvider
from reward_server.clock import ManualClock
from reward_server.errors import BudgetExhausted, ConfigurationError
from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.llm.build import language_model, ping
from reward_server.settings import Settings
from reward_server.store.records import BookingRow, Ceiling, Spend
from tests.llm.asking import GOOD, SECRET_KEY, a_question


def settings(**changes: Any) -> Settings:
    return Settings(**({"llm_provider": "openai", "llm_model": "m"} | changes))


class FullLedger:
    """Notes the ceiling, and has nothing left."""

    ceiling: Ceiling | None = None
    lasts = timedelta()

    async def book(self, booking: BookingRow, now: datetime, ceiling: Ceiling) -> Ceiling | None:
        self.ceiling = ceiling
        self.lasts = booking.runs_out_at - now
        return ceiling

    async def settle(self, booking: BookingRow, used: Spend, *, calls: int) -> None:
        raise AssertionError("nothing was booked")


def test_without_a_provider_there_is_no_model() -> None:
    assert language_model(Settings(), environ={}) is None


@pytest.mark.parametrize(("provider", "variable"), [("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")])
@pytest.mark.parametrize("environ", [{}, {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "  "}])
def test_a_missing_key_is_one_line_that_names_both_variables(
    provider: str, variable: str, environ: dict[str, str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        language_model(settings(llm_provider=provider), environ=environ)
    assert variable in caught.value.message
    assert "LABS_LLM_API_KEY" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("key", ["schlüssel-secret", "se\ncret", "a\x00b"])
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        language_model(settings(llm_api_key=key), environ={})
    assert key not in caught.value.message


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/v1", "http://", "http://host:99999/v1", "http://[::1/v1"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="LABS_LLM_BASE_URL"):
        language_model(settings(llm_base_url=url, llm_api_key="k"), environ={})


async def sent_key(environ: dict[str, str], **changes: Any) -> str:
    with ScriptedProvider(GOOD) as server:
        model = language_model(settings(llm_base_url=server.url, **changes), environ=environ)
        assert model is not None
        await model.ask(a_question(), lab_id="acme")
        await model.close()
    return server.asked[0].headers["authorization"].removeprefix("Bearer ")


async def test_the_key_is_ours_else_the_providers_and_a_server_of_ones_own_never_gets_theirs() -> None:
    theirs = {"OPENAI_API_KEY": "theirs", "ANTHROPIC_API_KEY": "another"}
    assert await sent_key(theirs) == "theirs"
    assert await sent_key(theirs, llm_api_key="ours") == "ours"
    assert await sent_key(theirs, llm_provider="anthropic") == "another"
    assert await sent_key(theirs, llm_provider="vllm") == "none"
    assert await sent_key(theirs, llm_provider="vllm", llm_api_key="ours") == "ours"


async def test_limits_come_from_the_settings() -> None:
    model = language_model(
        settings(llm_api_key=SECRET_KEY, llm_deadline_s=7, llm_retries=1, llm_concurrency=3), environ={}
    )
    assert model is not None
    shown = model.describe()
    await model.close()
    assert (shown["deadline_s"], shown["retries"], shown["concurrency"]) == (7.0, 1, 3)
    assert shown["budget"] is False
    assert SECRET_KEY not in str(shown)


async def test_the_budget_comes_from_the_settings_and_is_checked_before_anything_is_sent() -> None:
    ledger = FullLedger()
    with ScriptedProvider(GOOD) as server:
        model = language_model(
            settings(
                llm_base_url=server.url,
                llm_api_key="k",
                llm_deadline_s=7.0,
                llm_daily_tokens=500,
                llm_daily_usd=0.25,
                llm_prices="0.15/0.6",
            ),
            ledger,
            clock=ManualClock(),
            environ={},
        )
        assert model is not None
        with pytest.raises(BudgetExhausted) as caught:
            await model.ask(a_question(), lab_id="acme")
        await model.close()
    assert ledger.ceiling == Ceiling(tokens=500, nano_usd=250_000_000)
    assert ledger.lasts == timedelta(seconds=67)
    assert caught.value.retry_after_s == 24 * 3600
    assert server.asked == []


async def test_a_tiny_question_shows_that_the_provider_answers() -> None:
    with ScriptedProvider([{"ready": True}, Fail(Mode.MALFORMED)]) as server:
        chosen = settings(llm_base_url=server.url, llm_api_key="k")
        assert await ping(chosen) == "m"
        with pytest.raises(LlmFailed) as caught:
            await ping(chosen)
    assert caught.value.kind is FailureKind.MALFORMED
    assert await ping(Settings()) is None


@pytest.mark.parametrize("weighs", [True, False])
async def test_whether_verdicts_are_weighed_is_a_setting_and_a_tiny_question_tries_it(weighs: bool) -> None:
    with ScriptedProvider(Say({"ready": True}, logprobs=NO_LOGPROBS)) as server:
        chosen = settings(llm_base_url=server.url, llm_api_key="k", llm_logprobs=weighs)
        model = language_model(chosen)
        assert model is not None
        assert model.has_logprobs is weighs
        await model.close()
        if weighs:
            with pytest.raises(LlmFailed) as caught:
                await ping(chosen)
            assert caught.value.kind is FailureKind.NO_LOGPROBS
        else:
            assert await ping(chosen) == "m"
    assert [asked.body.get("logprobs", False) for asked in server.asked] == [weighs]


@pytest.mark.slow
def test_without_a_provider_no_sdk_is_loaded() -> None:
    script = (
        "import sys, reward_server.server.app\n"
        "from reward_server.llm.build import language_model\n"
        "from reward_server.settings import Settings\n"
        "language_model(Settings())\n"
        "sys.exit(bool({'anthropic', 'openai'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
