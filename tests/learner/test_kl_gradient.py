"""Which divergence each KL term pulls down, checked on a policy over three tokens.

k3 as a loss has the gradient of KL(reference || policy), although its value estimates KL(policy || reference)
(Schulman 2020 is about the value). k2, and k3 weighted by the ratio, have the gradient of what they estimate.
"""

from __future__ import annotations

import pytest
import torch

from learner.objectives import Kl, LossInputs, Objective, policy_loss

LOGITS, REFERENCE = torch.tensor([0.2, -0.7, 1.1]), torch.tensor([-0.4, 0.9, 0.3]).log_softmax(-1)


def expected_gradient(kl: Kl) -> torch.Tensor:
    """Of the term alone, over tokens drawn from the policy itself: every token, weighted by its probability."""
    logits = LOGITS.clone().requires_grad_()
    probabilities = LOGITS.softmax(-1)
    total = torch.zeros(())
    for token in range(3):
        logp = logits.log_softmax(-1)[token].reshape(1, 1)
        inputs = LossInputs(
            old_logp=logp.detach(),
            mask=torch.ones(1, 1),
            advantages=torch.zeros(1),
            reference_logp=REFERENCE[token].reshape(1, 1),
        )
        total = total + probabilities[token] * policy_loss(logp, inputs, Objective(kl=kl, beta=1.0)).loss
    (gradient,) = torch.autograd.grad(total, logits)
    return gradient


def gradient_of(divergence: str) -> torch.Tensor:
    logits = LOGITS.clone().requires_grad_()
    policy = logits.log_softmax(-1)
    loss = {
        "policy || reference": (policy.exp() * (policy - REFERENCE)).sum(),
        "reference || policy": (REFERENCE.exp() * (REFERENCE - policy)).sum(),
    }[divergence]
    (gradient,) = torch.autograd.grad(loss, logits)
    return gradient


@pytest.mark.parametrize(
    ("kl", "divergence"),
    [("k2", "policy || reference"), ("k3_weighted", "policy || reference"), ("k3", "reference || policy")],
)
def test_each_term_pulls_its_own_divergence_down(kl: Kl, divergence: str) -> None:
    torch.testing.assert_close(expected_gradient(kl), gradient_of(divergence), rtol=1e-5, atol=1e-6)


def test_the_two_divergences_pull_differently() -> None:
    assert not torch.allclose(gradient_of("policy || reference"), gradient_of("reference || policy"), atol=0.05)
