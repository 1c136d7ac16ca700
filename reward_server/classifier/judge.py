"""The judge: what a classifier makes of conversations, as numbers in [0, 1].

    value = sigmoid((output - centre) / scale)

An output is a number on a scale of the model's own; `centre` and `scale` are the operator's, and `labs calibrate` maps
values to labels. What fails is a failure: no constant, no older value in its place.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Protocol

from personas.reading.matcher import Matcher
from personas.text.memory import Memory
from reward_server.classifier.chat import Chat, chat_of
from reward_server.errors import JudgeFailed
from reward_server.judges.base import Case
from reward_server.judges.estimate import CLASSIFIER, Estimate
from reward_server.reward_models.earned import as_earned
from reward_server.reward_models.recorded import conversation_of, scenario_text
from reward_server.transcripts.transcript import Transcript

REMEMBERED, REMEMBERED_BYTES = 8192, 16_000_000


def _room() -> Memory[str, float]:
    return Memory(REMEMBERED, size_bytes=REMEMBERED_BYTES, cost=lambda key, _: len(key))


class Classifier(Protocol):
    """Chats in, one number each out. Blocking, thread-safe, deterministic; an output depends on its own chat alone."""

    @property
    def version(self) -> str:
        """Identifies weights and method."""

    def output(self, chat: Chat) -> float:
        """A number on the model's own scale; more is better.

        Raises:
            JudgeFailed: there is none.
        """


@dataclass(frozen=True)
class ClassifierJudge:
    """Puts a classifier's number on whole conversations."""

    classifier: Classifier
    threads: Executor
    """Where it is asked; a model over HTTP is asked by several at once."""
    centre: float = 0.0
    scale: float = 1.0
    matcher: Matcher | None = None
    """Finds what was told and not earned; without one, lines are read as they stand."""
    _known: Memory[str, float] = field(default_factory=_room, repr=False)

    @property
    def name(self) -> str:
        """The name that composites use."""
        return CLASSIFIER

    @property
    def version(self) -> str:
        """Changes whenever its estimates may."""
        earned = "earned" if self.matcher is not None else "read"
        return f"{self.classifier.version}/{self.centre:g}/{self.scale:g}/{earned}/1"

    @property
    def reads_record(self) -> bool:
        """True if what an agent earned is known by replaying the case."""
        return self.matcher is not None

    async def prepare(self, cases: Sequence[Case]) -> None:
        """Have all asked about that are not known, elsewhere than in the threads that score.

        Raises:
            JudgeFailed: the classifier failed.
        """
        loop = asyncio.get_running_loop()
        chats = await loop.run_in_executor(None, self._unknown, cases)
        found = await asyncio.gather(
            *(loop.run_in_executor(self.threads, self.classifier.output, chat) for chat in chats.values()),
            return_exceptions=True,
        )
        self._known.keep({key: each for key, each in zip(chats, found, strict=True) if isinstance(each, float)})
        for each in found:
            if isinstance(each, BaseException):
                raise each

    def estimate(self, cases: Sequence[Case]) -> list[Estimate]:
        """One estimate per case, in order; each depends on its own case alone.

        Raises:
            JudgeFailed: the classifier failed, or gave no number.
        """
        return [Estimate(self.value(output)) for output in self.outputs(self._chats(cases))]

    def outputs(self, chats: Sequence[Chat]) -> list[float]:
        """The outputs of the model itself, in order."""
        keys = [_key(chat) for chat in chats]
        known = self._known.recall(keys)
        missing = {key: chat for key, chat in zip(keys, chats, strict=True) if key not in known}
        fresh = dict(zip(missing, self.threads.map(self.classifier.output, missing.values()), strict=True))
        self._known.keep(fresh)
        return [{**known, **fresh}[key] for key in keys]

    def value(self, output: float) -> float:
        """In [0, 1]."""
        if not math.isfinite(output):
            raise JudgeFailed(kind="not_finite")
        odds = max(-700.0, min(700.0, (output - self.centre) / self.scale))
        return 1.0 / (1.0 + math.exp(-odds))

    def _unknown(self, cases: Sequence[Case]) -> dict[str, Chat]:
        chats = {_key(chat): chat for chat in self._chats(cases)}
        known = self._known.recall(chats)
        return {key: chat for key, chat in chats.items() if key not in known}

    def _chats(self, cases: Sequence[Case]) -> list[Chat]:
        read: list[Transcript] = [case.transcript for case in cases]
        if self.matcher is not None:
            read = as_earned(cases, self.matcher)
        return [
            chat_of(conversation_of(transcript, scenario_text(case.scenario.card)))
            for transcript, case in zip(read, cases, strict=True)
        ]


def _key(chat: Chat) -> str:
    return hashlib.sha256(json.dumps(list(chat), ensure_ascii=True).encode()).hexdigest()
