"""TRL's own GRPOTrainer on a real server: a step of whole conversations, its rewards, tools, a restart, `fork`."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen3ForCausalLM

from tests.learner.small import qwen3_config
from tests.learner.test_chat_templates import TEMPLATES, tokenizer
from tests.trainer_client.live_server import LiveServer
from trainer_client import LabsClient
from trainer_client.chat.tokens import Renderer
from trainer_client.integrations.episodes import Episodes
from trainer_client.integrations.tasks import HELD_OUT, Task
from trainer_client.integrations.trl import LabsRollout, dataset, dimension, reward

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of TRL and what it imports

PATIENT, BLENDER = "clinical-intake/tired-and-dizzy", "customer-support/leaking-blender"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with LiveServer(tmp_path_factory.mktemp("live")) as live:
        yield live


@pytest.fixture(scope="module")
def words() -> Any:
    found = tokenizer(TEMPLATES["qwen2_5"])
    found.eos_token = "<|im_end|>"
    return found


def trainer_of(server: LiveServer, words: Any, folder: Path, scenario: str, rewards: list[Any], **more: Any) -> Any:
    from trl import GRPOConfig, GRPOTrainer

    torch.manual_seed(0)
    model = Qwen3ForCausalLM(qwen3_config(len(words)))
    model.config.max_position_embeddings = 8192
    settings = GRPOConfig(
        output_dir=str(folder),
        num_generations=4,
        per_device_train_batch_size=4,
        max_completion_length=1200,
        max_steps=1,
        learning_rate=1e-2,
        use_cpu=True,
        bf16=False,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )
    return GRPOTrainer(
        model=model,
        args=settings,
        processing_class=words,
        train_dataset=dataset([scenario], [7], base_url=server.url),
        rollout_func=LabsRollout(max_turn_tokens=12, max_turns=3, base_url=server.url, **more),
        reward_funcs=rewards,
    )


def scripted(trainer: Any, words: Any, lines: list[str]) -> list[list[list[int]]]:
    """Let the trainer's policy say these lines, and every other conversation be rude; what it was given."""
    given: list[list[list[int]]] = []

    def say(prompts: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        given.append([list(ids) for ids in prompts])
        line = lines[len(given) - 1]
        said = [line if place % 2 == 0 else "Shut up, I do not care." for place in range(len(prompts))]
        return [[*words.encode(text, add_special_tokens=False), words.eos_token_id] for text in said], None

    trainer._generate_single_turn = say
    return given


def test_a_step_of_whole_conversations_with_the_rewards_of_the_server(
    server: LiveServer, words: Any, tmp_path: Path
) -> None:
    seen: dict[str, Any] = {}

    def watch(prompts: Any, completions: Any, **given: Any) -> list[float | None]:
        seen.update(given)
        return reward(prompts, completions, **given)

    with LabsClient(server.url) as client:
        dimensions = client.scenario(*PATIENT.split("/")).dimensions
        by_dimension = [dimension(each) for each in dimensions]
        trainer = trainer_of(server, words, tmp_path, PATIENT, [watch, *by_dimension])
        given = scripted(trainer, words, ["How long have you been tired?", "Do you have pain?", "Thank you. Goodbye?"])
        before = torch.cat([each.detach().flatten().clone() for each in trainer.model.parameters()])
        trainer.train()
        after = torch.cat([each.detach().flatten() for each in trainer.model.parameters()])
        assert not torch.equal(before, after)
        assert len(seen["labs_reward"]) == 4
        for total, turns, scores, messages in zip(
            seen["labs_reward"], seen["labs_turn_rewards"], seen["labs_scores"], seen["labs_messages"], strict=True
        ):
            assert turns[-1] == total
            assert len(turns) == 3
            assert set(scores) == set(dimensions)
            assert client.evaluate(*PATIENT.split("/"), messages).reward == total
    assert len(set(seen["labs_reward"])) > 1
    logged = trainer.state.log_history[0]
    assert logged["grad_norm"] > 0
    assert logged[f"rewards/labs/{dimensions[0]}/mean"] >= 0
    # A completion is the conversation as the template writes it, and only the policy's turns are trained.
    whole = words.decode(given[2][0])
    messages = [{"role": each["role"], "content": each["content"]} for each in seen["labs_messages"][0][:5]]
    assert whole.endswith("<|im_start|>assistant\n")
    for message in messages:
        assert f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>" in whole


def test_its_own_sampling_plays_and_what_was_not_sampled_is_masked(
    server: LiveServer, words: Any, tmp_path: Path
) -> None:
    trainer = trainer_of(server, words, tmp_path, PATIENT, [reward])
    rollout = trainer.rollout_func
    trainer.model.train()
    row = trainer.train_dataset[0]
    found = rollout([row["prompt"]] * 2, trainer)
    assert found["labs_error"] == [None, None]
    for prompt, completion, mask, messages in zip(
        found["prompt_ids"], found["completion_ids"], found["env_mask"], found["labs_messages"], strict=True
    ):
        assert len(completion) == len(mask)
        assert 0 < sum(mask) <= 3 * 12
        hidden = words.decode([token for token, on in zip(completion, mask, strict=True) if not on])
        assert messages[2]["content"] in hidden
        assert words.decode(prompt).endswith("assistant\n")
    assert trainer.generation_config.max_new_tokens == 1200, "the limit of a turn is taken back"


def test_tools_are_described_called_and_answered(server: LiveServer, words: Any, tmp_path: Path) -> None:
    trainer = trainer_of(server, words, tmp_path, BLENDER, [reward])
    with LabsClient(server.url) as client:
        episode = client.create_episode(*BLENDER.split("/"), seed=7)
    tool = next(each for each in episode.tools if each.options)
    renderer = Renderer(words)
    call = renderer.with_calls("I see.", [{"name": tool.id, "arguments": {"value": (tool.options or [""])[0]}}])
    given = scripted(trainer, words, ["Hello, what happened?", call, "Goodbye."])
    found = trainer.rollout_func([trainer.train_dataset[0]["prompt"]] * 2, trainer)
    assert tool.id in words.decode(found["prompt_ids"][0])
    assert found["labs_messages"][0][3]["tool_calls"][0]["name"] == tool.id
    assert "Received." in words.decode(given[2][0])
    masked = [on for token, on in zip(found["completion_ids"][0], found["env_mask"][0], strict=True) if token]
    assert 0 in masked
    with LabsClient(server.url) as client:
        messages = found["labs_messages"][0]
        assert client.evaluate(*BLENDER.split("/"), messages).reward == found["labs_reward"][0]


def test_a_restart_of_the_server_is_survived(words: Any, tmp_path: Path) -> None:
    with LiveServer(tmp_path) as server:
        episodes = Episodes(server.url, max_turns=3, patience_s=120.0)
        played = episodes.start([Task(*PATIENT.split("/"), 7)] * 2)
        episodes.say([(each, "How long have you been tired?") for each in played])
        server.stop()
        back = threading.Timer(1.0, server.start)
        back.start()
        episodes.say([(each, "Do you have pain?") for each in played])
        back.join()
        assert [each.error for each in played] == [None, None]
        assert [len(each.rewards) for each in played] == [2, 2]
        evaluated = episodes.client.evaluate(*PATIENT.split("/"), played[0].messages)
        assert evaluated.reward == played[0].reward


def in_a_child(episodes: Episodes, results: Any) -> None:
    [episode] = episodes.start([Task(*PATIENT.split("/"), 8)])
    episodes.say([(episode, "How long have you been tired?")])
    results.put((episode.reward, episode.error))


def test_made_before_a_fork_it_is_used_on_both_sides(server: LiveServer) -> None:
    episodes = Episodes(server.url, max_turns=2)
    [mine] = episodes.start([Task(*PATIENT.split("/"), 8)])
    parent = episodes.client
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    children = [fork.Process(target=in_a_child, args=(episodes, results)) for _ in range(2)]
    for child in children:
        child.start()
    episodes.say([(mine, "How long have you been tired?")])
    found = [results.get(timeout=60) for _ in children]
    for child in children:
        child.join(60)
    assert found == [(mine.reward, None)] * 2
    assert episodes.client is parent
    assert pickle.loads(pickle.dumps(episodes))._client is None


def test_a_dataset_names_what_there_is(server: LiveServer) -> None:
    rows = dataset(["clinical-intake"], [1, HELD_OUT], base_url=server.url)
    assert {row["seed"] for row in rows} == {1, HELD_OUT}
    assert len({row["scenario"] for row in rows}) > 1
    assert Task.read(rows[0]["prompt"]) == Task.read(rows[0]["label"])
    with pytest.raises(ValueError, match="has no scenario 'clinical-intake/nobody'; it has "):
        dataset(["clinical-intake/nobody"], [1], base_url=server.url)
    with pytest.raises(ValueError, match="names no task of Labs; make the dataset"):
        Task.read([{"role": "user", "content": "hello"}])


def test_a_template_that_rewrites_the_past_is_refused(server: LiveServer, tmp_path: Path) -> None:
    other = tokenizer(TEMPLATES["qwen3_5_think"])
    other.eos_token = "<|im_end|>"
    trainer = trainer_of(server, other, tmp_path, PATIENT, [reward])
    with pytest.raises(ValueError, match="writes the past otherwise from turn to turn"):
        trainer.rollout_func([trainer.train_dataset[0]["prompt"]], trainer)


def test_messages_are_json(server: LiveServer) -> None:
    episodes = Episodes(server.url, max_turns=2)
    [episode] = episodes.start([Task(*PATIENT.split("/"), 9)])
    episodes.say([(episode, "<think>Hm.</think>How long have you been tired?")])
    assert "Hm." not in json.dumps([message.model_dump() for message in episode.messages])
    episodes.abandon([episode])
    assert episode.terminal_reason == "abandoned"
