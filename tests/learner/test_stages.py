"""Mixtures of scenarios, held-out scenarios, cards, tools: who plays where, and what the policy is told there."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from learner.config import ConfigError, read
from learner.stages import Stages, open_stages
from tests.learner.small import tokenizer
from tests.learner.stage import StageServer, client_of
from trainer_client.chat.tokens import Renderer
from trainer_client.chat.tools import for_template, message_of
from trainer_client.wire.episodes import ToolDefinition


class Library(StageServer):
    def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
        if path.rstrip("/").endswith("/catalog"):
            card = {"max_turns": 4, "tools": 0}
            collections = [
                {
                    "slug": collection,
                    "name": collection,
                    "description": "",
                    "version": "1",
                    "scenarios": [
                        {
                            "slug": slug,
                            "name": slug.upper(),
                            "description": f"About {slug}.",
                            **card,
                            "dimensions": ["empathy", f"of_{slug}"],
                        }
                        for slug in slugs
                    ],
                }
                for collection, slugs in (("c", ("s", "t")), ("d", ("u",)))
            ]
            return httpx2.Response(200, json={"collections": collections, "request_id": "req_1"})
        return super().answer(method, path, body)


def opened(server: dict[str, Any], **sections: Any) -> Stages:
    async def go() -> Stages:
        async with client_of(Library()) as client:
            return await open_stages(read({"server": server, **sections}), client)

    return asyncio.run(go())


def test_a_collection_stands_for_its_scenarios_and_held_out_ones_are_played_in_evaluations_alone() -> None:
    stages = opened({"scenarios": ["c"], "held_out": ["d/u"], "max_turns": 9})
    assert [stage.name for stage in stages.training] == ["c/s", "c/t"]
    assert [stage.name for stage in stages.held_out] == ["d/u"]
    assert {stage.max_turns for stage in stages.training} == {4}, "no more turns than a scenario has"
    assert [stages.of(number).name for number in range(3)] == ["c/s", "c/t", "c/s"]


@pytest.mark.parametrize("server", [{"collection": "c", "scenario": "s"}, {"scenarios": ["c/s", "c/t"]}])
def test_a_weight_of_a_dimension_that_no_training_scenario_has_is_refused_before_anything_is_played(
    server: dict[str, Any],
) -> None:
    assert opened(server, algorithm={"name": "gdpo", "dimensions": {"empathy": 2.0, "of_s": 0.5}}).of(0).name == "c/s"
    with pytest.raises(ConfigError, match=r"algorithm\.dimensions\.empaty: .* did you mean 'empathy'"):
        opened(server, algorithm={"name": "gdpo", "dimensions": {"empaty": 2.0}})
    with pytest.raises(ConfigError, match=r"dimension 'of_u' is unknown"):
        opened({**server, "held_out": ["d/u"]}, algorithm={"name": "gdpo", "dimensions": {"of_u": 1.0}})


def test_the_card_is_the_system_prompt_of_a_given_model_and_none_of_a_tiny_one() -> None:
    assert opened({"collection": "c", "scenario": "s"}).of(0).system is None
    given = opened({"collection": "c", "scenario": "s"}, model={"path": "some/model"})
    assert given.of(0).system == "S. About s."
    assert opened({"collection": "c", "scenario": "s", "system": "Be kind."}).of(0).system == "Be kind."


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({"scenarios": ["c", "e"]}, r"server\.scenarios: collection 'e' is unknown"),
        ({"scenarios": ["c/z"]}, r"server\.scenarios: 'c/z' is unknown"),
        ({"scenarios": ["c"], "held_out": ["c/t"]}, r"server\.held_out: c/t is also a training scenario"),
        ({"reward_config": {"composit": {}}}, r"server\.reward_config\.composit: unknown; did you mean 'composite'"),
    ],
)
def test_what_the_server_does_not_have_is_named(server: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(server)


TOOLS = [
    ToolDefinition(id="plan", type="decision", name="The plan", mode="options", options=["tell", "wait"]),
    ToolDefinition(id="note", type="artifact", name="A note", mode="json_schema", json_schema={"type": "object"}),
]


def test_tools_go_where_the_template_has_a_place_and_into_the_system_prompt_where_not() -> None:
    tools = for_template(TOOLS)
    assert tools[0]["function"]["parameters"]["properties"]["value"]["enum"] == ["tell", "wait"]
    words = tokenizer()
    seen: list[Any] = []
    render = words.apply_chat_template

    def spy(messages: Any, **options: Any) -> str:
        seen.append((messages, options.get("tools")))
        return str(render(messages, **options))

    words.apply_chat_template = spy
    Renderer(words).within("tell me why", tools).opening("hello")
    assert seen[-1][1] is None
    assert "<tool_call>" in seen[-1][0][0]["content"]
    assert seen[-1][0][0]["content"].startswith("tell me why")
    words.chat_template = "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}" + words.chat_template
    Renderer(words).within(None, tools).opening("hello")
    assert seen[-1][1] == tools
    assert seen[-1][0][0]["role"] == "user"


@pytest.mark.parametrize(
    "written",
    [
        'Done. <tool_call>\n{"name": "plan", "arguments": {"value": "tell"}}\n</tool_call>',
        '{"name": "plan", "parameters": {"value": "tell"}}',
        '<|python_tag|>{"name": "plan", "parameters": {"value": "tell"}}',
        '[TOOL_CALLS][{"name": "plan", "arguments": {"value": "tell"}}]',
        '[{"name": "plan", "arguments": {"value": "tell"}}]',
        "<tool_call><function=plan><parameter=value>\ntell\n</parameter></function></tool_call>",
        '<tool_call>{"name": "plan", "arguments": "{\\"value\\": \\"tell\\"}"}</tool_call>',
    ],
)
def test_calls_are_read_as_models_write_them(written: str) -> None:
    message = message_of(written)
    assert message.tool_calls is not None
    assert [(call.name, call.input) for call in message.tool_calls] == [("plan", {"value": "tell"})]
    assert message.content == ("Done." if written.startswith("Done") else "")


@pytest.mark.parametrize(
    "written",
    [
        "tell me {more}",
        "<tool_call>{</tool_call>",
        '<tool_call>{"arguments": {}}</tool_call>',
        "{}",
        "[TOOL_CALLS][]",
        "[{]}]",
        "[{}]",
    ],
)
def test_what_is_no_call_stays_text(written: str) -> None:
    message = message_of(written)
    assert message.tool_calls is None
    assert message.content == written
