"""Trains the fluency model, which tells broken sentences from speech.

It shares the lower layers of the packaged encoder, as the reader does, and has two trained layers of its own: the
mean-pooled vector after them goes through a small head. It is trained on whole sentences, some with honest slips, and
on broken ones made from them (`corruptions`). The losses, summed: binary cross-entropy of sentences, and of tokens at
the seams, from a linear layer that is thrown away. Some corruptions happen to be whole sentences: after a while those
that the model itself takes for whole teach nothing any more (hard bootstrapping, Reed et al. 2014).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from personas.reading.fluency import HEAD, LAYERS
from reward_server.encoders.minilm import WIDTH, EncoderCheckpoint
from reward_server.fitting.reader.corruptions import Corruptor
from reward_server.fitting.reader.heads import HeadNet
from reward_server.fitting.reader.tuner import LOWEST, Block, embedded, mask_of

STEPS, BATCH, RATE = 4_500, 64, 3e-4
SORTED = 4
"""So many batches are drawn together and sorted by length: less padding."""
HEAD_WIDTH, DROPOUT = 64, 0.1
SEAM_WEIGHT, SEAM_ODDS = 0.5, 3.0
BELIEVED, DOUBTED = 0.4, 0.08
"""From this share of the steps on, a corruption that is broken with a smaller probability teaches nothing."""
MAX_TOKENS = 128

Progress = Callable[[int, int, float], None]


@dataclass(frozen=True, slots=True)
class _Example:
    text: str
    broken: bool
    seams: tuple[int, ...] | None
    """The words at which it breaks, none in a whole sentence; None where that is not known."""


class FluencyNet(nn.Module):
    """Padded token ids in, logits of broken sentences and of broken tokens out."""

    def __init__(self, checkpoint: EncoderCheckpoint) -> None:
        super().__init__()
        self.weights, self.tokenizer = checkpoint.weights, checkpoint.tokenizer
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)
        blocks = [Block(self.weights, f"encoder.layer.{number}.") for number in range(LAYERS)]
        self._lower = [block.eval().requires_grad_(False) for block in blocks[:LOWEST]]
        self.upper = nn.ModuleList(blocks[LOWEST:])
        self.head = HeadNet(WIDTH, 1, HEAD_WIDTH, DROPOUT)
        self.seams = nn.Linear(WIDTH, 1)

    def forward(self, ids: Tensor, lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Logits, shape (texts,) and (texts, tokens)."""
        mask = mask_of(lengths, ids.shape[1])
        # Three times as fast as fp32 on processors that know the format; the weights and their steps stay fp32.
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.no_grad():
                hidden = embedded(self.weights, ids)
                for block in self._lower:
                    hidden = block(hidden, mask)
            for trained in self.upper:
                hidden = trained(hidden, mask)
        hidden = hidden.float()
        present = (mask[:, 0, 0, :, None] == 0).float()
        pooled = F.normalize((hidden * present).sum(1) / present.sum(1), dim=1)
        # Of a unit vector a coordinate is about this large: the head's inputs have variance 1.
        return self.head(pooled * WIDTH**0.5).squeeze(-1), self.seams(hidden).squeeze(-1)


def train_fluency(
    checkpoint: EncoderCheckpoint,
    sources: Mapping[str, Sequence[str]],
    *,
    steps: int = STEPS,
    seed: int = 0,
    progress: Progress | None = None,
) -> bytes:
    """The artefact, a safetensors file; blocking, an hour on one core.

    Args:
        checkpoint: the packaged encoder.
        sources: whole sentences, by where they come from: broken ones are made from those of one source.
        steps: of 64 sentences each, half of them broken.
        seed: decides samples and initial weights.
        progress: is told of step, number of steps and loss.

    Raises:
        ValueError: there are no sentences.
    """
    sources = {name: texts for name, texts in sources.items() if texts}
    if not sources:
        raise ValueError("there are no sentences to learn from")
    torch.manual_seed(seed)
    net = FluencyNet(checkpoint).train()
    optimizer = AdamW([parameter for parameter in net.parameters() if parameter.requires_grad], weight_decay=0.01)
    schedule = OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=max(0.05, 2 / steps))
    examples = _examples(sources, random.Random(seed))  # noqa: S311 (samples, no secrets)
    for number, batch in enumerate(_batches(examples, steps), 1):
        loss = _loss(net, batch, believing=number < BELIEVED * steps)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if progress is not None:
            progress(number, steps, float(loss.detach()))
    return save(_tensors(net))


def _examples(sources: Mapping[str, Sequence[str]], draw: random.Random) -> Iterator[_Example]:
    corruptor = Corruptor(sources, draw)
    every = [(name, text) for name, texts in sources.items() for text in texts]
    while True:
        source, text = draw.choice(every)
        if draw.random() < 0.5:
            yield _Example(corruptor.slipped(text), False, ())
        elif made := corruptor.broken(source, text):
            yield _Example(made.text, True, made.seams or None)


def _batches(examples: Iterator[_Example], steps: int) -> Iterator[list[_Example]]:
    for start in range(0, steps, SORTED):
        drawn = sorted((next(examples) for _ in range(BATCH * SORTED)), key=lambda example: len(example.text))
        for number in range(min(SORTED, steps - start)):
            yield drawn[number * BATCH : (number + 1) * BATCH]


def _loss(net: FluencyNet, batch: Sequence[_Example], *, believing: bool) -> Tensor:
    encoded = [net.tokenizer.encode(example.text) for example in batch]
    lengths = [len(encoding.ids) for encoding in encoded]
    width = max(lengths)
    ids = torch.tensor([[*encoding.ids, *[0] * (width - len(encoding.ids))] for encoding in encoded])
    labels = torch.tensor([float(example.broken) for example in batch])
    sentence, token = net(ids, lengths)
    losses = F.binary_cross_entropy_with_logits(sentence, labels, reduction="none")
    counts = torch.ones_like(labels) if believing else 1 - labels * (sentence.detach().sigmoid() < DOUBTED).float()
    at, known = torch.zeros(ids.shape), torch.zeros(ids.shape)
    for row, example in enumerate(batch):
        if example.seams is not None and counts[row]:
            spans = _spans(example.text, example.seams)
            for place, (start, end) in enumerate(encoded[row].offsets):
                known[row, place] = float(end > start)
                at[row, place] = float(any(start < last and end > first for first, last in spans))
    seams = F.binary_cross_entropy_with_logits(token, at, reduction="none", pos_weight=torch.tensor(SEAM_ODDS))
    return (losses * counts).sum() / counts.sum() + SEAM_WEIGHT * (seams * known).sum() / known.sum()


def _spans(text: str, words: Sequence[int]) -> list[tuple[int, int]]:
    """The places where words given by number begin and end."""
    spans: list[tuple[int, int]] = []
    start = 0
    for word in text.split(" "):
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return [spans[number] for number in words if number < len(spans)]


def _tensors(net: FluencyNet) -> dict[str, Tensor]:
    """The trained layers in fp16, and the head as `personas.reading.heads` reads it: one member."""
    layers = {
        f"encoder.layer.{LOWEST + number}.{name.removeprefix('params.').replace('/', '.')}": value.detach().half()
        for number, block in enumerate(net.upper)
        for name, value in block.named_parameters()
    }
    head = {
        f"{HEAD}.{name.split('.')[-1]}.{name.split('.')[1]}": value.detach()[None].clone()
        for name, value in net.head.named_parameters()
    }
    scale = {f"{HEAD}.mean": torch.zeros(WIDTH), f"{HEAD}.scale": torch.full((WIDTH,), WIDTH**-0.5)}
    return {**layers, **head, **scale}
