"""A value model: how much reward is still to come, before each token of the policy.

A copy of the policy's trunk of its own with one linear output, so nothing the critic learns reaches
the policy. The output begins at 0: an untrained critic claims nothing. Rows are packed where the
policy's are, and matrix products are as precise as the policy's.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from learner import attention
from learner.model import PaddedRows, Policy, rows_of
from learner.packing import Packed, pack
from learner.types import Segment

FILE = "critic.pt"


class Critic(nn.Module):
    """Trunk and head."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.packs = policy.packs  # asked before the trunk is copied: the copy attends as the policy does
        self._precision = policy.precision
        # Below adapters, `base_model` would be the model with its head.
        below = policy.model.get_base_model() if hasattr(policy.model, "get_base_model") else policy.model
        self.trunk: Any = copy.deepcopy(below.base_model).float().requires_grad_(requires_grad=True)
        width = policy.model.get_output_embeddings().weight.shape[1]
        self.head = nn.Linear(width, 1, device=policy.device, dtype=torch.float32)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def values(self, rows: Sequence[Sequence[Segment]]) -> Tensor:
        """[N]: the value of the state before each sampled token, row by row."""
        device = self.head.weight.device
        found: Tensor = self(pack(rows).to(device) if self.packs else rows_of(rows, 0, device))
        return found

    def forward(self, rows: PaddedRows | Packed) -> Tensor:
        """The same of rows that are laid out."""
        with self._precision():
            before = self._packed(rows) if isinstance(rows, Packed) else self._padded(rows)
        values: Tensor = self.head(before.float())[:, 0]
        return values

    def _packed(self, packed: Packed) -> Tensor:
        """[N, width]: what the trunk makes of the place before each sampled token."""
        with attention.without_masks():
            out = self.trunk(
                input_ids=packed.ids[None], position_ids=packed.positions[None], use_cache=False, packing=packed
            )
        hidden: Tensor = out.last_hidden_state
        return hidden[0].index_select(0, packed.sources)

    def _padded(self, rows: PaddedRows) -> Tensor:
        hidden: Tensor = self.trunk(input_ids=rows.ids, use_cache=False).last_hidden_state
        return hidden[:, :-1][rows.sampled[:, 1:] > 0]


def saved_critic(folder: Path) -> dict[str, Any]:
    """`weights` and the state of the `optimizer` of a checkpoint."""
    state: dict[str, Any] = torch.load(folder / FILE, weights_only=True)
    return state


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """1 - variance of the error / variance of the returns: 1 is perfect, 0 as good as a constant."""
    spread = float(returns.var())
    return 1.0 - float((returns - values).var()) / spread if spread > 0 else 0.0
