"""The reader that asks a language model: what it asks, what it believes, and that a failure is an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from personas.case.schema import Background
from personas.reading.acts import Act, Candidate, Reading, Sentence
from reward_server.errors import JudgeFailed
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.llm.base import Answer, FailureKind, LlmFailed, Question
from reward_server.reader.llm import CascadeReader, LlmReader, ReadingAnswer, is_doubtful
from tests.personas.cast import compiled

TURN = ("I hurt my knee.", "Oh no, that must be sore! When did it crack?")


def row(quote: str, **more: Any) -> dict[str, Any]:
    return {"quote": quote, "acts": ["ask"], "stance": "none", "asks": [], "commits": [], **more}


RIGHT = [row("Oh no, that must be sore!", acts=["empathy"]), row("When did it crack?", asks=["noise"])]


class ScriptedModel:
    """Gives the scripted answers in turn; the last one again and again."""

    name = "scripted/model"
    version = "scripted/1"
    has_logprobs = False

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    async def ask(self, question: Question, *, lab_id: str, sample: int = 0) -> Answer:
        self.asked.append(question)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, FailureKind):
            raise LlmFailed(answer)
        return Answer(ReadingAnswer.model_validate({"sentences": answer}), json.dumps(answer), self.name)

    def describe(self) -> Mapping[str, Any]:
        return {}


async def read(model: ScriptedModel, *turns: tuple[str, str], cache: VerdictCache | None = None) -> list[Reading]:
    reader = LlmReader(model, cache or VerdictCache(), asyncio.get_running_loop())
    return await asyncio.to_thread(reader.read, compiled(), turns or [TURN])


async def test_the_answer_becomes_a_reading() -> None:
    [reading] = await read(ScriptedModel(RIGHT))
    assert [s.text for s in reading.sentences] == ["Oh no, that must be sore!", "When did it crack?"]
    assert reading.sentences[0].acts == {Act.EMPATHY}
    assert reading.sentences[1].topics == (Candidate("noise", 1.0),)


async def test_the_model_is_shown_the_turn_as_data_and_the_ids_of_the_case() -> None:
    model = ScriptedModel(RIGHT)
    await read(model)
    assert json.loads(model.asked[0].user) == {"persona_said": TURN[0], "agent_turn": TURN[1]}
    assert "- noise:" in model.asked[0].system
    assert "cruciate" not in model.asked[0].system  # what the persona cannot know


WALKS = Background(id="walks", asks=("Do you walk much?", "Do you walk far?", "How far?"), says=("To the shops.",))


async def test_the_model_is_shown_the_background_and_answers_from_it_are_no_topics() -> None:
    model = ScriptedModel([row("Do you walk much?", asks=["walks"])])
    case, line = compiled(background=(WALKS,)), "I hurt my knee."
    reader = LlmReader(model, VerdictCache(), asyncio.get_running_loop())
    [reading] = await asyncio.to_thread(reader.read, case, [(line, "Do you walk much?")])
    assert "- walks: Do you walk much? / To the shops." in model.asked[0].system
    assert reading.sentences[0].topics == ()
    assert reader.beside(case, line, reading.sentences) == [(Candidate("walks", 1.0),)]
    assert len(model.asked) == 1
    local = FixedReader(reading)
    assert CascadeReader(local, reader).beside(case, line, reading.sentences) == [  # type: ignore[arg-type]
        (Candidate("walks", 1.0),)
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        [row("Where were you?")],
        [row("When did it crack?", asks=["nothing_known"])],
        [row("When did it crack?", commits=["noise"])],
        [row("When did it crack?", acts=["sing"])],
        [],
    ],
)
async def test_a_wrong_answer_is_asked_once_more_and_then_an_error(wrong: list[dict[str, Any]]) -> None:
    mended = ScriptedModel(wrong, RIGHT)
    assert (await read(mended))[0].sentences
    assert "note" in json.loads(mended.asked[1].user)
    with pytest.raises(JudgeFailed):
        await read(ScriptedModel(wrong))


async def test_a_failure_is_an_error_and_never_a_guess() -> None:
    with pytest.raises(JudgeFailed):
        await read(ScriptedModel(FailureKind.REFUSED))


async def test_a_turn_is_asked_about_once_whoever_reads_it() -> None:
    model, cache = ScriptedModel(RIGHT), VerdictCache()
    await read(model, TURN, TURN, cache=cache)
    await read(model, cache=cache)
    assert len(model.asked) == 1


async def test_a_turn_without_words_is_not_asked_about() -> None:
    model = ScriptedModel(RIGHT)
    assert (await read(model, ("Hello.", "...")))[0].sentences == ()
    assert model.asked == []


class FixedReader:
    version = "fixed"

    def __init__(self, *readings: Reading) -> None:
        self.readings = readings

    def read(self, case: object, turns: object) -> list[Reading]:
        return list(self.readings)


async def test_a_cascade_asks_only_about_what_is_doubtful() -> None:
    sure = Reading((Sentence("When did it crack?", frozenset({Act.ASK}), topics=(Candidate("noise", 0.9),)),))
    unsure = Reading((Sentence("And?", frozenset({Act.ASK}), topics=(Candidate("noise", 0.3),)),))
    assert not is_doubtful(sure)
    assert is_doubtful(unsure)
    model = ScriptedModel(RIGHT)
    asking = LlmReader(model, VerdictCache(), asyncio.get_running_loop())
    cascade = CascadeReader(FixedReader(sure, unsure), asking)  # type: ignore[arg-type]
    found = await asyncio.to_thread(cascade.read, compiled(), [("", "When did it crack?"), TURN])
    assert found[0] == sure
    assert found[1].sentences[1].topics == (Candidate("noise", 1.0),)
    assert len(model.asked) == 1
