"""A pass over the persona's line and a turn, and the vectors of sentences and clauses that are pooled from it.

Two designs:

    full     every token sees the line and the whole turn (late chunking, Günther et al. 2024, arXiv 2409.04701)
    blocks   a sentence sees the line and itself, and the line itself alone: a sentence has one vector after one line,
             whatever else is said in the turn

A server would compute `blocks` in one pass with a mask, too. Here each sentence has a pass of its own, with the line
computed again, which gives the same vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from tokenizers import Tokenizer
from torch import Tensor

from personas.reading.reader import LINE_CHARS, Turn, after_line, said_in
from personas.text.sentences import clauses
from reward_server.encoders.minilm import LAYERS, EncoderCheckpoint, MiniLmEncoder
from reward_server.fitting.reader.tuner import Block, embedded

Design = Literal["full", "blocks"]
FIRST, LAST = 101, 102
"""The tokens before and after the line."""
MOST_TOKENS = 512
AT_ONCE = 48
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pass:
    """The tokens of a pass, and where its texts stand."""

    ids: tuple[int, ...]
    head: int
    """So many tokens are the line and the marks around it."""
    spans: tuple[tuple[str, tuple[Span, ...]], ...]
    """Texts, each with the ranges of tokens that its vector is the mean of."""


def passes_of(tokenizer: Tokenizer, turn: Turn, design: Design) -> list[Pass]:
    """The passes over a turn; a sentence that ends beyond `MOST_TOKENS` is in none of them."""
    said = said_in(turn)
    groups = [said] if design == "full" else [[sentence] for sentence in said]
    return [_pass(tokenizer, turn[0], group) for group in groups]


def alone(tokenizer: Tokenizer, text: str) -> Pass:
    """The pass over a text that no line and no turn surrounds."""
    ids = tokenizer.encode(text, add_special_tokens=False).ids[: MOST_TOKENS - 2] or [LAST]
    return Pass((FIRST, LAST, *ids), 2, ((text, ((2, 2 + len(ids)),)),))


def _pass(tokenizer: Tokenizer, line: str, said: Sequence[str]) -> Pass:
    before = tokenizer.encode(line[-LINE_CHARS:], add_special_tokens=False).ids if line else []
    ids = [FIRST, *before, LAST]
    head, of_line = len(ids), (1, 1 + len(before))
    spans: dict[str, tuple[Span, ...]] = {}
    for sentence in said:
        encoded = tokenizer.encode(sentence, add_special_tokens=False)
        start, end = len(ids), len(ids) + len(encoded.ids)
        if end > MOST_TOKENS or end == start:
            continue
        ids += encoded.ids
        spans.setdefault(sentence, ((start, end),))
        # The same text where none is added; then the sentence stands already.
        spans.setdefault(after_line(line, sentence), (of_line, (start, end)))
        for clause, (first, last) in _clauses(sentence, encoded.offsets):
            spans.setdefault(clause, ((start + first, start + last),))
    return Pass(tuple(ids), head, tuple(spans.items()))


def _clauses(sentence: str, offsets: Sequence[Span]) -> Iterator[tuple[str, Span]]:
    """The clauses of a sentence, each with its range of tokens."""
    begin = 0
    for clause in clauses(sentence):
        found = sentence.find(clause, begin)
        if found < 0:
            continue
        begin = found + len(clause)
        inside = [place for place, (first, last) in enumerate(offsets) if first < begin and last > found]
        if inside:
            yield clause, (inside[0], inside[-1] + 1)


States = Callable[[Sequence[Pass]], Sequence[Tensor]]
"""The states of the tokens of each pass; the passes are sorted by length."""


class PassEncoder:
    """Passes in, unit vectors of their texts out."""

    def __init__(self, checkpoint: EncoderCheckpoint, design: Design) -> None:
        self.design: Design = design
        self.tokenizer = checkpoint.tokenizer
        self.whole = MiniLmEncoder(*checkpoint, MOST_TOKENS)
        self._states: States = self._full if design == "full" else _Blocks(checkpoint)

    @torch.inference_mode()
    def vectors(self, passes: Sequence[Pass]) -> list[Tensor]:
        """The vectors of the texts of each pass, shape (texts, width)."""
        found: dict[int, Tensor] = {}
        order = sorted(range(len(passes)), key=lambda number: len(passes[number].ids))
        for start in range(0, len(order), AT_ONCE):
            numbers = order[start : start + AT_ONCE]
            some = [passes[number] for number in numbers]
            pooled = (_pooled(each, rows) for each, rows in zip(some, self._states(some), strict=True))
            found |= zip(numbers, pooled, strict=True)
        return [found[number] for number in range(len(passes))]

    def _full(self, passes: Sequence[Pass]) -> Sequence[Tensor]:
        rows = [list(each.ids) for each in passes]
        return torch.split(self.whole.hidden(rows), [len(row) for row in rows])


class _Blocks:
    """The states of passes in which the line does not see what is said after it."""

    def __init__(self, checkpoint: EncoderCheckpoint) -> None:
        self._weights = checkpoint.weights
        self._layers = [Block(self._weights, f"encoder.layer.{number}.").eval() for number in range(LAYERS)]

    def __call__(self, passes: Sequence[Pass]) -> Sequence[Tensor]:
        length = max(len(each.ids) for each in passes)
        hidden = embedded(self._weights, torch.tensor([[*e.ids, *[0] * (length - len(e.ids))] for e in passes]))
        mask = torch.stack([_mask(each, length) for each in passes])[:, None]
        for layer in self._layers:
            hidden = layer(hidden, mask)
        return [rows[: len(each.ids)] for each, rows in zip(passes, hidden, strict=True)]


def _mask(each: Pass, length: int) -> Tensor:
    """What is added to the attention scores of a pass, shape (tokens, tokens)."""
    place = torch.arange(length)
    seen = (place[None, :] < each.head) | (place[:, None] >= each.head)
    return (~(seen & (place < len(each.ids)))).float() * -1e9


def _pooled(each: Pass, rows: Tensor) -> Tensor:
    """The vectors of a pass with these states."""
    if not each.spans:
        return rows.new_zeros(0, rows.shape[1])
    means = [torch.cat([rows[first:last] for first, last in ranges]).mean(0) for _, ranges in each.spans]
    return F.normalize(torch.stack(means), dim=1)
