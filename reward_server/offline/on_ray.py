"""Scores on Ray Data: a pool of actors, each with an engine of its own, on this machine or on a cluster.

Ray joins the cluster that RAY_ADDRESS names; without it, it starts on this machine, without a dashboard. Rows are
handed over in slabs, so the driver holds one slab in memory; the results come back in the order of the rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from reward_server.errors import InvalidRequest
from reward_server.offline.rows import InputRow
from reward_server.offline.run import BATCH
from reward_server.offline.workers import RowWorker, ScoredRows, Setup, in_batches

SLAB = 50_000
"""Rows that are handed over at once; the workers start anew for each slab."""
OBJECT_STORE_BYTES = 512 * 1024 * 1024


class RayWorkerPool:
    """So many workers on Ray."""

    def __init__(self, setup: Setup, workers: int) -> None:
        try:
            import ray.data  # noqa: F401
        except ImportError:
            raise InvalidRequest("ray is not installed: pip install 'labs-reward-server[ray]'") from None
        self._setup = setup
        self._workers = workers

    def score(self, rows: Iterable[InputRow]) -> Iterator[ScoredRows]:
        """As `Engine` says."""
        import ray

        own = not ray.is_initialized()
        if own:
            _start(self._workers)
        try:
            for slab in in_batches(rows, SLAB):
                yield from self._slab(slab)
        finally:
            if own:
                ray.shutdown()

    def _slab(self, rows: list[InputRow]) -> Iterator[ScoredRows]:
        import ray.data

        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        batches = [{"rows": json.dumps([asdict(row) for row in some])} for some in in_batches(rows, BATCH)]
        blocks = min(len(batches), 4 * self._workers)
        scored = ray.data.from_items(batches, override_num_blocks=blocks).map_batches(
            _Actor,
            fn_constructor_args=(self._setup,),
            compute=ray.data.ActorPoolStrategy(size=min(self._workers, blocks)),
            batch_size=1,
            num_cpus=1,
        )
        for found in scored.iter_rows():
            yield ScoredRows(**json.loads(found["scored"]))


class _Actor:
    """A worker as Ray calls it: columns in, columns out."""

    def __init__(self, setup: Setup) -> None:
        self._worker = RowWorker(setup)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        return {"scored": [self._scored(text) for text in batch["rows"]]}

    def _scored(self, text: str) -> str:
        return json.dumps(asdict(self._worker.score([InputRow(**row) for row in json.loads(text)])))


def _start(workers: int) -> None:
    import ray

    if "RAY_ADDRESS" in os.environ:
        ray.init(log_to_driver=False)
        return
    ray.init(num_cpus=workers + 1, include_dashboard=False, log_to_driver=False, object_store_memory=OBJECT_STORE_BYTES)
