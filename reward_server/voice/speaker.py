"""Has a language model word what a persona says, from the engine's stage direction.

What it writes is said only if the guard accepts it; else it is asked again, twice at most, and then the engine's own
line is said. A failure of the provider is none of the persona's: the engine has a line. The lab that plays pays, as
for a judge.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from enum import StrEnum

from personas.play.direction import Character, StageDirection
from personas.play.line_guard import Objection
from reward_server.errors import BudgetExhausted, LabsError, PersonaFailed, StoreUnavailable
from reward_server.llm.base import MISTAKES, LanguageModel, LlmFailed
from reward_server.logs.logger import get_logger
from reward_server.telemetry.metrics import Metrics
from reward_server.transcripts.markup import has_markup
from reward_server.voice.prompt import Utterance, question_of

ASKED_AT_MOST = 3

log = get_logger(__name__)

Check = Callable[[str], Awaitable[Objection | None]]


class LineSource(StrEnum):
    """Whose words are said, and why; a metric label."""

    MODEL = "model"
    REJECTED = "rejected"
    """The engine's: the guard accepted no attempt."""
    FAILED = "failed"
    """The engine's: the provider gave nothing usable, or not in time."""
    BUDGET = "budget"
    NOT_ASKED = "not_asked"
    """The engine's: what the agent said is not shown to a model."""


class Speaker:
    """Words of a language model for the lines of all personas."""

    def __init__(self, model: LanguageModel, metrics: Metrics, deadline_s: float, *, must_answer: bool = False) -> None:
        """`must_answer`: where the provider fails, the turn does, too, and is not recorded."""
        self._model = model
        self._metrics = metrics
        self._deadline_s = deadline_s
        self._must_answer = must_answer
        self._secret = secrets.token_bytes(32)

    async def line(
        self, character: Character, direction: StageDirection | None, check: Check, lab_id: str
    ) -> str | None:
        """The model's line; None where the engine's is to be said.

        Raises:
            PersonaFailed: the provider failed, and its lines are required.
            BudgetExhausted: the lab has used up its budget, and its lines are required.
        """
        try:
            source, text = await self._attempts(character, direction, check, lab_id)
        except (LlmFailed, BudgetExhausted, StoreUnavailable, TimeoutError) as failure:
            source = LineSource.BUDGET if isinstance(failure, BudgetExhausted) else LineSource.FAILED
            self._failed(source, failure)
            text = None
        self._metrics.persona_lines.labels(source.value).inc()
        return text

    def _failed(self, source: LineSource, failure: Exception) -> None:
        """Count a failure by its kind; raise where the model's lines are required."""
        kind = _kind(failure)
        self._metrics.voice_failures.labels(kind).inc()
        if source is LineSource.FAILED:
            log.warning("persona_voice_failed", provider=self._model.name, kind=kind)
        if self._must_answer:
            if isinstance(failure, BudgetExhausted):
                raise failure
            raise PersonaFailed from None

    async def _attempts(
        self, character: Character, direction: StageDirection | None, check: Check, lab_id: str
    ) -> tuple[LineSource, str | None]:
        if direction is None or any(has_markup(line.text) for line in direction.said if not line.by_persona):
            return LineSource.NOT_ASKED, None
        objection: Objection | None = None
        async with asyncio.timeout(self._deadline_s):
            for attempt in range(ASKED_AT_MOST):
                question = question_of(character, direction, self._secret, objection)
                try:
                    answer = await self._model.ask(question, lab_id=lab_id, sample=attempt)
                except LlmFailed as failure:
                    if failure.kind not in MISTAKES or attempt + 1 == ASKED_AT_MOST:
                        raise
                    continue
                text = answer.parsed.utterance.strip() if isinstance(answer.parsed, Utterance) else ""
                objection = await check(text)
                self._metrics.voice_attempts.labels("accepted" if objection is None else objection.value).inc()
                if objection is None:
                    return LineSource.MODEL, text
        return LineSource.REJECTED, None


def _kind(failure: Exception) -> str:
    if isinstance(failure, LlmFailed):
        return failure.kind.value
    if isinstance(failure, LabsError):
        return "budget" if isinstance(failure, BudgetExhausted) else "store"
    return "deadline"
