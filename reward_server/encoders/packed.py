"""The same MiniLM weights in bf16: the forward pass of learned scoring, for processors that multiply bf16 natively.

As in `minilm`, the tokens of many texts are the rows of one matrix and nothing is padded. Products, the residual
stream and the GELU are bf16; layer normalisation computes its moments in fp32 inside the library; the mean over the
tokens and the unit length are fp32; how attention is computed is chosen by processor (see `attention`). A vector that
is not finite is for the caller to notice: `FastEncoder` does. `prepacked` tries the quickest products, and is None
where they fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from torch import Tensor

from reward_server.encoders.attention import HEAD_WIDTH, Attention, by_kernel, by_products
from reward_server.encoders.exactness import Tokens
from reward_server.encoders.minilm import LAYERS, NORM_EPSILON, TONE_LAYERS, WIDTH, means_of
from reward_server.encoders.products import UNAVAILABLE, Pair, PrepackedProducts, Products

ROWS_STEP = 64
"""Rows are filled up to a multiple: oneDNN compiles its kernels anew for every number of rows, which takes as long as
multiplying a thousand of them."""
SAME_DIRECTION = 0.9999


class _Block(NamedTuple):
    """The weights of one transformer block, as in `minilm`, in bf16."""

    qkv: Pair
    attended: Pair
    attention_norm: Pair
    wide: Pair
    narrow: Pair
    output_norm: Pair


_MATRICES = ("qkv", "attended", "wide", "narrow")


def prepacked(
    weights: Mapping[str, Tensor], least_rows: int = 0, attention: Attention = by_products
) -> Bf16Forward | None:
    """The forward pass with pre-packed matrices; None where this torch lacks it or its results are others."""
    probe: list[Tokens] = [[101, 2023, 2003, 102], [101, *range(2000, 2060), 102]]
    try:
        forward = Bf16Forward(weights, products=PrepackedProducts(least_rows), attention=attention)
        found = forward(probe)
    except UNAVAILABLE:
        return None
    same = F.cosine_similarity(found, Bf16Forward(weights)(probe), dim=1).min() > SAME_DIRECTION
    return forward if same else None


class Bf16Forward:
    """Token ids of texts, sorted by length, to vectors; callable from many threads."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        device: str = "cpu",
        products: Products | None = None,
        attention: Attention = by_products,
    ) -> None:
        """Args: weights: of the checkpoint, fp32. products: how matrices are multiplied; by default, publicly."""
        self._products = products or Products()
        self._attention = attention
        weights = {name: weight.to(device) for name, weight in weights.items()}
        self._device = device
        self._words = weights["embeddings.word_embeddings.weight"]
        segment = weights["embeddings.token_type_embeddings.weight"][0]
        self._positions = weights["embeddings.position_embeddings.weight"] + segment
        self._embedding_norm = (weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"])
        blocks = (_block(weights, f"encoder.layer.{number}.") for number in range(LAYERS))
        self._blocks = [
            block._replace(**{name: self._products.laid_out(getattr(block, name)) for name in _MATRICES})
            for block in blocks
        ]

    @property
    def method(self) -> str:
        """Says how products and attention are computed: the last bits differ."""
        return f"{self._products.method}-fused" if self._attention is by_kernel else self._products.method

    @torch.inference_mode()
    def __call__(self, rows: Sequence[Tokens]) -> Tensor:
        """Unit vectors, each followed by the means of `TONE_LAYERS`, fp32; shape (len(rows), 4 * 384)."""
        filler = -sum(map(len, rows)) % ROWS_STEP
        filled = [*rows, [0] * filler] if filler else rows
        runs = [(length, len(list(run))) for length, run in groupby(map(len, filled))]
        hidden = self._embedded(filled).bfloat16()
        by = self._products
        tones: list[Tensor] = []
        for number, block in enumerate(self._blocks, 1):
            mixed = self._attention(by.plain(hidden, block.qkv), runs)
            hidden = _norm(by.added(mixed, block.attended, hidden), block.attention_norm)
            widened = by.gelu(hidden, block.wide)
            hidden = _norm(by.added(widened, block.narrow, hidden), block.output_norm)
            if number in TONE_LAYERS:
                tones.append(means_of(hidden, runs)[: len(rows)])
        means = means_of(hidden, runs)[: len(rows)]
        return torch.cat([F.normalize(means, dim=1), *tones], dim=1).cpu()

    def _embedded(self, rows: Sequence[Tokens]) -> Tensor:
        ids = torch.tensor([token for row in rows for token in row], device=self._device)
        positions = torch.cat([self._positions[: len(row)] for row in rows])
        return F.layer_norm(positions.add_(self._words[ids]), (WIDTH,), *self._embedding_norm, NORM_EPSILON)


def _block(weights: Mapping[str, Tensor], prefix: str) -> _Block:
    def pair(name: str) -> Pair:
        return weights[f"{prefix}{name}.weight"].bfloat16(), weights[f"{prefix}{name}.bias"].bfloat16()

    parts = [
        (weights[f"{prefix}attention.self.{name}.weight"], weights[f"{prefix}attention.self.{name}.bias"])
        for name in ("query", "key", "value")
    ]
    scale = 1 / math.sqrt(HEAD_WIDTH)  # folded into the query, so that nobody has to scale the scores
    scales = (scale, 1.0, 1.0)
    return _Block(
        qkv=(
            torch.cat([weight * by for (weight, _), by in zip(parts, scales, strict=True)]).bfloat16(),
            torch.cat([bias * by for (_, bias), by in zip(parts, scales, strict=True)]).bfloat16(),
        ),
        attended=pair("attention.output.dense"),
        attention_norm=pair("attention.output.LayerNorm"),
        wide=pair("intermediate.dense"),
        narrow=pair("output.dense"),
        output_norm=pair("output.LayerNorm"),
    )


def _norm(hidden: Tensor, parameters: Pair) -> Tensor:
    return F.layer_norm(hidden, (WIDTH,), *parameters, NORM_EPSILON)
