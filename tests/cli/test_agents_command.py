"""`labs agents` and `labs leaderboard` against a server process and an endpoint on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.scripted_provider import ScriptedProvider
from tests.cli.warm import Labs
from tests.faults.server_process import WHERE, ServerProcess, server_process

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("agents")
    with server_process(folder, keys=("acme",), LABS_PRIVATE_ADDRESSES="true") as running:
        yield running


def test_an_agent_is_added_evaluated_and_ranked(server: ServerProcess, labs: Labs) -> None:
    env = {"LABS_URL": server.url, "LABS_API_KEY": server.keys["acme"], "LABS_AGENT_API_KEY": "sk-canary"}
    with ScriptedProvider("Good morning. How did it happen?") as policy:
        added = labs("agents", "add", "Anna", f"{policy.url}/v1", "anna-8b", **env)
        assert added.returncode == 0, added.stderr
        agent_id = added.stdout.strip()
        assert labs("agents", "list", **env).stdout == f"{agent_id}  endpoint  Anna\n"
        collection, scenario = WHERE["collection_slug"], WHERE["scenario_slug"]
        played = labs("agents", "evaluate", agent_id, collection, "--seeds", "2", "--wait", **env)
        assert played.stdout.splitlines()[1].endswith("evaluate_agent  completed  2 of 2 items"), played.stderr
        assert policy.asked[0].headers["authorization"] == "Bearer sk-canary"
    board = labs("leaderboard", collection, "--scenario", scenario, **env).stdout
    assert "  1  " in board
    assert f"Anna  ({agent_id}; 1 scenarios, 2 episodes; pass^1 0.00, pass^2 0.00)" in board
    assert labs("agents", "delete", agent_id, **env).returncode == 0
    refused = labs("agents", "evaluate", agent_id, collection, **env)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
