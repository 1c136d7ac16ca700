"""The reward of a policy on seeds that no run trains on.

A run is played as it was trained: its scenarios, temperature, turns, system prompt and rewards, unless others are asked
for. What was played is part of the result.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from learner import rollout, transcripts
from learner.endpoint import Endpoint
from learner.failures import told
from learner.generate.hf import HfGenerator
from learner.models import check_device
from learner.passes import pass_k
from learner.rollout import RolloutStage
from learner.sections import WantedSplit
from learner.seeds import FIRST_HELD_OUT_SEED
from learner.serving import COLDEST
from learner.stages import Stages, resolve_stages
from learner.stored import StoredPolicy, open_stored
from learner.transcripts import Record
from trainer_client import AsyncLabsClient, Rollout, Rollouts, play_async
from trainer_client.agent import ChatMessage
from trainer_client.chat.tools import for_template
from trainer_client.wire import CreateEpisodeResponse, Message

ALL_VARIANTS = "none"
"""For `split`: whatever split a variant is of."""
AS_SCENARIO = 0
"""For `max_turns`: as many as the scenario allows."""
DEFAULT_SCENARIO = "clinical-intake/tired-and-dizzy"


@dataclass(frozen=True)
class EvaluationOptions:
    """Options of an evaluation; what is None is as a run was trained, and of any other policy as said here."""

    scenarios: Sequence[str] = ()
    """None: those of the run; else `DEFAULT_SCENARIO`."""
    episodes: int = 64
    temperature: float | None = None
    """Else 1."""
    max_turns: int | None = None
    """`AS_SCENARIO`, or a number. Else as many as the scenario allows."""
    max_tokens: int | None = None
    """Of a turn. Else 256; of an endpoint its own limit."""
    url: str | None = None
    system: str | None = None
    """System prompt: `card`, `none` or a text. Else the card."""
    split: str | None = None
    """Variants: `train`, `eval` or `ALL_VARIANTS`. Else `eval` where a scenario has that split."""
    device: str | None = None
    """Where a policy of this machine samples. Else the CPU."""
    passes_at: float = 0.7
    """The reward with which an episode passes, of pass^k."""
    transcripts: bool = False
    """Whether what was said is wanted, too."""


@dataclass(frozen=True)
class EvaluationSetting:
    """The episodes to play, and the way to play them."""

    scenarios: Sequence[str]
    temperature: float
    max_turns: int | None
    """None: as many as the scenario allows."""
    max_tokens: int | None
    """None: the endpoint's own limit."""
    system: str
    rewards: Mapping[str, Any]
    split: WantedSplit

    def text(self) -> str:
        """In one line."""
        turns = "as many turns as the scenario allows" if self.max_turns is None else f"at most {self.max_turns} turns"
        tokens = "" if self.max_tokens is None else f" of at most {self.max_tokens} tokens"
        system = {"card": "the scenario's card", "none": "none"}.get(self.system, "a text of its own")
        rewards = "; the run's reward_config" if self.rewards else ""
        variants = "" if self.split == "auto" else f"; variants: {self.split or 'all'}"
        return (
            f"{', '.join(self.scenarios)}: temperature {self.temperature:g}, {turns}{tokens}, system prompt:"
            f" {system}{rewards}{variants}"
        )


@dataclass(frozen=True)
class EvaluationResult:
    """The result of an evaluation."""

    rewards: Sequence[float]
    scores: Mapping[str, float]
    """Mean of each dimension."""
    error_codes: Sequence[str]
    played: Sequence[str] = ()
    """What was played, in lines."""
    transcripts: Sequence[Record] = ()
    pass_k: Mapping[int, float] = field(default_factory=dict)
    """By k, how likely every one of k episodes of a scenario passes."""

    @property
    def mean(self) -> float:
        """Of the rewards."""
        return fmean(self.rewards)

    @property
    def standard_error(self) -> float:
        """Of the mean."""
        return stdev(self.rewards) / len(self.rewards) ** 0.5 if len(self.rewards) > 1 else 0.0

    @property
    def errored(self) -> int:
        """Episodes without a reward."""
        return len(self.error_codes)

    @property
    def common_error(self) -> str:
        """The most frequent reason."""
        return Counter(self.error_codes).most_common(1)[0][0] if self.error_codes else ""


def setting_of(asked: EvaluationOptions, stored: StoredPolicy | None) -> EvaluationSetting:
    """The setting that is asked for: of a run, what it was trained with fills the gaps."""
    run = stored.played if stored else None
    turns = asked.max_turns if asked.max_turns is not None else run.max_turns if run else AS_SCENARIO
    temperature = asked.temperature if asked.temperature is not None else run.temperature if run else 1.0
    return EvaluationSetting(
        scenarios=asked.scenarios or (run.scenarios if run else (DEFAULT_SCENARIO,)),
        temperature=temperature,
        max_turns=turns or None,
        max_tokens=asked.max_tokens or (stored.max_tokens if stored else None),
        system=asked.system or (stored.system if stored else "card"),
        rewards=run.reward_config if run else {},
        split=_split(asked.split, run.held_out_split if run else "auto"),
    )


def _split(asked: str | None, otherwise: WantedSplit) -> WantedSplit:
    if asked == ALL_VARIANTS:
        return None
    return otherwise if asked is None else "train" if asked == "train" else "eval"


def _variants(stages: Sequence[RolloutStage]) -> list[str]:
    """A line on the splits that were played, where there are some."""
    told = Stages((), tuple(stages)).told()
    return [] if told is None else [told]


def _told(stored: StoredPolicy, chosen: EvaluationSetting, *, from_file: bool) -> list[str]:
    """Lines on which policy was played and how; of a run that was trained on episodes also whether that is how."""
    lines = [f"{stored.name}: {chosen.text()}"]
    if stored.played is None:
        return lines
    lines[0] = f"{stored.name}, update {stored.played.step}: {chosen.text()}"
    if from_file:
        return lines
    own = setting_of(EvaluationOptions(), stored)
    differs = own != chosen
    lines.append(f"not as the run was trained: {own.text()}" if differs else "as the run was trained")
    if stored.played.single_turn:
        lines.append("the run was trained on single replies; whole episodes are played here")
    return lines


def _learned_from_file(run: Path) -> bool:
    resolved = json.loads((run / "config.json").read_text())["resolved"]
    return bool(resolved["algorithm"]["objective"]["kind"] != "reward")


def measure_stored(path: str, which: str, asked: EvaluationOptions) -> EvaluationResult:
    """With a policy of this machine."""
    stored = open_stored(Path(path), which)
    chosen = setting_of(asked, stored)
    device = asked.device or (stored.played.device if stored.played else "cpu")
    check_device(device, "--device")
    stored.model.to(device)
    policy = stored.policy(max(chosen.temperature, COLDEST))
    from_file = stored.played is not None and _learned_from_file(Path(path))
    generator = HfGenerator(policy, max_tokens=chosen.max_tokens or stored.max_tokens)

    async def go() -> EvaluationResult:
        async with AsyncLabsClient(asked.url) as client:
            stages = await resolve_stages(
                client, chosen.scenarios, chosen.max_turns, chosen.system, chosen.rewards, split=chosen.split
            )
            seeds, places = _seeds(stages, asked.episodes)
            rollouts = rollout.RolloutCollector(client, generator, stored.renderer, stages[0])
            found = await rollouts.collect(seeds, 1, (0,), stages=places)
            at = dict(zip(seeds, map(stages.index, places), strict=True))
            records = await transcripts.of_collected(client, found, places) if asked.transcripts else []
        return _measured(
            asked,
            [(str(at[each.seed]), each.reward, each.scores) for each in found.trajectories],
            [told(code, found.error_messages) for code in found.error_codes],
            [*_told(stored, chosen, from_file=from_file), *_variants(stages)],
            records,
        )

    return asyncio.run(go())


def measure_endpoint(address: str, model: str, asked: EvaluationOptions) -> EvaluationResult:
    """With an OpenAI-compatible endpoint: of vLLM, of `learner serve`, of a provider."""
    chosen = setting_of(asked, None)
    limit = {} if chosen.max_tokens is None else {"max_tokens": chosen.max_tokens}

    async def go() -> EvaluationResult:
        async with (
            AsyncLabsClient(asked.url) as client,
            Endpoint(address, model, temperature=chosen.temperature, **limit) as endpoint,
        ):
            stages = await resolve_stages(client, chosen.scenarios, chosen.max_turns, chosen.system, split=chosen.split)
            seeds, places = _seeds(stages, asked.episodes)
            results: list[Rollout] = []
            for stage in stages:
                mine = [seed for seed, place in zip(seeds, places, strict=True) if place is stage]
                if mine:
                    results += await _played(client, endpoint, stage, mine)
        words = [] if endpoint.takes_tools else [f"{endpoint.base} takes no tools: it is told of them in words"]
        return _measured(
            asked,
            [(f"{each.collection}/{each.scenario}", each.reward, each.scores or {}) for each in results if each.ok],
            [f"{each.error.code} ({each.error.message})" for each in results if each.error is not None],
            [f"{endpoint.base}: {chosen.text()}", *_variants(stages), *words],
            [transcripts.of_rollout(each) for each in results],
        )

    return asyncio.run(go())


async def _played(client: AsyncLabsClient, endpoint: Endpoint, stage: RolloutStage, seeds: Sequence[int]) -> Rollouts:
    tools: list[dict[str, Any]] = []

    def system(episode: CreateEpisodeResponse) -> str | None:
        tools[:] = for_template(episode.tools)
        return stage.system

    async def agent(messages: list[ChatMessage]) -> Message:
        return await endpoint.turn(messages, tools)

    return await play_async(
        client,
        agent,
        stage.collection,
        stage.scenario,
        seeds=seeds,
        max_turns=stage.max_turns,
        split=stage.split,
        system=system,
    )


def _seeds(stages: Sequence[RolloutStage], episodes: int) -> tuple[list[int], list[RolloutStage]]:
    """Seeds, and where each is played; scenarios take turns."""
    return [FIRST_HELD_OUT_SEED + number for number in range(episodes)], [
        stages[number % len(stages)] for number in range(episodes)
    ]


def _measured(
    asked: EvaluationOptions,
    found: Sequence[tuple[str, float, Mapping[str, float]]],
    errors: Sequence[str],
    played: Sequence[str],
    records: Sequence[Record],
) -> EvaluationResult:
    names = sorted({name for *_, scores in found for name in scores})
    means = {name: fmean(scores[name] for *_, scores in found if name in scores) for name in names}
    passes = pass_k([(scenario, reward) for scenario, reward, _ in found], asked.passes_at)
    return EvaluationResult([reward for _, reward, _ in found], means, errors, played, records, passes)
