"""From a loss to a step, for one model: of one process, or of several that each hold it whole.

Several processes each compute a share of the gradient, and add their shares up. Where each process holds a part of the
weights alone, `sharding` has what takes the place of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from learner.ranks import Ranks


class Stepper:
    """The optimiser of one model."""

    lockstep = False
    """Whether all processes must make the same number of passes through the model."""

    def __init__(self, optimizer: torch.optim.Optimizer, ranks: Ranks | None = None) -> None:
        self.optimizer = optimizer
        self._ranks = ranks or Ranks()

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """The parameters that are trained."""
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def again(self, model: nn.Module) -> torch.optim.Optimizer:
        """A fresh optimiser of the same kind, for the parameters that a model has now."""
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        given = self.optimizer.defaults
        return torch.optim.AdamW(trained, lr=given["lr"], weight_decay=given["weight_decay"])

    def set_rate(self, rate: float) -> None:
        """Give every parameter this learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def clear(self) -> None:
        """Forget the gradient."""
        self.optimizer.zero_grad(set_to_none=True)

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss, which is this process's share of that of the step."""
        loss.backward()  # type: ignore[no-untyped-call]

    def step(self, clip_norm: float) -> float:
        """Bound the gradient and take the step; its norm. With a norm that is not finite there is no step."""
        self._ranks.sum_gradients(self.parameters)
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, clip_norm)
        return self._stepped(float(norm))

    def _stepped(self, norm: float) -> float:
        if torch.isfinite(torch.tensor(norm)):
            self.optimizer.step()
        else:
            self.clear()
        return norm

    def state(self) -> dict[str, Any]:
        """The optimiser's, whole and plain, whoever holds what of it; all processes ask together."""
        found: dict[str, Any] = self.optimizer.state_dict()
        return found

    def weights(self, module: nn.Module) -> Iterator[tuple[str, Tensor]]:
        """Names and whole weights of a module, one by one, whoever holds what; all processes ask together."""
        yield from module.state_dict().items()

    def load(self, state: dict[str, Any]) -> None:
        """Go on with such a state."""
        self.optimizer.load_state_dict(state)
