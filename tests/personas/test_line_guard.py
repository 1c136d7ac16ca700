"""A line that a model worded for a persona: what the direction holds, what the guard accepts, and that it earns the
same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from personas.case.library import load_temperaments
from personas.hearing.state import PersonaState
from personas.play.direction import SaidLine, StageDirection, character_of, direction_of
from personas.play.line_guard import LineGuard, Objection
from personas.play.move import MoveKind
from personas.play.simulator import Reply, adopt
from personas.reading.matcher import Matcher
from personas.replay.replayer import Exchange, replay
from tests.personas.cast import BagMatcher, Play

NOISE, TABLETS, DRINKING = (f"What about the {noun}?" for noun in ("popping noise", "tablets", "alcohol"))


class Scene:
    """One turn of a play, about to be voiced."""

    def __init__(self, *said: str, temperament: str = "plainspoken", seed: int = 1) -> None:
        self.play = Play(temperament, seed)
        self.character = character_of(self.play.case, load_temperaments()[temperament], "A sore knee")
        self.guard = LineGuard(self.play.case, self.character, self.play.matcher)
        self.heard = list(said)
        self.earlier = [self.play.opening]
        for text in said[:-1]:
            self.earlier.append(self.play.say(text).text)
        self.before: PersonaState = self.play.state
        self.reply: Reply = self.play.say(said[-1])

    @property
    def shown(self) -> StageDirection | None:
        return direction_of(self.play.case, tuple(self.before.said), self.reply, self.heard, self.earlier)

    @property
    def direction(self) -> StageDirection:
        assert self.shown is not None
        return self.shown

    def objection(self, text: str) -> Objection | None:
        return self.guard.objection(self.before, self.reply, self.direction, text)

    def credits(self, line: str) -> dict[str, int]:
        """What replay gives for the conversation with this as its last line."""
        exchanges: Sequence[Exchange] = [*self.play.exchanges[:-1], Exchange(self.play.exchanges[-1].agent, line)]
        elicited = replay(self.play.case, self.play.opening, exchanges, self.play.reader, self.play.matcher).elicited
        return {topic: found.turn for topic, found in elicited.items()}


def tablets() -> Scene:
    scene = Scene(TABLETS)
    assert scene.reply.disclosed == ("tablets",)
    assert "naproxen" in scene.reply.text
    return scene


REWORDED = "The naproxen I take is from my neighbour's cabinet, I take that."


def test_the_engine_s_line_can_always_be_said() -> None:
    said = (
        "Hello.",
        NOISE,
        TABLETS,
        TABLETS,
        DRINKING,
        "What is your diagnosis?",
        "I will book an MRI scan of your knee.",
    )
    for seed in range(4):
        for n in range(1, len(said) + 1):
            scene = Scene(*said[:n], seed=seed)
            assert scene.objection(scene.reply.text) in {None, Objection.REPEATED}


def test_a_line_that_tells_the_same_is_accepted_and_earns_the_same() -> None:
    scene = tablets()
    assert scene.objection(REWORDED) is None
    assert scene.credits(REWORDED) == scene.credits(scene.reply.text) == {"tablets": 1}


def test_an_answer_may_be_longer_than_the_engine_s_and_ask_back() -> None:
    assert tablets().objection(f"Well, since you ask about tablets: {REWORDED} Is that bad?") is None


@pytest.mark.parametrize(
    ("text", "objection"),
    [
        ("", Objection.EMPTY),
        ("...", Objection.EMPTY),
        (" ".join([REWORDED] * 8), Objection.TOO_LONG),
        (f"{REWORDED}\n\nI take it daily.", Objection.FORM),
        (f"*sighs* {REWORDED}", Objection.FORM),
        (f"Patient: {REWORDED}", Objection.FORM),
        (f"You: {REWORDED}", Objection.FORM),
        (f'{{"utterance": "{REWORDED}"}}', Objection.FORM),
        (f"{REWORDED} How can I help you today", Objection.OUT_OF_PART),
        (f"As an AI I say: {REWORDED}", Objection.OUT_OF_PART),
        (f"The rubric wants this. {REWORDED}", Objection.OUT_OF_PART),
        (f"{REWORDED} I owe my brother four thousand euros.", Objection.LEAK),
        (f"{REWORDED} It cracked loudly when I landed.", Objection.LEAK),
        ("I take some things that I found.", Objection.NOT_TOLD),
        ("I'd rather not say what I take.", Objection.NOT_TOLD),
        ("I never take naproxen from my neighbour's cabinet.", Objection.NOT_TOLD),
        ("I take naproxen from my neighbour's cabinet, 500 of it.", Objection.NUMBERS),
        ("I take naproxen from my neighbour's cabinet, since Monday.", Objection.NUMBERS),
        ("The naproxen I take is from my neighbour's cabinet, from Boris.", Objection.NAMES),
        (f"{REWORDED} Insurance never covers physiotherapy.", Objection.STRAYS),
    ],
)
def test_what_is_not_said(text: str, objection: Objection) -> None:
    assert tablets().objection(text) is objection


def test_a_number_in_another_spelling_is_the_same_and_one_that_the_agent_named_may_be_said() -> None:
    scene = tablets()
    said = (*scene.direction.said[:-1], SaidLine(False, f"{TABLETS} Is it five hundred milligrams?"))
    direction = replace(scene.direction, said=said)

    def objection(text: str) -> Objection | None:
        return scene.guard.objection(scene.before, scene.reply, direction, text)

    assert objection(f"{REWORDED} The 500 are on the box of tablets.") is None
    assert objection(f"{REWORDED} The 600 are on the box of tablets.") is Objection.NUMBERS


def test_an_earlier_line_and_an_echo_of_the_agent_are_not_said() -> None:
    scene = Scene(TABLETS, f"Thank you. {TABLETS}")
    assert scene.objection(scene.earlier[-1]) is Objection.REPEATED
    heard = "I would like to look closely at your swollen knee, my friend, before lunch."
    direction = replace(scene.direction, said=(*scene.direction.said[:-1], SaidLine(False, heard)))
    echo = heard.replace("your", "my")
    assert scene.guard.objection(scene.before, scene.reply, direction, echo) is Objection.REPEATED


def test_a_fact_whose_gate_is_closed_stays_untold_in_other_words() -> None:
    scene = Scene(DRINKING)
    assert scene.reply.disclosed == ()
    assert scene.objection("Before I fell I had emptied a bottle of wine.") is Objection.LEAK


def test_what_was_told_before_need_not_be_told_again() -> None:
    scene = Scene(TABLETS, TABLETS)
    assert "naproxen" in scene.reply.text
    assert scene.objection("I have told you about the tablets.") is None


def test_a_volunteered_fact_is_not_dropped() -> None:
    scene = next(s for s in (Scene(NOISE, seed=seed) for seed in range(12)) if "swelling" in s.reply.disclosed)
    noise = next(f for f in scene.play.case.by_id["noise"].says if f in scene.reply.text)
    assert scene.objection(noise) is Objection.NOT_TOLD


class Translating(BagMatcher):
    """An encoder that knows two languages."""

    def cosine(self, texts: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float64]:
        known = {"Ich nehme das Naproxen aus dem Schrank von meinem Nachbarn.": REWORDED}
        return super().cosine([known.get(text, text) for text in texts], anchors)


def test_a_line_in_another_language_is_said_if_the_encoder_knows_it() -> None:
    """Where all nouns have a capital, no name can be told from them."""
    scene, line = tablets(), "Ich nehme das Naproxen aus dem Schrank von meinem Nachbarn."
    german = replace(scene.direction, said=(scene.direction.said[0], SaidLine(False, "Welche Tabletten nehmen Sie?")))

    def objection(matcher: Matcher) -> Objection | None:
        guard = LineGuard(scene.play.case, scene.character, matcher)
        return guard.objection(scene.before, scene.reply, german, line)

    assert objection(Translating()) is None
    assert objection(BagMatcher()) is Objection.NOT_TOLD


# --- the direction --------------------------------------------------------------------------------


def test_the_direction_holds_what_is_told_and_nothing_of_any_other_fact() -> None:
    scene = tablets()
    direction = scene.direction
    assert [line for line in direction.tell if "naproxen" in line] == list(direction.tell)
    assert MoveKind.TELL in direction.does
    assert [line.text for line in direction.said] == [scene.play.opening, TABLETS]
    character = scene.character
    known = " ".join([*direction.tell, *direction.may, *direction.told, *character.life, character.manner])
    unsaid = [topic for topic in scene.play.case.topics if topic.id not in scene.reply.state.said]
    assert len(unsaid) > 4
    assert not any(wording in known for topic in unsaid for wording in topic.says)
    assert "naproxen" not in repr(direction)


def test_what_was_told_before_is_known_and_told_no_second_time() -> None:
    direction = Scene(TABLETS, "Thank you.").direction
    assert any("naproxen" in line for line in direction.told)
    assert not any("naproxen" in line for line in direction.tell)


@pytest.mark.parametrize("heard", ["", "xq zzk vvv.", "What is the rubric?", "Hello. What is the rubric?"])
def test_words_to_the_machine_have_no_direction(heard: str) -> None:
    assert Scene(heard).shown is None


def test_a_name_that_is_a_fact_is_in_no_prompt() -> None:
    case = Play("plainspoken", 1).case
    manner = load_temperaments()["plainspoken"]
    assert character_of(case, manner, "").name == case.name
    named = Play("plainspoken", 1).case
    object.__setattr__(named, "wordings", (*case.wordings, f"The doctor calls me {case.name}."))
    assert character_of(named, manner, "").name is None


# --- afterwards -----------------------------------------------------------------------------------


def test_what_was_said_is_remembered_and_the_engine_s_line_counts_as_used() -> None:
    scene = tablets()
    voiced = adopt(scene.reply, REWORDED)
    assert voiced.text == REWORDED
    assert (voiced.disclosed, voiced.ended) == (scene.reply.disclosed, scene.reply.ended)
    assert voiced.state.lines[:-1] == scene.reply.state.lines
    again = Scene(TABLETS)
    check = again.guard.objection
    assert check(voiced.state, again.reply, again.direction, REWORDED) is Objection.REPEATED
    assert check(voiced.state, again.reply, again.direction, again.reply.text) is Objection.REPEATED
