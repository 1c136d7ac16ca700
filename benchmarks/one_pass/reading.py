"""The local reader on vectors that are pooled from one pass, and its heads fitted on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from benchmarks.one_pass.passes import PassEncoder, alone, passes_of
from personas.case.compiled import CompiledCase
from personas.reading.acts import ReadCandidate, Reading, Sentence
from personas.reading.embedder import Embedder, Vectors
from personas.reading.features import EncodedSentence
from personas.reading.fluency import Fluency
from personas.reading.heads import NETWORKS, ReaderHeads, network_of
from personas.reading.index import CaseIndex
from personas.reading.reader import LocalReader, Turn
from reward_server.encoders.encoder import EncoderMatcher
from reward_server.fitting.reader.dataset import ActRow, ReaderRow
from reward_server.fitting.reader.heads import fit_acts
from reward_server.fitting.reader.spoken import ActBag, act_bags
from reward_server.fitting.reader.train import UNREADABLE_EACH, TurnBags, fit_turn_heads

TURNS_AT_ONCE = 512


class PassVectors(Embedder):
    """Vectors of the texts of the turn that is looked at; of any other text, that of a pass over it alone."""

    def __init__(self, encoder: PassEncoder) -> None:
        self._encoder = encoder
        self._authored = EncoderMatcher(encoder.whole)
        self._turns: dict[Turn, dict[str, Vectors]] = {}
        self._alone: dict[str, Vectors] = {}
        self._now: Mapping[str, Vectors] = {}

    @property
    def version(self) -> str:
        """The design."""
        return f"one-pass/{self._encoder.design}"

    def keep(self, turns: Sequence[Turn]) -> None:
        """Encode turns in large batches."""
        fresh = [turn for turn in dict.fromkeys(turns) if turn not in self._turns]
        for start in range(0, len(fresh), TURNS_AT_ONCE):
            passes = [
                (turn, each)
                for turn in fresh[start : start + TURNS_AT_ONCE]
                for each in passes_of(self._encoder.tokenizer, turn, self._encoder.design)
            ]
            for (turn, each), rows in zip(passes, self._encoder.vectors([each for _, each in passes]), strict=True):
                own = self._turns.setdefault(turn, {})
                for (text, _), row in zip(each.spans, rows.numpy(), strict=True):
                    own.setdefault(text, row)

    def look(self, turn: Turn) -> None:
        """From now on, texts are those of this turn."""
        self.keep([turn])
        self._now = self._turns.get(turn, {})

    def embed(self, texts: Sequence[str]) -> Vectors:
        """As the port says, but for this turn."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._now and text not in self._alone]
        rows = self._encoder.vectors([alone(self._encoder.tokenizer, text) for text in missing])
        self._alone |= {text: row[0].numpy() for text, row in zip(missing, rows, strict=True)}
        return np.stack([self._now[text] if text in self._now else self._alone[text] for text in texts])

    def embed_authored(self, texts: Sequence[str]) -> Vectors:
        """Of texts of a case, as the reader has them today."""
        return self._authored.embed_authored(texts)

    async def prefetched(self, texts: Sequence[str]) -> None:
        """Nothing: which turn the texts will be of is not known yet."""


class OnePassReader(LocalReader):
    """Reads one turn after the other, each from its own pass."""

    def __init__(self, vectors: PassVectors, heads: ReaderHeads, fluency: Fluency | None) -> None:
        super().__init__(vectors, heads, fluency)
        self._pooled = vectors

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        """One reading per turn."""
        self._pooled.keep(turns)
        return [self._after_look(case, turn) for turn in turns]

    def _after_look(self, case: CompiledCase, turn: Turn) -> Reading:
        self._pooled.look(turn)
        return super().read(case, [turn])[0]

    def beside(self, case: CompiledCase, line: str, said: Sequence[Sentence]) -> list[tuple[ReadCandidate, ...]]:
        """As the reader, from a pass over these sentences."""
        self._pooled.look((line, "\n".join(sentence.text for sentence in said)))
        return super().beside(case, line, said)


class PassBags(TurnBags):
    """Turns as bags of features, each from its own pass."""

    def heard(
        self, rows: Iterable[ReaderRow]
    ) -> Iterator[tuple[ReaderRow, list[tuple[CaseIndex, list[EncodedSentence]]]]]:
        """As `TurnBags`, with the pass of the turn."""
        for row in rows:
            _pass_vectors(self.embedder).look((row.turn.line, row.turn.turn))
            yield from super().heard([row])


def _pass_vectors(embedder: Embedder) -> PassVectors:
    if not isinstance(embedder, PassVectors):
        raise TypeError("turns are looked at in passes alone")
    return embedder


def heads_of(
    vectors: PassVectors,
    acts: Sequence[ActRow],
    cases: Mapping[tuple[str, str], CompiledCase],
    rows: Sequence[ReaderRow],
    seed: int,
) -> ReaderHeads:
    """All heads, as `reward_server.fitting.reader.train.fit_heads` fits them."""
    vectors.keep([(row.turn.line, row.turn.turn) for row in rows])
    spoken = list(_spoken(vectors, acts, rows))
    tensors = fit_acts([bag for bag, _ in spoken], [found for _, found in spoken], seed=seed)
    head = network_of({name: tensor.numpy() for name, tensor in tensors.items()}, "acts")
    tensors |= fit_turn_heads(vectors, head, cases, rows, seed, bags_of=PassBags)
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    return ReaderHeads("one-pass", *(network_of(arrays, name) for name in NETWORKS))


def _spoken(
    vectors: PassVectors, acts: Sequence[ActRow], rows: Sequence[ReaderRow]
) -> Iterator[tuple[ActBag, Vectors]]:
    """What the head for acts learns from, with the vectors: sentences alone, and those of turns in their pass."""
    single = act_bags(acts, [], [row.text for row in acts[::UNREADABLE_EACH]])
    vectors.embed([text for bag in single for text in bag.texts])
    for bag in single:
        yield bag, vectors.embed(bag.texts)
    for row in rows:
        vectors.look((row.turn.line, row.turn.turn))
        for bag in act_bags([], [row], []):
            yield bag, vectors.embed(bag.texts)
