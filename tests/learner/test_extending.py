"""The examples of docs/extending.md do what the page says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from learner import canary, loop
from learner.algorithms import ALGORITHMS
from learner.run import open_run
from learner.stages import open_stages
from tests.learner.stage import StageServer, client_of
from tests.learner.test_loop import config, records
from trainer_client import play_async

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture
def page() -> Iterator[dict[str, Any]]:
    """What the examples define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    yield names
    ALGORITHMS.pop("mine")


async def test_the_agent_plays(page: dict[str, Any]) -> None:
    async with client_of(StageServer(turns=2)) as client:
        played = await play_async(client, page["agent"], "c", "s", seeds=[1])
    assert [rollout.reward for rollout in played] == [1.0]


def test_the_objective_is_trained(page: dict[str, Any], tmp_path: Path) -> None:
    opened = open_run(config(tmp_path, 1, algorithm={"name": "mine"}), tmp_path / "run", lambda line: None)
    assert (opened.objective.advantage, opened.objective.beta) == ("leave_one_out", 0.02)
    asyncio.run(_train(opened, StageServer(turns=2)))
    assert "update/kl_reference" in records(tmp_path / "run", "train")[0]


def test_the_reward_is_what_is_trained_on(page: dict[str, Any], tmp_path: Path) -> None:
    opened = open_run(config(tmp_path, 1), tmp_path / "run", lambda line: None)
    asyncio.run(_train(opened, StageServer(turns=2, score=lambda said: 0.5), page["Brief"]))
    assert records(tmp_path / "run", "eval")[0]["reward/mean"] == pytest.approx(0.48)


async def test_the_sampler_plays_and_passes_the_canary(page: dict[str, Any], tmp_path: Path) -> None:
    opened = open_run(config(tmp_path, 1), tmp_path / "run", lambda line: None)
    sampler = page["Counting"](opened.engine.generator)
    assert canary.check(sampler, opened.policy, opened.renderer) < 1e-3
    before = sampler.asked
    async with client_of(StageServer(turns=2)) as client:
        stages = await open_stages(opened.config, client)
        found = await opened.rollouts(client, stages.of(0), generator=sampler).collect([1], 3, (0,))
    assert len(found.trajectories) == 3
    assert sampler.asked == before + 3 * 2


@pytest.mark.slow
def test_the_environment_is_learned_without_a_server(page: dict[str, Any], tmp_path: Path) -> None:
    opened = open_run(config(tmp_path, 12), tmp_path / "run", lambda line: None)
    server = StageServer(turns=2)
    asyncio.run(_train(opened, server, lambda _: page["WordsWithT"](opened)))
    held_out = records(tmp_path / "run", "eval")
    assert held_out[-1]["reward/mean"] > held_out[0]["reward/mean"] + 0.05
    assert server.created == []


@pytest.mark.slow
def test_the_script_trains_with_a_part_of_its_own(page: dict[str, Any], tmp_path: Path) -> None:
    settings = tmp_path / "run.toml"
    settings.write_text(
        'server.url = "http://127.0.0.1:9"\nwarmup.steps = 3\nrollout.groups = 1\nrollout.group_size = 2\n'
        'algorithm.name = "mine"\nevaluation.episodes = 2\nrun.updates = 1\n'
    )
    run = page["train"](settings, tmp_path / "run", lambda run, played: page["WordsWithT"](run))
    assert run.objective.advantage == "leave_one_out"
    assert [record["step"] for record in records(tmp_path / "run", "eval")] == [0, 1]


async def _train(opened: Any, server: StageServer, wrap: Any = lambda collector: collector) -> None:
    async with client_of(server) as client:
        await loop.train(opened, client, lambda line: None, wrap=wrap)
