"""Waves with parts of your own: the server's episodes under your reward, or your environment without a server."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Protocol

from learner.plugins import Plugins
from learner.wave import Answered, EpisodeSpec, PolicyTurn, Started, Wave
from trainer_client import LabsError
from trainer_client.agent import AgentReply, ChatMessage
from trainer_client.environments import Environment, Step
from trainer_client.rewards import GroupReward, RewardContext, RewardError, RewardFunction, RewardResult
from trainer_client.wire import Message, PlayedTurn, StartedEpisode
from trainer_client.wire.base import MAX_TURNS, Observation

SERVER = "server"
"""The component that holds the server's reward, where another one is trained on."""


class Player(Protocol):
    """Starts episodes and plays turns in them; each gets its answer or its error."""

    async def start(self, wanted: Sequence[EpisodeSpec]) -> list[Started | LabsError]:
        """In the order of the episodes."""
        ...

    async def play(self, said: Sequence[PolicyTurn]) -> list[Answered | LabsError]:
        """In the order of the turns, each of another episode."""
        ...


def with_plugins(wave: Wave, plugins: Plugins) -> Player:
    """The player of the episodes of a run with these plug-ins."""
    player: Player = wave if plugins.environment is None else OwnEnvironment(plugins.environment)
    return player if plugins.reward is None else Rescored(player, plugins.reward)


class Rescored:
    """Episodes whose turns get the reward of a function; the server's is kept as the score `server`."""

    def __init__(self, player: Player, reward: RewardFunction) -> None:
        self._player, self._reward = player, reward

    async def start(self, wanted: Sequence[EpisodeSpec]) -> list[Started | LabsError]:
        """Start the episodes."""
        return await self._player.start(wanted)

    async def play(self, said: Sequence[PolicyTurn]) -> list[Answered | LabsError]:
        """Play the turns, then score the conversations, all in one call of the reward function."""
        answers = await self._player.play(said)
        played = [place for place, answer in enumerate(answers) if not isinstance(answer, LabsError)]
        pairs = [(said[place], answers[place]) for place in played]
        rescored = await asyncio.to_thread(self._rescored, pairs)  # type: ignore[arg-type]
        for place, answer in zip(played, rescored, strict=True):
            answers[place] = answer
        return answers

    def _rescored(self, pairs: Sequence[tuple[PolicyTurn, Answered]]) -> list[Answered | LabsError]:
        conversations = [[*map(_chat, turn.messages), _heard(answer)] for turn, answer in pairs]
        contexts = [RewardContext(answer.reward, answer.scores or {}) for _, answer in pairs]
        try:
            results = self._reward.score_many(conversations, contexts)
        except RewardError:
            return [self._alone(*each) for each in zip(pairs, conversations, contexts, strict=True)]
        return [
            answer.model_copy(update={"reward": result.reward, "scores": {**result.components, SERVER: answer.reward}})
            for (_, answer), result in zip(pairs, results, strict=True)
        ]

    def _alone(
        self, pair: tuple[PolicyTurn, Answered], conversation: Sequence[ChatMessage], context: RewardContext
    ) -> Answered | LabsError:
        """One conversation, where one of a batch failed: a failure costs its own episode and no other."""
        answer = pair[1]
        try:
            result = self._reward.score(conversation, context)
        except RewardError as error:
            return _unscored(error)
        return answer.model_copy(
            update={"reward": result.reward, "scores": {**result.components, SERVER: answer.reward}}
        )


class OwnEnvironment:
    """Episodes in environments of this process, one object each; threads play them at once."""

    def __init__(self, make: Callable[[], Environment]) -> None:
        self._make = make
        self._running: dict[str, tuple[Environment, float]] = {}
        self._numbers = itertools.count()

    async def start(self, wanted: Sequence[EpisodeSpec]) -> list[Started | LabsError]:
        """Make an environment for each episode and begin its conversation."""
        return list(await asyncio.gather(*(asyncio.to_thread(self._start, each.seed) for each in wanted)))

    async def play(self, said: Sequence[PolicyTurn]) -> list[Answered | LabsError]:
        """Take a step in the environment of each episode."""
        return list(await asyncio.gather(*(asyncio.to_thread(self._play, each) for each in said)))

    def _start(self, seed: int) -> Started | LabsError:
        environment = self._make()
        try:
            first = environment.reset(seed)
        except RewardError as error:
            return _unscored(error)
        episode_id = f"own-{next(self._numbers)}"
        self._running[episode_id] = (environment, 0.0)
        return StartedEpisode(
            episode_id=episode_id,
            initial_observation=Observation(role="user", content=first),
            tools=list(environment.tools),
            max_turns=MAX_TURNS,
            expires_at="",
        )

    def _play(self, said: PolicyTurn) -> Answered | LabsError:
        environment, before = self._running[said.episode_id]
        message = said.messages[-1]
        try:
            step = environment.step(AgentReply(message.content, tuple(message.tool_calls or ())))
        except RewardError as error:
            self._end(said.episode_id)
            return _unscored(error)
        if step.done:
            self._end(said.episode_id)
        else:
            self._running[said.episode_id] = (environment, step.reward)
        return _answer(said, step, before)

    def _end(self, episode_id: str) -> None:
        environment, _ = self._running.pop(episode_id)
        environment.close()


def compared(reward: GroupReward, members: Sequence[Sequence[Message]]) -> list[RewardResult] | LabsError:
    """The scores of the members of a group against each other, or why there are none."""
    if len(members) < 2:
        return _unscored(RewardError("no other member of the group was played, so there is nothing to compare"))
    try:
        results = reward.score_group([[_chat(message) for message in messages] for messages in members])
    except RewardError as error:
        return _unscored(error)
    if len(results) != len(members):
        return _unscored(RewardError(f"score_group gave {len(results)} results for {len(members)} conversations"))
    return results


def _answer(said: PolicyTurn, step: Step, before: float) -> PlayedTurn:
    turn = sum(message.role == "assistant" for message in said.messages)
    played = PlayedTurn(
        episode_id=said.episode_id,
        turn=turn,
        observation=Observation(role="user", content=step.observation),
        reward=step.reward,
        reward_delta=step.reward - before,
        episode_complete=step.done,
        terminal_reason="completed" if step.done else None,
    )
    # Components may be counts, which the scores of a server are not: they are not validated.
    return played.model_copy(update={"scores": dict(step.result.components)})


def _unscored(error: RewardError) -> LabsError:
    return LabsError(str(error), code="reward_failed")


def _chat(message: Message) -> ChatMessage:
    if message.role == "assistant":
        return AgentReply(message.content, tuple(message.tool_calls or ())).message()
    return {"role": message.role, "content": message.content}


def _heard(answer: Answered) -> ChatMessage:
    return {"role": "user", "content": answer.observation.content}
