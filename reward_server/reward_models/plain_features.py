"""Features of a conversation that need no learning: its length, how like an answer is to what was asked,
and how many words the other party was brought to say.

They are the simple baselines that a learned model has to beat; a model that does not is of no use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from personas.text.memory import Memory
from personas.text.wording import tokens
from reward_server.encoders.encoder import TextEncoder, Vectors, bytes_of, meaning_width
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.heads import Matrix

NAMES = ("length", "cosine", "persona words")
REMEMBERED, REMEMBERED_BYTES = 20_000, 64_000_000
"""Vectors of texts kept."""


class PlainFeatures:
    """Logs of the agent's words and of the persona's different ones; cosine of the last message and what it answers."""

    width: ClassVar[int] = len(NAMES)

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._known: Memory[str, Vectors] = Memory(REMEMBERED, size_bytes=REMEMBERED_BYTES, cost=bytes_of)

    @property
    def encoder(self) -> TextEncoder:
        """The encoder that the cosine is taken with."""
        return self._encoder

    @property
    def version(self) -> str:
        """Changes whenever a feature may."""
        return f"plain/2+{self._encoder.version}"

    def features(self, conversations: Sequence[Conversation]) -> Matrix:
        """Shape (len(conversations), 3)."""
        pairs = [_last_exchange(conversation) for conversation in conversations]
        vectors = self._vectors([text for pair in pairs for text in pair]).astype(np.float64)
        cosines = np.einsum("nd,nd->n", vectors[0::2], vectors[1::2])
        lengths = [np.log1p(_words(conversation)) for conversation in conversations]
        told = [np.log1p(len(persona_words(conversation))) for conversation in conversations]
        return np.column_stack([lengths, cosines, told]).astype(np.float32).reshape(len(conversations), self.width)

    def forget(self) -> None:
        """Give back the memory of vectors; they are computed again where they are needed."""
        self._known.clear()

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        """Of many replies to one request, and of a reply that is sent often, each text is encoded once."""
        width = meaning_width(self._encoder)
        wanted = list(dict.fromkeys(texts))
        found = self._known.recall(wanted)
        missing = [text for text in wanted if text not in found]
        if missing:
            vectors = self._encoder.encode(missing)
            fresh = {text: row[:width].copy() for text, row in zip(missing, vectors, strict=True)}
            self._known.keep(fresh)
            found |= fresh
        return np.stack([found[text] for text in texts]) if texts else np.zeros((0, width), dtype=np.float32)


def _words(conversation: Conversation) -> int:
    return sum(len(said.text.split()) for said in conversation.turns if said.party == "agent")


def persona_words(conversation: Conversation) -> frozenset[str]:
    """The different words that the other party said."""
    return frozenset(word for said in conversation.turns if said.party == "persona" for word in tokens(said.text))


def _last_exchange(conversation: Conversation) -> tuple[str, str]:
    """The agent's last message, and what the persona had said before it."""
    turns = conversation.turns
    last = max((i for i, said in enumerate(turns) if said.party == "agent"), default=None)
    if last is None:
        return "", ""
    before = next((said.text for said in reversed(turns[:last]) if said.party == "persona"), conversation.scenario)
    return before, turns[last].text
