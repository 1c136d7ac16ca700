"""Compiled layers: the same gradient as without, for every length of row, and a sampler that never notices."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from learner import attention
from learner.compiled import check_compiled, compile_layers
from learner.config import ConfigError
from learner.generate.hf import HfGenerator
from learner.generate.session import Continuation
from learner.model import Policy
from learner.recompute import recompute_layers
from learner.types import Segment
from tests.learner.small import qwen3_config


def model() -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(qwen3_config(120)).eval()


@pytest.fixture
def restored() -> Iterator[None]:
    """Attention as it was: how it is compiled is one setting of the process."""
    yield
    attention.AttentionInterface.register(attention.NAME, attention._attend)


def rows(count: int, length: int) -> list[tuple[Segment, ...]]:
    draw = torch.Generator().manual_seed(count)

    def tokens(number: int) -> tuple[int, ...]:
        return tuple(int(each) for each in torch.randint(1, 120, (number,), generator=draw))

    opening = Segment(tokens(12))
    return [(opening, Segment(tokens(length + row), (-1.0,) * (length + row))) for row in range(count)]


def learned(policy: Policy, given: Sequence[Sequence[Segment]]) -> tuple[Tensor, Tensor]:
    """Log-probabilities, and the gradient of their sum and of some entropy."""
    policy.model.zero_grad()
    logp, entropy = policy.score_rows(given)
    (logp.sum() + 0.1 * entropy.sum()).backward()  # type: ignore[no-untyped-call]
    gradients = [each.grad.flatten() for each in policy.model.parameters() if each.grad is not None]
    return logp.detach(), torch.cat(gradients)


@pytest.mark.slow
@pytest.mark.usefixtures("restored")
@pytest.mark.filterwarnings("default")  # of torch, while it compiles
def test_compiled_layers_learn_the_same_from_rows_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    given = model()
    plain, fused = Policy(copy.deepcopy(given), end_id=0), Policy(given, end_id=0)
    assert fused.packs
    assert compile_layers(fused.model) == 2
    assert check_compiled(fused) < 1e-4
    compilations = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for count, length in ((3, 4), (6, 9), (2, 30)):
        (one, by_one), (other, by_other) = (learned(each, rows(count, length)) for each in (plain, fused))
        assert torch.allclose(one, other, atol=1e-5)
        assert float((by_one - by_other).norm() / by_one.norm()) < 1e-5
    # Neither the second layer nor another length is compiled again.
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == compilations > 0
    recompute_layers(fused.model)
    again = learned(fused, rows(3, 4))[1]
    by_one = learned(plain, rows(3, 4))[1]
    assert float((by_one - again).norm() / by_one.norm()) < 1e-5
    asked = {0: Continuation([3, 4, 5], np.random.SeedSequence(1))}
    said = [HfGenerator(each, max_tokens=8).start().step(asked) for each in (plain, fused)]
    assert said[0] == said[1]


@pytest.mark.usefixtures("restored")
def test_what_cannot_be_compiled_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"model\.compile: Linear has no layers"):
        compile_layers(nn.Linear(2, 2))
    acting = Policy(model(), end_id=0)

    def fail(*_: object, **__: object) -> None:
        if torch.is_grad_enabled():
            raise RuntimeError("no C++ compiler\nwas found")

    acting.model.model.layers[0].register_forward_pre_hook(fail)
    with pytest.raises(
        ConfigError, match=r"torch cannot compile this model here; set it to false\. no C\+\+ compiler was"
    ):
        check_compiled(acting)


@pytest.mark.usefixtures("restored")
def test_layers_that_give_other_numbers_are_refused() -> None:
    acting = Policy(model(), end_id=0)

    def disturb(_module: nn.Module, _inputs: Any, out: Tensor) -> Tensor | None:
        return out + 0.5 * torch.randn_like(out) if torch.is_grad_enabled() else None

    assert acting.packs
    acting.model.model.norm.register_forward_hook(disturb)
    with pytest.raises(ConfigError, match="compiled layers change log-probabilities by at most"):
        check_compiled(acting)
