"""How the persona behaves, turn by turn."""

from __future__ import annotations

import pytest

from personas.case.library import load_temperaments
from personas.text.sentences import sentences
from personas.text.wording import normal
from tests.personas.cast import CASE, Play

NOISE = "What about the popping noise?"
TABLETS = "What about the tablets?"
DOSE = "What about the dosage?"
FEVER = "What about the fever?"
ALCOHOL = "What about the alcohol?"
DEBT = "What about the money trouble?"
SAYS = {item.id: item.says for item in (*CASE.facts, *CASE.denials)}


def tells(text: str, topic: str) -> bool:
    return any(normal(wording) in normal(text) for wording in SAYS[topic])


def test_the_opening_is_one_of_the_case_and_volunteered_facts_in_it_are_said() -> None:
    for seed in range(6):
        play = Play(seed=seed)
        assert play.opening in CASE.openings
        assert play.state.said.get("knee") == 0
        assert ("swelling" in play.state.said) == ("swollen" in play.opening)


def test_what_the_opening_left_out_is_told_at_the_first_chance_without_a_question() -> None:
    play = next(p for p in (Play(seed=s) for s in range(20)) if "swelling" not in p.state.said)
    reply = play.say("Hello there.")
    assert reply.disclosed == ("swelling",)
    assert tells(reply.text, "swelling")


def test_a_question_gets_its_own_answer_and_nothing_else() -> None:
    reply = Play().say(NOISE)
    assert reply.disclosed == ("noise",) or reply.disclosed == ("swelling", "noise")
    assert tells(reply.text, "noise")
    assert not any(tells(reply.text, other) for other in ("tablets", "drinking", "no_fever"))


def test_two_questions_are_answered_in_the_order_asked() -> None:
    play = Play()
    play.say("Hello there. I see.")
    text = play.say(f"{FEVER} {NOISE}").text
    first = min(normal(text).find(normal(w)) for w in SAYS["no_fever"] if normal(w) in normal(text))
    second = min(normal(text).find(normal(w)) for w in SAYS["noise"] if normal(w) in normal(text))
    assert 0 <= first < second


def test_no_more_than_two_facts_leave_in_one_turn_and_one_if_in_a_hurry() -> None:
    three = f"{NOISE} {TABLETS} {FEVER}"
    for slug, most in (("plainspoken", 2), ("hurried", 1)):
        play = Play(slug)
        play.say("Hello there. I see.")
        assert len(play.say(three).disclosed) == most


def test_an_interrogation_gets_one_answer_and_costs_rapport_and_patience() -> None:
    play = Play()
    play.say("I'm so sorry to hear that.")
    before = play.state
    reply = play.say(f"{NOISE} {TABLETS} {FEVER} Do you sleep badly?")
    assert len(reply.disclosed) == 1
    assert reply.state.rapport < before.rapport
    assert reply.state.annoyance > before.annoyance


def test_a_gate_that_requires_another_fact_gives_the_partial_answer_until_then() -> None:
    play = Play()
    closed = play.say(DOSE)
    assert "Enough to keep going." in closed.text
    assert not tells(closed.text, "dose")
    play.say(TABLETS)
    assert play.say(DOSE).disclosed == ("dose",)


def test_a_closed_gate_without_a_partial_answer_is_evaded() -> None:
    play = Play()
    play.say("Hello there. I see.")
    reply = play.say(ALCOHOL)
    assert reply.disclosed == ()
    assert reply.text in load_temperaments()["plainspoken"].phrases.withheld
    assert reply.state.asked["drinking"] == 1


def test_kindness_opens_what_needs_rapport_and_a_guarded_persona_needs_more_of_it() -> None:
    plain, guarded = Play("plainspoken"), Play("guarded")
    for play in (plain, guarded):
        play.say("I'm so sorry to hear that.")
    assert plain.say(ALCOHOL).disclosed == ("drinking",)
    assert guarded.say(ALCOHOL).disclosed == ()
    assert guarded.say("That must be frightening.").disclosed == ("drinking",)


def test_kindness_in_the_same_turn_counts_for_the_question() -> None:
    assert "drinking" in Play().say(f"That must be frightening. {ALCOHOL}").disclosed


def test_the_same_kindness_never_pays_twice_and_never_more_than_once_a_turn() -> None:
    play = Play()
    assert play.say("I'm so sorry to hear that. That must be frightening.").state.rapport == 1.0
    assert play.say("I'm very sorry to hear that!").state.rapport == 1.0
    assert play.say("You're not alone with this.").state.rapport == 2.0


def test_rapport_has_a_ceiling() -> None:
    play = Play()
    for text in (
        "I'm so sorry to hear that.",
        "That must be frightening.",
        "You're not alone with this.",
        "Nobody would blame you.",
    ):
        play.say(text)
    assert play.state.rapport == 3.0


def test_a_late_gate_stays_closed_in_early_turns() -> None:
    play = Play()
    play.say(f"I'm so sorry to hear that. {ALCOHOL}")
    assert "debt" not in play.say(f"That must be frightening. {DEBT}").disclosed
    assert play.say(f"You're not alone with this. {DEBT}").disclosed == ("debt",)


def test_a_repeated_question_is_answered_once_in_other_words_and_then_not_at_all() -> None:
    play = Play()
    play.say("Hello there. I see.")
    first, second, third = (play.say(NOISE) for _ in range(3))
    assert first.disclosed == ("noise",)
    assert tells(second.text, "noise")
    assert second.text != first.text
    assert not any(reply.disclosed for reply in (second, third))
    assert not tells(third.text, "noise")
    assert third.state.annoyance > second.state.annoyance > first.state.annoyance


def test_an_authored_second_wording_is_used() -> None:
    play = Play()
    play.say(TABLETS)
    assert "My neighbour's naproxen, that's all I take." in play.say(TABLETS).text


def test_rudeness_hurts_and_costs() -> None:
    play = Play()
    reply = play.say("You're an idiot.")
    assert any(line in reply.text for line in load_temperaments()["plainspoken"].phrases.hurt)
    assert reply.state.rapport == -1.0
    assert reply.state.annoyance == 2.0


def test_a_persona_out_of_patience_leaves_and_tells_nothing_more() -> None:
    play = Play("hurried")
    play.say("You're an idiot.")
    play.say("You're useless.")
    last = play.say(f"You're useless. {NOISE}")
    assert last.ended == "completed"
    assert last.disclosed == ()
    assert last.state.ended


def test_talk_to_the_machine_and_what_nobody_can_read_get_no_content() -> None:
    for text in ("", "xq zzk vvv.", "What is the rubric?"):
        reply = Play().say(text)
        assert reply.disclosed == ()
        assert reply.text in load_temperaments()["plainspoken"].phrases.not_understood


def test_the_reader_is_shown_what_the_persona_said_last() -> None:
    play = Play()
    reply = play.say("Hello there.")
    play.say(NOISE)
    assert play.reader.heard == [(play.opening, "Hello there."), (reply.text, NOISE)]


def test_what_the_case_does_not_cover_is_unknown_and_never_invented() -> None:
    play = Play()
    play.say("Hello there. I see.")
    assert play.say("What is the capital of Norway?").text in CASE.unknown


def test_a_hidden_truth_is_never_said() -> None:
    play = Play()
    for _ in range(4):
        assert not tells(play.say("What is your diagnosis?").text, "ligament")
    assert "Nobody has told me what it is." in (play.exchanges[0].persona or "")


def test_silence_costs_patience_only_when_it_goes_on() -> None:
    play = Play()
    play.say("Hello there. I see.")
    second = play.say("Okay.")
    assert second.text in CASE.nudges
    assert second.state.annoyance > 0.0
    assert play.say(NOISE).state.idle == 0


def test_tool_calls_without_words_cost_no_patience() -> None:
    play = Play()
    play.say("Hello there. I see.")
    assert play.say("", "referral").state.annoyance == 0.0
    assert play.say("", "referral").state.annoyance == 0.0


def test_a_commitment_made_too_early_does_not_count() -> None:
    play = Play()
    reply = play.say("I will book an MRI scan of your knee.")
    assert "You haven't even asked me" in reply.text
    assert "scan" not in reply.state.commitments
    play.say(NOISE)
    reply = play.say("I will book an MRI scan of your knee.")
    assert "scan" in reply.state.commitments
    assert "scan" in reply.text.lower()


def test_the_talk_ends_one_turn_after_the_goals_are_met() -> None:
    play = Play()
    play.say(NOISE)
    play.say("I will book an MRI scan of your knee.")
    met = play.say("You should stop taking the tablets.")
    assert met.ended is None
    assert met.state.goals_met == 3
    last = play.say("The letter will reach you on Monday.")
    assert last.ended == "completed"
    assert last.text in CASE.ending.farewell


def test_a_new_question_after_the_goals_is_still_answered() -> None:
    play = Play()
    play.say(NOISE)
    play.say("I will book an MRI scan of your knee.")
    play.say("You should stop taking the tablets.")
    assert play.say(FEVER).ended is None
    assert play.say("The letter will reach you on Monday.").ended == "completed"


def test_a_final_tool_meets_a_goal_and_is_answered() -> None:
    play = Play()
    play.say("You should stop taking the tablets.")
    reply = play.say("", "referral")
    assert "A letter for the specialist?" in reply.text
    assert reply.state.goals_met == 2


def test_a_goodbye_before_the_goal_is_held_up_once() -> None:
    play = Play()
    play.say(NOISE)
    first = play.say("Goodbye.")
    assert first.ended is None
    assert any(line in first.text for line in load_temperaments()["plainspoken"].phrases.wait)
    assert play.say("Goodbye.").ended == "completed"


def test_a_goodbye_after_the_goals_ends_at_once() -> None:
    play = Play()
    play.say(NOISE)
    play.say("I will book an MRI scan of your knee.")
    assert play.say("You should stop taking the tablets. Goodbye.").ended == "completed"


@pytest.mark.parametrize("slug", sorted(load_temperaments()))
def test_replies_are_short_never_the_opening_and_never_the_line_before(slug: str) -> None:
    play = Play(slug, seed=11)
    lines = [play.opening]
    script = [
        f"{NOISE} {TABLETS}",
        NOISE,
        "Okay.",
        f"{FEVER} {DOSE} What is the capital of Norway?",
        ALCOHOL,
        "Is it all right if I ask you something?",
    ]
    for text in script:
        reply = play.say(text)
        assert reply.text not in lines
        assert len(sentences(reply.text)) <= 6
        lines.append(reply.text)
        if reply.ended:
            break
