"""What a transcript earns: everything a live persona told, and nothing a client made up."""

from __future__ import annotations

import random

import pytest

from personas.case.library import load_temperaments
from personas.hearing.types import AgentTurn
from personas.reading.acts import Act
from personas.replay.replayer import ConductCounts, Exchange, replay
from tests.personas.cast import CASE, LINES, BagMatcher, Play, Script, compiled, line

ASKS = [ask for item in compiled().topics for ask in item.examples]
CHATTER = [each.text for each in LINES if not each.text.endswith(tuple(ASKS))]
NOISE = "What about the popping noise?"
CREDITABLE = {t.id for t in compiled().topics if t.creditable}


def random_turn(rng: random.Random) -> str:
    """One to five sentences, mostly questions of the case."""
    lines = rng.choices(ASKS, k=rng.choice([1, 1, 1, 2, 2, 3, 5]))
    if rng.random() < 0.5:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(CHATTER))
    if rng.random() < 0.15:
        lines = [rng.choice(CHATTER)]
    return " ".join(lines)


@pytest.mark.parametrize("slug", sorted(load_temperaments()))
def test_whatever_a_live_persona_told_because_of_a_question_is_credited(slug: str) -> None:
    case = compiled()
    told_in_all = 0
    for seed in range(30):
        rng = random.Random(f"{slug}{seed}")
        play = Play(slug, seed, case)
        earned: dict[str, int] = {}
        for turn in range(1, 13):
            reply = play.say(random_turn(rng))
            earned |= {topic: turn for topic in reply.disclosed if topic in CREDITABLE}
            if reply.ended:
                break
        record = play.record()
        assert {topic: found.turn for topic, found in record.elicited.items()} == earned
        assert set(play.state.said) <= set(record.spoken)
        assert record.rapport == play.state.rapport
        told_in_all += len(earned)
    assert told_in_all > 30


def test_facts_nobody_asked_for_earn_nothing() -> None:
    everything = " ".join(item.says[0] for item in (*CASE.facts, *CASE.denials))
    exchanges = [
        Exchange(AgentTurn(line), everything) for line in ("Hello.", "Okay.", "What is the capital of Norway?")
    ]
    record = replay(compiled(), "Hello.", exchanges, Script(), BagMatcher())
    assert record.elicited == {}
    assert not CREDITABLE & set(record.spoken)


def test_a_made_up_answer_earns_no_more_than_its_question_would_have_opened() -> None:
    everything = " ".join(item.says[0] for item in (*CASE.facts, *CASE.denials))
    exchanges = [
        Exchange(AgentTurn("What about the dosage?"), everything),
        Exchange(AgentTurn("What about the alcohol?"), everything),
        Exchange(AgentTurn("What about the popping noise?"), everything),
    ]
    record = replay(compiled(), "Hello.", exchanges, Script(), BagMatcher())
    assert set(record.elicited) == {"noise"}


def test_an_interrogation_earns_one_answer_even_if_the_client_writes_many() -> None:
    everything = " ".join(item.says[0] for item in (*CASE.facts, *CASE.denials))
    text = "What about the popping noise? What about the tablets? What about the fever? Do you sleep badly?"
    record = replay(compiled(), "Hello.", [Exchange(AgentTurn(text), everything)], Script(), BagMatcher())
    assert len(record.elicited) == 1
    assert record.acts.interrogation == 1


def test_nothing_is_elicited_after_the_last_turn_an_episode_could_have() -> None:
    asking = Exchange(AgentTurn("What about the popping noise?"), "It made a loud crack, like a dry twig.")
    exchanges = [Exchange(AgentTurn("Hello."), "Hi."), Exchange(AgentTurn("Okay."), "Yes?"), asking]
    assert set(replay(compiled(), "Hello.", exchanges, Script(), BagMatcher(), max_turns=3).elicited) == {"noise"}
    late = replay(compiled(), "Hello.", exchanges, Script(), BagMatcher(), max_turns=2)
    assert late.elicited == {}
    assert len(late.turns) == 3


def test_a_transcript_that_ends_with_the_agent_earns_what_the_persona_would_answer() -> None:
    asked = f"{NOISE} What about the tablets?"
    record = replay(compiled(), "Hello.", [Exchange(AgentTurn(asked), None)], Script(), BagMatcher())
    assert set(record.elicited) == {"noise", "tablets"}
    assert replay(compiled(), "Hello.", [Exchange(AgentTurn("Okay."), None)], Script(), BagMatcher()).elicited == {}


def test_a_question_about_nothing_in_the_case_costs_nothing() -> None:
    play = Play()
    play.say(NOISE)
    play.say("Do you own a parrot?")
    assert play.state.annoyance == 0.0
    assert play.record().acts == ConductCounts()


def test_agent_text_never_counts_as_disclosure() -> None:
    copied = line("It made a loud crack, like a dry twig.", Act.INFORM)
    text = f"{NOISE} {copied.text}"
    exchanges = [Exchange(AgentTurn(text), "Hm."), Exchange(AgentTurn("Okay."), None)]
    assert replay(compiled(), "Hello.", exchanges, Script(copied), BagMatcher()).elicited == {}


def test_an_answer_in_other_words_of_the_same_meaning_is_credited_with_its_sentence() -> None:
    loose = "Well, let me see. Loud crack it made, like some dry twig!"
    record = replay(
        compiled(), "Hello.", [Exchange(AgentTurn("What about the popping noise?"), loose)], Script(), BagMatcher()
    )
    assert record.elicited["noise"].quote == "Loud crack it made, like some dry twig!"
    assert record.elicited["noise"].question == "What about the popping noise?"


def test_a_partial_answer_is_no_disclosure() -> None:
    exchange = Exchange(AgentTurn("What about the dosage?"), "Enough to keep going.")
    told = Exchange(AgentTurn("What about the tablets?"), "My neighbour lends me her naproxen.")
    record = replay(compiled(), "Hello.", [told, exchange], Script(), BagMatcher())
    assert set(record.elicited) == {"tablets"}


def test_volunteered_facts_are_spoken_but_never_earned() -> None:
    play = Play()
    play.say("What about the knee?")
    record = play.record()
    assert record.spoken["knee"] == 0
    assert "knee" not in record.elicited


def test_a_transcript_without_its_opening_loses_nothing() -> None:
    record = replay(compiled(), None, [Exchange(AgentTurn("Hello."), "Hi.")], Script(), BagMatcher())
    assert record.spoken == {"knee": 0, "swelling": 0}


def test_commitments_remember_what_had_been_said_before_them() -> None:
    play = Play()
    play.say("I will book an MRI scan of your knee.")
    play.say("What about the popping noise?")
    play.say("I will book an MRI scan of your knee.")
    early, later = play.record().commitments["scan"]
    assert early.early
    assert "noise" not in early.spoken_before
    assert not later.early
    assert later.turn == 3
    assert "noise" in later.spoken_before


def test_conduct_is_counted() -> None:
    play = Play("talkative")
    for text in (
        "I'm so sorry to hear that. Tell me what happened.",
        "What about the popping noise?",
        "What about the popping noise?",
        "You're an idiot.",
        "Did you see the match last night?",
    ):
        play.say(text)
    acts = play.record().acts
    assert (acts.empathy, acts.repeated_question, acts.rude, acts.off_topic) == (1, 1, 1, 1)
    assert acts.open_question == 1


def a_play() -> Play:
    play = Play()
    for ask in ("What about the popping noise?", "What about the tablets?", "What about the fever?"):
        play.say(ask)
    return play


def test_a_long_transcript_takes_one_call_of_the_matcher() -> None:
    matcher = BagMatcher()
    exchanges = [Exchange(AgentTurn(NOISE), f"That was loud, {number} times.") for number in range(4)]
    replay(compiled(), "Hello.", exchanges, Script(), matcher)
    assert matcher.calls == 1


def test_what_was_heard_in_play_is_not_compared_again_in_replay() -> None:
    play = a_play()
    play.matcher.calls = 0
    assert play.record() == replay(play.case, play.opening, play.exchanges, Script(), BagMatcher())
    assert play.matcher.calls == 0


def test_replay_is_the_same_for_a_prefix_and_for_the_whole() -> None:
    play = Play()
    for ask in ("What about the tablets?", "What about the dosage?", "What about the fever?"):
        play.say(ask)
    whole = play.record()
    prefix = replay(play.case, play.opening, play.exchanges[:2], Script(), play.matcher)
    assert whole.turns[:2] == prefix.turns
    assert {k: v for k, v in whole.elicited.items() if v.turn <= 2} == prefix.elicited


def test_a_turn_brings_what_is_new() -> None:
    play = Play()
    turns: list[tuple[str, tuple[str, ...], bool]] = [
        ("I will book an MRI scan of your knee.", (), False),  # too early
        ("What about the popping noise?", (), True),
        ("What about the popping noise?", (), False),
        ("I will book an MRI scan of your knee.", (), True),
        ("I will book an MRI scan of your knee.", (), False),
        ("The letter will reach you on Monday.", ("referral",), True),
        ("The letter will reach you on Monday.", ("referral",), False),
        ("Okay.", (), False),
    ]
    for text, tools, _ in turns:
        play.say(text, *tools)
    record = play.record()
    assert [turn.brings for turn in record.turns] == [brings for *_, brings in turns]
    assert [turn.asks_anew for turn in record.turns] == [number == 1 for number in range(len(turns))]


def test_a_record_shows_no_content() -> None:
    play = Play()
    play.say("What about the tablets?")
    assert "naproxen" not in repr(play.record())
