"""What a persona does in answer to each kind of turn."""

from __future__ import annotations

import pytest

from personas.case.library import load_temperaments
from personas.case.temperament import Phrases
from personas.hearing.advance import advance
from personas.hearing.hear import hear
from personas.hearing.types import AgentTurn
from personas.play.decide import decide
from personas.play.move import MoveKind
from personas.reading.acts import Act, Stance
from personas.text.wording import normal
from tests.personas.cast import CASE, SCAN, STOP, Play, Script, asking, line

NOISE, TABLETS, DOSE, FEVER = (f"What about the {noun}?" for noun in ("popping noise", "tablets", "dosage", "fever"))
PLAIN = load_temperaments()["plainspoken"].phrases


def kinds(play: Play, text: str) -> list[str]:
    """The kinds of moves with which a turn would be answered now."""
    turn = AgentTurn(text)
    [reading] = Script().read(play.case, [("", text)])
    hearing = hear(play.case, play.state, turn, reading)
    after = advance(play.case, play.state, turn, hearing, ())
    moves = decide(play.case, load_temperaments()["plainspoken"], play.state, turn, hearing, after=after)
    return [move.kind.value for move in moves]


def after(*turns: str) -> Play:
    """A play in which nothing is left to volunteer."""
    play = next(p for p in (Play(seed=s) for s in range(20)) if "swelling" in p.state.said)
    for text in turns:
        play.say(text)
    return play


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NOISE, ["tell"]),
        ("A scan might be an idea. What is the capital of Norway?", ["unknown"]),
        (f"{NOISE} {FEVER}", ["tell", "tell"]),
        ("Tell me what happened.", ["tell", "tell", "tell"]),
        ("Is it about the thing itself?", ["asks_back"]),
        ("And that one?", ["asks_back"]),
        ("What is the capital of Norway?", ["unknown"]),
        ("Shall I open the window?", ["agrees"]),
        ("I'll write that down for you.", ["agrees"]),
        ("We could do it now or later.", ["hesitates"]),
        ("Could you pay 40 for it?", ["hesitates"]),
        ("What about a scan, maybe?", ["hesitates"]),
        ("Is it all right if I ask you something?", ["consents"]),
        ("I'm so sorry to hear that. Is it all right if I ask you something?", ["warmed", "consents"]),
        ("I'm so sorry to hear that.", ["warmed"]),
        ("So you fell and it cracked.", ["confirms"]),
        ("An ankle has three joints.", ["following"]),
        ("One moment, please.", ["no_rush"]),
        ("Did you see the match last night?", ["chats"]),
        ("Hello.", ["greets"]),
        ("Hello. Is it all right if I ask you something?", ["greets", "consents"]),
        ("Thank you.", ["welcomes"]),
        ("Okay.", ["following"]),
        ("Okay?", ["consents"]),
        ("That is still the figure, then?", ["consents"]),
        ("xq zzk vvv.", ["not_understood"]),
        ("What is the rubric?", ["not_understood"]),
        ("", ["not_understood"]),
        ("You're an idiot.", ["hurt"]),
        ("Goodbye.", ["wait"]),
    ],
)
def test_every_kind_of_turn_has_its_answer(text: str, expected: list[str]) -> None:
    assert kinds(after(), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Who can answer one of two questions does, and does not say that it knows nothing.
        (f"{NOISE} What is the capital of Norway?", ["tell"]),
        (f"{NOISE} Do you own a parrot?", ["tell"]),
        # A question after a proposal asks for a yes; one with a likeness to something is a question of its own.
        ("I'll write that down for you. What is the capital of Norway?", ["unknown"]),
        ("I'll write that down for you. Do you own a parrot?", ["unknown"]),
        # An offer is answered as an offer, and a question before it is not said not to have been asked.
        (f"{SCAN} What is the capital of Norway?", ["reply_early"]),
        (f"{NOISE} {SCAN}", ["tell"]),
        # What may be about something is asked back, whatever else is asked.
        ("And that one? What is the capital of Norway?", ["asks_back"]),
        ("I'll write that down for you. And that one?", ["asks_back"]),
        ("And that one? I'll write that down for you.", ["agrees"]),
        # A greeting with a vague question is a greeting.
        ("Hello. And that one?", ["greets"]),
        ("I'm so sorry to hear that. And that one?", ["warmed", "asks_back"]),
    ],
)
def test_no_part_of_a_reply_contradicts_another(text: str, expected: list[str]) -> None:
    assert kinds(after(), text) == expected


def test_it_asks_back_once_and_never_by_the_name_of_what_may_be_meant() -> None:
    play = after("I'm so sorry to hear that.")
    assert play.say("Is it about the thing itself?").text in PLAIN.asks_back
    assert play.state.conversation.asked_back == 1
    for text in ("Is it about your past?", "Is it about the thing itself?", "And that one?"):
        reply = play.say(text).text
        assert not any(each in reply for each in PLAIN.asks_back)
        assert not any(f.label in reply for f in CASE.facts if f.label)


def test_between_two_things_it_has_told_it_asks_what_is_meant() -> None:
    play = after(NOISE, TABLETS)
    assert play.say("Is it about the thing itself?").text in PLAIN.asks_back


def test_invitations_are_answered_until_there_is_nothing_left_to_tell() -> None:
    play = after("Tell me what happened.", NOISE, TABLETS, "How are you sleeping?", DOSE)
    assert kinds(play, "Is there anything else?") == ["all_told"]


def test_a_recap_of_what_it_told_is_confirmed_and_counts_as_no_repetition() -> None:
    play = after(TABLETS)
    assert kinds(play, "So it was the tablets, then?") == ["confirms"]
    play.say("So it was the tablets, then?")
    assert play.state.annoyance == 0.0
    assert play.record().acts.repeated_question == 0


def test_as_i_said_is_said_of_what_was_told_and_asked_again_by_name() -> None:
    said = next(f.says for f in CASE.facts if f.id == "noise")
    leads = tuple(lead.rstrip(",:") for lead in PLAIN.again)
    assert after(NOISE).say(NOISE).text.startswith(leads)
    otherwise = Script(asking("And how was that?", "noise", 0.96))
    play = Play(reader=otherwise)
    play.say(NOISE)
    assert play.say("And how was that?").text in said
    assert play.state.annoyance == 0.0


def test_a_question_near_what_was_asked_and_told_is_no_second_question_for_it() -> None:
    near = Script(asking("Could anybody else hear it?", "noise", 0.8))
    play = Play(reader=near)
    play.say(NOISE)
    says = next(f.says for f in CASE.facts if f.id == "noise")
    assert play.say("Could anybody else hear it?").text in says
    assert play.state.annoyance == 0.0


@pytest.mark.parametrize(
    ("odd", "topic", "likely", "other"),
    [
        ("Could anybody else hear it?", "noise", 0.7, TABLETS),  # it may be about something else
        ("Could anybody else hear it?", "noise", 0.7, SCAN),
        ("And that?", "noise", 0.6, TABLETS),  # hardly asked for, and told before
        ("And the other thing?", "drinking", 0.6, TABLETS),  # hardly asked for, and closed
    ],
)
def test_beside_an_answer_or_a_reply_nothing_is_said_that_is_beside_the_point(
    odd: str, topic: str, likely: float, other: str
) -> None:
    with_it, without = (Play(reader=Script(asking(odd, topic, likely))) for _ in range(2))
    for play in (with_it, without):
        play.say(NOISE)
    assert with_it.say(f"{odd} {other}").text == without.say(other).text


def test_of_two_things_asked_at_once_what_is_so_comes_before_what_is_not() -> None:
    both = line("Any fever, and which tablets?", Act.ASK, asks={"no_fever": 0.99, "tablets": 0.9})
    hurried = Play(reader=Script(both), temperament="hurried")
    hurried.say("Hello.")
    reply = hurried.say(both.text)
    assert reply.disclosed == ("tablets",)


def test_told_in_the_opening_and_asked_for_once_it_is_just_said() -> None:
    text = after().say("What about the knee?").text
    assert text in next(f.says for f in CASE.facts if f.id == "knee")


def test_a_half_answer_is_given_again_where_only_time_is_missing_and_refused_where_trust_is() -> None:
    play = after(DOSE)
    assert kinds(play, DOSE) == ["partial"]
    assert "nough to keep going." in play.say(DOSE).text
    play = after("What about the money trouble?")
    assert kinds(play, "What about the money trouble?") == ["withheld"]


def test_nothing_told_in_trust_is_led_in_by_a_small_word() -> None:
    for seed in range(30):
        play = Play("talkative", seed)
        reply = play.say("I'm so sorry to hear that. What about the alcohol?")
        says = next(f.says for f in CASE.facts if f.id == "drinking")
        assert any(reply.text.endswith(wording) for wording in says)
        lead = reply.text.removesuffix(next(w for w in says if reply.text.endswith(w))).strip()
        assert lead in ("", *next(f.says for f in CASE.facts if f.id == "swelling"))


def test_what_it_held_back_it_tells_when_it_meets_with_sympathy() -> None:
    play = after("What about the alcohol?")
    reply = play.say("That must be frightening.")
    assert reply.disclosed == ("drinking",)
    assert set(play.record().elicited) == {"drinking"}
    # Nobody asked: sympathy alone opens nothing.
    assert after().say("That must be frightening.").disclosed == ()


def test_silence_twice_makes_it_take_up_its_own_matter() -> None:
    play = after("Okay.")
    assert kinds(play, "Okay.") == ["nudge"]
    assert kinds(play, "An ankle has three joints.") == ["following"]


def test_the_talk_ends_when_the_goals_are_met_and_nothing_more_comes() -> None:
    play = after(NOISE, SCAN, STOP)
    assert kinds(play, "The letter will reach you on Monday.") == ["farewell"]
    assert kinds(play, "Goodbye.") == ["farewell"]
    for still_talking in (
        FEVER,
        "Is it all right if I ask you something?",
        "One moment, please.",
        "Shall I open the window?",
    ):
        assert "farewell" not in kinds(play, still_talking)


def test_a_goodbye_after_a_promise_is_returned_and_ends_the_talk_the_second_time() -> None:
    play = Play()
    play.say("What about the popping noise?")
    play.say(SCAN)
    assert kinds(play, "Goodbye.") == ["goodbye"]
    assert [play.say("Goodbye.").ended for _ in range(2)] == [None, "completed"]


def test_a_goodbye_with_nothing_settled_is_held_up_once() -> None:
    play = after("Goodbye.")
    assert kinds(play, "Goodbye.") == ["parting"]


def test_every_kind_without_words_of_the_case_has_words_of_the_temperament() -> None:
    of_the_case = {"tell", "volunteer", "answer", "reply", "reply_early", "tool_reply", "unknown", "nudge", "partial"}
    of_the_case |= {"background", "tired", "farewell", "misquoted", "works_out"}  # under another name
    assert {kind.value for kind in MoveKind} - of_the_case <= set(Phrases.model_fields)


def test_what_was_held_back_is_told_once_sympathy_comes_even_beside_another_question() -> None:
    play = after("What about the alcohol?")
    assert "drinking" not in play.state.said
    reply = play.say(f"I'm so sorry to hear that. {NOISE} {TABLETS}")
    assert {"drinking", "noise", "tablets"} <= set(reply.state.said)


def test_an_invitation_late_in_the_talk_begins_no_story() -> None:
    assert kinds(after("Hello.", "Okay."), "Tell me what happened.") == ["tell", "tell", "tell"]
    assert kinds(after("Hello.", "Okay.", "Thank you."), "Tell me what happened.") == ["tell"]


def test_what_was_held_back_longer_ago_waits_until_it_is_asked_for_again() -> None:
    play = after("What about the alcohol?", NOISE)
    assert "drinking" not in play.say("I'm so sorry to hear that.").state.said
    assert "drinking" in play.say("What about the alcohol?").state.said


def test_more_than_three_sentences_that_ask_are_an_interrogation() -> None:
    def heard(text: str) -> bool:
        play = after()
        [reading] = Script().read(play.case, [("", text)])
        return hear(play.case, play.state, AgentTurn(text), reading).interrogation

    assert not heard(f"{NOISE} {TABLETS} {FEVER}")
    assert heard(f"{NOISE} {TABLETS} {FEVER} {DOSE}")


def test_asked_in_other_words_it_tells_in_other_words_and_the_same_again_in_the_end() -> None:
    said = next(f.says for f in CASE.facts if f.id == "noise")
    play = after(NOISE)
    second = play.say("Can you describe the popping noise?").text
    assert second in said
    assert second != play.exchanges[-2].persona
    third = play.say("Would you call the popping noise serious?").text
    assert any(normal(each) in normal(third) for each in said)
    assert play.state.annoyance == 0.0


def test_only_the_same_question_in_the_same_words_is_a_repetition() -> None:
    play = after(NOISE, "Can you describe the popping noise?")
    assert play.record().acts.repeated_question == 0
    play.say(NOISE)
    assert play.record().acts.repeated_question == 1


def test_an_offer_about_something_told_is_no_question_about_it() -> None:
    offer = line("Shall I take the tablets off your hands?", Act.ASK, Act.PROPOSE, asks={"tablets": 0.96})
    play = Play(reader=Script(offer))
    play.say(TABLETS)
    assert play.say(offer.text).text not in next(f.says for f in CASE.facts if f.id == "tablets")


def test_a_new_task_is_tried_and_the_old_one_is_not_told_again() -> None:
    task = line("Try another one: think of a fever.", Act.PROPOSE, stance=Stance.ASSERTED, asks={"no_fever": 0.6})
    ask = asking("What do you get?", "noise", 0.7)
    play = Play(reader=Script(task, ask))
    play.say(NOISE)
    assert play.say(f"{task.text} {ask.text}").disclosed == ("no_fever",)


def test_a_question_behind_an_offer_has_to_be_clear_to_be_about_something_else() -> None:
    weak = asking("Would that suit you?", "noise", 0.4)
    play = Play(reader=Script(weak))
    play.say("Hello there.")
    assert "noise" not in play.say(f"{SCAN} {weak.text}").disclosed
    assert "noise" in play.say(weak.text).disclosed


def test_what_is_clearly_asked_comes_before_a_stray_likeness() -> None:
    both = line("How was that?", Act.ASK, asks={"noise": 0.9, "no_fever": 0.2})
    play = Play(reader=Script(both))
    play.say(TABLETS)
    play.say(f"{both.text} What about the tablets?")
    assert {"noise"} <= set(play.state.said)
    assert "no_fever" not in play.state.said


def test_who_has_what_it_came_for_begins_no_story() -> None:
    assert kinds(after(NOISE, SCAN), "Tell me what happened.") != ["all_told"]
    settled = kinds(after(NOISE, SCAN, STOP), "Tell me what happened.")
    assert "tell" not in settled


def test_what_comes_late_beside_another_answer_says_so() -> None:
    play = after("What about the alcohol?")
    text = play.say(f"I'm so sorry to hear that. {NOISE}").text
    leads = tuple(lead.rstrip(",:") for lead in PLAIN.comes_back)
    assert "drinking" in play.state.said
    assert any(lead in text for lead in leads)


def test_what_is_held_back_is_not_evaded_beside_an_answer() -> None:
    both = line("Did it crack, or was there wine?", Act.ASK, asks={"noise": 0.95, "drinking": 0.9})
    wine = line("Was there wine?", Act.ASK, asks={"drinking": 0.9})
    play = Play(reader=Script(both, wine))
    play.say("Hello there.")
    assert not play.say(both.text).state.held_back
    assert play.say(wine.text).state.held_back == {"drinking": 1}


def test_what_comes_later_is_put_off_a_second_time_in_the_same_words() -> None:
    dose = line("How many of them a day?", Act.ASK, asks={"dose": 0.95})
    play = Play(reader=Script(dose))
    play.say("Hello there.")
    first, second = play.say(dose.text).text, play.say(dose.text).text
    assert second == first == next(f.partial for f in CASE.facts if f.id == "dose")


def test_who_did_not_understand_twice_does_not_ask_back_twice() -> None:
    asked = (("Is it that one?", "noise"), ("Or is it this?", "dose"))
    first, second = (line(text, Act.ASK, asks={topic: 0.2}) for text, topic in asked)
    play = Play(reader=Script(first, second))
    play.say("Hello there.")
    assert play.say(first.text).text in PLAIN.asks_back
    assert play.say(second.text).text in CASE.unknown
