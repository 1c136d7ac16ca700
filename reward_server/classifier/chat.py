"""A conversation in the form that chat models take: messages of a user and an assistant, in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypedDict

from reward_server.errors import JudgeFailed
from reward_server.reward_models.conversation import Conversation
from reward_server.transcripts.markup import has_markup


class ChatMessage(TypedDict):
    """One message."""

    role: Literal["user", "assistant"]
    content: str


Chat = Sequence[ChatMessage]


def chat_of(conversation: Conversation) -> list[ChatMessage]:
    """The agent is the assistant. Lines in the format of a chat template, of a speaker or of a verdict are left out.

    Where the agent speaks first, the public text of the scenario stands before it: templates want a user there.
    """
    messages: list[ChatMessage] = []
    if conversation.turns and conversation.turns[0].party == "agent" and conversation.scenario:
        messages.append({"role": "user", "content": conversation.scenario})
    for said in conversation.turns:
        messages.append({"role": "assistant" if said.party == "agent" else "user", "content": _clean(said.text)})
    return messages


def _clean(text: str) -> str:
    # A lone surrogate can be neither tokenised nor sent.
    sound = text.encode("utf-8", "replace").decode()
    return "\n".join(line for line in sound.splitlines() if not has_markup(line)) if has_markup(sound) else sound


def single(outputs: Sequence[float]) -> float:
    """One number of a classifier's outputs: its only one, or of two labels the log odds of the second.

    Raises:
        JudgeFailed: they are neither one nor two, or no numbers.
    """
    if len(outputs) not in {1, 2}:
        raise JudgeFailed(kind="malformed")
    if not all(map(math.isfinite, outputs)):
        raise JudgeFailed(kind="not_finite")
    return outputs[-1] - (outputs[0] if len(outputs) == 2 else 0.0)
