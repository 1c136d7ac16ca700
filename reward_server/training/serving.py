"""Answers chats with the policies of finished runs, each in a process of its own on loopback.

A process starts with the first question and ends when nobody has asked for a while, when another run needs its place,
or with the server. The learner answers in it, as `labs learner serve` does, with the best checkpoint of the run.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from reward_server.agents.conversation import conversation_of, sampled_as
from reward_server.agents.endpoint import ChatQuestion, EndpointAddress
from reward_server.agents.telling import system_prompt, told, tools_of
from reward_server.auth.lab import Lab
from reward_server.errors import Conflict, Unavailable
from reward_server.store.training_records import RunStatus, TrainingRunRow
from reward_server.training.folder import RunFolder, refusal_in, run_folder
from reward_server.training.process import Learner, environment
from reward_server.training.service import TrainingRunService
from scenarios.library import Catalog
from trainer_client.wire import ChatCompletionRequest

MOST = 2
"""Policies in memory at a time."""
IDLE_S = 600.0
SWEEP_EVERY_S = 30.0
LOAD_S = 60.0
LOOK_S = 0.1
_ADDRESS = re.compile(r" at (http://127\.0\.0\.1:\d+/v1) ")


class ServedRuns:
    """The policies that are in memory; close it."""

    def __init__(self, runs: TrainingRunService, catalog: Catalog, runs_folder: Path) -> None:
        self._runs = runs
        self._catalog = catalog
        self._folder = runs_folder
        self._policies: dict[str, _PolicyProcess] = {}

    @asynccontextmanager
    async def question(self, lab: Lab, request: ChatCompletionRequest) -> AsyncIterator[ChatQuestion]:
        """The conversation of a request, for the policy of the run that it names, which is kept meanwhile.

        Raises:
            TrainingRunNotFound: the lab has no such run.
            Conflict: it is not complete, or has no policy here.
            TrainingUnavailable: this server runs no learner.
            Unavailable: the policy is being loaded, or others are in use.
        """
        row = await self._runs.find(lab, request.model)
        if row.status is not RunStatus.COMPLETE:
            raise Conflict(f"This run is {row.status.value}: only the policy of a complete run can be talked to.")
        self._runs.require_available()
        messages, scenario = conversation_of(lab, self._catalog, request)
        system = "" if messages[0]["role"] == "system" else system_prompt(None, scenario)
        async with self._held(row) as place:
            yield ChatQuestion(sampled_as(place, request), told(system, messages), tools_of(scenario), private=True)

    @asynccontextmanager
    async def _held(self, row: TrainingRunRow) -> AsyncIterator[EndpointAddress]:
        policy = await self._policy(row)
        policy.users += 1
        try:
            yield await policy.place()
        finally:
            policy.users -= 1
            policy.used_s = time.monotonic()
            if policy.has_failed:
                await self._end(row.training_run_id, policy)

    async def _policy(self, row: TrainingRunRow) -> _PolicyProcess:
        """The process of a run, which may have to start first."""
        run_id = row.training_run_id
        found = self._policies.get(run_id)
        if found is not None and not found.has_failed:
            return found
        folder = run_folder(self._folder, row.lab_id, run_id)
        if not await asyncio.to_thread(folder.out.is_dir):
            raise Conflict("The folder of this run is not on this server.")
        while len(self._policies) >= MOST and run_id not in self._policies:
            idle = [(each.used_s, name) for name, each in self._policies.items() if not each.users]
            if not idle:
                told = f"This server answers with {MOST} policies at a time, and others are in use; ask again."
                raise Unavailable(told, retry_after_s=5)
            await self._end(min(idle)[1], self._policies[min(idle)[1]])
        # Somebody else may have started it meanwhile; nothing is awaited from here to its place in the table.
        found = self._policies.get(run_id)
        if found is None or found.has_failed:
            found = self._policies[run_id] = _PolicyProcess(folder)
        return found

    async def sweep(self) -> None:
        """End what nobody asks any more, for ever."""
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            before_s = time.monotonic() - IDLE_S
            for run_id, policy in [*self._policies.items()]:
                if not policy.users and policy.used_s < before_s:
                    await self._end(run_id, policy)

    async def close(self) -> None:
        """End all processes."""
        for run_id, policy in [*self._policies.items()]:
            await self._end(run_id, policy)

    async def _end(self, run_id: str, policy: _PolicyProcess) -> None:
        if self._policies.get(run_id) is policy:
            del self._policies[run_id]
        await policy.end()


class _PolicyProcess:
    """The process that answers with one policy."""

    def __init__(self, run: RunFolder) -> None:
        self.users = 0
        self.used_s = time.monotonic()
        self._key = secrets.token_urlsafe(32)
        self._learner: Learner | None = None
        self._starting = asyncio.create_task(self._start(run))

    @property
    def has_failed(self) -> bool:
        """Whether it will answer nobody: it did not start, or has ended."""
        if not self._starting.done():
            return False
        broke = self._starting.cancelled() or self._starting.exception() is not None
        return broke or self._learner is None or self._learner.is_over

    async def place(self) -> EndpointAddress:
        """Where it listens; `Unavailable` while it loads for long, `Conflict` where there is nothing to load."""
        try:
            async with asyncio.timeout(LOAD_S):
                url = await asyncio.shield(self._starting)
        except TimeoutError:
            raise Unavailable("The policy of this run is still being loaded; ask again.", retry_after_s=5) from None
        return EndpointAddress(url, "policy", self._key)

    async def end(self) -> None:
        """Leave nothing of it."""
        self._starting.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self._starting
        if self._learner is not None:
            await self._learner.end()

    async def _start(self, run: RunFolder) -> str:
        """The address, once it listens."""
        place = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="labs-policy-"))
        printed = RunFolder(place).log
        try:
            self._learner = await Learner.serve(place, run, environment() | {"LEARNER_API_KEY": self._key})
            while True:
                status = await self._learner.ended(LOOK_S)
                log = await asyncio.to_thread(printed.read_text) if printed.exists() else ""
                if (found := _ADDRESS.search(log)) is not None:
                    return found[1]
                if status is not None:
                    said = refusal_in(log, run.place)
                    raise Conflict("The policy of this run cannot be loaded" + (f": {said}" if said else "."))
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
