"""Trains the second reader, which decides whether a turn makes a commitment.

A pair is what a commitment is (`reward_server.reader.second.described`) and what was said. Each turn is read with the
commitments it makes, with the one it nearly makes, and with others of its case that are alike: the likeliest by the
packaged encoder, and one drawn. The lower layers stay as they are and are computed once a segment; the upper ones and
the head are trained with binary cross-entropy, in which near misses count twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from personas.case.compiled import CompiledCase, CompiledCommitment
from personas.text.sentences import sentences
from reward_server.encoders.minilm import LAYERS, NORM_EPSILON, WIDTH, EncoderCheckpoint, MiniLmEncoder
from reward_server.fitting.reader.dataset import ReaderRow
from reward_server.fitting.reader.tuner import Block, mask_of
from reward_server.reader.encoder import MAX_TOKENS
from reward_server.reader.second import EXAMPLES, LOWER, Ids, described, log_odds, packed, spoken
from scenarios.practice import PracticeCase
from scenarios.turns import BACKGROUND_KIND

EPOCHS, BATCH, RATE, HEAD_RATE = 2, 48, 1e-4, 2e-3
HEAD_WIDTH, DROPOUT = 64, 0.1
NEAR_WEIGHT = 2.0
FAR_TIMES = 2
"""Turns written far from the examples are read so many times an epoch: there are few of them."""
OTHER_SHARE = 0.5
"""Of the turns that are about no commitment, so many are read with the likeliest one."""
COMMITTING, ABOUT_SHARE = ("commit", "near_commit"), 0.6
"""Kinds of turns that are about commitments, and their share of the turns of scenarios."""
AT_ONCE = 64

Progress = Callable[[int, int, float], None]
Segment = tuple[int, Ids]
"""0 for what a commitment is, 1 for what was said; and the tokens."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A commitment, what was said, and whether that makes it."""

    what: Segment
    said: Segment
    start: int
    made: bool
    weight: float


class SecondNet(nn.Module):
    """Pairs in, log odds out."""

    def __init__(self, packaged: EncoderCheckpoint, start: Mapping[str, Tensor]) -> None:
        """`start`: weights that the upper layers begin with."""
        super().__init__()
        self.weights, self.tokenizer = packaged.weights, packaged.tokenizer
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self._lower = [Block(self.weights, f"encoder.layer.{n}.").eval().requires_grad_(False) for n in range(LOWER)]
        self._kept: dict[Segment, Tensor] = {}
        self.upper = nn.ModuleList([Block(start, f"encoder.layer.{n}.") for n in range(LOWER, LAYERS)])
        self.hidden, self.out = nn.Linear(4 * WIDTH, HEAD_WIDTH), nn.Linear(HEAD_WIDTH, 1)
        self.scale = nn.Parameter(torch.tensor([6.0, -3.0]))
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    @torch.no_grad()
    def keep(self, segments: Iterable[Segment]) -> None:
        """Compute the lower layers of segments once."""
        fresh = sorted(
            {segment for segment in segments if segment not in self._kept}, key=lambda segment: len(segment[1])
        )
        for first in range(0, len(fresh), AT_ONCE):
            some = fresh[first : first + AT_ONCE]
            lengths = [len(ids) for _, ids in some]
            hidden = self._embedded(some, max(lengths))
            mask = mask_of(lengths, max(lengths))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                for block in self._lower:
                    hidden = block(hidden, mask)
            for segment, states, length in zip(some, hidden, lengths, strict=True):
                self._kept[segment] = states[:length].to(torch.float16)

    def _embedded(self, segments: Sequence[Segment], length: int) -> Tensor:
        ids = torch.tensor([[*ids, *[0] * (length - len(ids))] for _, ids in segments])
        hidden = self.weights["embeddings.word_embeddings.weight"][ids]
        hidden = hidden + self.weights["embeddings.position_embeddings.weight"][:length]
        kinds = torch.tensor([kind for kind, _ in segments])
        hidden = hidden + self.weights["embeddings.token_type_embeddings.weight"][kinds][:, None]
        norm = (self.weights["embeddings.LayerNorm.weight"], self.weights["embeddings.LayerNorm.bias"])
        return F.layer_norm(hidden, (WIDTH,), *norm, NORM_EPSILON)

    def forward(self, pairs: Sequence[Pair]) -> Tensor:
        """Shape (pairs,)."""
        joined = [torch.cat([self._kept[pair.what], self._kept[pair.said]]) for pair in pairs]
        lengths = [len(states) for states in joined]
        hidden = nn.utils.rnn.pad_sequence(joined, batch_first=True).float()
        mask = mask_of(lengths, max(lengths))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for block in self.upper:
                hidden = block(hidden, mask)
        whats = [len(pair.what[1]) for pair in pairs]
        starts = [length + pair.start for length, pair in zip(whats, pairs, strict=True)]
        meaning = _means(hidden.float(), [0] * len(pairs), whats)
        return log_odds(
            meaning, _means(hidden.float(), starts, lengths), self._head(), DROPOUT if self.training else 0.0
        )

    def _head(self) -> dict[str, Tensor]:
        linear = {"hidden": self.hidden, "out": self.out}
        weights = {f"{name}.{key}": value for name, layer in linear.items() for key, value in layer.named_parameters()}
        return {**weights, "scale": self.scale}

    def tensors(self) -> dict[str, Tensor]:
        """What the artefact holds, before it is packed."""
        layers = {
            f"encoder.layer.{LOWER + number}.{name.removeprefix('params.').replace('/', '.')}": value
            for number, block in enumerate(self.upper)
            for name, value in block.named_parameters()
        }
        return {**layers, **{f"head.{name}": value for name, value in self._head().items()}}


def _means(hidden: Tensor, starts: Sequence[int], ends: Sequence[int]) -> Tensor:
    places = torch.arange(hidden.shape[1])[None]
    held = ((places >= torch.tensor(starts)[:, None]) & (places < torch.tensor(ends)[:, None])).float()[..., None]
    return (hidden * held).sum(1) / held.sum(1).clamp(min=1)


def lesson(
    rows: Sequence[ReaderRow], practice: Iterable[PracticeCase], most: int, seed: int
) -> tuple[list[ReaderRow], list[ReaderRow]]:
    """Some of the turns of scenarios, those about commitments before others, and all of practice cases.

    None that is kept aside for measuring, and none about the background.
    """
    draw = random.Random(seed)  # noqa: S311 (a sample, no secret)
    known = [row for row in rows if not row.turn.kept_aside and row.turn.kind != BACKGROUND_KIND]
    about = [row for row in known if row.turn.kind in COMMITTING]
    about = draw.sample(about, min(len(about), round(ABOUT_SHARE * most)))
    other = [row for row in known if row.turn.kind not in COMMITTING]
    other = draw.sample(other, min(len(other), most - len(about)))
    far = [ReaderRow(*case.key, turn) for case in practice for turn in case.turns if turn.kind != BACKGROUND_KIND]
    return [*about, *other], far


def train_second(
    packaged: EncoderCheckpoint,
    start: EncoderCheckpoint,
    cases: Mapping[tuple[str, str], CompiledCase],
    rows: Sequence[ReaderRow],
    far: Sequence[ReaderRow],
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    progress: Progress | None = None,
) -> bytes:
    """The artefact, a safetensors file; blocking, ten minutes on a free core for 6,000 turns and 2 passes.

    Args:
        packaged: the packaged encoder, whose lower layers are used as they are.
        start: the encoder whose upper layers are trained further; the reader's knows commitments.
        cases: by collection and scenario.
        rows: labelled turns.
        far: turns of practice cases.
        seed: decides samples and initial weights.
        epochs: passes over the turns.
        progress: is told of step, number of steps and loss.
    """
    torch.manual_seed(seed)
    draw = random.Random(seed)  # noqa: S311 (samples, no secrets)
    near = _nearest(MiniLmEncoder(*start, MAX_TOKENS), cases, [*rows, *far])
    net = SecondNet(packaged, start.weights)
    lesson = [*rows, *(row for row in far for _ in range(FAR_TIMES))]

    def drawn() -> list[list[Pair]]:
        pairs = [pair for row in lesson for pair in _pairs(net, cases[row.key], row, near[id(row)], draw)]
        net.keep([part for pair in pairs for part in (pair.what, pair.said)])
        return _batches(pairs, draw)

    batches = drawn()
    head = [net.hidden.weight, net.hidden.bias, net.out.weight, net.out.bias, net.scale]
    groups: list[dict[str, Any]] = [
        {"params": list(net.upper.parameters()), "weight_decay": 0.01},
        {"params": head},
    ]
    optimizer = AdamW(groups)
    # The number of pairs differs a little between passes.
    steps = epochs * (len(batches) + 4)
    schedule = OneCycleLR(optimizer, [RATE, HEAD_RATE], total_steps=steps, pct_start=0.1)
    done = 0
    for epoch in range(epochs):
        for batch in batches if epoch == 0 else drawn():
            loss = _loss(net, batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            done += 1
            if progress is not None:
                progress(done, steps, float(loss.detach()))
    return save(packed(net.tensors()))


def _loss(net: SecondNet, batch: Sequence[Pair]) -> Tensor:
    made = torch.tensor([float(pair.made) for pair in batch])
    weight = torch.tensor([pair.weight for pair in batch])
    return (F.binary_cross_entropy_with_logits(net(batch), made, reduction="none") * weight).mean()


def _nearest(
    encoder: MiniLmEncoder, cases: Mapping[tuple[str, str], CompiledCase], rows: Sequence[ReaderRow]
) -> dict[int, list[str]]:
    """Per row the commitments of its case, the most alike first."""
    nearest: dict[int, list[str]] = {}
    by_case: dict[tuple[str, str], list[ReaderRow]] = {}
    for row in rows:
        by_case.setdefault(row.key, []).append(row)
    for key, own in by_case.items():
        commitments = [commitment for commitment in cases[key].commitments if commitment.examples]
        turns = encoder.encode([row.turn.turn for row in own])
        alike = [(turns @ encoder.encode(list(commitment.examples)).T).max(axis=1) for commitment in commitments]
        order = np.argsort(-np.stack(alike, axis=1), axis=1) if commitments else np.zeros((len(own), 0), np.intp)
        nearest |= {
            id(row): [commitments[place].id for place in places] for row, places in zip(own, order, strict=True)
        }
    return nearest


def _pairs(
    net: SecondNet, case: CompiledCase, row: ReaderRow, near: Sequence[str], draw: random.Random
) -> Iterator[Pair]:
    """What one turn teaches."""
    turn = row.turn
    others = [name for name in near if name not in turn.commits and name != turn.near]
    chosen: list[tuple[str, bool, float]] = [(name, True, 1.0) for name in turn.commits]
    if turn.near is not None:
        chosen += [(turn.near, False, NEAR_WEIGHT)]
        chosen += [(name, False, NEAR_WEIGHT) for name in draw.sample(others, min(1, len(others)))]
    elif turn.commits:
        chosen += [(name, False, 1.0) for name in others[:1]]
        chosen += [(name, False, 1.0) for name in draw.sample(others[1:], min(1, len(others[1:])))]
    elif draw.random() < OTHER_SHARE:
        chosen += [(name, False, 1.0) for name in others[:1]]
    spoken_ids, start = spoken(net.tokenizer, turn.line, turn.turn)
    itself = {turn.turn, *sentences(turn.turn)}
    by_id = {commitment.id: commitment for commitment in case.commitments}
    for name, made, weight in chosen:
        yield Pair((0, _drawn(net, by_id[name], itself, draw)), (1, spoken_ids), start, made, weight)


def _drawn(net: SecondNet, commitment: CompiledCommitment, itself: set[str], draw: random.Random) -> Ids:
    """A commitment with some of its examples, none of which is the turn itself."""
    examples = [example for example in commitment.examples if example not in itself]
    if len(examples) > EXAMPLES:
        examples = draw.sample(examples, draw.randint(2, EXAMPLES))
    return described(net.tokenizer, commitment.id, examples)


def _batches(pairs: Sequence[Pair], draw: random.Random) -> list[list[Pair]]:
    """Pairs of about the same length together, in random order."""
    lengths = [len(pair.what[1]) + len(pair.said[1]) + draw.random() * 6 for pair in pairs]
    ordered = [pairs[place] for place in sorted(range(len(pairs)), key=lengths.__getitem__)]
    batches = [ordered[first : first + BATCH] for first in range(0, len(ordered), BATCH)]
    draw.shuffle(batches)
    return batches
