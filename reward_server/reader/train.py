"""Trains the local reader: fine-tunes the encoder, fits the heads, and writes both into one artefact.

Leave-one-collection-out repeats all of it without one collection, and measures on that one, whose cases then have
their authors' examples alone: that is how well a scenario of one's own will be understood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from safetensors.torch import save
from torch import Tensor

from personas.reading.acts import Act, Stance
from personas.reading.embedder import Vectors
from personas.reading.features import Heard, commitment_features, topic_features
from personas.reading.heads import Network, act_probabilities, network_of
from personas.reading.index import CaseIndex, Group, index_of
from personas.reading.reader import after_line
from personas.reading.sentences import sentences
from personas.wording import content_stems
from reward_server.reader.dataset import ActRow, Row, borrowed
from reward_server.reader.encoder import MAX_TOKENS, layers_of
from reward_server.reader.finetune import LOWEST, OPEN_WEIGHT, Progress, fine_tune
from reward_server.reader.heads import Bag, fit_acts, fit_bags, unreadable
from reward_server.reward_models.encoder import EncoderMatcher
from reward_server.reward_models.minilm import Checkpoint, MiniLmEncoder, packaged_folder, read_checkpoint
from scenarios.library import Library
from scenarios.turns import quote_of

UNREADABLE_EACH = 8
"""Of so many labelled sentences one is made unreadable, in every way."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a reader is trained on."""

    library: Library
    rows: Sequence[Row]
    acts: Sequence[ActRow]


def train(lesson: Lesson, *, seed: int = 0, progress: Progress | None = None) -> bytes:
    """The artefact, a safetensors file; blocking, some fifteen minutes on two cores for 8,000 turns."""
    library = lesson.library
    rows = [*lesson.rows, *borrowed(library, lesson.rows, seed)]
    by_case: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_case.setdefault(row.key, []).append(row)
    scenes = {key: (library.vault.open(*key).case, of_case) for key, of_case in by_case.items()}
    packaged = read_checkpoint(packaged_folder())
    weights = fine_tune(packaged, scenes, lesson.acts, seed=seed, progress=progress)
    return save(
        {
            **fit_heads(Checkpoint(weights, packaged.tokenizer, "trained"), lesson, rows, seed),
            **layers_of(weights, LOWEST),
        }
    )


def fit_heads(checkpoint: Checkpoint, lesson: Lesson, rows: Sequence[Row], seed: int) -> dict[str, Tensor]:
    """The tensors of all heads on an encoder."""
    embedder = EncoderMatcher(MiniLmEncoder(*checkpoint, MAX_TOKENS), cache_size=200_000)
    embedder.embed(list(dict.fromkeys(text for row in rows for text in _texts(row))))
    act_rows = [*lesson.acts, *_acts_of_turns(rows), *unreadable([row.text for row in lesson.acts[::UNREADABLE_EACH]])]
    acts = fit_acts(act_rows, embedder.embed([row.text for row in act_rows]), seed=seed)
    head = network_of({name: tensor.numpy() for name, tensor in acts.items()}, "acts")
    keys = {row.key for row in rows}
    indexes = {key: index_of(lesson.library.vault.open(*key).case, embedder) for key in keys}
    bags = _Bags(embedder, head, indexes)
    topics, promises = bags.of(rows)
    return {**acts, **fit_bags(topics, "topic", seed=seed), **fit_bags(promises, "commitment", seed=seed)}


def _texts(row: Row) -> Iterable[str]:
    for sentence in sentences(row.turn.turn):
        yield sentence
        yield after_line(row.turn.line, sentence)


def _acts_of_turns(rows: Iterable[Row]) -> Iterable[ActRow]:
    """Sentences whose act follows from the label of their turn."""
    for row in rows:
        turn = row.turn
        said = sentences(turn.turn)
        if len(said) == 1 and turn.asks and turn.kind in ("specific", "double"):
            yield ActRow(row.collection, said[0], frozenset({Act.ASK.value}), Stance.NONE.value)
        elif len(said) == 1 and turn.kind == "open":
            yield ActRow(row.collection, said[0], frozenset({Act.INVITE.value}), Stance.NONE.value)
        elif len(said) == 1 and turn.acts:
            yield ActRow(row.collection, said[0], frozenset(turn.acts), Stance.NONE.value)
        for name in turn.commits:
            quote = quote_of(turn, name)
            if quote and not quote.endswith("?"):
                yield ActRow(row.collection, quote, frozenset({Act.PROPOSE.value}), Stance.ASSERTED.value)


@dataclass(frozen=True, slots=True)
class _Bags:
    """Turns as bags of features, as the reader will see them but for the examples that they lent themselves."""

    embedder: EncoderMatcher
    head: Network
    indexes: Mapping[tuple[str, str], CaseIndex]

    def of(self, rows: Sequence[Row]) -> tuple[list[Bag], list[Bag]]:
        """The bags for topics, and for commitments."""
        topics: list[Bag] = []
        promises: list[Bag] = []
        for row in rows:
            said = sentences(row.turn.turn)
            if not said:
                continue
            index = self.indexes[row.key]
            vectors = self.embedder.embed(said)
            heard = [
                Heard(each, vector, self._after(row, each), content_stems(row.turn.line), acts)
                for each, vector, acts in zip(said, vectors, act_probabilities(self.head, vectors), strict=True)
            ]
            own = [_without(index, each.text) for each in heard]
            weight = OPEN_WEIGHT if row.turn.kind == "open" else 1.0
            topics.append(
                Bag(
                    np.stack([topic_features(i, each) for i, each in zip(own, heard, strict=True)]),
                    _labels(index.topics, row.turn.asks),
                    weight,
                )
            )
            if index.commitments:
                features = np.stack([commitment_features(i, each) for i, each in zip(own, heard, strict=True)])
                promises.append(Bag(features, _labels(index.commitments, row.turn.commits)))
        return topics, promises

    def _after(self, row: Row, sentence: str) -> Vectors:
        vector: Vectors = self.embedder.embed([after_line(row.turn.line, sentence)])[0]
        return vector


def _labels(groups: Sequence[Group], names: Sequence[str]) -> Vectors:
    return np.array([group.id in names for group in groups], dtype=np.float32)


def _without(index: CaseIndex, sentence: str) -> CaseIndex:
    """The index without a sentence among its examples: nobody learns from a likeness with itself."""
    return replace(
        index,
        topics=tuple(_group_without(group, sentence) for group in index.topics),
        commitments=tuple(_group_without(group, sentence) for group in index.commitments),
    )


def _group_without(group: Group, sentence: str) -> Group:
    if sentence not in group.texts or len(group.texts) < 2:
        return group
    kept = [number for number, text in enumerate(group.texts) if text != sentence]
    vectors = group.vectors[kept]
    mean = vectors.mean(axis=0)
    return replace(
        group,
        texts=tuple(group.texts[number] for number in kept),
        vectors=vectors,
        centroid=mean / max(float(np.linalg.norm(mean)), 1e-6),
    )
