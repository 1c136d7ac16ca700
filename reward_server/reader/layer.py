"""One transformer layer of the packaged encoder for one text at a time, through torch's public functions."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from torch import Tensor

from reward_server.encoders.minilm import HEADS, NORM_EPSILON, WIDTH

_ATTENTION = ("query", "key", "value")


class Layer:
    """The weights of a layer; query, key and value are stacked into one product."""

    def __init__(self, weights: Mapping[str, Tensor], number: int) -> None:
        """Take the layer of that number from a checkpoint."""
        prefix = f"encoder.layer.{number}."

        def pair(name: str) -> tuple[Tensor, Tensor]:
            return weights[f"{prefix}{name}.weight"], weights[f"{prefix}{name}.bias"]

        parts = [pair(f"attention.self.{name}") for name in _ATTENTION]
        self._stacked = torch.cat([weight for weight, _ in parts]), torch.cat([bias for _, bias in parts])
        self._attended, self._attention_norm = pair("attention.output.dense"), pair("attention.output.LayerNorm")
        self._wide, self._narrow = pair("intermediate.dense"), pair("output.dense")
        self._output_norm = pair("output.LayerNorm")

    def __call__(self, hidden: Tensor) -> Tensor:
        """Hidden states of a text, shape (tokens, width)."""
        length = len(hidden)
        parts = F.linear(hidden, *self._stacked).view(length, 3, HEADS, WIDTH // HEADS).permute(1, 2, 0, 3)
        query, key, value = parts[:, None]
        mixed = F.scaled_dot_product_attention(query, key, value)[0].transpose(0, 1).reshape(length, WIDTH)
        hidden = _norm(hidden + F.linear(mixed, *self._attended), self._attention_norm)
        widened = F.gelu(F.linear(hidden, *self._wide))
        return _norm(hidden + F.linear(widened, *self._narrow), self._output_norm)


def _norm(hidden: Tensor, parameters: tuple[Tensor, Tensor]) -> Tensor:
    return F.layer_norm(hidden, (WIDTH,), *parameters, NORM_EPSILON)
