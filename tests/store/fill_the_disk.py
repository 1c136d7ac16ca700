"""Plays turns until its files may not grow any more, then may again. Run by `test_faults`; prints a report."""

from __future__ import annotations

import asyncio
import json
import resource
import sys

from reward_server.errors import StoreUnavailable
from reward_server.store.store import Store
from tests.store.builders import a_turn, after_a_turn, an_episode


async def main(url: str) -> None:
    store = await Store.open(url)
    episode = an_episode(max_turns=10_000)
    async with store.transaction() as work:
        await work.episodes.add(episode)
    acknowledged = refused = 0

    async def play() -> bool:
        nonlocal acknowledged, refused, episode
        after = after_a_turn(episode)
        try:
            async with store.transaction() as work:
                await work.episodes.append_turn(after, a_turn(after, agent_content="word " * 1500))
        except StoreUnavailable:
            refused += 1
            return False
        episode = after
        acknowledged += 1
        return True

    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
    while await play():
        pass
    # It stays refused, not just once.
    for _ in range(3):
        await play()
    before = acknowledged
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    for _ in range(20):
        await play()
    await store.close()
    print(json.dumps({"refused": refused, "acknowledged_before": before, "acknowledged_after": acknowledged}))


asyncio.run(main(sys.argv[1]))
