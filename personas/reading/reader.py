"""Who reads: the port, and the local reader, which is learned and needs no network.

A reader is handed to whoever plays or scores; it owns its memory. Readings depend on the case, the persona's last
line and the turn alone, so play and every later scoring of it share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from personas.compiled import CompiledCase
from personas.memory import KEPT_CHARS, Memory
from personas.reading.acts import Act, Candidate, Reading, Sentence, Stance
from personas.reading.embedder import Embedder, Vectors
from personas.reading.features import Heard, commitment_features, is_elliptic, topic_features
from personas.reading.heads import ACTS, STANCES, Heads
from personas.reading.index import CaseIndex, index_of
from personas.reading.sentences import sentences
from personas.wording import content_stems

__all__ = ["LocalReader", "Reader", "Turn", "after_line"]

Turn = tuple[str, str]
"""The persona's last line ("" if there is none) and the agent's turn."""

FLOOR = 0.02
"""Candidates below this are not worth naming."""
ACT = 0.5
SURER = {Act.RUDE: 0.75, Act.META: 0.75, Act.UNREADABLE: 0.75, Act.INVITE: 0.8}
"""Acts that cost the agent something, or bring out facts nobody asked for by name, have to be surer."""
MAX_SENTENCES = 40
"""More sentences than this in one turn are not read: nobody could follow them."""
LINE_CHARS = 240
"""Of the persona's last line so much, from its end, stands before an elliptic sentence."""
KEPT_TURNS = 16_384


class Reader(Protocol):
    """Reads agent turns."""

    @property
    def version(self) -> str:
        """Identifies everything a reading depends on besides case and texts; part of the scoring version."""

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        """One reading per turn. Blocking: it may run a model or ask one."""


class LocalReader:
    """`Reader` on a text encoder and small learned heads."""

    def __init__(self, embedder: Embedder, heads: Heads) -> None:
        self._embedder = embedder
        self._heads = heads
        self._indexes: WeakKeyDictionary[CompiledCase, CaseIndex] = WeakKeyDictionary()
        self._read: Memory[tuple[CompiledCase, Turn], Reading] = Memory(KEPT_TURNS)
        self._lock = Lock()

    @property
    def version(self) -> str:
        """Heads and encoder."""
        return f"local/1/{self._heads.digest}/{self._embedder.version}"

    def texts(self, case: CompiledCase, turns: Iterable[Turn]) -> list[str]:
        """What reading the turns will embed, known turns left out."""
        turns = list(turns)
        known = self._read.recall((case, turn) for turn in turns)
        return [text for turn in turns if (case, turn) not in known for text in _texts(turn)]

    def prepare(self, case: CompiledCase) -> None:
        """Embed the authored texts of a case, so that its first turn does not wait for it; blocking."""
        self._index(case)

    async def prefetched(self, texts: Sequence[str]) -> None:
        """Embed texts that will be read soon, so that those of all callers share batches."""
        await self._embedder.prefetched(texts)

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        """One reading per turn; blocking, because the encoder runs, at most once for all of them."""
        keys = [(case, turn) for turn in turns]
        found = self._read.recall(keys)
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        if missing:
            texts = list(dict.fromkeys(text for _, turn in missing for text in _texts(turn)))
            vectors = dict(zip(texts, self._embedder.embed(texts), strict=True)) if texts else {}
            fresh = {key: self._reading(case, key[1], vectors) for key in missing}
            self._read.keep({key: value for key, value in fresh.items() if len(key[1][1]) <= KEPT_CHARS})
            found |= fresh
        return [found[key] for key in keys]

    def _reading(self, case: CompiledCase, turn: Turn, vectors: dict[str, Vectors]) -> Reading:
        line, text = turn
        said = sentences(text)[:MAX_SENTENCES]
        if not said:
            return Reading(())
        index, line_words = self._index(case), content_stems(line)
        acts = self._heads.acts_of(np.stack([vectors[sentence] for sentence in said]))
        return Reading(
            tuple(
                self._sentence(
                    index, Heard(each, vectors[each], vectors[after_line(line, each)], line_words, acts[number])
                )
                for number, each in enumerate(said)
            )
        )

    def _sentence(self, index: CaseIndex, heard: Heard) -> Sentence:
        count = len(ACTS)
        acts = frozenset(act for act, p in zip(ACTS, heard.acts[:count], strict=True) if p >= SURER.get(act, ACT))
        stance = STANCES[int(heard.acts[count:].argmax())]
        if Act.UNREADABLE in acts:
            return Sentence(heard.text, frozenset({Act.UNREADABLE}), Stance.NONE)
        topics = self._heads.topics_of(topic_features(index, heard))
        promises = self._heads.commitments_of(commitment_features(index, heard))
        return Sentence(
            heard.text,
            acts,
            stance,
            _candidates([group.id for group in index.topics], topics),
            _candidates([group.id for group in index.commitments], promises),
        )

    def _index(self, case: CompiledCase) -> CaseIndex:
        with self._lock:
            index = self._indexes.get(case)
            if index is None:
                index = self._indexes[case] = index_of(case, self._embedder)
        return index


def after_line(line: str, sentence: str) -> str:
    """An elliptic sentence behind the end of what the persona said before it; others as they are."""
    return f"{line[-LINE_CHARS:]} {sentence}" if line and is_elliptic(sentence) else sentence


def _texts(turn: Turn) -> list[str]:
    line, text = turn
    said = sentences(text)[:MAX_SENTENCES]
    return [*said, *(after_line(line, each) for each in said)]


def _candidates(ids: Sequence[str], probabilities: Iterable[float]) -> tuple[Candidate, ...]:
    found = [Candidate(name, float(p)) for name, p in zip(ids, probabilities, strict=True) if p >= FLOOR]
    return tuple(sorted(found, key=lambda each: -each.confidence))
