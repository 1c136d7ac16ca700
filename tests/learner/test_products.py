"""Products by oneDNN are those of torch, in value and gradient, and a model that asks for them is the same model."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from learner import products
from learner.products import FastLinear, multiply_fast, weight_gradient


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor where it pays."""
    monkeypatch.setattr(products, "onednn_pays", lambda: True)


def twins(bias: bool) -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(0)
    plain = nn.Linear(12, 20, bias=bias)
    fast = copy.deepcopy(plain)
    multiply_fast(nn.Sequential(fast))
    assert type(fast) is FastLinear
    return plain, fast


def outcome(layer: nn.Linear, given: Tensor) -> list[Tensor | None]:
    rows = given.clone().requires_grad_()
    out = layer(rows)
    out.square().sum().backward()
    return [out.detach(), rows.grad, *(each.grad for each in layer.parameters())]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(3, 12), (40, 12), (2, 30, 12)])
def test_a_fast_layer_is_a_linear_layer_in_value_and_gradient(shape: tuple[int, ...], *, bias: bool) -> None:
    plain, fast = twins(bias)
    given = torch.randn(shape)
    for one, other in zip(outcome(plain, given), outcome(fast, given), strict=True):
        assert one is not None
        assert other is not None
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-4)
        assert one.shape == other.shape


def test_it_is_asked_for_many_rows_of_float32_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []
    ask = products._by_onednn

    def watched(rows: Tensor, *rest: Tensor) -> Tensor:
        asked.append(tuple(rows.shape))
        return ask(rows, *rest)

    monkeypatch.setattr(products, "_by_onednn", watched)
    fast = twins(bias=False)[1]
    with torch.no_grad():
        fast(torch.randn(40, 12))
        fast(torch.randn(products.LEAST_ROWS - 1, 12))
        copy.deepcopy(fast).double()(torch.randn(40, 12).double())
        with torch.autocast("cpu", torch.bfloat16):
            assert fast(torch.randn(40, 12)).dtype is torch.bfloat16
    assert asked == [(40, 12)]


@pytest.mark.parametrize("width", [12, 30])
def test_the_gradient_of_a_weight_does_not_depend_on_which_side_is_larger(width: int) -> None:
    by_output, rows = torch.randn(50, 20), torch.randn(50, width)
    assert torch.allclose(weight_gradient(by_output, rows), by_output.T @ rows, rtol=1e-5, atol=1e-4)


def test_a_frozen_weight_gets_no_gradient() -> None:
    fast = twins(bias=True)[1].requires_grad_(requires_grad=False)
    rows = torch.randn(40, 12, requires_grad=True)
    fast(rows).sum().backward()
    assert rows.grad is not None
    assert fast.weight.grad is None


def test_other_layers_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(3, 3), Own(3, 3), nn.LayerNorm(3))
    names = list(model.state_dict())
    multiply_fast(model)
    assert [type(each) for each in model] == [FastLinear, Own, nn.LayerNorm]
    assert list(model.state_dict()) == names
    monkeypatch.setattr(products, "onednn_pays", lambda: False)
    other = nn.Linear(3, 3)
    multiply_fast(other)
    assert type(other) is nn.Linear
