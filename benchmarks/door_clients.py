"""Real clients of other stacks against a server with a key: the reward that each gets for one conversation.

Usage: python -m benchmarks.door_clients --clients PYTHON [--only CLIENT] [--write]

PYTHON is the interpreter of an environment that has the clients: they want versions of libraries that Labs does not.

    python -m venv /tmp/clients
    /tmp/clients/bin/pip install openenv==0.10.0 openai aiohttp openreward==0.1.167 ors-sdk==0.1.0 trl==1.16.0
    /tmp/clients/bin/pip install --no-deps openrlhf==0.11.2

openenv brings FastMCP. An episode is played over HTTP. The clients of OpenEnv, ORS and MCP play it again; the others
are shown what was said. All of them have to get what /evaluate gives that transcript, or the command fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.door_client import CLIENTS, Case
from benchmarks.processes import ROOT, labs_server, new_keys
from benchmarks.report import Table, environment, write
from reward_server import __version__
from trainer_client import LabsClient

COLLECTION, SCENARIO = "clinical-intake", "tired-and-dizzy"
ASKS = (
    "I am sorry to hear that. Since when have you been so tired?",
    "That sounds hard. Do you take any painkillers?",
    "Thank you. Have you noticed anything else, such as dark stools?",
)
SEED = 7
SWAPPED = {"user": "assistant", "assistant": "user"}


def main() -> None:
    """Play, ask every client, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", required=True, help="the interpreter of an environment with the clients")
    parser.add_argument("--only", action="append", choices=CLIENTS, help="only this client; may be given again")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/door_clients.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        key = new_keys(Path(folder) / "data", ["acme"])["acme"]
        server = labs_server(Path(folder))
        server.start()
        try:
            case, reward = played(server.url, key)
            told = {name: answered(arguments.clients, name, case) for name in arguments.only or CLIENTS}
        finally:
            server.stop()
    text = table(reward, told)
    print(text)
    if arguments.write:
        write("door_clients", f"{environment()}\n\n{text}")
    if {each["reward"] for each in told.values()} != {reward}:
        sys.exit("a client got another number")


def played(url: str, key: str) -> tuple[Case, float]:
    """An episode as a case for the clients, and what /evaluate gives its transcript."""
    with LabsClient(url, api_key=key) as client:
        episode = client.create_episode(COLLECTION, SCENARIO, seed=SEED, max_turns=len(ASKS))
        for ask in ASKS:
            client.turn(episode.episode_id, ask)
        transcript = client.get_episode(episode.episode_id).messages
        said = [{"role": SWAPPED[each.role], "content": each.content} for each in transcript]
        last = max(i for i, each in enumerate(said) if each["role"] == "assistant")
        reward = client.evaluate(COLLECTION, SCENARIO, said[: last + 1]).reward
    host = url.removeprefix("http://")
    addresses = {"plain": url, "address": f"http://labs:{key}@{host}", "key": key}
    where = {"collection_slug": COLLECTION, "scenario_slug": SCENARIO}
    said_before = {"before": said[:last], "reply": said[last]["content"]}
    return {**addresses, **said_before, "where": where, "asks": ASKS, "seed": SEED}, reward


def answered(python: str, name: str, case: Case) -> dict[str, Any]:
    """What a client got, and its version."""
    command = [python, str(ROOT / "benchmarks" / "door_client.py"), name]
    done = subprocess.run(command, input=json.dumps(case), capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(reward: float, told: dict[str, dict[str, Any]]) -> str:
    """The rewards side by side."""
    found = Table(f"the reward of one conversation of {len(ASKS)} turns", ["client", "version", "reward"])
    found.add("Labs, `/evaluate`", __version__, reward)
    for name, each in told.items():
        found.add(name, each["version"], each["reward"])
    return found.text()


if __name__ == "__main__":
    main()
