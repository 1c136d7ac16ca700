"""Memory for time: the activations of a layer are not kept but made again in the backward pass.

transformers' own switch works only in training mode, which turns dropout on, and throws the sampler's cache away. Here
it depends on whether gradients are wanted, which is each thread's own: the sampler never notices.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer


def recompute_layers(model: nn.Module) -> int:
    """Make every layer of a transformers model, and of copies of it, forget what it can make again.

    Returns how many layers there are.

    Raises:
        ValueError: the model has no layers that transformers would do this for.
    """
    layers = [each for each in model.modules() if isinstance(each, GradientCheckpointingLayer)]
    if not layers:
        raise ValueError(f"{type(model).__name__} has no layers that can be recomputed; leave model.recompute off")
    for layer in layers:
        kind: Any = type(layer)
        layer.__class__ = _forgetful(kind)
    return len(layers)


@functools.cache
def _forgetful(kind: type[nn.Module]) -> Any:
    """The same kind of layer, with another forward pass. A class, because a copy of a layer keeps its class."""

    def forward(self: nn.Module, *args: Any, **options: Any) -> Any:
        if not torch.is_grad_enabled():
            return kind.forward(self, *args, **options)
        return checkpoint(functools.partial(kind.forward, self), *args, use_reentrant=False, **options)

    return type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})
