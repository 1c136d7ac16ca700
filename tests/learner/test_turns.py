"""Tool calls, their results and thoughts: the same in a rollout, in a file, at an endpoint, and to the template."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from learner.conversations import as_segments, read_conversations, read_pairs
from learner.generate.session import Completion, Continuation
from learner.retry import OutageRetryPolicy
from learner.rollout import RolloutCollector, RolloutStage
from learner.serving import PolicyServer
from learner.single_turn import SingleTurnPrompt
from learner.stored import StoredPolicy
from learner.types import Trajectory
from reward_server.agents.telling import told
from tests.learner.small import policy
from tests.learner.stage import StageServer, client_of
from tests.learner.test_chat_templates import TEMPLATES, is_vision, tokenizer
from trainer_client.chat.dialogue import ChatError, read_chat
from trainer_client.chat.thoughts import SILENCE, aloud
from trainer_client.chat.tokens import Renderer, TemplateError
from trainer_client.chat.tools import for_template
from trainer_client.wire.episodes import ToolDefinition

TOOL = {"id": "plan", "type": "decision", "name": "The plan", "mode": "options", "options": ["tell", "wait"]}
TOOLS = for_template([ToolDefinition.model_validate(TOOL)])
CALL = {"name": "plan", "arguments": {"value": "tell"}}


class Desk(StageServer):
    """A stage with a tool."""

    def _create(self, content: dict[str, Any]) -> httpx2.Response:
        return httpx2.Response(200, json={**super()._create(content).json(), "tools": [TOOL]})


class Scripted:
    """A sampler that says the same lines in every episode, and what it was given."""

    context = None
    max_tokens = 512

    def __init__(self, renderer: Renderer, words: Any, lines: list[str]) -> None:
        self._renderer, self._words, self._lines = renderer, words, lines

    def start(self) -> Scripted:
        self._turn = -1
        return self

    def step(self, continuations: Mapping[int, Continuation]) -> dict[int, Completion]:
        self._turn += 1
        ids = (*self._words.encode(self._lines[self._turn], add_special_tokens=False), self._renderer.end_id)
        return {number: Completion(ids, (-1.0,) * len(ids), ended=True) for number in continuations}


def played(name: str, lines: list[str], server: StageServer) -> tuple[Trajectory, Any, Renderer]:
    """An episode in which the policy says these lines, by the template of this name."""
    words = tokenizer(TEMPLATES[name])
    renderer = Renderer(words)

    async def go() -> Trajectory:
        async with client_of(server) as client:
            stage = RolloutStage("c", "s", system="You help.")
            sampler = Scripted(renderer, words, lines)
            rollouts = RolloutCollector(client, sampler, renderer, stage, waves=1, retry_policy=OutageRetryPolicy(0.0))  # type: ignore[arg-type]
            return (await rollouts.collect([1], 1, (0,))).trajectories[0]

    return asyncio.run(go()), words, renderer


def calling_line(name: str) -> str:
    """A turn that says something and makes the call, as this template writes it."""
    return Renderer(tokenizer(TEMPLATES[name])).within("You help.", TOOLS).with_calls("Well.", [CALL])


ALIKE = [
    "qwen2_5",
    "qwen3",
    "qwen3_5_nothink",
    "qwen3_instruct_2507",
    "qwen3_vl",
]
"""Templates whose calls are plain text, so that what is sampled is what the template writes of them."""


@pytest.mark.parametrize("name", ALIKE)
def test_what_follows_a_call_is_what_the_template_writes_where_the_server_plays_an_agent(name: str) -> None:
    server = Desk(turns=3)
    episode, words, _ = played(name, [calling_line(name), "Hm.", "Bye."], server)
    call = {"name": "plan", "input": CALL["arguments"]}
    log = [
        {"role": "user", "content": "hello, I am number 1"},
        {"role": "assistant", "content": "Well.", "tool_calls": [call]},
        *server.logs["ep_1"][2:5],
    ]
    shown = told("You help.", log)
    shown[2]["tool_calls"][0]["function"]["arguments"] = CALL["arguments"]  # vLLM reads them before the template
    template = words.apply_chat_template(shown, tokenize=False, add_generation_prompt=True, tools=TOOLS)
    assert "Received." in template
    given = episode.rows[-1][:-1]
    assert words.decode([token for segment in given for token in segment.ids]) == template


@pytest.mark.parametrize("name", [name for name in TEMPLATES if not is_vision(name)])
def test_a_file_with_tool_messages_is_what_a_rollout_records(name: str) -> None:
    server = Desk(turns=3)
    episode, words, renderer = played(name, [calling_line(name), "Hm.", "Bye."], server)
    lines = [message["content"] for message in server.logs["ep_1"]]
    function = {"id": "c", "type": "function", "function": {"name": "plan", "arguments": json.dumps(CALL["arguments"])}}
    answered = [{"role": "tool", "tool_call_id": "c", "content": "Received."}]
    for results in ([], answered):
        messages = [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": lines[0]},
            {"role": "assistant", "content": "Well.", "tool_calls": [function]},
            *results,
            {"role": "user", "content": lines[2]},
            {"role": "assistant", "content": "Hm."},
            {"role": "user", "content": lines[4]},
            {"role": "assistant", "content": "Bye."},
        ]
        segments = as_segments(read_chat(messages), renderer, words, tools=TOOLS)
        if not renderer.opens_thought:  # else the file's turns close the thought that the template opens
            assert [segment.ids for segment in segments] == [segment.ids for segment in episode.segments]
        learned = "".join(words.decode(list(each.ids)) for each in segments if each.sampled)
        assert "Received." not in learned


def test_the_assistant_may_go_on_after_its_results(tmp_path: Path) -> None:
    words = tokenizer(TEMPLATES["qwen2_5"])
    call = {"function": CALL}
    messages = [
        {"role": "user", "content": "It leaks."},
        {"role": "assistant", "content": None, "tool_calls": [call, call]},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
        {"role": "assistant", "content": "Done."},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"messages": messages, "tools": TOOLS}) + "\n")
    [segments] = read_conversations(path, Renderer(words), words)
    whole = words.apply_chat_template(
        [{**message, "content": message["content"] or ""} for message in messages], tokenize=False, tools=TOOLS
    )
    assert whole.rstrip("\n") == words.decode([token for segment in segments for token in segment.ids])
    row = {"prompt": messages[:4], "chosen": "Done.", "rejected": "No."}
    path.write_text(json.dumps({**row, "tools": TOOLS}) + "\n")
    [pair] = read_pairs(path, Renderer(words), words)
    assert pair.chosen[0].ids == segments[0].ids + segments[1].ids + segments[2].ids
    plain = tokenizer(TEMPLATES["phi3"])
    with pytest.raises(TemplateError, match="no place for `tool` messages"):
        as_segments(read_chat(messages), Renderer(plain), plain)


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "tool", "content": "x"}],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "tool", "content": "c"}],
        [{"role": "user", "content": "a"}, {"role": "tool", "content": "c"}],
    ],
)
def test_a_result_without_its_call_is_refused(messages: list[dict[str, str]]) -> None:
    with pytest.raises(ChatError, match="must follow the assistant message that made the call"):
        read_chat(messages)


@pytest.mark.parametrize(
    ("text", "opened", "heard"),
    [
        ("Hello.", False, "Hello."),
        (" Hello.\n", False, " Hello.\n"),
        ("<think>\nhm\n</think>\n\nHello.", False, "Hello."),
        ("hm\n</think>\n\nHello.", True, "Hello."),
        ("hm\n</think>\n\nHello.", False, "Hello."),
        ("Well. <think>hm</think> Hello. <think>more", False, "Well.  Hello."),
        ("<think>never ends", False, SILENCE),
        ("never ends", True, SILENCE),
        ("<think></think>", False, SILENCE),
        ("", False, ""),
    ],
)
def test_what_is_thought_is_not_said_aloud(text: str, opened: bool, heard: str) -> None:
    assert aloud(text, opened=opened) == heard


def test_a_thought_is_trained_and_the_persona_never_hears_it() -> None:
    server = Desk(turns=2)
    thinking = "<think>\nI will call <tool_call>" + json.dumps({"name": "plan", "arguments": {"value": "wait"}})
    lines = [thinking + "</tool_call>\n</think>\n\nHello.", "<think>\nand then"]
    episode, words, _ = played("qwen3", lines, server)
    assert [each["content"] for each in server.logs["ep_1"][1::2]] == ["Hello.", SILENCE]
    assert "think" not in json.dumps(server.received)
    assert episode.tool_calls == 0
    sampled = [words.decode(list(each.ids)) for each in episode.segments if each.sampled]
    assert [text.removesuffix("<|im_end|>") for text in sampled] == lines
    # The template drops the thought from the past: what comes then is a row of its own.
    assert [segment.fork for segment in episode.segments] == [False, False, True, False]
    assert "hm" not in words.decode(list(episode.segments[2].ids))


@pytest.mark.parametrize("name", ["qwen3", "qwen3_5_think", "qwen2_5"])
@pytest.mark.parametrize("beside", [True, False], ids=["reasoning_content", "in the text"])
def test_a_thought_of_a_file_is_learned_as_the_template_writes_it(name: str, beside: bool) -> None:
    words = tokenizer(TEMPLATES[name])
    said = {"role": "assistant", "content": "Since when?", "reasoning_content": "hm"}
    if not beside:
        said = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSince when?"}
    asked = {"role": "user", "content": "It leaks."}
    given, learned = as_segments(read_chat([asked, said]), Renderer(words), words)
    whole = words.decode([*given.ids, *learned.ids])
    inside = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSince when?"}
    assert whole == words.apply_chat_template([asked, inside], tokenize=False).removesuffix("\n")
    assert "hm" in words.decode(list(learned.ids))


def test_a_prompt_of_a_file_and_a_served_chat_are_rendered_alike() -> None:
    words = tokenizer(TEMPLATES["qwen2_5"])
    renderer = Renderer(words)
    messages = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "It leaks."},
        {"role": "assistant", "content": "Well.", "tool_calls": [{"function": CALL}]},
        {"role": "tool", "content": "Received."},
        {"role": "user", "content": "Thanks."},
    ]
    dialogue = read_chat(messages)
    here = renderer.within(dialogue.system, TOOLS)
    template = words.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, tools=TOOLS)
    prompt = SingleTurnPrompt(here, dialogue)
    assert words.decode(prompt.ids()) == template
    sent = [message.model_dump(exclude_none=True) for message in prompt.messages()]
    assert sent[1] == {
        "role": "assistant",
        "content": "Well.",
        "tool_calls": [{"name": "plan", "input": {"value": "tell"}}],
    }
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]


def test_a_served_policy_takes_tools_and_answers_with_calls_and_log_probabilities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from learner import serving
    from learner.generate import hf

    words = tokenizer(TEMPLATES["qwen2_5"])
    model = policy(words).model
    model.resize_token_embeddings(len(words))
    model.config.max_position_embeddings = 2048
    renderer = Renderer(words)
    line = "<think>hm</think>" + renderer.with_calls("Well.", [CALL])

    class Fixed(hf.HfGenerator):
        def start(self) -> Any:
            return Scripted(renderer, words, [line]).start()

    monkeypatch.setattr(serving, "HfGenerator", Fixed)
    speaker = PolicyServer(StoredPolicy(model, words, renderer, "small", max_tokens=5))
    body = {"messages": [{"role": "user", "content": "It leaks."}], "tools": TOOLS}
    reply = speaker.reply(body)
    message = reply.message()
    assert (message["content"], message["reasoning_content"], reply.finish_reason) == ("Well.", "hm", "tool_calls")
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == CALL["arguments"]
    assert reply.turn.logp == (-1.0,) * len(reply.turn.ids)
