"""Plays turns of several episodes at once and says which were stored. Run, and killed, by `test_crash`."""

from __future__ import annotations

import asyncio
import os
import sys

from reward_server.store.records import EpisodeRow
from reward_server.store.store import Store
from tests.store.builders import a_turn, after_a_turn, an_episode


async def play(store: Store, episode: EpisodeRow) -> None:
    while True:
        episode = after_a_turn(episode)
        async with store.transaction() as work:
            await work.episodes.append_turn(episode, a_turn(episode))
        os.write(1, f"{episode.episode_id} {episode.turn}\n".encode())


async def main(url: str, players: int) -> None:
    store = await Store.open(url)
    episodes = [an_episode(max_turns=10**9) for _ in range(players)]
    for episode in episodes:
        async with store.transaction() as work:
            await work.episodes.add(episode)
    await asyncio.gather(*(play(store, episode) for episode in episodes))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
