"""What a turn and an evaluation ask of a language model: calls and tokens, with each of its uses switched on.

    python -m benchmarks.model_calls --url URL --model NAME [--turns 4] [--write]

URL is a chat server with log-probabilities, such as llama.cpp's `http://127.0.0.1:8080/v1`; tokens are counted by that
server. The `excellent` agent of three packaged scenarios is played turn by turn, then its conversation is scored by a
rubric with three questions for a judge. Every mode is a server process of its own, with no other mode on.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.processes import ROOT, labs_server, new_keys, running
from benchmarks.report import Table, environment, write
from reward_server.auth.scopes import EVERY
from scenarios.library import load_library, natural_agents
from scenarios.schema import NaturalAgents

PLAYED = ("negotiation/used-van", "customer-support/leaking-blender", "clinical-intake/awake-since-the-baby")
RUBRIC = {
    "name": "A helpful agent",
    "situation": "An agent talks with somebody who needs something.",
    "criteria": [
        {"id": "asks", "check": {"judge": {"question": "Does the agent ask what happened?"}}},
        {"id": "cares", "check": {"judge": {"question": "Does the agent show that it understands how this feels?"}}},
        {"id": "promises", "cap": 0.5, "check": {"judge": {"question": "Does the agent promise what it cannot know?"}}},
    ],
}
LINE = re.compile(r"^labs_llm_(attempts|tokens)_total\{(.*)\} (\S+)$", re.MULTILINE)
SERVER = "reward_server.cli.main"
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Asked:
    """Calls and tokens."""

    calls: float = 0.0
    read: float = 0.0
    cached: float = 0.0
    written: float = 0.0

    def plus(self, other: Asked, sign: int = 1) -> Asked:
        """Both together; with a sign of -1, what is between them."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Asked(*(mine + sign * others for mine, others in pairs))


def asked_of(metrics: str) -> Asked:
    """The counters of all providers together."""
    sums: dict[str, float] = {}
    for counter, labels, value in LINE.findall(metrics):
        name = "calls" if counter == "attempts" else dict(re.findall(r'(\w+)="(\w+)"', labels))["direction"]
        sums[name] = sums.get(name, 0.0) + float(value)
    return Asked(sums.get("calls", 0.0), sums.get("input", 0.0), sums.get("cached", 0.0), sums.get("output", 0.0))


def modes(url: str, model: str) -> Mapping[str, dict[str, str]]:
    """Each use of a model, alone."""
    decisions = {"LABS_DECISIONS": "chat", "LABS_DECISIONS_URL": url, "LABS_DECISIONS_MODEL": model}
    language = {"LABS_LLM_PROVIDER": "vllm", "LABS_LLM_BASE_URL": url, "LABS_LLM_MODEL": model}
    voice = {"LABS_VOICE_PROVIDER": "vllm", "LABS_VOICE_BASE_URL": url, "LABS_VOICE_MODEL": model}
    return {
        "nothing (local persona)": {},
        "voice": {"LABS_PERSONA_VOICE": "llm"} | voice,
        "reader": {"LABS_READER": "decisions"} | decisions,
        "reader, where the local one is unsure": {"LABS_READER": "cascade"} | decisions,
        "judges: decisions": {"LABS_JUDGES": "decisions"} | decisions,
        "judges: language model": language,
    }


def measured(folder: Path, variables: dict[str, str], turns: int) -> tuple[int, Asked, Asked]:
    """Turns that were played, what they asked, and what an evaluation asked on average."""
    key = new_keys(folder / "data", ["acme"], EVERY)["acme"]
    server = labs_server(
        folder, None, ROOT, SERVER, LABS_REQUEST_DEADLINE_S="240", LABS_LLM_DEADLINE_S="60", **variables
    )
    natural = natural_agents(load_library(only=PLAYED))
    played, spoken, judged = 0, Asked(), Asked()
    with (
        running(server),
        httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=TIMEOUT_S) as client,
    ):

        def so_far() -> Asked:
            return asked_of(client.get("/metrics").raise_for_status().text)

        for slug in PLAYED:
            collection, _, scenario = slug.partition("/")
            body = {"collection_slug": collection, "scenario_slug": scenario, "config": {"seed": 5}}
            started = client.post("/api/v1/episodes", json=body).raise_for_status().json()
            messages: list[dict[str, Any]] = [{"role": "user", "content": started["initial_observation"]["content"]}]
            before = so_far()
            for text in lines_of(natural[slug])[:turns]:
                path = f"/api/v1/episodes/{started['episode_id']}/turns"
                turn = client.post(path, json={"messages": [{"role": "user", "content": text}]}).raise_for_status()
                messages.append({"role": "assistant", "content": text})
                messages.append({"role": "user", "content": turn.json()["observation"]["content"]})
                played += 1
            between = so_far()
            # A judge of a small model may fail, which is an error; what it was asked is counted all the same.
            client.post("/api/v1/evaluate", json={"rubric": RUBRIC, "messages": messages[:-1]})
            spoken = spoken.plus(between.plus(before, -1))
            judged = judged.plus(so_far().plus(between, -1))
    return played, spoken, judged


def lines_of(natural: NaturalAgents) -> list[str]:
    """What the scenario's excellent natural agent says."""
    return [step.say for step in natural.excellent if step.say]


def cells(asked: Asked, by: int) -> list[str]:
    """One row's figures, each divided; a call that was not answered in time has no tokens."""
    if asked.calls and not asked.read:
        return [f"{asked.calls / by:.1f}", *["none answered"] * 3]
    return [f"{asked.calls / by:.1f}", *(f"{each / by:.0f}" for each in (asked.read, asked.cached, asked.written))]


def main() -> None:
    """Play, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", required=True, help="of a chat server, with its /v1")
    parser.add_argument("--model", required=True, help="what that server calls the model")
    parser.add_argument("--turns", type=int, default=4, help="of each scenario")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/model_calls.md")
    arguments = parser.parse_args()
    head = ["a model as", "calls", "tokens in", "of them cached", "tokens out"]
    turns, evaluations = Table("a turn", head), Table("an evaluation by a rubric with three questions", head)
    for name, variables in modes(arguments.url, arguments.model).items():
        with tempfile.TemporaryDirectory() as folder:
            played, spoken, judged = measured(Path(folder), variables, arguments.turns)
        print(name, spoken, judged, flush=True)
        turns.add(name, *cells(spoken, played))
        evaluations.add(name, *cells(judged, len(PLAYED)))
    told = f"{environment()}\n\nModel: {arguments.model}. {played} turns of {len(PLAYED)} scenarios in each mode."
    text = "\n\n".join([told, turns.text(), evaluations.text()])
    print(text)
    if arguments.write:
        write("model_calls", text)


if __name__ == "__main__":
    main()
