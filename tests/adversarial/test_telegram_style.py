"""Telegram style ("Onset? Worse at night?") must not beat whole sentences that ask for the same in as many turns."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.plays import all_scenarios, played, request_of
from personas.reading.reader import Reader
from personas.text.sentences import sentences
from personas.text.wording import content_words
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import Scorer
from scenarios.library import Library, natural_agents
from scenarios.schema import ScriptStep

EACH = 2
"""Every so-manieth scenario: fifteen."""
MOST = 2
"""In so many of them telegrams may be ahead, and only as far as one word more or less changes what is heard."""
WORDS = 4


def telegram(text: str) -> str:
    """A turn as a telegram: a few words a sentence that carry its meaning, questions first of all."""
    said = [(" ".join(content_words(each)[:WORDS]), "?" if each.endswith("?") else ".") for each in sentences(text)]
    return " ".join(f"{words.capitalize()}{mark}" for words, mark in said if words)


def terse(steps: tuple[ScriptStep, ...]) -> list[ScriptStep]:
    return [ScriptStep(say=telegram(step.say) or step.say, tools=step.tools) for step in steps]


def test_a_telegram_says_the_same_in_fewer_words() -> None:
    assert telegram("Good morning. When did the dizziness start?") == "Good morning. Dizziness start?"


@pytest.mark.slow
def test_telegrams_do_not_beat_whole_sentences(scorer: Scorer, library: Library, reader: Reader) -> None:
    natural, ahead = natural_agents(library), []
    for scenario in list(all_scenarios(library))[::EACH]:
        lines = natural[scenario.name].excellent
        talks = [played(scenario, name, steps, reader) for name, steps in (("whole", lines), ("terse", terse(lines)))]
        requests = [request_of(scorer, scenario, talk.messages, RewardConfig()) for talk in talks]
        whole, short = (or_raise(each).reward for each in asyncio.run(scorer.score(requests)))
        if short > whole:
            ahead.append((scenario.name, round(whole, 3), round(short, 3)))
    assert len(ahead) <= MOST, ahead
