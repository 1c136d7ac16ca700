"""The plainest features of a conversation: vectors of both sides, how they interact, and how long it is.

[persona mean, agent mean, product, |difference|, last agent turn, scenario, lengths]. The explicit interaction of
prompt and answer is what a mean over the whole text would lose.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.encoder import TextEncoder, Vectors
from reward_server.reward_models.heads import Matrix

LENGTHS = 3


class Concatenation:
    """Features of the encoder's vectors of whole messages."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder

    @property
    def version(self) -> str:
        """Changes whenever a feature may."""
        return f"concatenation/1+{self._encoder.version}"

    @property
    def width(self) -> int:
        """How many features a conversation has."""
        return 6 * self._encoder.width + LENGTHS

    def features(self, conversations: Sequence[Conversation]) -> Matrix:
        """Shape (len(conversations), width); a row depends on its own conversation alone."""
        texts = list(dict.fromkeys(text for each in conversations for text in (*_texts(each), each.scenario)))
        vectors = dict(zip(texts, self._encoder.encode(texts), strict=True))
        rows = [self._row(conversation, vectors) for conversation in conversations]
        return np.stack(rows) if rows else np.zeros((0, self.width), dtype=np.float32)

    def _row(self, conversation: Conversation, vectors: dict[str, Vectors]) -> Matrix:
        def mean(texts: list[str]) -> Vectors:
            zero = np.zeros(self._encoder.width, dtype=np.float32)
            return np.mean([vectors[text] for text in texts], axis=0, dtype=np.float32) if texts else zero

        agent = [said.text for said in conversation.turns if said.party == "agent"]
        persona = [said.text for said in conversation.turns if said.party == "persona"]
        ours, theirs = mean(agent), mean(persona)
        words = sum(len(text.split()) for text in agent)
        lengths = np.array([np.log1p(words), np.log1p(words / max(1, len(agent))), np.log1p(len(agent))])
        parts = [theirs, ours, ours * theirs, np.abs(ours - theirs), mean(agent[-1:]), vectors[conversation.scenario]]
        return np.concatenate([*parts, lengths]).astype(np.float32)


def _texts(conversation: Conversation) -> tuple[str, ...]:
    return tuple(said.text for said in conversation.turns)
