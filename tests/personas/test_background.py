"""The background: answers beside the matter, which no topic and no promise is passed over for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from personas.case.compiled import compile_case
from personas.case.schema import Background, Later
from personas.reading.acts import Act, Stance
from tests.personas.cast import CASE, SCAN, STOP, TOPICS, Play, Script, asking, compiled, line

WALKS = Background(
    id="walks",
    asks=("Do you walk much?", "Are you on your feet all day?", "Do you get out at all?"),
    says=("I walk the dog round the block.", "Round the block with the dog, that's all."),
)
MORNINGS = Background(
    id="mornings",
    asks=("Shall we meet in the morning?", "Is nine too early?", "When would it suit you?"),
    says=("Mornings are fine.",),
    after=("noise",),
)
NORWAY, NOISE, WINDOW = "What is the capital of Norway?", "What about the popping noise?", "Shall I open the window?"
ON_YOUR_FEET = "Are you on your feet a lot?"


def play(found: Mapping[str, Mapping[str, float]], *more: str) -> Play:
    reader = Script(line(ON_YOUR_FEET, Act.ASK, asks={"noise": 0.5}), asking("Was it loud?", "noise", 0.9))
    reader.brings_to_mind = {text: dict(each) for text, each in found.items()}
    one = Play(case=compiled(background=(WALKS, MORNINGS)), reader=reader)
    for text in more:
        one.say(text)
    return one


def test_a_question_that_the_case_has_no_answer_to_is_answered_from_the_background() -> None:
    assert play({NORWAY: {"walks": 0.6}}).say(NORWAY).text in WALKS.says
    assert play({}).say(NORWAY).text not in WALKS.says


def test_once_something_was_told_an_entry_may_be_answered_otherwise() -> None:
    later = WALKS.model_copy(update={"later": Later(after=("noise",), says=("Not any more.",))})
    reader = Script()
    reader.brings_to_mind = {NORWAY: {"walks": 0.6}}
    one = Play(case=compiled(background=(later,)), reader=reader)
    assert one.say(NORWAY).text in WALKS.says
    one.say(NOISE)
    assert one.say(NORWAY).text == "Not any more."
    assert one.say(NORWAY).text == "Not any more."


def test_what_any_persona_answers_is_no_background_of_the_case_itself() -> None:
    case = compile_case(CASE, TOPICS, background=(WALKS,), common=(MORNINGS,))
    assert [entry.id for entry in case.own_background] == ["walks"]
    reader = Script()
    for likely in (0.9, 0.96):
        reader.brings_to_mind = {WINDOW: {"mornings": likely}}
        one = Play(case=case, reader=reader)
        one.say(NOISE)
        assert (one.say(WINDOW).text in MORNINGS.says) is (likely > 0.95)


def test_every_wording_comes_before_one_is_said_again_and_a_weak_guess_is_not_repeated() -> None:
    one = play({NORWAY: {"walks": 0.6}})
    said = [one.say(NORWAY).text for _ in range(3)]
    assert set(said[:2]) == set(WALKS.says)
    assert said[2] in WALKS.says
    weak = play({NORWAY: {"walks": 0.55}})
    assert [weak.say(NORWAY).text in WALKS.says for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(("asked", "likely", "answered"), [("Was it loud?", 0.75, False), (ON_YOUR_FEET, 0.8, True)])
def test_a_topic_that_is_clearly_asked_for_comes_first(asked: str, likely: float, *, answered: bool) -> None:
    reply = play({asked: {"walks": likely, "noise": 0.1}}, "Hello.").say(asked)
    assert any(says in reply.text for says in WALKS.says) is answered
    assert reply.disclosed == (() if answered else ("noise",))


def test_a_topic_that_the_second_reading_hardly_finds_gives_way() -> None:
    reply = play({"Was it loud?": {"walks": 0.85, "noise": 0.2}}, "Hello.").say("Was it loud?")
    assert reply.text in WALKS.says
    assert reply.disclosed == ()


def test_a_sentence_that_asks_for_both_is_answered_in_both() -> None:
    reply = play({"Was it loud?": {"walks": 0.85, "noise": 0.5}}, "Hello.").say("Was it loud?")
    assert any(says in reply.text for says in WALKS.says)
    assert reply.disclosed == ("noise",)


def test_what_is_more_like_a_topic_is_no_background() -> None:
    reply = play({ON_YOUR_FEET: {"noise": 0.7, "walks": 0.6}}, "Hello.").say(ON_YOUR_FEET)
    assert reply.disclosed == ("noise",)


def test_a_short_question_behind_an_offer_is_about_the_offer() -> None:
    short = "Okay?"
    found = {short: {"walks": 0.9}}
    assert play(found, "Hello.").say(short).text in WALKS.says
    assert not any(says in play(found, "Hello.").say(f"{WINDOW} {short}").text for says in WALKS.says)


def test_an_answer_waits_for_what_it_takes_for_known() -> None:
    found = {WINDOW: {"mornings": 0.6}}
    assert "Mornings are fine." not in play(found, "Hello.").say(WINDOW).text
    assert play(found, NOISE).say(WINDOW).text == "Mornings are fine."


def test_a_promise_gets_its_own_answer() -> None:
    reply = play({SCAN: {"mornings": 0.9}}, NOISE).say(SCAN)
    assert "Mornings" not in reply.text
    assert "can" in reply.text


def test_a_question_beside_a_topic_is_answered_too() -> None:
    reply = play({NORWAY: {"walks": 0.6}}, "Hello.").say(f"{NOISE} {NORWAY}")
    assert reply.disclosed == ("noise",)
    assert any(says in reply.text for says in WALKS.says)


def test_it_earns_nothing_and_costs_nothing() -> None:
    with_it, without = play({NORWAY: {"walks": 0.6}}), play({})
    for one in (with_it, without):
        one.say(NORWAY)
        one.say(NOISE)
    assert with_it.record().elicited == without.record().elicited
    assert with_it.record().rapport == without.record().rapport


def test_the_last_words_wait_for_an_answer() -> None:
    one = play({NORWAY: {"walks": 0.6}}, NOISE, SCAN, "You should stop taking the tablets.")
    reply = one.say(NORWAY)
    assert reply.text in WALKS.says
    assert reply.ended is None


@pytest.mark.parametrize("ends", [True, False])
def test_an_answer_may_let_the_persona_take_its_leave(ends: bool) -> None:
    nothing = WALKS.model_copy(update={"says": ("Nothing I can think of.", "Nothing more."), "ends": ends})
    reader = Script(line(WINDOW, Act.ASK))
    reader.brings_to_mind = {WINDOW: {"walks": 0.9}}
    one = Play(case=compiled(background=(nothing,)), reader=reader)
    for text in (NOISE, SCAN, STOP):
        one.say(text)
    reply = one.say(WINDOW)
    assert any(says in reply.text for says in nothing.says)
    assert (reply.ended == "completed") is ends


def test_a_promise_is_answered_before_a_question_behind_it_that_the_background_answers() -> None:
    scan = line(SCAN, Act.PROPOSE, stance=Stance.ASSERTED, makes={"scan": 0.95})
    walk = "How far does the dog walk with you along the river every evening?"
    asked = line(walk, Act.ASK)
    reader = Script(scan, asked)
    reader.brings_to_mind = {walk: {"walks": 0.9}}
    one = Play(case=compiled(background=(WALKS,)), reader=reader)
    one.say(NOISE)
    text = one.say(f"{SCAN} {walk}").text
    assert text.endswith(WALKS.says)
    assert not text.startswith(WALKS.says)


PAYS, MOVES = "Is it loud?", "and when could we meet?"
BOTH = f"{PAYS[:-1]}, {MOVES}"


def joined(found: Mapping[str, Mapping[str, float]], asks: Mapping[str, float] | None = None) -> Play:
    """A play of one sentence with two questions, after the noise was told."""
    reader = Script(line(BOTH, Act.ASK, asks=asks))
    reader.brings_to_mind = {text: dict(each) for text, each in found.items()}
    one = Play(case=compiled(background=(WALKS, MORNINGS)), reader=reader)
    one.say(NOISE)
    return one


def test_of_two_questions_in_one_sentence_each_has_its_answer() -> None:
    whole = {BOTH: {"walks": 0.5, "mornings": 0.5}}
    reply = joined({**whole, PAYS: {"walks": 0.9}, MOVES: {"mornings": 0.9}}).say(BOTH)
    assert any(says in reply.text for says in WALKS.says)
    assert "Mornings are fine." in reply.text


def test_beside_a_topic_the_other_question_of_its_sentence_has_its_answer() -> None:
    found = {PAYS: {"tablets": 0.9, "walks": 0.2}, MOVES: {"tablets": 0.1, "mornings": 0.9}}
    reply = joined(found, asks={"tablets": 0.9}).say(BOTH)
    assert reply.disclosed == ("tablets",)
    assert "Mornings are fine." in reply.text


def test_what_is_next_to_a_question_answers_it_where_only_the_other_has_an_answer() -> None:
    found = {PAYS: {"walks": 0.9}, MOVES: {"mornings": 0.55}}
    assert "Mornings are fine." in joined(found).say(BOTH).text
    assert "Mornings are fine." not in joined({**found, MOVES: {"mornings": 0.45}}).say(BOTH).text


def test_of_two_questions_without_an_answer_the_one_is_taken_up_that_something_is_next_to() -> None:
    assert any(says in joined({PAYS: {"walks": 0.55}}).say(BOTH).text for says in WALKS.says)


def test_one_line_does_not_answer_both_questions() -> None:
    reply = joined({PAYS: {"walks": 0.9}, MOVES: {"walks": 0.9}}).say(BOTH).text
    assert sum(reply.count(says) for says in WALKS.says) == 1


@pytest.mark.parametrize(("likely", "said"), [(0.76, False), (0.85, True)])
def test_beside_an_answer_what_any_persona_says_has_to_be_sure(likely: float, *, said: bool) -> None:
    reader = Script(line(BOTH, Act.ASK))
    reader.brings_to_mind = {PAYS: {"walks": 0.9}, MOVES: {"mornings": likely}}
    one = Play(case=compile_case(CASE, TOPICS, background=(WALKS,), common=(MORNINGS,)), reader=reader)
    one.say(NOISE)
    assert ("Mornings are fine." in one.say(BOTH).text) is said


def test_what_it_cannot_know_and_was_hardly_asked_is_not_said_beside_an_answer() -> None:
    reader = Script(line(ON_YOUR_FEET, Act.ASK, asks={"ligament": 0.5}))
    reader.brings_to_mind = {NORWAY: {"walks": 0.9}, ON_YOUR_FEET: {"ligament": 0.5}}
    one = Play(case=compiled(background=(WALKS,)), reader=reader)
    assert "Nobody has told me" in one.say(ON_YOUR_FEET).text
    other = Play(case=compiled(background=(WALKS,)), reader=reader)
    assert other.say(f"{NORWAY} {ON_YOUR_FEET}").text in WALKS.says
