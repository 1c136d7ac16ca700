"""Most runs of these tests begin with the same tiny model and the same warm-up, which takes longer than the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from learner import policies
from learner.model import Policy
from learner.warmup import Script, WarmupSettings, warm_up

Weights = dict[str, torch.Tensor]
MADE: dict[str, tuple[Weights, list[float], list[str]]] = {}
"""By all that decides a warm-up: the weights after it, its losses, and what was said meanwhile."""


def decided_by(policy: Policy, *others: object) -> str:
    digest = hashlib.sha256(repr((policy.temperature, policy.truncation, policy.autocast, others)).encode())
    for name, weights in policy.model.state_dict().items():
        digest.update(name.encode() + weights.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def warmed_up_once(
    policy: Policy, script: Script, tokenizer: Any, settings: WarmupSettings, *, seed: int, now: Callable[[str], None]
) -> list[float]:
    """The real warm-up the first time, and its outcome afterwards."""
    key = decided_by(policy, script, settings, seed)
    if key not in MADE:
        said: list[str] = []
        losses = warm_up(policy, script, tokenizer, settings, seed=seed, now=said.append)
        after = {name: weights.detach().clone() for name, weights in policy.model.state_dict().items()}
        MADE[key] = (after, losses, said)
    after, losses, said = MADE[key]
    policy.model.load_state_dict(after)
    for line in said:
        now(line)
    return list(losses)


@pytest.fixture(autouse=True)
def one_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "warm_up", warmed_up_once)
