"""Labels of a data set: which scenario a reply is for, and what was said before it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from reward_server.api.body import read_json, validate
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.transcripts.spoken import is_mark, of_a_rollout
from trainer_client.wire import JsonObject, Message, RequestModel, RewardConfig, SlugField
from trainer_client.wire.base import Messages, text_of_parts

HOW = 'Must be "collection/scenario", or an object with `collection_slug`, `scenario_slug` and perhaps `messages`.'
LONGEST_TOKEN = 40
"""Characters between the brackets of a special token."""


class TargetLabel(RequestModel):
    """A label: the scenario, the conversation before the reply (agent lines as `assistant`), the reward asked for."""

    collection_slug: SlugField
    scenario_slug: SlugField
    messages: Annotated[Messages, Field(max_length=511, default_factory=list)]
    reward_config: RewardConfig | None = None


Label = str | JsonObject
"""`collection/scenario`, the JSON text of a `TargetLabel`, or a `TargetLabel`."""


def target_of(label: object, *loc: str | int) -> TargetLabel:
    """The target that a label names.

    Raises:
        InvalidRequest: it names none; `loc` says where it stands in the request.
    """
    try:
        return validate(TargetLabel, _fields(label))
    except InvalidRequest as error:
        problems = [FieldProblem((*loc, *each.loc), each.msg) for each in error.errors]
        raise InvalidRequest(errors=problems or [FieldProblem(loc, HOW)]) from None


def _fields(label: object) -> object:
    if not isinstance(label, str):
        return label if isinstance(label, dict) else _refuse()
    text = label.strip()
    if text.startswith("{"):
        return read_json(text.encode())
    collection, slash, scenario = text.partition("/")
    return {"collection_slug": collection, "scenario_slug": scenario} if slash else _refuse()


def _refuse() -> Any:
    raise InvalidRequest(errors=[FieldProblem((), HOW)])


def heard_message(message: Any) -> Any:
    """A message of a client's conversation as it is heard: what a policy says is bounded, not refused."""
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return message
    content = message.get("content")
    text = content if isinstance(content, str) else text_of_parts(content)
    return message if text is None else {**message, "content": of_a_rollout(text)}


def reply_after(prompt: str, text: str, *loc: str | int) -> str:
    """The reply in a decoded sequence: what follows the prompt, without special tokens at its end.

    Raises:
        InvalidRequest: the prompt does not occur in the text.
    """
    _, found, reply = text.partition(prompt) if prompt else ("", "", text)
    if prompt and not found:
        raise InvalidRequest(errors=[FieldProblem(loc, "Must contain its prompt, followed by the reply.")])
    return without_special_tokens(reply)


def without_special_tokens(reply: str) -> str:
    """The reply without the special tokens at its very end, such as `<|im_end|>`, `</s>` or `<end_of_turn>`."""
    end = len(reply.rstrip())
    while end and reply[end - 1] == ">":
        start = reply.rfind("<", max(0, end - LONGEST_TOKEN - 2), end)
        if start < 0 or any(character.isspace() for character in reply[start:end]) or is_mark(reply[start:end]):
            break
        end = start
        while end and reply[end - 1].isspace():
            end -= 1
    return reply[:end].strip()


def transcript(target: TargetLabel, reply: str, *loc: str | int) -> list[Message]:
    """The conversation of a target with this reply of the agent."""
    try:
        return [*target.messages, validate(Message, {"role": "assistant", "content": of_a_rollout(reply)})]
    except InvalidRequest as error:
        raise InvalidRequest(errors=[FieldProblem(loc, each.msg) for each in error.errors]) from None
