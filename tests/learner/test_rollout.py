"""Rollouts: whose tokens are trained, what becomes of failures, and that a batch can be repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from learner import loop
from learner.generate.hf import HfGenerator
from learner.generate.vllm import EngineError
from learner.rollout import Collected, RolloutCollector, RolloutStage
from learner.run import Run, open_run
from tests.learner.small import policy, tokenizer
from tests.learner.stage import StageServer, client_of, refusal
from tests.learner.test_loop import config
from trainer_client.chat.tokens import Renderer

WORDS = tokenizer()
RENDERER = Renderer(WORDS)
STAGE = RolloutStage("c", "s", max_turns=3)


def collect(server: StageServer, seeds: list[int], size: int, *, waves: int = 2, key: int = 1) -> Collected:
    async def go() -> Collected:
        async with client_of(server) as client:
            generator = HfGenerator(policy(WORDS, spread=3.0), max_tokens=6)
            return await RolloutCollector(client, generator, RENDERER, STAGE, waves=waves).collect(seeds, size, (key,))

    return asyncio.run(go())


def text(ids: tuple[int, ...]) -> str:
    decoded: str = WORDS.decode(list(ids))
    return decoded


def test_only_what_the_policy_said_counts_as_sampled() -> None:
    server = StageServer()
    trajectory = collect(server, [3], 1).trajectories[0]
    said = [segment for segment in trajectory.segments if segment.sampled]
    given = [segment for segment in trajectory.segments if not segment.sampled]
    assert [RENDERER.spoken(list(segment.ids)).text for segment in said] == [
        message["content"] for message in server.logs["ep_1"] if message["role"] == "assistant"
    ]
    persona = [message["content"] for message in server.logs["ep_1"] if message["role"] == "user"][:-1]
    for segment, line in zip(given, persona, strict=True):
        assert f"user\n{line}" in text(segment.ids)
        assert text(segment.ids).endswith("assistant\n")


def test_the_conversation_on_the_server_is_the_one_in_the_ids() -> None:
    server = StageServer()
    trajectory = collect(server, [3], 1).trajectories[0]
    whole = WORDS.apply_chat_template(server.logs["ep_1"][:-1], tokenize=False)
    # A turn cut off at the limit is closed by the template; the last one has nothing after it yet.
    assert whole.removesuffix("\n").removesuffix("<|im_end|>") == text(trajectory.ids).removesuffix("<|im_end|>")


def test_the_persona_is_asked_to_be_the_user_and_the_seed_is_the_groups() -> None:
    server = StageServer()
    collect(server, [3, 4], 2)
    assert sorted(content["config"]["seed"] for content in server.created) == [3, 3, 4, 4]
    assert {content["config"]["observation_role"] for content in server.created} == {"user"}
    assert {tuple(message["role"] for message in content["messages"]) for content in server.received} == {
        ("user", "assistant")
    }


def test_groups_hold_the_episodes_of_their_seed_in_order() -> None:
    collected = collect(StageServer(), [11, 12, 13], 4)
    assert [group.seed for group in collected.groups] == [11, 12, 13]
    assert [len(group.trajectories) for group in collected.groups] == [4, 4, 4]
    assert {trajectory.seed for trajectory in collected.groups[1].trajectories} == {12}


def test_rewards_of_every_turn_and_the_last_scores_are_kept() -> None:
    server = StageServer(score=lambda said: len(said) / 10)
    trajectory = collect(server, [3], 1).trajectories[0]
    assert trajectory.turn_rewards == (0.1, 0.2, 0.3)
    assert trajectory.reward == 0.3
    assert trajectory.scores == {"D1_Talk": 0.3}
    assert trajectory.terminal_reason == "completed"


def test_an_errored_episode_leaves_its_group_and_is_counted() -> None:
    server = StageServer()
    server.faults[2] = refusal(502, "judge_failed")
    collected = collect(server, [3], 4, waves=1)
    group = collected.groups[0]
    assert len(group.trajectories) == len(group.rewards) == 3
    assert (group.errored, group.error_codes, collected.errored) == (1, ("judge_failed",), 1)


class Counting(StageServer):
    """Keeps the paths of the requests; `refuse` are answers of paths that are not served."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []
        self.refuse: dict[str, httpx2.Response] = {}

    def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
        self.paths.append(path.removeprefix("/api/v1/"))
        return self.refuse.get(self.paths[-1]) or super().answer(method, path, body)


def test_a_step_of_a_wave_is_one_request() -> None:
    server = Counting()
    collected = collect(server, [3, 4, 5], 4, waves=2)
    assert len(collected.trajectories) == 12
    assert sorted(server.paths) == ["batch/episodes"] * 2 + ["batch/turns"] * 6


def test_more_episodes_than_a_request_takes_are_several_requests() -> None:
    server = Counting()
    assert len(collect(server, [3], 101, waves=1).trajectories) == 101
    # The one that is left goes alone.
    assert sorted(set(server.paths)) == ["batch/episodes", "batch/turns", "episodes", "episodes/ep_101/turns"]


def test_a_turn_that_fails_in_a_request_of_many_is_asked_for_again_alone() -> None:
    class Once(Counting):
        def _turn(self, name: str, content: dict[str, Any]) -> httpx2.Response:
            is_first = name == "ep_2" and len(self.rewards[name]) == 1 and self.paths[-1] == "batch/turns"
            return refusal(502, "judge_failed") if is_first else super()._turn(name, content)

    server = Once()
    whole, once = collect(StageServer(), [3], 4, waves=1), collect(server, [3], 4, waves=1)
    assert server.paths.count("episodes/ep_2/turns") == 1
    assert once.errored == 0
    assert [each.segments for each in once.trajectories] == [each.segments for each in whole.trajectories]
    # The whole conversation, so that a turn that was played after all is not played twice.
    assert [len(content["messages"]) for content in server.received if len(content["messages"]) > 2] == [4]


@pytest.mark.parametrize("refused", ["batch/episodes", "batch/turns"])
def test_a_request_of_many_that_is_refused_is_sent_one_by_one(refused: str) -> None:
    server = Counting()
    server.refuse = {refused: refusal(413, "payload_too_large")}
    whole, single = collect(StageServer(), [3, 4], 2), collect(server, [3, 4], 2)
    assert refused in server.paths
    assert [each.segments for each in single.trajectories] == [each.segments for each in whole.trajectories]
    assert [each.rewards for each in single.groups] == [each.rewards for each in whole.groups]


def test_an_episode_the_server_ended_with_an_error_is_errored() -> None:
    server = StageServer()
    server.reason = "error"
    collected = collect(server, [3], 2)
    assert collected.trajectories == []
    assert collected.error_codes == ["episode_error"] * 2


def test_what_ends_one_wave_is_raised_as_what_it_is() -> None:
    class Broken:
        context, max_tokens = None, 4

        def start(self) -> Any:
            return self

        def step(self, continuations: Any) -> Any:
            raise EngineError("the sampler is gone")

    async def go() -> None:
        async with client_of(StageServer()) as client:
            await RolloutCollector(client, Broken(), Renderer(WORDS), RolloutStage("c", "s")).collect([1, 2], 2, (0,))

    with pytest.raises(EngineError, match="the sampler is gone"):
        asyncio.run(go())


def test_an_episode_that_cannot_begin_is_errored() -> None:
    class Closed(StageServer):
        def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
            return refusal(404, "scenario_not_found")

    collected = collect(Closed(), [3], 2)
    assert collected.error_codes == ["scenario_not_found"] * 2
    assert collected.error_messages == {"scenario_not_found": "No."}


@pytest.mark.parametrize("waves", [1, 2, 3])
def test_the_same_noise_plays_the_same_episodes(waves: int) -> None:
    once, again = (collect(StageServer(), [3, 4, 5], 2, waves=waves) for _ in range(2))
    assert [each.segments for each in once.trajectories] == [each.segments for each in again.trajectories]


def test_other_noise_and_other_members_say_other_things() -> None:
    first, second = (collect(StageServer(), [3], 2, key=key) for key in (1, 2))
    said: set[Any] = {each.ids for collected in (first, second) for each in collected.trajectories}
    assert len(said) == 4


def test_turns_that_hit_the_limit_are_counted() -> None:
    collected = collect(StageServer(turns=8), [3], 4)
    cut_off = sum(
        segment.sampled and segment.ids[-1] != RENDERER.end_id
        for trajectory in collected.trajectories
        for segment in trajectory.segments
    )
    assert sum(trajectory.truncated_turns for trajectory in collected.trajectories) == cut_off > 0


@pytest.mark.parametrize(("sampling", "waves"), [(0.95, 1), (0.71, 1), (0.69, 2), (0.1, 2)])
def test_a_given_model_plays_in_one_batch_where_sampling_takes_the_time(
    sampling: float, waves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen by the first evaluation, and chosen again so where the run goes on."""
    policy(WORDS).model.save_pretrained(tmp_path / "model")
    WORDS.save_pretrained(tmp_path / "model")
    summary = loop.summary

    def timed(collected: Collected) -> dict[str, object]:
        return {**summary(collected), "seconds/rollout": 10.0, "seconds/generating": 10.0 * sampling}

    monkeypatch.setattr(loop, "summary", timed)
    sessions: list[int] = []
    start = HfGenerator.start
    monkeypatch.setattr(HfGenerator, "start", lambda self: (sessions.append(1), start(self))[1])
    told: list[str] = []
    for updates in (1, 2):
        settings = config(tmp_path, updates, model={"path": str(tmp_path / "model")}, server={"system": "none"})
        opened = open_run(settings, tmp_path / "run", told.append)
        assert opened.waves == 1
        sessions.clear()
        asyncio.run(trained(opened, told.append))
        assert opened.waves == waves
    assert len(sessions) == 1 + 2 * waves  # the canary's, those of the update, and those of the evaluation after it
    assert any(f"sampling takes {sampling:.0%} of the time" in line for line in told)


async def trained(opened: Run, say: Callable[[str], None]) -> None:
    async with client_of(StageServer(turns=2)) as client:
        await loop.train(opened, client, say)
