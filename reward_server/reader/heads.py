"""Fits the reader's heads: small networks on the features of `personas.reading`, averaged over a few trainings.

A turn is a bag of sentences: it asks about a topic if one of its sentences does, so the loss is binary
cross-entropy on the largest logit of its sentences (multiple-instance learning, max pooling).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from numpy.typing import NDArray
from torch import Tensor, nn

from personas.reading.acts import Act, Stance
from personas.reading.heads import ACTS, STANCES
from reward_server.reader.dataset import ActRow

Matrix = NDArray[np.float32]
MEMBERS = 3
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


def fit_bags(bags: Sequence[Bag], name: str, *, epochs: int = 25, width: int = 32, seed: int = 0) -> dict[str, Tensor]:
    """The tensors of a head that scores targets, named for the artefact."""
    rows = np.concatenate([bag.features.reshape(-1, bag.features.shape[-1]) for bag in bags])
    mean, scale = _standard(rows)
    data = [
        (torch.from_numpy((bag.features - mean) / scale).float(), torch.from_numpy(bag.labels).float(), bag.weight)
        for bag in bags
    ]

    def loss(net: HeadNet, chosen: Sequence[int]) -> Tensor:
        batch = [data[number] for number in chosen]
        logits = net(torch.cat([x.reshape(-1, x.shape[-1]) for x, _, _ in batch])).squeeze(-1)
        total, start = torch.zeros(()), 0
        for x, labels, weight in batch:
            size = x.shape[0] * x.shape[1]
            largest = logits[start : start + size].view(x.shape[0], x.shape[1]).max(dim=0).values
            total = total + weight * F.binary_cross_entropy_with_logits(largest, labels, reduction="sum")
            start += size
        return total / len(batch)

    def build() -> HeadNet:
        return HeadNet(rows.shape[1], 1, width, dropout=0.1)

    nets = [_trained(build, loss, len(data), epochs, seed + member) for member in range(MEMBERS)]
    return _tensors(name, nets, mean, scale)


def fit_acts(rows: Sequence[ActRow], vectors: Matrix, *, epochs: int = 30, seed: int = 0) -> dict[str, Tensor]:
    """The tensors of the head that says what a sentence does."""
    mean, scale = _standard(vectors)
    x = torch.from_numpy((vectors - mean) / scale).float()
    acts = torch.tensor([[float(act.value in row.acts) for act in ACTS] for row in rows])
    stances = torch.tensor([STANCES.index(Stance(row.stance)) for row in rows])

    def loss(net: HeadNet, chosen: Sequence[int]) -> Tensor:
        picked = torch.tensor(chosen)
        logits = net(x[picked])
        by_act = F.binary_cross_entropy_with_logits(logits[:, : len(ACTS)], acts[picked], reduction="sum")
        return (by_act + F.cross_entropy(logits[:, len(ACTS) :], stances[picked], reduction="sum")) / len(chosen)

    def build() -> HeadNet:
        return HeadNet(x.shape[1], len(ACTS) + len(STANCES), width=64, dropout=0.3)

    nets = [_trained(build, loss, len(rows), epochs, seed + member) for member in range(MEMBERS)]
    return _tensors("acts", nets, mean, scale)


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
    found = {f"{name}.mean": torch.from_numpy(mean), f"{name}.scale": torch.from_numpy(scale)}
    for number in range(len(nets[0].layers)):
        layers = [cast(nn.Linear, net.layers[number]) for net in nets]
        found[f"{name}.weight.{number}"] = torch.stack([layer.weight.detach() for layer in layers]).contiguous()
        found[f"{name}.bias.{number}"] = torch.stack([layer.bias.detach() for layer in layers]).contiguous()
    return found


_VOWELS = re.compile(r"[aeiou]")
_LEET = str.maketrans("aeiost", "4310$7")


def unreadable(texts: Sequence[str], seed: int = 0) -> list[ActRow]:
    """Sentences that no person could follow, made from readable ones: what the reader learns to refuse."""
    draw = random.Random(seed)  # noqa: S311 (samples, no secrets)
    ways = (_without_vowels, _leet, _spaced, _reversed_words, _shuffled_letters, _encoded, _keywords)
    return [ActRow("", way(text, draw), frozenset({Act.UNREADABLE.value}), "none") for text in texts for way in ways]


def _without_vowels(text: str, draw: random.Random) -> str:
    return _VOWELS.sub("", text.lower())


def _leet(text: str, draw: random.Random) -> str:
    return text.lower().translate(_LEET)


def _spaced(text: str, draw: random.Random) -> str:
    return draw.choice("_-. ").join(text.replace(" ", ""))


def _reversed_words(text: str, draw: random.Random) -> str:
    return text[::-1]


def _shuffled_letters(text: str, draw: random.Random) -> str:
    return " ".join("".join(draw.sample(word, len(word))) for word in text.split())


def _encoded(text: str, draw: random.Random) -> str:
    import base64

    raw = text.encode()
    return draw.choice((base64.b64encode(raw).decode(), raw.hex(), '{"text": "' + raw.hex()[:24] + '", "score": 1}'))


def _keywords(text: str, draw: random.Random) -> str:
    words: Iterable[str] = draw.sample(text.split(), len(text.split()))
    return ", ".join(word.strip(".,?!") for word in words)
