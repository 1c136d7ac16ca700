"""Low-rank adapters (peft): a few trained weights on a frozen model, which is then the reference at no cost.

The reference is the same model with its adapters switched off: no second copy of the weights is held.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from learner.config import ConfigError
from learner.model import PaddedRows, Policy, TokenScores
from learner.types import Segment


@dataclass(frozen=True)
class LoraSettings:
    """Size of the adapters."""

    rank: int = 16
    alpha: int = 32
    targets: tuple[str, ...] = ("all-linear",)
    """Names of layers, or `all-linear`: every linear layer but the head."""


def with_adapters(model: Any, settings: LoraSettings) -> Any:
    """The model with fresh adapters, which change nothing yet; all its own weights are frozen.

    Raises:
        ConfigError: the model has no such layers.
    """
    peft = _peft()
    every = settings.targets == ("all-linear",)
    config = peft.LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=0.0,  # sampler and learner must see one distribution
        target_modules="all-linear" if every else list(settings.targets),
        task_type="CAUSAL_LM",
    )
    try:
        with _yesterdays_names():
            return peft.get_peft_model(model, config).eval()
    except ValueError as error:
        raise ConfigError(f"lora.targets: {error}") from None


def narrow_frozen(model: Any, dtype: torch.dtype) -> None:
    """Keep the weights of frozen linear layers in the type that their products are computed in.

    Autocast would make the same numbers of them for every product. So nothing changes but memory and time: half of
    the bytes, and no copy of the whole model for each token that is sampled. A head that shares its weights with the
    embeddings gets weights of its own, since the embeddings stay as they are.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear) and not layer.weight.requires_grad:
            layer.weight = nn.Parameter(layer.weight.detach().to(dtype), requires_grad=False)


def loaded_adapters(model: Any, folder: Path) -> Any:
    """The model with the adapters of a folder, to be trained further."""
    with _yesterdays_names():
        return _peft().PeftModel.from_pretrained(model, str(folder), is_trainable=True).eval()


@contextmanager
def _yesterdays_names() -> Iterator[None]:
    """Peft asks transformers by names that it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _peft() -> Any:
    try:
        import peft
    except ImportError:
        raise ValueError("lora.rank: adapters need a package that is not installed: pip install peft") from None
    return peft


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

    def score(self, rows: PaddedRows) -> TokenScores:
        """As of any policy."""
        with self._without_adapters():
            return super().score(rows)

    @contextmanager
    def _without_adapters(self) -> Iterator[None]:
        with self.model.disable_adapter():
            yield
