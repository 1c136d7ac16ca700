"""Parts of your own, named on the command line as `module:object`: a reward, an environment, callbacks."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from learner.callbacks import Callbacks, TrainerCallback
from trainer_client.environments import Environment
from trainer_client.rewards import FunctionReward, GroupReward, RewardFunction

MakeEnvironment = Callable[[], Environment]
_KINDS = (
    "a reward (trainer_client.rewards.RewardFunction, a function of messages, or RULER), an environment (a subclass of "
    "trainer_client.environments.Environment), or a callback (learner.callbacks.TrainerCallback)"
)


class PluginError(ValueError):
    """A plug-in cannot be used; the message says why, in one line."""


@dataclass(frozen=True)
class Plugins:
    """The parts that a run takes from somebody else's program."""

    reward: RewardFunction | None = None
    """Instead of the server's reward."""
    group_reward: GroupReward | None = None
    """Instead of both: it compares the members of a group."""
    environment: MakeEnvironment | None = None
    """Instead of a server."""
    callbacks: Callbacks = field(default_factory=Callbacks)

    def fit(self, *, single_turn: bool) -> None:
        """Nothing that was asked for is left out without a word.

        Raises:
            PluginError: single replies are judged by the server alone.
        """
        if single_turn and (self.reward or self.group_reward or self.environment):
            raise PluginError(
                "--plugin: a reward or an environment of your own plays conversations; with rollout.single_turn the "
                "server judges each reply: set rollout.single_turn = false"
            )


NO_PLUGINS = Plugins()


def load_plugins(names: Sequence[str]) -> Plugins:
    """The objects of these names; the current folder is looked in, too.

    Raises:
        PluginError: a name is none, cannot be imported, is of no known kind, or there are two of one kind.
    """
    objects = [(name, _loaded(name)) for name in names]
    rewards = [(name, each) for name, each in objects if isinstance(each, RewardFunction | GroupReward)]
    environments = [(name, each) for name, each in objects if _makes_environments(each)]
    callbacks = tuple(each for _, each in objects if isinstance(each, TrainerCallback))
    for kind, found in (("reward", rewards), ("environment", environments)):
        if len(found) > 1:
            raise PluginError(f"--plugin: {found[0][0]} and {found[1][0]} are both a {kind}; give one")
    reward = rewards[0][1] if rewards else None
    return Plugins(
        reward if isinstance(reward, RewardFunction) else None,
        None if isinstance(reward, RewardFunction) else reward,
        environments[0][1] if environments else None,
        Callbacks(callbacks),
    )


def _makes_environments(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Environment)


def _loaded(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise PluginError(f"--plugin {name}: write it as module:object, such as my_rewards:brief")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        value = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # anybody's program
        raise PluginError(f"--plugin {name}: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if isinstance(value, type) and issubclass(value, RewardFunction | TrainerCallback):
        value = value()
    if inspect.isfunction(value):
        return FunctionReward(value)
    if not isinstance(value, RewardFunction | GroupReward | TrainerCallback) and not _makes_environments(value):
        raise PluginError(f"--plugin {name}: it is a {type(value).__name__}, and a plug-in is {_KINDS}")
    return value
