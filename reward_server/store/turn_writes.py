"""Turns of many episodes, stored together: a statement or two for all of them, and one commit.

Whoever has a turn to store while others are being stored waits for the next group, which takes all that came
meanwhile: the longer a commit takes, the more share the next one. Nobody waits for company. The turns of one request
are stored all or none. A request that does not go with the others (the database refuses a value of it, or there is an
answer to it already) takes nobody along: then each of the group is stored by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from reward_server.errors import StoreUnavailable, TurnInProgress
from reward_server.store.faults import is_lock_wait
from reward_server.store.records import EpisodeRow, TurnRow

if TYPE_CHECKING:
    from reward_server.store.unit_of_work import UnitOfWork

GROUP_LIMIT = 64
"""Turns of one group: enough to spread the cost of a commit, few enough that nobody waits long."""

Also: TypeAlias = "Callable[[UnitOfWork], Awaitable[None]]"
Write: TypeAlias = "Callable[[Callable[[UnitOfWork], Coroutine[Any, Any, set[str]]]], Coroutine[Any, Any, set[str]]]"
"""Does a block of store calls in a transaction of its own."""


Played: TypeAlias = tuple[EpisodeRow, TurnRow]
"""The episode as it stands after a turn, and the turn."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """The turns of one request, which are to be stored: of each episode one."""

    turns: Sequence[Played]
    episodes: frozenset[str]
    also: Also | None
    stored: asyncio.Future[None]

    def settle(self, error: BaseException | None) -> None:
        if not self.stored.done():
            if error is None:
                self.stored.set_result(None)
            else:
                self.stored.set_exception(error)


class TurnWrites:
    """The turns that wait to be stored, and the groups that are being stored."""

    def __init__(self, write: Write, at_once: int) -> None:
        """`at_once`: so many groups may be under way, each in a transaction of its own."""
        self._write_block = write
        self._at_once = at_once
        self._waiting: deque[_Waiting] = deque()
        self._writing: set[asyncio.Task[None]] = set()
        self._closed = False

    async def append(self, turns: Sequence[Played], also: Also | None = None) -> None:
        """Store turns and the episodes as they stand after them, and what `also` stores, all together or not at all.

        Raises:
            TurnInProgress: an episode is not where its turn began; somebody else was faster.
            StoreUnavailable: the database cannot be used.
        """
        if self._closed:
            raise StoreUnavailable
        episodes = frozenset(turn.episode_id for _, turn in turns)
        waiting = _Waiting(turns, episodes, also, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._go_on()
        await waiting.stored

    @property
    def waiting(self) -> int:
        """Turns that are in no group yet."""
        return len(self._waiting)

    async def close(self) -> None:
        """Store what waits; take no more."""
        self._closed = True
        while self._writing:
            await asyncio.wait(self._writing)

    def _go_on(self) -> None:
        if self._waiting and len(self._writing) < self._at_once:
            task = asyncio.create_task(self._write(), name="store-turns")
            self._writing.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._writing.discard(task)
        self._go_on()

    async def _write(self) -> None:
        """Store groups until nobody waits."""
        while group := self._next_group():
            try:
                await self._store(group)
            finally:
                # Only where this task is ended from outside is anybody left to be told.
                for waiter in group:
                    if not waiter.stored.done():
                        waiter.settle(StoreUnavailable())

    def _next_group(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        episodes: set[str] = set()
        while self._waiting and len(episodes) < GROUP_LIMIT and episodes.isdisjoint(self._waiting[0].episodes):
            waiter = self._waiting.popleft()
            if not waiter.stored.cancelled():
                group.append(waiter)
                episodes |= waiter.episodes
        return group

    async def _store(self, group: list[_Waiting]) -> None:
        try:
            moved = await self._together(group)
        except Exception as error:  # noqa: BLE001 (handed to those who wait)
            if isinstance(error, StoreUnavailable) and not is_lock_wait(error):
                for waiter in group:
                    waiter.settle(_own(error))
            elif len(group) == 1:
                group[0].settle(error)
            else:
                for waiter in group:
                    await self._store([waiter])
        else:
            for waiter in group:
                waiter.settle(None if waiter.episodes <= moved else TurnInProgress())

    async def _together(self, group: list[_Waiting]) -> set[str]:
        # Always in one order, so that two servers do not wait for each other's rows.
        turns = sorted(chain.from_iterable(waiter.turns for waiter in group), key=_episode_of)

        async def all_of_them(unit: UnitOfWork) -> set[str]:
            moved = await unit.episodes.append_turns(turns)
            for waiter in group:
                if waiter.episodes <= moved:
                    if waiter.also is not None:
                        await waiter.also(unit)
                elif not waiter.episodes.isdisjoint(moved):
                    raise TurnInProgress  # which undoes those that moved
            return moved

        return await self._write_block(all_of_them)


def _episode_of(played: Played) -> str:
    return played[1].episode_id


def _own(error: StoreUnavailable) -> StoreUnavailable:
    """An error object for one of several: a traceback grows with each that raises it."""
    own = StoreUnavailable(error.message)
    own.__cause__ = error.__cause__
    return own
