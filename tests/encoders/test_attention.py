"""Attention over packed texts: what the definition gives, and nothing of a neighbour's."""

from __future__ import annotations

import pytest
import torch

from reward_server.encoders.attention import Attention, by_kernel, by_products

RUNS = [(2, 3), (5, 40), (23, 2), (24, 2), (31, 1), (48, 2), (100, 1), (399, 1), (401, 1)]
TOKENS = sum(length * count for length, count in RUNS)


@pytest.fixture(scope="module")
def packed() -> torch.Tensor:
    return torch.randn(TOKENS, 3 * 384, generator=torch.Generator().manual_seed(4)).mul_(0.4).bfloat16()


def _by_definition(packed: torch.Tensor, length: int) -> torch.Tensor:
    """softmax(Q K^T) V of one text, per head, fp32 ("Attention Is All You Need", equation 1, with scaled queries)."""
    query, key, value = packed.float().view(length, 3, 12, 32).permute(1, 2, 0, 3)
    return (torch.softmax(query @ key.transpose(1, 2), -1) @ value).transpose(0, 1).reshape(length, 384)


@pytest.mark.parametrize("attention", [by_products, by_kernel])
def test_each_text_attends_to_itself_alone(attention: Attention, packed: torch.Tensor) -> None:
    found, start = attention(packed, RUNS), 0
    assert found.shape == (TOKENS, 384)
    for length, count in RUNS:
        for _ in range(count):
            own = slice(start, start + length)
            assert torch.allclose(found[own].float(), _by_definition(packed[own], length), atol=0.03)
            assert torch.equal(found[own], attention(packed[own].clone(), [(length, 1)]))
            start += length


def test_large_scores_overflow_only_without_the_kernel(packed: torch.Tensor) -> None:
    loud = packed[:100] * 40
    assert torch.isfinite(by_kernel(loud, [(100, 1)])).all()
    assert not torch.isfinite(by_products(loud, [(100, 1)])).all()
