"""The reader that asks a decision model: what it asks, what becomes of the answers, and who reads where it fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from personas.case.schema import Background
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence, Stance
from reward_server.decisions.questions import AnswerProbabilities, Typed
from reward_server.errors import JudgeFailed
from reward_server.limits.fair_threads import working_for
from reward_server.llm.base import FailureKind
from reward_server.reader.decided import CascadeReader, DecisionReader, is_doubtful
from tests.decisions.asked_decider import MemoryDecider, picks, yes
from tests.personas.cast import compiled

TURN = ("I hurt my knee.", "Oh no, that must be sore! When did it crack?")
LOCAL = Reading((Sentence("read locally", frozenset({Act.ASK})),))


def says(name: str, question: Typed, state: Any) -> AnswerProbabilities | None:
    match name:
        case "s1.consoles" | "s2.asks":
            return yes(0.9)
        case "s2.topic":
            return picks(question, "noise", 0.8)
        case "s2.stance":
            return picks(question, "asked", 0.8)
    return None


class FixedReader:
    version = "fixed"
    held_bytes = 0

    def __init__(self, *readings: Reading) -> None:
        self.readings = readings
        self.reads = 0

    def read(self, case: object, turns: object) -> list[Reading]:
        self.reads += 1
        return list(self.readings)

    def beside(self, case: object, line: str, said: list[Sentence]) -> list[tuple[ReadCandidate, ...]]:
        return [(ReadCandidate("local", 1.0),) for _ in said]


def reader(decider: MemoryDecider, **more: Any) -> DecisionReader:
    return DecisionReader(decider, FixedReader(LOCAL), asyncio.get_running_loop(), **more)  # type: ignore[arg-type]


async def read(asking: DecisionReader, *turns: tuple[str, str], case: Any = None) -> list[Reading]:
    return await asyncio.to_thread(asking.read, case or compiled(), turns or [TURN])


async def test_probabilities_become_the_reading_that_hearing_hears() -> None:
    [reading] = await read(reader(MemoryDecider(says)))
    consoles, asks = reading.sentences
    assert (consoles.text, consoles.acts) == ("Oh no, that must be sore!", {Act.EMPATHY})
    assert asks.acts == {Act.ASK}
    assert asks.topics[0] == ReadCandidate("noise", 0.8)
    assert asks.stance is Stance.ASKED
    assert consoles.stance is Stance.NONE
    assert not [each for each in consoles.topics if each.confidence > 0.1]


async def test_what_the_persona_cannot_know_is_not_sent_and_the_turn_is_data() -> None:
    decider = MemoryDecider(says)
    await read(reader(decider))
    [(state, questions)] = decider.asked
    assert state["person_said"] == TURN[0]
    assert list(state["agent_turn"].values()) == ["Oh no, that must be sore!", "When did it crack?"]
    sent = " ".join(str((each.asks, getattr(each, "options", ()))) for each in questions.values())
    assert "noise" in sent
    assert "cruciate" not in sent
    assert "must be sore" not in sent


async def test_acts_that_cost_the_agent_have_to_be_sure() -> None:
    def rude(p: float) -> Any:
        return lambda name, question, state: picks(question, "rude", p) if name.endswith("costs") else None

    [unsure] = await read(reader(MemoryDecider(rude(0.6))))
    [sure] = await read(reader(MemoryDecider(rude(0.9))))
    assert not unsure.any(Act.RUDE)
    assert sure.any(Act.RUDE)


async def test_a_turn_that_was_not_read_is_read_locally_counted_and_stays_so() -> None:
    told: list[str] = []
    decider = MemoryDecider(lambda name, question, state: FailureKind.HANG)
    asking = reader(decider, fell_back=told.append)
    case = compiled()
    assert await read(asking, case=case) == [LOCAL]
    assert await read(asking, case=case) == [LOCAL]
    assert told == ["hang"]
    assert len(decider.asked) == 1


async def test_where_nobody_else_may_read_a_failure_is_an_error() -> None:
    with pytest.raises(JudgeFailed) as caught:
        await read(reader(MemoryDecider(lambda n, q, s: FailureKind.HANG), falls_back=False))
    assert caught.value.kind == "hang"


async def test_the_lab_whose_work_it_is_pays() -> None:
    decider = MemoryDecider(says)
    with working_for("acme"):
        await read(reader(decider))
    await read(reader(decider))
    assert decider.labs == ["acme", "operator"]


WALKS = Background(id="walks", asks=("Do you walk much?", "Do you walk far?", "How far?"), says=("To the shops.",))


async def test_the_background_is_asked_about_only_where_no_fact_fits() -> None:
    def recalls(name: str, question: Typed, state: Any) -> AnswerProbabilities | None:
        return picks(question, "walks", 0.7) if "walks" in question.labels else None

    decider, case = MemoryDecider(recalls), compiled(background=(WALKS,))
    asking = reader(decider)
    fits = Sentence("When did it crack?", frozenset({Act.ASK}), topics=(ReadCandidate("noise", 0.97),))
    fits_not = Sentence("Do you walk much?", frozenset({Act.ASK}))
    found = await asyncio.to_thread(asking.beside, case, "", [fits, fits_not])
    assert found[0] == (ReadCandidate("noise", 0.97),)
    assert found[1][0] == ReadCandidate("walks", 0.7)
    assert [name.split(".")[0] for name in decider.asked[0][1]] == ["s2"]


async def test_a_cascade_asks_only_about_what_is_doubtful() -> None:
    sure = Reading((Sentence("When did it crack?", frozenset({Act.ASK}), topics=(ReadCandidate("noise", 0.9),)),))
    unsure = Reading((Sentence("And?", frozenset({Act.ASK}), topics=(ReadCandidate("noise", 0.3),)),))
    assert (is_doubtful(sure), is_doubtful(unsure)) == (False, True)
    decider = MemoryDecider(says)
    cascade = CascadeReader(FixedReader(sure, unsure), reader(decider))  # type: ignore[arg-type]
    found = await asyncio.to_thread(cascade.read, compiled(), [("", "When did it crack?"), TURN])
    assert found[0] == sure
    assert found[1].sentences[1].topics[0] == ReadCandidate("noise", 0.8)
    assert len(decider.asked) == 1
