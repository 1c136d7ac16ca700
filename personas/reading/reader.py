"""Who reads: the port, and the local reader, which is learned and needs no network.

A reader is handed to whoever plays or scores; it owns its memory. Readings depend on the case, the persona's last
line and the turn alone, so play and every later scoring of it share them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from personas.breath import breathe
from personas.compiled import CompiledCase
from personas.memory import KEPT_CHARS, Memory
from personas.reading.acts import Act, Candidate, Reading, Sentence, Stance
from personas.reading.embedder import Embedder, Vectors
from personas.reading.features import Heard, Matrix, commitment_features, is_elliptic, topic_features
from personas.reading.heads import ACTS, STANCES, Heads
from personas.reading.index import CaseIndex, index_of
from personas.reading.sentences import clauses, sentences
from personas.wording import content_stems

__all__ = [
    "LocalReader",
    "Reader",
    "Turn",
    "after_line",
    "heard_of",
    "parts_of",
    "readings_kept",
    "said_in",
    "texts_of",
]

Turn = tuple[str, str]
"""The persona's last line ("" if there is none) and the agent's turn."""

FLOOR, COMMITMENT_FLOOR = 0.02, 0.001
"""Topics and commitments below this are not worth naming."""
ACT = 0.5
SURER = {Act.RUDE: 0.9, Act.META: 0.75, Act.UNREADABLE: 0.75}
"""Acts that cost the agent something have to be surer."""
MAY_ASK = 0.3
"""A sentence that asks with this probability is read in parts, too: it may ask two things."""
MAY_CONSOLE = 0.005
"""A sentence that consoles with this probability is read in parts, too: it may begin or end with something else."""
PART_CONSOLES = 0.90
"""A part of a sentence has to be this clear to make it a sympathetic one."""
MAX_SENTENCES = 40
"""More sentences than this in one turn are not read: nobody could follow them."""
LINE_CHARS = 120
"""Of the persona's last line so much, from its end, stands before an elliptic sentence."""
TURNS_AT_ONCE = 8
"""Between so many turns reading may pause: they are compared with the case in one go."""
KEPT_TURNS, KEPT_BYTES = 16_384, 48_000_000
_ASKING = (Act.ASK, Act.INVITE, Act.CHECK)
_EMPATHY = ACTS.index(Act.EMPATHY)


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
        self._read: Memory[tuple[CompiledCase, Turn], Reading] = readings_kept()
        self._lock = Lock()

    @property
    def version(self) -> str:
        """Heads and encoder."""
        return f"local/1/{self._heads.digest}/{self._embedder.version}"

    @property
    def held_bytes(self) -> int:
        """What the remembered readings, and the vectors they were made of, take."""
        return self._read.held_bytes + getattr(self._embedder, "held_bytes", 0)

    def texts(self, case: CompiledCase, turns: Iterable[Turn]) -> list[str]:
        """What reading the turns will embed, known turns left out."""
        turns = list(turns)
        known = self._read.recall((case, turn) for turn in turns)
        return [text for turn in turns if (case, turn) not in known for text in texts_of(turn)]

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
            fresh = dict(zip(missing, self._readings(case, [turn for _, turn in missing]), strict=True))
            self._read.keep({key: value for key, value in fresh.items() if len(key[1][1]) <= KEPT_CHARS})
            found |= fresh
        return [found[key] for key in keys]

    def _readings(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        vectors = self._vectors(text for turn in turns for text in texts_of(turn))
        said = list(dict.fromkeys(each for turn in turns for each in said_in(turn)))
        acts = dict(zip(said, self._heads.acts_of(_stacked(said, vectors)), strict=True)) if said else {}
        vectors |= self._vectors(
            text for turn in turns for each in said_in(turn) for text in _also_read(turn[0], each, acts[each])
        )
        consoling = self._consoling(acts, vectors)
        index = self._index(case)
        found: list[Reading] = []
        for start in range(0, len(turns), TURNS_AT_ONCE):
            breathe()
            found += self._put_together(index, turns[start : start + TURNS_AT_ONCE], vectors, acts, consoling)
        return found

    def _vectors(self, texts: Iterable[str]) -> dict[str, Vectors]:
        wanted = list(dict.fromkeys(texts))
        return dict(zip(wanted, self._embedder.embed(wanted), strict=True)) if wanted else {}

    def _consoling(self, acts: Mapping[str, Matrix], vectors: Mapping[str, Vectors]) -> set[str]:
        """The sentences of which a part consoles that do something else, too ("Hello, that sounds exhausting.")."""
        parts = [(sentence, part) for sentence, does in acts.items() for part in _may_console(sentence, does)]
        if not parts:
            return set()
        found = self._heads.acts_of(_stacked([part for _, part in parts], vectors))[:, _EMPATHY]
        return {sentence for (sentence, _), sure in zip(parts, found, strict=True) if sure >= PART_CONSOLES}

    def _put_together(
        self,
        index: CaseIndex,
        turns: Sequence[Turn],
        vectors: Mapping[str, Vectors],
        acts: Mapping[str, Matrix],
        consoling: Container[str],
    ) -> list[Reading]:
        """The readings of turns whose texts have vectors."""
        said = [(line, each) for line, text in turns for each in said_in((line, text))]
        does = {each: _acts_of(acts[each], consoles=each in consoling) for _, each in said}
        read = [(line, each) for line, each in dict.fromkeys(said) if Act.UNREADABLE not in does[each]]
        heard = [heard_of(line, each, vectors, acts[each]) for line, each in read]
        about = dict(zip(read, self._about(index, heard), strict=True))
        return [
            Reading(
                tuple(
                    Sentence(each, does[each], STANCES[int(acts[each][len(ACTS) :].argmax())], *about[line, each])
                    if (line, each) in about
                    else Sentence(each, frozenset({Act.UNREADABLE}), Stance.NONE)
                    for each in said_in((line, text))
                )
            )
            for line, text in turns
        ]

    def _about(
        self, index: CaseIndex, heard: Sequence[Sequence[Heard]]
    ) -> list[tuple[tuple[Candidate, ...], tuple[Candidate, ...]]]:
        """The topics and the commitments of sentences, each given with its parts."""
        if not heard:
            return []
        starts = np.cumsum([0, *map(len, heard[:-1])])
        topics = self._heads.topics_of(topic_features(index, [part for parts in heard for part in parts]))
        likeliest = np.maximum.reduceat(topics.reshape(-1, len(index.topics)), starts)
        promises = self._heads.commitments_of(commitment_features(index, [parts[0] for parts in heard]))
        promised = promises.reshape(len(heard), len(index.commitments))
        asked_ids, made_ids = ([group.id for group in groups] for groups in (index.topics, index.commitments))
        return [
            (_candidates(asked_ids, asks, FLOOR), _candidates(made_ids, makes, COMMITMENT_FLOOR))
            for asks, makes in zip(likeliest, promised, strict=True)
        ]

    def _index(self, case: CompiledCase) -> CaseIndex:
        with self._lock:
            index = self._indexes.get(case)
        if index is None:
            # Two threads may make the same one: waiting for the other would be waiting for all that it does besides.
            made = index_of(case, self._embedder)
            with self._lock:
                index = self._indexes.setdefault(case, made)
        return index


def readings_kept() -> Memory[tuple[CompiledCase, Turn], Reading]:
    """Room for the readings of turns."""
    return Memory(KEPT_TURNS, size_bytes=KEPT_BYTES, cost=lambda key, reading: sum(map(len, key[1])) + _bytes(reading))


def _bytes(reading: Reading) -> int:
    """About what a reading takes."""
    return sum(len(s.text) + 400 + 120 * (len(s.topics) + len(s.commitments)) for s in reading.sentences)


def _stacked(texts: Iterable[str], vectors: Mapping[str, Vectors]) -> Vectors:
    return np.stack([vectors[text] for text in texts])


def _acts_of(probabilities: Matrix, *, consoles: bool) -> frozenset[Act]:
    """What a sentence does; `consoles`: a part of it surely does."""
    found = {act for act, p in zip(ACTS, probabilities[: len(ACTS)], strict=True) if p >= SURER.get(act, ACT)}
    return frozenset({*found, Act.EMPATHY} if consoles else found)


def _also_read(line: str, sentence: str, acts: Matrix) -> Iterator[str]:
    """What is read besides a sentence, given what it does."""
    yield from parts_of(sentence, acts)
    yield from _may_console(sentence, acts)


def parts_of(sentence: str, acts: Matrix) -> tuple[str, ...]:
    """The clauses of a sentence that may ask for something; none of any other."""
    return clauses(sentence) if max(acts[ACTS.index(act)] for act in _ASKING) >= MAY_ASK else ()


def _may_console(sentence: str, acts: Matrix) -> tuple[str, ...]:
    """The clauses of a sentence that may be sympathetic, among other things; none where there is no doubt."""
    return clauses(sentence) if MAY_CONSOLE <= acts[_EMPATHY] < ACT else ()


def heard_of(line: str, sentence: str, vectors: Mapping[str, Vectors], acts: Matrix) -> list[Heard]:
    """A sentence as the heads see it, and then each of its parts."""
    words = content_stems(line)
    parts = parts_of(sentence, acts)
    return [
        Heard(sentence, vectors[sentence], vectors[after_line(line, sentence)], words, acts),
        *(Heard(each, vectors[each], vectors[each], words, acts, len(each) / len(sentence)) for each in parts),
    ]


def after_line(line: str, sentence: str) -> str:
    """An elliptic sentence behind the end of what the persona said before it; others as they are."""
    return f"{line[-LINE_CHARS:]} {sentence}" if line and is_elliptic(sentence) else sentence


def said_in(turn: Turn) -> tuple[str, ...]:
    """The sentences of a turn that are read."""
    return sentences(turn[1])[:MAX_SENTENCES]


def texts_of(turn: Turn) -> list[str]:
    """What has to be embedded to read a turn, but for the parts of sentences."""
    said = said_in(turn)
    return [*said, *(after_line(turn[0], each) for each in said)]


def _candidates(ids: Sequence[str], probabilities: Iterable[float], floor: float) -> tuple[Candidate, ...]:
    found = [Candidate(name, float(p)) for name, p in zip(ids, probabilities, strict=True) if p >= floor]
    return tuple(sorted(found, key=lambda each: -each.confidence))
