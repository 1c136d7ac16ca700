"""Reads a conversation for learned models from what was recorded: a transcript, or the messages of a file.

There is one reading, that of `scoring.transcript`, so a conversation has the same features in training data, in the
store and in service. It takes the public half of a scenario alone: a learned model never sees a rubric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reward_server.errors import InvalidRequest
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.transcripts.transcript import Transcript
from scenarios.schema import ScenarioCard
from trainer_client.wire import Message, Role


def scenario_text(card: ScenarioCard) -> str:
    """The description of a scenario for learned models."""
    return f"{card.name}: {card.description}"


def conversation_of(transcript: Transcript, scenario: str = "") -> Conversation:
    """The messages of a transcript in order."""
    turns = [ConversationMessage("persona", transcript.opening)] if transcript.opening is not None else []
    for turn in transcript.turns:
        turns.append(ConversationMessage("agent", turn.agent))
        if turn.persona is not None:
            turns.append(ConversationMessage("persona", turn.persona))
    return Conversation(tuple(turns), scenario)


def conversation_from(
    messages: Sequence[Mapping[str, Any]], agent_role: Role = "assistant", scenario: str = ""
) -> Conversation:
    """The same from plain messages; tool calls are not read.

    Raises:
        InvalidRequest: these are no messages, a message has no role or no text, the role is unknown, or the agent
            says nothing.
    """
    if isinstance(messages, str | bytes) or not isinstance(messages, Sequence):
        raise InvalidRequest("messages are a list of objects with `role` and `content`")
    return conversation_of(Transcript.from_messages([_message(each) for each in messages], agent_role), scenario)


def _message(message: Mapping[str, Any]) -> Message:
    if not isinstance(message, Mapping):
        raise InvalidRequest("a message is an object with `role` and `content`")
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not isinstance(content, str):
        raise InvalidRequest("a message needs a role and text as content")
    # Not validated: a data set may hold longer messages than the API takes.
    return Message.model_construct(role=role, content=content)
