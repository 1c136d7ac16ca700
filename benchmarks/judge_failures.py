"""Fourteen ways in which a language model can fail, through the real SDKs and the running app: none becomes a number.

Usage: python -m benchmarks.judge_failures [--write]

An oracle plays a packaged scenario that has a question for an LLM judge. Then, for each provider and each way to fail,
a fresh server is asked to evaluate that conversation while a provider on loopback fails in this way all the time. What
is printed: the HTTP status and code of the answer, whether any number was in it, how often the provider was asked (two
retries are allowed), the kind that the operator's metrics name, and what the same request gets once the provider is
well again. Exits with 1 if any failure was answered with a reward.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2

from benchmarks.attentive import attentive
from benchmarks.report import Table, environment, write
from benchmarks.scripted_provider import Asked, Fail, Mode, ScriptedProvider
from personas.reading.matcher import Matcher
from reward_server.server.app import Ports, create_app
from reward_server.server.engine import load_matcher, load_scenarios
from reward_server.settings import Settings, load_settings
from scenarios.library import Library

COLLECTION, SCENARIO = "it-helpdesk", "contracts-folder-gone"
WHERE = {"collection_slug": COLLECTION, "scenario_slug": SCENARIO}
PROVIDERS: tuple[Literal["anthropic", "openai"], ...] = ("anthropic", "openai")
DEADLINE_S = 4.0
RETRIES = 2

Json = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What came of one failure."""

    status: int
    code: str
    number: str
    asked: int
    kind: str
    afterwards: int


def main() -> None:
    """Fail in every way and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/judge_failures.md")
    arguments = parser.parse_args()
    settings = load_settings()
    outcomes = asyncio.run(all_outcomes(load_scenarios(None), load_matcher(settings)))
    table = Table(
        f"an evaluation while the provider fails, deadline {DEADLINE_S:g} s, {RETRIES} retries",
        ["the provider", "SDK", "HTTP", "code", "number given", "times asked", "kind for the operator", "afterwards"],
    )
    for (mode, name), found in outcomes.items():
        cells = (found.status, found.code, found.number, found.asked, found.kind, found.afterwards)
        table.add(mode.value.replace("_", " "), name, *cells)
    print(table.text())
    numbers = sum(found.number != "none" for found in outcomes.values())
    summary = f"{len(outcomes)} failures, {numbers} of them answered with a number."
    print(f"\n{summary}")
    if arguments.write:
        write("judge_failures", f"{environment()}\n\n{table.text()}\n\n{summary}")
    sys.exit(1 if numbers else 0)


async def all_outcomes(library: Library, matcher: Matcher) -> dict[tuple[Mode, str], Outcome]:
    """By way to fail and SDK."""
    messages = await played(library, matcher)
    return {(mode, name): await outcome(mode, name, messages, library, matcher) for mode in Mode for name in PROVIDERS}


async def played(library: Library, matcher: Matcher) -> list[Json]:
    """The conversation of the scenario's oracle, so that every criterion is in play."""
    script = library.vault.open(COLLECTION, SCENARIO).secrets.exam.oracle
    config = {"seed": 7, "persona_slug": "plainspoken", "observation_role": "user"}
    async with serving(library, matcher) as labs:
        created = await labs.post("/api/v1/episodes", json={**WHERE, "score_turns": False, "config": config})
        path = f"/api/v1/episodes/{created.raise_for_status().json()['episode_id']}"
        for step in script:
            said = {"role": "assistant", "content": step.say, **({"tool_calls": step.tools} if step.tools else {})}
            turn = await labs.post(f"{path}/turns", json={"messages": [said]})
            if turn.raise_for_status().json()["episode_complete"]:
                break
        messages: list[Json] = (await labs.get(path)).json()["messages"]
    return messages


async def outcome(
    mode: Mode, name: Literal["anthropic", "openai"], messages: list[Json], library: Library, matcher: Matcher
) -> Outcome:
    """What a server answers while its provider fails in this way, and afterwards."""
    good, failing = attentive(), [True]

    def script(asked: Asked) -> Any:
        return Fail(mode, good(asked)) if failing else good(asked)

    body = {**WHERE, "messages": messages}
    with ScriptedProvider(script) as provider:
        asked = {
            "llm_provider": name,
            "llm_model": "scripted",
            "llm_base_url": provider.url if name == "anthropic" else f"{provider.url}/v1",
            "llm_api_key": "not-a-real-key",
            "llm_deadline_s": DEADLINE_S,
            "llm_retries": RETRIES,
        }
        async with serving(library, matcher, **asked) as labs:
            failed = await labs.post("/api/v1/evaluate", json=body)
            times = len(provider.asked)
            page = (await labs.get("/metrics")).text
            failing.clear()
            afterwards = await labs.post("/api/v1/evaluate", json=body)
    found = failed.json()
    kinds = re.findall(r'^labs_judge_failures_total\{kind="(\w+)"\}', page, re.MULTILINE)
    return Outcome(
        status=failed.status_code,
        code=found.get("data", {}).get("code", "none"),
        number=str(found.get("reward", "none")),
        asked=times,
        kind=", ".join(kinds) or "none",
        afterwards=afterwards.status_code,
    )


@asynccontextmanager
async def serving(library: Library, matcher: Matcher, **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the whole app, in this process, with a data directory of its own."""
    with tempfile.TemporaryDirectory() as folder:
        ports = Ports(matcher=matcher, library=library, log_stream=io.StringIO(), own_process=False)
        app = create_app(Settings(data=Path(folder), **settings), ports=ports)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=app), base_url="http://localhost", timeout=60.0
            ) as labs,
        ):
            yield labs


if __name__ == "__main__":
    main()
