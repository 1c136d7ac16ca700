"""What a lab can own, and how to make one of each: what the tests of every route ask for.

A route that names a new kind of thing fails those tests until the thing has a line here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from reward_server.ids import IdPrefix, new_comparison_id, new_episode_id, new_evaluation_id, new_id
from tests.contract.house import WHERE, Client, Json

OWNED: dict[str, Callable[[Client], Awaitable[str]]] = {}
"""How a lab comes to have one, by the name that routes and bodies give its id."""
EVERYBODYS = {
    "collection_slug": WHERE["collection_slug"],
    "scenario_slug": WHERE["scenario_slug"],
    "persona_slug": "plainspoken",
    "reward_model_id": "rm_000000000000",
    "calibration_id": "cal_000000000000",
    # Operators see all labs; nobody else sees one.
    "lab_id": "nobody",
    "key_id": "a" * 16,
    # A collection of the lab's own; of another's, nobody is told.
    "collection": "nothing-of-mine",
    "environment": WHERE["collection_slug"],
    "model": f"judge:{WHERE['collection_slug']}/{WHERE['scenario_slug']}",
}
"""What no lab owns, with an example each."""
NOT_REFERENCES = {"request_id", "tool_call_id", "task_id"}
"""Names that end like those of things and name none."""
BODIES: dict[str, Callable[[Json], Json]] = {
    "POST /api/v1/batch/turns": lambda ids: {
        "items": [{"episode_id": ids["episode_id"], "messages": [{"role": "user", "content": "Hello."}]}]
    },
    "POST /api/v1/preferences": lambda ids: {"comparison_id": ids["comparison_id"], "winner": "a"},
    "POST /api/v1/jobs": lambda ids: {"type": "evaluate_agent", "agent": {"agent_id": ids["agent_id"]}, **WHERE},
    "POST /api/v1/criterion-labels": lambda ids: {
        "conversation_id": ids["conversation_id"],
        "criterion": "D1.1",
        "met": True,
    },
    "POST /api/v1/chat": lambda ids: {
        "model": ids["agent_id"],
        "messages": [{"role": "user", "content": "Hello."}],
    },
    "POST /api/v1/agents/{agent_id}/chat": lambda _: {"messages": [{"role": "user", "content": "Hello."}]},
    "POST /api/v1/episodes/{episode_id}/turns": lambda _: {"messages": [{"role": "user", "content": "Hello."}]},
}
"""Bodies that get as far as looking up what they name, of calls that have one."""
UNKNOWN: dict[str, Callable[[], str]] = {
    "episode_id": new_episode_id,
    "evaluation_id": new_evaluation_id,
    "conversation_id": new_evaluation_id,
    "file_id": lambda: new_id(IdPrefix.FILE),
    "job_id": lambda: new_id(IdPrefix.JOB),
    "webhook_id": partial(new_id, IdPrefix.WEBHOOK),
    "agent_id": partial(new_id, IdPrefix.AGENT),
    "message_id": partial(new_id, IdPrefix.MESSAGE),
    "comparison_id": new_comparison_id,
    "training_run_id": partial(new_id, IdPrefix.TRAINING_RUN),
}
"""Ids that nobody has."""


def owned(name: str) -> Callable[[Callable[[Client], Awaitable[str]]], Callable[[Client], Awaitable[str]]]:
    """Register how to make one."""

    def keep(make: Callable[[Client], Awaitable[str]]) -> Callable[[Client], Awaitable[str]]:
        OWNED[name] = make
        return make

    return keep


@owned("episode_id")
async def an_episode(client: Client) -> str:
    return str((await client.create())["episode_id"])


@owned("conversation_id")
async def a_conversation(client: Client) -> str:
    return await an_evaluation(client)


@owned("evaluation_id")
async def an_evaluation(client: Client) -> str:
    messages = [{"role": "assistant", "content": "Hello."}]
    return str((await client.ok("POST", "/evaluate", {**WHERE, "messages": messages}))["evaluation_id"])


@owned("file_id")
async def a_file(client: Client) -> str:
    return str((await client.ok("POST", "/files", content=b"{}\n"))["file_id"])


@owned("job_id")
async def a_job(client: Client) -> str:
    return str((await client.ok("POST", "/jobs", {"type": "evaluate", "items": [{}]}))["job_id"])


@owned("comparison_id")
async def a_comparison(client: Client) -> str:
    sides = [[{"role": "user", "content": "Hello."}, {"role": "assistant", "content": text}] for text in ("Hi.", "No.")]
    body = {**WHERE, "response_a": {"messages": sides[0]}, "response_b": {"messages": sides[1]}}
    return str((await client.ok("POST", "/compare", body))["comparison_id"])


@owned("webhook_id")
async def a_webhook(client: Client) -> str:
    return str((await client.ok("POST", "/webhooks", {"url": "https://8.8.8.8/labs"}))["webhook_id"])


@owned("agent_id")
async def an_agent(client: Client) -> str:
    body = {"name": "Anna", "base_url": "https://8.8.8.8/v1", "model": "m", "api_key": "sk-canary-of-an-agent"}
    return str((await client.ok("POST", "/agents", body))["agent_id"])


@owned("training_run_id")
async def a_training_run(client: Client) -> str:
    return str((await client.ok("POST", "/training-runs", {}))["training_run_id"])


@owned("message_id")
async def a_message(client: Client) -> str:
    return str((await client.ok("POST", f"/webhooks/{await a_webhook(client)}/test"))["message_id"])


async def one_of_each(client: Client) -> Json:
    """Ids of the lab's own things, by name."""
    return {name: await make(client) for name, make in OWNED.items()}


def nobodys() -> dict[str, Any]:
    """Ids of the same kinds that no lab has."""
    return {name: UNKNOWN[name]() for name in OWNED}
