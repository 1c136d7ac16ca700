"""Chores of a server: it forgets what is too old, warms its caches and settles its heap."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from personas.case.compiled import CompiledCase
from personas.reading.matcher import Matcher
from personas.reading.reader import Reader
from reward_server.auth.tenants import Tenants
from reward_server.clock import Clock
from reward_server.errors import StoreUnavailable
from reward_server.jobs.learning import forget_begun
from reward_server.limits.fair_threads import FairThreads
from reward_server.logs.logger import get_logger
from reward_server.settings import Settings
from reward_server.store.store import Store
from reward_server.training.folder import forget_runs
from reward_server.webhooks.delivery import KEPT
from scenarios.library import Library, SealedScenario

PURGE_EVERY_S = 3600.0
SWITCH_S = 0.001
IDLE_LOOK_S = 0.1
VERDICT_LIFETIME = timedelta(days=365)
"""For as long the same transcript has the same reward from the same language model."""
JOB_LIFETIME = timedelta(days=30)
"""A job and its results can be read for so long after its end."""
UPLOAD_LIFETIME = timedelta(days=1)
"""An upload that is not complete by then was broken off."""
ORPHAN_AGE = timedelta(hours=1)
"""So old has a folder to be that is deleted because no run of its name is known."""

log = get_logger(__name__)


async def own(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Run in the background until the app stops."""
    task = asyncio.create_task(work)

    async def stop() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)


async def purge(store: Store, clock: Clock, tenants: Tenants, settings: Settings) -> None:
    """Forget what is too old, now and every hour."""
    while True:
        try:
            await purge_once(store, clock, tenants, settings.learning)
            await purge_runs(store, settings.runs)
        except StoreUnavailable:
            log.warning("answers_not_purged")
        await asyncio.sleep(PURGE_EVERY_S)


async def purge_once(store: Store, clock: Clock, tenants: Tenants, begun: Path) -> None:
    """Forget what is too old: answers to Idempotency-Keys, decisions and bookings of calls, jobs that are over, uploads
    that were broken off, trainings in the folder of those begun that nobody goes on with, and conversations that labs
    do not let be kept for so long.

    Raises:
        StoreUnavailable: the database cannot be written; what was forgotten before stays forgotten.
    """
    async with store.transaction() as unit:
        purged = await unit.answers.purge(clock.now())
        forgotten = await unit.llm_answers.purge(clock.now() - VERDICT_LIFETIME)
        await unit.spending.purge(clock.now())
        await unit.webhooks.purge(clock.now() - KEPT)
        await unit.jobs.purge(clock.now() - JOB_LIFETIME)
        await unit.files.purge(clock.now() - UPLOAD_LIFETIME)
        open_jobs = await unit.jobs.open_ids()
    await asyncio.to_thread(forget_begun, begun, clock.now() - JOB_LIFETIME, open_jobs)
    expired = await tenants.expire()
    for row in await tenants.list():
        if row.limits.retention_days is not None:
            before = clock.now() - timedelta(days=row.limits.retention_days)
            # Rows of a training lie there, copied from a file that the lab does not let be kept.
            await asyncio.to_thread(forget_begun, begun, before, open_jobs, row.lab_id)
    log.info("answers_purged", count=purged, decisions=forgotten, expired=expired)


async def purge_runs(store: Store, runs: Path) -> None:
    """Delete the folders of training runs that are in the database no more.

    Raises:
        StoreUnavailable: the database cannot be read; nothing was deleted.
    """
    # By the time of the file system, which is not that of a test's clock.
    before = datetime.now(UTC) - ORPHAN_AGE
    async with store.reading() as unit:
        known = await unit.training_runs.ids()
    await asyncio.to_thread(forget_runs, runs, known, before)


async def warm(library: Library, reader: Reader, matcher: Matcher, threads: FairThreads) -> None:
    """Encode the authored texts, scenario by scenario while nobody is served: the first turn shall be fast, too.

    Scenarios as their own files tell them come first, then their variants, which differ from them in a few texts.
    Backgrounds come last of each: there is three times as much of them, and scoring needs none of it.
    Not with a lower priority: a thread that is left waiting for a core may hold what others need.
    """
    read, compare = getattr(reader, "prepare", None), getattr(matcher, "prepare", None)
    recall = getattr(reader, "prepare_background", None)
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, thread_name_prefix="labs-warming") as thread:
        for step in _steps(library, read, compare, recall):
            while threads.is_busy:  # noqa: ASYNC110 (threads have no event for this)
                await asyncio.sleep(IDLE_LOOK_S)
            await loop.run_in_executor(thread, step)
    log.info("reader_warm")


def _steps(
    library: Library,
    read: Callable[[CompiledCase], None] | None,
    compare: Callable[[Sequence[str]], None] | None,
    recall: Callable[[CompiledCase], None] | None,
) -> Iterator[Callable[[], None]]:
    """The steps of encoding, a little at a time."""
    kin = [library.vault.variants(*name) for name in library.vault.names()]
    for scenarios in ([own for own, *_ in kin], [variant for _, *others in kin for variant in others]):
        for scenario in scenarios:
            if read is not None:
                yield partial(read, scenario.case)
            if compare is not None:
                yield from (partial(compare, anchors) for anchors in _anchors(scenario))
        if recall is not None:
            yield from (partial(recall, scenario.case) for scenario in scenarios)


def _anchors(scenario: SealedScenario) -> Iterator[Sequence[str]]:
    """The texts that conversations are compared with: wordings of the case, and exemplars of its judges."""
    yield scenario.case.wordings
    for check in (check for criterion in scenario.secrets.rubric.criteria for check in criterion.checks):
        if check.similar is not None:
            yield check.similar.exemplars
            yield check.similar.against


def settle_heap() -> None:
    """Keep what lives as long as the process out of garbage collection: half the cost of a validation.

    And let threads that read long texts hand the interpreter over sooner: a turn takes it a dozen times. Collection was
    off while the process started.
    """
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
