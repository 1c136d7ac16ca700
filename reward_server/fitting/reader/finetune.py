"""Fine-tunes the upper layers of the packaged encoder for reading; the lower ones stay frozen and are computed once.

One step reads some turns of one case against a sample of its authored texts. The losses, summed: which topics a turn
asks about and which commitments it makes (binary cross-entropy, and cross-entropy among those of the case, on the
largest scaled cosine of any sentence with any example), and what sentences do (binary cross-entropy over acts,
cross-entropy over stances, from a linear layer that is thrown away afterwards).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from personas.case.compiled import CompiledCase, CompiledTopic
from personas.reading.acts import Stance
from personas.reading.heads import ACTS, STANCES
from personas.reading.reader import after_line
from personas.text.sentences import sentences
from reward_server.encoders.minilm import WIDTH, EncoderCheckpoint
from reward_server.fitting.reader.dataset import ActRow, ReaderRow
from reward_server.fitting.reader.tuner import Tuner
from scenarios.turns import BACKGROUND_KIND, quote_of

TURNS_A_STEP = 150
"""Many turns share the authored texts of a step, which cost the most."""
ASKS, ANSWERS, PROMISES, ACTS_A_STEP = 4, 2, 5, 64
"""Sampled per step: example questions and answers a topic, examples a commitment, labelled sentences."""
BACKGROUND_ASKS, BACKGROUND_ANSWERS = 3, 1
"""Fewer of each entry of the background: there are more of them."""
BESIDE_KNOWN = ("specific", "double", BACKGROUND_KIND)
"""Kinds of turns of which it is known what of the background they are about: others may be about any of it."""
EPOCHS, RATE = 6, 1.5e-4
OPEN_WEIGHT = 0.3
"""Of an open invitation any of several topics would be apt: it teaches less than a question."""
ABSENT = -30.0

Progress = Callable[[int, int, float], None]
Kept = Callable[[int, dict[str, Tensor]], None]
Scenes = Mapping[tuple[str, str], tuple[CompiledCase, Sequence[ReaderRow]]]


@dataclass(slots=True)
class _Anchors:
    """The authored texts of a step, and whose they are."""

    texts: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)

    def add(self, draw: random.Random, kind: int, owner: int, texts: Sequence[str], most: int) -> None:
        """Some of the texts of one topic or commitment."""
        for text in draw.sample(texts, min(len(texts), most)):
            self.texts.append(text)
            self.owners.append(owner)
            self.kinds.append(kind)


class _Losses(nn.Module):
    """The scales of the cosines, and the throw-away heads for acts and stances."""

    def __init__(self) -> None:
        super().__init__()
        self.topic = nn.Parameter(torch.tensor([14.0, 8.0, -7.0]))
        self.promise = nn.Parameter(torch.tensor([14.0, -9.0]))
        self.acts, self.stances = nn.Linear(WIDTH, len(ACTS)), nn.Linear(WIDTH, len(STANCES))


def fine_tune(
    checkpoint: EncoderCheckpoint,
    scenes: Scenes,
    acts: Sequence[ActRow],
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    progress: Progress | None = None,
    after_epoch: Kept | None = None,
) -> dict[str, Tensor]:
    """The encoder's weights after training; blocking.

    Args:
        checkpoint: the packaged encoder.
        scenes: by collection and scenario, the case and the labelled turns that are read in it.
        acts: sentences labelled with acts.
        seed: of all samples.
        epochs: passes over the turns.
        progress: is told of step, number of steps and loss.
        after_epoch: is given the number of the epoch, from 1, and the weights after it.
    """
    torch.manual_seed(seed)
    draw = random.Random(seed)  # noqa: S311 (samples, no secrets)
    tuner, losses = Tuner(checkpoint), _Losses()
    tuner.keep([*_texts(scenes), *(row.text for row in acts)])
    an_epoch = sum(-(-len(rows) // TURNS_A_STEP) for _, rows in scenes.values())
    groups: list[dict[str, Any]] = [
        {"params": list(tuner.upper.parameters()), "weight_decay": 0.01},
        {"params": [losses.topic, losses.promise], "weight_decay": 0.0},
        {"params": [*losses.acts.parameters(), *losses.stances.parameters()]},
    ]
    optimizer = AdamW(groups)
    schedule = OneCycleLR(optimizer, [RATE, 3e-2, 1e-2], total_steps=an_epoch * epochs, pct_start=0.1)
    for epoch in range(1, epochs + 1):
        for number, (key, rows) in enumerate(_steps(scenes, draw), (epoch - 1) * an_epoch + 1):
            some = draw.sample(list(acts), min(ACTS_A_STEP, len(acts)))
            loss = _loss(tuner, losses, scenes[key][0], rows, some, draw)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(tuner.upper.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if progress is not None:
                progress(number, an_epoch * epochs, float(loss.detach()))
        if after_epoch is not None:
            after_epoch(epoch, tuner.tuned())
    return tuner.tuned()


def _held(case: CompiledCase) -> tuple[CompiledTopic, ...]:
    """The topics and the background of the case: what a turn may be about."""
    return (*case.topics, *case.own_background)


def _steps(scenes: Scenes, draw: random.Random) -> list[tuple[tuple[str, str], list[ReaderRow]]]:
    """All turns once, in steps of one case each, in random order."""
    steps = [
        (key, rows[start : start + TURNS_A_STEP])
        for key, (_, of_case) in scenes.items()
        for rows in [draw.sample(list(of_case), len(of_case))]
        for start in range(0, len(rows), TURNS_A_STEP)
    ]
    draw.shuffle(steps)
    return steps


def _texts(scenes: Scenes) -> Iterator[str]:
    for case, rows in scenes.values():
        for topic in _held(case):
            yield from (*topic.examples, *topic.says, *topic.answers)
        for commitment in case.commitments:
            yield from commitment.examples
        for row in rows:
            for sentence in sentences(row.turn.turn):
                yield from (sentence, after_line(row.turn.line, sentence))


def _loss(  # noqa: PLR0917 (one step's whole material)
    tuner: Tuner,
    losses: _Losses,
    case: CompiledCase,
    rows: Sequence[ReaderRow],
    acts: Sequence[ActRow],
    draw: random.Random,
) -> Tensor:
    anchors = _Anchors()
    held = _held(case)
    for number, topic in enumerate(held):
        asks, answers = (BACKGROUND_ASKS, BACKGROUND_ANSWERS) if topic.id in case.background else (ASKS, ANSWERS)
        anchors.add(draw, 0, number, topic.examples or topic.says, asks)
        anchors.add(draw, 1, number, topic.answers or topic.says, answers)
    for number, commitment in enumerate(case.commitments):
        anchors.add(draw, 2, number, commitment.examples, PROMISES)
    spoken_sentences = [(turn, sentence) for turn, row in enumerate(rows) for sentence in sentences(row.turn.turn)]
    texts = [after_line(rows[turn].turn.line, sentence) for turn, sentence in spoken_sentences]
    vectors = tuner([*anchors.texts, *texts, *(row.text for row in acts)])
    authored, spoken, labelled = vectors.split([len(anchors.texts), len(texts), len(acts)])
    cosines = spoken @ authored.T
    itself = torch.tensor([[anchor == text for anchor in anchors.texts] for _, text in spoken_sentences])
    cosines = cosines.masked_fill(itself, -1.0)
    turn_of = torch.tensor([turn for turn, _ in spoken_sentences])

    def best(kind: int, size: int) -> Tensor:
        of_kind = torch.tensor([anchor_kind == kind for anchor_kind in anchors.kinds])
        owners = torch.tensor(anchors.owners)[of_kind].expand(len(spoken_sentences), -1)
        empty = torch.full((len(spoken_sentences), size), -1.0)
        return empty.scatter_reduce(1, owners, cosines[:, of_kind], "amax", include_self=False)

    def by_turn(logits: Tensor) -> Tensor:
        empty = torch.full((len(rows), logits.shape[1]), ABSENT)
        return empty.scatter_reduce(0, turn_of[:, None].expand_as(logits), logits, "amax")

    topics = losses.topic[0] * best(0, len(held)) + losses.topic[1] * best(1, len(held)) + losses.topic[2]
    wanted = torch.tensor([[float(topic.id in row.turn.asks) for topic in held] for row in rows])
    beside = torch.tensor([topic.id in case.background for topic in held])
    known = torch.tensor([row.turn.kind in BESIDE_KNOWN for row in rows])
    topics = by_turn(topics).masked_fill(beside & ~known[:, None], ABSENT)
    weight = torch.tensor([OPEN_WEIGHT if row.turn.kind == "open" else 1.0 for row in rows])
    loss = _among(topics, wanted, weight)
    if case.commitments:
        promises = losses.promise[0] * best(2, len(case.commitments)) + losses.promise[1]
        made = torch.tensor([[float(c.id in row.turn.commits) for c in case.commitments] for row in rows])
        loss = loss + 1.5 * _among(by_turn(promises), made, torch.ones(len(rows)))
    loss = loss + _act_loss(losses, labelled, acts)
    return loss + _stance_loss(losses, spoken, rows, spoken_sentences)


def _among(logits: Tensor, wanted: Tensor, weight: Tensor) -> Tensor:
    """Each alone, and for turns that have one, all of a case against each other."""
    alone = (F.binary_cross_entropy_with_logits(logits, wanted, reduction="none").sum(1) * weight).mean()
    share = wanted / wanted.sum(1, keepdim=True).clamp(min=1)
    chosen = -(F.log_softmax(logits, dim=1) * share).sum(1) * weight
    return alone + chosen.sum() / (wanted.sum(1) > 0).sum().clamp(min=1)


def _act_loss(losses: _Losses, vectors: Tensor, rows: Sequence[ActRow]) -> Tensor:
    if not rows:
        return torch.zeros(())
    acts = torch.tensor([[float(act.value in row.acts) for act in ACTS] for row in rows])
    stances = torch.tensor([STANCES.index(Stance(row.stance)) for row in rows])
    by_act = F.binary_cross_entropy_with_logits(losses.acts(vectors), acts, reduction="none").sum(1).mean()
    return 0.5 * by_act + 0.3 * F.cross_entropy(losses.stances(vectors), stances)


def _stance_loss(
    losses: _Losses, vectors: Tensor, rows: Sequence[ReaderRow], spoken_sentences: Sequence[tuple[int, str]]
) -> Tensor:
    """The stance of sentences whose turn tells it: of near misses of one sentence, and of those that commit."""
    known: list[tuple[int, int]] = []
    for number, (turn, sentence) in enumerate(spoken_sentences):
        row = rows[turn].turn
        if row.kind == "near_commit" and row.stance and len(sentences(row.turn)) == 1:
            known.append((number, STANCES.index(Stance(row.stance))))
        elif any(quote_of(row, name) == sentence for name in row.commits):
            known.append((number, STANCES.index(Stance.ASSERTED)))
    if not known:
        return torch.zeros(())
    numbers, stances = (torch.tensor(column) for column in zip(*known, strict=True))
    return 0.3 * F.cross_entropy(losses.stances(vectors[numbers]), stances)
