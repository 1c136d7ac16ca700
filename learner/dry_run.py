"""`learner check`: everything a run needs, tried once without an update."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from learner import agreement
from learner import run as runs
from learner.config import Config
from learner.datafile import read_data
from learner.display import Now, Say, silent
from learner.failures import told
from learner.rollout import Collected
from learner.stages import open_stages
from trainer_client import AsyncLabsClient


def dry_run(config: Config, url: str | None, say: Say, now: Now = silent) -> bool:
    """Compare log-probabilities, and play two episodes or read the whole file; True if all is well."""
    with tempfile.TemporaryDirectory(prefix="learner-check-") as folder:
        run = runs.open_run(config, Path(folder), say, now)
        kind = "rewrites history, so some turns start new rows" if run.renderer.forks else "append-only"
        say(f"template: {kind}; turns end with {run.tokenizer.convert_ids_to_tokens(run.renderer.end_id)!r}")
        gap = run.engine.sync(run.ranks)
        say(f"canary: sampler and learner differ by {agreement.described(run.policy, gap)} (fine)")
        if run.objective.kind != "reward":
            rows = read_data(config, run.renderer, run.tokenizer, run.sampler.context)
            say(f"file: {len(rows)} rows can be learned from")
            return True
        collected = asyncio.run(_play(run, url, say, now))
    run.engine.close()
    if not collected.trajectories:
        errors = [told(code, collected.error_messages) for code in sorted(set(collected.error_codes))]
        say(f"episodes: all failed: {', '.join(errors)}")
        return False
    rewards = ", ".join(f"{trajectory.reward:.3f}" for trajectory in collected.trajectories)
    say(f"episodes: {len(collected.trajectories)} played, rewards {rewards}")
    return True


async def _play(run: runs.Run, url: str | None, say: Say, now: Now) -> Collected:
    async with AsyncLabsClient(url) as client:
        stages = await open_stages(run.config, client, run.retry_policy(say))
        if (told := stages.told()) is not None:
            say(told)
        return await run.rollouts(client, stages.of(0), say).collect([1], 2, (0,), now)
