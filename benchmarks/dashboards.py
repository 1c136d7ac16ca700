"""Every panel of the Grafana dashboards, its expressions evaluated by a real Prometheus after some load.

Usage: python -m benchmarks.dashboards --prometheus /path/to/prometheus [--minutes 3] [--write]

A Labs server with a voice (of a scripted provider that fails now and then), a judge that fails and logs, questions that
nobody decides, a webhook, sockets and a training run is scraped by a Prometheus with the rules of deploy/prometheus.
Then each expression of deploy/grafana is asked for over the time of the load, as Grafana asks. Exits with 1 if a panel
has no data. Debian's package `prometheus` has the program; unpacking it is
enough (`dpkg -x`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import yaml

from benchmarks.fairness import WHERE, client
from benchmarks.mixed_load import batch, comparison, episode, evaluation, over_a_socket
from benchmarks.processes import ROOT, ServerProcess, free_port, labs_server, new_keys, one_collection, running
from benchmarks.report import Table, environment, write
from benchmarks.scripted_provider import Asked, Fail, Mode, ScriptedProvider
from reward_server.auth.scopes import Scope

STEP_S = 5
DRIFT_ITEMS = 320
"""The drift of a scenario is known from so many rewards on."""
UNDECIDED = {**WHERE, "scenario_slug": "boots-past-the-window"}
"""Asks for a judge that there is not."""
PLUGIN = """
from reward_server.telemetry.own_metrics import log_metric
from trainer_client.rewards import RewardError, RewardFunction, RewardResult


class Logged(RewardFunction):
    calls = 0

    def score(self, messages, context=None):
        log_metric("turns", len(messages))
        Logged.calls += 1
        if Logged.calls % 3 == 0:
            raise RewardError("as told")
        return RewardResult(0.5)


reward = Logged()
"""
RUN = {
    "rollout": {"groups": 2, "group_size": 2},
    "warmup": {"steps": 20},
    "evaluation": {"episodes": 2, "samples": 0},
    "run": {"updates": 500},
    "server": {"collection": WHERE["collection_slug"], "scenario": WHERE["scenario_slug"], "max_turns": 2},
}

Json = dict[str, Any]
_numbers = count()


def main() -> None:
    """Put load on a server, scrape it, and print what each expression has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prometheus", type=Path, required=True, help="the program")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/dashboards.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ScriptedProvider(voice) as provider:
        folder = Path(name)
        (folder / "own_parts.py").write_text(PLUGIN)
        key = new_keys(folder / "data", ("acme",), Scope)["acme"]
        server = labs_server(folder, **settings(folder, f"{provider.url}/v1"))
        with running(server), scraped(arguments.prometheus, server, key, folder) as prometheus:
            asyncio.run(loaded(server, key, arguments.minutes))
            table, empty = asked(prometheus, arguments.minutes)
    version = subprocess.run([arguments.prometheus, "--version"], capture_output=True, text=True, check=True)
    text = f"{environment()}\n\n{table.text()}\n\n{len(empty)} expressions without data. {_first_words(version)}."
    print(text)
    if arguments.write:
        write("dashboards", text)
    sys.exit(1 if empty else 0)


def voice(asked: Asked) -> Any:
    """A provider of the voice, every fifth answer of which fails."""
    return Fail(Mode.MALFORMED, {}) if asked.number % 5 == 4 else {"line": "Well."}


def settings(folder: Path, provider: str) -> Json:
    """Everything that the dashboards look at, turned on."""
    model = {"LABS_PERSONA_VOICE": "llm", "LABS_VOICE_PROVIDER": "openai", "LABS_VOICE_MODEL": "scripted"}
    more = {"LABS_VOICE_BASE_URL": provider, "LABS_VOICE_API_KEY": "not-a-real-key", "LABS_LLM_PRICES": "3/15"}
    own = {"LABS_JUDGE_PLUGINS": "mine=own_parts:reward", "PYTHONPATH": f"{ROOT}:{folder}"}
    scenarios = str(one_collection(folder, WHERE["collection_slug"]))
    return {
        **model,
        **more,
        **own,
        "LABS_SCENARIOS": scenarios,
        "LABS_PERSONA_VOICE": "llm",
        "LABS_PRIVATE_ADDRESSES": "true",
        "LABS_METRICS_ACCESS": "operator",
    }


@contextmanager
def scraped(program: Path, server: ServerProcess, key: str, folder: Path) -> Iterator[str]:
    """A Prometheus with our rules that scrapes the server; its address."""
    chosen: Json = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    [job] = chosen["scrape_configs"]
    job["static_configs"] = [{"targets": [server.url.removeprefix("http://")]}]
    job["authorization"] = {"credentials_file": str(folder / "key")}
    (folder / "key").write_text(key)
    chosen["global"] = {"scrape_interval": f"{STEP_S}s", "evaluation_interval": f"{STEP_S}s"}
    (folder / "rules.yml").write_text((ROOT / "deploy" / "prometheus" / "rules.yml").read_text())
    (folder / "prometheus.yml").write_text(yaml.safe_dump(chosen))
    url = f"127.0.0.1:{free_port()}"
    command = [str(program), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={url}"], stdout=log, stderr=log)
        try:
            yield f"http://{url}"
        finally:
            process.terminate()
            process.wait(60)


async def loaded(server: ServerProcess, key: str, minutes: float) -> None:
    """Everything at once, for so long."""
    async with client(server, key) as http:
        (await http.post("/webhooks", json={"url": f"http://127.0.0.1:{free_port()}/events"})).raise_for_status()
        (await http.post("/training-runs", json={"config": RUN})).raise_for_status()
        await drift(http)
        ends = time.monotonic() + minutes * 60

        async def on_and_on(work: Any) -> None:
            while time.monotonic() < ends:
                with suppress(httpx2.HTTPStatusError):  # a judge that failed, as it is told to
                    await work()

        works = [lambda: episode(http), lambda: evaluation(http), lambda: batch(http), lambda: comparison(http)]
        works += [lambda: undecided(http), lambda: with_plugin(http), lambda: over_a_socket(server, key)]
        await asyncio.gather(*[on_and_on(work) for work in works])


def talk() -> list[Json]:
    """A short conversation that nobody has had."""
    say = f"I take the blame for number {next(_numbers)}. When does it leak?"
    return [{"role": "user", "content": "It leaks."}, {"role": "assistant", "content": say}]


async def drift(http: httpx2.AsyncClient) -> None:
    """Enough rewards of one scenario to compare new ones with."""
    for first in range(0, DRIFT_ITEMS, 32):
        items = [{**WHERE, "id": str(first + number), "messages": talk()} for number in range(32)]
        (await http.post("/batch/evaluate", json={"items": items})).raise_for_status()


async def undecided(http: httpx2.AsyncClient) -> int:
    (await http.post("/evaluate", json={**UNDECIDED, "messages": talk()})).raise_for_status()
    return 1


async def with_plugin(http: httpx2.AsyncClient) -> int:
    config = {"composite": {"combine": "weighted_sum", "parts": [{"judge": "rubric"}, {"judge": "mine"}]}}
    body = {**UNDECIDED, "messages": talk(), "reward_config": config}
    (await http.post("/evaluate", json=body)).raise_for_status()
    return 1


def asked(prometheus: str, minutes: float) -> tuple[Table, list[str]]:
    """What each expression has over the time of the load, and those that have nothing."""
    table = Table(
        "expressions of deploy/grafana, as Prometheus evaluates them", ["panel", "expression", "series", "last"]
    )
    empty = []
    for panel, expression in expressions():
        series = over_time(prometheus, expression, minutes)
        values = [value for each in series for _, value in each["values"] if value != "NaN"]
        table.add(
            panel, f"`{expression.replace('|', chr(92) + '|')}`", str(len(series)), values[-1][:8] if values else "none"
        )
        if not values:
            empty.append(expression)
    return table, empty


def expressions() -> list[tuple[str, str]]:
    """(dashboard and panel, expression) of all dashboards, and what Prometheus records and alerts on."""
    found = []
    for file in sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            found += [(f"{file.stem}: {panel['title']}", target["expr"]) for target in panel["targets"]]
    return found


def over_time(prometheus: str, expression: str, minutes: float) -> list[Json]:
    """The series of an expression over the last minutes."""
    now = time.time()
    query: dict[str, str | float] = {
        "query": expression,
        "start": now - minutes * 60,
        "end": now,
        "step": STEP_S,
    }
    answer = httpx2.get(f"{prometheus}/api/v1/query_range", params=query, timeout=30.0).raise_for_status().json()
    result: list[Json] = answer["data"]["result"]
    return result


def _first_words(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stdout or done.stderr).split()[:3]).rstrip(",")


if __name__ == "__main__":
    main()
