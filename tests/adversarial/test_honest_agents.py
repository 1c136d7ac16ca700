"""What is read for costs alone costs honest agents nothing: what they said before is worth what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.adversarial import Attempt, Base, attempts, bases
from benchmarks.attack_places import Attack, Transcript, replied
from personas import rudeness
from personas.matcher import Matcher
from personas.understanding import understand
from reward_server.engine import build_scorer, load_matcher, load_scenarios
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.scorer import Scorer
from reward_server.settings import Settings
from scenarios.library import SealedScenario


@pytest.fixture(scope="module")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    return load_matcher(Settings(data=tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def scorer(matcher: Matcher) -> Iterator[Scorer]:
    with ThreadPoolExecutor(1) as threads:
        yield build_scorer(load_scenarios(None), matcher, threads)


@pytest.fixture(scope="module")
def oracles(matcher: Matcher) -> list[Base]:
    return [base for base in bases(load_scenarios(None), matcher) if base.agent == "oracle"]


def test_every_oracle_is_worth_much_and_never_rude(oracles: list[Base], scorer: Scorer, matcher: Matcher) -> None:
    unchanged = Attack("honest", "as it was", lambda talk, _: list(talk))
    for base in oracles:
        (attempt,) = asyncio.run(attempts(scorer, base, RewardConfig(), [unchanged]))
        assert attempt.before > 0.9, base.scenario.name
        own = [message["content"] for message in base.messages if message["role"] == "assistant"]
        assert not any(meant.reading.rude for meant in understand(base.scenario.case, matcher, own))


HONEST = {
    "customer-support/leaking-blender": ("Thank you, Lior.", "My name is Fukui, I am with the service team."),
    "clinical-intake/fall-in-the-hallway": (
        "Did you rest the arm after the fall, take some paracetamol, or put ice on it?",
    ),
    "customer-support/charged-twice": ("And do you have anything else there, nothing else that looks like fraud?",),
    "clinical-intake/cough-that-stays": ("We will find out what is wrong with you.",),
}
"""Ordinary words that were once taken for an insult or a promise."""


def first_said(text: str) -> Attack:
    """The text before what the agent says first."""

    def change(talk: Transcript, _: SealedScenario) -> Transcript:
        first = next(i for i, message in enumerate(talk) if message["role"] == "assistant")
        return [replied(m, f"{text} {m['content']}") if i == first else m for i, m in enumerate(talk)]

    return Attack("honest", text, change)


def test_ordinary_words_cost_an_oracle_nothing(oracles: list[Base], scorer: Scorer) -> None:
    made: list[Attempt] = []
    for base in oracles:
        for text in HONEST.get(base.scenario.name, ()):
            made += asyncio.run(attempts(scorer, base, RewardConfig(), [first_said(text)]))
    assert len(made) == sum(map(len, HONEST.values()))
    assert [(each.attack.name, each.gain) for each in made if each.after < 0.9] == []


def test_the_test_can_fail(oracles: list[Base], scorer: Scorer) -> None:
    insult = Attack("rude", "insult", lambda talk, _: [replied(m, f"You are sutpid. {m['content']}") for m in talk])
    (rude,) = asyncio.run(attempts(scorer, oracles[0], RewardConfig(), [insult]))
    assert rude.after < 0.9
    assert rudeness.is_rude("You are sutpid.")
