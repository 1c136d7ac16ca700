"""Environments and agents to build with, alone."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.trainer_client.scripted_model import model
from trainer_client.agent_models import MultiTurnAgent, StubAgent, ToolAgent
from trainer_client.environments import ConversationEnvironment, TaskEnvironment, run_episode
from trainer_client.rewards import LengthReward
from trainer_client.wire.episodes import ToolDefinition

HELLO = [{"role": "user", "content": "Hello."}]


def answer(messages: Any) -> str:
    """Somebody who tells a number when asked for one."""
    return "It is 4711." if "number" in messages[-1]["content"] else "I see."


def test_a_conversation_ends_after_its_turns() -> None:
    environment = ConversationEnvironment(answer, LengthReward(at_least=3), max_turns=2)
    played = run_episode(StubAgent(["What is your number?", "Yes."]), environment)
    assert [message["content"] for message in played.messages] == [
        "Hello.",
        "What is your number?",
        "It is 4711.",
        "Yes.",
        "I see.",
    ]
    assert [result.reward for result in played.results] == [1.0, pytest.approx(2 / 3)]
    assert played.reward == pytest.approx(2 / 3)


def test_an_empty_answer_ends_a_conversation() -> None:
    environment = ConversationEnvironment(lambda _: "", LengthReward())
    assert len(run_episode(StubAgent(), environment).results) == 1


def test_an_opening_may_depend_on_the_seed() -> None:
    environment = ConversationEnvironment(answer, LengthReward(), opening=lambda seed: f"I am number {seed}.")
    assert environment.reset(3) == "I am number 3."


def test_a_task_ends_when_its_goal_is_reached() -> None:
    environment = TaskEnvironment(answer, "the number is known", lambda talk: "4711" in talk[-1]["content"])
    played = run_episode(StubAgent(["Hello.", "What is the number?", "And now?"]), environment)
    assert [result.reward for result in played.results] == [0.0, 1.0]


def test_a_step_before_a_reset_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="reset"):
        ConversationEnvironment(answer, LengthReward()).step("Hello.")


def test_a_coroutine_is_no_agent_of_run_episode() -> None:
    async def agent(messages: Any) -> str:
        return "Hello."

    with pytest.raises(TypeError, match="play_async"):
        run_episode(agent, ConversationEnvironment(answer, LengthReward()))  # type: ignore[arg-type]


async def test_a_model_behind_an_endpoint_speaks_without_its_thoughts() -> None:
    with model("<think>Be kind.</think>Hello, how are you?") as (url, asked):
        agent = MultiTurnAgent(url, "tiny", system="You are kind.", temperature=0.5)
        assert (await agent(HELLO)).content == "Hello, how are you?"  # type: ignore[arg-type]
        await agent.aclose()
    assert asked[0]["messages"] == [{"role": "system", "content": "You are kind."}, *HELLO]
    assert asked[0]["temperature"] == 0.5


async def test_a_tool_agent_offers_tools_and_calls_them() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": '{"value": "full"}'}}
    tool = ToolDefinition(
        id="refund", name="Refund", type="decision", mode="options", description="Pay back.", options=["full", "half"]
    )
    with model({"role": "assistant", "content": None, "tool_calls": [call]}, "Done.") as (url, asked):
        agent = ToolAgent(url, "tiny", tools=[tool])
        reply = await agent(HELLO)  # type: ignore[arg-type]
        assert (reply.content, reply.tool_calls[0].input) == ("", {"value": "full"})
        await agent([*HELLO, reply.message(), {"role": "user", "content": "Thanks."}])  # type: ignore[list-item]
        await agent.aclose()
    assert asked[0]["tools"][0]["function"]["name"] == "refund"
    assert [message["role"] for message in asked[1]["messages"]] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize("arguments", ["{", '"full"', "[1]"])
async def test_arguments_that_are_no_object_are_an_error(arguments: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": arguments}}
    with model({"role": "assistant", "content": "", "tool_calls": [call]}) as (url, _):
        agent = MultiTurnAgent(url, "tiny")
        with pytest.raises(ValueError, match="no JSON object"):
            await agent(HELLO)  # type: ignore[arg-type]
        await agent.aclose()


async def test_an_endpoint_that_fails_makes_nothing_up() -> None:
    with model(503) as (url, _):
        agent = MultiTurnAgent(url, "tiny")
        with pytest.raises(httpx2.HTTPStatusError):
            await agent(HELLO)  # type: ignore[arg-type]
        await agent.aclose()


def test_a_stub_says_its_last_line_from_then_on() -> None:
    agent = StubAgent(["One.", "Two."])
    said = [{"role": "assistant", "content": "x"}]
    assert [agent(HELLO + said * turn) for turn in range(3)] == ["One.", "Two.", "Two."]  # type: ignore[arg-type]
