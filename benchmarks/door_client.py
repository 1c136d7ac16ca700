"""One real client at its door, in an environment of its own: prints the version of its library and the reward it got.

Usage: PYTHON door_client.py CLIENT < CASE, by `benchmarks.door_clients`. The case is JSON: `address` of the server with
the key in it, `plain` address, `key`, `where` (the scenario), `seed`, `asks` of an agent, and the conversation as
`before` and `reply`.
Nothing of Labs is imported here.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import types
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def openenv(case: Case) -> float:
    """Play the episode by OpenEnv's own client; the reward of its last step."""
    from openenv.core import GenericEnvClient

    async def played() -> float:
        async with GenericEnvClient(base_url=f"{case['address']}/api/v1/compat/openenv") as env:
            await env.reset(**case["where"], seed=case["seed"], max_turns=len(case["asks"]))
            steps = [await env.step({"message": ask}) for ask in case["asks"]]
        if [step.done for step in steps] != [False] * (len(steps) - 1) + [True]:
            raise RuntimeError("not done with the last step")
        return float(steps[-1].reward)

    return asyncio.run(played())


def openreward(case: Case) -> float:
    """Play the episode by openreward's session; the reward of its last call."""
    environment = _openreward(case).environments.get(case["where"]["collection_slug"])
    task = environment.get_task("train", 0)
    task.task_spec = _task(case)
    with environment.session(task=task) as session:
        _expect("prompt", len(session.get_prompt()), 2)
        names = [tool.name for tool in session.list_tools()]
        _expect("tools", names[:2], ["reply", "finish"])
        outputs = [session.call_tool("reply", {"message": ask}) for ask in case["asks"]]
    return _of_the_last([(output.finished, output.reward) for output in outputs])


def ors(case: Case) -> float:
    """Play the episode by ors-sdk's session; the reward of its last call."""
    from ors.client import ORS, Task

    with ORS(base_url=case["plain"], api_key=case["key"]) as client:
        environment = client.environment(case["where"]["collection_slug"])
        _expect("splits", environment.list_splits(), ["train", "test"])
        with environment.session(task=Task(environment.name, _task(case))) as session:
            _expect("prompt", len(session.get_prompt()), 2)
            outputs = [session.call_tool("reply", {"message": ask}) for ask in case["asks"]]
    return _of_the_last([(output.finished, output.reward) for output in outputs])


def trl(case: Case) -> float:
    """Play the episode by TRL's rollout environment; what its reward function gives."""
    from trl.experimental.openreward import OpenRewardSpec

    _openreward(case)
    name = "{collection_slug}/{scenario_slug}".format(**case["where"])
    spec = OpenRewardSpec(case["plain"], env_name=name, api_key=case["key"], num_tasks=4)
    _expect("tasks", [len(spec.train_dataset), spec.train_dataset[3]["seed"]], [4, 3])
    rollout = spec.environment_factory()
    rollout.reset(task_index=0, task_spec=_task(case))
    for ask in case["asks"]:
        rollout.reply(message=ask)
    rollout._close()
    [reward] = spec.reward_funcs(environments=[rollout])
    return _of_the_last([(each is not None, each) for each in rollout.rewards]) if rollout.finished else float(reward)


def _openreward(case: Case) -> Any:
    """openreward's client, which otherwise puts `sessions.` before the name of the server."""
    os.environ |= {"OPENREWARD_SESSION_URL": case["plain"], "OPENREWARD_DISABLE_UPDATE_CHECK": "1"}
    from openreward import OpenReward

    return OpenReward(api_key=case["key"], base_url=case["plain"])


def _task(case: Case) -> dict[str, Any]:
    return {**case["where"], "seed": case["seed"], "max_turns": len(case["asks"])}


def _of_the_last(calls: list[tuple[bool, float | None]]) -> float:
    """The reward of the last call, which alone has one."""
    _expect("calls", [(ended, reward is not None) for ended, reward in calls], [(False, False)] * 2 + [(True, True)])
    return float(calls[-1][1] or 0.0)


def _expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise RuntimeError(f"{what}: {found}, not {expected}")


def openai(case: Case) -> float:
    """Ask the judge by OpenAI's SDK."""
    from openai import OpenAI

    client = OpenAI(base_url=f"{case['plain']}/v1", api_key=case["key"])
    model = "judge:{collection_slug}/{scenario_slug}".format(**case["where"])
    messages = [*case["before"], {"role": "assistant", "content": case["reply"]}]
    judged = client.chat.completions.create(model=model, messages=messages)
    return float(json.loads(judged.choices[0].message.content or "")["reward"])


def openrlhf(case: Case) -> float:
    """Ask by OpenRLHF's own function, imported without the parts of the package that need a GPU."""
    found = importlib.util.find_spec("openrlhf")
    if found is None or found.origin is None:
        raise RuntimeError("openrlhf is not installed")
    folder = Path(found.origin).parent
    for name, place in (("openrlhf", folder), ("openrlhf.utils", folder / "utils")):
        package = types.ModuleType(name)
        package.__path__ = [str(place)]
        sys.modules[name] = package
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    executor = SingleTurnAgentExecutor([f"{case['address']}/api/v1/compat/openrlhf/get_reward"])
    prompt = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    label = json.dumps({**case["where"], "messages": case["before"]})
    fetch = executor._fetch_rewards_via_http([f"{prompt}{case['reply']}<|im_end|>"], [prompt], [label])
    [answer] = asyncio.run(fetch)
    return float(answer["rewards"][0])


def fastmcp(case: Case) -> float:
    """Play the episode by the tools of MCP; the reward of the last turn."""
    from fastmcp import Client

    async def played() -> list[dict[str, Any]]:
        async with Client(f"{case['plain']}/mcp", auth=case["key"]) as labs:
            config = {"seed": case["seed"], "max_turns": len(case["asks"])}
            episode = await labs.call_tool("start_episode", {**case["where"], "config": config})
            name = (episode.structured_content or {})["episode_id"]
            turns = [await labs.call_tool("play_turn", {"episode_id": name, "text": ask}) for ask in case["asks"]]
        return [turn.structured_content or {} for turn in turns]

    turns = asyncio.run(played())
    _expect("ended", [turn["episode_complete"] for turn in turns], [False] * (len(turns) - 1) + [True])
    return float(turns[-1]["reward"])


CLIENTS: dict[str, tuple[str, Callable[[Case], float]]] = {
    "OpenEnv `GenericEnvClient`": ("openenv", openenv),
    "ORS, openreward": ("openreward", openreward),
    "ORS, ors-sdk": ("ors-sdk", ors),
    "ORS, TRL `OpenRewardSpec`": ("trl", trl),
    "MCP, FastMCP's client": ("fastmcp", fastmcp),
    "OpenAI SDK": ("openai", openai),
    "OpenRLHF `SingleTurnAgentExecutor`": ("openrlhf", openrlhf),
}


if __name__ == "__main__":
    library, ask = CLIENTS[sys.argv[1]]
    print(json.dumps({"version": version(library), "reward": ask(json.load(sys.stdin))}))
