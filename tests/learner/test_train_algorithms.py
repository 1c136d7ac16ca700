"""What belongs to an algorithm beside its loss: critics, dynamic sampling, dimensions, schedules."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from learner import loop
from learner.algorithms import ALGORITHMS, PAPERS
from learner.config import ConfigError, read
from learner.credit import CreditAssignment
from learner.critic import Critic, explained_variance
from learner.model import rows_of
from learner.rollout import Collected, RolloutStage
from learner.run import open_run
from learner.stages import Stages
from learner.types import Group, Segment, Trajectory
from learner.update import NonFiniteError, Updater, UpdateSettings
from tests.learner.small import policy, tokenizer, trajectory
from tests.learner.stage import StageServer, client_of
from tests.learner.test_loop import config, digest, records, run

WORDS = tokenizer()
GOOD = [("hello", "tell me more."), ("yes", "please tell me why.")]
BAD = [("hello", "go away!"), ("yes", "the sky is blue.")]


def groups(scores: tuple[dict[str, float], ...] = ({}, {}, {}, {})) -> list[Group]:
    members = [
        trajectory(WORDS, turns, rewards)
        for turns, rewards in ((GOOD, [0.5, 1.0]), (BAD, [0.0, 0.1]), (GOOD[:1], [0.7]), (BAD[:1], [0.0]))
    ]
    return [Group(1, tuple(replace(each, scores=found) for each, found in zip(members, scores, strict=True)))]


def critic_updater(name: str, rate: float = 5e-3, **changes: Any) -> tuple[Updater, Any, Critic]:
    acting = policy(WORDS)
    row = replace(ALGORITHMS[name], **changes)
    critic = Critic(acting)
    updater = Updater(
        acting,
        torch.optim.AdamW(acting.model.parameters(), lr=rate),
        UpdateSettings(row),
        policy(WORDS) if row.needs_reference else None,
        critic=critic,
        critic_optimizer=torch.optim.AdamW(critic.parameters(), lr=5e-3),
    )
    return updater, acting, critic


@pytest.mark.parametrize("name", ["ppo", "vapo"])
def test_the_critic_learns_what_is_to_come_and_the_policy_what_was_rewarded(name: str) -> None:
    updater, acting, _ = critic_updater(name, critic_warmup=15, value_clip=None)
    played = groups()
    weights = torch.cat([parameter.detach().flatten().clone() for parameter in acting.model.parameters()])
    first = updater.update(played, 1)
    for step in range(2, 16):
        last = updater.update(played, step)
    assert first["critic/warming_up"] == 1.0
    assert last["critic/loss"] < 0.3 * first["critic/loss"]
    assert first["critic/explained_variance"] < 0.1  # a critic that knows nothing
    assert last["critic/explained_variance"] > 0.5
    same = torch.cat([parameter.detach().flatten() for parameter in acting.model.parameters()])
    assert torch.equal(weights, same), "the policy stands still while its critic warms up"
    after = updater.update(played, 16)
    assert "critic/warming_up" not in after
    assert after["update/grad_norm"] > 0


def test_explained_variance_is_the_share_of_the_spread_that_the_values_have() -> None:
    returns = torch.tensor([0.0, 1.0, 2.0, 3.0])
    assert explained_variance(returns, returns) == 1.0
    assert explained_variance(returns + 5.0, returns) == 1.0  # of the spread alone
    assert explained_variance(torch.full((4,), 1.5), returns) == 0.0
    assert explained_variance(returns / 2, returns) == pytest.approx(0.75)
    assert explained_variance(-returns, returns) == pytest.approx(-3.0)
    assert explained_variance(returns, torch.ones(4)) == 0.0  # nothing to explain


@pytest.mark.parametrize("name", ["ppo", "vapo"])
def test_explained_variance_rises_while_the_policy_learns(name: str) -> None:
    """Values are measured before the update, on episodes that the policy of that moment is trained on as well."""
    updater, _, _ = critic_updater(name, critic_warmup=0, value_clip=None)
    found = [updater.update(groups(), step)["critic/explained_variance"] for step in range(1, 31)]
    early, middle, late = (sum(found[start : start + 5]) / 5 for start in (0, 10, 25))
    assert early < middle < late
    assert late > 0.5


def test_a_critic_values_packed_rows_as_padded_ones() -> None:
    """In value and gradient; the trunk attends as the policy's, and what conversations begin with is computed once."""
    acting = policy(WORDS, spread=3.0)
    critic = Critic(acting)
    torch.nn.init.normal_(critic.head.weight, generator=torch.Generator().manual_seed(0))
    begun = [("hello", "tell me more."), ("yes, that is so 1", "the sky is blue."), ("yes, that is so 2", "go away!")]
    rows = [row for end in (1, 2, 3) for row in trajectory(WORDS, begun[:end], [0.5] * end).rows]
    found = []
    for packs in (True, False):
        assert critic.packs
        critic.zero_grad()
        values = critic.values(rows) if packs else critic(rows_of(rows, 0))
        values.square().sum().backward()
        gradients = [each.grad.flatten() for each in critic.parameters() if each.grad is not None]
        found.append((values.detach(), torch.cat(gradients)))
    (packed, by_packed), (padded, by_padded) = found
    assert torch.allclose(packed, padded, atol=1e-4)
    assert float((by_packed - by_padded).norm() / by_padded.norm()) < 1e-4


def test_the_critic_recomputes_its_layers_and_is_as_coarse_as_the_policy(tmp_path: Path) -> None:
    algorithm = {"name": "ppo"}
    model = {"recompute": True, "precision": "bfloat16"}
    opened = open_run(config(tmp_path, 1, algorithm=algorithm, model=model), tmp_path / "run", lambda line: None)
    assert opened.critic is not None
    seen: list[torch.dtype] = []
    layer = opened.critic.trunk.layers[0]
    assert type(layer) is type(opened.policy.model.base_model.layers[0])  # the kind that forgets
    layer.mlp.register_forward_hook(lambda _module, _inputs, out: seen.append(out.dtype))
    values = opened.critic.values(trajectory(WORDS, GOOD, [0.5, 1.0]).rows)
    assert (seen, values.dtype) == ([torch.bfloat16], torch.float32)


def test_rewards_of_turns_sit_on_their_last_tokens_and_the_kl_on_every_one() -> None:
    two = trajectory(WORDS, GOOD, [0.25, 1.0])
    ends = [length - 1 for length in torch.tensor(two.turn_lengths).cumsum(0).tolist()]
    updater, _, _ = critic_updater("ppo", credit="to_go")
    from learner.update import Example

    found = updater._token_rewards(Example(two, torch.zeros(two.sampled_tokens)))
    assert found[ends].tolist() == [0.25, 0.75]
    assert float(found.sum()) == 1.0
    updater, _, _ = critic_updater("ppo", kl_reward=0.5)
    example = Example(two, torch.zeros(two.sampled_tokens))
    example.old_logp, example.reference_logp = (
        torch.full((two.sampled_tokens,), -1.0),
        torch.full((two.sampled_tokens,), -2.0),
    )
    found = updater._token_rewards(example)
    assert found[0] == -0.5
    assert found[ends[-1]] == 0.5


def test_reinforce_pp_takes_the_kl_off_the_reward_and_uses_every_group() -> None:
    acting, reference = policy(WORDS), policy(WORDS, seed=3, spread=2.0)
    optimizer = torch.optim.SGD(acting.model.parameters(), lr=0.1)
    settings = UpdateSettings(ALGORITHMS["reinforce_pp"])
    with pytest.raises(ValueError, match="reference"):
        Updater(acting, optimizer, settings)
    updater = Updater(acting, optimizer, settings, reference)
    same = [Group(number, (groups()[0].trajectories[number],)) for number in range(3)]
    found = updater.update(same)
    assert found["groups/used"] == 3
    assert found["update/kl_reference"] > 0


def test_each_dimension_is_normalised_by_itself() -> None:
    """One member is best in a dimension with a wide range, another in one with a narrow range: both count alike."""
    scores = ({"a": 0.9, "b": 0.10}, {"a": 0.1, "b": 0.12}, {"a": 0.1, "b": 0.10}, {"a": 0.1, "b": 0.10})
    credit = CreditAssignment(ALGORITHMS["gdpo"])
    equal = credit.per_turn(groups(scores))
    assert equal[0][0] == pytest.approx(equal[1][0], rel=0.02)
    assert equal[0][0] > 0 > equal[2][0]
    weighted = credit.per_turn(groups(scores), {"b": 0.0})
    assert weighted[0][0] > 0 > weighted[1][0]
    same_reward = Group(
        1, tuple(replace(each, turn_rewards=(0.5,) * each.turns) for each in groups(scores)[0].trajectories)
    )
    assert credit.is_informative(same_reward)
    # Another scenario's dimension, which this batch has no usable group of.
    assert credit.per_turn(groups(scores), {"c": 3.0}) == equal
    with pytest.raises(ValueError, match="the server returned none"):
        credit.per_turn(groups())


def test_a_step_that_is_not_a_number_stops_the_run_or_is_left_out() -> None:
    for policy_name in ("stop", "skip"):
        acting = policy(WORDS)
        with torch.no_grad():
            next(iter(acting.model.parameters()))[5] = float("nan")
        optimizer = torch.optim.SGD(acting.model.parameters(), lr=0.1)
        settings = UpdateSettings(ALGORITHMS["grpo"], non_finite=policy_name)  # type: ignore[arg-type]
        updater = Updater(acting, optimizer, settings)
        if policy_name == "stop":
            with pytest.raises(NonFiniteError, match="is not a number"):
                updater.update(groups())
        else:
            assert updater.update(groups())["update/skipped"] == 1.0


# --- in a run -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ppo", "vapo"])
@pytest.mark.slow
def test_a_run_with_a_critic_resumes_with_it(name: str, tmp_path: Path) -> None:
    algorithm = {"name": name, "overrides": {"critic_warmup": 1}}
    settings = [config(tmp_path, updates, algorithm=algorithm) for updates in (3, 2, 3)]
    whole = run(settings[0], tmp_path / "whole")
    run(settings[1], tmp_path / "parts")
    assert digest(run(settings[2], tmp_path / "parts")) == digest(whole)
    warming = [record.get("critic/warming_up") for record in records(tmp_path / "parts", "train")]
    assert warming == [1.0, None, None]


async def test_dynamic_sampling_plays_all_scenarios_and_replaces_a_group_in_its_own(tmp_path: Path) -> None:
    settings = config(tmp_path, 1, algorithm={"name": "dapo"}, rollout={"groups": 2, "group_size": 2})
    opened = open_run(settings, tmp_path / "run", lambda line: None)
    names = [RolloutStage("c", f"s{number}") for number in range(8)]
    asked: list[list[tuple[int, str]]] = []

    class Played:
        async def collect(self, seeds: Any, size: int, noise: Any, now: Any, stages: Any, **_: Any) -> Collected:
            asked.append([(seed, stage.scenario) for seed, stage in zip(seeds, stages, strict=True)])
            rewards = [[0.5, 0.5] if len(asked[-1]) == 2 and place else [0.0, 1.0] for place in range(len(seeds))]
            groups = [
                Group(seed, tuple(Trajectory((Segment((1,)), Segment((2,), (-1.0,))), (one,), seed) for one in each))
                for seed, each in zip(seeds, rewards, strict=True)
            ]
            return Collected(tuple(groups), seconds=0.0, generating_s=0.0)

    for step in range(1, 9):
        found, refills = await loop._groups(opened, Played(), Stages(tuple(names), tuple(names)), lambda _: None, step)
        assert (len(found.groups), refills) == (3, 1)
    whole, again = asked[::2], asked[1::2]
    assert {scenario for each in whole for _, scenario in each} == {stage.scenario for stage in names}
    assert [each[0][1] for each in again] == [each[1][1] for each in whole]
    assert len({seed for each in asked for seed, _ in each}) == 24


def test_a_group_with_one_episode_left_is_not_called_equal(tmp_path: Path) -> None:
    lone = Trajectory((Segment((1,)), Segment((2,), (-1.0,))), (0.5,), 3)
    group = Group(
        3, (lone,), errored=1, error_codes=("judge_failed",), error_messages={"judge_failed": "The judge failed."}
    )
    opened = open_run(config(tmp_path, 1), tmp_path / "run", lambda line: None)
    told = loop._nothing_learned(opened, Collected((group,), seconds=0.0, generating_s=0.0))
    assert told.startswith("no group has two episodes left to compare")
    assert told.endswith("the most frequent error is judge_failed (The judge failed)")


def test_a_run_goes_on_after_a_step_whose_loss_was_no_number(tmp_path: Path) -> None:
    settings = config(tmp_path, 2, optim={"non_finite": "skip"})
    opened = open_run(settings, tmp_path / "run", lambda line: None)
    score = opened.policy.score_rows
    spoiled: list[int] = []

    def once(rows: Any) -> Any:
        logp, entropy = score(rows)
        if torch.is_grad_enabled() and not spoiled:
            spoiled.append(1)
            return logp * float("nan"), entropy
        return logp, entropy

    opened.policy.score_rows = once  # type: ignore[method-assign]
    told: list[str] = []

    async def go() -> None:
        async with client_of(StageServer(turns=2)) as client:
            await loop.train(opened, client, told.append)

    asyncio.run(go())
    first, second = records(tmp_path / "run", "train")
    assert (first["update/skipped"], "update/loss" in first, "update/loss" in second) == (1.0, False, True)
    assert any("skipped: the gradient was not a number" in line for line in told)


@pytest.mark.slow
def test_dynamic_sampling_replaces_groups_without_a_difference_and_ends(tmp_path: Path) -> None:
    def equal_at_first(said: Any) -> float:
        # Eight held-out episodes, then twelve of the first two groups.
        return 0.5 if len(server.created) <= 8 + 12 else min(1.0, len("".join(said)) / 90)

    server = StageServer(turns=2, score=equal_at_first)
    run(config(tmp_path, 1, algorithm={"name": "dapo"}), tmp_path / "run", server)
    [record] = records(tmp_path / "run", "train")
    assert record["groups/refills"] >= 1
    assert record["groups/used"] == 2
    seeds = [content["config"]["seed"] for content in server.created[8:] if content["config"]["seed"] < 2**40]
    assert len(set(seeds)) == record["groups/all"], "no seed is played twice"
    solved = StageServer(turns=2, score=lambda said: 0.5)
    told: list[str] = []
    opened = open_run(config(tmp_path, 1, algorithm={"name": "dapo"}), tmp_path / "solved", lambda line: None)

    async def go() -> None:
        async with client_of(solved) as client:
            await loop.train(opened, client, told.append)

    asyncio.run(go())
    [record] = records(tmp_path / "solved", "train")
    assert (record["groups/refills"], record["groups/used"], record["groups/all"]) == (3, 0, 8)
    [line] = [line for line in told if "in every group all rewards are equal, so nothing was learned" in line]
    assert "credit turns" in line
    [line] = [line for line in told if "groups 0/8" in line]
    assert "entropy" not in line, "there was no update to measure it in"


def test_whoever_credits_turns_is_not_told_to(tmp_path: Path) -> None:
    told: list[str] = []
    opened = open_run(
        config(tmp_path, 1, algorithm={"name": "grpo", "credit": "to_go"}), tmp_path / "run", lambda line: None
    )

    async def go() -> None:
        async with client_of(StageServer(turns=2, score=lambda said: 0.5)) as client:
            await loop.train(opened, client, told.append)

    asyncio.run(go())
    [line] = [line for line in told if "in every group all rewards are equal" in line]
    assert "rollout.group_size" in line
    assert "credit turns" not in line


def test_the_best_checkpoint_is_kept_and_the_run_ends_when_it_gets_no_better(tmp_path: Path) -> None:
    settings = config(
        tmp_path,
        9,
        evaluation={"every": 1, "stop_after": 2},
        optim={"learning_rate": 1e-9},
        run={"checkpoint_every": 1, "keep": 1},
    )
    opened = run(settings, tmp_path / "run")
    assert opened.step == 2
    assert [record["step"] for record in records(tmp_path / "run", "eval")] == [0, 1, 2]
    assert opened.best() == (0, records(tmp_path / "run", "eval")[0]["reward/mean"])


def test_learning_rates_follow_their_schedule() -> None:
    def rates(**optim: Any) -> list[float]:
        section = read({"optim": {"learning_rate": 1.0, **optim}}).optim
        return [round(section.rate(step, 6), 3) for step in range(1, 7)]

    assert rates() == [1.0] * 6
    assert rates(schedule="linear") == [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]
    assert rates(schedule="linear", final_share=0.5) == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    assert rates(warmup_updates=2) == [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert rates(schedule="cosine", warmup_updates=1) == [1.0, 1.0, 0.854, 0.5, 0.146, 0.0]
    with pytest.raises(ConfigError, match=r"optim\.schedule: must be one of"):
        read({"optim": {"schedule": "step"}})


def test_the_constant_of_an_aggregation_is_that_of_the_configuration() -> None:
    settings = {"server": {"max_turns": 5}, "model": {"max_tokens": 10}, "algorithm": {"name": "dr_grpo"}}
    assert read(settings).objective().max_tokens == 50
    settings["algorithm"]["overrides"] = {"max_tokens": 99}
    assert read(settings).objective().max_tokens == 99


def test_every_algorithm_names_its_paper() -> None:
    assert set(PAPERS) == set(ALGORITHMS)
    nameless = {name for name, paper in PAPERS.items() if "arXiv" not in paper}
    assert nameless == {"turn_grpo", "rloo_clip", "sft"}  # ours, a variant of TRL's, and maximum likelihood
