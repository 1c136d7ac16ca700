"""Turns the messages of a conversation into exchanges: what the agent did, what the persona answered.

The one reading of messages for every door: an episode's log and a client's copy of it give equal
transcripts. Consecutive messages of one party are one message; messages of other roles are ignored.
Tool calls are checked here; a call that does not fit is kept as invalid, because it may cost reward.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import jsonschema
from jsonschema.protocols import Validator

from personas.hearing.types import AgentTurn
from personas.replay.replayer import Exchange
from reward_server.errors import FieldProblem, InvalidRequest, NothingToScore
from reward_server.transcripts.spoken import utterance
from scenarios.schema import Tool
from trainer_client.wire import Role, ToolCall

PARTIES = frozenset({"assistant", "user"})
IGNORED_ROLES = frozenset({"system", "developer", "tool"})
UNKNOWN_ROLE = "The role must be assistant, user, system, developer or tool."


class SpokenMessage(Protocol):
    """A message, as the wire has it or an episode's log."""

    @property
    def role(self) -> str:
        """The party that sent it."""

    @property
    def content(self) -> str:
        """The text."""

    @property
    def tool_calls(self) -> Sequence[ToolCall] | None:
        """The tool calls besides."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call of the agent."""

    tool_id: str | None
    """The tool it means; None when there is no such tool."""
    valid: bool
    input: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Turn:
    """One agent turn, its tool calls, and the persona's answer if there is one."""

    agent: str = field(repr=False)
    uses: tuple[ToolUse, ...]
    persona: str | None = field(repr=False)

    @property
    def valid_tools(self) -> tuple[str, ...]:
        """The ids of the valid calls, in order."""
        return tuple(use.tool_id for use in self.uses if use.valid and use.tool_id is not None)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as scoring reads it. Turn n is `turns[n - 1]`."""

    opening: str | None = field(repr=False)
    """What the persona said before the agent's first turn."""
    turns: tuple[Turn, ...]

    @classmethod
    def from_messages(
        cls, messages: Sequence[SpokenMessage], agent_role: Role = "assistant", tools: Sequence[Tool] = ()
    ) -> Transcript:
        """Read messages; `NothingToScore` without an agent message, `InvalidRequest` for an unknown role."""
        opening: list[str] = []
        turns: list[_Draft] = []
        for index, message in enumerate(messages):
            if message.role in IGNORED_ROLES:
                continue
            if message.role not in PARTIES:
                problem = FieldProblem(("messages", index, "role"), UNKNOWN_ROLE)
                raise InvalidRequest(errors=[problem])
            if message.role != agent_role:
                (turns[-1].persona if turns else opening).append(message.content)
                continue
            if not turns or turns[-1].persona:
                turns.append(_Draft())
            heard = utterance(message.content)
            turns[-1].agent.append(heard.text)
            turns[-1].uses.extend(check_calls((*(message.tool_calls or ()), *heard.calls), tools))
        if not turns:
            raise NothingToScore(_nobody(agent_role, {message.role for message in messages}))
        return cls(_joined(opening), tuple(draft.finished() for draft in turns))

    def exchanges(self) -> tuple[Exchange, ...]:
        """The turns in the form that the personas' replay takes."""
        return tuple(Exchange(AgentTurn(turn.agent, turn.valid_tools), turn.persona) for turn in self.turns)

    def said_by(self, role: str, turn: int) -> str:
        """The text of a party in a turn; turn 0 is the opening."""
        if turn == 0:
            return (self.opening or "") if role == "persona" else ""
        if not 1 <= turn <= len(self.turns):
            return ""
        of_turn = self.turns[turn - 1]
        return of_turn.agent if role == "agent" else of_turn.persona or ""


@dataclass(slots=True)
class _Draft:
    """A turn while its messages are still being collected."""

    agent: list[str] = field(default_factory=list)
    uses: list[ToolUse] = field(default_factory=list)
    persona: list[str] = field(default_factory=list)

    def finished(self) -> Turn:
        return Turn("\n".join(self.agent), tuple(self.uses), _joined(self.persona))


def _joined(parts: Sequence[str]) -> str | None:
    return "\n".join(parts) if parts else None


def _nobody(agent_role: Role, roles: Collection[str]) -> str:
    """Advice about messages of which none is the agent's."""
    roles_there = f"the roles are {', '.join(sorted(roles))}" if roles else "there are no messages"
    told = f"The conversation has no message by the agent, whose role is `{agent_role}`: {roles_there}."
    other = next(iter(PARTIES.intersection(roles) - {agent_role}), None)
    return told + (f" If the agent is the `{other}`, set `agent_role` to `{other}`." if other else "")


# --- tool calls -----------------------------------------------------------------------------------


def check_calls(calls: Iterable[ToolCall], tools: Sequence[Tool]) -> tuple[ToolUse, ...]:
    """Each call with the tool it means, and whether its input fits."""
    return tuple(_check(call, tools) for call in calls)


def valid_tool_ids(calls: Iterable[ToolCall], tools: Sequence[Tool]) -> tuple[str, ...]:
    """The ids of the calls that are valid: what the persona notices of a turn's tools."""
    return tuple(use.tool_id for use in check_calls(calls, tools) if use.valid and use.tool_id is not None)


def tool_of(call: ToolCall, tools: Sequence[Tool]) -> Tool | None:
    """The tool that a call means: it has an id and a name; agents are shown both, so both are understood."""
    return next((t for t in tools if t.id == call.name), None) or next((t for t in tools if t.name == call.name), None)


def _check(call: ToolCall, tools: Sequence[Tool]) -> ToolUse:
    tool = tool_of(call, tools)
    if tool is None:
        return ToolUse(None, valid=False, input=call.input)
    right_type = call.type is None or call.type == tool.type
    return ToolUse(tool.id, valid=right_type and _fits(call.input, tool), input=call.input)


def _fits(value: Mapping[str, Any], tool: Tool) -> bool:
    if tool.options is not None:
        return set(value) == {"value"} and value["value"] in tool.options
    try:
        return _validator(json.dumps(tool.json_schema, sort_keys=True)).is_valid(value)
    except RecursionError:  # an input nested deeper than the interpreter can follow fits no tool
        return False


def leaves(value: object) -> Iterator[object]:
    """The plain values inside a tool's input, in order; a loop, so that no depth of nesting is too deep."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(reversed(one.values()))
        elif isinstance(one, list):
            waiting.extend(reversed(one))
        else:
            yield one


@lru_cache(maxsize=512)
def _validator(schema: str) -> Validator:
    return jsonschema.Draft202012Validator(json.loads(schema))
