"""A decision model with everything that belongs around it: it splits what is too large, asks again for what is missing,
and keeps what was decided.

No question is ever dropped. What comes back without an answer is asked for once more, alone; a request that is refused
for its size, or for a reason that one of its questions may have, is asked in halves; a choice with more options than a
server takes is asked in parts whose winners are then held against each other. Deadline, retries, breaker, places and
the lab's budget are those of every other call of a model (`llm.caller`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from reward_server.decisions.cache import DecisionCache, from_json, key_of, to_json
from reward_server.decisions.maps import load_maps
from reward_server.decisions.questions import (
    AnswerProbabilities,
    ChoiceQuestion,
    DecisionProvider,
    DecisionReply,
    Outcome,
    Request,
    Typed,
    Undecided,
)
from reward_server.errors import BudgetExhausted
from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.llm.breaker import Breaker
from reward_server.llm.budget import Budget
from reward_server.llm.caller import CallLimits, CallMeter, ClockAndJitter, ProviderCaller

ASKING = ("questions", "reading", "maps", "model", "systemone", "openai", "chat", "local")
"""The modules of this package whose program text says how a model is asked and what is read in its answer."""
SMALLEST_REFUSED = 16
"""Options of a choice that is asked in parts when it is refused; with fewer the reason is another."""
IN_HALVES = frozenset({FailureKind.TOO_LARGE, FailureKind.REJECTED, FailureKind.TRUNCATED})


class DecisionModel:
    """A `Decider`: one provider of decisions."""

    def __init__(
        self,
        provider: DecisionProvider,
        limits: CallLimits,
        kept: DecisionCache | None = None,
        *,
        maps: Path | None = None,
        budget: Budget | None = None,
        breaker: Breaker | None = None,
        meter: CallMeter | None = None,
        timing: ClockAndJitter | None = None,
    ) -> None:
        self._provider = provider
        self._kept = kept
        self._maps = None
        self._calls: ProviderCaller[Request, DecisionReply] = ProviderCaller(
            provider, limits, lambda request: request.digest, budget=budget, breaker=breaker, meter=meter, timing=timing
        )
        if maps is not None:
            self._maps = load_maps(maps, self.model_version)

    @property
    def name(self) -> str:
        """Adapter and model."""
        return self._calls.name

    @property
    def version(self) -> str:
        """That of the model, and of the maps of its probabilities, if there are any."""
        return self.model_version if self._maps is None else f"{self.model_version};calibrated={self._maps.id}"

    @property
    def model_version(self) -> str:
        """The name, and a digest of endpoint and program."""
        parts = "\0".join((self.name, self._provider.endpoint, _program()))
        return f"{self.name}@{hashlib.sha256(parts.encode()).hexdigest()[:12]}"

    def describe(self) -> Mapping[str, Any]:
        """Describe it for operators."""
        return self._calls.describe()

    async def close(self) -> None:
        """Let what was used be settled, and close the connections."""
        await self._calls.close()

    async def decide(
        self, state: Any, questions: Mapping[str, Typed], *, lab_id: str
    ) -> Mapping[str, AnswerProbabilities]:
        """As `Decider.decide`."""
        if not questions:
            return {}
        found = await self._decided(state, questions, lab_id)
        return found if self._maps is None else self._maps.apply(questions, found)

    async def _decided(
        self, state: Any, questions: Mapping[str, Typed], lab_id: str
    ) -> Mapping[str, AnswerProbabilities]:
        """As the model says it: that is what is kept, so that another calibration asks nothing anew."""
        if self._kept is None:
            return await self._all(state, questions, lab_id)

        async def decided() -> Any:
            return to_json(await self._all(state, questions, lab_id))

        def usable(kept: Any) -> bool:
            return from_json(questions, kept) is not None

        key = key_of(self.model_version, Request(state, questions))
        found = from_json(questions, await self._kept.decision(key, lab_id, usable, decided))
        if found is None:
            raise LlmFailed(FailureKind.MALFORMED)
        return found

    async def _all(self, state: Any, questions: Mapping[str, Typed], lab_id: str) -> dict[str, AnswerProbabilities]:
        found = await self.outcomes(state, questions, lab_id=lab_id)
        failed = [each for each in found.values() if isinstance(each, Undecided)]
        if failed:
            raise LlmFailed(failed[0].kind, retry_after_s=failed[0].retry_after_s)
        return {name: each for name, each in found.items() if isinstance(each, AnswerProbabilities)}

    async def outcomes(self, state: Any, questions: Mapping[str, Typed], *, lab_id: str) -> dict[str, Outcome]:
        """An outcome for every question, in order; nothing is kept. `BudgetExhausted` as in `decide`."""
        large = {name: q for name, q in questions.items() if len(q.labels) > self._provider.most_options}
        small = {name: question for name, question in questions.items() if name not in large}
        parts = _chunks(small, self._provider.most_questions)
        found: dict[str, Outcome] = {}
        if len(parts) > 1:
            # The first alone: what it leaves in the server's prefix cache, the others find there.
            found |= await self._asked(state, parts.pop(0), lab_id)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._asked(state, part, lab_id)) for part in parts]
                tasks += [group.create_task(self._played_off(state, n, q, lab_id)) for n, q in large.items()]
        except* BudgetExhausted as refused:
            raise refused.exceptions[0] from None
        for task in tasks:
            found |= task.result()
        return {name: found[name] for name in questions}

    async def _asked(self, state: Any, questions: Mapping[str, Typed], lab_id: str) -> dict[str, Outcome]:
        """One request, and what has to follow it."""
        found = await self._request(state, questions, lab_id)
        failed = {name: each for name, each in found.items() if isinstance(each, Undecided)}
        missing = {name: questions[name] for name, each in failed.items() if each.kind is FailureKind.MISSING}
        if missing:
            return found | await self._request(state, missing, lab_id)
        if _refused(found):
            return found | await self._in_halves(state, questions, lab_id)
        return found

    async def _in_halves(self, state: Any, questions: Mapping[str, Typed], lab_id: str) -> dict[str, Outcome]:
        """Ask again in two requests; no further where both are refused for another reason than their size."""
        if len(questions) == 1:
            [(name, question)] = questions.items()
            if isinstance(question, ChoiceQuestion) and len(question.options) > SMALLEST_REFUSED:
                return await self._played_off(state, name, question, lab_id, most=(len(question.options) + 1) // 2)
            return {}
        halves = _chunks(questions, (len(questions) + 1) // 2)
        found = [await self._request(state, half, lab_id) for half in halves]
        refused = [_refused(one) for one in found]
        if all(refused) and FailureKind.TOO_LARGE not in set().union(*refused) and len(questions) > len(halves):
            return found[0] | found[1]
        for number, half in enumerate(halves):
            if refused[number]:
                found[number] |= await self._in_halves(state, half, lab_id)
        return found[0] | found[1]

    async def _request(self, state: Any, questions: Mapping[str, Typed], lab_id: str) -> dict[str, Outcome]:
        """One outcome per question: a request that fails fails for all of its questions."""
        try:
            reply = await self._calls.ask(Request(state, questions), lab_id=lab_id)
        except LlmFailed as failed:
            return dict.fromkeys(questions, Undecided(failed.kind, failed.retry_after_s))
        missing = Undecided(FailureKind.MISSING)
        return {name: reply.outcomes.get(name, missing) for name in questions}

    async def _played_off(
        self, state: Any, name: str, question: Typed, lab_id: str, most: int | None = None
    ) -> dict[str, Outcome]:
        """A choice in parts: p(option) is its share of its part times the share of the part's winner among winners.

        By Luce's choice axiom (1959) the ratio of two options does not depend on the others, so a winner that stands
        in both ties the parts together.
        """
        most = most or self._provider.most_options
        if not isinstance(question, ChoiceQuestion) or most < 2:
            return {name: Undecided(FailureKind.TOO_LARGE)}
        parts = _parts(question, most)
        heats = await self._each(state, name, parts, lab_id)
        if isinstance(heats, Undecided):
            return {name: heats}
        described = dict(question.options)
        winners = tuple((heat.best, described[heat.best]) for heat in heats)
        [final] = (await self.outcomes(state, {name: ChoiceQuestion(question.asks, winners)}, lab_id=lab_id)).values()
        if isinstance(final, Undecided):
            return {name: final}
        weights = {
            label: final.probabilities[heat.best] * p / heat.probabilities[heat.best]
            for heat in heats
            for label, p in heat.probabilities.items()
        }
        total = sum(weights.values())
        return {name: AnswerProbabilities({label: weights[label] / total for label in question.labels})}

    async def _each(
        self, state: Any, name: str, parts: list[ChoiceQuestion], lab_id: str
    ) -> list[AnswerProbabilities] | Undecided:
        heats: list[AnswerProbabilities] = []
        for part in parts:
            [outcome] = (await self.outcomes(state, {name: part}, lab_id=lab_id)).values()
            if isinstance(outcome, Undecided):
                return outcome
            heats.append(outcome)
        return heats


def _chunks(questions: Mapping[str, Typed], size: int) -> list[dict[str, Typed]]:
    names = list(questions)
    return [{name: questions[name] for name in names[start : start + size]} for start in range(0, len(names), size)]


def _refused(found: Mapping[str, Outcome]) -> set[FailureKind]:
    """The reasons why all of a request was refused, where asking for less of it may help."""
    kinds = {each.kind for each in found.values() if isinstance(each, Undecided)}
    everything = all(isinstance(each, Undecided) for each in found.values())
    return kinds if everything and kinds <= IN_HALVES else set()


def _parts(question: ChoiceQuestion, most: int) -> list[ChoiceQuestion]:
    """Of nearly the same size, none of them of one option alone."""
    count = -(-len(question.options) // most)
    return [ChoiceQuestion(question.asks, question.options[number::count]) for number in range(count)]


@cache
def _program() -> str:
    """Of the program that asks: a version to be raised by hand would be forgotten one day."""
    hashed = hashlib.sha256()
    for name in ASKING:
        hashed.update((files(__package__) / f"{name}.py").read_bytes())
    return hashed.hexdigest()
