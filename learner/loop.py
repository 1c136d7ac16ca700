"""The training loop: roll out, update, measure; evaluate and checkpoint now and then.

Seeds of training and held-out episodes come from two ranges that never meet. Everything random in
update `n` is derived from the run's seed and `n`, so a run that was interrupted goes on as if it
had not been. A run that is asked to end does so between two updates, and is saved there.
"""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from learner import own_metrics
from learner.display import Now, Say, silent
from learner.failures import most_frequent
from learner.generate.session import Generator
from learner.memory import memory_used
from learner.metrics import evaluations, read_metrics
from learner.overlap import BatchPlayer, PrefetchedBatches, copy_of
from learner.rollout import BatchCollector, Collected
from learner.run import Run
from learner.saving import kept
from learner.seeds import FIRST_HELD_OUT_SEED
from learner.stages import Stages, open_stages, open_stages_or_all_variants, own_stages
from learner.types import Group
from learner.update import MismatchError, mismatch_told
from trainer_client import AsyncLabsClient, LabsError
from trainer_client.wire import EpisodeResponse

_TRAINING, _EVALUATION = 0, 1
_REFILL = 2**32 + 15
"""From the seed of a group to that of the group that replaces it; not even, so a file has another prompt there."""


class NoEpisodesError(RuntimeError):
    """Every episode of a batch failed: there is nothing to learn from, and no use in going on."""


def _never() -> bool:
    return False


Wrap = Callable[[BatchCollector], BatchCollector]
"""Gets what plays the configured scenarios, and gives what is trained on."""


def _unwrapped(collector: BatchCollector) -> BatchCollector:
    return collector


async def train(
    run: Run,
    client: AsyncLabsClient,
    say: Say,
    asked_to_end: Callable[[], bool] = _never,
    now: Now = silent,
    *,
    wrap: Wrap = _unwrapped,
) -> None:
    """Train to the configured number of updates, or to the end of the one in which it is asked to end.

    `wrap` is for a reward or an environment of your own (docs/extending.md).
    """
    try:
        await _train(run, client, say, asked_to_end, now, wrap=wrap)
    finally:
        run.engine.close()


async def _train(
    run: Run, client: AsyncLabsClient, say: Say, asked_to_end: Callable[[], bool], now: Now, *, wrap: Wrap
) -> None:
    await asyncio.to_thread(run.engine.sync, run.ranks)
    stages = await _stages(run, client, say, is_wrapped=wrap is not _unwrapped)
    rollouts = wrap(run.rollouts(client, stages.of(0), say))
    ahead = _ahead(run, client, stages, say=say, now=now, wrap=wrap)
    try:
        with kept(run, shared=(NoEpisodesError, MismatchError)):
            if run.ranks.first:
                run.plugins.callbacks.on_start(run)
            if run.ranks.agree(_lacks_evaluation(run)):
                await evaluate(run, client, rollouts, say, now, stages=stages)
            if (told := run.settle_waves()) is not None:
                say(told)
            while run.ranks.agree(run.step < run.config.run.updates and not asked_to_end() and not run.is_over()):
                await _update(run, rollouts, stages, ahead, say=say, now=now)
                await _measure_and_save(run, client, rollouts, stages, ahead, say=say, now=now)
            if run.saved < run.step:
                run.queue = await ahead.settle() if ahead else ()
                run.save()
            elif ahead is not None and run.ranks.world > 1:
                await ahead.settle()  # none may leave while the others wait for its episodes
            if run.ranks.first:
                run.plugins.callbacks.on_end(run)
    finally:
        if ahead is not None:
            await ahead.close()
    if run.is_over():
        say(run.ending())


async def _stages(run: Run, client: AsyncLabsClient, say: Say, *, is_wrapped: bool) -> Stages:
    if run.plugins.environment is not None:
        return own_stages(run.config)
    opened = open_stages_or_all_variants if is_wrapped else open_stages
    stages = await opened(run.config, client, run.retry_policy(say))
    if (told := stages.told()) is not None:
        say(told)
    return stages


def _is_due(run: Run) -> bool:
    """True if this step has an evaluation."""
    return run.step % run.config.evaluation.every == 0 or run.step == run.config.run.updates


def _lacks_evaluation(run: Run) -> bool:
    """True if the step where a run begins or goes on is still to be evaluated: it is if the evaluation failed."""
    return _is_due(run) and run.step not in [step for step, _ in evaluations(read_metrics(run.metrics.path))]


async def _measure_and_save(
    run: Run,
    client: AsyncLabsClient,
    rollouts: BatchCollector,
    stages: Stages,
    ahead: PrefetchedBatches | None,
    *,
    say: Say,
    now: Now,
) -> None:
    """Do what is due at this step, before its checkpoint: a run that goes on from there does not do it again."""
    due = _is_due(run)
    if due:
        if ahead is not None and run.engine.is_remote:
            # The server plays ahead with older weights: it is measured with the present ones.
            await ahead.settle()
            await asyncio.to_thread(run.engine.sync, run.ranks)
        await evaluate(run, client, rollouts, say, now, stages=stages)
    if (due and run.is_best()) or run.step % run.config.run.checkpoint_every == 0:
        run.queue = await ahead.settle() if ahead else ()
        run.save()


def _ahead(
    run: Run, client: AsyncLabsClient, stages: Stages, *, say: Say, now: Now, wrap: Wrap
) -> PrefetchedBatches | None:
    """The players of the next batches beside the update, where that is wanted."""
    if not run.config.rollout.max_staleness:
        return None
    players = []
    for _ in range(run.config.rollout.max_staleness):
        generator, refresh = _sampler_ahead(run)
        rollouts = wrap(run.rollouts(client, stages.of(0), say, generator, run.ranks.apart()))
        players.append(BatchPlayer(functools.partial(_groups, run, rollouts, stages, now), refresh))
    return PrefetchedBatches(players, run.queue)


def _sampler_ahead(run: Run) -> tuple[Generator, Callable[[], float]]:
    """A sampler that keeps its weights while the learner trains, and what gives it the present ones."""
    if run.engine.is_remote:
        return run.engine.generator, functools.partial(run.engine.sync, run.ranks)
    return copy_of(run.sampler, run.config.model.max_tokens, run.engine.check_copy, run.config.generator.fixed_shapes)


async def evaluate(
    run: Run,
    client: AsyncLabsClient,
    rollouts: BatchCollector,
    say: Say,
    now: Now = silent,
    *,
    stages: Stages | None = None,
) -> float:
    """Mean reward on held-out seeds, or scenarios where some are held out, written to the metrics."""
    settings = run.config.evaluation
    seeds = [FIRST_HELD_OUT_SEED + number for number in range(settings.episodes)]
    places = None if stages is None else [stages.of(number, held_out=True) for number in range(len(seeds))]
    # The same noise at every evaluation: what changes between two is the policy.
    collected = await rollouts.collect(
        seeds, 1, (run.config.run.seed, _EVALUATION), lambda played: now(f"held-out seeds, {played}"), places
    )
    values = summary(collected) | run.fluency.measure(collected.trajectories)
    if run.ranks.first:
        run.plugins.callbacks.on_evaluation(run, values)
    values |= own_metrics.take()
    run.metrics.write("eval", run.step, values)
    say(
        f"update {run.step:>4}  held-out reward {values['reward/mean']:.3f} ± {values['reward/standard_error']:.3f}"
        f"  ({settings.episodes} seeds, {collected.errored} errored)"
        f"{''.join(_language(values))}"
    )
    if run.step in (0, run.config.run.updates) and run.ranks.first:
        await save_samples(run, client, collected, say)
    mean: float = values["reward/mean"]
    return mean


def _language(values: Mapping[str, float]) -> Iterator[str]:
    """Lines on the language of an evaluation: a pretrained model has no script to hold its turns against."""
    if "fluency/broken" in values:
        yield f"  broken turns {values['fluency/broken']:.0%}"
    elif "fluency/reference_nll" in values:
        yield f"  NLL under the initial weights {values['fluency/reference_nll']:.2f}"
    yield f"  repeated {values['fluency/repeated']:.0%}"


async def _update(
    run: Run, rollouts: BatchCollector, stages: Stages, ahead: PrefetchedBatches | None, *, say: Say, now: Now
) -> None:
    step = run.step + 1
    version = run.step
    if ahead is None:
        collected, refills = await _groups(run, rollouts, stages, now, step)
    else:
        batch = await ahead.take(step, version, run.config.run.updates)
        collected, refills, version = batch.collected, batch.refills, batch.version
    values = summary(collected)
    now(f"update {step:>4}  learning from {len(collected.trajectories)} episodes")
    started = time.monotonic()
    values["update/learning_rate"] = run.set_rate(step)
    run.engine.rest()
    values["rollout/staleness"] = run.step - version
    if ahead is None:
        values |= run.updater.update(collected.groups, step)
    else:
        values |= await asyncio.to_thread(run.updater.update, collected.groups, step)
    run.step = step
    values["seconds/update"] = time.monotonic() - started
    values |= memory_used(run.policy.device)
    values["groups/refills"] = refills
    values["groups/replayed"] = run.curriculum.replayed(collected.groups)
    run.curriculum.learned(step, collected.groups)
    if ahead is not None and run.engine.is_remote:  # the server is playing, and gets the weights before the next batch
        gap: float | None = ahead.gap
    else:
        gap = await asyncio.to_thread(run.engine.sync_after_update, run.ranks)
    if gap is not None:
        values["generator/gap"] = gap
    if values.get("update/skipped"):  # what was no number is the reason, and is not in the file
        values = {name: value for name, value in values.items() if math.isfinite(value)}
    if run.ranks.first:
        run.plugins.callbacks.on_step(run, values)
    values |= own_metrics.take()
    run.metrics.write("train", step, values)
    learned = [
        f"  {title} {values[name]:{form}}"
        for title, name, form in (("KL", "update/kl_reference", ".3f"), ("entropy", "update/entropy", ".2f"))
        if name in values
    ]
    say(
        f"update {step:>4}  reward {values['reward/mean']:.3f}  turns {values['turns/mean']:.1f}"
        f"  groups {values['groups/used']:.0f}/{values['groups/all']:.0f}  errored {collected.errored}"
        f"{''.join(learned)}  {values['seconds/rollout']:.1f}s + {values['seconds/update']:.1f}s"
    )
    if not values["groups/used"]:
        say(f"update {step:>4}  {_nothing_learned(run, collected)}")
    if values.get("update/skipped"):
        say(f"update {step:>4}  {_why_skipped(run, values)}")


def _nothing_learned(run: Run, collected: Collected) -> str:
    """Advice for a step in which no group has a difference."""
    if all(len(group.trajectories) < 2 for group in collected.groups):
        why = most_frequent(collected.error_codes, collected.error_messages)
        return f"no group has two episodes left to compare, so nothing was learned; the most frequent error is {why}"
    what = "only the terms beside the reward were" if run.updater.learns_from_all else "nothing was"
    told = f"in every group all rewards are equal, so {what} learned. If this continues, raise model.temperature"
    told += " or rollout.group_size, or choose an easier scenario"
    is_per_turn = run.objective.credit == "to_go" or run.config.rollout.single_turn
    return told if is_per_turn else f"{told}, or credit turns (algorithm.credit = 'to_go')"


def _why_skipped(run: Run, values: Mapping[str, Any]) -> str:
    """The reason why a step was not made, and what to do."""
    limit = run.config.optim.max_mismatch_kl
    if limit and not values.get("mismatch_k3", 0.0) <= limit:
        return f"skipped: {mismatch_told(values['mismatch_k3'], limit)}"
    return "skipped: the gradient was not a number. If this continues, lower optim.learning_rate"


async def _groups(run: Run, rollouts: BatchCollector, stages: Stages, now: Now, step: int) -> tuple[Collected, int]:
    """The groups of an update; with dynamic sampling, those that say nothing replaced as often as is allowed."""
    settings = run.config.rollout
    attempts = 1 + (settings.max_refills if run.objective.resample else 0)
    first = run.config.run.seed * 1_000_003 + step * settings.groups
    # Without a gap from update to update, so that all scenarios get a turn.
    missing = run.curriculum.draw(step, range(first, first + settings.groups), stages)
    played: list[Collected] = []
    for attempt in range(attempts):
        if not missing:
            break
        # A group is replaced in its scenario, by another seed.
        seeds = [(each.seed + attempt * _REFILL) % FIRST_HELD_OUT_SEED for each in missing]
        found = await rollouts.collect(
            seeds,
            settings.group_size,
            (run.config.run.seed, _TRAINING, step, *([attempt] if attempt else [])),
            lambda done: now(f"update {step:>4}  {done}"),
            [each.stage for each in missing],
        )
        played.append(found)
        kept = {group.seed for group in found.groups if run.updater.credit.is_informative(group)}
        missing = [each for each, seed in zip(missing, seeds, strict=True) if seed not in kept]
    return Collected(
        _groups_of(played), sum(each.seconds for each in played), sum(each.generating_s for each in played)
    ), len(played) - 1


def _groups_of(played: Sequence[Collected]) -> tuple[Group, ...]:
    return tuple(group for each in played for group in each.groups)


def summary(collected: Collected) -> dict[str, Any]:
    """The figures of a batch of episodes. Errored ones are counted, and in no mean."""
    trajectories = collected.trajectories
    if not trajectories:
        why = most_frequent(collected.error_codes, collected.error_messages)
        raise NoEpisodesError(f"all {collected.errored} episodes failed; the most frequent error is {why}")
    rewards = [trajectory.reward for trajectory in trajectories]
    spread = stdev(rewards) if len(rewards) > 1 else 0.0
    dimensions = sorted({name for trajectory in trajectories for name in trajectory.scores})
    ends = Counter(trajectory.terminal_reason for trajectory in trajectories)
    values: dict[str, Any] = {
        "reward/mean": fmean(rewards),
        "reward/std": spread,
        "reward/standard_error": spread / len(rewards) ** 0.5,
        "episodes/scored": len(trajectories),
        "episodes/errored": collected.errored,
        "turns/mean": fmean(trajectory.turns for trajectory in trajectories),
        "turns/truncated": sum(trajectory.truncated_turns for trajectory in trajectories),
        "turns/tool_calls": sum(trajectory.tool_calls for trajectory in trajectories),
        "turns/lossy": sum(trajectory.lossy_turns for trajectory in trajectories),
        "tokens/sampled": sum(trajectory.sampled_tokens for trajectory in trajectories),
        "tokens/per_turn": sum(trajectory.sampled_tokens for trajectory in trajectories)
        / sum(trajectory.turns for trajectory in trajectories),
        "tokens/all": sum(len(trajectory.ids) for trajectory in trajectories),
        "seconds/rollout": collected.seconds,
        "seconds/generating": collected.generating_s,
    }
    for name in dimensions:
        values[f"score/{name}"] = _mean_of([trajectory.scores.get(name) for trajectory in trajectories])
    for reason, count in sorted(ends.items()):
        values[f"ends/{reason}"] = count / len(trajectories)
    stages = {group.stage for group in collected.groups}
    for stage in sorted(stages) if len(stages) > 1 else ():
        found = [reward for group in collected.groups if group.stage == stage for reward in group.rewards]
        if found:
            values[f"reward/{stage}"] = fmean(found)
    return values


def _mean_of(values: Sequence[float | None]) -> float:
    return fmean(value for value in values if value is not None)


async def save_samples(run: Run, client: AsyncLabsClient, collected: Collected, say: Say) -> None:
    """Keep a few transcripts to read: the first seeds, the same ones before and after."""
    parts, retry_policy = [], run.retry_policy(say)
    for trajectory in collected.trajectories[: run.config.evaluation.samples]:
        lines = [f"seed {trajectory.seed}, reward {trajectory.reward:.3f}, {trajectory.terminal_reason}", ""]
        is_on_server = trajectory.episode_id and run.plugins.environment is None
        if not is_on_server:  # there is no log of it but its tokens
            parts.append("\n".join([*lines, run.tokenizer.decode(list(trajectory.ids))]))
            continue
        try:
            episode = await retry_policy.ask(functools.partial(_log_of, client, trajectory.episode_id))
        except LabsError as error:
            why = f"the transcript of seed {trajectory.seed} cannot be fetched: {error.explanation}"
            say(why)
            parts.append("\n".join([*lines, why]))
            continue
        for number, message in enumerate(episode.messages):
            speaker = "persona" if number % 2 == 0 else "policy "
            earned = f"   [{trajectory.turn_rewards[number // 2]:.2f}]" if number % 2 else ""
            lines.append(f"{speaker}: {message.content}{earned}")
        parts.append("\n".join(lines))
    path = run.folder / "samples" / f"update-{run.step:04d}.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n")


async def _log_of(client: AsyncLabsClient, episode_id: str, _key: str) -> EpisodeResponse:
    return await client.get_episode(episode_id)
