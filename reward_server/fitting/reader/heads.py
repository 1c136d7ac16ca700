"""Fits the reader's heads: small networks on the features of `personas.reading`, averaged over a few trainings.

A turn is a bag of sentences: it asks about a topic, or does something, if one of its sentences does, so the loss is
binary cross-entropy on the largest logit of its sentences (multiple-instance learning, max pooling).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from numpy.typing import NDArray
from torch import Tensor, nn

from personas.reading.heads import ACTS, STANCES
from reward_server.fitting.reader.spoken import ActBag

Matrix = NDArray[np.float32]
MEMBERS = 6
BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Bag:
    """Features of a turn's sentences, shape (sentences, targets, features), and its labels, shape (targets,)."""

    features: Matrix
    labels: Matrix
    weight: float = 1.0


class HeadNet(nn.Module):
    """Two hidden layers with tanh-GELU, as `personas.reading.heads.Network` computes them."""

    def __init__(self, inputs: int, outputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, outputs)])
        self.dropout = dropout

    def forward(self, rows: Tensor) -> Tensor:
        """Logits, shape (..., outputs)."""
        hidden = F.dropout(F.gelu(self.layers[0](rows), approximate="tanh"), self.dropout, self.training)
        hidden = F.gelu(self.layers[1](hidden), approximate="tanh")
        logits: Tensor = self.layers[2](hidden)
        return logits


def fit_bags(bags: Sequence[Bag], name: str, *, epochs: int, width: int = 32, seed: int = 0) -> dict[str, Tensor]:
    """The tensors of a head that scores targets, named for the artefact."""
    rows = np.concatenate([bag.features.reshape(-1, bag.features.shape[-1]) for bag in bags])
    mean, scale = _standard(rows)
    x = torch.from_numpy((rows - mean) / scale).float()
    labels = torch.from_numpy(np.concatenate([bag.labels for bag in bags])).float()
    weights = torch.from_numpy(np.concatenate([np.full(len(bag.labels), bag.weight) for bag in bags])).float()
    targets = torch.tensor([len(bag.labels) for bag in bags])
    instances = torch.tensor([len(bag.features) for bag in bags])
    first_target, first_row = (_starts(counts) for counts in (targets, targets * instances))
    target_of = torch.cat(
        [
            torch.arange(start, start + count).repeat(times)
            for start, count, times in zip(first_target.tolist(), targets.tolist(), instances.tolist(), strict=True)
        ]
    )

    def loss(net: HeadNet, chosen: Sequence[int]) -> Tensor:
        picked = torch.tensor(chosen)
        own = _ranges(first_row[picked], (targets * instances)[picked])
        wanted = _ranges(first_target[picked], targets[picked])
        place = torch.zeros(len(labels), dtype=torch.long)
        place[wanted] = torch.arange(len(wanted))
        logits = net(x[own]).squeeze(-1)
        largest = logits.new_full((len(wanted),), -torch.inf).scatter_reduce(0, place[target_of[own]], logits, "amax")
        losses = F.binary_cross_entropy_with_logits(largest, labels[wanted], reduction="none")
        return (losses * weights[wanted]).sum() / len(chosen)

    def build() -> HeadNet:
        return HeadNet(rows.shape[1], 1, width, dropout=0.1)

    nets = [_trained(build, loss, len(bags), epochs, seed + member) for member in range(MEMBERS)]
    return _tensors(name, nets, mean, scale)


def fit_acts(
    bags: Sequence[ActBag], vectors: Sequence[Matrix], *, epochs: int = 30, seed: int = 0
) -> dict[str, Tensor]:
    """The tensors of the head that says what a sentence does.

    Args:
        bags: what is known of the sentences of a turn, or of one sentence.
        vectors: of each bag's sentences, shape (sentences, width).
        epochs: passes over the bags.
        seed: decides initial weights and order.
    """
    rows = np.concatenate(list(vectors))
    mean, scale = _standard(rows)
    x = torch.from_numpy((rows - mean) / scale).float()
    counts = torch.tensor([len(rows) for rows in vectors])
    starts = _starts(counts)
    known = torch.tensor([[float(act in bag.does or act in bag.lacks) for act in ACTS] for bag in bags])
    acts = torch.tensor([[float(act in bag.does) for act in ACTS] for bag in bags])
    weights = torch.tensor([bag.weight for bag in bags])
    stances = torch.tensor([-1 if bag.stance is None else STANCES.index(bag.stance) for bag in bags])

    def loss(net: HeadNet, chosen: Sequence[int]) -> Tensor:
        picked = torch.tensor(chosen)
        owner = torch.arange(len(chosen)).repeat_interleave(counts[picked])
        logits = net(x[_ranges(starts[picked], counts[picked])])
        best = logits.new_full((len(chosen), logits.shape[1]), -torch.inf)
        best = best.scatter_reduce(0, owner[:, None].expand_as(logits), logits, "amax")
        by_act = F.binary_cross_entropy_with_logits(best[:, : len(ACTS)], acts[picked], reduction="none")
        total = (by_act * known[picked] * weights[picked, None]).sum()
        told = stances[picked] >= 0
        by_stance = F.cross_entropy(best[told][:, len(ACTS) :], stances[picked][told], reduction="sum")
        return (total + by_stance) / len(chosen)

    def build() -> HeadNet:
        return HeadNet(x.shape[1], len(ACTS) + len(STANCES), width=64, dropout=0.3)

    nets = [_trained(build, loss, len(bags), epochs, seed + member) for member in range(MEMBERS)]
    return _tensors("acts", nets, mean, scale)


def _starts(counts: Tensor) -> Tensor:
    return torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)[:-1]])


def _ranges(starts: Tensor, counts: Tensor) -> Tensor:
    """The numbers from each start on, so many for each, one after the other."""
    before = _starts(counts)
    return torch.arange(int(counts.sum())) + (starts - before).repeat_interleave(counts)


def _standard(rows: Matrix) -> tuple[Matrix, Matrix]:
    return rows.mean(axis=0).astype(np.float32), (rows.std(axis=0) + 1e-3).astype(np.float32)


Loss = Callable[[HeadNet, Sequence[int]], Tensor]


def _trained(build: Callable[[], HeadNet], loss: Loss, size: int, epochs: int, seed: int) -> HeadNet:
    """One network trained on rows 0 to `size`; the seed decides its start and the order."""
    torch.manual_seed(seed)
    draw = random.Random(seed)  # noqa: S311 (samples, no secrets)
    net = build()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    batches = -(-size // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * batches)
    for _ in range(epochs):
        order = draw.sample(range(size), size)
        for start in range(0, size, BATCH):
            optimizer.zero_grad()
            loss(net, order[start : start + BATCH]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return net.eval()


def _tensors(name: str, nets: Sequence[HeadNet], mean: Matrix, scale: Matrix) -> dict[str, Tensor]:
    tensors = {f"{name}.mean": torch.from_numpy(mean), f"{name}.scale": torch.from_numpy(scale)}
    for number in range(len(nets[0].layers)):
        layers = [cast(nn.Linear, net.layers[number]) for net in nets]
        tensors[f"{name}.weight.{number}"] = torch.stack([layer.weight.detach() for layer in layers]).contiguous()
        tensors[f"{name}.bias.{number}"] = torch.stack([layer.bias.detach() for layer in layers]).contiguous()
    return tensors
