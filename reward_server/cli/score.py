"""`labs score`: score a data set of any size into a file, in this process or on many workers."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from reward_server.cli.evaluate import FORMAT_NAMES, library_of, task_of
from reward_server.cli.interruption import interruption_told
from reward_server.cli.progress import shown
from reward_server.cli.tables import wide_console
from reward_server.errors import InvalidRequest, LabsError

if TYPE_CHECKING:
    from reward_server.offline.run import ScoringTask
    from reward_server.offline.table_run import Summary
    from reward_server.offline.workers import Setup, WorkerPool


def score(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A Parquet, JSONL, JSON or CSV file, a folder of Parquet files or of a saved data set, or hf:NAME.",
        ),
    ],
    collection: Annotated[
        str | None, typer.Option(help="Collection of rows that name none; `./labs scenarios list` has them.")
    ] = None,
    scenario: Annotated[str | None, typer.Option(help="Scenario of rows that name none.")] = None,
    rubric: Annotated[
        Path | None,
        typer.Option(
            help="Judge all rows by this rubric without a persona, whatever scenario they name; docs/rubrics.md.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Results file: .jsonl or .parquet.", dir_okay=False)] = Path("scores.jsonl"),
    engine: Annotated[str, typer.Option(help="local: this process; ray: workers on Ray (extra `ray`).")] = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Workers on Ray. \\[default: processors]")] = None,
    split: Annotated[str, typer.Option(help="Split of a data set.")] = "train",
    format_name: Annotated[str, typer.Option("--format", help=f"Format of the rows: {FORMAT_NAMES}.")] = "auto",
    agent_role: Annotated[
        str, typer.Option(help="Who the agent is in `messages`: assistant or user. A row's own agent_role comes first.")
    ] = "assistant",
    agent_speaker: Annotated[
        list[str] | None,
        typer.Option(help="What rows call the agent, if they have other roles or names; may be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this number of rows.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    root: Annotated[
        Path | None,
        typer.Option(
            "--dir", help="Folder of collections. \\[default: LABS_SCENARIOS, else the packaged ones]", file_okay=False
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Data folder of the server whose reward model to use; LABS_DATA.", file_okay=False),
    ] = None,
) -> None:
    """Score a data set into a file; rewards equal the server's with every engine.

    Rows of JSON: {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}. The
    agent is the assistant. Give --collection and --scenario, or collection_slug and scenario_slug in each row. More in
    docs/offline.md.
    """
    from reward_server.offline.output import check_out
    from reward_server.offline.results import holds_results
    from reward_server.offline.sources import rows_of
    from reward_server.offline.table_run import journal_of, score_into
    from reward_server.offline.workers import Setup
    from reward_server.settings import load_settings

    task = with_rubric(task_of(collection, scenario, format_name, agent_role, agent_speaker), rubric)
    settings = load_settings({"data": data})
    check_out(out)
    if rubric is None:
        library_of(root or settings.scenarios, collection, scenario)
    made = _engine(engine, Setup(settings, root, task), workers)
    console = wide_console()
    with interruption_told(out, partial(holds_results, journal_of(out))), shown(console) as report:
        rows = islice(rows_of(source, split), limit)
        summary = score_into(
            out, rows, made, resume=resume, on_scored=lambda count: report("conversations", count, count)
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


def _engine(name: str, setup: Setup, workers: int | None) -> WorkerPool:
    from reward_server.offline.on_ray import RayWorkerPool
    from reward_server.offline.workers import LocalWorkerPool

    if name == "ray":
        return RayWorkerPool(setup, workers or os.cpu_count() or 1)
    if name != "local":
        raise InvalidRequest("--engine must be local or ray")
    if workers is not None:
        raise InvalidRequest("--workers needs --engine ray")
    return LocalWorkerPool(setup)


def _say(console: Console, summary: Summary, out: Path) -> None:
    from reward_server.offline.report import ALL_EQUAL
    from reward_server.scoring.scorer import NEEDS_A_MODEL

    mean = f", mean reward {summary.rewards / summary.scored:.3f}" if summary.scored else ""
    where = f": {out}" if summary.scored else "; no file was written"
    lines = [f"{summary.scored} conversations scored, {summary.failed} not{mean}{where}"]
    lines += [ALL_EQUAL] if summary.all_equal else []
    if summary.undecided:
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(summary.undecided.items()))
        lines.append(f"  not decided, so they count for nothing: {listed}. {NEEDS_A_MODEL}")
    lines += [f"  not scored: {count} × {code}" for code, count in sorted(summary.errors.items())]
    lines += [f"    {error}" for error in summary.first_errors]
    lines += [
        f"  worker {name}: {did.conversations} in {did.seconds:.1f} s, {did.per_second:.1f} a second"
        for name, did in sorted(summary.workers.items())
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
