"""Builds the language model that the settings name, with one clear line where they cannot be used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic import BaseModel

from reward_server.clock import Clock, SystemClock
from reward_server.errors import ConfigurationError
from reward_server.llm.base import ChatProvider, Question
from reward_server.llm.budget import NANO_USD_PER_USD, Budget, Ledger, Priced, Prices
from reward_server.llm.caller import CallLimits, CallMeter, LanguageModelCaller
from reward_server.llm.prices import list_prices
from reward_server.settings import Settings
from reward_server.store.records import Ceiling

KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""Where a provider's key is looked for if LABS_LLM_API_KEY is not set. A server of one's own never gets these."""
NO_KEY = "none"
"""What is sent to a server that wants no key; the SDK insists on one."""
SETTLING_S = 60.0
"""How long it may take to settle a call after its deadline, before its booking runs out."""


def language_model(
    settings: Settings,
    ledger: Ledger | None = None,
    *,
    meter: CallMeter | None = None,
    clock: Clock | None = None,
    environ: Mapping[str, str] = os.environ,
) -> LanguageModelCaller | None:
    """The language model of the settings; None where they name no provider. Loads the provider's SDK.

    Without a ledger there is no budget and nothing is counted: a command of the operator spends the operator's money.

    Raises:
        ConfigurationError: a key is missing, or the URL is none.
    """
    if settings.llm_provider == "none":
        return None
    budget = None if ledger is None else budget_of(settings, ledger, clock or SystemClock())
    return LanguageModelCaller(provider_of(settings, environ), limits_of(settings), budget=budget, meter=meter)


class _Pong(BaseModel):
    """The answer to a tiny question."""

    ready: bool


async def ping(settings: Settings) -> str | None:
    """Ask the provider one tiny question as judges do: the model that answered, None where there is no provider.

    Raises:
        LlmFailed: it gave no answer, or one of another shape.
    """
    model = language_model(settings)
    if model is None:
        return None
    try:
        asked = ("Answer with the JSON that is asked for.", "Are you ready?")
        question = Question(*asked, _Pong, max_tokens=256, logprobs=model.has_logprobs)
        return (await model.ask(question, lab_id="operator")).model
    finally:
        await model.close()


def provider_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> ChatProvider:
    """The adapter that the settings name; `ConfigurationError` as above."""
    if settings.llm_model is None:
        raise ConfigurationError("LABS_LLM_MODEL: must name a model")
    check_url(settings.llm_base_url, "LABS_LLM_BASE_URL")
    key = _key(settings, environ)
    if settings.llm_provider == "anthropic":
        from reward_server.llm.anthropic_provider import AnthropicProvider

        return AnthropicProvider(settings.llm_model, key, base_url=settings.llm_base_url)
    if settings.llm_provider == "none":
        raise ConfigurationError("LABS_LLM_PROVIDER: must be anthropic, openai or vllm")
    from reward_server.llm.openai_provider import OpenAIProvider

    return OpenAIProvider(
        settings.llm_model,
        key,
        base_url=settings.llm_base_url,
        name=settings.llm_provider,
        has_logprobs=settings.llm_logprobs,
    )


def _key(settings: Settings, environ: Mapping[str, str]) -> str:
    variable = KEY_VARIABLES.get(settings.llm_provider)
    given = "" if settings.llm_api_key is None else settings.llm_api_key.get_secret_value()
    key = (given or (environ.get(variable, "") if variable else NO_KEY)).strip()
    if not key:
        raise ConfigurationError(f"LABS_LLM_API_KEY: a key for {settings.llm_provider} is needed here or in {variable}")
    return checked_key(key, "LABS_LLM_API_KEY")


def checked_key(key: str, setting: str) -> str:
    """The key, if it can be sent; `ConfigurationError` otherwise."""
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError(f"{setting}: has characters that no key has")
    return key


def check_url(url: str | None, setting: str) -> None:
    """`ConfigurationError` where the URL of this setting is none."""
    if url is None:
        return
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(f"{setting}: must be a URL, such as http://127.0.0.1:8000/v1")


def limits_of(settings: Settings) -> CallLimits:
    """The limits on calls, in time, number and concurrency: of language models and of decision models."""
    return CallLimits(
        deadline_s=settings.llm_deadline_s, retries=settings.llm_retries, concurrency=settings.llm_concurrency
    )


def ceiling_of(settings: Settings) -> Ceiling:
    """The most that a lab may spend in a day."""
    usd = settings.llm_daily_usd
    return Ceiling(tokens=settings.llm_daily_tokens, nano_usd=None if usd is None else round(usd * NANO_USD_PER_USD))


def budget_of(settings: Settings, ledger: Ledger, clock: Clock) -> Budget:
    """Every lab's budget of the day, kept in the ledger."""
    lasts_s = settings.llm_deadline_s + SETTLING_S
    return Budget(ledger, clock, ceiling_of(settings), _prices(settings), lasts_s=lasts_s)


def _prices(settings: Settings) -> Priced:
    """The operator's prices, else the provider's; a model without either costs nothing."""
    given = settings.llm_usd_per_mtok_in, settings.llm_usd_per_mtok_out
    if given != (None, None):
        return Prices(given[0] or 0.0, given[1] or 0.0)
    return list_prices(settings.llm_provider, settings.llm_model, settings.llm_base_url) or Prices()
