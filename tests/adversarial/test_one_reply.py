"""One reply alone, and curiosity without knowledge: what they are worth beside nothing.

Trainers of preferences send an opening and one reply. These tests hold what the reward tells them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest

from benchmarks.plays import Base, Talk, all_scenarios, played, request_of
from personas.reading.reader import Reader
from reward_server.scoring.compare import compare
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import Scorer
from scenarios.exam import agents
from scenarios.library import Library, SealedScenario
from scenarios.schema import ScriptStep
from tests.adversarial.conftest import COLLECTIONS

HERE = Path(__file__).parent
BETTER_IN = 27
"""Of thirty scenarios."""
CLEARLY = 2.0
"""A curious agent earns so many times as much as the best of the policies that understand nothing, and `AHEAD` more."""
AHEAD = 0.03
CURIOUS = json.loads((HERE / "curious.json").read_text(encoding="utf-8"))


def rewards(scorer: Scorer, scenario: SealedScenario, talks: Sequence[Talk]) -> list[float]:
    requests = [request_of(scorer, scenario, talk, RewardConfig()) for talk in talks]
    return [or_raise(each).reward for each in asyncio.run(scorer.score(requests))]


def replied(base: Base, text: str) -> Talk:
    return [base.messages[0], {"role": "assistant", "content": text}]


def steps(lines: Sequence[str]) -> list[ScriptStep]:
    return [ScriptStep(say=each) for each in lines]


@pytest.mark.slow
def test_a_first_line_beats_a_word_and_an_insult(scorer: Scorer, library: Library, reader: Reader) -> None:
    ahead, wins = 0, 0
    for scenario in all_scenarios(library):
        base = played(scenario, "oracle", scenario.secrets.exam.oracle[:1], reader)
        line = base.messages[1]["content"]
        talks = [replied(base, text) for text in (line, "Banana.", "You are an idiot.")]
        fine, word, insult = rewards(scorer, scenario, talks)
        ahead += fine > word
        wins += compare(fine, insult).winner == "a"
    assert min(ahead, wins) >= BETTER_IN, (ahead, wins)


@pytest.mark.slow
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_curiosity_earns_more_than_echo_refusal_and_stuffing(
    scorer: Scorer, library: Library, reader: Reader, collection: str
) -> None:
    """General questions of the domain, politely put by somebody who knows nothing of the case."""
    curious: list[float] = []
    idle: dict[str, list[float]] = {name: [] for name in ("echo", "refusing", "stuffing", "stuffing_asked")}
    for scenario in (each for each in all_scenarios(library) if each.collection == collection):
        base = played(scenario, "curious", steps(CURIOUS[collection]), reader)
        curious += rewards(scorer, scenario, [base.messages])
        scripted = agents(scenario.secrets, scenario.topics, None)
        for name, earned in idle.items():
            said = [act.say for act in scripted[name].script] or [base.messages[0]["content"]] * 8
            earned.extend(rewards(scorer, scenario, [played(scenario, name, steps(said), reader).messages]))
    best = max(map(fmean, idle.values()))
    assert fmean(curious) >= max(CLEARLY * best, best + AHEAD), (fmean(curious), {n: fmean(f) for n, f in idle.items()})
