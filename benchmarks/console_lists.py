"""How long the lists of the console take with many stored rows: the server's CPU for a page, and its size.

Usage: python -m benchmarks.console_lists [--rows 100000] [--rounds 20] [--write]

A database is filled with so many episodes (two turns each), evaluations, jobs and episodes of agents, over ninety days,
four scenarios and ten agents. A server is started on it; when it is at rest, each list is asked for again and again.
CPU is the server's own, whose ticks are 10 ms: hence the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import tempfile
import time
from pathlib import Path

import httpx2

from benchmarks.processes import ServerProcess, labs_server, one_collection, running
from benchmarks.report import Table, environment, write
from reward_server.store.engine import sqlite_url
from reward_server.store.migrate import migrate

LAB, COLLECTION = "development", "customer-support"
SCENARIOS = ("leaking-blender", "boots-past-the-window", "charged-twice", "flight-moved-forward")
VERSION = "sv_0123456789ab"
AGENTS = 10
DAYS = 90
SCORES = json.dumps({f"D{number}_Dimension": 0.25 * number for number in range(1, 5)})
MADE = """
    WITH RECURSIVE counted(number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM counted WHERE number + 1 < :rows)
    INSERT INTO made SELECT
        number,
        strftime('%Y-%m-%d %H:%M:%f000', 'now', '-' || (:days * (1.0 - 1.0 * number / :rows)) || ' days'),
        replace(replace(replace(replace(lower(hex(randomblob(12))), '0', 'g'), '1', 'h'), '8', 'i'), '9', 'j'),
        number % 4,
        number / 4 % :agents,
        abs(random() % 10000) / 10000.0
    FROM counted
"""
"""What each row is made of, the oldest first."""
NAMED = "CASE scenario " + " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(SCENARIOS)) + " END"
OF_LAB = {"lab_id": f"'{LAB}'", "created_at": "moment"}
PLACE = {"collection": f"'{COLLECTION}'", "scenario": NAMED}
EPISODE = {
    **OF_LAB,
    **PLACE,
    "episode_id": "'ep_' || token",
    "active_at": "moment",
    "seed": "number % 1000",
    "persona_slug": "'plainspoken'",
    "observation_role": "'assistant'",
    "score_turns": "1",
    "max_turns": "12",
    "turn": "2",
    "status": "'complete'",
    "terminal_reason": "'completed'",
    "opening": "'Good morning, my blender leaks all over the counter.'",
}
RARE = "CASE WHEN number % 5000 = 0 THEN 'A quokka sat on it. ' ELSE '' END"
ASKED = "I am sorry to hear that. Since when does it leak, and where from? " * 2
TURN = {
    "episode_id": "'ep_' || token",
    "agent_content": f"{RARE} || '{ASKED}'",
    "observation": f"'{'It began on Tuesday, right after I had cleaned the gasket in the dishwasher. ' * 2}'",
    "reward": "reward",
    "scores": f"'{SCORES}'",
    "answer": f"json_object('scoring_version', '{VERSION}', 'capped_by', "
    f"json(CASE WHEN number % 50 = 0 THEN '[\"recital\"]' ELSE '[]' END), 'filling', '{'x' * 600}')",
    "fingerprint": f"'{'0' * 64}'",
    "created_at": "moment",
}
SENT = [{"role": "user", "content": "My blender leaks. " * 8}, {"role": "assistant", "content": "Since when? " * 8}]
EVALUATION = {
    **OF_LAB,
    **PLACE,
    "evaluation_id": "'ev_' || token",
    "reward": "reward",
    "scores": f"'{SCORES}'",
    "scoring_version": f"'{VERSION}'",
    "messages": f"'{json.dumps(SENT)}'",
    "agent_role": "'assistant'",
    "verdicts": "'[]'",
    "source": "'evaluate'",
    "answer": "'{\"capped_by\": []}'",
}
JOB = {
    **OF_LAB,
    "job_id": "'job_' || token",
    "key_id": f"'{LAB}'",
    "type": "'evaluate'",
    "status": "'completed'",
    "file_id": "'file_' || token",
    "full_scores": "1",
    "scopes": "'[]'",
    **{name: "10" for name in ("total", "next_index", "done")},
    **{name: "0" for name in ("failed", "dead")},
    **{name: "moment" for name in ("started_at", "finished_at", "served_at")},
}
AGENT = "'agent_' || substr('abcdefghij', agent + 1, 1) || 'aaaaaaaaaaaaaaaaaaaaaaa'"
PLAYED = {
    **OF_LAB,
    **PLACE,
    "job_id": "'job_' || token",
    "item_index": "0",
    "agent_id": AGENT,
    "episode_id": "'ep_' || token",
    "seed": "number % 1000",
    "reward": "reward",
    "scoring_version": f"'{VERSION}'",
}
IDLE_S = 0.05
"""A server at rest uses less CPU in two seconds."""
CPU_GOAL_MS, SIZE_GOAL = 100.0, 150_000
LISTS = {
    "episodes": "/episodes",
    "episodes, highest first": "/episodes?order=highest",
    "episodes, longest first": "/episodes?order=longest",
    "episodes of one scenario": f"/episodes?scenario={COLLECTION}/{SCENARIOS[0]}",
    "episodes with a reward from .9": "/episodes?least=0.9",
    "episodes with a cap": "/episodes?cap=recital",
    "episodes in which a rare word was said": "/episodes?text=quokka",
    "evaluations": "/evaluations",
    "evaluations, highest first": "/evaluations?order=highest",
    "leaderboard": f"/leaderboard?collection={COLLECTION}&version={VERSION}",
    "jobs": "/jobs",
    "charts": "/charts",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/console_lists.md")
    arguments = parser.parse_args()
    caption = f"{arguments.rows:,} stored rows of each kind, mean of {arguments.rounds} requests"
    table = Table(caption, ["page", "CPU ms", "bytes"])
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "data" / "labs.sqlite"
        database.parent.mkdir()
        asyncio.run(migrate(sqlite_url(database)))
        fill(database, arguments.rows)
        server = labs_server(Path(folder), LABS_SCENARIOS=str(one_collection(Path(folder), COLLECTION)))
        with running(server), httpx2.Client(base_url=f"{server.url}/console", timeout=120.0) as browser:
            rest(server)
            for name, path in [*LISTS.items(), ("episodes, a page from the middle", middle(browser))]:
                cpu_ms, size = ask(server, browser, path, arguments.rounds)
                table.add(name, f"{cpu_ms:.0f}{' (!)' if cpu_ms > CPU_GOAL_MS else ''}", f"{size:,}")
                print(*table.rows[-1], sep="\t", flush=True)
    text = f"{environment()}\n\n{table.text()}"
    print(text)
    if arguments.write:
        write("console_lists", text)


def rest(server: ServerProcess) -> None:
    """Wait until the server has encoded all authored texts: that is no page's CPU."""
    before = -1.0
    while server.cpu_s() - before > IDLE_S:
        before = server.cpu_s()
        time.sleep(2.0)


def ask(server: ServerProcess, browser: httpx2.Client, path: str, rounds: int) -> tuple[float, int]:
    """CPU milliseconds of the server for a page, and the size of it."""
    size = len(browser.get(path).raise_for_status().content)
    before = server.cpu_s()
    for _ in range(rounds):
        browser.get(path)
    return 1000 * (server.cpu_s() - before) / rounds, size


def middle(browser: httpx2.Client) -> str:
    """The path of a page after some others."""
    path = "/episodes"
    for _ in range(5):
        more = browser.get(path).text.rpartition('data-key="l" href="?')[2].partition('"')[0]
        path = f"/episodes?{more.replace('&amp;', '&')}"
    return path


def fill(database: Path, rows: int) -> None:
    """Fill the tables, without the server's own checks: the database makes the rows up."""
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TEMP TABLE made (number, moment, token, scenario, agent, reward)")
        connection.execute(MADE, {"rows": rows, "days": DAYS, "agents": AGENTS})
        named = {**OF_LAB, "agent_id": AGENT, "kind": "'endpoint'", "name": AGENT}
        put(connection, "agent", named, f"WHERE number % 4 = 0 AND number < {4 * AGENTS}")
        put(connection, "episode", EPISODE)
        for turn in ("1", "2"):
            put(connection, "turn", {**TURN, "turn": turn})
        put(connection, "evaluation", EVALUATION)
        put(connection, "job", JOB)
        put(connection, "agent_episode", PLAYED)
        connection.execute("ANALYZE")
    connection.close()


def put(connection: sqlite3.Connection, table: str, values: dict[str, str], where: str = "") -> None:
    """Insert a row for each that is made up; what the values do not name is an empty object."""
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    filled = {name: "'{}'" for _, name, _, needed, _, _ in columns if needed} | values
    connection.execute(
        f"INSERT INTO {table} ({', '.join(filled)}) SELECT {', '.join(filled.values())} FROM made {where}"
    )


if __name__ == "__main__":
    main()
