"""Asks a decision model what people answered: facts and commitments of labelled turns, and labelled verdicts.

A turn of one sentence says what its sentence asks for and promises; of a longer one nobody knows which sentence does,
so it is left out. Questions are those that the reader and the judge ask. What fails is counted, and no answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from personas.reading.reader import said_in
from reward_server.decisions.model import DecisionModel
from reward_server.decisions.questions import NO, YES, AnswerProbabilities, Typed
from reward_server.fitting.reader.dataset import Cases, ReaderRow, case_of
from reward_server.fitting.verdicts.measure import OPERATOR, judged
from reward_server.fitting.verdicts.read import LabelledTalk
from reward_server.judges.decided import CRITERION, DecisionJudge
from reward_server.llm.base import LlmFailed
from reward_server.reader.questions import NONE, questions_of, state_of

AT_ONCE = 16
NEVER = 1.1
"""A threshold that nothing reaches: the quote of a criterion that is met would be another question."""
NOTHING_ASKED = frozenset({"foreign", "social", "summary", "commit", "near_commit"})
"""Kinds of turns that ask for nothing of the case where the label names nothing; an invitation may mean anything."""


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """The probabilities of a question, and the answers that people take for right."""

    kind: str
    probabilities: Mapping[str, float]
    right: frozenset[str]
    group: str


@dataclass(slots=True)
class LabelledAnswers:
    """All that a model answered, and how many questions it did not."""

    given: list[LabelledAnswer] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)


async def answers_of(
    model: DecisionModel,
    cases: Cases,
    rows: Sequence[ReaderRow],
    talks: Sequence[LabelledTalk],
    progress: Callable[[str, int, int], None],
) -> LabelledAnswers:
    """The model's answers to the questions about labelled turns and conversations; `BudgetExhausted` as `decide`."""
    collected = LabelledAnswers()
    asked = [(row, labels) for row in rows if (labels := _labels(row))]
    for start in range(0, len(asked), AT_ONCE):
        part = asked[start : start + AT_ONCE]
        for answers in await asyncio.gather(*(_turn(model, cases, row, labels) for row, labels in part)):
            if isinstance(answers, str):
                collected.failures[answers] += 1
            else:
                collected.given += answers
        progress("turns", start + len(part), len(asked))
    if talks:
        await _verdicts(model, talks, collected, lambda done: progress("conversations", done, len(talks)))
    return collected


def _labels(row: ReaderRow) -> dict[str, frozenset[str]]:
    """By kind of question, the right answers; of a turn that is not clear about it, none."""
    turn = row.turn
    if len(said_in((turn.line, turn.turn))) != 1:
        return {}
    labels = {"commitment": frozenset(turn.commits) or frozenset({NONE})}
    if turn.kind in ("specific", "double") or (turn.kind in NOTHING_ASKED and not turn.asks):
        labels["topic"] = frozenset(turn.asks) or frozenset({NONE})
    return labels


async def _turn(
    model: DecisionModel, cases: Cases, row: ReaderRow, labels: Mapping[str, frozenset[str]]
) -> list[LabelledAnswer] | str:
    turn = (row.turn.line, row.turn.turn)
    questions: dict[str, Typed] = {
        name: question for name, question in questions_of(case_of(cases, row), turn).items() if question.kind in labels
    }
    try:
        probabilities = await model.decide(state_of(turn), questions, lab_id=OPERATOR)
    except LlmFailed as failed:
        return failed.kind.value
    return list(_answers(questions, probabilities, labels, f"{row.collection}/{row.scenario}"))


def _answers(
    questions: Mapping[str, Typed],
    answered: Mapping[str, AnswerProbabilities],
    labels: Mapping[str, frozenset[str]],
    group: str,
) -> Iterator[LabelledAnswer]:
    for name, answer in answered.items():
        kind = questions[name].kind
        if labels[kind] & answer.probabilities.keys():
            yield LabelledAnswer(kind, answer.probabilities, labels[kind], group)


async def _verdicts(
    model: DecisionModel, talks: Sequence[LabelledTalk], collected: LabelledAnswers, progress: Callable[[int], None]
) -> None:
    decided = await judged(DecisionJudge(model, NEVER), talks, progress)
    collected.failures += decided.failures
    for verdict in decided.decided:
        right = frozenset({YES if verdict.label else NO})
        collected.given.append(
            LabelledAnswer(CRITERION, {YES: verdict.likely, NO: 1 - verdict.likely}, right, verdict.group)
        )
