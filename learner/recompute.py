"""Memory for time: the activations of a layer are not kept but made again in the backward pass.

transformers' own switch works only in training mode, which turns dropout on, and throws the sampler's cache away. Here
it depends on whether gradients are wanted, which is each thread's own: the sampler never notices.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer


def recompute_layers(model: nn.Module) -> int:
    """Make every layer of a transformers model forget what it can make again; returns how many there are.

    To be called last: a copy of the model would go on calling the layers of this one.

    Raises:
        ValueError: the model has no layers that transformers would do this for.
    """
    layers = [each for each in model.modules() if isinstance(each, GradientCheckpointingLayer)]
    if not layers:
        raise ValueError(f"{type(model).__name__} has no layers that can be recomputed; leave model.recompute off")
    for layer in layers:
        _wrap(layer)
    return len(layers)


def _wrap(layer: nn.Module) -> None:
    forward = layer.forward

    def forgetful(*args: Any, **options: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*args, **options)
        return checkpoint(forward, *args, use_reentrant=False, **options)

    layer.forward = forgetful
