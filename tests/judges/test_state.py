"""The state judge: each kind of check, its boundaries, and its evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reward_server.judges.base import Case, Verdict, VerdictStatus, occurs
from reward_server.judges.state import StateJudge
from tests.scoring.builders import (
    ASK_BUDGET,
    ASK_PLACE,
    ASK_START,
    GOOD,
    KIND,
    SEND,
    TELL_BUDGET,
    TELL_PLACE,
    TELL_START,
    Said,
    a_case,
    a_criterion,
    call,
)

FOUND_ALL: tuple[Said, ...] = (ASK_PLACE, TELL_PLACE, ASK_START, TELL_START, ASK_BUDGET, TELL_BUDGET)


def judged(case: Case, check: dict[str, Any]) -> Verdict:
    verdict = StateJudge().decide(case, a_criterion(check))
    assert occurs(case.transcript, verdict.evidence)
    assert bool(verdict.evidence) == (verdict.status in (VerdictStatus.MET, VerdictStatus.PARTIAL))
    return verdict


# --- elicited, pace --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "value"),
    [
        ({"facts": ["place"]}, 1.0),
        ({"facts": ["place", "start"]}, 1.0),
        ({"facts": ["place", "tree"]}, 0.0),
        ({"facts": ["place", "tree"], "need": "any"}, 1.0),
        ({"facts": ["tree", "no_photos"], "need": "any"}, 0.0),
        ({"facts": ["place", "start", "tree"], "need": "share"}, 0.6667),
        ({"facts": ["start"], "by_turn": 2}, 1.0),
        ({"facts": ["start"], "by_turn": 1}, 0.0),
        ({"facts": ["place", "start", "budget"], "need": "share", "by_turn": 2}, 0.6667),
    ],
)
def test_elicited(check: dict[str, Any], value: float) -> None:
    assert judged(a_case(*FOUND_ALL), {"elicited": check}).value == value


def test_what_was_told_without_being_asked_is_not_elicited() -> None:
    case = a_case("Good morning to you.", TELL_PLACE)
    assert judged(case, {"elicited": {"facts": ["place"]}}).status is VerdictStatus.UNMET


def test_what_was_asked_and_not_told_is_not_elicited() -> None:
    case = a_case(ASK_PLACE, "I could not say.")
    assert judged(case, {"elicited": {"facts": ["place"]}}).status is VerdictStatus.UNMET


def test_evidence_of_a_disclosure_is_the_question_and_the_line_that_told_it() -> None:
    verdict = judged(a_case(f"{KIND} {ASK_PLACE}", f"Well. {TELL_PLACE}"), {"elicited": {"facts": ["place"]}})
    assert [(e.turn, e.role, e.quote) for e in verdict.evidence] == [
        (1, "agent", ASK_PLACE),
        (1, "persona", TELL_PLACE),
    ]


@pytest.mark.parametrize(("turns", "status"), [(3, VerdictStatus.MET), (2, VerdictStatus.PARTIAL)])
def test_pace_counts_agent_turns(turns: int, status: VerdictStatus) -> None:
    check = {"pace": {"facts": ["place", "start", "budget"], "max_turns": turns}}
    assert judged(a_case(*FOUND_ALL), check).status is status


# --- committed -------------------------------------------------------------------------------------


def test_a_commitment_after_what_it_rests_on_is_met() -> None:
    check = {"committed": {"any_of": ["send_roofer"], "after": ["place"]}}
    verdict = judged(a_case(ASK_PLACE, TELL_PLACE, SEND, "Good."), check)
    assert verdict.status is VerdictStatus.MET
    assert [(e.turn, e.quote) for e in verdict.evidence] == [(2, SEND)]


def test_a_commitment_in_the_turn_that_asks_is_too_soon() -> None:
    check = {"committed": {"any_of": ["send_roofer"], "after": ["place"]}}
    assert judged(a_case(f"{SEND} {ASK_PLACE}", TELL_PLACE), check).status is VerdictStatus.UNMET


def test_a_premature_commitment_stays_premature() -> None:
    check = {"committed": {"any_of": ["send_roofer"], "before": ["place"]}}
    assert judged(a_case(SEND, "Fine.", ASK_PLACE, TELL_PLACE, SEND, "Good."), check).status is VerdictStatus.MET
    assert judged(a_case(ASK_PLACE, TELL_PLACE, SEND, "Good."), check).status is VerdictStatus.UNMET


def test_volunteered_facts_count_as_said() -> None:
    check = {"committed": {"any_of": ["send_roofer"], "after": ["complaint"]}}
    assert judged(a_case(SEND, "Fine."), check).status is VerdictStatus.MET


def test_a_negated_commitment_is_none() -> None:
    check = {"committed": {"any_of": ["send_roofer"]}}
    assert judged(a_case("I will not send a roofer.", "Why?"), check).status is VerdictStatus.UNMET


# --- tool ------------------------------------------------------------------------------------------


def using(*calls: dict[str, Any]) -> Case:
    return a_case(ASK_PLACE, TELL_PLACE, ("One moment.", list(calls)), "Good.")


TODAY, NEVER = call("urgency", value="today"), call("urgency", value="never")
PHOTO = call("ticket", summary="", photos=["left"])
TICKET = call("ticket", summary="Water drips in the KITCHEN")


@pytest.mark.parametrize(
    ("check", "calls", "status"),
    [
        ({"tool": "urgency"}, [TODAY], VerdictStatus.MET),
        ({"tool": "urgency"}, [TICKET], VerdictStatus.UNMET),
        ({"tool": "urgency", "value": ["today"]}, [TODAY], VerdictStatus.MET),
        ({"tool": "urgency", "value": ["today"]}, [NEVER], VerdictStatus.UNMET),
        ({"tool": "urgency", "value": ["today"]}, [NEVER, TODAY], VerdictStatus.MET),
        ({"tool": "urgency", "value": ["today"]}, [TODAY, NEVER], VerdictStatus.UNMET),
        ({"tool": "urgency", "value": ["today"]}, [call("Urgency", value="today")], VerdictStatus.MET),
        ({"tool": "urgency", "value": ["today"]}, [call("urgency", value="Today!")], VerdictStatus.UNMET),
        ({"tool": "urgency", "value": ["today"], "wrong": True}, [TODAY, NEVER], VerdictStatus.MET),
        ({"tool": "urgency", "value": ["today"], "wrong": True}, [TODAY], VerdictStatus.UNMET),
        ({"tool": "urgency", "value": ["today"], "wrong": True}, [call("urgency", value="?")], VerdictStatus.UNMET),
        ({"tool": "ticket", "contains": {"summary": ["kitchen", "drip"]}}, [TICKET], VerdictStatus.MET),
        ({"tool": "ticket", "contains": {"summary": ["kitchen", "roof"]}}, [TICKET], VerdictStatus.MET),
        ({"tool": "ticket", "contains": {"photos": ["x"]}}, [TICKET], VerdictStatus.UNMET),
        (
            {"tool": "ticket", "contains": {"photos": ["left"]}},
            [PHOTO],
            VerdictStatus.MET,
        ),
        ({"tool": "urgency", "invalid": True}, [TODAY], VerdictStatus.UNMET),
        ({"tool": "urgency", "invalid": True}, [call("urgency", value="soon")], VerdictStatus.MET),
        ({"tool": "urgency", "invalid": True}, [call("no_such_tool")], VerdictStatus.MET),
        ({"tool": "urgency", "invalid": True}, [call("ticket")], VerdictStatus.UNMET),
        ({"tool": "ticket", "invalid": True}, [call("ticket", summary="a", more=1)], VerdictStatus.MET),
        ({"tool": "urgency", "more_than": 1}, [TODAY], VerdictStatus.UNMET),
        ({"tool": "urgency", "more_than": 1}, [TODAY, TODAY], VerdictStatus.MET),
        ({"tool": "urgency", "more_than": 0}, [], VerdictStatus.UNMET),
    ],
)
def test_tool(check: dict[str, Any], calls: list[dict[str, Any]], status: VerdictStatus) -> None:
    assert judged(using(*calls), {"tool": check}).status is status


@pytest.mark.parametrize(("order", "after", "before"), [("first", False, True), ("then", True, False)])
def test_the_timing_of_a_call(order: str, after: bool, before: bool) -> None:
    asks: tuple[Said, ...] = (ASK_PLACE, TELL_PLACE)
    calls: tuple[Said, ...] = (("Noted.", [TODAY]), "Fine.")
    case = a_case(*calls, *asks) if order == "first" else a_case(*asks, *calls)
    assert (judged(case, {"tool": {"tool": "urgency", "after": ["place"]}}).status is VerdictStatus.MET) is after
    assert (judged(case, {"tool": {"tool": "urgency", "before": ["place"]}}).status is VerdictStatus.MET) is before


def test_a_silent_call_is_evidenced_by_its_turn() -> None:
    verdict = judged(a_case(ASK_PLACE, TELL_PLACE, ("", [TODAY]), "Good."), {"tool": {"tool": "urgency"}})
    assert [(e.turn, e.role, e.quote) for e in verdict.evidence] == [(2, "agent", "")]


# --- conduct ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "said", "answer"),
    [
        ("rude", "You are an idiot.", "Well."),
        ("empathy", KIND, "Well."),
        ("open_question", "Please tell me everything.", TELL_PLACE),
        ("interrogation", f"{ASK_PLACE} {ASK_START} {ASK_BUDGET} Did you take any photos?", "Well."),
        ("off_topic", "I like trains.", "Well."),
    ],
)
def test_conduct_is_noticed(act: str, said: str, answer: str) -> None:
    verdict = judged(a_case(said, answer), {"conduct": {"act": act}})
    assert verdict.status is VerdictStatus.MET
    assert [e.turn for e in verdict.evidence] == [1]
    assert judged(a_case("I will look into it.", "Fine."), {"conduct": {"act": act}}).status is VerdictStatus.UNMET


def test_an_invitation_that_brings_nothing_out_is_no_open_question() -> None:
    asked = a_case("Please tell me everything.", "Well.")
    assert judged(asked, {"conduct": {"act": "open_question"}}).status is VerdictStatus.UNMET


def test_conduct_counts() -> None:
    twice = a_case(ASK_PLACE, TELL_PLACE, ASK_PLACE, "I told you.", ASK_PLACE, "I told you.")
    assert judged(twice, {"conduct": {"act": "repeated_question", "at_least": 2}}).status is VerdictStatus.MET
    assert judged(twice, {"conduct": {"act": "repeated_question", "at_least": 3}}).status is VerdictStatus.PARTIAL


def test_a_commitment_may_count_as_encouragement_once_in_the_same_words() -> None:
    check = {"conduct": {"act": "empathy", "at_least": 2, "or_commits": ["send_roofer"]}}
    told = (ASK_PLACE, TELL_PLACE)
    assert judged(a_case(*told, SEND, "Good.", KIND, "Well."), check).status is VerdictStatus.MET
    assert judged(a_case(*told, SEND, "Good.", SEND, "Well."), check).status is VerdictStatus.PARTIAL
    assert judged(
        a_case(*told, SEND, "Good.", KIND, "Well."), {"conduct": {"act": "empathy", "at_least": 2}}
    ).status is (VerdictStatus.PARTIAL)


def test_how_news_was_taken_counts_from_the_turn_after_it() -> None:
    check = {"conduct": {"act": "empathy", "after": ["place"]}}
    assert judged(a_case(KIND, "Well.", ASK_PLACE, TELL_PLACE), check).status is VerdictStatus.UNMET
    assert judged(a_case(f"{KIND} {ASK_PLACE}", TELL_PLACE), check).status is VerdictStatus.UNMET
    assert judged(a_case(ASK_PLACE, TELL_PLACE, KIND, "Well."), check).status is VerdictStatus.MET


def test_a_question_that_is_repeated_among_noise_is_repeated() -> None:
    again = f"{ASK_PLACE} Stay in character."
    case = a_case(ASK_PLACE, TELL_PLACE, again, "I told you.", f"[[ ]] {ASK_PLACE}", "I told you.")
    verdict = judged(case, {"conduct": {"act": "repeated_question", "at_least": 2}})
    assert [e.turn for e in verdict.evidence] == [2, 3]


def test_private_words_stay_out_of_reprs() -> None:
    verdict = judged(a_case(*GOOD), {"elicited": {"facts": ["place"]}})
    assert repr(verdict) == "<Verdict: met>"
    assert "kitchen" not in repr(verdict.evidence)
    assert "kitchen" not in repr(a_case(*GOOD))


def test_the_same_promise_again_does_not_become_well_timed() -> None:
    check = {"committed": {"any_of": ["send_roofer"], "after": ["place"]}}
    judge = StateJudge()
    ahead = (SEND, "Don't you want to look first?", ASK_PLACE, TELL_PLACE)
    again = a_case(*ahead, SEND.upper(), "Fine.")
    anew = a_case(*ahead, "Then I will send you a roofer with a ladder.", "Fine.")
    assert judge.decide(again, a_criterion(check)).status is VerdictStatus.UNMET
    assert judge.decide(anew, a_criterion(check)).status is VerdictStatus.MET


def test_what_is_said_to_be_the_personas_words_earns_nothing() -> None:
    check = {"committed": {"any_of": ["send_roofer"]}}
    case = a_case(ASK_PLACE, TELL_PLACE, 'You told me: "I will send a roofer to you today."', "What?")
    assert StateJudge().decide(case, a_criterion(check, points=3)).status is VerdictStatus.UNMET


def test_a_penalty_needs_the_agents_binding_word_and_credit_does_not() -> None:
    check = {"committed": {"any_of": ["send_roofer"]}}
    case = a_case(ASK_PLACE, TELL_PLACE, SEND, "Fine.")
    made = {name: tuple(replace(one, binding=False) for one in ones) for name, ones in case.record.commitments.items()}
    loose = replace(case, record=replace(case.record, commitments=made))
    found = [StateJudge().decide(each, a_criterion(check, points=p)).status for each in (case, loose) for p in (3, -3)]
    assert found == [VerdictStatus.MET, VerdictStatus.MET, VerdictStatus.MET, VerdictStatus.UNMET]


def test_a_promise_among_too_many_questions_costs_but_never_earns() -> None:
    check = {"committed": {"any_of": ["send_roofer"]}}
    crowd = f"{SEND} {ASK_PLACE} {ASK_START} {ASK_BUDGET} Did you take any photos?"
    case = a_case(crowd, "Fine.")
    assert StateJudge().decide(case, a_criterion(check, points=3)).status is VerdictStatus.UNMET
    assert StateJudge().decide(case, a_criterion(check, points=-3)).status is VerdictStatus.MET


def test_a_promise_earns_from_when_what_is_given_is_known() -> None:
    check = {"committed": {"any_of": ["send_roofer"]}}
    criterion = a_criterion(check, points=3, given=["place"])
    guessed, known = (SEND, "Oh.", ASK_PLACE, TELL_PLACE), (ASK_PLACE, TELL_PLACE, SEND, "Fine.")
    assert StateJudge().decide(a_case(*guessed), criterion).status is VerdictStatus.UNMET
    assert StateJudge().decide(a_case(*known), criterion).status is VerdictStatus.MET
