"""TRL's GRPOTrainer plays Labs' scenarios: whole conversations, trained in one step. Written for TRL 1.16.

    trainer = GRPOTrainer(
        model="…",
        args=GRPOConfig(num_generations=8, max_completion_length=2048),
        train_dataset=dataset(["clinical-intake/tired-and-dizzy"], seeds=range(64)),
        rollout_func=LabsRollout(max_turn_tokens=256),
        reward_funcs=[reward],
    )

A completion is all that follows the first prompt: the policy's turns are trained, and the persona's lines, the results
of tools and what the template writes are masked. Token ids are never made again from text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from trainer_client.chat.tokens import Renderer
from trainer_client.client import LabsClient
from trainer_client.integrations.episodes import CARD, PATIENCE_S, Episode, Episodes
from trainer_client.integrations.tasks import Task, dataset_rows
from trainer_client.wire.episodes import Split


def dataset(
    scenarios: Sequence[str],
    seeds: Iterable[int],
    split: Split | None = None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
) -> Any:
    """A `datasets.Dataset` with a row for each scenario and seed."""
    from datasets import Dataset

    with LabsClient(base_url, api_key) as client:
        return Dataset.from_list(dataset_rows(client, scenarios, seeds, split))


def reward(prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
    """The reward of each conversation; None, which TRL leaves out of the baseline, where there is none."""
    rewards: list[float | None] = given["labs_reward"]
    return rewards


def dimension(name: str) -> Callable[..., list[float | None]]:
    """A reward function for one dimension of `scores`, to be weighted by `reward_weights`."""

    def of(prompts: Sequence[Any], completions: Sequence[Any], **given: Any) -> list[float | None]:
        return [scores.get(name) for scores in given["labs_scores"]]

    of.__name__ = f"labs/{name}"
    return of


@dataclass
class _Play:
    """One conversation in tokens."""

    episode: Episode
    renderer: Renderer
    prompt: list[int]
    completion: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    """The last turn."""
    is_over: bool = False

    def add(self, ids: Sequence[int], *, sampled: bool, logprobs: Sequence[float] | None = None) -> None:
        """Go on with these tokens."""
        self.completion += ids
        self.mask += [int(sampled)] * len(ids)
        self.logprobs += logprobs if logprobs is not None else [0.0] * len(ids)


class LabsRollout:
    """`rollout_func` of a GRPOTrainer. It may be made before processes are forked."""

    def __init__(
        self,
        *,
        max_turn_tokens: int | None = None,
        max_turns: int | None = None,
        system: str | None = CARD,
        base_url: str | None = None,
        api_key: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`max_turn_tokens`: longest turn; else as long as `max_completion_length`, which is that of a conversation."""
        self.max_turn_tokens = max_turn_tokens
        self.episodes = Episodes(base_url, api_key, max_turns=max_turns, system=system, patience_s=patience_s)
        self.__name__ = "labs"

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """A conversation for each prompt; reward functions get `labs_reward`, `labs_turn_rewards`, `labs_scores`,
        `labs_messages`, `labs_episode_id` and `labs_error`."""
        plays = self._start([Task.read(prompt) for prompt in prompts], trainer)
        knows_logprobs = bool(trainer.use_vllm)
        with _turns_of(trainer, self.max_turn_tokens):
            going = plays
            while going:
                self._turn(going, trainer)
                going = [play for play in going if not play.is_over]
        self.episodes.abandon([play.episode for play in plays])
        return {
            "prompt_ids": [play.prompt for play in plays],
            "completion_ids": [play.completion for play in plays],
            "env_mask": [play.mask for play in plays],
            "logprobs": [play.logprobs for play in plays] if knows_logprobs else None,  # type: ignore[dict-item]
            "labs_reward": [play.episode.reward for play in plays],
            "labs_turn_rewards": [play.episode.rewards for play in plays],
            "labs_scores": [play.episode.scores for play in plays],
            "labs_messages": [
                [message.model_dump(exclude_none=True) for message in play.episode.messages] for play in plays
            ],
            "labs_episode_id": [play.episode.episode_id for play in plays],
            "labs_error": [play.episode.error for play in plays],
        }

    def _start(self, tasks: Sequence[Task], trainer: Any) -> list[_Play]:
        options = dict(getattr(trainer, "chat_template_kwargs", None) or {})
        plain = Renderer(trainer.processing_class, options=options, stops=trainer.eos_token_ids)
        if plain.forks:
            raise ValueError(
                "the chat template writes the past otherwise from turn to turn, and a conversation of TRL is one row;"
                " use a template that only appends, such as trl.chat_template_utils.get_training_chat_template"
            )
        plays = []
        for episode in self.episodes.start(tasks):
            renderer = plain.within(episode.system, episode.tools)
            plays.append(_Play(episode, renderer, renderer.opening(episode.heard[0])))
        return plays

    def _turn(self, going: Sequence[_Play], trainer: Any) -> None:
        """A turn of each: the policy's, and what the persona says to it."""
        prompts = [play.prompt + play.completion for play in going]
        completions, logprobs = trainer._generate_single_turn(prompts, None, {}, num_generations=1)
        room = trainer.max_completion_length
        for number, (play, ids) in enumerate(zip(going, completions, strict=True)):
            play.said = ids[: room - len(play.completion)]
            play.add(play.said, sampled=True, logprobs=None if logprobs is None else logprobs[number][: len(play.said)])
        spoken = [(play.episode, play.renderer.spoken(list(play.said)).text) for play in going]
        self.episodes.say(spoken, opened=going[0].renderer.opens_thought)
        for play in going:
            episode, ended = play.episode, bool(play.said) and play.said[-1] == play.renderer.end_id
            after = play.renderer.suffix(episode.heard[-1], ended=ended, results=episode.results)
            play.is_over = not episode.live or len(play.completion) + len(after) >= room
            if not play.is_over:
                play.add(after, sampled=False)


@contextmanager
def _turns_of(trainer: Any, limit: int | None) -> Iterator[None]:
    """Within: the trainer samples so many tokens at most."""
    place = trainer.vllm_generation if trainer.use_vllm else trainer.generation_config
    name = "max_completion_length" if trainer.use_vllm else "max_new_tokens"
    before = getattr(place, name)
    if limit is not None:
        setattr(place, name, min(limit, before))
    try:
        yield
    finally:
        setattr(place, name, before)
