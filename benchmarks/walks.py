"""Counts what one request passes through: modules, functions, and changes from one module to another.

Usage: python -m benchmarks.walks [--list turn] [--write]

The whole app runs in this process in development mode, on a database of its own; the client is in the process, too.
Each request is made a few times, so that nothing is done for the first time; then every call that enters a function
of ours is counted, on every thread (`sys.setprofile`): a turn of an episode with a line that was never said before, an
evaluation of a conversation that was never sent before, and a batch of three such turns. Telemetry and the module of
errors are left out, and so is what has no name: lambdas and comprehensions are part of the function that they stand in.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2

from benchmarks.fairness import LINES, WHERE
from benchmarks.processes import ROOT, one_collection
from benchmarks.report import Table, environment, write
from reward_server.server.app import Ports, create_app
from reward_server.settings import Settings

OURS = ("personas", "reward_server", "scenarios", "trainer_client")
LEFT_OUT = (ROOT / "reward_server" / "telemetry", ROOT / "reward_server" / "errors.py")
BATCH = 3
WARM = 3
"""How often each request is made before it is counted."""
_numbers = count()
Json = dict[str, Any]
Request = Callable[[], Awaitable[httpx2.Response]]


@dataclass
class Walk:
    """The functions of ours that one request entered."""

    functions: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """How often each was entered, by module, name and line."""
    changes: int = 0
    """How often a call left one module for another one."""

    @property
    def modules(self) -> set[str]:
        """The modules that were entered."""
        return {module for module, *_ in self.functions}


class Recorder:
    """Notes the calls of all threads while it is told to."""

    def __init__(self) -> None:
        self.walk: Walk | None = None
        self._known: dict[str, str | None] = {}

    def install(self) -> None:
        """Before any thread of the server begins."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        walk = self.walk
        if walk is None or event != "call":
            return
        code, module = frame.f_code, self._module_of(frame)
        if module is None or code.co_name.startswith("<"):
            return
        walk.functions[module, code.co_qualname, code.co_firstlineno] += 1
        caller = frame.f_back
        walk.changes += caller is not None and self._module_of(caller) not in (None, module)

    def _module_of(self, frame: FrameType) -> str | None:
        """The module of ours that a function stands in."""
        name = frame.f_code.co_filename
        if name not in self._known:
            self._known[name] = _module(Path(name))
        return self._known[name]


def _module(path: Path) -> str | None:
    if not path.is_relative_to(ROOT) or any(path.is_relative_to(each) for each in LEFT_OUT):
        return None
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts) if parts[0] in OURS else None


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=("turn", "evaluate", "batch"), help="also print what one of them enters")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/walks.md")
    arguments = parser.parse_args()
    recorder = Recorder()
    recorder.install()
    with tempfile.TemporaryDirectory() as name:
        walks = asyncio.run(walked(Path(name), recorder))
    sys.setprofile(None)
    text = table(walks).text()
    print(text)
    if arguments.list:
        print(listing(walks[arguments.list]))
    if arguments.write:
        write("walks", f"{environment()}\n\n{text}")


async def walked(folder: Path, recorder: Recorder) -> dict[str, Walk]:
    """The walk of each request."""
    scenarios = one_collection(folder, WHERE["collection_slug"])
    settings = Settings(data=folder / "data", scenarios=scenarios, log_level="warning", job_workers=0)
    (folder / "data").mkdir()
    app = create_app(settings, ports=Ports(own_process=False))
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost/api/v1") as labs,
    ):
        episodes = await _opened(labs, BATCH)
        requests: dict[str, Request] = {
            "turn": lambda: labs.post(f"/episodes/{episodes[0]}/turns", json=_said()),
            "evaluate": lambda: labs.post("/evaluate", json={**WHERE, "messages": _conversation()}),
            "batch": lambda: labs.post("/batch/turns", json=_batch(episodes)),
        }
        return {name: await _walk(request, recorder) for name, request in requests.items()}


async def _opened(labs: httpx2.AsyncClient, number: int) -> list[str]:
    body = {**WHERE, "count": number, "config": {"seed": 1}}
    answer = (await labs.post("/batch/episodes", json=body)).raise_for_status().json()
    return [each["episode_id"] for each in answer["episodes"]]


async def _walk(request: Request, recorder: Recorder) -> Walk:
    for _ in range(WARM):
        (await request()).raise_for_status()
    await asyncio.sleep(0.2)  # what is done after an answer
    recorder.walk = walk = Walk()
    answer = await request()
    recorder.walk = None
    answer.raise_for_status()
    return walk


def _line() -> str:
    number = next(_numbers)
    return f"{LINES[number % len(LINES)][:-1]}, case {number}?"


def _said() -> Json:
    return {"messages": [{"role": "user", "content": _line()}]}


def _batch(episodes: list[str]) -> Json:
    return {"items": [{"episode_id": episode, **_said()} for episode in episodes]}


def _conversation() -> list[Json]:
    persona = {"role": "user", "content": "Hello, my blender leaks."}
    turns = ({"role": "assistant", "content": _line()}, {"role": "user", "content": "It leaks from the base."})
    return [persona, *turns]


def table(walks: dict[str, Walk]) -> Table:
    """The three figures of each."""
    counted = Table("what one request enters", ["", "modules", "functions", "changes of module"])
    for name, walk in walks.items():
        counted.add(name, len(walk.modules), len(walk.functions), walk.changes)
    return counted


def listing(walk: Walk) -> str:
    """Each module with its functions and how often they were entered."""
    lines = []
    for module in sorted(walk.modules):
        entered = [(name, times) for (where, name, _), times in walk.functions.items() if where == module]
        lines.append(f"{module} ({len(entered)}): " + ", ".join(f"{name} {times}" for name, times in entered))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
