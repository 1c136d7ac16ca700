"""`labs evaluate`: score a file of conversations, without a server, and write a report."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from reward_server.cli.interruption import interruption_told
from reward_server.cli.progress import shown
from reward_server.cli.tables import wide_console
from reward_server.errors import InvalidRequest, LabsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reward_server.llm.caller import LanguageModelCaller
    from reward_server.offline.rows import InputRow
    from reward_server.offline.run import FileEvaluation, ScoringTask
    from reward_server.settings import Settings
    from scenarios.library import Library

FORMAT_NAMES = (
    "auto, openai, sharegpt, tau_bench, hh, casino, abcd, mrbench, mathdial, mts_dialog, transcript (a field of "
    "`Speaker: text` lines), answers (input, output_1, output_2)"
)


def evaluate(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="JSONL, JSON or CSV, also gzipped.", exists=True)],
    collection: Annotated[
        str | None, typer.Option(help="Collection of rows that name none; `./labs scenarios list` has them.")
    ] = None,
    scenario: Annotated[str | None, typer.Option(help="Scenario of rows that name none.")] = None,
    format_name: Annotated[str, typer.Option("--format", help=f"Format of the rows: {FORMAT_NAMES}.")] = "auto",
    agent_role: Annotated[
        str, typer.Option(help="Who the agent is in `messages`: assistant or user. A row's own agent_role comes first.")
    ] = "assistant",
    agent_speaker: Annotated[
        list[str] | None,
        typer.Option(help="What rows call the agent, if they have other roles or names; may be repeated."),
    ] = None,
    persona_answers: Annotated[
        bool,
        typer.Option("--persona-answers", help="Let the scenario's persona answer instead of the recorded party."),
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for results and report.", file_okay=False)] = Path("evaluation"),
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
    """Score a file of conversations and write results.jsonl, summary.json, report.md and plots.

    Rows of JSON: {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}. The
    agent is the assistant. Give --collection and --scenario, or collection_slug and scenario_slug in each row. More in
    docs/offline.md.
    """
    from reward_server.offline.results import holds_results
    from reward_server.settings import load_settings

    task = task_of(collection, scenario, format_name, agent_role, agent_speaker)
    settings = load_settings({"data": data})
    console = wide_console()
    with interruption_told(out, partial(holds_results, out)):
        library = library_of(root or settings.scenarios, collection, scenario)
        summary = _run(source, task, library, settings, out, limit, resume, persona_answers, console)
    figures = summary["rewards"]
    mean = f"mean reward {figures['mean']:.3f}, " if figures else ""
    console.print(
        f"{summary['scored']} of {summary['conversations']} conversations scored, {mean}report in {out / 'report.md'}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    if "warning" in summary:
        console.print(summary["warning"], highlight=False, soft_wrap=True)
    for code, count in summary["errors"].items():
        console.print(f"  not scored: {count} × {code}", highlight=False, soft_wrap=True)
    for error in summary["first_errors"][:3]:
        console.print(f"    {error}", highlight=False, markup=False, soft_wrap=True)
    if not summary["scored"]:
        raise LabsError("nothing was scored")


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


def library_of(root: Path | None, collection: str | None, scenario: str | None) -> Library:
    """The scenarios, among them the one that the caller named."""
    from reward_server.access import scenario_for
    from reward_server.auth.lab import DEVELOPMENT_LAB
    from reward_server.server.engine import load_scenarios

    library = load_scenarios(root)
    if (collection is None) != (scenario is None):
        raise InvalidRequest("--collection and --scenario go together")
    if collection is not None and scenario is not None:
        scenario_for(DEVELOPMENT_LAB, library.catalog, collection, scenario)  # who can start this, may see all
    return library


def _run(
    source: Path,
    task: ScoringTask,
    library: Library,
    settings: Settings,
    out: Path,
    limit: int | None,
    resume: bool,
    persona_answers: bool,
    console: Console,
) -> dict[str, Any]:
    from personas.case.library import load_temperaments
    from reward_server.llm.build import language_model
    from reward_server.offline.recast import RecordedAgentPlayer
    from reward_server.offline.report import summarise, write_report
    from reward_server.offline.results import ResultsFile
    from reward_server.offline.rows import read_rows
    from reward_server.offline.run import FileEvaluation
    from reward_server.server.engine import offline_engine

    model = language_model(settings)
    with offline_engine(settings, library, model=model) as engine:
        scorer = engine.scorer
        recast = RecordedAgentPlayer(library.vault, load_temperaments(), engine.reader) if persona_answers else None
        with ResultsFile(out, scorer.scoring_version, resume) as results, shown(console) as report:
            total = sum(1 for _ in islice(read_rows(source), limit))
            report("rows", 0, total)
            rows = islice(read_rows(source), limit)
            evaluation = FileEvaluation(scorer, task, results, recast)
            asyncio.run(_evaluated(evaluation, rows, lambda n: report("rows", n, total), model))
            report("rows", total, total)
            summary = summarise(results.read(), source.name, scorer.scoring_version)
            rewards = [result["reward"] for result in results.read() if result["status"] == "success"]
    write_report(out, summary, rewards)
    return summary


async def _evaluated(
    evaluation: FileEvaluation,
    rows: Iterable[InputRow],
    on_row: Callable[[int], None],
    model: LanguageModelCaller | None,
) -> None:
    """Run it, and close the connections of the language model in the loop that opened them."""
    try:
        await evaluation.run(rows, on_row)
    finally:
        if model is not None:
            await model.close()
