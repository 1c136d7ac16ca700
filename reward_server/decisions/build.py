"""Builds the decision models that the settings name, with one clear line where they cannot be used."""

from __future__ import annotations

import os
from collections.abc import Mapping

from reward_server.clock import Clock, SystemClock
from reward_server.decisions.cache import DecisionCache
from reward_server.decisions.local import Cosine, LocalDecisions
from reward_server.decisions.maps import FOLDER
from reward_server.decisions.model import DecisionModel
from reward_server.decisions.questions import DecisionProvider, YesNoQuestion
from reward_server.errors import ConfigurationError
from reward_server.llm.budget import Ledger
from reward_server.llm.build import NO_KEY, budget_of, check_url, checked_key, limits_of
from reward_server.llm.caller import CallMeter
from reward_server.settings import Settings


def decision_model(
    settings: Settings,
    cosine: tuple[Cosine, str],
    kept: DecisionCache | None = None,
    ledger: Ledger | None = None,
    *,
    meter: CallMeter | None = None,
    clock: Clock | None = None,
    calibrated: bool = True,
    environ: Mapping[str, str] = os.environ,
) -> DecisionModel | None:
    """The decision model; None where the settings name none. Loads the SDK it needs.

    Without a ledger there is no budget and nothing is counted: a command of the operator spends the operator's money.

    Args:
        settings: name adapter, model and server.
        cosine: the text encoder's likeness and its version, for the adapter `local`.
        kept: where decisions are kept.
        ledger: where spending is kept.
        meter: is told of every call.
        clock: of the budget's days.
        calibrated: whether its probabilities are mapped, if maps were fitted for this version (`maps`).
        environ: where a key may stand.

    Raises:
        ConfigurationError: a key is missing, the URL is none, or its maps are damaged.
    """
    if settings.decisions == "none":
        return None
    maps = settings.data / FOLDER if calibrated else None
    if settings.decisions == "local":
        return DecisionModel(LocalDecisions(*cosine), limits_of(settings), kept, maps=maps)
    budget = None if ledger is None else budget_of(settings, ledger, clock or SystemClock())
    provider = _provider(settings, environ)
    return DecisionModel(provider, limits_of(settings), kept, maps=maps, budget=budget, meter=meter)


def _provider(settings: Settings, environ: Mapping[str, str]) -> DecisionProvider:
    model = settings.decisions_model
    if model is None:
        raise ConfigurationError(f"LABS_DECISIONS_MODEL: must name a model for {settings.decisions}")
    check_url(settings.decisions_url, "LABS_DECISIONS_URL")
    given = "" if settings.decisions_api_key is None else settings.decisions_api_key.get_secret_value().strip()
    key = checked_key(given, "LABS_DECISIONS_API_KEY")
    if settings.decisions == "systemone" and settings.decisions_url is not None:
        from reward_server.decisions.systemone import SystemOneProvider

        return SystemOneProvider(model, key or None, base_url=settings.decisions_url)
    if not key:
        key = NO_KEY if settings.decisions_url else environ.get("OPENAI_API_KEY", "").strip()
    if not key:
        raise ConfigurationError("LABS_DECISIONS_API_KEY: a key for openai is needed here or in OPENAI_API_KEY")
    if settings.decisions == "openai":
        from reward_server.decisions.openai import OpenAIDecisions

        return OpenAIDecisions(model, key, base_url=settings.decisions_url)
    from reward_server.decisions.chat import ChatDecisions

    return ChatDecisions(model, key, base_url=settings.decisions_url)


async def ping(model: DecisionModel) -> float:
    """Ask one tiny question: the probability that the model gives a plain truth.

    Raises:
        LlmFailed: it gave no answer.
    """
    asked = {"ready": YesNoQuestion("Is the door described as open?")}
    found = await model.decide({"text": "The door is open."}, asked, lab_id="operator")
    return found["ready"].yes
