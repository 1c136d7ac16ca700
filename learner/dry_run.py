"""`learner check`: everything a run needs, tried once without an update.

The canary compares the sampler's log-probabilities with the learner's for the same tokens: an engine
that samples from something else than what is trained shows here first.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import torch

from learner import run as runs
from learner.config import Config
from learner.display import Now, Say, silent
from learner.model import rows_of
from learner.rollout import Collected
from trainer_client import AsyncLabsClient

CANARY_TOLERANCE = 1e-3


def dry_run(config: Config, url: str | None, say: Say, now: Now = silent) -> bool:
    """Play two episodes and compare log-probabilities; True if all is well."""
    with tempfile.TemporaryDirectory(prefix="learner-check-") as folder:
        run = runs.open_run(config, Path(folder), say, now)
        say("template: append-only, turns end with the sampled token")
        collected = asyncio.run(_play(run, url, now))
    if not collected.trajectories:
        say(f"episodes: all failed ({', '.join(sorted(set(collected.error_codes)))})")
        return False
    rewards = ", ".join(f"{trajectory.reward:.3f}" for trajectory in collected.trajectories)
    say(f"episodes: {len(collected.trajectories)} played, rewards {rewards}")
    rows = rows_of([trajectory.segments for trajectory in collected.trajectories], run.policy.end_id, run.policy.device)
    with torch.no_grad():
        gap = float(((run.policy.score(rows).logp - rows.sampler_logp) * rows.sampled).abs().max())
    fits = gap <= CANARY_TOLERANCE
    say(f"canary: sampler and learner differ by at most {gap:.1e} ({'fine' if fits else 'TOO MUCH'})")
    return fits


async def _play(run: runs.Run, url: str | None, now: Now) -> Collected:
    async with AsyncLabsClient(url) as client:
        return await run.rollouts(client).collect([1], 2, (0,), now)
