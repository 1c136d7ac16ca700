"""Whose words a sentence is made of."""

from __future__ import annotations

import pytest

from personas.hearing.types import AgentTurn
from personas.reading.acts import Act
from personas.reading.borrowed import PersonaWords, formulas
from personas.replay.replayer import Exchange, Record, replay
from tests.personas.cast import BagMatcher, Script, compiled, line

OFFER = "I will book an MRI scan of your knee."


@pytest.mark.parametrize(
    "sentence",
    [
        "It made a loud crack, like a dry twig.",
        "Something cracked loudly when you landed.",
        'You told me: "My neighbour lends me her naproxen."',
        "Your neighbour lends you her naproxen, I hear.",
        "You owe your brother four thousand euros.",
        'You told me: "I never sleep when it rains at night.',
        'You told me: "Only naproxen.',
        'or so I hear."',
        "I take naproxen from my neighbour’s cab\u200binet.",
    ],
)
def test_words_of_the_case_are_borrowed_whoever_they_are_turned_to(sentence: str) -> None:
    assert PersonaWords(compiled()).borrowed(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "So there was a crack when you fell on the stairs, and the leg has been thick since then.",
        "A crack like that can mean a torn ligament.",
        "You take somebody else's naproxen every day.",
        "Four thousand euros is a lot to owe.",
        "Good.",
        "",
    ],
)
def test_a_summary_in_other_words_is_ones_own(sentence: str) -> None:
    assert not PersonaWords(compiled()).borrowed(sentence)


def test_what_the_persona_has_said_is_borrowed_from_then_on() -> None:
    persona = PersonaWords(compiled())
    told = "I was going to meet my sister for lunch that day."
    assert not persona.borrowed("You were going to meet your sister for lunch.")
    persona.add(told)
    assert persona.borrowed("You were going to meet your sister for lunch.")
    assert persona.verbatim("I was going to meet my sister for lunch.")
    assert not PersonaWords(compiled()).borrowed(told)


def test_to_grant_a_wish_in_its_own_words_is_a_promise() -> None:
    persona = PersonaWords(compiled())
    persona.add("Could you send somebody to look at it by Friday?")
    assert not persona.verbatim("I can send somebody to look at it by Friday.")


def record_of(*talk: tuple[str, str], reader: Script | None = None) -> Record:
    exchanges = [Exchange(AgentTurn(said), heard) for said, heard in talk]
    return replay(compiled(), "Hello.", exchanges, reader or Script(), BagMatcher())


def test_what_is_said_to_be_the_personas_words_promises_nothing() -> None:
    assert PersonaWords(compiled()).verbatim("So you told me about the scan.")
    assert PersonaWords(compiled()).verbatim("You said we would book a scan.")


def test_what_is_concluded_from_what_was_said_is_the_agents_own() -> None:
    assert not PersonaWords(compiled()).verbatim(
        "You said that it hurts on stairs, so I will book an MRI scan of your knee."
    )
    assert not PersonaWords(compiled()).verbatim("I told you that I would book the scan.")


def test_a_promise_in_the_words_of_the_persona_is_made_but_not_clear() -> None:
    [copied] = record_of(("Hello.", f"They said: {OFFER}"), (OFFER, "What?")).commitments["scan"]
    [meant] = record_of(("Hello.", "They said nothing."), (OFFER, "Fine.")).commitments["scan"]
    assert (copied.turn, copied.clear) == (2, False)
    assert (meant.turn, meant.clear) == (2, True)


def test_a_short_sentence_of_the_persona_is_borrowed_as_a_whole() -> None:
    persona = PersonaWords(compiled())
    persona.add("I went there. Good boots. They were dear.")
    assert persona.borrowed("Good boots.")
    assert not persona.borrowed("Those are good boots.")


@pytest.mark.parametrize("sentence", ["I think that's all of it.", "Okay.", "I hope I haven't forgotten anything."])
def test_a_line_of_the_personas_is_borrowed_with_you_said_before_it(sentence: str) -> None:
    persona = PersonaWords(compiled())
    persona.add("Okay. I think that's all of it. I hope I haven't forgotten anything.")
    assert persona.borrowed(f"You said: {sentence}")
    assert persona.borrowed(f'You told me: "{sentence}"')


def test_what_the_persona_never_said_is_ones_own_with_you_said_before_it() -> None:
    persona = PersonaWords(compiled())
    persona.add("I think that's all of it.")
    assert not persona.borrowed("You said you were scared, and I would be scared, too.")
    assert not persona.borrowed("You said that well.")


def test_own_sentences_are_those_that_are_said_to_the_persona_in_ones_own_words() -> None:
    copied = line("It made a loud crack, like a dry twig.", Act.RECAP)
    said = f"That must be frightening. {copied.text} xq zzk vvv. Thank you."
    read = Script(copied)
    assert record_of((said, "Yes."), reader=read).turns[0].own == ("That must be frightening.",)
    asked = " ".join(f"What about the {noun}?" for noun in ("popping noise", "tablets", "fever", "alcohol"))
    assert record_of((f"That must be frightening. {asked}", "Yes.")).turns[0].own == ()


def test_what_stands_in_several_turns_is_a_formula() -> None:
    chain = "Well, as people say and as it so often goes on a day like this,"
    first = ["That can mean a torn ligament.", f"{chain} it hurts.", "Fine."]
    second = ["That can mean a torn ligament!", f"{chain} it heals.", "Then we need a scan of it."]
    assert formulas([first, second]) == [frozenset(first[:2]), frozenset(second[:2])]
    assert formulas([first, ["Good.", "Good."]]) == [frozenset(), frozenset()]
