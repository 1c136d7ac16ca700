"""One token more for every row, by the parts of a model and not by its own forward pass: half of a step on a CPU is
the way through transformers.

Whether that is the same is not looked up but tried: a model must be made of the parts that Llama, Qwen and Mistral
have, and must say the same as its own forward pass. Any other goes on as it is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.cache_utils import Cache, DynamicCache

from learner.head import head_of
from learner.products import FastLinear, linear

TOLERANCE = 1e-3
"""How far a log-probability may be off, in float32; rounding makes a thousandth of it."""
_LAYER = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
_ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}
_NORMS = {"q_norm", "k_norm"}
_MLP = {"gate_proj", "up_proj", "down_proj", "act_fn"}


class Decoder:
    """A step of a model; its weights are read as they are at that moment."""

    def __init__(self, model: Any) -> None:
        self._body = model.model
        self._head = model.get_output_embeddings()

    def step(self, ids: Tensor, positions: Tensor, seen: Tensor, cache: Cache) -> Tensor:
        """Logits [B, vocabulary] after one more token a row: ids and positions [B, 1], seen [B, kept] above 0."""
        hidden = self._body.embed_tokens(ids[:, 0])
        cos, sin = self._body.rotary_emb(hidden[:, None], positions)
        blocked = torch.zeros(seen.shape, dtype=hidden.dtype, device=hidden.device)
        blocked.masked_fill_(seen == 0, torch.finfo(hidden.dtype).min)
        for layer in self._body.layers:
            looked = self._attend(layer.self_attn, _normed(layer.input_layernorm, hidden), (cos, sin), blocked, cache)
            hidden = hidden + looked
            hidden = hidden + _mlp(layer.mlp, _normed(layer.post_attention_layernorm, hidden))
        return _through(self._head, _normed(self._body.norm, hidden))

    @staticmethod
    def _attend(attention: Any, hidden: Tensor, turn: tuple[Tensor, Tensor], blocked: Tensor, cache: Cache) -> Tensor:
        rows, width = len(hidden), attention.head_dim
        names = (attention.q_proj, attention.k_proj, attention.v_proj)
        query, key, value = (_through(each, hidden).view(rows, -1, width) for each in names)
        if hasattr(attention, "q_norm"):
            query, key = _normed(attention.q_norm, query), _normed(attention.k_norm, key)
        query, key = _turned(query, *turn), _turned(key, *turn)
        keys, values = cache.update(key[:, :, None], value[:, :, None], attention.layer_idx)
        # The heads that share keys are as many queries of one head.
        queries = query.view(rows, keys.shape[1], -1, width)
        out = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=blocked[:, None, None], scale=attention.scaling
        )
        return _through(attention.o_proj, out.reshape(rows, -1))


def decoder_of(model: Any) -> Decoder | None:
    """The decoder of a model on a CPU in float32; None if the model's own forward pass has to be asked."""
    if model.device.type != "cpu" or model.dtype is not torch.float32 or not _is_known(model):
        return None
    try:
        made = Decoder(model)
        return made if _agrees(model, made) else None
    except (AttributeError, TypeError, ValueError, RuntimeError, IndexError):
        return None  # parts of these names that do something else


def _is_known(model: Any) -> bool:
    body = getattr(model, "model", None)
    if body is None or any(each._forward_hooks or each._forward_pre_hooks for each in model.modules()):
        return False
    if {name for name, _ in body.named_children()} != {"embed_tokens", "layers", "norm", "rotary_emb"}:
        return False
    linears = [model.get_output_embeddings()]
    for layer in body.layers:
        if _children(layer) != _LAYER or _children(layer.mlp) != _MLP:
            return False
        if _children(layer.self_attn) - _NORMS != _ATTENTION or list(layer.self_attn.parameters(recurse=False)):
            return False
        linears += [getattr(layer.self_attn, name) for name in _ATTENTION]
        linears += [getattr(layer.mlp, name) for name in _MLP - {"act_fn"}]
    head = head_of(model)
    plain = head is not None and head.cap is None and abs(head.scale - 1.0) < 1e-4
    return plain and all(type(each) in (nn.Linear, FastLinear) for each in linears)


def _children(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}


@torch.no_grad()
def _agrees(model: Any, decoder: Decoder) -> bool:
    """True if two rows, one of them with a hole before it, get the same log-probabilities both ways."""
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(model.get_output_embeddings().weight.shape[0], (2, 9), generator=draw)
    seen = torch.ones_like(ids)
    seen[1, :3] = 0
    positions = (seen.cumsum(1) - 1).clamp(min=0)
    found = []
    for steps in (False, True):
        cache = DynamicCache()
        model(
            input_ids=ids[:, :8],
            attention_mask=seen[:, :8],
            position_ids=positions[:, :8],
            past_key_values=cache,
            use_cache=True,
        )
        if steps:
            logits = decoder.step(ids[:, 8:], positions[:, 8:], seen, cache)
        else:
            logits = model(
                input_ids=ids[:, 8:],
                attention_mask=seen,
                position_ids=positions[:, 8:],
                past_key_values=cache,
                use_cache=True,
            ).logits[:, -1]
        found.append(logits.log_softmax(-1))
    return bool((found[0] - found[1]).abs().max() <= TOLERANCE)


def _through(layer: nn.Linear, rows: Tensor) -> Tensor:
    return linear(rows, layer.weight, layer.bias)


def _normed(norm: Any, rows: Tensor) -> Tensor:
    """By its root mean square; the modules of transformers compute it in six steps."""
    return functional.rms_norm(rows, norm.weight.shape, norm.weight, norm.variance_epsilon)


def _mlp(mlp: Any, hidden: Tensor) -> Tensor:
    return _through(mlp.down_proj, mlp.act_fn(_through(mlp.gate_proj, hidden)) * _through(mlp.up_proj, hidden))


def _turned(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """[B, heads, width] turned by its position (RoPE, halves); cos and sin [B, 1, width]."""
    one, other = heads.chunk(2, -1)
    return heads * cos + torch.cat([-other, one], -1) * sin
