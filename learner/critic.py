"""A value model: how much reward is still to come, before each token of the policy.

A copy of the policy's trunk of its own with one linear output, so nothing the critic learns reaches
the policy. The output begins at 0: an untrained critic claims nothing.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from learner.model import Policy, Rows

FILE = "critic.pt"


class Critic(nn.Module):
    """Trunk and head."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        # Below adapters, `base_model` would be the model with its head.
        below = policy.model.get_base_model() if hasattr(policy.model, "get_base_model") else policy.model
        self.trunk: Any = copy.deepcopy(below.base_model).requires_grad_(requires_grad=True)
        width = policy.model.get_output_embeddings().weight.shape[1]
        self.head = nn.Linear(width, 1, device=policy.device, dtype=torch.float32)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, rows: Rows) -> Tensor:
        """[N]: the value of the state before each sampled token, row by row."""
        hidden = self.trunk(input_ids=rows.ids, use_cache=False).last_hidden_state
        values: Tensor = self.head(hidden[:, :-1][rows.sampled[:, 1:] > 0].float())[:, 0]
        return values


def saved_critic(folder: Path) -> dict[str, Any]:
    """`weights` and the state of the `optimizer` of a checkpoint."""
    state: dict[str, Any] = torch.load(folder / FILE, weights_only=True)
    return state


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """1 - variance of the error / variance of the returns: 1 is perfect, 0 as good as a constant."""
    spread = float(returns.var())
    return 1.0 - float((returns - values).var()) / spread if spread > 0 else 0.0
