"""Builds the voice that the settings name: its model is the judges' own, or one with settings of its own."""

from __future__ import annotations

from collections.abc import Callable

from reward_server.llm.base import LanguageModel
from reward_server.llm.build import language_model
from reward_server.llm.caller import LanguageModelCaller
from reward_server.settings import Settings
from reward_server.telemetry.metrics import Metrics
from reward_server.voice.speaker import Speaker

SHARE = 0.25
"""Of the time to answer a turn, the most that is spent on words; judges may need the rest."""


def own_voice_model(
    settings: Settings, build: Callable[[Settings], LanguageModelCaller | None] = language_model
) -> LanguageModelCaller | None:
    """The voice's own model; None where there is no voice, or it speaks with the model of the judges.

    Raises:
        ConfigurationError: a key is missing, or the URL is none.
    """
    return build(settings.for_voice) if settings.persona_voice == "llm" and settings.voice_model is not None else None


def speaker_of(model: LanguageModel | None, settings: Settings, metrics: Metrics) -> Speaker | None:
    """Who words the lines, if not the engine."""
    if model is None or settings.persona_voice == "local":
        return None
    deadline_s = min(settings.llm_deadline_s, SHARE * settings.request_deadline_s)
    return Speaker(model, metrics, deadline_s, must_answer=settings.voice_failure == "fail")
