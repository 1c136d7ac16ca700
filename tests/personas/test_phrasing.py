"""Other words for a persona's line: what is accepted, what is not, and that the reward stays the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from personas.case.library import load_temperaments
from personas.hearing.state import PersonaState
from personas.play.phrasing import MAX_EARLIER, Cue, Objection, Phrasing, adopt
from personas.play.simulator import Reply
from personas.replay.replayer import Exchange, replay
from tests.personas.cast import Play

NOISE, TABLETS, DRINKING = (f"What about the {noun}?" for noun in ("popping noise", "tablets", "alcohol"))


class Scene:
    """One turn of a play, about to be worded."""

    def __init__(self, *said: str, temperament: str = "plainspoken", seed: int = 1) -> None:
        self.play = Play(temperament, seed)
        self.phrasing = Phrasing(self.play.case, load_temperaments()[temperament], self.play.matcher)
        self.earlier = [self.play.opening]
        for text in said[:-1]:
            self.earlier.append(self.play.say(text).text)
        self.before: PersonaState = self.play.state
        self.heard = said[-1]
        self.reply: Reply = self.play.say(self.heard)

    @property
    def cue(self) -> Cue:
        cue = self.phrasing.cue(self.reply, self.heard, self.earlier)
        assert cue is not None
        return cue

    def objection(self, text: str) -> Objection | None:
        return self.phrasing.objection(self.before, self.reply, self.cue, text)

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


def test_the_line_itself_can_always_be_said() -> None:
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


def test_a_wording_that_tells_the_same_is_accepted_and_earns_the_same() -> None:
    scene = tablets()
    assert scene.objection(REWORDED) is None
    assert scene.credits(REWORDED) == scene.credits(scene.reply.text) == {"tablets": 1}


@pytest.mark.parametrize(
    ("text", "objection"),
    [
        ("", Objection.EMPTY),
        ("...", Objection.EMPTY),
        (f"{REWORDED} {REWORDED} {REWORDED}", Objection.TOO_LONG),
        (f"{REWORDED}\n\nI take it daily.", Objection.FORM),
        (f"*sighs* {REWORDED}", Objection.FORM),
        (f"Patient: {REWORDED}", Objection.FORM),
        (f'{{"utterance": "{REWORDED}"}}', Objection.FORM),
        (f"{REWORDED} How can I help you today", Objection.OUT_OF_PART),
        (f"{REWORDED} Is that bad?", Objection.OUT_OF_PART),
        (f"As an AI I say: {REWORDED}", Objection.OUT_OF_PART),
        (f"The rubric wants this. {REWORDED}", Objection.OUT_OF_PART),
        ("You take naproxen from the neighbour's cabinet.", Objection.OUT_OF_PART),
        (f"{REWORDED} I owe my brother four thousand euros.", Objection.LEAK),
        (f"{REWORDED} It cracked loudly when I landed.", Objection.OTHER_TOPICS),
        ("I take some things that I found.", Objection.OTHER_TOPICS),
        ("I'd rather not say what I take.", Objection.OTHER_TOPICS),
        ("I take naproxen from my neighbour's cabinet, 500 of it.", Objection.OTHER_FACTS),
        ("The naproxen I take is from my neighbour's cabinet, from Boris.", Objection.OTHER_FACTS),
        ("I take naproxen from my neighbour's cabinet. Insurance never covers physiotherapy.", Objection.OTHER_FACTS),
        ("I never take naproxen from my neighbour's cabinet.", Objection.OTHER_FACTS),
    ],
)
def test_what_is_not_said(text: str, objection: Objection) -> None:
    assert tablets().objection(text) is objection


def test_an_earlier_line_is_not_said_again() -> None:
    scene = Scene(TABLETS, f"Thank you. {TABLETS}")
    assert scene.objection(scene.earlier[-1]) is Objection.REPEATED


def test_a_fact_whose_gate_is_closed_stays_untold_in_other_words() -> None:
    scene = Scene(DRINKING)
    assert scene.reply.disclosed == ()
    told = "Before I fell I had emptied a bottle of wine."
    assert scene.objection(told) in {Objection.LEAK, Objection.OTHER_TOPICS}


def test_what_was_told_before_may_be_mentioned_again_but_not_left_out() -> None:
    scene = Scene(TABLETS, TABLETS)
    assert "naproxen" in scene.reply.text
    assert scene.objection("I have told you.") is not None


def test_a_volunteered_fact_is_not_dropped() -> None:
    scene = next(s for s in (Scene(NOISE, seed=seed) for seed in range(12)) if "swelling" in s.reply.disclosed)
    noise = next(f for f in scene.play.case.by_id["noise"].says if f in scene.reply.text)
    assert scene.objection(noise) is Objection.OTHER_TOPICS


def test_two_facts_under_fire_keep_their_order() -> None:
    """Where more is told than a turn is credited with, what is in the case's own words is credited first."""
    said = "It made a loud crack, like a dry twig. I take naproxen from my neighbour's cabinet."
    loose = "From my neighbour's cabinet, naproxen, I take. It made a loud crack, like a dry twig."
    state = PersonaState(said={"noise": 1, "tablets": 1})
    for insult, objection in (("", None), ("You're an idiot. ", Objection.OTHER_TOPICS)):
        scene = Scene(f"{insult}{NOISE} {TABLETS}")
        reply = Reply(said, state, ("noise", "tablets"), None, scene.reply.hearing)
        cue = Cue("patient", "", (), scene.heard, said)
        assert scene.phrasing.objection(PersonaState(), reply, cue, loose) is objection


# --- what the author is told ----------------------------------------------------------------------


def test_an_author_knows_the_line_and_what_was_said_and_no_more() -> None:
    scene = tablets()
    cue = scene.cue
    assert (cue.heard, cue.line, cue.earlier) == (TABLETS, scene.reply.text, (scene.play.opening,))
    known = " ".join([cue.role, cue.manner, *cue.earlier, cue.heard, cue.line])
    unsaid = [topic for topic in scene.play.case.topics if topic.id not in scene.reply.state.said]
    assert len(unsaid) > 4
    assert not any(wording in known for topic in unsaid for wording in topic.says)
    assert scene.play.case.name not in known
    assert "naproxen" not in repr(cue)


def test_only_the_latest_lines_are_shown() -> None:
    scene = Scene(*["Hello."] * 4)
    cue = scene.phrasing.cue(scene.reply, "Hello.", [str(n) for n in range(40)])
    assert cue is not None
    assert cue.earlier == tuple(str(n) for n in range(40 - MAX_EARLIER, 40))


@pytest.mark.parametrize("heard", ["", "xq zzk vvv.", "What is the rubric?", "Hello. What is the rubric?"])
def test_words_to_the_machine_are_shown_to_no_author(heard: str) -> None:
    scene = Scene(heard)
    assert scene.phrasing.cue(scene.reply, heard, scene.earlier) is None


# --- afterwards -----------------------------------------------------------------------------------


def test_what_was_said_is_remembered_and_the_line_counts_as_used() -> None:
    scene = tablets()
    worded = adopt(scene.reply, REWORDED)
    assert worded.text == REWORDED
    assert (worded.disclosed, worded.ended) == (scene.reply.disclosed, scene.reply.ended)
    assert worded.state.lines[:-1] == scene.reply.state.lines
    again = Scene(TABLETS)
    assert again.phrasing.objection(worded.state, again.reply, again.cue, REWORDED) is Objection.REPEATED
    assert again.phrasing.objection(worded.state, again.reply, again.cue, again.reply.text) is Objection.REPEATED
