"""Rehearsal of a standby before its turn: everything that a start does once, on a database that is thrown away.

Migrating, opening the store and building the services import a second's worth of code. After the rehearsal the real
ones take a fraction of it.
"""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from reward_server.server.chores import own, settle_heap, warm
from reward_server.server.infrastructure import BuildInputs, build_infrastructure
from reward_server.server.scoring import LoadedModels, scoring_of
from reward_server.server.services import services_of
from reward_server.telemetry.loop_lag import LoopLag
from reward_server.telemetry.metrics import Metrics


async def rehearse(stack: AsyncExitStack, inputs: BuildInputs, loaded: LoadedModels) -> None:
    """Build all services once on a scratch database, and begin to encode the authored texts."""
    settings, ports = inputs.settings, replace(inputs.ports, turn=None)
    with tempfile.TemporaryDirectory(prefix="labs-standby-") as folder:
        scratch = settings.model_copy(
            update={
                "data": Path(folder),
                "database_url": None,
                "redis_url": None,
                "pepper": None,
                "host": "127.0.0.1",
                "production": False,
                "job_workers": 0,
            }
        )
        metrics = Metrics(by_scenario=False)
        stage = BuildInputs(scratch, ports, metrics, inputs.traces)
        async with AsyncExitStack() as curtain:
            infrastructure = await build_infrastructure(curtain, stage)
            scoring = await scoring_of(curtain, stage, infrastructure.store, loaded)
            await services_of(curtain, stage, infrastructure, scoring, LoopLag(metrics.loop_lag.set))
    if ports.own_process:
        await own(stack, warm(loaded.library, loaded.reader, loaded.matcher, loaded.threads))
        settle_heap()
