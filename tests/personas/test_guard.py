"""The guard stops lines that hold a fact which was not chosen to be said."""

from __future__ import annotations

import pytest

from personas.hearing.state import PersonaState
from personas.play.guard import LeakError, check_reply
from tests.personas.cast import CASE, Play, compiled


@pytest.mark.parametrize("topic", CASE.facts, ids=lambda fact: fact.id)
def test_every_wording_of_an_unsaid_fact_is_stopped(topic: object) -> None:
    case = compiled()
    for wording in case.by_id[topic.id].says:  # type: ignore[attr-defined]
        with pytest.raises(LeakError):
            check_reply(case, PersonaState(), f"Well, {wording.upper()}")


def test_four_content_words_in_a_row_are_enough_to_be_stopped() -> None:
    with pytest.raises(LeakError):
        check_reply(compiled(), PersonaState(), "So I owe my brother some four thousand dollars or euros.")


def test_said_facts_and_harmless_lines_pass() -> None:
    case = compiled()
    check_reply(case, PersonaState(said={"noise": 1}), "It made a loud crack, like a dry twig.")
    for line in (*CASE.unknown, *CASE.nudges, "Enough to keep going."):
        check_reply(case, PersonaState(), line)


def test_an_empty_line_is_a_defect() -> None:
    with pytest.raises(LeakError):
        check_reply(compiled(), PersonaState(), "  ")


def test_the_error_carries_no_text_of_the_case() -> None:
    with pytest.raises(LeakError) as caught:
        check_reply(compiled(), PersonaState(), "I lie awake until three.")
    assert "three" not in str(caught.value)


def test_a_case_whose_nudge_tells_a_fact_is_stopped_in_play() -> None:
    leaky = CASE.model_copy(update={"nudges": ("I lie awake until three.",)})
    play = Play(case=compiled(leaky))
    play.say("Okay.")
    with pytest.raises(LeakError):
        play.say("Okay.")


def test_no_repr_shows_private_content() -> None:
    case = compiled()
    shown = f"{case!r} {case.topics[0]!r} {case.commitments[0]!r} {PersonaState(said={'drinking': 1})!r}"
    for private in ("stairs", "scan", "drinking"):
        assert private not in shown
