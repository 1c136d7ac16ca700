"""How fast turns are stored on PostgreSQL: grouped commits against one by one, on one machine in one run.

    python -m benchmarks.turn_writes --out benchmarks/results/turn-writes.json

64 clients store turns of their own episodes on a PostgreSQL that writes through to the disk. "raw" is asyncpg without
anything of ours: BEGIN, UPDATE, INSERT, COMMIT, one turn after the other on one connection; "pool" the same on 16
connections; "ungrouped" is the store with a unit of work and a commit for each turn, on its eight writers; "grouped" is
what a server does: turns that wait are stored together. Rounds take turns, so that whatever else the machine does meets
all of them. A latency is that of one turn as its client sees it, waiting included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks.real_servers import PostgresServer
from reward_server.ids import new_episode_id
from reward_server.store import writer
from reward_server.store.columns import dump_json
from reward_server.store.migrate import migrate
from reward_server.store.records import EpisodeRow, EpisodeStatus, TurnRow
from reward_server.store.store import Store

CLIENTS, ROUNDS, SECONDS, POOL = 64, 5, 2.0, 16
NOW = datetime(2026, 1, 1, tzinfo=UTC)
UPDATE = (
    "UPDATE episode SET turn=$1, persona_state=$2, status='active', terminal_reason=NULL, active_at=$3"
    " WHERE lab_id=$4 AND episode_id=$5 AND turn=$6 AND status='active'"
)
INSERT = (
    "INSERT INTO turn (episode_id, turn, agent_content, tool_calls, observation, reward, scores, answer, fingerprint,"
    " created_at) VALUES ($1,$2,$3,NULL,$4,$5,$6,$7,$8,$9)"
)

Write = Callable[[EpisodeRow, TurnRow], Awaitable[None]]


def an_episode() -> EpisodeRow:
    """An episode that never fills up."""
    return EpisodeRow(
        episode_id=new_episode_id(), lab_id="acme", collection="c", scenario="s", seed=1, persona_slug="p",
        observation_role="assistant", score_turns=True, reward_config=None, metadata=None, max_turns=10**9, turn=0,
        persona_state={"turn": 0, "said": {}}, status=EpisodeStatus.ACTIVE, terminal_reason=None, opening="Hello.",
        created_at=NOW, active_at=NOW,
    )  # fmt: skip


def a_turn(episode: EpisodeRow) -> TurnRow:
    """A turn of usual size."""
    return TurnRow(
        episode_id=episode.episode_id, turn=episode.turn, agent_content="How long have you had it? " * 8,
        tool_calls=None, observation="About three weeks. " * 8, reward=0.25, scores={"D1": 0.5, "D2": 0.25},
        answer={"turn": episode.turn, "reward": 0.25, "observation": {"role": "assistant", "content": "About. " * 16}},
        fingerprint="f" * 64, created_at=NOW,
    )  # fmt: skip


def raw(pool: asyncpg.Pool) -> Write:
    """Asyncpg alone."""

    async def write(after: EpisodeRow, row: TurnRow) -> None:
        async with pool.acquire() as connection, connection.transaction():
            state = dump_json(after.persona_state)
            done = await connection.execute(UPDATE, row.turn, state, NOW, "acme", row.episode_id, row.turn - 1)
            if done != "UPDATE 1":
                raise RuntimeError(done)
            await connection.execute(
                INSERT, row.episode_id, row.turn, row.agent_content, row.observation, row.reward,
                dump_json(row.scores), dump_json(row.answer), row.fingerprint, NOW,
            )  # fmt: skip

    return write


def alone(store: Store) -> Write:
    """The store, a unit of work for each turn."""

    async def write(after: EpisodeRow, row: TurnRow) -> None:
        async with store.transaction() as unit:
            await unit.episodes.append_turn(after, row)

    return write


def grouped(store: Store) -> Write:
    """The store, as episodes use it."""

    async def write(after: EpisodeRow, row: TurnRow) -> None:
        await store.append_turns([(after, row)])

    return write


async def play(store: Store, write: Write) -> dict[str, Any]:
    """Store turns for a while; turns a second, and latencies."""
    episodes = [an_episode() for _ in range(CLIENTS)]
    async with store.transaction() as unit:
        for episode in episodes:
            await unit.episodes.add(episode)
    took: list[float] = []
    ends = time.perf_counter() + SECONDS

    async def client(episode: EpisodeRow) -> None:
        while (began := time.perf_counter()) < ends:
            episode = replace(episode, turn=episode.turn + 1)
            await write(episode, a_turn(episode))
            took.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(client(each) for each in episodes))
    return {"per_second": len(took) / (time.perf_counter() - began), "took": took}


async def measure(url: str) -> dict[str, Any]:
    """All ways, round by round."""
    store = await Store.open(url)
    ways: dict[str, tuple[Write, int]] = {}
    one = await asyncpg.create_pool(url, min_size=1, max_size=1)
    many = await asyncpg.create_pool(url, min_size=POOL, max_size=POOL)
    ways = {
        "raw": (raw(one), 0),
        "pool": (raw(many), 0),
        "ungrouped": (alone(store), 1),
        "grouped": (grouped(store), writer.GROUP_LIMIT),
    }
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, (write, limit) in ways.items():
            writer.GROUP_LIMIT = limit or writer.GROUP_LIMIT
            found = await play(store, write)
            if number:  # the first one warms up
                rounds[name].append(found)
    await store.close()
    await one.close()
    await many.close()
    return {name: summary(found) for name, found in rounds.items()}


def summary(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """Medians over the rounds."""

    def quantile(share: float) -> float:
        return 1000 * float(statistics.median(sorted(x["took"])[int(share * (len(x["took"]) - 1))] for x in rounds))

    return {
        "turns_per_second": round(statistics.median(each["per_second"] for each in rounds), 1),
        "p50_ms": round(quantile(0.5), 1),
        "p99_ms": round(quantile(0.99), 1),
    }


def main() -> None:
    """Start PostgreSQL, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    with PostgresServer(durable=True) as server:
        url = server.new_database("labs")
        asyncio.run(migrate(url))
        ways = asyncio.run(measure(url))
    speed = {name: each["turns_per_second"] / ways["raw"]["turns_per_second"] for name, each in ways.items()}
    report = {
        "date": date.today().isoformat(),
        "machine": "2 shared cores, no GPU",
        "clients": CLIENTS,
        "ways": ways,
        "speed_to_raw": {name: round(value, 2) for name, value in speed.items()},
        "p99_to_raw": {name: round(each["p99_ms"] / ways["raw"]["p99_ms"], 2) for name, each in ways.items()},
    }
    out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
