"""The reward of a policy on seeds that no run trains on."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import httpx2

from learner.generate.hf import HfGenerator
from learner.rollout import Rollouts, Stage
from learner.seeds import FIRST_HELD_OUT_SEED
from learner.stages import resolve_stages
from learner.stored import open_stored
from learner.tools import for_template, in_words, message_of
from trainer_client import AsyncLabsClient, play_async
from trainer_client.agent import ChatMessage
from trainer_client.wire import CreateEpisodeResponse, Message

ENDPOINT_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Asked:
    """What is played."""

    scenarios: Sequence[str]
    episodes: int
    temperature: float = 1.0
    max_turns: int | None = None
    url: str | None = None
    system: str | None = None
    """System prompt: `card`, `none` or a text. None: as a run was trained; of any other policy, the card."""


@dataclass(frozen=True)
class Measured:
    """What came of the episodes."""

    rewards: Sequence[float]
    scores: Mapping[str, float]
    """Mean of each dimension."""
    error_codes: Sequence[str]

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


def measure_stored(path: str, which: str, asked: Asked) -> Measured:
    """With a policy of this machine."""
    stored = open_stored(Path(path), which)
    generator = HfGenerator(stored.policy(asked.temperature), max_tokens=stored.max_tokens)

    async def go() -> Measured:
        async with AsyncLabsClient(asked.url) as client:
            style = asked.system or stored.system
            stages = await resolve_stages(client, asked.scenarios, asked.max_turns, style)
            seeds, places = _seeds(stages, asked.episodes)
            rollouts = Rollouts(client, generator, stored.renderer, stages[0])
            found = await rollouts.collect(seeds, 1, (0,), stages=places)
        return _measured(
            [(each.reward, each.scores) for each in found.trajectories],
            found.error_codes,
        )

    return asyncio.run(go())


def measure_endpoint(address: str, model: str, asked: Asked) -> Measured:
    """With an OpenAI-compatible endpoint: of vLLM, of `learner serve`, of a provider."""
    base = address.rstrip("/").removesuffix("/chat/completions").removesuffix("/v1")
    key = os.environ.get("OPENAI_API_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def go() -> Measured:
        async with (
            AsyncLabsClient(asked.url) as client,
            httpx2.AsyncClient(headers=headers, timeout=ENDPOINT_TIMEOUT_S, trust_env=False) as endpoint,
        ):

            async def agent(messages: list[ChatMessage]) -> Message:
                said = [_as_text(message) for message in messages]
                body = {"model": model, "messages": said, "temperature": asked.temperature}
                answer = await endpoint.post(f"{base}/v1/chat/completions", json=body)
                return message_of(_content(answer))

            stages = await resolve_stages(client, asked.scenarios, asked.max_turns, asked.system or "card")
            seeds, places = _seeds(stages, asked.episodes)
            results: list[Any] = []
            for stage in stages:
                mine = [seed for seed, place in zip(seeds, places, strict=True) if place is stage]
                if mine:
                    played = await play_async(
                        client,
                        agent,
                        stage.collection,
                        stage.scenario,
                        seeds=mine,
                        max_turns=stage.max_turns,
                        system=functools.partial(_told, stage),
                    )
                    results += played
        return _measured(
            [(each.reward, each.scores or {}) for each in results if each.ok],
            [f"{each.error.code} ({each.error.message})" for each in results if not each.ok],
        )

    return asyncio.run(go())


def _told(stage: Stage, episode: CreateEpisodeResponse) -> str | None:
    """The system prompt of a stage with its tools in words: so any endpoint can call them, whatever it supports."""
    tools = in_words(for_template(episode.tools)) if episode.tools else None
    return "\n\n".join(part for part in (stage.system, tools) if part) or None


def _as_text(message: ChatMessage) -> dict[str, str]:
    """A message of the history with its calls as they were written."""
    calls = [
        f"<tool_call>{json.dumps({'name': call['name'], 'arguments': call['input']})}</tool_call>"
        for call in message.get("tool_calls", ())
    ]
    return {"role": message["role"], "content": "\n".join(part for part in (message["content"], *calls) if part)}


def _content(answer: httpx2.Response) -> str:
    if answer.status_code != 200:
        raise ValueError(f"the endpoint returned {answer.status_code}: {answer.text[:200]}")
    content = answer.json()["choices"][0]["message"].get("content")
    if not isinstance(content, str):
        raise ValueError("the endpoint's response has no text")  # noqa: TRY004 - of the other side, not of a caller
    return content


def _seeds(stages: Sequence[Stage], episodes: int) -> tuple[list[int], list[Stage]]:
    """Seeds, and where each is played; scenarios take turns."""
    return [FIRST_HELD_OUT_SEED + number for number in range(episodes)], [
        stages[number % len(stages)] for number in range(episodes)
    ]


def _measured(found: Sequence[tuple[float, Mapping[str, float]]], errors: Sequence[str]) -> Measured:
    names = sorted({name for _, scores in found for name in scores})
    means = {name: fmean(scores[name] for _, scores in found if name in scores) for name in names}
    return Measured([reward for reward, _ in found], means, errors)
