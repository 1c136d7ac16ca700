"""Fused kernels for the update: every layer of the model is compiled by torch (`torch.compile`, backend inductor).

Layers are compiled one kind at a time (regional compilation), with shapes left open, so one compilation serves all
layers and all lengths of rows. Attention is left to its own kernels. As with recomputation, it depends on whether
gradients are wanted: the sampler, its cache and its CUDA graphs never notice.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer

from learner import agreement, attention
from learner.config import ConfigError
from learner.packed import trial_rows

if TYPE_CHECKING:
    from learner.model import Policy


def compile_layers(model: nn.Module) -> int:
    """Have every layer of a transformers model, and of copies of it, run compiled where gradients are wanted.

    Returns how many layers there are. The first pass with gradients compiles, which takes up to a minute.

    Raises:
        ConfigError: the model has no layers of transformers.
    """
    layers = [each for each in model.modules() if isinstance(each, GradientCheckpointingLayer)]
    if not layers:
        raise ConfigError(f"model.compile: {type(model).__name__} has no layers that can be compiled; leave it off")
    attention.leave_uncompiled()
    for layer in layers:
        kind: Any = type(layer)
        layer.__class__ = _compiled(kind)
    return len(layers)


def check_compiled(policy: Policy) -> float:
    """Compile, and compare with the layers as they are: how far the log-probabilities are apart.

    Raises:
        ConfigError: torch cannot compile the model here, or compiled layers give other numbers.
    """
    rows = trial_rows(policy)
    with torch.no_grad():
        plain = policy.score_rows(rows)[0]
    try:
        found = policy.score_rows(rows)[0]
        found.sum().backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:  # what dynamo and inductor raise, whatever is missing
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"model.compile: torch cannot compile this model here; set it to false. {reason}") from None
    policy.model.zero_grad(set_to_none=True)
    gap, allowed = agreement.difference(policy, found, plain), agreement.allowed(policy)
    if not gap <= allowed:
        raise ConfigError(
            f"model.compile: compiled layers change log-probabilities by {agreement.described(policy, gap)} (allowed:"
            f" {allowed:.0e}); set it to false"
        )
    return gap


@functools.cache
def _compiled(kind: type[nn.Module]) -> Any:
    """The same kind of layer, compiled. A class, because a copy of a layer keeps its class."""
    fused = torch.compile(kind.forward, dynamic=True)

    def forward(self: nn.Module, *args: Any, **options: Any) -> Any:
        return (fused if torch.is_grad_enabled() else kind.forward)(self, *args, **options)

    return type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})
