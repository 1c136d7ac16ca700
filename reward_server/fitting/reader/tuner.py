"""The packaged encoder, split for training: lower layers that stay frozen and are computed once, and upper ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from torch import Tensor, nn

from reward_server.encoders.minilm import LAYERS, WIDTH, EncoderCheckpoint

LOWEST = 2
"""The first layer that is trained."""
DROPOUT = 0.1
WORDS_DROPPED = 0.1
"""While training, this share of the tokens between the first and the last is left out, anew each time."""
MAX_TOKENS = 128
TEXTS_AT_ONCE = 128
HEADS, HEAD_WIDTH, EPSILON = 12, 32, 1e-12


class Block(nn.Module):
    """One transformer layer with the names of the checkpoint, for padded batches."""

    def __init__(self, weights: Mapping[str, Tensor], prefix: str) -> None:
        super().__init__()
        own = {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
        # A parameter may have no dot in its name.
        self.params = nn.ParameterDict({name.replace(".", "/"): nn.Parameter(own[name].clone()) for name in own})

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self.params[f"{name}/weight"], self.params[f"{name}/bias"])

    def _norm(self, name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, (WIDTH,), self.params[f"{name}/weight"], self.params[f"{name}/bias"], EPSILON)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Hidden states, shape (texts, tokens, width); `mask` is added to the attention scores."""
        count, length, _ = hidden.shape
        query, key, value = (
            self._linear(f"attention/self/{name}", hidden).view(count, length, HEADS, HEAD_WIDTH).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask.to(query.dtype))
        mixed = mixed.transpose(1, 2).reshape(count, length, WIDTH)
        attended = F.dropout(self._linear("attention/output/dense", mixed), DROPOUT, self.training)
        hidden = self._norm("attention/output/LayerNorm", hidden + attended)
        widened = F.gelu(self._linear("intermediate/dense", hidden))
        narrowed = F.dropout(self._linear("output/dense", widened), DROPOUT, self.training)
        return self._norm("output/LayerNorm", hidden + narrowed)


class Tuner(nn.Module):
    """Texts in, unit vectors out, through the trained layers."""

    def __init__(self, checkpoint: EncoderCheckpoint) -> None:
        super().__init__()
        self.weights, self.tokenizer = checkpoint.weights, checkpoint.tokenizer
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.upper = nn.ModuleList([Block(self.weights, f"encoder.layer.{n}.") for n in range(LOWEST, LAYERS)])
        self._lower = [Block(self.weights, f"encoder.layer.{n}.").eval().requires_grad_(False) for n in range(LOWEST)]
        self._kept: dict[str, Tensor] = {}

    @torch.no_grad()
    def keep(self, texts: Sequence[str]) -> None:
        """Compute the lower layers of texts once."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._kept]
        for batch in _batches(fresh, len, TEXTS_AT_ONCE):
            ids = [self.tokenizer.encode(text).ids for text in batch]
            length = max(map(len, ids))
            padded = torch.tensor([[*row, *[0] * (length - len(row))] for row in ids])
            hidden = embedded(self.weights, padded)
            mask = mask_of([len(row) for row in ids], length)
            for block in self._lower:
                hidden = block(hidden, mask)
            for text, row, states in zip(batch, ids, hidden, strict=True):
                self._kept[text] = states[: len(row)].to(torch.float16)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Unit vectors in fp32, shape (len(texts), width); equal texts are computed once."""
        distinct = list(dict.fromkeys(texts))
        place: dict[str, int] = {}
        encoded: list[Tensor] = []
        for batch in _batches(distinct, lambda text: len(self._kept[text]), TEXTS_AT_ONCE):
            place |= {text: len(place) + number for number, text in enumerate(batch)}
            encoded.append(self._encoded([self._states(text) for text in batch]))
        return torch.cat(encoded)[torch.tensor([place[text] for text in texts])]

    def _states(self, text: str) -> Tensor:
        states = self._kept[text]
        if not self.training:
            return states
        stays = torch.rand(len(states)) >= WORDS_DROPPED
        stays[[0, -1]] = True
        return states[stays]

    def _encoded(self, states: Sequence[Tensor]) -> Tensor:
        hidden = nn.utils.rnn.pad_sequence(list(states), batch_first=True).float()
        lengths = [len(word_states) for word_states in states]
        mask = mask_of(lengths, max(lengths))
        # Three times as fast as fp32 on processors that know the format; the weights and their steps stay fp32.
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for block in self.upper:
                hidden = block(hidden, mask)
        present = (mask[:, 0, 0, :, None] == 0).float()
        return F.normalize((hidden.float() * present).sum(1) / present.sum(1), dim=1)

    def tuned(self) -> dict[str, Tensor]:
        """All weights, the trained ones as the artefact will hold them."""
        trained = {
            f"encoder.layer.{LOWEST + number}.{name.removeprefix('params.').replace('/', '.')}": value.detach()
            .to(torch.float16)
            .float()
            for number, block in enumerate(self.upper)
            for name, value in block.named_parameters()
        }
        return {**self.weights, **trained}


def _batches(items: Sequence[str], length_of: Callable[[str], int], size: int) -> Iterator[list[str]]:
    ordered = sorted(items, key=length_of)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def embedded(weights: Mapping[str, Tensor], ids: Tensor) -> Tensor:
    """Tokens before the first layer, shape (texts, tokens, width)."""
    hidden = weights["embeddings.word_embeddings.weight"][ids]
    hidden = hidden + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
    hidden = hidden + weights["embeddings.token_type_embeddings.weight"][0]
    norm = (weights["embeddings.LayerNorm.weight"], weights["embeddings.LayerNorm.bias"])
    return F.layer_norm(hidden, (WIDTH,), *norm, EPSILON)


def mask_of(lengths: Sequence[int], length: int) -> Tensor:
    """The mask that is added to attention scores so that nobody looks beyond the end of a text."""
    beyond = torch.arange(length)[None, :] >= torch.tensor(lengths)[:, None]
    return beyond[:, None, None, :].float() * -1e9
