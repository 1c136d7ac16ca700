"""One reply to each prompt, scored by `POST /batch/evaluate`: training without episodes.

A prompt is a conversation that the persona spoke last in: a row of a file, or the opening a seed gives. The replies
of a group answer the same prompt. What the server cannot score leaves its group and is counted there.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from learner.display import Now, Say, silent
from learner.failures import TURN_TOO_LONG, Failure, context_full, messages_of
from learner.generate.session import Completion, Continuation, Generator
from learner.retry import OutageRetryPolicy
from learner.rollout import Collected, RolloutStage
from learner.rows import RowError, read_rows
from learner.seeds import FIRST_HELD_OUT_SEED
from learner.types import Group, Segment, Trajectory
from trainer_client import AsyncLabsClient, FailedItem, LabsError, ScoredItem
from trainer_client.chat.dialogue import Dialogue, read_chat
from trainer_client.chat.tokens import Renderer
from trainer_client.chat.tools import for_template, message_of
from trainer_client.wire import BatchItem, Message


@dataclass(frozen=True)
class SingleTurnPrompt:
    """The prompt that the policy answers."""

    renderer: Renderer
    dialogue: Dialogue

    def ids(self) -> list[int]:
        """As the policy reads it."""
        said = [self.renderer.written(turn.text, turn.calls, turn.thought) for turn in self.dialogue.said]
        return self.renderer.prompt(self.dialogue.heard, said, self.dialogue.results)

    def messages(self) -> list[Message]:
        """As the server takes it."""
        found: list[Message] = []
        for heard, turn in itertools.zip_longest(self.dialogue.heard, self.dialogue.said):
            if heard is not None:
                found.append(Message(role="user", content=heard))
            if turn is not None:
                calls = [{"name": call["name"], "input": call["arguments"]} for call in turn.calls]
                found.append(
                    Message.model_validate({"role": "assistant", "content": turn.text, "tool_calls": calls or None})
                )
        return found


def read_prompts(path: Path, *, skip_bad: bool = False, say: Say = silent) -> list[Dialogue]:
    """All rows `{"messages": [...]}`; each must end with the persona (`user`). Raises RowError."""
    return read_rows(path, _prompt_row, key="rollout.prompts", skip_bad=skip_bad, say=say)


def _prompt_row(row: Mapping[str, Any]) -> Dialogue:
    found = read_chat(row.get("messages"))
    if not found.awaits_policy or found.heard[-1] is None:
        raise RowError("the last message must be the user's")
    return found


@dataclass(frozen=True)
class PromptSource:
    """Rows for training and rows that are never trained on; none of either: openings of seeds."""

    training: Sequence[Dialogue] = ()
    held_out: Sequence[Dialogue] = ()

    def row(self, seed: int) -> Dialogue | None:
        """The row that a seed stands for."""
        rows = self.held_out if seed >= FIRST_HELD_OUT_SEED and self.held_out else self.training
        return rows[seed % len(rows)] if rows else None


class SingleTurn:
    """Collects groups of replies, as `Rollouts` collects groups of episodes."""

    def __init__(
        self,
        client: AsyncLabsClient,
        generator: Generator,
        renderer: Renderer,
        stage: RolloutStage,
        *,
        source: PromptSource | None = None,
        retry_policy: OutageRetryPolicy | None = None,
    ) -> None:
        self._client = client
        self._generator = generator
        self._renderer = renderer
        self._stage = stage
        self._source = source or PromptSource()
        self._retry_policy = retry_policy or OutageRetryPolicy()
        self._openings: dict[tuple[str, str | None, int], SingleTurnPrompt] = {}

    async def collect(
        self,
        seeds: Sequence[int],
        group_size: int,
        noise: tuple[int, ...],
        now: Now = silent,
        stages: Sequence[RolloutStage] | None = None,
        *,
        numbers: Sequence[int] | None = None,
    ) -> Collected:
        """`group_size` replies to the prompt of each seed; `noise` numbers make the sampling repeatable."""
        started = time.monotonic()
        places = [self._stage] * len(seeds) if stages is None else list(stages)
        now(f"{len(seeds) * group_size} replies: fetching {len(seeds)} prompts")
        found = await asyncio.gather(
            *(self._prompt(stage, seed) for stage, seed in zip(places, seeds, strict=True)), return_exceptions=True
        )
        generating = time.monotonic()
        now(f"{len(seeds) * group_size} replies: sampling")
        refused = {
            number: reason for number, each in enumerate(found) if (reason := self._refusal(each, places[number]))
        }
        prompts = {number: each for number, each in enumerate(found) if isinstance(each, SingleTurnPrompt)}
        prompts = {number: each for number, each in prompts.items() if number not in refused}
        replies = await asyncio.to_thread(self._speak, prompts, group_size, noise, numbers)
        generating = time.monotonic() - generating
        now(f"{len(replies)} replies: scoring")
        scored = await self._score(prompts, places, replies)
        groups = []
        for number, (seed, stage, prompt) in enumerate(zip(seeds, places, found, strict=True)):
            if number in refused:
                groups.append(_group(seed, stage, (), [refused[number]] * group_size))
                continue
            if isinstance(prompt, BaseException):
                raise prompt
            members = [scored[number, member] for member in range(group_size)]
            trajectories = [
                _trajectory(prompt, replies[number, member], each, seed)
                for member, each in enumerate(members)
                if isinstance(each, ScoredItem)
            ]
            groups.append(_group(seed, stage, trajectories, [each for each in members if isinstance(each, Failure)]))
        return Collected(tuple(groups), time.monotonic() - started, generating)

    def _refusal(self, found: SingleTurnPrompt | BaseException, stage: RolloutStage) -> Failure | None:
        """The failure of a prompt: the server gave none, or a turn after it has no room in the model."""
        if isinstance(found, LabsError):
            return Failure.of(found)
        limit, turn = self._generator.context, self._generator.max_tokens
        if limit is None or isinstance(found, BaseException) or (prompt := len(found.ids())) + turn <= limit:
            return None
        return context_full(prompt, limit, turn, has_system=stage.system is not None)

    async def _prompt(self, stage: RolloutStage, seed: int) -> SingleTurnPrompt:
        row = self._source.row(seed)
        if row is not None:
            system = row.system or stage.system
            return SingleTurnPrompt(self._renderer.within(system) if system else self._renderer, row)
        key = (stage.name, stage.split, seed)
        if key not in self._openings:
            self._openings[key] = await self._opening(stage, seed)
        return self._openings[key]

    async def _opening(self, stage: RolloutStage, seed: int) -> SingleTurnPrompt:
        """The beginning of an episode of this seed; the episode itself is ended at once."""
        answer = await self._retry_policy.ask(
            lambda key: self._client.create_episode(
                stage.collection,
                stage.scenario,
                seed=seed,
                observation_role="user",
                split=stage.split,
                idempotency_key=key,
            )
        )
        await self._retry_policy.ask(lambda _: self._client.delete_episode(answer.episode_id))
        renderer = self._renderer
        if stage.system is not None or answer.tools:
            renderer = renderer.within(stage.system, for_template(answer.tools))
        return SingleTurnPrompt(renderer, Dialogue(stage.system, (answer.initial_observation.content,)))

    def _speak(
        self,
        prompts: Mapping[int, SingleTurnPrompt],
        group_size: int,
        noise: tuple[int, ...],
        numbers: Sequence[int] | None,
    ) -> dict[tuple[int, int], Completion]:
        session = self._generator.start()
        asked = {
            number * group_size + member: Continuation(
                ids, np.random.SeedSequence([*noise, number if numbers is None else numbers[number], member])
            )
            for number, prompt in prompts.items()
            for ids in [prompt.ids()]
            for member in range(group_size)
        }
        return {divmod(place, group_size): said for place, said in session.step(asked).items()}

    async def _score(
        self,
        prompts: Mapping[int, SingleTurnPrompt],
        places: Sequence[RolloutStage],
        replies: Mapping[tuple[int, int], Completion],
    ) -> dict[tuple[int, int], ScoredItem | Failure]:
        """Each reply's reward, or why it has none."""
        found: dict[tuple[int, int], ScoredItem | Failure] = {}
        items = []
        for (number, member), reply in replies.items():
            prompt, stage = prompts[number], places[number]
            try:
                last = message_of(prompt.renderer.spoken(list(reply.ids)).aloud)
            except ValidationError:
                found[number, member] = TURN_TOO_LONG
                continue
            items.append(
                BatchItem(
                    id=f"{number}-{member}",
                    collection_slug=stage.collection,
                    scenario_slug=stage.scenario,
                    messages=[*prompt.messages(), last],
                    reward_config=stage.reward_config,
                )
            )
        if items:
            try:
                results = await self._retry_policy.ask(lambda _: self._client.batch_evaluate(items))
            except LabsError as error:
                return found | {_place(item): Failure.of(error) for item in items}
            for result in results:
                found[_place(result)] = (
                    Failure(result.code, result.message) if isinstance(result, FailedItem) else result
                )
        return found


def _place(item: BatchItem | ScoredItem | FailedItem) -> tuple[int, int]:
    """The place of the reply that an item is: the number of its prompt, and of the reply among those to it."""
    number, member = map(int, item.id.split("-"))
    return number, member


def _group(seed: int, stage: RolloutStage, trajectories: Sequence[Trajectory], failures: Sequence[Failure]) -> Group:
    codes = tuple(failure.code for failure in failures)
    return Group(seed, tuple(trajectories), len(failures), codes, messages_of(failures), stage.name)


def _trajectory(prompt: SingleTurnPrompt, reply: Completion, scored: ScoredItem, seed: int) -> Trajectory:
    spoken = prompt.renderer.spoken(list(reply.ids))
    return Trajectory(
        segments=(Segment(tuple(prompt.ids())), reply.segment()),
        turn_rewards=(scored.reward,),
        seed=seed,
        scores=scored.scores or {},
        truncated_turns=int(not reply.ended),
        lossy_turns=int(spoken.lossy),
    )
