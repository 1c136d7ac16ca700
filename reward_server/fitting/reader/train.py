"""Trains the local reader: fine-tunes the encoder, fits the heads, and writes both into one artefact.

Leave-collections-out repeats all of it without some collections, and measures on those, whose cases then have their
authors' examples alone: that is how well a scenario of one's own will be understood.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from safetensors.torch import save
from torch import Tensor

from personas.case.compiled import CompiledCase
from personas.reading.embedder import Embedder, Vectors
from personas.reading.features import EncodedSentence, commitment_features, topic_features
from personas.reading.heads import Network, act_probabilities, network_of
from personas.reading.index import CaseIndex, TextGroup, index_of
from personas.reading.reader import heard_of, parts_of, said_in, texts_of
from reward_server.encoders.encoder import EncoderMatcher
from reward_server.encoders.minilm import EncoderCheckpoint, MiniLmEncoder, packaged_folder, read_checkpoint
from reward_server.fitting.reader.dataset import (
    ActRow,
    ReaderRow,
    after_lines,
    background_rows,
    borrowed,
    without,
)
from reward_server.fitting.reader.finetune import EPOCHS, OPEN_WEIGHT, Progress, fine_tune
from reward_server.fitting.reader.heads import Bag, fit_acts, fit_bags
from reward_server.fitting.reader.spoken import act_bags
from reward_server.fitting.reader.tuner import LOWEST
from reward_server.reader.encoder import MAX_TOKENS, layers_of, tuned
from scenarios.library import Library
from scenarios.practice import PracticeCase
from scenarios.turns import BACKGROUND_KIND

TOPIC_EPOCHS, COMMITMENT_EPOCHS = 10, 20
"""Best on the turns kept aside."""
BACKGROUND_ODDS = 0.65
"""Questions of backgrounds are more frequent among the turns than in talks. So much (log odds) a topic is likelier than
the turns say: chosen on the turns kept aside, where as many specific questions are understood as without them."""
BESIDE, LEAST_BESIDE = 3_000, 500
"""So many questions about topics, and about the background, are read among both: at most, and at least."""
PRACTICE_TIMES = 2
"""So often a practice turn is read in one pass: they are few, and teach to understand a case that is not known."""
MOST_TEXTS, MOST_BYTES = 400_000, 1_000_000_000
"""All texts of a training are remembered: each is in several bags, and encoding takes most of the time."""
UNREADABLE_EACH = 8
"""Of so many labelled sentences one is made unreadable, in every way."""


@dataclass(frozen=True, slots=True)
class ReaderTrainingSet:
    """The data that a reader is trained on."""

    library: Library
    rows: Sequence[ReaderRow]
    acts: Sequence[ActRow]
    practice: Sequence[PracticeCase] = ()

    def cases(self) -> dict[tuple[str, str], CompiledCase]:
        """The case of each row, by collection and scenario; of practice cases by domain and slug."""
        keys = dict.fromkeys(row.key for row in self.rows)
        return {key: self.library.vault.open(*key).case for key in keys} | {
            case.key: case.compiled() for case in self.practice
        }


def lesson_of(
    library: Library,
    rows: Sequence[ReaderRow],
    acts: Sequence[ActRow],
    left_out: Collection[str] = (),
    practice: Iterable[PracticeCase] = (),
) -> ReaderTrainingSet:
    """The training set but for the turns and practice cases kept aside, and all of the collections left out."""
    return ReaderTrainingSet(
        library,
        [row for row in without(rows, left_out) if not row.turn.kept_aside],
        [row for row in acts if row.collection not in left_out],
        [case for case in practice if not case.held_out],
    )


def train(
    lesson: ReaderTrainingSet,
    *,
    start: bytes | None = None,
    seed: int = 0,
    epochs: int = EPOCHS,
    progress: Progress | None = None,
    tuned_to: Callable[[bytes], None] | None = None,
) -> bytes:
    """The artefact, a safetensors file; blocking, half an hour on one core for 8,000 turns and 6 passes.

    Args:
        lesson: what there is to learn.
        start: an artefact whose encoder is trained further; by default the packaged encoder is, from its beginning.
        seed: decides samples and initial weights.
        epochs: passes over the turns; with 0 only the heads are fitted.
        progress: is told of step, number of steps and loss.
        tuned_to: is given the encoder after each epoch, as an artefact without heads that `start` takes: what is
            interrupted need not begin again.
    """
    cases = lesson.cases()
    rows = rows_of(lesson, cases, seed)
    by_case: dict[tuple[str, str], list[ReaderRow]] = {}
    for row in rows:
        by_case.setdefault(row.key, []).append(row)
    packaged = read_checkpoint(packaged_folder())
    checkpoint = packaged if start is None else tuned(packaged, start)
    weights = checkpoint.weights
    if epochs:
        weights = fine_tune(
            checkpoint,
            {key: (cases[key], of_case) for key, of_case in by_case.items()},
            lesson.acts,
            seed=seed,
            epochs=epochs,
            progress=progress,
            after_epoch=None if tuned_to is None else lambda _, upper: tuned_to(save(layers_of(upper, LOWEST))),
        )
    trained = EncoderCheckpoint(weights, packaged.tokenizer, "trained")
    return save({**fit_heads(trained, lesson.acts, cases, rows, seed), **layers_of(weights, LOWEST)})


def rows_of(lesson: ReaderTrainingSet, cases: Mapping[tuple[str, str], CompiledCase], seed: int) -> list[ReaderRow]:
    """All turns that a training reads in one pass: also practised ones, and those that its cases give."""
    more = (*borrowed(lesson.library, lesson.rows, seed), *background_rows(cases))
    practised = [ReaderRow(*case.key, turn) for case in lesson.practice for turn in case.turns] * PRACTICE_TIMES
    return list(after_lines(cases, [*lesson.rows, *practised, *more], seed))


def fit_heads(
    checkpoint: EncoderCheckpoint,
    labelled_acts: Sequence[ActRow],
    cases: Mapping[tuple[str, str], CompiledCase],
    rows: Sequence[ReaderRow],
    seed: int,
) -> dict[str, Tensor]:
    """The tensors of all heads on an encoder."""
    embedder = EncoderMatcher(MiniLmEncoder(*checkpoint, MAX_TOKENS), cache_size=MOST_TEXTS, cache_bytes=MOST_BYTES)
    spoken = act_bags(labelled_acts, rows, [row.text for row in labelled_acts[::UNREADABLE_EACH]])
    embedder.embed(list(dict.fromkeys(text for bag in spoken for text in bag.texts)))
    acts = fit_acts(spoken, [embedder.embed(bag.texts) for bag in spoken], seed=seed)
    head = network_of({name: tensor.numpy() for name, tensor in acts.items()}, "acts")
    _embed_turns(embedder, head, rows)
    return {**acts, **fit_turn_heads(embedder, head, cases, rows, seed)}


def fit_turn_heads(
    embedder: Embedder,
    head: Network,
    cases: Mapping[tuple[str, str], CompiledCase],
    rows: Sequence[ReaderRow],
    seed: int,
    *,
    bags_of: type[TurnBags] | None = None,
) -> dict[str, Tensor]:
    """The tensors of the heads that compare turns with a case, given the head for acts.

    Args:
        embedder: of texts of turns and cases.
        head: the one for acts.
        cases: of the rows, by collection and scenario.
        rows: labelled turns.
        seed: decides samples and initial weights.
        bags_of: how turns are made into bags; by default `TurnBags`.
    """
    bags_of = bags_of or TurnBags
    indexes = {key: index_of(cases[key], embedder) for key in {row.key for row in rows}}
    bags = bags_of(embedder, head, indexes)
    # An offer of the background may well be what somebody says who makes a commitment: it teaches nothing about that.
    labelled = [row for row in rows if row.turn.kind != BACKGROUND_KIND]
    heads = {
        **_shifted(fit_bags(bags.topics(rows), "topic", epochs=TOPIC_EPOCHS, seed=seed), "topic", BACKGROUND_ODDS),
        **fit_bags(bags.promises(labelled), "commitment", epochs=COMMITMENT_EPOCHS, seed=seed),
    }
    wide = {key: index_of(cases[key], embedder, cases[key].own_background) for key in indexes}
    asides = _beside(rows, seed)
    return heads | fit_bags(bags_of(embedder, head, wide).topics(asides), "background", epochs=TOPIC_EPOCHS, seed=seed)


def _embed_turns(embedder: EncoderMatcher, head: Network, rows: Sequence[ReaderRow]) -> None:
    """Embed all texts of all turns in large batches: turn by turn it would take several times as long."""
    turns = [(row.turn.line, row.turn.turn) for row in rows]
    embedder.embed(list(dict.fromkeys(text for turn in turns for text in texts_of(turn))))
    spoken = list(dict.fromkeys(text for turn in turns for text in said_in(turn)))
    acts = act_probabilities(head, embedder.embed(spoken))
    embedder.embed(
        list(dict.fromkeys(part for text, does in zip(spoken, acts, strict=True) for part in parts_of(text, does)))
    )


def _shifted(tensors: dict[str, Tensor], name: str, by: float) -> dict[str, Tensor]:
    """A head whose logits are all raised by as much: the correction of its prior."""
    last = max(key for key in tensors if key.startswith(f"{name}.bias."))
    return {**tensors, last: tensors[last] + by}


def _beside(rows: Sequence[ReaderRow], seed: int) -> list[ReaderRow]:
    """The rows that teach to tell topics from background: questions about the one and the other, as many of each."""
    asides = [row for row in rows if row.turn.kind == BACKGROUND_KIND]
    asking = [row for row in rows if row.turn.kind in ("specific", "double")]
    size = min(BESIDE, len(asking), max(len(asides), LEAST_BESIDE))
    draw = random.Random(seed)  # noqa: S311 (a sample, no secret)
    return [*draw.sample(asking, size), *draw.sample(asides, min(BESIDE, len(asides)))]


@dataclass(frozen=True, slots=True)
class TurnBags:
    """Turns as bags of features, as the reader will see them but for the examples that they lent themselves."""

    embedder: Embedder
    head: Network
    indexes: Mapping[tuple[str, str], CaseIndex]

    def topics(self, rows: Sequence[ReaderRow]) -> list[Bag]:
        """The bags for what turns ask about."""
        bags = []
        for row, parts in self.heard(rows):
            index = self.indexes[row.key]
            asking = [topic_features(own, [part]) for own, heard in parts for part in heard]
            weight = OPEN_WEIGHT if row.turn.kind == "open" else 1.0
            bags.append(Bag(np.stack(asking), _labels(index.topics, row.turn.asks), weight))
        return bags

    def promises(self, rows: Sequence[ReaderRow]) -> list[Bag]:
        """The bags for the commitments that turns make."""
        bags = []
        for row, parts in self.heard(row for row in rows if self.indexes[row.key].commitments):
            index = self.indexes[row.key]
            making = [commitment_features(own, heard[:1]) for own, heard in parts]
            bags.append(Bag(np.stack(making), _labels(index.commitments, row.turn.commits)))
        return bags

    def heard(
        self, rows: Iterable[ReaderRow]
    ) -> Iterator[tuple[ReaderRow, list[tuple[CaseIndex, list[EncodedSentence]]]]]:
        """Per turn its sentences with their parts, each with an index that does not have it."""
        for row in rows:
            turn = (row.turn.line, row.turn.turn)
            spoken = said_in(turn)
            if not spoken:
                continue
            acts = act_probabilities(self.head, self.embedder.embed(spoken))
            texts = [
                *texts_of(turn),
                *(part for text, does in zip(spoken, acts, strict=True) for part in parts_of(text, does)),
            ]
            vectors = dict(zip(texts, self.embedder.embed(texts), strict=True))
            yield (
                row,
                [
                    (_without(self.indexes[row.key], text), heard_of(turn[0], text, vectors, does))
                    for text, does in zip(spoken, acts, strict=True)
                ],
            )


def _labels(groups: Sequence[TextGroup], names: Sequence[str]) -> Vectors:
    return np.array([group.id in names for group in groups], dtype=np.float32)


def _without(index: CaseIndex, sentence: str) -> CaseIndex:
    """The index without a sentence among its examples: nobody learns from a likeness with itself."""
    return replace(
        index,
        topics=tuple(_group_without(group, sentence) for group in index.topics),
        commitments=tuple(_group_without(group, sentence) for group in index.commitments),
    )


def _group_without(group: TextGroup, sentence: str) -> TextGroup:
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
