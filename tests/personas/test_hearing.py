"""How what was read is heard: lists of words, second topics, invitations, sympathy beside a question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from personas.case.schema import Condition, Fact, Tier
from personas.reading.acts import Act, ReadCandidate, Stance
from personas.text.sentences import sentences
from tests.personas.cast import CASE, SCAN, Play, Script, asking, compiled, line

NOISE = "What about the popping noise?"
ALCOHOL = "What about the alcohol?"
WORDS = ("Tablets?", "Dosage?", "Fever?", "Noise?", "Sleep?", "Alcohol?")


@pytest.mark.parametrize("text", [" ".join(WORDS), "tablets, dosage, fever, noise, sleep, wine, fall, knee, debt."])
def test_a_list_of_words_is_no_speech_and_gets_nothing(text: str) -> None:
    reader = Script(*(asking(sentence, "noise") for sentence in sentences(text)))
    reply = Play(reader=reader).say(text)
    assert reply.hearing.unclear
    assert reply.disclosed == ()


def test_short_questions_and_short_words_between_sentences_are_speech() -> None:
    reader = Script(*(asking(word, "noise") for word in WORDS))
    assert not Play(reader=reader).say(" ".join(WORDS[:3])).hearing.unclear
    long = "I'll write that down for you. Is it all right if I ask you something? Tell me what happened."
    assert not Play(reader=reader).say(f"{' '.join(WORDS)} {long} {NOISE}").hearing.unclear


def test_what_is_told_gives_way_to_what_is_not_among_the_topics_of_a_sentence() -> None:
    both = line("Which tablets, and what cracked?", Act.ASK, asks={"no_fever": 0.9, "noise": 0.8, "tablets": 0.7})
    play = Play(reader=Script(both))
    play.say(NOISE)
    assert play.say(both.text).disclosed == ("no_fever", "tablets")


def test_an_invitation_behind_something_told_is_none_to_say_it_again() -> None:
    more = line("Would you tell me about it?", Act.INVITE, asks={"noise": 0.7})
    play = Play(reader=Script(more))
    play.say(NOISE)
    heard = play.say(more.text).hearing
    assert [each.invited for each in heard.asked] == [True] * len(heard.asked) != []


def test_a_question_mark_makes_a_question_of_what_was_not_recognised() -> None:
    unknown = "The tablets, then?"
    for text, told in ((unknown, ("tablets",)), ("The tablets, then.", ())):
        assert Play(reader=Script(line(text, asks={"tablets": 0.5}))).say(text).disclosed == told


def test_an_answer_comes_before_what_sympathy_brings_out() -> None:
    play = Play()
    assert play.say(ALCOHOL).disclosed == ()
    assert play.say(f"That must be frightening. {NOISE}").disclosed == ("noise", "drinking")


def test_of_two_equal_questions_around_a_task_each_is_about_its_own() -> None:
    task = line("Now try the fever.", Act.PROPOSE, stance=Stance.ASSERTED, asks={"no_fever": 0.6})
    ask = asking("What do you get?", "noise", 0.7)
    play = Play(reader=Script(task, ask))
    play.say(NOISE)
    asked = play.say(f"{ask.text} {task.text} {ask.text}").hearing.asked
    assert {each.topic_id for each in asked} == {"noise", "no_fever"}


@pytest.mark.parametrize(
    ("question", "likely", "told"),
    [("Which colour was it?", 0.6, ()), ("What do you get?", 0.4, ()), ("What do you get?", 0.6, ("no_fever",))],
)
def test_a_question_is_about_a_likely_task_only_if_it_says_nothing_of_its_own(
    question: str, likely: float, told: tuple[str, ...]
) -> None:
    task = line("Think of a fever.", Act.PROPOSE, stance=Stance.ASSERTED, asks={"no_fever": likely})
    play = Play(reader=Script(task, line(question, Act.ASK)))
    play.say("Hello there.")
    assert play.say(f"{task.text} {question}").disclosed == told


def test_a_bare_question_behind_an_offer_is_not_about_what_was_said_before() -> None:
    bare = asking("What do you see?", "noise", 0.5)
    play = Play(reader=Script(bare))
    play.say("Hello there.")
    assert "noise" not in play.say(f"{SCAN} {bare.text}").disclosed
    assert "noise" in play.say(bare.text).disclosed


def test_what_is_clearly_asked_for_again_gives_way_only_to_something_likely() -> None:
    for fresh, told in ((0.5, ()), (0.6, ("tablets",))):
        again = line("What was that noise again?", Act.ASK, asks={"noise": 0.9, "tablets": fresh})
        play = Play(reader=Script(again))
        play.say(NOISE)
        assert play.say(again.text).disclosed == told


def test_what_is_less_likely_asked_for_is_not_told_instead_of_what_is_held_back() -> None:
    for second, told in ((0.7, ()), (0.85, ("noise",))):
        question = line("Did it crack, or had you had a drink?", Act.ASK, asks={"drinking": 0.9, "noise": second})
        play = Play(reader=Script(question))
        play.say("Hello there.")
        assert play.say(question.text).disclosed == told


def test_who_asks_again_about_what_was_not_understood_is_taken_to_mean_it() -> None:
    first, second = asking("And the crack?", "noise", 0.3), asking("I mean, was there a bang?", "noise", 0.2)
    first = line(first.text, Act.ASK, asks={"noise": 0.3, "tablets": 0.05, "no_fever": 0.14})
    second = line(second.text, Act.ASK, asks={"tablets": 0.21, "noise": 0.2})
    play = Play(reader=Script(first, second))
    play.say("Hello there.")
    assert play.say(first.text).disclosed == ()
    assert play.say(second.text).disclosed == ("noise",)
    assert play.record().elicited.keys() == {"noise"}
    other = Play(reader=Script(first, second))
    other.say("Hello there.")
    assert other.say(second.text).disclosed == ()


@pytest.mark.parametrize(("text", "told"), [("Agreed?", ()), ("Did it crack, then?", ("noise",))])
def test_behind_an_offer_only_a_question_asks_for_a_fact(text: str, told: tuple[str, ...]) -> None:
    acts = () if text == "Agreed?" else (Act.ASK,)
    play = Play(reader=Script(line(text, *acts, asks={"noise": 0.5, "tablets": 0.1})))
    play.say("Hello there.")
    assert play.say(f"{SCAN} {text}").disclosed == told


@pytest.mark.parametrize(("topic", "goes_on"), [("drinking", False), ("tablets", True)])
def test_who_is_invited_to_say_what_is_closed_does_not_tell_something_else(topic: str, goes_on: bool) -> None:
    invitation = line("What exactly happened there?", Act.INVITE, asks={topic: 0.7, "noise": 0.2})
    play = Play(reader=Script(invitation))
    play.say("Hello there.")
    assert ("noise" in play.say(invitation.text).disclosed) is goes_on
    assert Play(reader=Script(invitation)).say(invitation.text).disclosed


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("Goodbye.", True),
        ("Have you got a pen? Goodbye.", True),
        ("Goodbye. Have you got a pen?", False),
    ],
)
def test_a_goodbye_before_a_question_is_none(text: str, leaves: bool) -> None:
    play = Play(reader=Script(line("Have you got a pen?", Act.ASK)))
    play.say("Hello there.")
    assert play.say(text).hearing.farewell is leaves


@pytest.mark.parametrize("text", ["Goodbye. Do write again.", "Do write again. Goodbye."])
@pytest.mark.parametrize(("likely", "named"), [(0.6, False), (0.85, True)])
def test_a_goodbye_invites_to_nothing_but_what_it_names(text: str, likely: float, *, named: bool) -> None:
    play = Play(reader=Script(line("Do write again.", Act.INVITE, asks={"noise": likely, "tablets": 0.4})))
    play.say("Hello there.")
    reply = play.say(text)
    assert ("noise" in reply.disclosed) is bool(reply.disclosed) is named
    assert reply.hearing.invites is named
    assert Play(reader=play.reader).say("Do write again.").disclosed, "without a goodbye it invites"


def test_a_goodbye_with_a_question_still_invites() -> None:
    play = Play(reader=Script(line("Have you got a pen?", Act.ASK), line("Do write again.", Act.INVITE)))
    assert play.say("Goodbye. Have you got a pen? Do write again.").disclosed


def test_what_a_goodbye_looks_back_at_is_no_question() -> None:
    back = line("You told me about the tablets.", asks={"tablets": 0.9})
    for text, told in ((f"{back.text} Goodbye.", ()), (back.text, ("tablets",))):
        play = Play(reader=Script(back))
        play.say("Hello there.")
        assert play.say(text).disclosed == told


@pytest.mark.parametrize(
    ("sure", "beside", "binds"),
    [(0.985, None, True), (0.975, None, False), (0.985, 0.99, False), (0.985, 0.5, True), (0.994, 0.999, True)],
)
def test_a_commitment_beside_a_likelier_one_has_to_be_surer_to_cost_anything(
    sure: float, beside: float | None, *, binds: bool
) -> None:
    makes = {"scan": sure} | ({} if beside is None else {"stop_tablets": beside})
    promise = line("I'll see to it today.", Act.PROPOSE, stance=Stance.ASSERTED, makes=makes)
    heard = Play(reader=Script(promise)).say(promise.text).hearing.commitments
    assert {each.commitment_id: each.binding for each in heard}["scan"] is binds


def test_sympathy_and_an_invitation_open_one_heart_at_a_time() -> None:
    quarrel = Fact(
        id="quarrel", tier=Tier.RAPPORT, says=("We had shouted at each other.",), gate=Condition(rapport=1.0)
    )
    case = compiled(CASE.model_copy(update={"facts": (*CASE.facts, quarrel)}))
    sorry = line("That must be hard for you.", Act.EMPATHY)
    more = line("Tell me about it.", Act.INVITE, asks={"quarrel": 0.3, "drinking": 0.2})
    told = Play(case=case, reader=Script(sorry, more)).say(f"{sorry.text} {more.text}").disclosed
    assert {"quarrel", "drinking"} & set(told) == {"quarrel"}


@pytest.mark.parametrize(("again", "binds"), [(0.998, True), (0.99, False)])
def test_a_second_reading_decides_what_binds_whatever_the_first_look_says(again: float, *, binds: bool) -> None:
    promise = line("That's as good as done.", Act.INFORM, stance=Stance.ASSERTED)
    promise = replace(promise, commitments=(ReadCandidate("scan", 0.3, again), ReadCandidate("stop_tablets", 0.4)))
    heard = {each.commitment_id: each for each in Play(reader=Script(promise)).say(promise.text).hearing.commitments}
    assert heard["scan"].binding is binds
    assert heard["scan"].confidence == (again if binds else 0.3)


def test_what_the_author_wrote_for_a_commitment_binds_in_any_stance_but_as_a_question() -> None:
    example = CASE.commitments[0].examples[0]
    cases = (
        (example, 0.995, True),
        (example, 0.9, False),
        (f"{example.rstrip('.')}?", 0.995, False),
        (f"Mind you, {example}", 0.995, False),
    )
    for text, sure, binds in cases:
        said = line(text, Act.INFORM, stance=Stance.NEGATED, makes={CASE.commitments[0].id: sure})
        (heard,) = Play(reader=Script(said)).say(text).hearing.commitments
        assert heard.binding is binds
