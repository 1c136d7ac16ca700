"""Who reads: the port, and the local reader, which is learned and needs no network.

A reader is handed to whoever plays or scores; it owns its memory. Readings depend on the case, the persona's last
line and the turn alone, so play and every later scoring of it share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

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
        acts = {each: self._heads.acts_of(vectors[each][None])[0] for turn in turns for each in said_in(turn)}
        vectors |= self._vectors(
            part for each, does in acts.items() for part in (*parts_of(each, does), *_may_console(each, does))
        )
        consoling = {each for each, does in acts.items() if self._consoles_in_part(each, does, vectors)}
        index = self._index(case)
        return [
            Reading(
                tuple(
                    self._sentence(index, heard_of(turn[0], each, vectors, acts[each]), each in consoling)
                    for each in said_in(turn)
                )
            )
            for turn in turns
        ]

    def _vectors(self, texts: Iterable[str]) -> dict[str, Vectors]:
        wanted = list(dict.fromkeys(texts))
        return dict(zip(wanted, self._embedder.embed(wanted), strict=True)) if wanted else {}

    def _sentence(self, index: CaseIndex, parts: Sequence[Heard], consoles_in_part: bool) -> Sentence:
        count, heard = len(ACTS), parts[0]
        acts = frozenset(act for act, p in zip(ACTS, heard.acts[:count], strict=True) if p >= SURER.get(act, ACT))
        if consoles_in_part:
            acts |= {Act.EMPATHY}
        stance = STANCES[int(heard.acts[count:].argmax())]
        if Act.UNREADABLE in acts:
            return Sentence(heard.text, frozenset({Act.UNREADABLE}), Stance.NONE)
        rows = np.concatenate([topic_features(index, part) for part in parts])
        topics = self._heads.topics_of(rows).reshape(len(parts), -1).max(axis=0)
        promises = self._heads.commitments_of(commitment_features(index, heard))
        return Sentence(
            heard.text,
            acts,
            stance,
            _candidates([group.id for group in index.topics], topics, FLOOR),
            _candidates([group.id for group in index.commitments], promises, COMMITMENT_FLOOR),
        )

    def _consoles_in_part(self, sentence: str, acts: Matrix, vectors: Mapping[str, Vectors]) -> bool:
        """Whether a part of a sentence consoles that does something else, too ("Hello, that sounds exhausting.")."""
        parts = _may_console(sentence, acts)
        if not parts:
            return False
        found = self._heads.acts_of(np.stack([vectors[each] for each in parts]))
        return bool(found[:, _EMPATHY].max() >= PART_CONSOLES)

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
