"""Conversations whose score follows from what the agent says, and a featuriser that can see it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import OVERALL, Dataset, Labelled, PreferredPair, grouped

KIND = ("please", "thanks", "sorry", "glad", "welcome")
PLAIN = ("bike", "tyre", "pump", "wheel", "chain", "lamp", "brake", "saddle")


class WordCounts:
    """How often each known word is said by the agent, and by whom the talk begins: enough to learn from."""

    width = len(KIND) + len(PLAIN) + 1

    def __init__(self, version: str = "counts/1") -> None:
        self.version = version
        self.calls = 0
        self.forgotten: list[int] = []
        """How much had been asked for whenever it was told to forget."""

    @property
    def emphasis(self) -> NDArray[np.float32]:
        return np.ones(self.width, dtype=np.float32)

    @property
    def kinds(self) -> NDArray[np.intp]:
        return np.zeros(self.width, dtype=np.intp)

    @property
    def costs(self) -> NDArray[np.bool_]:
        return np.zeros(self.width, dtype=np.bool_)

    @property
    def readings(self) -> dict[str, NDArray[np.bool_]]:
        return {"all": np.zeros(self.width, dtype=np.bool_)}

    @property
    def relations(self) -> dict[str, int]:
        return {}

    def features(self, conversations: Sequence[Conversation]) -> NDArray[np.float32]:
        self.calls += len(conversations)
        rows = [self._row(conversation) for conversation in conversations]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.width)

    def forget(self) -> None:
        self.forgotten.append(self.calls)

    def _row(self, conversation: Conversation) -> list[float]:
        words = " ".join(said.text for said in conversation.turns if said.party == "agent").split()
        return [float(words.count(word)) for word in (*KIND, *PLAIN)] + [float(len(words))]


def talk(words: Sequence[str], opening: str = "hello") -> Conversation:
    return Conversation(
        (
            ConversationMessage("persona", opening),
            ConversationMessage("agent", " ".join(words)),
            ConversationMessage("persona", "well"),
        )
    )


def kindness(words: Sequence[str]) -> float:
    return min(1.0, sum(word in KIND for word in words) / 5)


def drawn(source: random.Random) -> list[str]:
    return [source.choice(KIND if source.random() < 0.4 else PLAIN) for _ in range(source.randint(4, 9))]


def labelled_talks(count: int = 160, groups: int = 20, seed: int = 1) -> Dataset:
    """Scores say how kind the agent is; a second dimension how much it talks of lamps."""
    source = random.Random(seed)
    rows = []
    for number in range(count):
        words = drawn(source)
        scores = {OVERALL: kindness(words), "lamps": min(1.0, words.count("lamp") / 2)}
        rows.append(Labelled(talk(words, f"hello {number}"), scores, f"g{number % groups}", number + 1))
    return grouped(Dataset(tuple(rows)))


def preferred_talks(count: int = 160, groups: int = 20, seed: int = 2) -> Dataset:
    """Of two, the kinder one is preferred."""
    source = random.Random(seed)
    pairs: list[PreferredPair] = []
    while len(pairs) < count:
        a, b = drawn(source), drawn(source)
        if kindness(a) != kindness(b):
            better, worse = (a, b) if kindness(a) > kindness(b) else (b, a)
            n = len(pairs)
            pairs.append(PreferredPair(talk(better, f"hi {n}"), talk(worse, f"hi {n}"), f"p{n % groups}", n + 1))
    return grouped(Dataset((), tuple(pairs)))
