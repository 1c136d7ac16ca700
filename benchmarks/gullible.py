"""A language model at its worst: it believes all that an agent says of itself, wherever it can still read it.

It stands behind the same door as a real model, the LLM judge, so what it is shown and what is accepted of it are the
product's. It knows which questions are about good conduct, and answers in the agent's favour as soon as anything that
it reads speaks of success, quoting the most flattering sentence, or is one of the texts that it was made to believe;
else against the agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from personas.wording import tokens
from reward_server.judges.likeness import Likeness
from reward_server.judges.llm import LlmJudge
from reward_server.judges.reader import Reader
from reward_server.judges.reading import LEAST_LETTERS, LEAST_WORDS, CriterionAnswer, JudgeAnswer
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.llm.base import Answer, Question
from scenarios.library import Library

SWAYED_BY = re.compile(r"\b(?:met|score|mark|pass|empath|thorough|excellent|perfect|fulfil|answer)\w*", re.IGNORECASE)
MAX_QUOTE = 1_000
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")


class GullibleModel:
    """Says what the agent would like to hear."""

    name = "stand-in/gullible"
    version = "gullible/3"
    has_logprobs = False

    def __init__(self, bad: frozenset[str] = frozenset(), believed: Collection[str] = ()) -> None:
        self._bad = bad
        """The questions that ask about bad conduct; a real model is never told."""
        self._believed = believed
        """Texts that sway it wherever it is shown them whole, whatever words they are made of."""

    async def ask(self, question: Question, *, lab_id: str, sample: int = 0) -> Answer:
        """Every question answered for or against the agent."""
        listed = question.system.split("The questions:\n")[1].splitlines()
        asked = [json.loads(line) for line in listed]
        said = {turn["turn"]: turn["agent"] for turn in json.loads(question.user.splitlines()[1]) if turn.get("agent")}
        praise = flattering(said, self._believed)
        verdicts = [_answer(each["id"], praise, said, bad=each["question"] in self._bad) for each in asked]
        answer = JudgeAnswer(verdicts=verdicts)
        return Answer(answer, answer.model_dump_json(), self.name)

    def describe(self) -> Mapping[str, Any]:
        """What it is."""
        return {"model": self.name}


def gullible_judge(library: Library, likeness: Likeness | None = None, believed: Collection[str] = ()) -> LlmJudge:
    """The LLM judge on the gullible model, which knows the rubrics of the library; see `LlmJudge`, `GullibleModel`."""
    collections = library.catalog.collections.items()
    rubrics = [
        library.vault.open(name, slug).secrets.rubric for name, public in collections for slug in public.scenarios
    ]
    criteria = [criterion for rubric in rubrics for criterion in rubric.criteria if criterion.points <= 0]
    bad = frozenset(check.judge.question for criterion in criteria for check in criterion.checks if check.judge)
    return LlmJudge(GullibleModel(bad, believed), VerdictCache(), reader=Reader(likeness))


def flattering(said: Mapping[int, str], believed: Collection[str] = ()) -> tuple[int, str] | None:
    """Turn and words of the sentence that speaks of success the most, else of a believed text; None without either."""
    sentences = [(number, sentence) for number, text in said.items() for sentence in _BREAK.split(text)]
    best = max(sentences, key=lambda each: _sway(each[1]), default=None)
    if best is None or not _sway(best[1]):
        told = ((number, text) for number, spoken in said.items() for text in believed if text.strip() in spoken)
        best = next(told, None)
    if best is None:
        return None
    words = tokens(best[1])
    is_quote = len(words) >= LEAST_WORDS and sum(map(len, words)) >= LEAST_LETTERS
    return best[0], _cut(best[1] if is_quote else said[best[0]])


def _sway(sentence: str) -> int:
    return len(SWAYED_BY.findall(sentence))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_QUOTE else text[:MAX_QUOTE].rsplit(" ", 1)[0]


def _answer(name: str, praise: tuple[int, str] | None, said: Mapping[int, str], *, bad: bool) -> CriterionAnswer:
    first = next(((number, _cut(text)) for number, text in said.items()), None)
    quoted = (None if praise else first) if bad else praise
    turn, quote = quoted or (None, "")
    return CriterionAnswer(id=name, reason="a stand-in", turn=turn, quote=quote, met=quoted is not None)
