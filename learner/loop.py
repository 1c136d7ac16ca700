"""The training loop: roll out, update, measure; evaluate and checkpoint now and then.

Seeds of training and held-out episodes come from two ranges that never meet. Everything random in
update `n` is derived from the run's seed and `n`, so a run that was interrupted goes on as if it
had not been. A run that is asked to end does so between two updates, and is saved there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from learner.display import Now, Say, silent
from learner.metrics import plot_curve, read_metrics
from learner.rollout import Collected, Rollouts
from learner.run import Run
from trainer_client import AsyncLabsClient

FIRST_HELD_OUT_SEED = 2**40
_TRAINING, _EVALUATION = 0, 1


class NoEpisodesError(RuntimeError):
    """Every episode of a batch failed: there is nothing to learn from, and no use in going on."""


def _never() -> bool:
    return False


async def train(
    run: Run, client: AsyncLabsClient, say: Say, asked_to_end: Callable[[], bool] = _never, now: Now = silent
) -> None:
    """Train to the configured number of updates, or to the end of the one in which it is asked to end."""
    rollouts = run.rollouts(client)
    if run.step == 0:
        await evaluate(run, client, rollouts, say, now)
    while run.step < run.config.run.updates and not asked_to_end():
        await _update(run, rollouts, say, now)
        # What is due at this step comes before its checkpoint: a run that goes on from there does not do it again.
        if run.step % run.config.evaluation.every == 0 or run.step == run.config.run.updates:
            await evaluate(run, client, rollouts, say, now)
        if run.step % run.config.run.checkpoint_every == 0:
            run.save()
    if run.saved < run.step:
        run.save()


async def evaluate(run: Run, client: AsyncLabsClient, rollouts: Rollouts, say: Say, now: Now = silent) -> float:
    """Mean reward on held-out seeds, written to the metrics."""
    settings = run.config.evaluation
    seeds = [FIRST_HELD_OUT_SEED + number for number in range(settings.episodes)]
    # The same noise at every evaluation: what changes between two is the policy.
    collected = await rollouts.collect(
        seeds, 1, (run.config.run.seed, _EVALUATION), lambda played: now(f"held-out seeds, {played}")
    )
    values = summary(collected)
    run.metrics.write("eval", run.step, values)
    say(
        f"update {run.step:>4}  held-out reward {values['reward/mean']:.3f} ± {values['reward/standard_error']:.3f}"
        f"  ({settings.episodes} seeds, {collected.errored} errored)"
    )
    if run.step in (0, run.config.run.updates):
        await save_samples(run, client, collected)
    mean: float = values["reward/mean"]
    return mean


async def _update(run: Run, rollouts: Rollouts, say: Say, now: Now) -> None:
    settings, step = run.config.rollout, run.step + 1
    first = run.config.run.seed * 1_000_003 + step * settings.groups
    seeds = [(first + number) % FIRST_HELD_OUT_SEED for number in range(settings.groups)]
    collected = await rollouts.collect(
        seeds,
        settings.group_size,
        (run.config.run.seed, _TRAINING, step),
        lambda played: now(f"update {step:>4}  {played}"),
    )
    values = summary(collected)
    now(f"update {step:>4}  learning from {len(collected.trajectories)} episodes")
    started = time.monotonic()
    values |= run.updater.update(collected.groups)
    values["seconds/update"] = time.monotonic() - started
    run.step = step
    run.metrics.write("train", step, values)
    say(
        f"update {step:>4}  reward {values['reward/mean']:.3f}  turns {values['turns/mean']:.1f}"
        f"  groups {values['groups/used']:.0f}/{values['groups/all']:.0f}  errored {collected.errored}"
        f"  entropy {values.get('update/entropy', 0.0):.2f}"
        f"  {values['seconds/rollout']:.1f}s + {values['seconds/update']:.1f}s"
    )


def summary(collected: Collected) -> dict[str, Any]:
    """What is to be known of a batch of episodes. Errored ones are counted, and in no mean."""
    trajectories = collected.trajectories
    if not trajectories:
        code, _ = Counter(collected.error_codes).most_common(1)[0]
        raise NoEpisodesError(f"all {collected.errored} episodes failed; most often with {code}")
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
        "turns/lossy": sum(trajectory.lossy_turns for trajectory in trajectories),
        "tokens/sampled": sum(trajectory.sampled_tokens for trajectory in trajectories),
        "tokens/all": sum(len(trajectory.ids) for trajectory in trajectories),
        "seconds/rollout": collected.seconds,
        "seconds/generating": collected.generating_s,
    }
    for name in dimensions:
        values[f"score/{name}"] = _mean_of([trajectory.scores.get(name) for trajectory in trajectories])
    for reason, count in sorted(ends.items()):
        values[f"ends/{reason}"] = count / len(trajectories)
    return values


def _mean_of(values: Sequence[float | None]) -> float:
    return fmean(value for value in values if value is not None)


async def save_samples(run: Run, client: AsyncLabsClient, collected: Collected) -> None:
    """Keep a few transcripts to read: the first seeds, the same ones before and after."""
    parts = []
    for trajectory in collected.trajectories[: run.config.evaluation.samples]:
        episode = await client.get_episode(trajectory.episode_id)
        lines = [f"seed {trajectory.seed}, reward {trajectory.reward:.3f}, {trajectory.terminal_reason}", ""]
        for number, message in enumerate(episode.messages):
            speaker = "persona" if number % 2 == 0 else "policy "
            earned = f"   [{trajectory.turn_rewards[number // 2]:.2f}]" if number % 2 else ""
            lines.append(f"{speaker}: {message.content}{earned}")
        parts.append("\n".join(lines))
    path = run.folder / "samples" / f"update-{run.step:04d}.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n")


def draw(folder: Path, title: str) -> Path:
    """Draw the curve of a run."""
    path = folder / "curve.png"
    plot_curve({"": read_metrics(folder / "metrics.jsonl")}, path, title)
    return path
