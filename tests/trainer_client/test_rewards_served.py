"""Rewards, environments and agents against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.server_process import WHERE, ServerProcess, server_process
from trainer_client import LabsClient, play
from trainer_client.agent_models import StubAgent, ToolAgent
from trainer_client.environments import SimulatedEnvironment, run_episode
from trainer_client.rewards import (
    RULER,
    CompositeReward,
    LearnedReward,
    LengthReward,
    RewardError,
    RubricReward,
    ServerReward,
)

pytestmark = pytest.mark.slow

PLACE = (WHERE["collection_slug"], WHERE["scenario_slug"])
AGENT = StubAgent(["Good morning. How did it happen?", "When did it start?", "Thank you."])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with server_process(tmp_path_factory.mktemp("rewards"), keys=("acme",)) as running:
        yield running


@pytest.fixture
def client(server: ServerProcess) -> Iterator[LabsClient]:
    with LabsClient(server.url, server.keys["acme"]) as found:
        yield found


def test_an_episode_is_an_environment_with_the_servers_reward(client: LabsClient) -> None:
    played = run_episode(AGENT, SimulatedEnvironment(client, *PLACE, max_turns=3), seed=1)
    [rollout] = play(client, AGENT, *PLACE, seeds=[1], max_turns=3)
    assert [result.reward for result in played.results] == list(rollout.rewards)
    assert RubricReward(client, *PLACE)(played.messages) == played.reward


def test_a_composite_takes_the_servers_reward_as_a_part(client: LabsClient) -> None:
    reward = CompositeReward({"server": (ServerReward(), 3.0), "length": LengthReward(at_least=4)})
    environment = SimulatedEnvironment(client, *PLACE, reward=reward, max_turns=2)
    environment.reset(1)
    step = environment.step("Good morning. How did it happen?")
    environment.close()
    assert step.result.components["server"] == step.info["server_reward"]
    assert step.reward == pytest.approx(0.75 * step.info["server_reward"] + 0.25)


def test_many_conversations_are_scored_together_as_alone(client: LabsClient) -> None:
    played = run_episode(AGENT, SimulatedEnvironment(client, *PLACE, max_turns=3), seed=1)
    reward = RubricReward(client, *PLACE)
    parts = [played.messages, played.messages[:3]]
    assert [result.reward for result in reward.score_many(parts)] == [reward(part) for part in parts]


def test_what_the_server_cannot_score_is_a_failure_with_its_code(client: LabsClient) -> None:
    hello = [{"role": "user", "content": "Hello."}]
    with pytest.raises(RewardError, match="nothing_to_score"):
        RubricReward(client, *PLACE)(hello)
    with pytest.raises(RewardError, match="nothing_to_score"):
        RubricReward(client, *PLACE).score_many([hello, hello])
    with pytest.raises(RewardError, match="reward_model"):
        LearnedReward(client, *PLACE)([*hello, {"role": "assistant", "content": "Hi."}])


def test_ruler_compares_the_members_of_a_group(client: LabsClient) -> None:
    good = run_episode(AGENT, SimulatedEnvironment(client, *PLACE, max_turns=3), seed=1).messages
    bad = run_episode(StubAgent(["Go away."]), SimulatedEnvironment(client, *PLACE, max_turns=3), seed=1).messages
    scores = [result.reward for result in RULER(client, *PLACE).score_group([bad, good])]
    assert scores[0] < scores[1]


def test_the_tools_of_a_scenario_are_on_its_card(client: LabsClient) -> None:
    assert [tool.id for tool in ToolAgent.tools_of(client, *PLACE)]
