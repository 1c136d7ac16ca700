"""Natural turns that nobody has read before, scored by this commit and by another one in the same run.

Usage: python -m benchmarks.reading_speed [--base FOLDER] [--rounds 3] [--write]

`--base` is a worktree of the other commit; without it, this commit runs alone, in fp32 and with
LABS_READER_PRECISION=int8. Each is one server process with one numeric thread. Agent lines are the labelled turns that
come with the scenarios, each said once in a run; persona lines are answers of the case. Rounds are interleaved, and
the median with the range is printed. CPU time is the server's, of all its threads. The last table is about fairness:
turns of one key, alone and while another key has the longest transcripts scored again and again.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2

from benchmarks.conversations import Conversation
from benchmarks.processes import ROOT, ServerProcess, labs_server, running
from benchmarks.report import Table, environment, write
from benchmarks.start import settle
from scenarios.library import load_library
from scenarios.turns import SUFFIX, load_turns

BATCH, TURNS, EPISODES = 60, 8, 12
LONGEST = 60
"""Agent turns of a long transcript."""
Figures = dict[str, list[float]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="a worktree of the commit to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/reading_speed.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for each in ("fp32", "int8", "base"):
            (Path(name) / each).mkdir()
        servers = {
            "this commit": labs_server(Path(name) / "fp32"),
            "in int8": labs_server(Path(name) / "int8", LABS_READER_PRECISION="int8"),
        }
        if arguments.base:
            servers["base"] = labs_server(Path(name) / "base", root=arguments.base)
        with running(*servers.values()):
            for server in servers.values():
                settle(server)
            text = "\n\n".join(table.text() for table in measured(servers, arguments.rounds))
    print(text)
    if arguments.write:
        write("reading_speed", f"{environment()}\n\n{text}")


def measured(servers: dict[str, ServerProcess], rounds: int) -> Iterator[Table]:
    """The tables."""
    talks = Talks()
    batches: dict[str, Figures] = {name: {"rate": [], "cpu": []} for name in servers}
    turns: dict[str, Figures] = {name: {"cpu": [], "ms": []} for name in servers}
    delays: dict[str, Figures] = {name: {"alone": [], "beside": []} for name in servers}
    for number in range(rounds + 1):
        batch = [talks.conversation(TURNS) for _ in range(BATCH)]
        episodes = [talks.conversation(TURNS) for _ in range(EPISODES)]
        beside = [talks.conversation(TURNS) for _ in range(EPISODES)]
        for name, server in servers.items():
            figures = asyncio.run(round_of(server, batch, episodes, beside))
            if number:  # the first round warms up
                rate, cpu, turn_cpu, alone, busy = figures
                batches[name]["rate"].append(rate)
                batches[name]["cpu"].append(cpu)
                turns[name]["cpu"].append(turn_cpu)
                turns[name]["ms"] += alone
                delays[name]["alone"] += alone
                delays[name]["beside"] += busy
    yield batch_table(batches)
    yield turn_table(turns)
    yield delay_table(delays)


async def round_of(
    server: ServerProcess, batch: list[Conversation], episodes: list[Conversation], beside: list[Conversation]
) -> tuple[float, float, float, list[float], list[float]]:
    """Conversations/s and CPU ms of a batch; CPU ms of a turn; ms of each turn alone and beside long transcripts."""
    async with httpx2.AsyncClient(timeout=600.0) as client:
        cpu, started = server.cpu_s(), time.perf_counter()
        await score(client, server, batch)
        rate = BATCH / (time.perf_counter() - started)
        batch_cpu = (server.cpu_s() - cpu) / BATCH * 1000
        cpu = server.cpu_s()
        alone = [ms for episode in episodes for ms in await play(client, server, episode)]
        turn_cpu = (server.cpu_s() - cpu) / len(alone) * 1000
        work = asyncio.create_task(long_ones(server))
        await asyncio.sleep(0.5)
        busy = [ms for episode in beside for ms in await play(client, server, episode)]
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    return rate, batch_cpu, turn_cpu, alone, busy


async def score(client: httpx2.AsyncClient, server: ServerProcess, conversations: list[Conversation]) -> None:
    """One batch; every item has to be scored."""
    body = {"items": [conversation.item(number) for number, conversation in enumerate(conversations)]}
    answer = await client.post(server.url + server.prefix + "/batch/evaluate", json=body)
    answer.raise_for_status()
    if any(result["status"] != "success" for result in answer.json()["results"]):
        raise RuntimeError("an item was not scored")


async def play(client: httpx2.AsyncClient, server: ServerProcess, talk: Conversation) -> list[float]:
    """Milliseconds of each turn of an episode with the agent's lines."""
    api, taken = server.url + server.prefix, []
    where = {"collection_slug": talk.collection, "scenario_slug": talk.scenario}
    episode = (await client.post(f"{api}/episodes", json=where)).raise_for_status().json()["episode_id"]
    for message in talk.messages[::2]:
        said = {"messages": [{"role": "user", "content": message["content"]}]}
        started = time.perf_counter()
        answer = (await client.post(f"{api}/episodes/{episode}/turns", json=said)).raise_for_status().json()
        taken.append((time.perf_counter() - started) * 1000)
        if answer["episode_complete"]:
            break
    return taken


async def long_ones(server: ServerProcess) -> None:
    """Scores long transcripts, each with other words, until it is cancelled."""
    talks, number = Talks(seed=1), 0
    async with httpx2.AsyncClient(timeout=600.0) as client:
        while True:
            number += 1
            talk = talks.conversation(LONGEST, unlike=f"point {number}")
            await score(client, server, [talk])


class Talks:
    """Conversations of labelled turns; none is said twice, unless it is told to be unlike."""

    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)
        self._library = load_library()
        self._names = list(self._library.vault.names())
        self._lines = {name: self._shuffled(name) for name in self._names}
        self._next = 0

    def _shuffled(self, name: tuple[str, str]) -> list[str]:
        collection, scenario = name
        turns = load_turns(ROOT / "scenarios" / "collections" / collection / f"{scenario}{SUFFIX}")
        lines = list(dict.fromkeys(turn.turn for turn in turns))
        self._source.shuffle(lines)
        return lines

    def conversation(self, turns: int, unlike: str = "") -> Conversation:
        """Of the next scenario in turn."""
        name = self._names[self._next % len(self._names)]
        self._next += 1
        case = self._library.vault.open(*name).case
        answers = [answer for topic in case.topics for answer in topic.answers]
        lines = self._lines[name]
        if len(lines) < turns:
            raise RuntimeError(f"{name[1]} has no unsaid turns left: take fewer rounds")
        messages = []
        for _ in range(turns):
            line = lines.pop()
            content = f"{line[:-1]}, {unlike}{line[-1]}" if unlike else line
            if unlike:
                lines.insert(0, line)
            messages.append({"role": "assistant", "content": content})
            messages.append({"role": "user", "content": self._source.choice(answers)})
        return Conversation(*name, tuple(messages))


def batch_table(batches: dict[str, Figures]) -> Table:
    """Conversations per second through /batch/evaluate."""
    table = Table(
        f"/batch/evaluate, {BATCH} fresh conversations of {TURNS} natural turns",
        ["", "conversations/s", "range", "CPU ms/conversation", "CPU of base/this"],
    )
    for name, figures in batches.items():
        cost = statistics.median(figures["cpu"])
        ratio = statistics.median(batches["base"]["cpu"]) / cost if "base" in batches else 1.0
        low, high = min(figures["rate"]), max(figures["rate"])
        rate = statistics.median(figures["rate"])
        table.add(name, f"{rate:.1f}", f"{low:.1f}-{high:.1f}", f"{cost:.1f}", f"{ratio:.2f}")
    return table


def turn_table(turns: dict[str, Figures]) -> Table:
    """A turn of an episode, one at a time."""
    table = Table(
        "POST /episodes/{id}/turns with fresh natural turns, one at a time",
        ["", "p50 ms", "p99 ms", "CPU ms/turn", "CPU of base/this"],
    )
    for name, figures in turns.items():
        cost = statistics.median(figures["cpu"])
        ratio = statistics.median(turns["base"]["cpu"]) / cost if "base" in turns else 1.0
        table.add(name, *(f"{share(figures['ms'], q):.1f}" for q in (0.5, 0.99)), f"{cost:.1f}", f"{ratio:.2f}")
    return table


def delay_table(delays: dict[str, Figures]) -> Table:
    """Turns beside long transcripts."""
    table = Table(
        f"A turn while somebody else has transcripts of {LONGEST} fresh turns scored, one after the other",
        ["", "p50 ms alone", "p99 ms alone", "p50 ms beside", "p99 ms beside", "held up, p50", "held up, p99"],
    )
    for name, figures in delays.items():
        alone, beside = ([share(figures[which], q) for q in (0.5, 0.99)] for which in ("alone", "beside"))
        held = [after - before for before, after in zip(alone, beside, strict=True)]
        table.add(name, *(f"{value:.0f}" for value in (*alone, *beside, *held)))
    return table


def share(values: list[float], quantile: float) -> float:
    """A quantile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * quantile))]


if __name__ == "__main__":
    main()
