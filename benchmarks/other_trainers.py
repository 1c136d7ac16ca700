"""One conversation through the environment of each trainer that is installed; its reward beside `/evaluate`'s.

    python -m benchmarks.other_trainers http://127.0.0.1:8321 path/to/a/tokenizer

The classes of verl 0.9.1, OpenRLHF 0.11.2 and verifiers 0.4.0 play it themselves, on scripted turns in place of an
engine. They need other versions of some packages than Labs does: install each into an environment of its own. TRL is in
the tests.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from trainer_client import LabsClient
from trainer_client.integrations.tasks import Task
from trainer_client.wire import Message

TASK = Task("clinical-intake", "tired-and-dizzy", 7)
LINES = (
    "<think>Hm.</think>I am sorry to hear that. How long have you been so tired?",
    "Do you take any medicine, such as painkillers?",
    "Thank you for telling me. I will let the doctor see you today.",
)


class Engine:
    """Says the lines, as token ids or as vLLM's outputs."""

    def __init__(self, tokenizer: Any, lines: Sequence[str] = LINES) -> None:
        self._tokenizer = tokenizer
        self._left = list(lines)

    def next_ids(self) -> list[int]:
        """The next turn with its end."""
        ids = self._tokenizer.encode(self._left.pop(0), add_special_tokens=False)
        return [*ids, self._tokenizer.convert_tokens_to_ids("<|im_end|>")]


def with_verl(url: str, tokenizer: Any) -> tuple[list[float], float, list[int]]:
    """(reward after each turn, reward, mask)."""
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap

    from trainer_client.integrations.verl import LabsAgentLoop, rows

    engine = Engine(tokenizer)

    async def generate(**_: Any) -> Any:
        ids = engine.next_ids()
        return SimpleNamespace(token_ids=ids, log_probs=[-1.0] * len(ids))

    config = OmegaConf.create({"actor_rollout_ref": {"rollout": {"response_length": 4096, "prompt_length": 4096}}})
    data = OmegaConf.create({"apply_chat_template_kwargs": {}, "mm_processor_kwargs": {}})
    with LabsClient(url) as client:
        [row] = rows(client, [f"{TASK.collection}/{TASK.scenario}"], [TASK.seed])

    async def play() -> Any:
        loop = LabsAgentLoop(
            DictConfigWrap(config),
            SimpleNamespace(generate=generate),
            tokenizer,
            None,
            None,
            DictConfigWrap(data),
            base_url=url,
            max_turns=len(LINES),
        )
        return await loop.run({}, raw_prompt=row["prompt"])

    output = asyncio.run(play())
    if len(output.response_ids) != len(output.response_mask) or 0 not in output.response_mask:
        raise ValueError("the persona's tokens are not masked")
    return output.extra_fields["turn_scores"], output.reward_score, output.response_mask


def with_verl_reward(url: str, tokenizer: Any) -> tuple[list[float], float, list[int]]:
    """(nothing, reward, nothing): the reward manager, asked for the last turn of the conversation."""
    import os

    import torch
    from omegaconf import OmegaConf
    from verl.trainer.ppo.reward import load_reward_manager

    os.environ["LABS_URL"] = url
    place = {"source": "importlib", "name": "LabsRewardManager"}
    place["module"] = {"path": "pkg://trainer_client.integrations.verl_reward"}  # type: ignore[assignment]
    custom = {"path": None, "name": "compute_score"}
    config = OmegaConf.create({"reward": {"reward_manager": place, "custom_reward_function": custom}})
    *before, last = [{"role": each.role, "content": each.content} for each in conversation(url)]
    ids = torch.tensor(tokenizer.encode(last["content"], add_special_tokens=False))
    row = {"data_source": f"{TASK.collection}/{TASK.scenario}", "raw_prompt": before}
    item = SimpleNamespace(batch={"responses": ids, "attention_mask": torch.ones_like(ids)}, non_tensor_batch=row)
    found = asyncio.run(load_reward_manager(config, tokenizer).run_single([item]))
    return [], found["reward_score"], []


def with_openrlhf(url: str, tokenizer: Any, path: str) -> tuple[list[float], float, list[int]]:
    """(reward after each turn, reward, mask)."""
    from trainer_client.integrations.openrlhf import executor_for

    engine = Engine(tokenizer)
    seen: list[float] = []

    async def generate(tokens: list[int], *_: Any, **__: Any) -> Any:
        ids = engine.next_ids()
        text = tokenizer.decode(ids, skip_special_tokens=False)
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=ids, text=text, finish_reason="stop", logprobs=None)])

    executor = executor_for(path, base_url=url, max_turns=len(LINES))()
    step = executor.agent_instance_cls.step

    async def watched(self: Any, states: dict[str, Any], **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = await step(self, states, **more)
        seen.append(float(found["scores"]))
        return found

    executor.agent_instance_cls.step = watched
    sampling = SimpleNamespace(max_tokens=64, logprobs=None)
    found = asyncio.run(
        executor.execute(TASK.line(), TASK.line(), sampling, 8192, tokenizer, SimpleNamespace(generate=generate))
    )
    mask = [0] * len(found["observation_tokens"])
    for start, end in found["action_ranges"]:
        mask[start:end] = [1] * (end - start)
    return seen, float(found["reward"]), mask


def with_verifiers(url: str) -> tuple[list[float], float, list[int]]:
    """(reward after each turn, reward, nothing: tokens are verifiers' own)."""
    from trainer_client.integrations.verifiers import LabsConfig, LabsEnv, LabsTaskset

    config = LabsConfig(
        id="labs",
        base_url=url,
        scenarios=[f"{TASK.collection}/{TASK.scenario}"],
        seeds=1,
        first_seed=TASK.seed,
        max_turns=len(LINES),
    )
    [task] = LabsTaskset(config).load()
    left: list[str] = list(LINES)
    rewards: list[float] = []
    metrics: dict[str, float] = {}

    class Interaction:
        trace = SimpleNamespace(
            record_reward=lambda _, value: rewards.append(value),
            record_metric=metrics.__setitem__,
        )

        async def __aenter__(self) -> Interaction:
            return self

        async def __aexit__(self, *_: object) -> None:
            return None

        async def turn(self, heard: str) -> Any:
            return SimpleNamespace(terminated=False, last_reply=left.pop(0))

    agents = SimpleNamespace(player=SimpleNamespace(interaction=lambda _: Interaction()))
    asyncio.run(LabsEnv.run(SimpleNamespace(), task, agents))  # type: ignore[arg-type]
    return [metrics[f"labs/turn_{number}"] for number in range(1, len(LINES) + 1)], rewards[0], []


def conversation(url: str) -> list[Message]:
    """The same conversation up to the last turn of the policy."""
    from trainer_client.integrations.episodes import Episodes

    episodes = Episodes(url, max_turns=len(LINES))
    [episode] = episodes.start([TASK])
    for line in LINES:
        episodes.say([(episode, line)])
    last = max(place for place, each in enumerate(episode.messages) if each.role == "assistant")
    return list(episode.messages[: last + 1])


def expected(url: str) -> float:
    """The reward of the same conversation by `/evaluate`."""
    with LabsClient(url) as client:
        return client.evaluate(TASK.collection, TASK.scenario, conversation(url)).reward


def _tokenizer(path: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(path)


def main() -> None:
    """Play with each, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("tokenizer", help="a folder with a tokenizer whose template is ChatML")
    options = parser.parse_args()
    reward = expected(options.url)
    print(f"/evaluate: {reward:.6f}")
    ways: dict[str, Callable[[], tuple[list[float], float, list[int]]]] = {
        "verl": lambda: with_verl(options.url, _tokenizer(options.tokenizer)),
        "verl, reward manager": lambda: with_verl_reward(options.url, _tokenizer(options.tokenizer)),
        "openrlhf": lambda: with_openrlhf(options.url, _tokenizer(options.tokenizer), options.tokenizer),
        "verifiers": lambda: with_verifiers(options.url),
    }
    for name, way in ways.items():
        if importlib.util.find_spec(name.partition(",")[0]) is None:
            print(f"{name}: not installed")
            continue
        turns, total, mask = way()
        same = "the same" if abs(total - reward) < 1e-6 else "ANOTHER"
        print(f"{name}: {total:.6f}, {same}; by turn {turns}; {sum(mask)} of {len(mask)} tokens are trained")


if __name__ == "__main__":
    main()
