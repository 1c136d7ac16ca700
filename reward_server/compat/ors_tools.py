"""The tools of the Open Reward Standard: a tool call in, a turn of the episode out, and back.

`reply` says something to the persona, `finish` says the last thing. Each tool of the scenario is a tool beside them;
what the agent says in the same turn is its optional `message`. A call that cannot be played is an `UnplayableCall`: the
policy is told, and it costs no turn. Input that does not fit a scenario's tool costs what it costs in every turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from reward_server.api.body import validate
from reward_server.auth.idempotency import Body
from reward_server.compat.ors_wire import Call
from reward_server.errors import InvalidRequest, in_a_line
from trainer_client.wire import MAX_CONTENT_CHARACTERS, Message, TurnRequest

REPLY, FINISH, MESSAGE = "reply", "finish", "message"
Shown = Mapping[str, Any]
"""A tool of a scenario as agents are told of it: `id`, `name`, `input_schema`, maybe a `description`."""
Reason = Literal["not_found", "input_validation", "episode_finished"]

_SPOKEN = {"type": "string", "maxLength": MAX_CONTENT_CHARACTERS}
_OWN = {
    REPLY: "Say something to the person you talk with. The result is what they answer.",
    FINISH: "Say your last message to the person and end the conversation.",
}
_WORDS = {
    "type": "object",
    "properties": {MESSAGE: {**_SPOKEN, "minLength": 1, "description": "What you say to the person."}},
    "required": [MESSAGE],
    "additionalProperties": False,
}
TERMINAL = {"name": FINISH, "arg": MESSAGE, "description": _OWN[FINISH]}


class UnplayableCall(Exception):  # noqa: N818 (the word for this outcome)
    """A call that no turn is made of, and why."""

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(message)

    def outcome(self) -> Body:
        """As clients read it."""
        return {"ok": False, "error": self.message, "reason": self.reason}


def tools_of(tools: Sequence[Shown]) -> list[dict[str, Any]]:
    """The tools of a scenario as clients list them, after those that every scenario has."""
    own = [{"name": name, "description": about, "input_schema": _WORDS} for name, about in _OWN.items()]
    return own + [
        {"name": name, "description": tool.get("description", tool["name"]), "input_schema": _schema(tool)}
        for name, tool in _named(tools).items()
    ]


def turn_of(call: Call, tools: Sequence[Shown]) -> TurnRequest:
    """The turn that a call stands for.

    Raises:
        UnplayableCall: there is no such tool, or no message to say.
    """
    if call.name in _OWN:
        message = {"role": "assistant", "content": _words(call)}
        return TurnRequest(messages=[_message(message)], terminate=call.name == FINISH)
    found = _named(tools).get(call.name)
    if found is None:
        known = ", ".join((*_OWN, *_named(tools)))
        raise UnplayableCall("not_found", f"There is no such tool; there are: {known}.")
    given = _without_blanks(call.input, found["input_schema"].get("required", ()))
    said = given.pop(MESSAGE, "") if MESSAGE in _added(found) else ""
    uses = [{"name": found["id"], "input": given}]
    return TurnRequest(messages=[_message({"role": "assistant", "content": said, "tool_calls": uses})])


def outcome_of(turn: Body, episode: str, *, each: bool) -> Body:
    """The outcome of a turn, as clients read it; the reward is that of the whole conversation, at its end.

    `each`: every call has the reward of the conversation so far, and its dimensions.
    """
    finished: bool = turn["episode_complete"]
    texts = [turn["observation"]["content"]]
    texts += [f"The call of {each['name']} was not accepted: {each['message']}" for each in turn.get("tool_errors", ())]
    metadata: Body = {"episode_id": episode, "turn": turn["turn"]}
    if finished or each:
        told = ("terminal_reason", "scores", "scoring_version")
        metadata |= {name: turn[name] for name in told if name in turn}
    output = {
        "blocks": [text_block(text) for text in texts],
        "metadata": metadata,
        "reward": turn["reward"] if finished or each else None,
        "finished": finished,
    }
    return {"ok": True, "output": output}


def text_block(text: str) -> dict[str, str]:
    """A text as clients read it."""
    return {"type": "text", "text": text}


def _named(tools: Sequence[Shown]) -> dict[str, Shown]:
    """The scenario's tools by the name they have here: their id, unless a tool of every scenario has it."""
    return {f"{tool['id']}_" if tool["id"] in _OWN else tool["id"]: tool for tool in tools}


def _schema(tool: Shown) -> dict[str, Any]:
    """The schema of the tool with the message beside it."""
    schema = tool["input_schema"]
    return {**schema, "properties": {**schema.get("properties", {}), **_added(tool)}}


def _added(tool: Shown) -> dict[str, Any]:
    if MESSAGE in tool["input_schema"].get("properties", {}):
        return {}
    return {MESSAGE: {**_SPOKEN, "description": "What you say to the person at the same time, if anything."}}


def _without_blanks(given: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """TRL's adapter sends null for what the policy left out."""
    return {name: value for name, value in given.items() if value is not None or name in required}


def _words(call: Call) -> Any:
    unknown = sorted(set(call.input) - {MESSAGE})
    if unknown or not call.input.get(MESSAGE):
        raise UnplayableCall(
            "input_validation", f"{call.name} takes one argument, `{MESSAGE}`: text that is not empty."
        )
    return call.input[MESSAGE]


def _message(message: Mapping[str, Any]) -> Message:
    try:
        return validate(Message, message)
    except InvalidRequest as error:
        raise UnplayableCall("input_validation", in_a_line(error)) from None
