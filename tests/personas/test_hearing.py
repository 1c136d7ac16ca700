"""How what was read is heard: lists of words, second topics, invitations, sympathy beside a question."""

from __future__ import annotations

import pytest

from personas.reading.acts import Act
from personas.reading.sentences import sentences
from tests.personas.cast import Play, Script, asking, line

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
