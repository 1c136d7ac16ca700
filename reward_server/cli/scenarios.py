"""`labs scenarios`: list, begin and check scenarios; the author's workbench.

`check` shows private text of the author's own files (which question was misheard, what a bad agent was paid
for). It is meant for whoever can read those files anyway.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from reward_server.cli.tables import name_columns, show, wide_console
from reward_server.errors import LabsError
from reward_server.program import as_called
from scenarios.spelling import counted

if TYPE_CHECKING:
    from reward_server.exam.report import ScenarioExam
    from reward_server.exam.run import Examiner
    from scenarios.library import Library, SealedScenario

app = typer.Typer(help="Write, check and list scenarios.", no_args_is_help=True, pretty_exceptions_enable=False)

NOTES_PAGE = "docs/authoring.md#notes"

Root = Annotated[
    Path | None,
    typer.Option("--dir", help="Folder of collections. \\[default: the packaged ones]", file_okay=False),
]


@app.command("list")
def list_scenarios(root: Root = None) -> None:
    """List collections and scenarios: public facts only."""
    library, _ = _lint(_root(root), [])
    table = Table()
    name_columns(table, "collection", "scenario")
    for heading in ("turns", "tools", "dimensions", "personas"):
        table.add_column(heading, overflow="fold")
    for slug, collection in library.catalog.collections.items():
        for name, scenario in collection.scenarios.items():
            card = scenario.card
            dimensions, personas = ", ".join(scenario.dimensions), ", ".join(scenario.personas)
            table.add_row(slug, name, str(card.max_turns), str(len(card.tools)), dimensions, personas)
    show(table, wide_console())


@app.command()
def new(name: Annotated[str, typer.Argument(metavar="COLLECTION/SLUG")], root: Root = None) -> None:
    """Create a scenario from a commented example that passes the check, and its collection if necessary."""
    from scenarios.template import begin

    try:
        written = begin(name, root)
    except ValueError as error:
        raise LabsError(str(error)) from None
    for path in written:
        typer.echo(f"wrote {path}")
    scenario = name.rpartition("/")[2]
    own = f"{scenario}.yaml, {scenario}.rubric.yaml and the oracle in {scenario}.agents.yaml"
    typer.echo(f"This is a working example about a bicycle: make {own} your own.")
    typer.echo(
        "Remove the other agents and files of the scenario until you write your own: they fit the example alone."
    )
    typer.echo(f"next: {_check_command(name, root)}")


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COLLECTION[/SCENARIO]]…", help="Collection or scenario to check. \\[default: all]"),
    ] = None,
    root: Root = None,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Episodes of each agent with each temperament.")] = 2,
    probing: Annotated[int, typer.Option(min=0, max=2000, help="Probing turns per scenario.")] = 200,
    details: Annotated[bool, typer.Option("--details", help="Also print what each note rests on.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", help="Write the public table to this Markdown file.")
    ] = None,
) -> None:
    """Lint scenarios, then play natural agents and bad policies against them in the real simulator and scorer."""
    from reward_server.exam.report import markdown

    given, root = root, _root(root)
    library, findings = _lint(root, names or [])
    console = wide_console(stderr=as_json)
    with _examiner(library, root, seeds, probing) as (examiner, version):
        exams = _run(examiner, library, console)
    if as_json:
        report = {"scoring_version": version, "scenarios": [exam.to_json() for exam in exams]}
        typer.echo(json.dumps(report, indent=2))
    else:
        _print(exams, console, given, details=details)
    if markdown_file:
        markdown_file.write_text(markdown(exams, version), encoding="utf-8")
    if findings:
        typer.echo(f"{counted(findings, 'finding')} in files that were left out, see above", err=True)
    if findings or not all(exam.passed for exam in exams):
        raise typer.Exit(1)


def _check_command(name: str, root: Path | None) -> str:
    """The command that checks a scenario, to be copied."""
    return as_called(f"./labs scenarios check {name}") + ("" if root is None else f" --dir {shlex.quote(str(root))}")


def _root(given: Path | None) -> Path | None:
    """The folder of collections: the option, else the setting; None for the packaged ones."""
    from reward_server.settings import load_settings

    return given or load_settings().scenarios


def _lint(root: Path | None, names: Iterable[str]) -> tuple[Library, int]:
    """Print what cannot be used; return the rest, and how many findings there were."""
    from scenarios.library import load_sound

    library, findings = load_sound(root, list(names) or None)
    for finding in findings:
        typer.echo(str(finding), err=True)
    if findings and not library.vault.names():
        raise LabsError(f"{counted(len(findings), 'finding')}; nothing could be checked")
    return library, len(findings)


@contextmanager
def _examiner(library: Library, root: Path | None, seeds: int, probing: int) -> Iterator[tuple[Examiner, str]]:
    """An examiner on the server's own matcher and scorer, and the scoring version."""
    from personas.case.library import load_temperaments
    from reward_server.exam.marks import PlayScorer
    from reward_server.exam.run import Examiner
    from reward_server.server.engine import offline_engine
    from reward_server.settings import load_settings
    from scenarios.library import breaches, labelled_turns, natural_agents

    with offline_engine(load_settings(), library) as engine:
        examiner = Examiner(
            library=library,
            reader=engine.reader,
            marker=PlayScorer(engine.scorer, engine.reader, engine.matcher),
            temperaments=load_temperaments(),
            natural=natural_agents(library, root),
            turns=labelled_turns(library, root),
            breaches=breaches(library, root),
            seeds=tuple(range(1, seeds + 1)),
            probing_turns=probing,
        )
        yield examiner, engine.scorer.scoring_version


def _run(examiner: Examiner, library: Library, console: Console) -> list[ScenarioExam]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    sealed: list[SealedScenario] = [library.vault.open(*name) for name in library.vault.names()]
    exams: list[ScenarioExam] = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("exam", total=len(sealed))
        for scenario in sealed:
            progress.update(task, description=scenario.name)
            exams.append(asyncio.run(examiner.examine(scenario)))
            progress.advance(task)
    return exams


_LEGEND = (
    "oracle to poor: mean rewards; best bad policy: the highest mean reward of a policy that understands nothing; "
    "understood, wrong, opened, heard: on held-out labelled turns; leaks: facts told while they were closed"
)
"""What the columns mean."""


def _print(exams: list[ScenarioExam], console: Console, root: Path | None, *, details: bool) -> None:
    from reward_server.exam.report import HEADINGS, row

    table = Table()
    name_columns(table, "scenario")
    for heading in (*HEADINGS, "seconds", "result"):
        table.add_column(heading, overflow="fold")
    for exam in exams:
        cells = [exam.figures.scenario, *row(exam.figures), f"{exam.seconds:.1f}"]
        table.add_row(*cells, "[green]passed[/]" if exam.passed else "[red]failed[/]")
    show(table, console)
    console.print(_LEGEND, highlight=False)
    for exam in exams:
        _explain(exam, console, root, details=details)
    if any(exam.notes for exam in exams):
        more = "" if details else "; --details prints what they rest on"
        console.print(f"\nNotes (·) fail nothing{more}. What to do about each: {NOTES_PAGE}", highlight=False)
    passed = sum(exam.passed for exam in exams)
    console.print(f"\n{passed} of {len(exams)} scenarios passed")


def _explain(exam: ScenarioExam, console: Console, root: Path | None, *, details: bool) -> None:
    """Failures and notes, below the command that checks this scenario alone."""
    if exam.advice or exam.notes:
        console.print(f"\n[bold]{escape(_check_command(exam.figures.scenario, root))}[/]", highlight=False)
    for advice in exam.advice:
        console.print(f"  [red]✗[/] {advice.failure}", highlight=False)
        for detail in advice.details:
            console.print(f"      {detail}", highlight=False, markup=False)
    for note in exam.notes:
        console.print(f"  · {note.text}", highlight=False, markup=False)
        for detail in note.details if details else ():
            console.print(f"      {detail}", highlight=False, markup=False)


if __name__ == "__main__":
    app()
