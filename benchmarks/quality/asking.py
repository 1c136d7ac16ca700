"""Asks the language model of the settings which of two outputs is better, through the product's own pairwise judge.

Without a provider nothing is asked. A pair without a usable answer is counted as such and never as a tie or a loss.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.quality.data import Pair
from benchmarks.quality.figures import share
from reward_server.errors import JudgeFailed
from reward_server.judges.pairwise import PairwiseJudge, PairwisePreference
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.llm.build import language_model
from reward_server.llm.caller import LanguageModelCaller
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.reliability import FigureInterval
from reward_server.settings import Settings
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario, load_library
from scenarios.schema import Check, Criterion, JudgeCheck, ScenarioCard
from trainer_client.wire import Message

AT_ONCE = 8
VALUES = {"a": 1.0, "b": 0.0, "tie": 0.5}


@dataclass(frozen=True)
class Asked:
    """What a language model made of a subset."""

    n: int
    failed: int
    accuracy: FigureInterval | str
    consistency: FigureInterval | str


def ask_about(subsets: Mapping[str, Sequence[Pair]], settings: Settings) -> dict[str, Asked]:
    """Per subset; empty where the settings name no provider."""
    model = language_model(settings)
    return {} if model is None else asyncio.run(_ask_all(subsets, model))


async def _ask_all(subsets: Mapping[str, Sequence[Pair]], model: LanguageModelCaller) -> dict[str, Asked]:
    judge, scenario, criteria = PairwiseJudge(model, VerdictCache()), _scenario(), _criteria()
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(pair: Pair) -> PairwisePreference | None:
        async with gate:
            sides = (_transcript(pair.chosen), _transcript(pair.rejected))
            try:
                return await judge.compare(scenario, criteria, *sides, "benchmark")
            except JudgeFailed:
                return None

    found: dict[str, Asked] = {}
    for name, pairs in subsets.items():
        print(f"  asking the language model about {len(pairs)} pairs of {name}", file=sys.stderr)
        found[name] = summary(pairs, await asyncio.gather(*(one(pair) for pair in pairs)))
    await model.close()
    return found


def summary(pairs: Sequence[Pair], answers: Sequence[PairwisePreference | None]) -> Asked:
    """Accuracy and consistency of the answers that there are; side a is the one that people preferred."""
    given = [(pair.group, answer) for pair, answer in zip(pairs, answers, strict=True) if answer is not None]
    failed = len(pairs) - len(given)
    if not given:
        return Asked(len(pairs), failed, "-", "-")
    groups = [group for group, _ in given]
    values = np.array([VALUES[answer.winner] for _, answer in given])
    same = np.array([float(answer.consistent) for _, answer in given])
    return Asked(len(pairs), failed, share(values, groups), share(same, groups))


def _transcript(conversation: Conversation) -> Transcript:
    return Transcript.from_messages(
        [
            Message(role="assistant" if said.party == "agent" else "user", content=said.text)
            for said in conversation.turns
        ]
    )


def _scenario() -> SealedScenario:
    """A public card for instruction following; the pairwise judge looks at nothing else of a scenario."""
    library = load_library()
    collection, card = next((name, each) for name, each in library.catalog.collections.items())
    sealed = library.vault.open(collection, next(iter(card.scenarios)))
    public = ScenarioCard(
        slug="instruction-following",
        name="Instruction following",
        description="A user gives one instruction. Carry it out.",
        max_turns=4,
    )
    return replace(sealed, collection="benchmark", card=public)


def _criteria() -> tuple[Criterion, ...]:
    about = "Does what the instruction asks for, exactly and correctly, whatever its style and length."
    fields = {"id": "follows", "family": "rubrics", "dimension": "D1_Quality", "points": 1.0, "about": about}
    return (
        Criterion(**fields, check=Check(judge=JudgeCheck(question="Does the output do what the instruction asks?"))),
    )
