"""Low-rank adapters (peft): a few trained weights on a frozen model, which is then the reference at no cost.

The reference is the same model with its adapters switched off: no second copy of the weights is held.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from learner.model import Policy
from learner.types import Segment


@dataclass(frozen=True)
class LoraSettings:
    """Size of the adapters."""

    rank: int = 16
    alpha: int = 32
    targets: tuple[str, ...] = ("all-linear",)
    """Names of layers, or `all-linear`: every linear layer but the head."""


def with_adapters(model: Any, settings: LoraSettings) -> Any:
    """The model with fresh adapters, which change nothing yet; all its own weights are frozen."""
    from peft import LoraConfig, get_peft_model

    every = settings.targets == ("all-linear",)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=0.0,  # sampler and learner must see one distribution
        target_modules="all-linear" if every else list(settings.targets),
        task_type="CAUSAL_LM",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by a name of yesterday
        return get_peft_model(model, config).eval()


class BasePolicy(Policy):
    """The policy without its adapters: what it was before training."""

    def __init__(self, trained: Policy) -> None:
        super().__init__(
            trained.model,
            end_id=trained.end_id,
            banned=trained.banned.tolist(),
            temperature=trained.temperature,
            autocast=trained.autocast,
        )

    def score_rows(self, rows: Sequence[Sequence[Segment]]) -> tuple[Tensor, Tensor]:
        """As of any policy."""
        with self._without_adapters():
            return super().score_rows(rows)

    def score_padded(self, rows: Sequence[Sequence[Segment]]) -> tuple[Tensor, Tensor]:
        """As of any policy."""
        with self._without_adapters():
            return super().score_padded(rows)

    @contextmanager
    def _without_adapters(self) -> Iterator[None]:
        with self.model.disable_adapter():
            yield
