"""Conversations to score: what scripted agents and the packaged personas said to each other.

Played once in this process; `fresh` varies the wording so that no sentence is in the encoder's cache.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks import plays
from personas.reading.reader import Reader
from scenarios.library import Library

Json = dict[str, Any]

_OPENERS = ("Right.", "Okay.", "I see.", "Good.", "Thanks.", "Well.", "All right.", "Sure.")
_FILLERS = ("today", "then", "please", "by the way", "for me", "if I may ask", "so far", "at the moment")


@dataclass(frozen=True)
class Conversation:
    """One scenario's transcript in the wire format, agent as assistant."""

    collection: str
    scenario: str
    messages: tuple[Json, ...]

    def item(self, number: int) -> Json:
        """An item of a batch."""
        return {
            "id": str(number),
            "collection_slug": self.collection,
            "scenario_slug": self.scenario,
            "messages": list(self.messages),
        }


def played(library: Library, reader: Reader, *, turns: int) -> list[Conversation]:
    """The oracle's first `turns` turns in every scenario."""

    def play(name: tuple[str, str]) -> Conversation:
        sealed = library.vault.open(*name)
        steps = [step.model_copy(update={"tools": ()}) for step in sealed.secrets.exam.oracle[:turns]]
        return Conversation(*name, tuple(plays.played(sealed, "oracle", steps, reader, seed=1).messages))

    with ThreadPoolExecutor(1) as thread:
        return list(thread.map(play, library.vault.names()))


def fresh(conversations: list[Conversation], count: int, seed: int) -> list[Conversation]:
    """`count` conversations whose agent sentences nobody has said before."""
    source = random.Random(seed)
    return [_reworded(conversations[i % len(conversations)], source) for i in range(count)]


def _reworded(conversation: Conversation, source: random.Random) -> Conversation:
    def vary(text: str) -> str:
        tag = f"{source.choice(_FILLERS)} {source.randrange(10**6)}"
        sentences = [s.rstrip("?.! ") + f", {tag}" + s[len(s.rstrip("?.! ")) :] for s in _sentences(text)]
        return " ".join([source.choice(_OPENERS), *sentences])

    messages = tuple(
        {**m, "content": vary(m["content"])} if m["role"] == "assistant" else m for m in conversation.messages
    )
    return Conversation(conversation.collection, conversation.scenario, messages)


def _sentences(text: str) -> list[str]:
    parts, start = [], 0
    for i, character in enumerate(text):
        if character in "?.!" and (i + 1 == len(text) or text[i + 1] == " "):
            parts.append(text[start : i + 1].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text[start:].strip() else parts
