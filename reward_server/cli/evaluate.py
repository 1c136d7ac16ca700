"""`labs evaluate`: score conversations of any source without a server, in this process or on many workers."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from reward_server.cli.evaluate_options import (
    AgentRole,
    AgentSpeaker,
    CollectionOfRows,
    Data,
    Engine,
    FormatName,
    Limit,
    Out,
    PersonaAnswers,
    Resume,
    Reward,
    Root,
    Rubric,
    ScenarioOfRows,
    Source,
    Split,
    Workers,
)
from reward_server.cli.interruption import interruption_told
from reward_server.cli.progress import shown
from reward_server.cli.tables import wide_console
from reward_server.errors import InvalidRequest, LabsError

if TYPE_CHECKING:
    from reward_server.offline.run import ScoringTask
    from reward_server.offline.scoring import Summary
    from reward_server.offline.workers import Setup, WorkerPool
    from scenarios.library import Library


def evaluate(
    source: Source,
    collection: CollectionOfRows = None,
    scenario: ScenarioOfRows = None,
    rubric: Rubric = None,
    reward: Reward = None,
    out: Out = Path("evaluation"),
    format_name: FormatName = "auto",
    agent_role: AgentRole = "assistant",
    agent_speaker: AgentSpeaker = None,
    persona_answers: PersonaAnswers = False,
    engine: Engine = "local",
    workers: Workers = None,
    split: Split = "train",
    limit: Limit = None,
    resume: Resume = False,
    root: Root = None,
    data: Data = None,
) -> None:
    """Score conversations without a server, into a folder with a report or into one file; rewards equal the server's.

    Rows of JSON: {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}. The
    agent is the assistant. Give --collection and --scenario, or collection_slug and scenario_slug in each row. More in
    docs/offline.md.
    """
    from reward_server.offline.output import check_out
    from reward_server.offline.results import holds_results
    from reward_server.offline.scoring import journal_of, score_into
    from reward_server.offline.sources import rows_of
    from reward_server.offline.workers import Setup
    from reward_server.settings import load_settings

    task = with_rubric(task_of(collection, scenario, format_name, agent_role, agent_speaker), rubric)
    if rubric is not None and persona_answers:
        raise InvalidRequest("--persona-answers needs a scenario: leave out --rubric")
    if reward is not None and (rubric is not None or collection is not None or persona_answers or engine != "local"):
        raise InvalidRequest("--reward scores alone: leave out --rubric, --collection, --persona-answers and --engine")
    settings = load_settings({"data": data})
    check_out(out)
    rows = islice(rows_of(source, split), limit)  # before all that takes time: it says if there is no such file
    console = wide_console()
    with interruption_told(out, partial(holds_results, journal_of(out))):
        if rubric is None and reward is None:
            library_of(root or settings.scenarios, settings.libraries, collection, scenario)
        setup = Setup(settings, root, task, persona_answers)
        pool = engine_of(engine, setup, workers) if reward is None else _reward_pool(reward, task)
        with shown(console) as report:
            summary = score_into(
                out,
                rows,
                pool,
                source=Path(source).name,
                resume=resume,
                on_scored=lambda count: report("conversations", count, count),
            )
    _say(console, summary, out)
    if not summary.scored:
        raise LabsError("nothing was scored")


def with_rubric(task: ScoringTask, path: Path | None) -> ScoringTask:
    """The task, by the rubric of a file if there is one."""
    if path is None:
        return task
    if task.scenario is not None:
        raise InvalidRequest("--rubric judges all rows: leave out --collection and --scenario")
    from scenarios.given import rubric_of_file
    from scenarios.yamlfile import ScenarioFileError

    try:
        return replace(task, rubric=rubric_of_file(path))
    except ScenarioFileError as error:
        raise InvalidRequest(str(error)) from None


def engine_of(name: str, setup: Setup, workers: int | None) -> WorkerPool:
    """Who scores, from what the caller wrote."""
    from reward_server.offline.on_ray import RayWorkerPool
    from reward_server.offline.workers import LocalWorkerPool

    if name == "ray":
        return RayWorkerPool(setup, workers or os.cpu_count() or 1)
    if name != "local":
        raise InvalidRequest("--engine must be local or ray")
    if workers is not None:
        raise InvalidRequest("--workers needs --engine ray")
    return LocalWorkerPool(setup)


def _reward_pool(name: str, task: ScoringTask) -> WorkerPool:
    from reward_server.offline.reward import RewardWorkerPool, load_reward

    return RewardWorkerPool(name, load_reward(name), task)


def _say(console: Console, summary: Summary, out: Path) -> None:
    from reward_server.offline.output import is_file
    from reward_server.offline.report import ALL_EQUAL, UNDECIDED_TITLES
    from reward_server.scoring.total import NEEDS_A_MODEL

    mean = f", mean reward {summary.rewards / summary.scored:.3f}" if summary.scored else ""
    where = f", report in {out / 'report.md'}" if not is_file(out) else f": {out}" if summary.scored else ""
    lines = [f"{summary.scored} of {summary.scored + summary.failed} conversations scored{mean}{where}"]
    lines += [ALL_EQUAL] if summary.all_equal else []
    for field, title in {**UNDECIDED_TITLES, "capped_by": "Caps that lowered rewards"}.items():
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(summary.named[field].items()))
        lines += [f"  {title[0].lower()}{title[1:]}: {listed}"] if listed else []
    lines += [f"  {NEEDS_A_MODEL}"] if summary.named["undecided"] else []
    lines += [f"  not scored: {count} × {code}" for code, count in sorted(summary.errors.items())]
    lines += [f"    {error}" for error in summary.first_errors]
    lines += [
        f"  worker {name}: {did.conversations} in {did.seconds:.1f} s, {did.per_second:.1f} a second"
        for name, did in sorted(summary.workers.items())
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def score(context: typer.Context) -> None:
    """Say what it is called now."""
    given = " ".join(context.args) or "DATA"
    out = "" if "--out" in given else " --out scores.jsonl"
    raise InvalidRequest(f"`score` is `evaluate` now: ./labs evaluate {given}{out}")


def task_of(
    collection: str | None, scenario: str | None, format_name: str, agent_role: str, agent_speaker: list[str] | None
) -> ScoringTask:
    """The task of reading rows, from what the caller wrote."""
    from reward_server.offline.formats import FORMATS, Speakers
    from reward_server.offline.run import ScoringTask

    if format_name != "auto" and format_name not in FORMATS:
        raise InvalidRequest(f"unknown format {format_name}: use one of auto, {', '.join(FORMATS)}")
    if agent_role not in ("assistant", "user"):
        raise InvalidRequest("--agent-role must be assistant or user")
    speakers = tuple(agent_speaker or (("user",) if agent_role == "user" else ()))
    return ScoringTask(collection, scenario, format_name, Speakers(speakers))


def library_of(root: Path | None, shelf: Path, collection: str | None, scenario: str | None) -> Library:
    """The scenarios, among them the one that the caller named."""
    from reward_server.access import scenario_for
    from reward_server.auth.lab import DEVELOPMENT_LAB
    from reward_server.server.engine import load_scenarios

    library = load_scenarios(root, shelf)
    if (collection is None) != (scenario is None):
        raise InvalidRequest("--collection and --scenario go together")
    if collection is not None and scenario is not None:
        scenario_for(DEVELOPMENT_LAB, library.catalog, collection, scenario)  # who can start this, may see all
    return library
