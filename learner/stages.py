"""The scenarios that a run plays, and what the policy is told there.

A collection stands for all its scenarios. The system prompt of a scenario is its public card: what the
catalog says, and nothing else. Of a scenario with variants, a run trains on those of the split `train` and is measured
on those of `eval`, unless the configuration says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from learner.config import Config, ConfigError
from learner.retry import OutageRetryPolicy
from learner.rollout import RolloutStage
from learner.sections import ServerSection, WantedSplit
from learner.suggestions import nearest
from trainer_client import AsyncLabsClient, ConnectionFailed, RateLimited, Unavailable
from trainer_client.wire.catalog import CatalogResponse, ScenarioSummary
from trainer_client.wire.episodes import Split
from trainer_client.wire.reward import RewardConfig


@dataclass(frozen=True)
class Stages:
    """The stages on which a run trains, and those on which it is measured."""

    training: tuple[RolloutStage, ...]
    held_out: tuple[RolloutStage, ...]

    def of(self, number: int, *, held_out: bool = False) -> RolloutStage:
        """Stages take turns."""
        stages = self.held_out if held_out else self.training
        return stages[number % len(stages)]

    def told(self) -> str | None:
        """The variants that are played, in one line; None where no split was asked for."""
        measured = {stage.name for stage in self.held_out if stage.split}
        both = [stage for stage in self.training if not stage.split and stage.name in measured]
        parts = [
            *(f"training on split {split!r} of {names}" for split, names in _by_split(self.training)),
            *(f"training on all variants of {stage.name}, those of the evaluation too" for stage in both),
            *(f"evaluating on split {split!r} of {names}" for split, names in _by_split(self.held_out)),
        ]
        return f"variants: {'; '.join(parts)}" if parts else None


async def open_stages(config: Config, client: AsyncLabsClient, retry_policy: OutageRetryPolicy | None = None) -> Stages:
    """Look up what the configuration names; raises ConfigError for what the server does not have."""
    server = config.server
    wanted = server.scenarios or [f"{server.collection}/{server.scenario}"]
    style = style_of(server.system, config.model.path)
    weights = config.algorithm.dimensions
    retry_policy = retry_policy or OutageRetryPolicy(server.patience_s)
    if not server.scenarios and not server.held_out and style != "card" and not weights:
        return await open_single_stage(server, client, retry_policy, None if style == "none" else style)
    catalog = await _catalog(client, retry_policy)
    chosen = _resolve(catalog, wanted, "server.scenarios")
    _check_weights(weights, {name for _, scenario in chosen for name in scenario.dimensions})
    measured = _resolve(catalog, server.held_out, "server.held_out")
    training = [_in_training(server, _with_card(server, style, *each), each[1]) for each in chosen]
    held_out = [_held_out(server, _with_card(server, style, *each), each[1]) for each in measured or chosen]
    both = {stage.name for stage in training} & {stage.name for stage in held_out}
    if measured and both:
        raise ConfigError(f"server.held_out: {min(both)} is also a training scenario; remove it from one of the two")
    return Stages(tuple(training), tuple(held_out))


async def open_single_stage(
    server: ServerSection, client: AsyncLabsClient, retry_policy: OutageRetryPolicy, system: str | None = None
) -> Stages:
    """The same of the one scenario, with this system prompt; the server's refusal where it does not have it."""
    card = await retry_policy.ask(lambda _: client.scenario(server.collection, server.scenario))
    only = _stage(server, server.collection, server.scenario, system)
    return Stages((_in_training(server, only, card),), (_held_out(server, only, card),))


async def open_stages_or_all_variants(
    config: Config, client: AsyncLabsClient, retry_policy: OutageRetryPolicy
) -> Stages:
    """`open_stages` of a script with a part of its own, which may need no server.

    Where no server answers and no split is asked for, the episodes are of all variants.
    """
    server = config.server
    try:
        return await open_stages(config, client, replace(retry_policy, waits_for=(RateLimited, Unavailable)))
    except ConnectionFailed:
        if (server.split, server.held_out_split) != ("auto", "auto"):
            raise
    retry_policy.say("no server answers: episodes are of all variants")
    only = _stage(server, server.collection, server.scenario, None)
    return Stages((only,), (only,))


def own_stages(config: Config) -> Stages:
    """The one stage of a run whose environment is not a server's: its system prompt is a text, or none."""
    server = config.server
    only = RolloutStage(
        "own", "environment", server.max_turns, None if server.system in ("auto", "card", "none") else server.system
    )
    return Stages((only,), (only,))


def _check_weights(weights: Mapping[str, float], known: Collection[str]) -> None:
    """Refuse the weight of a dimension that no training scenario has."""
    unknown = set(weights) - set(known)
    if unknown:
        name = min(unknown)
        raise ConfigError(f"algorithm.dimensions.{name}: dimension {name!r} is {nearest(name, known)}")


def style_of(system: str, model_path: str | None) -> str:
    """`card`, `none` or a text: what `server.system` means for this model."""
    if system != "auto":
        return system
    return "none" if model_path is None else "card"


async def resolve_stages(
    client: AsyncLabsClient,
    names: Sequence[str],
    max_turns: int | None,
    style: str = "card",
    rewards: Mapping[str, Any] | None = None,
    *,
    split: WantedSplit = "auto",
    retry_policy: OutageRetryPolicy | None = None,
) -> list[RolloutStage]:
    """Scenarios by name, each with the system prompt that `style` says; a collection stands for all of it.

    `rewards` is the reward configuration of the episodes, `split` as `server.held_out_split`.
    """
    server = ServerSection(max_turns=max_turns, reward_config=dict(rewards or {}), held_out_split=split)
    found = _resolve(await _catalog(client, retry_policy or OutageRetryPolicy()), names, "--scenario")
    return [_held_out(server, _with_card(server, style, *each), each[1], "--split") for each in found]


def reward_config(server: ServerSection) -> RewardConfig | None:
    """As the server takes it."""
    if not server.reward_config:
        return None
    try:
        return RewardConfig.model_validate(server.reward_config)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in ("server.reward_config", *first["loc"]))
        is_unknown = first["type"] == "extra_forbidden" and len(first["loc"]) == 1
        told = nearest(str(first["loc"][0]), RewardConfig.model_fields) if is_unknown else first["msg"]
        raise ConfigError(f"{place}: {told}") from None


async def _catalog(client: AsyncLabsClient, retry_policy: OutageRetryPolicy) -> CatalogResponse:
    return await retry_policy.ask(lambda _: client.catalog())


def _resolve(catalog: CatalogResponse, wanted: Sequence[str], where: str) -> list[tuple[str, ScenarioSummary]]:
    known = {each.slug: {scenario.slug: scenario for scenario in each.scenarios} for each in catalog.collections}
    found = []
    for name in wanted:
        collection, _, scenario = name.partition("/")
        if collection not in known:
            raise ConfigError(f"{where}: collection {collection!r} is {nearest(collection, known)}")
        scenarios = known[collection]
        if scenario and scenario not in scenarios:
            raise ConfigError(f"{where}: {name!r} is {nearest(scenario, scenarios)}")
        found += [(collection, scenarios[slug]) for slug in ([scenario] if scenario else scenarios)]
    return found


def _with_card(server: ServerSection, style: str, collection: str, scenario: ScenarioSummary) -> RolloutStage:
    text = {"card": f"{scenario.name}. {scenario.description}", "none": None}.get(style, style)
    turns = None if server.max_turns is None else min(server.max_turns, scenario.max_turns)
    return _stage(server, collection, scenario.slug, text, turns)


def _stage(
    server: ServerSection, collection: str, scenario: str, system: str | None, turns: int | None = None
) -> RolloutStage:
    return RolloutStage(collection, scenario, turns or server.max_turns, system, reward_config(server))


def _in_training(server: ServerSection, stage: RolloutStage, card: ScenarioSummary) -> RolloutStage:
    return replace(stage, split=_split(server.split, "train", card.splits or (), stage.name, "server.split"))


def _held_out(
    server: ServerSection, stage: RolloutStage, card: ScenarioSummary, where: str = "server.held_out_split"
) -> RolloutStage:
    return replace(stage, split=_split(server.held_out_split, "eval", card.splits or (), stage.name, where))


def _split(wanted: WantedSplit, automatic: Split, there: Collection[str], name: str, where: str) -> Split | None:
    """The split that an episode asks for; a scenario without variants is the same in each."""
    if wanted == "auto":
        return automatic if automatic in there else None
    if wanted is None or not there:
        return None
    if wanted not in there:
        raise ConfigError(f"{where}: {name} has no variants of split {wanted!r}, only of {', '.join(there)}")
    return wanted


def _by_split(stages: Sequence[RolloutStage]) -> Iterator[tuple[str, str]]:
    """Each split, and whose it is."""
    for split in ("train", "eval"):
        names = [stage.name for stage in stages if stage.split == split]
        if names:
            yield split, names[0] if len(names) == 1 else f"{len(names)} scenarios"
