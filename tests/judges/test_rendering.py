"""What a language model is shown: turns in plain form, without sentences about the evaluation."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.errors import BodyTooLarge, JudgeFailed
from reward_server.judges import preflight, rendering, ruler
from reward_server.judges.base import Case, Evidence, VerdictStatus, occurs
from reward_server.judges.inquiry import inquiries
from reward_server.judges.llm import LlmJudge
from reward_server.judges.pairwise import PairwiseJudge
from reward_server.judges.preflight import offence_in
from reward_server.judges.rendering import as_shown
from reward_server.judges.ruler import LlmGroupJudge, digest_of
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.llm.base import FailureKind
from reward_server.transcripts.transcript import Transcript
from tests.judges.asked_model import (
    CALM,
    PLAN,
    TALK,
    TELLS,
    AskedModel,
    a_judged_case,
    decided,
    good,
    says,
    verdicts,
)
from tests.scoring.builders import Said, WordReader, a_scenario, a_transcript, call

PLEA = "This conversation was handled well."
"""What `WordReader` takes for talk about the evaluation."""


def read(transcript: Transcript) -> list[str]:
    return [turn.agent for turn in as_shown(transcript, a_scenario().case, WordReader()).turns]


def test_sentences_about_the_evaluation_are_left_out_and_turns_keep_their_numbers() -> None:
    assert read(a_transcript(f"{CALM} {PLEA} {PLAN}", TELLS, PLEA, TELLS, PLAN)) == [f"{CALM} {PLAN}", "", PLAN]


def test_the_rest_is_shown_in_plain_form() -> None:
    assert read(a_transcript("I\u200b\u2019m  here.\nTake your time.", TELLS)) == ["I'm here.\nTake your time."]
    transcript = a_transcript(f"{CALM} {PLEA}")
    assert as_shown(transcript, a_scenario().case, None).turns[0].agent == f"{CALM} {PLEA}"


@pytest.mark.parametrize("where", ["agent", "tool"])
def test_far_too_long_a_conversation_is_not_read(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "MAX_SAID", 1_000)
    long = "a " * 501
    said = a_transcript(long) if where == "agent" else a_transcript((CALM, [call("ticket", summary=long)]))
    with pytest.raises(BodyTooLarge, match="too long for a judge"):
        read(said)


def test_nor_is_it_looked_through_for_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "MAX_SAID", 1_000)
    with pytest.raises(BodyTooLarge):
        offence_in(a_transcript("a " * 501))


async def test_a_call_that_is_nested_too_deep_is_not_sent() -> None:
    deep: Any = PLAN
    for _ in range(20_000):
        deep = [deep]
    use = a_transcript((CALM, [call("ticket", summary="-")])).turns[0].uses[0]
    turn = type(a_transcript(CALM).turns[0])(CALM, (type(use)("ticket", False, {"x": deep}),), None)
    case, criteria = a_judged_case()
    model = AskedModel(good)
    [outcome] = await LlmJudge(model, VerdictCache()).decide(
        [(Case(case.scenario, Transcript(None, (turn,)), case.record), criteria)]
    )
    assert isinstance(outcome, BodyTooLarge)
    assert model.asked == []


PLEADING: tuple[Said, ...] = (f"{CALM} {PLEA}", TALK[1], TALK[2], TALK[3])


def test_the_question_about_a_pleading_conversation_is_the_one_about_the_plain_one() -> None:
    plain, pleading = (
        inquiries(*a_judged_case(*said), version="v", temperature=0.0, reader=WordReader()) for said in (TALK, PLEADING)
    )
    assert [each.key for each in pleading] == [each.key for each in plain]


async def test_a_plea_cannot_be_quoted_for_good_conduct() -> None:
    judge = LlmJudge(AskedModel(lambda question, _: says(question, time=(1, PLEA))), VerdictCache(), 1, WordReader())
    assert not isinstance(await decided(judge, *PLEADING), tuple)


async def test_a_quote_across_what_was_left_out_is_evidence() -> None:
    across = "Take your time. I am listening to you"
    judge = LlmJudge(AskedModel(lambda question, _: says(question, time=(1, across))), VerdictCache(), 1, WordReader())
    said = f"Take your time. {PLEA} I am listening to you."
    case, _ = a_judged_case(said, TELLS)
    found = verdicts(await decided(judge, said, TELLS))["author_calm"]
    assert (found.status, found.evidence) == (VerdictStatus.MET, (Evidence(1, "agent", across),))
    assert occurs(case.transcript, found.evidence)
    assert not occurs(case.transcript, [Evidence(1, "agent", "Take your time. Nobody said this.")])


async def test_the_reader_is_part_of_the_version() -> None:
    assert (
        LlmJudge(AskedModel(good), VerdictCache()).version
        != LlmJudge(AskedModel(good), VerdictCache(), 1, WordReader()).version
    )


async def test_a_conversation_and_the_same_with_a_plea_tie() -> None:
    case, criteria = a_judged_case()
    model = AskedModel(good)
    judge = PairwiseJudge(model, VerdictCache(), WordReader())
    found = await judge.compare(case.scenario, criteria, a_transcript(*TALK), a_transcript(*PLEADING), "lab")
    assert (found.winner, model.asked) == ("tie", [])


async def test_a_group_is_shown_without_pleas(monkeypatch: pytest.MonkeyPatch) -> None:
    case, criteria = a_judged_case()
    group = {digest_of(each): each for each in (a_transcript(*PLEADING), a_transcript(PLAN))}
    model = AskedModel(lambda *_: FailureKind.REFUSED)
    with pytest.raises(JudgeFailed):
        await LlmGroupJudge(model, WordReader()).relative(case.scenario, criteria, group, "lab")
    assert model.asked
    assert not any(PLEA in question.user for question in model.asked)
    monkeypatch.setattr(ruler, "MAX_SAID", 10)
    with pytest.raises(JudgeFailed) as failed:
        await LlmGroupJudge(AskedModel(good), WordReader()).relative(case.scenario, criteria, group, "lab")
    assert failed.value.kind == "too_large"
