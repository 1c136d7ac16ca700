"""The distance that two ways to the same log-probabilities may have.

In float32 every token has to agree. In 16 bits single tokens round apart and nothing is wrong: a logit of 20 is rounded
to .125. So the mean has to agree there. It does to .014 for a pretrained model of 0.5 billion weights in bf16, where
single tokens differ by .15. A temperature of .9 for 1 makes .07 of it, positions that are one off make .2.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

LARGEST = 1e-3
"""In float32, of any token; rounding makes a thousandth of it."""
MEAN = 0.04
"""In 16 bits, over the tokens."""


class Computing(Protocol):
    """What computes log-probabilities."""

    model: Any
    autocast: torch.dtype | None
    """What matrix products are computed in; None: the model's own dtype."""


def is_coarse(policy: Computing) -> bool:
    """True if the policy computes in 16 bits."""
    return policy.autocast is not None or policy.model.dtype in (torch.bfloat16, torch.float16)


def difference(policy: Computing, one: Tensor, other: Tensor) -> float:
    """Between the log-probabilities of the same tokens: the largest one, or in 16 bits the mean."""
    apart = (one.detach().float().cpu() - other.detach().float().cpu()).abs()
    return float(apart.mean() if is_coarse(policy) else apart.max())


def allowed(policy: Computing) -> float:
    """The largest difference that rounding explains."""
    return MEAN if is_coarse(policy) else LARGEST


def described(policy: Computing, found: float) -> str:
    """`at most 1.0e-06` or `1.4e-02 on average`."""
    return f"{found:.1e} on average" if is_coarse(policy) else f"at most {found:.1e}"
