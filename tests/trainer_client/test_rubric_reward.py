"""A reward function over data of one's own, on a real server: as TRL and as verl call it, and across `fork`."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rubrics.talks import JUDGED, LOGS, OPENING, ORDER, RUBRIC
from tests.trainer_client.live_server import LiveServer
from trainer_client import BadRequest, LabsClient
from trainer_client.errors import LabsError
from trainer_client.integrations.rubric import rubric_reward

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with LiveServer(tmp_path_factory.mktemp("live")) as live:
        yield live


def test_rewards_of_foreign_conversations_keep_their_order(server: LiveServer, tmp_path: Path) -> None:
    (tmp_path / "rubric.json").write_text(json.dumps(RUBRIC))
    with rubric_reward(tmp_path / "rubric.json", base_url=server.url) as judge:
        rewards = judge.score([LOGS[name] for name in ORDER])
        assert rewards == sorted((each for each in rewards if each is not None), reverse=True)
        with pickle.loads(pickle.dumps(judge)) as copy:
            assert copy.score([LOGS["good"]]) == [rewards[1]]


def test_trl_and_verl_call_it_with_what_they_have(server: LiveServer) -> None:
    with rubric_reward(RUBRIC, base_url=server.url) as judge:
        says = LOGS["good"][1]["content"]
        prompts = [[{"role": "user", "content": OPENING}]] * 2
        spoken = judge(prompts=prompts, completions=[[{"role": "assistant", "content": says}]] * 2, trainer_state=None)
        texts = judge(prompts=[OPENING] * 2, completions=[says, "Hm."])
        assert isinstance(spoken, list)
        assert isinstance(texts, list)
        assert spoken[0] == spoken[1] == texts[0]
        assert texts[1] is not None
        assert texts[0] is not None
        assert texts[0] > texts[1]
        alone = judge(data_source="own", solution_str=says, ground_truth="", extra_info={"prompt": prompts[0]})
        assert alone == texts[0]


def test_what_has_no_reward_is_no_number(server: LiveServer) -> None:
    with rubric_reward(JUDGED, base_url=server.url) as judge:
        assert judge([OPENING], ["What is it?"]) == [None]
        assert "asks_about_brake" in judge.failures[0]
        with pytest.raises(LabsError):
            judge(data_source="own", solution_str="What is it?", ground_truth="")


def test_a_client_needs_no_scenario_beside_a_rubric(server: LiveServer) -> None:
    with LabsClient(server.url) as client:
        scored = client.evaluate(messages=LOGS["good"], rubric=RUBRIC)
        assert scored.reward == client.evaluate(None, None, LOGS["good"], rubric=RUBRIC).reward
        compared = client.compare(messages_a=LOGS["good"], messages_b=LOGS["poor"], rubric=RUBRIC)
        assert (compared.winner, compared.reward_a) == ("a", scored.reward)
        ranked = client.rank(responses={name: LOGS[name] for name in ("good", "poor")}, rubric=RUBRIC)
        assert [each.rank for each in ranked.results] == [1, 2]
        with pytest.raises(BadRequest, match="messages"):
            client.evaluate(rubric=RUBRIC)
        with pytest.raises(BadRequest, match="collection_slug"):
            client.evaluate(messages=LOGS["good"])
