"""The judge that asks a language model: one question per dimension of a transcript, the number computed here.

A verdict rests on what the agent said: the model cites a turn and its words, the code checks them. What it answers
wrongly is asked once more; a failure stays a failure and never becomes a number. Decisions are kept under
everything they depend on, so a transcript is judged once, whatever door it comes through. The model's reasons
stay in the operator's record.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from personas.reading.reader import Reader
from reward_server.judges.asking import as_far_as_paid_for, ask_and_read, together
from reward_server.judges.base import Case, Outcome, Verdict
from reward_server.judges.boundary import outcome_of
from reward_server.judges.decision import Sample, decide_by, usable, verdicts_of
from reward_server.judges.inquiry import Inquiry, inquiries, name_of
from reward_server.judges.preflight import condemned, offence_in
from reward_server.judges.prompt import PROMPT_VERSION
from reward_server.judges.reading import JudgeAnswer, read_answers
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.judges.weighting import likelihoods
from reward_server.llm.base import NO_LOGPROBS_HINT, Answer, FailureKind, LanguageModel, LlmFailed, Question
from scenarios.schema import Criterion

HINTS = {FailureKind.NO_LOGPROBS: NO_LOGPROBS_HINT}


class LlmJudge:
    """Decides criteria of kind `judge`."""

    name = "llm"
    kinds = frozenset({"judge"})

    def __init__(
        self, model: LanguageModel, cache: VerdictCache, samples: int = 1, reader: Reader | None = None
    ) -> None:
        """Ask `model`; what `reader` takes for talk about the evaluation is not shown to it."""
        if samples < 1:
            raise ValueError("a judge is asked at least once")
        self._model = model
        self._cache = cache
        self._samples = samples
        self._weighs = model.has_logprobs
        self._secret = secrets.token_bytes(32)
        self._reader = reader

    @property
    def version(self) -> str:
        """Model, prompt, samples, reader, and the weighting of every verdict: without it there is none."""
        weighting = "logprobs" if self._weighs else "answers"
        reader = "none" if self._reader is None else self._reader.version
        return f"{self._model.version};prompt={PROMPT_VERSION};k={self._samples};reader={reader};{weighting}"

    async def decide(self, cases: Sequence[tuple[Case, Sequence[Criterion]]]) -> list[Outcome]:
        """Per case the verdicts in the order of its criteria, or its failure; all cases at once."""
        provider = self._model.name
        return await asyncio.gather(
            *(
                outcome_of(partial(self._decide, case, criteria), case, provider=provider, hints=HINTS)
                for case, criteria in cases
            )
        )

    async def _decide(self, case: Case, criteria: Sequence[Criterion]) -> tuple[Verdict, ...]:
        # Off the loop, as is the reading of answers: a long conversation takes a while to be looked through.
        offence = await asyncio.to_thread(offence_in, case.transcript)
        if offence is not None:
            return tuple(condemned(criterion, offence, self.name) for criterion in criteria)
        pending = await asyncio.to_thread(inquiries, case, criteria, self.version, self._temperature, self._reader)
        decisions = await as_far_as_paid_for([self._decision(case, inquiry) for inquiry in pending])
        decided: dict[tuple[str, str], Verdict] = {}
        for inquiry, decision in zip(pending, decisions, strict=True):
            verdicts = verdicts_of(decision, inquiry.criteria, self.name, self.version)
            decided |= zip(map(name_of, inquiry.criteria), verdicts, strict=True)
        return tuple(decided[name_of(criterion)] for criterion in criteria)

    @property
    def _temperature(self) -> float:
        """One answer should be the likeliest; several have to differ as the model itself is unsure."""
        return 0.0 if self._samples == 1 else 1.0

    async def _decision(self, case: Case, inquiry: Inquiry) -> Any:
        """Decide one inquiry, as JSON: the decision that is kept, else the one that the model's samples come to."""

        def fits(kept: Any) -> bool:
            return usable(kept, len(inquiry.criteria), inquiry.seen)

        async def decide() -> Any:
            samples = await together([self._sample(case, inquiry, number) for number in range(self._samples)])
            return decide_by(samples, inquiry.criteria)

        return await self._cache.decision(inquiry.key, case.lab_id, fits, decide)

    async def _sample(self, case: Case, inquiry: Inquiry, number: int) -> Sample:
        """One answer, checked."""

        def put(mistake: FailureKind | None) -> tuple[Question, Callable[[Answer], Sample]]:
            question = inquiry.question(self._secret, number, mistake, logprobs=self._weighs, together=self._samples)
            return question, lambda answer: _read(answer, inquiry, weighs=self._weighs)

        return await ask_and_read(self._model, put, lab_id=case.lab_id, sample=number)


def _read(answer: Answer, inquiry: Inquiry, *, weighs: bool) -> Sample:
    parsed = answer.parsed
    if not isinstance(parsed, JudgeAnswer):
        raise LlmFailed(FailureKind.MALFORMED)
    answered = read_answers(parsed, inquiry.ids, inquiry.seen)
    if not weighs:
        return Sample(tuple(answered), tuple(float(verdict.met) for verdict in answered))
    # The tokens follow the order of the answer's text, which may be another than that of the questions.
    stated = likelihoods(answer.tokens, [verdict.met for verdict in parsed.verdicts])
    by_id = {verdict.id: likelihood for verdict, likelihood in zip(parsed.verdicts, stated, strict=True)}
    answers = [by_id[criterion_id] for criterion_id in inquiry.ids]
    known = tuple(likelihood for likelihood in answers if likelihood is not None)
    if len(known) < len(answers):
        # Not the answer instead: a verdict without weights would bear the version of those with.
        raise LlmFailed(FailureKind.NO_LOGPROBS)
    return Sample(tuple(answered), known)
