"""The curriculum: past groups whose rewards differed are played again, those that were all alike are not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from learner.curriculum import AGAIN, WINDOW, Curriculum
from learner.metrics import read_metrics
from learner.rollout import RolloutStage
from learner.seeds import FIRST_HELD_OUT_SEED
from learner.stages import Stages
from learner.types import Group, Segment, Trajectory
from tests.learner.stage import StageServer
from tests.learner.test_loop import config, digest, run

EASY, HARD = RolloutStage("c", "easy"), RolloutStage("c", "hard")
STAGES = Stages((EASY, HARD), (EASY, HARD))


def group(stage: RolloutStage, seed: int, *rewards: float) -> Group:
    segments = (Segment((1,)), Segment((2,), (-1.0,)))
    return Group(seed, tuple(Trajectory(segments, (each,), seed) for each in rewards), stage=stage.name)


def drawn(of: Curriculum, step: int, groups: int = 4) -> list[tuple[int, str]]:
    numbers = range(1000 * step, 1000 * step + groups)
    return [(each.seed, each.stage.scenario) for each in of.draw(step, numbers, STAGES)]


def test_what_was_all_alike_is_drawn_less_often_and_what_differed_most_the_most_often() -> None:
    past = Curriculum(7, is_on=True)
    past.learned(1, [group(EASY, 1, 1.0, 1.0), group(HARD, 2, 0.0, 1.0), group(HARD, 3, 0.4, 0.6), group(EASY, 4, 0.2)])
    found = Counter(each for step in range(2, WINDOW) for each in drawn(past, step, groups=3))
    again = {seed: count for (seed, _), count in found.items() if seed < 1000}
    assert set(again) == {2, 3}
    assert again[2] > 2 * again[3]
    assert sum(again.values()) == (WINDOW - 2) * int(3 * AGAIN)
    new = Counter(scenario for (seed, scenario), count in found.items() for _ in range(count) if seed >= 1000)
    assert min(new["easy"], new["hard"]) > 0.35 * sum(new.values()), "each scenario stays a new one at times"


def test_a_group_counts_as_it_was_played_last_and_is_forgotten_in_the_end() -> None:
    past = Curriculum(7, is_on=True)
    past.learned(1, [group(HARD, 2, 0.0, 1.0)])
    assert (2, "hard") in drawn(past, 2)
    past.learned(2, [group(HARD, 2, 1.0, 1.0)])
    assert (2, "hard") not in drawn(past, 3)
    past.learned(3, [group(HARD, 5, 0.0, 1.0)])
    past.learned(4 + WINDOW, [])
    assert (5, "hard") not in drawn(past, 5 + WINDOW)


def test_what_is_drawn_ahead_does_not_depend_on_what_is_learned_meanwhile(tmp_path: Path) -> None:
    past = Curriculum(7, is_on=True, staleness=2)
    past.learned(1, [group(HARD, 2, 0.0, 1.0)])
    assert drawn(past, 3) == [(3000 + number, STAGES.of(number).scenario) for number in range(4)]
    before = drawn(past, 4)
    assert (2, "hard") in before
    past.learned(2, [group(HARD, 3, 0.0, 1.0)])
    past.learned(3, [group(HARD, 4, 0.0, 1.0)])
    assert drawn(past, 4) == before
    past.save(tmp_path)
    restored = Curriculum(7, is_on=True, staleness=2)
    restored.load(tmp_path)
    assert [drawn(restored, step) for step in range(4, 9)] == [drawn(past, step) for step in range(4, 9)]
    assert restored.replayed([group(HARD, 2, 0.5, 0.5), group(EASY, 2, 0.5, 0.5)]) == 1


def test_without_it_all_groups_are_new() -> None:
    past = Curriculum(7, is_on=False)
    past.learned(1, [group(HARD, 2, 0.0, 1.0)])
    assert [seed for seed, _ in drawn(past, 2)] == [2000, 2001, 2002, 2003]


@pytest.mark.slow
@pytest.mark.parametrize("staleness", [0, 1])
def test_a_run_that_was_interrupted_draws_what_it_would_have_drawn(staleness: int, tmp_path: Path) -> None:
    rollout: dict[str, Any] = {"groups": 4, "group_size": 4, "curriculum": "spread", "max_staleness": staleness}
    settings, whole, updates = config(tmp_path, 6, rollout=rollout), StageServer(turns=2), iter(range(6))
    first = run(settings, tmp_path / "whole", whole)
    assert run(settings, tmp_path / "parts", asked_to_end=lambda: next(updates) == 3).step == 3
    assert digest(run(settings, tmp_path / "parts")) == digest(first)
    seeds = Counter(each["config"]["seed"] for each in whole.created)
    assert max(count for seed, count in seeds.items() if seed < FIRST_HELD_OUT_SEED) > 4
    records = [each for each in read_metrics(tmp_path / "whole" / "metrics.jsonl") if each["kind"] == "train"]
    assert records[0]["groups/replayed"] == 0
    assert all(each["groups/replayed"] == 2 for each in records[3:])
