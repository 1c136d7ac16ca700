"""One real client at its door, in an environment of its own: prints the version of its library and the reward it got.

Usage: PYTHON door_client.py CLIENT < CASE, by `benchmarks.door_clients`. The case is JSON: `address` of the server with
the key in it, `key`, `where` (the scenario), `asks` of an agent, and the conversation as `before` and `reply`.
Nothing of Labs is imported here.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
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


CLIENTS: dict[str, tuple[str, Callable[[Case], float]]] = {
    "OpenEnv `GenericEnvClient`": ("openenv", openenv),
    "OpenAI SDK": ("openai", openai),
    "OpenRLHF `SingleTurnAgentExecutor`": ("openrlhf", openrlhf),
}


if __name__ == "__main__":
    library, ask = CLIENTS[sys.argv[1]]
    print(json.dumps({"version": version(library), "reward": ask(json.load(sys.stdin))}))
