"""The learner: multi-turn policy gradients over the server's rewards.

What one builds with (docs/build-your-own.md) is here, too: the rewards, agents and environments of `trainer_client`,
and the callbacks of the learner. They are loaded when they are asked for: the command starts without them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from learner.callbacks import TrainerCallback as TrainerCallback
    from learner.own_metrics import log_metric as log_metric
    from trainer_client import *  # noqa: F403 - what it exports is listed there

_OWN = {"TrainerCallback": "learner.callbacks", "log_metric": "learner.own_metrics"}


def __getattr__(name: str) -> Any:
    """A part by its name, loaded now."""
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _OWN:
        return getattr(importlib.import_module(_OWN[name]), name)
    client = importlib.import_module("trainer_client")
    if name not in client.BUILDING_BLOCKS:
        raise AttributeError(f"module 'learner' has no attribute {name!r}")
    return getattr(client, name)
