"""Log-probabilities of chosen tokens from hidden states, a chunk at a time: the logits of a step are never held whole.

The backward pass makes each chunk's logits again, but for those of the first chunks, up to a limit in memory. What a
model does to the logits after its head (a scale, a soft cap) is not known by name: it is read off its own forward pass,
and a model that does something else is left to that.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from learner.products import FastLinear, linear, weight_gradient
from learner.support import Supports

CHUNK = 1024
"""Tokens whose logits are made at once."""
KEPT = 2**24
"""Logits that are kept for the backward pass, 64 MB of float32; it makes the others again."""


@dataclass(frozen=True)
class Head:
    """A linear head and what follows it: `cap * tanh(scale * z / cap)`, or `scale * z` without a cap."""

    linear: nn.Linear
    scale: float = 1.0
    cap: float | None = None


def head_of(model: Any) -> Head | None:
    """The head of a causal model; None if it does more than is known here."""
    last = model.get_output_embeddings()
    if type(last) not in (nn.Linear, FastLinear) or last.weight.numel() == 0:
        # Of a model whose weights are spread by DeepSpeed, the head is whole in the model's own forward alone.
        return None
    probe = torch.linspace(-60.0, 60.0, last.out_features, device=last.weight.device)
    seen = _after_head(model, last, probe)
    scale = float((seen * probe).sum() / (probe * probe).sum())
    if torch.allclose(seen, scale * probe, rtol=1e-4, atol=1e-4):
        return Head(last, scale)
    caps = {value for name, value in model.config.to_dict().items() if "softcap" in name and isinstance(value, float)}
    caps |= {float(seen.abs().max())}
    for cap in caps:
        if torch.allclose(seen, cap * torch.tanh(probe / cap), rtol=1e-4, atol=1e-4):
            return Head(last, 1.0, cap)
    return None


@torch.no_grad()
def _after_head(model: Any, last: nn.Linear, probe: Tensor) -> Tensor:
    """[vocabulary]: what the model makes of these logits."""
    me = threading.get_ident()

    def replace(_module: Any, _inputs: Any, out: Tensor) -> Tensor | None:
        return probe.expand_as(out).clone() if threading.get_ident() == me else None

    hook = last.register_forward_hook(replace)
    try:
        logits: Tensor = model(
            input_ids=torch.zeros((1, 1), dtype=torch.long, device=probe.device), use_cache=False
        ).logits
    finally:
        hook.remove()
    return logits[0, -1].float()


def chosen_logp_and_entropy(
    hidden: Tensor,
    targets: Tensor,
    head: Head,
    *,
    temperature: float,
    banned: Tensor,
    supports: Supports | None = None,
    chunk: int = CHUNK,
) -> tuple[Tensor, Tensor]:
    """[N] log-probabilities of `targets` [N] after `hidden` [N, width], and entropies, of what is sampled from."""
    found: tuple[Tensor, Tensor] = _Chosen.apply(
        hidden,
        head.linear.weight,
        head.linear.bias,
        targets,
        banned,
        head,
        temperature,
        supports,
        chunk,
        KEPT if torch.is_grad_enabled() else 0,
    )  # type: ignore[no-untyped-call]
    return found


class _Chosen(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0917 - autograd passes by place
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        banned: Tensor,
        head: Head,
        temperature: float,
        supports: Supports | None,
        chunk: int,
        may_keep: int,
    ) -> tuple[Tensor, Tensor]:
        ctx.made = _Logits(weight, bias, banned, head, temperature)
        ctx.made.supports = supports
        ctx.chunk = chunk
        kept: list[Tensor] = []
        logp = torch.empty(len(hidden), device=hidden.device)
        entropy, normaliser = torch.empty_like(logp), torch.empty_like(logp)
        for start in range(0, len(hidden), chunk):
            part = slice(start, start + chunk)
            logits = ctx.made.drawable(hidden[part], start)
            if (start + len(logits)) * logits.shape[1] <= may_keep:
                kept.append(logits)
            # By hand rather than by `logsumexp`: what it exponentiates is wanted for the entropy as well.
            peak = logits.amax(-1, keepdim=True)
            share = (logits - peak).exp_()
            total = share.sum(-1)
            log_total = peak[:, 0] + total.log()
            logp[part] = logits.gather(1, targets[part, None])[:, 0] - log_total
            # A token that cannot be sampled has probability 0 and counts nothing, not 0 times infinity.
            entropy[part] = log_total - torch.linalg.vecdot(share, ctx.made.finite(logits)) / total
            normaliser[part] = log_total
        ctx.save_for_backward(hidden, targets, normaliser, entropy, *kept)
        return logp, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        by_logp, by_entropy = gradients
        hidden, targets, normaliser, entropy, *kept = ctx.saved_tensors
        made: _Logits = ctx.made
        wants_hidden, wants_weight, wants_bias = ctx.needs_input_grad[:3]
        for_hidden = torch.empty_like(hidden) if wants_hidden else None
        for_weight = torch.zeros_like(made.weight) if wants_weight else None
        for_bias = torch.zeros_like(made.bias) if wants_bias and made.bias is not None else None
        needs_entropy = bool(by_entropy.count_nonzero())
        for number, start in enumerate(range(0, len(hidden), ctx.chunk)):
            part = slice(start, start + ctx.chunk)
            logits = kept[number] if number < len(kept) else made.drawable(hidden[part], start)
            share = (logits - normaliser[part, None]).exp_()
            steep = -by_logp[part, None]
            if needs_entropy:
                surprise = made.finite(logits) - (normaliser - entropy)[part, None]
                steep = steep - by_entropy[part, None] * surprise
            share.mul_(steep)
            share.scatter_add_(1, targets[part, None], by_logp[part, None])
            slope = made.slope(share, logits)
            if for_hidden is not None:
                for_hidden[part] = linear(slope, made.compute_weight.T).to(hidden.dtype)
            if for_weight is not None:
                for_weight += weight_gradient(slope, hidden[part].to(slope.dtype)).to(for_weight.dtype)
            if for_bias is not None:
                for_bias += slope.sum(0).to(for_bias.dtype)
        return for_hidden, for_weight, for_bias, *[None] * 7


class _Logits:
    """Logits of the distribution that is sampled from, in float32 whatever the model computes in."""

    def __init__(self, weight: Tensor, bias: Tensor | None, banned: Tensor, head: Head, temperature: float) -> None:
        self.weight, self.bias, self.banned, self.head, self.temperature = weight, bias, banned, head, temperature
        self.supports: Supports | None = None
        kind = weight.device.type
        self._dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        self.compute_weight = weight.detach().to(self._dtype)

    def drawable(self, hidden: Tensor, start: int) -> Tensor:
        """[n, vocabulary] of the tokens from `start` on, without what could not be drawn there."""
        logits = self.of(hidden)
        return logits if self.supports is None else self.supports.narrow(logits, start)

    def of(self, hidden: Tensor) -> Tensor:
        """[n, vocabulary]."""
        bias = None if self.bias is None else self.bias.detach().to(self._dtype)
        logits = linear(hidden.detach().to(self._dtype), self.compute_weight, bias).float()
        if self.head.cap is not None:
            logits = logits.div_(self.head.cap).tanh_().mul_(self.head.cap)
        if self.head.scale != self.temperature:
            logits = logits.mul_(self.head.scale / self.temperature)
        return logits.index_fill_(-1, self.banned, float("-inf")) if len(self.banned) else logits

    def finite(self, logits: Tensor) -> Tensor:
        """With 0 for what cannot be sampled."""
        if self.supports is not None:
            return logits.masked_fill(logits == float("-inf"), 0.0)
        return logits.index_fill(-1, self.banned, 0.0) if len(self.banned) else logits

    def slope(self, by_logits: Tensor, logits: Tensor) -> Tensor:
        """The gradient before temperature, scale and cap, in the dtype of the head."""
        if self.head.scale != self.temperature:
            by_logits = by_logits.mul_(self.head.scale / self.temperature)
        if self.head.cap is not None:
            ratio = self.finite(logits) * (self.temperature / (self.head.scale * self.head.cap))
            by_logits = by_logits.mul_(1.0 - ratio.square())
        return by_logits.to(self._dtype)
