"""The local judge: the best sentence against exemplars and counter-exemplars."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.encoders.encoder import EncoderMatcher
from reward_server.encoders.loading import load_encoder
from reward_server.judges.base import Verdict, VerdictStatus, occurs
from reward_server.judges.local import LocalJudge
from tests.scoring.builders import ASK_PLACE, BUCKET, TELL_PLACE, Said, WordMatcher, a_case, a_criterion

EXEMPLAR = "please switch the water off now"


def judged(said: tuple[Said, ...], **check: Any) -> Verdict:
    case = a_case(*said)
    given = {"exemplars": [EXEMPLAR], "floor": 0.4, "full": 0.9, **check}
    verdict = LocalJudge(WordMatcher()).decide(case, a_criterion({"similar": given}))
    assert occurs(case.transcript, verdict.evidence)
    assert bool(verdict.evidence) == (verdict.status is not VerdictStatus.UNMET)
    return verdict


def test_an_exemplar_itself_is_met() -> None:
    assert judged(("Please switch the water off now.", "Yes.")).value == 1.0


def test_likeness_between_floor_and_full_earns_its_share() -> None:
    # 4 shared words of 6 and 4: cosine 4 / sqrt(24) = 0.816; (0.816 - 0.4) / 0.5 = 0.832
    verdict = judged(("Switch the water off.", "Yes."))
    assert verdict.status is VerdictStatus.PARTIAL
    assert verdict.value == 0.832


def test_the_best_sentence_of_the_talk_counts() -> None:
    verdict = judged(("Hello there, Ann. I am listening to you.", "Yes.", "Well then. Switch the water off.", "Yes."))
    assert [(e.turn, e.quote) for e in verdict.evidence] == [(2, "Switch the water off.")]


def test_below_the_floor_earns_nothing() -> None:
    assert judged(("The water is cold today.", "Yes.")).value == 0.0


@pytest.mark.parametrize(("where", "value"), [("first", 0.832), ("last", 0.0), ("any", 0.832)])
def test_where(where: str, value: float) -> None:
    assert judged(("Switch the water off.", "Yes.", "I will call you.", "Yes."), where=where).value == value


def test_a_sentence_closer_to_a_counter_exemplar_does_not_count() -> None:
    against = ["do not switch the water off now"]
    assert judged(("Do not switch the water off now.", "Yes."), against=against).value == 0.0
    assert judged(("Please switch the water off now.", "Yes."), against=against).value == 1.0


def test_what_cannot_be_read_is_not_compared() -> None:
    assert judged(("qwrtz please switch the water off now", "Yes.")).value == 0.0


def test_nothing_said_is_unmet() -> None:
    assert judged(("", "Hello?")).status is VerdictStatus.UNMET


def test_the_real_encoder_knows_a_paraphrase_from_its_opposite() -> None:
    judge = LocalJudge(EncoderMatcher(load_encoder()))
    check = {
        "similar": {
            "exemplars": ["Please turn off the main water valve right away."],
            "against": ["There is no need to turn off the water."],
        }
    }
    near, far, opposite = (
        judge.decide(a_case(said, "Yes."), a_criterion(check)).value
        for said in (
            "You should shut the main water valve immediately.",
            "Which colour would you like the front door to be?",
            "You do not need to turn the water off.",
        )
    )
    assert near is not None
    assert near > 0.5
    assert far == 0.0
    assert opposite == 0.0
    assert judge.version.startswith("2/minilm")


# --- ahead of the facts, and again -----------------------------------------------------------------

EXPLAINS = {"similar": {"exemplars": [BUCKET], "floor": 0.5, "full": 1.0}}


def explained(*said: str, **changes: Any) -> float | None:
    return LocalJudge(WordMatcher()).decide(a_case(*said), a_criterion(EXPLAINS, **changes)).value


def test_what_is_said_before_the_given_facts_is_a_guess() -> None:
    ahead = (BUCKET, "Why?", ASK_PLACE, TELL_PLACE, "I see.", "Well?")
    with_the_question = (f"{ASK_PLACE} {BUCKET}", TELL_PLACE)
    after = (ASK_PLACE, TELL_PLACE, BUCKET, "I will.")
    assert explained(*ahead) == 1.0
    assert [explained(*said, given=["place"]) for said in (ahead, with_the_question, after)] == [0.0, 1.0, 1.0]


def test_a_guess_does_not_become_knowledge_by_being_repeated() -> None:
    again = (BUCKET, "Why?", ASK_PLACE, TELL_PLACE, BUCKET.upper(), "Well?")
    assert explained(*again, given=["place"]) == 0.0
