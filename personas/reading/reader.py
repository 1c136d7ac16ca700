"""Readers of agent turns: the port, and the local reader, which is learned and needs no network.

A reader is handed to whoever plays or scores; it owns its memory. Readings depend on the case, the persona's last
line and the turn alone, so play and every later scoring of it share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from personas.case.compiled import CompiledCase
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence, Stance
from personas.reading.calibrated import calibrated
from personas.reading.embedder import Embedder, Vectors
from personas.reading.features import EncodedSentence, Matrix, commitment_features, is_elliptic, topic_features
from personas.reading.fluency import Fluency
from personas.reading.heads import ACTS, STANCES, ReaderHeads
from personas.reading.index import CaseIndex, index_of
from personas.reading.second import AT_MOST, MAY_MAKE, SecondReader, read_again
from personas.text.memory import KEPT_CHARS, Memory
from personas.text.sentences import clauses, sentences
from personas.text.wording import content_stems, normal
from personas.text.yield_point import yield_point

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

_Said = tuple[str, str]
"""The persona's last line and a sentence of the agent's turn after it."""
_Made = TypeVar("_Made")
Probabilities = NDArray[np.float64]

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
CLEARLY_ABOUT, VAGUELY_ABOUT, NO_PROMISE = 0.995, 0.3, 0.005
"""A short sentence is read without the line before it if it makes no promise and is clearly about a topic, or asks
nothing and is about none. `benchmarks.reader` counts the labelled turns that would be heard otherwise."""
MAX_SENTENCES = 40
"""More sentences than this in one turn are not read: nobody could follow them."""
LINE_CHARS = 120
"""Of the persona's last line so much, from its end, stands before an elliptic sentence."""
CANDIDATE_BYTES = 120
"""What a topic that a sentence may be about takes, about."""
AT_ONCE = 24
"""So many sentences are compared with the case in one go; after them, reading may pause."""
ANSWERED = 0.95
"""A sentence that is as likely about something of the case is not compared with what any persona answers."""
VERBATIM = 0.995
"""An author's example that is said word for word is at least as likely what the author wrote it for."""
BARE_WORDS = 2
"""With no more meaningful words than this, a question is about what the line before it makes of it."""
FEW_TURNS = 2
"""Of so few turns, questions are embedded after the line before them in the first go, too; of more, only if needed."""
KEPT_TURNS, KEPT_BYTES = 16_384, 48_000_000
KEPT_BESIDE, KEPT_BESIDE_BYTES = 32_768, 16_000_000
"""Sentences whose `beside` is remembered."""
_ASKING = (Act.ASK, Act.INVITE, Act.CHECK)
_EMPATHY = ACTS.index(Act.EMPATHY)
_COMMITTING = [ACTS.index(Act.PROPOSE), ACTS.index(Act.INFORM)]
_NEGATED = STANCES.index(Stance.NEGATED)
SURE_LOOK = 0.02
"""A commitment that the first look finds this likely is read again, whatever the sentence does."""


class Reader(Protocol):
    """Reads agent turns."""

    @property
    def version(self) -> str:
        """Identifies everything a reading depends on besides case and texts; part of the scoring version."""

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        """One reading per turn. Blocking: it may run a model or ask one."""

    def beside(self, case: CompiledCase, line: str, said: Sequence[Sentence]) -> list[tuple[ReadCandidate, ...]]:
        """Per sentence that was read after `line`: what of the case's topics and background it may be about.

        Most probable first. A reader that knows nothing of the background gives none.
        """
        return [() for _ in said]


class LocalReader(Reader):
    """`Reader` on a text encoder and small learned heads."""

    def __init__(
        self, embedder: Embedder, heads: ReaderHeads, fluency: Fluency | None = None, second: SecondReader | None = None
    ) -> None:
        """Read with these.

        Args:
            embedder, heads: of one artefact.
            fluency: tells broken sentences, which are not read; without one, every sentence is taken for speech.
            second: reads again what may commit the agent to something that costs; without one, the first look decides.
        """
        self._embedder = embedder
        self._heads = heads
        self._fluency = fluency
        self._second = second
        self._indexes: WeakKeyDictionary[CompiledCase, CaseIndex] = WeakKeyDictionary()
        self._wide_indexes: WeakKeyDictionary[CompiledCase, tuple[CaseIndex, ...]] = WeakKeyDictionary()
        self._negatives: WeakKeyDictionary[CompiledCase, frozenset[str]] = WeakKeyDictionary()
        self._read: Memory[tuple[CompiledCase, Turn], Reading] = readings_kept()
        self._beside: Memory[tuple[CompiledCase, _Said], tuple[ReadCandidate, ...]] = Memory(
            KEPT_BESIDE,
            size_bytes=KEPT_BESIDE_BYTES,
            cost=lambda key, candidates: sum(map(len, key[1])) + CANDIDATE_BYTES * len(candidates),
        )
        self._lock = Lock()

    @property
    def version(self) -> str:
        """Heads, encoder, fluency model and second reader."""
        fluency = f"/{self._fluency.version}" if self._fluency else ""
        second = f"/{self._second.version}" if self._second else ""
        return f"local/2/{self._heads.digest}/{self._embedder.version}{fluency}{second}"

    @property
    def digest(self) -> str:
        """Of the artefact, which a collection's calibration names."""
        return self._heads.digest

    @property
    def held_bytes(self) -> int:
        """Bytes of the remembered readings, and of the vectors they were made of."""
        fluency = self._fluency.held_bytes if self._fluency else 0
        embedded = getattr(self._embedder, "held_bytes", 0)
        second = self._second.held_bytes if self._second else 0
        return self._read.held_bytes + self._beside.held_bytes + embedded + fluency + second

    def texts(self, case: CompiledCase, turns: Iterable[Turn]) -> list[str]:
        """The texts that reading the turns will embed first, known turns left out."""
        turns = list(turns)
        known = self._read.recall((case, turn) for turn in turns)
        return list(_read_first([turn for turn in turns if (case, turn) not in known]))

    def prepare(self, case: CompiledCase) -> None:
        """Embed what turns of a case are compared with, so that its first turn does not wait for it; blocking."""
        self._index(case)

    def prepare_background(self, case: CompiledCase) -> None:
        """The same for its background, which only play asks for."""
        if case.background:
            self._wide(case)

    async def prefetched(self, texts: Sequence[str]) -> None:
        """Embed texts that will be read soon, so that those of all callers share batches."""
        await self._embedder.prefetched(texts)
        if self._fluency is not None:
            await self._fluency.prefetched(texts)

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        """One reading per turn; blocking, because the encoder runs, at most twice for all of them."""
        keys = [(case, turn) for turn in turns]
        readings = self._read.recall(keys)
        missing = [key for key in dict.fromkeys(keys) if key not in readings]
        if missing:
            fresh = dict(zip(missing, self._readings(case, [turn for _, turn in missing]), strict=True))
            self._read.keep({key: value for key, value in fresh.items() if len(key[1][1]) <= KEPT_CHARS})
            readings |= fresh
        return [readings[key] for key in keys]

    def beside(self, case: CompiledCase, line: str, said: Sequence[Sentence]) -> list[tuple[ReadCandidate, ...]]:
        """As `Reader.beside`; blocking. The sentences were read before, so their vectors are at hand."""
        if not case.background or not said:
            return [() for _ in said]
        keys = [(case, (line, sentence.text)) for sentence in said]
        known = self._beside.recall(keys)
        missing = [key for key in dict.fromkeys(keys) if key not in known]
        if missing:
            compared = self._compared(case, line, [sentence for _, (_, sentence) in missing])
            fresh = dict(zip(missing, compared, strict=True))
            self._beside.keep({key: value for key, value in fresh.items() if len(key[1][1]) <= KEPT_CHARS})
            known |= fresh
        return [known[key] for key in keys]

    def _compared(self, case: CompiledCase, line: str, lines: Sequence[str]) -> list[tuple[ReadCandidate, ...]]:
        """Sentences compared with topics and background, and with what any persona answers if neither is likely.

        Not with all at once: what stands in both backgrounds would share its probability, and neither would be likely.
        """
        vectors = self._vectors(lines)
        acts = self._acts(lines, vectors)
        vectors |= self._vectors(
            text
            for text_line, does in zip(lines, acts, strict=True)
            for text in (after_line(line, text_line), *parts_of(text_line, does))
        )
        heard = [heard_of(line, text_line, vectors, does) for text_line, does in zip(lines, acts, strict=True)]
        likely: list[dict[str, float]] = [{} for _ in lines]
        for index in self._wide(case):
            left = [number for number, of_one in enumerate(likely) if max(of_one.values(), default=0.0) < ANSWERED]
            for number, candidates in zip(left, self._among(index, [heard[number] for number in left]), strict=True):
                # Where a topic is in both, it is as likely as beside the case's own background.
                likely[number] = candidates | likely[number]
        return [_candidates(list(of_one), of_one.values(), FLOOR) for of_one in likely]

    def _among(self, index: CaseIndex, heard: Sequence[Sequence[EncodedSentence]]) -> list[dict[str, float]]:
        """The probability that each sentence, given with its parts, is about what an index holds."""
        if not heard:
            return []
        starts = np.cumsum([0, *map(len, heard)])[:-1]
        features = topic_features(index, [part for parts in heard for part in parts])
        rows = self._heads.background_of(features).reshape(-1, len(index.topics))
        ids = [group.id for group in index.topics]
        return [dict(zip(ids, row, strict=True)) for row in np.maximum.reduceat(rows, starts).tolist()]

    def _readings(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        index, twice = self._index(case), self._reads_twice(case)
        lines = list(dict.fromkeys((turn[0], line) for turn in turns for line in said_in(turn)))
        vectors = self._vectors(_read_first(turns))
        texts = list(dict.fromkeys(line for _, line in lines))
        acts = dict(zip(texts, self._acts(texts, vectors), strict=True))
        alone = {line for some in _portions(lines) for line in self._alone(index, some, vectors, acts)}
        vectors |= self._vectors(
            text for line in lines for text in _read_then(line, acts[line[1]], alone=line in alone)
        )
        consoling = self._consoling(acts, vectors)
        unreadable = self._unreadable(acts)
        read: dict[_Said, Sentence] = {}
        for some in _portions(lines):
            heard = {line: heard_of(*line, vectors, acts[line[1]], alone=line in alone) for line in some}
            legible = {line: heard[line] for line in some if line[1] not in unreadable}
            about = self._candidates(index, legible, twice=twice)
            for each in some:
                does = _acts_of(acts[each[1]], consoles=each[1] in consoling)
                read[each] = _sentence(each[1], does, acts[each[1]], about.get(each))
        readings = [Reading(tuple(read[turn[0], line] for line in said_in(turn))) for turn in turns]
        if self._second is not None and twice:
            readings = read_again(self._second, case, [line for line, _ in turns], readings, self._negative(case))
        own = case.calibration
        if own is None or own.reader != self.digest:
            return readings
        return [calibrated(reading, own) for reading in readings]

    def _acts(self, texts: Sequence[str], vectors: Mapping[str, Vectors]) -> Matrix:
        """The probabilities of acts and stances, a row a text."""
        if not texts:
            return np.zeros((0, len(ACTS) + len(STANCES)), dtype=np.float32)
        return self._heads.acts_of(np.stack([vectors[text] for text in texts]))

    def _unreadable(self, acts: Mapping[str, Matrix]) -> frozenset[str]:
        """The sentences that nobody could follow: those that are no speech, and those that are broken."""
        illegible = frozenset(text for text, does in acts.items() if _is_unreadable(does))
        if self._fluency is None:
            return illegible
        return illegible | self._fluency.broken(text for text in acts if text not in illegible)

    def _alone(
        self, index: CaseIndex, lines: Iterable[_Said], vectors: Mapping[str, Vectors], acts: Mapping[str, Matrix]
    ) -> list[_Said]:
        """The short sentences that are read without the line before them."""
        short = [line for line in lines if after_line(*line) != line[1]]
        if not short:
            return []
        heard = [_heard(*line, vectors, acts[line[1]], alone=True) for line in short]
        topics, promises = self._topics(index, heard), self._promises(index, heard)
        return [
            line
            for line, asks, makes in zip(
                short, topics.max(axis=1, initial=0.0), promises.max(axis=1, initial=0.0), strict=True
            )
            if makes < NO_PROMISE and (asks >= CLEARLY_ABOUT or (asks < VAGUELY_ABOUT and _asks_nothing(line[1], acts)))
        ]

    def _vectors(self, texts: Iterable[str]) -> dict[str, Vectors]:
        wanted = list(dict.fromkeys(texts))
        return dict(zip(wanted, self._embedder.embed(wanted), strict=True)) if wanted else {}

    def _consoling(self, acts: Mapping[str, Matrix], vectors: Mapping[str, Vectors]) -> set[str]:
        """The sentences of which a part consoles that do something else, too ("Hello, that sounds exhausting.")."""
        parts = [(sentence, part) for sentence, does in acts.items() for part in _may_console(sentence, does)]
        empathy = self._acts([part for _, part in parts], vectors)[:, _EMPATHY]
        return {sentence for (sentence, _), sure in zip(parts, empathy, strict=True) if sure >= PART_CONSOLES}

    def _candidates(
        self, index: CaseIndex, heard: Mapping[_Said, Sequence[EncodedSentence]], *, twice: bool
    ) -> dict[_Said, tuple[tuple[ReadCandidate, ...], tuple[ReadCandidate, ...]]]:
        """The topics and the commitments of sentences, each given with its parts."""
        if not heard:
            return {}
        starts = np.cumsum([0, *map(len, heard.values())])[:-1]
        topics = self._topics(index, [part for parts in heard.values() for part in parts])
        promises = self._first_look(index, [parts[0] for parts in heard.values()], twice=twice)
        asked_ids = [group.id for group in index.topics]
        return {
            line: (_candidates(asked_ids, asks, FLOOR), makes)
            for line, asks, makes in zip(heard, np.maximum.reduceat(topics, starts), promises, strict=True)
        }

    def _reads_twice(self, case: CompiledCase) -> bool:
        """True if what costs in a case is read again. Of a case that it learned from, the first look errs less."""
        return self._second is not None and not case.learned and any(each.costs for each in case.commitments)

    def _first_look(
        self, index: CaseIndex, heard: Sequence[EncodedSentence], *, twice: bool
    ) -> list[tuple[ReadCandidate, ...]]:
        """The commitments that sentences may make; what is read twice: of those that may make any also unlikely ones.

        An author's examples are far from what agents say: among unlikely ones, the most alike come first.
        """
        ids = [group.id for group in index.commitments]
        features = commitment_features(index, heard)
        rows = self._made_by(index, heard, features)
        if not twice or not ids:
            return [_candidates(ids, row, COMMITMENT_FLOOR) for row in rows]
        alike = features[:, 0].reshape(rows.shape)
        looks = []
        for line, row, likeness in zip(heard, rows, alike, strict=True):
            ranked = sorted(range(len(ids)), key=lambda place: (-row[place], -likeness[place]))
            some = ranked[:AT_MOST] if float(line.acts[_COMMITTING].max()) >= MAY_MAKE else ()
            looks.append(
                tuple(ReadCandidate(ids[p], float(row[p])) for p in ranked if p in some or row[p] >= SURE_LOOK)
            )
        return looks

    def _topics(self, index: CaseIndex, heard: Sequence[EncodedSentence]) -> Probabilities:
        """A row a sentence, or a part of one; without columns where nobody has anything to tell."""
        if not index.topics:
            return np.zeros((len(heard), 0))
        rows = self._heads.topics_of(topic_features(index, heard)).reshape(len(heard), len(index.topics))
        whole = [len(content_stems(line.text)) > BARE_WORDS for line in heard]
        return _verbatim(
            rows,
            [line.text if tells else "" for line, tells in zip(heard, whole, strict=True)],
            index.topics_by_example,
        )

    def _promises(self, index: CaseIndex, heard: Sequence[EncodedSentence]) -> Probabilities:
        """A row a sentence."""
        return self._made_by(index, heard, commitment_features(index, heard))

    def _made_by(self, index: CaseIndex, heard: Sequence[EncodedSentence], features: Matrix) -> Probabilities:
        rows = self._heads.commitments_of(features).reshape(len(heard), len(index.commitments))
        return _verbatim(rows, [line.text for line in heard], index.commitments_by_example)

    def _index(self, case: CompiledCase) -> CaseIndex:
        return self._made(self._indexes, case, lambda: index_of(case, self._embedder))

    def _negative(self, case: CompiledCase) -> frozenset[str]:
        """The commitments that an author wrote a negative example for: there, a denial makes it."""
        return self._made(
            self._negatives,
            case,
            lambda: frozenset(
                group.id
                for group in self._index(case).commitments
                if (self._heads.acts_of(group.vectors)[:, len(ACTS) :].argmax(axis=1) == _NEGATED).any()
            ),
        )

    def _wide(self, case: CompiledCase) -> tuple[CaseIndex, ...]:
        """The topics with the case's own background, and with the common one; without what there is none of."""
        parts = [part for part in (case.own_background, case.common_background) if part]
        return self._made(
            self._wide_indexes, case, lambda: tuple(index_of(case, self._embedder, part) for part in parts)
        )

    def _made(
        self, kept: WeakKeyDictionary[CompiledCase, _Made], case: CompiledCase, make: Callable[[], _Made]
    ) -> _Made:
        with self._lock:
            known = kept.get(case)
        if known is None:
            # Two threads may make the same one: waiting for the other would be waiting for all that it does besides.
            made = make()
            with self._lock:
                known = kept.setdefault(case, made)
        return known


def _verbatim(rows: Probabilities, said: Sequence[str], places_of: Mapping[str, Sequence[int]]) -> Probabilities:
    """The rows, with what an author wrote for one topic or commitment alone heard as that.

    Of two that share an example the heads choose.
    """
    for number, text in enumerate(said):
        places = places_of.get(normal(text), ())
        if len(places) == 1:
            rows[number, places[0]] = max(rows[number, places[0]], VERBATIM)
    return rows


def readings_kept() -> Memory[tuple[CompiledCase, Turn], Reading]:
    """Room for the readings of turns."""
    return Memory(KEPT_TURNS, size_bytes=KEPT_BYTES, cost=lambda key, reading: sum(map(len, key[1])) + _bytes(reading))


def _bytes(reading: Reading) -> int:
    """About what a reading takes."""
    return sum(len(s.text) + 400 + CANDIDATE_BYTES * (len(s.topics) + len(s.commitments)) for s in reading.sentences)


def _acts_of(probabilities: Matrix, *, consoles: bool) -> frozenset[Act]:
    """The acts of a sentence; `consoles`: a part of it surely does."""
    acts = {act for act, p in zip(ACTS, probabilities[: len(ACTS)], strict=True) if p >= SURER.get(act, ACT)}
    return frozenset({*acts, Act.EMPATHY} if consoles else acts)


def _is_unreadable(acts: Matrix) -> bool:
    return bool(acts[ACTS.index(Act.UNREADABLE)] >= SURER[Act.UNREADABLE])


def _asks_nothing(sentence: str, acts: Mapping[str, Matrix]) -> bool:
    return "?" not in sentence and _asks(acts[sentence]) < MAY_ASK


def _asks(acts: Matrix) -> float:
    return max(float(acts[ACTS.index(act)]) for act in _ASKING)


def _sentence(
    text: str,
    does: frozenset[Act],
    acts: Matrix,
    about: tuple[tuple[ReadCandidate, ...], tuple[ReadCandidate, ...]] | None,
) -> Sentence:
    """A sentence; one that cannot be read is about nothing."""
    if about is None:
        return Sentence(text, frozenset({Act.UNREADABLE}), Stance.NONE)
    return Sentence(text, does, STANCES[int(acts[len(ACTS) :].argmax())], *about)


def _portions(lines: Sequence[_Said]) -> Iterator[Sequence[_Said]]:
    """Some at a time, with pauses."""
    for start in range(0, len(lines), AT_ONCE):
        yield_point()
        yield lines[start : start + AT_ONCE]


def _read_first(turns: Sequence[Turn]) -> Iterator[str]:
    """The sentences of turns and the clauses of questions; of few turns also questions after the line before them."""
    for turn in turns:
        for line in said_in(turn):
            yield line
            if "?" in line:
                yield from clauses(line)
                if len(turns) <= FEW_TURNS:
                    yield after_line(turn[0], line)


def _read_then(line: _Said, acts: Matrix, *, alone: bool) -> Iterator[str]:
    """The parts that are read besides a sentence, given what it does."""
    if not alone:
        yield after_line(*line)
    yield from parts_of(line[1], acts)
    yield from _may_console(line[1], acts)


def parts_of(sentence: str, acts: Matrix) -> tuple[str, ...]:
    """The clauses of a sentence that may ask for something; none of any other."""
    return clauses(sentence) if _asks(acts) >= MAY_ASK else ()


def _may_console(sentence: str, acts: Matrix) -> tuple[str, ...]:
    """The clauses of a sentence that may be sympathetic, among other things; none where there is no doubt."""
    return clauses(sentence) if MAY_CONSOLE <= acts[_EMPATHY] < ACT else ()


def heard_of(
    line: str, sentence: str, vectors: Mapping[str, Vectors], acts: Matrix, *, alone: bool = False
) -> list[EncodedSentence]:
    """A sentence as the heads see it, and then each of its parts; `alone`: not after the line before it."""
    words = content_stems(line)
    return [
        _heard(line, sentence, vectors, acts, alone=alone),
        *(
            EncodedSentence(part, vectors[part], vectors[part], words, acts, len(part) / len(sentence))
            for part in parts_of(sentence, acts)
        ),
    ]


def _heard(line: str, sentence: str, vectors: Mapping[str, Vectors], acts: Matrix, *, alone: bool) -> EncodedSentence:
    behind = sentence if alone else after_line(line, sentence)
    return EncodedSentence(sentence, vectors[sentence], vectors[behind], content_stems(line), acts)


def after_line(line: str, sentence: str) -> str:
    """An elliptic sentence behind the end of what the persona said before it; others as they are."""
    return f"{line[-LINE_CHARS:]} {sentence}" if line and is_elliptic(sentence) else sentence


def said_in(turn: Turn) -> tuple[str, ...]:
    """The sentences of a turn that are read."""
    return sentences(turn[1])[:MAX_SENTENCES]


def texts_of(turn: Turn) -> list[str]:
    """The texts to embed in order to read a turn, but for the parts of sentences."""
    lines = said_in(turn)
    return [*lines, *(after_line(turn[0], line) for line in lines)]


def _candidates(ids: Sequence[str], probabilities: Iterable[float], floor: float) -> tuple[ReadCandidate, ...]:
    candidates = [ReadCandidate(name, float(p)) for name, p in zip(ids, probabilities, strict=True) if p >= floor]
    return tuple(sorted(candidates, key=lambda candidate: -candidate.confidence))
