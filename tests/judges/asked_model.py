"""A language model in memory: answers by a script, keeps what it was asked; and what the tests ask it about."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Any

from pydantic import BaseModel

from reward_server.errors import BudgetExhausted, JudgeFailed, LabsError
from reward_server.judges.base import Case, Outcome, Verdict
from reward_server.judges.llm import LlmJudge
from reward_server.judges.reading import CriterionAnswer, JudgeAnswer
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.llm.base import Answer, FailureKind, LlmFailed, Question, TokenChoice
from scenarios.library import SealedScenario
from scenarios.schema import Criterion
from tests.scoring.builders import CRITERIA, Said, a_case, a_panel, a_scenario

CALM = "Take your time, I am listening to you."
TELLS = "Everything is wet in here, it is awful."
PLAN = "I will call our roofer for you now."
TALK: tuple[Said, ...] = (CALM, TELLS, PLAN, "Thank you so much, that helps.")
"""Four lines of which the model may quote the first and the third."""

QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "author_calm",
        "family": "rubrics",
        "dimension": "D3_Manner",
        "points": 3,
        "check": {"judge": {"question": "Does the agent give the tenant time to talk?"}},
    },
    {
        "id": "author_pushy",
        "family": "rubrics",
        "dimension": "D3_Manner",
        "points": -1,
        "check": {"judge": {"question": "Does the agent push the tenant?"}},
    },
    {
        "id": "author_threat",
        "family": "failure_metrics",
        "dimension": "D3_Manner",
        "points": -2,
        "cap": 0.2,
        "check": {"judge": {"question": "Does the agent threaten the tenant?"}},
    },
    {
        "id": "author_plan",
        "family": "success_metrics",
        "dimension": "D2_Resolution",
        "points": 4,
        "check": {"judge": {"question": "Does the agent name a concrete next step?"}},
    },
]
"""Credit, a penalty and a failure in one dimension, credit in another."""

Reply = BaseModel | Answer | LabsError | FailureKind
Script = Callable[[Question, int], Reply]


class AskedModel:
    """Answers by the script; `number` counts the questions from 0."""

    def __init__(self, script: Script, *, version: str = "memory/1", has_logprobs: bool = False) -> None:
        self._script = script
        self._version = version
        self._has_logprobs = has_logprobs
        self.asked: list[Question] = []
        self.labs: list[str] = []
        self.samples: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self.arrived = asyncio.Event()
        """Set once `awaited` questions wait."""
        self.awaited = 1
        self.cancelled = 0
        self.left = asyncio.Event()
        """Set once nobody waits any more."""

    @property
    def name(self) -> str:
        return "memory/model"

    @property
    def version(self) -> str:
        return self._version

    @property
    def has_logprobs(self) -> bool:
        return self._has_logprobs

    async def ask(self, question: Question, *, lab_id: str, sample: int = 0) -> Answer:
        number = len(self.asked)
        self.asked.append(question)
        self.labs.append(lab_id)
        self.samples.append(sample)
        reply = self._script(question, number)
        self.waiting += 1
        if self.waiting >= self.awaited:
            self.arrived.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1
            if not self.waiting:
                self.left.set()
        if isinstance(reply, FailureKind):
            raise LlmFailed(reply)
        if isinstance(reply, LabsError):
            raise reply
        return reply if isinstance(reply, Answer) else Answer(reply, reply.model_dump_json(), "model")

    def describe(self) -> Mapping[str, Any]:
        return {"model": "model"}


class KeptVerdicts:
    """A durable store, without the durability."""

    def __init__(self) -> None:
        self.bodies: dict[str, str] = {}

    async def get_many(self, keys: Any) -> dict[str, str]:
        return {key: self.bodies[key] for key in keys if key in self.bodies}

    async def put_many(self, bodies: Mapping[str, str]) -> None:
        self.bodies = {**bodies, **self.bodies}

    async def replace(self, key: str, damaged: str, body: str) -> None:
        if self.bodies.get(key) == damaged:
            self.bodies[key] = body


def questions_in(question: Question) -> list[dict[str, str]]:
    """The questions that the model is asked, as it reads them."""
    lines = question.system.split("The questions:\n")[1].splitlines()
    return [json.loads(line) for line in lines]


def says(question: Question, **met: tuple[int, str]) -> JudgeAnswer:
    """Answers to the questions: met, with turn and quote, where `met` has a word of the question, else not."""
    answers = []
    for asked in questions_in(question):
        found = next((place for word, place in met.items() if word in asked["question"]), None)
        answers.append(an_answer(asked["id"], *(found or ())))
    return JudgeAnswer(verdicts=answers)


def an_answer(criterion: str, turn: int | None = None, quote: str = "") -> CriterionAnswer:
    return CriterionAnswer(id=criterion, reason="quokka-reason", turn=turn, quote=quote, met=turn is not None)


def with_tokens(answer: JudgeAnswer, *probabilities: float, spell: str = " {}") -> Answer:
    """An answer whose `met` tokens carry these probabilities of true, in the order of its text."""
    tokens: list[TokenChoice] = []
    chances = iter(probabilities)
    for index, part in enumerate(answer.model_dump_json().replace('"met":', '"met":\0').split("\0")):
        word = "true" if part.startswith("true") else "false"
        if index:
            tokens.append(_token(word, next(chances), spell))
        rest = part.removeprefix(word) if index else part
        tokens += [TokenChoice(piece, {piece: 0.0}) for piece in (rest[:5], rest[5:]) if piece]
    return Answer(answer, answer.model_dump_json(), "model", tokens=tuple(tokens))


def _token(word: str, chance: float, spell: str) -> TokenChoice:
    alternatives = {spell.format("true"): log(chance), spell.format("false"): log(1 - chance), "null": -9.0}
    return TokenChoice(spell.format(word), alternatives)


def judged_scenario(criteria: list[dict[str, Any]] | None = None, **persona: Any) -> SealedScenario:
    """The roof, with questions for a language model beside its other criteria."""
    return a_scenario([*(each for each in CRITERIA if each["id"] != "tone"), *(criteria or QUESTIONS)], **persona)


def asked_of(scenario: SealedScenario) -> tuple[Criterion, ...]:
    return tuple(c for c in scenario.secrets.rubric.criteria if c.check.judge is not None)


def a_judged_case(*said: Said, scenario: SealedScenario | None = None) -> tuple[Case, tuple[Criterion, ...]]:
    """A case and the criteria that the model is to decide."""
    sealed = scenario or judged_scenario()
    return a_case(*(said or TALK), scenario=sealed), asked_of(sealed)


def a_judge(script: Script | AskedModel, samples: int = 1, store: KeptVerdicts | None = None) -> LlmJudge:
    model = script if isinstance(script, AskedModel) else AskedModel(script)
    return LlmJudge(model, VerdictCache(store), samples)


def good(question: Question, _: int = 0) -> JudgeAnswer:
    """What an attentive model says of the conversation: calm, with a plan, neither pushy nor threatening."""
    return says(question, time=(1, CALM), concrete=(2, "call our roofer for you"))


def verdicts(outcome: Outcome) -> dict[str, Verdict]:
    assert isinstance(outcome, tuple), outcome
    return {verdict.criterion_id: verdict for verdict in outcome}


async def ask_panel(script: Script | AskedModel, case: Case, criteria: Sequence[Criterion]) -> list[Outcome]:
    panel = a_panel(a_judge(script))
    return await panel.ask([(case, panel.compute(case, criteria).open)])


async def decided(judge: Any, *said: Any) -> Outcome:
    [outcome] = await judge.decide([a_judged_case(*said)])
    assert isinstance(outcome, (tuple, JudgeFailed, BudgetExhausted))
    return outcome
