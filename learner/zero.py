"""Weights, gradients and the optimiser's state in parts, by DeepSpeed's ZeRO (stages 1 to 3).

DeepSpeed keeps the optimiser's state in its own flat parts. It is gathered and given back as that of a plain optimiser,
so that a checkpoint looks as that of one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from learner.config import Config, ConfigError
from learner.models import tell_deepspeed
from learner.ranks import Ranks
from learner.steps import Stepper

_MOMENTS = ("exp_avg", "exp_avg_sq")


class ZeroStepper(Stepper):
    """A DeepSpeed engine that accumulates until it is asked to step."""

    lockstep = True

    def __init__(self, engine: Any, plain: torch.optim.Optimizer, trained: list[nn.Parameter], ranks: Ranks) -> None:
        super().__init__(plain, ranks)
        self._engine = engine
        self._trained = trained

    @property
    def parameters(self) -> list[nn.Parameter]:
        """As of any stepper."""
        return self._trained

    def set_rate(self, rate: float) -> None:
        """As of any stepper."""
        super().set_rate(rate)
        for group in self._engine.optimizer.param_groups:
            group["lr"] = rate

    def clear(self) -> None:
        """A step leaves nothing behind."""

    def backward(self, loss: Tensor) -> None:
        """As of any stepper; DeepSpeed averages over the processes, and shares add up."""
        # Passes do not go through the engine's own forward, which would do this: without it, stage 3 keeps the last
        # pass of a step alone.
        self._engine.optimizer.clear_backward_seen_flag()
        self._engine.backward(loss * self._ranks.world)

    def step(self, clip_norm: float) -> float:
        """As of any stepper; the bound is the one that the engine was made with."""
        self._engine.step()
        return float(self._engine.get_global_grad_norm())

    def weights(self, module: nn.Module) -> Iterator[tuple[str, Tensor]]:
        """As of any stepper."""
        own = dict(module.named_parameters())
        for name, value in super().weights(module):
            part = own.get(name, value)
            # Of stage 3 a process holds a part of each weight, of the others all of it.
            with _deepspeed().zero.GatheredParameters([part], enabled=hasattr(part, "ds_id")):
                yield name, part.detach().clone()

    def state(self) -> dict[str, Any]:
        """As of any stepper."""
        from deepspeed.utils import safe_get_full_optimizer_state

        plain = super().state()
        steps = [entry["step"] for entry in self._inner.state.values() if "step" in entry]
        if not steps or not float(steps[0]):
            return {**plain, "state": {}}
        state: dict[int, dict[str, Any]] = {}
        for number, parameter in enumerate(self._trained):
            moments = {name: safe_get_full_optimizer_state(parameter, name).clone() for name in _MOMENTS}
            state[number] = {"step": torch.tensor(float(steps[0])), **moments}
        return {**plain, "state": state}

    def load(self, state: dict[str, Any]) -> None:
        """As of any stepper."""
        from deepspeed.utils import safe_set_full_optimizer_state

        if not state["state"]:
            return
        for number, parameter in enumerate(self._trained):
            for name in _MOMENTS:
                safe_set_full_optimizer_state(parameter, state["state"][number][name].to(parameter.device), name)
        for entry in self._inner.state.values():
            if "step" in entry:
                entry["step"] = torch.as_tensor(state["state"][0]["step"]).to(torch.as_tensor(entry["step"]))

    @property
    def _inner(self) -> Any:
        return self._engine.optimizer.optimizer


def zero(model: nn.Module, stepper: Stepper, config: Config, ranks: Ranks) -> ZeroStepper:
    """Spread a model by the configured stage."""
    deepspeed = _deepspeed()
    state = stepper.state()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    stepper.clear()  # what the warm-up left would be in the first step
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=stepper.again(model),
        config={
            "train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": 1,
            "managed_gradient_accumulation": False,
            "gradient_clipping": config.optim.clip_norm,
            "zero_optimization": {"stage": config.parallel.zero_stage},
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
        },
    )
    spread_out = ZeroStepper(engine, stepper.again(model), trained, ranks)
    spread_out.load(state)
    return spread_out


def _deepspeed() -> Any:
    tell_deepspeed()
    try:
        import deepspeed
    except ImportError:
        raise ConfigError("parallel.kind: needs a package that is not installed: pip install deepspeed") from None
    if not torch.cuda.is_available():
        # It would be compiled for minutes when a run starts, and gloo does the same.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed
