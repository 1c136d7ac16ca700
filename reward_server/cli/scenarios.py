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

from reward_server.cli import draft, own_scenarios
from reward_server.cli.tables import name_columns, show, wide_console
from reward_server.errors import LabsError
from reward_server.program import as_called
from scenarios.spelling import counted

if TYPE_CHECKING:
    from reward_server.exam.report import ScenarioExam
    from reward_server.exam.rubric import RubricExam
    from reward_server.exam.run import Examiner
    from reward_server.llm.caller import LanguageModelCaller
    from scenarios.library import Library, SealedScenario

app = typer.Typer(help="Write, check and list scenarios.", no_args_is_help=True, pretty_exceptions_enable=False)

app.command()(draft.draft)
app.command()(own_scenarios.push)
app.command()(own_scenarios.pull)
app.command()(own_scenarios.diff)

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
def new(
    name: Annotated[str, typer.Argument(metavar="COLLECTION/SLUG")],
    root: Root = None,
    rubric_only: Annotated[
        bool,
        typer.Option(
            "--rubric-only", help="Write a rubric without a persona, for conversations held elsewhere; SLUG will do."
        ),
    ] = False,
) -> None:
    """Create a scenario from a commented example that passes the check, and its collection if necessary."""
    from scenarios.template import begin, begin_rubric

    try:
        written = begin_rubric(name, root) if rubric_only else begin(name, root)
    except ValueError as error:
        raise LabsError(str(error)) from None
    for path in written:
        typer.echo(f"wrote {path}")
    if rubric_only:
        own = name if "/" in name else f"{name}.yaml"
        typer.echo("This is a working example about deliveries: make the criteria and the logs your own.")
        typer.echo(f"next: {_check_command(own, root if '/' in name else None)}")
        return
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
    """Lint scenarios, then play natural agents and bad policies against them in the real simulator and scorer.

    Of a rubric without a persona (in a collection, or a file of its own): score the logs beside it, and empty talk.
    """
    from reward_server.exam.report import markdown

    given, root = root, _root(root)
    library, findings, alone = _to_check(root, names or [])
    console = wide_console(stderr=as_json)
    to_judge = _rubrics_of(library, root) + alone
    exams: list[ScenarioExam] = []
    rubrics: list[RubricExam] = []
    if _played(library) or not to_judge:
        with _examiner(library, root, seeds, probing) as (examiner, version, _):
            exams = _run(examiner, library, console)
    if to_judge:
        with _examiner(library, root, seeds, probing, asks=True) as (examiner, version, model):
            rubrics = _examined(examiner, to_judge, model)
    _settle_drafts([Path(name) for name in names or [] if name.endswith(".yaml")], rubrics[-len(alone) :])
    if as_json:
        report = {"scoring_version": version, "scenarios": [exam.to_json() for exam in exams]}
        report |= {"rubrics": [exam.to_json() for exam in rubrics]} if rubrics else {}
        typer.echo(json.dumps(report, indent=2))
    else:
        if exams:
            _print(exams, console, given, details=details)
        for rubric in rubrics:
            _print_rubric(rubric, console)
    if markdown_file:
        markdown_file.write_text(markdown(exams, version), encoding="utf-8")
    if findings:
        typer.echo(f"{counted(findings, 'finding')} in files that were left out, see above", err=True)
    if findings or not all([*(exam.passed for exam in exams), *(exam.passed for exam in rubrics)]):
        raise typer.Exit(1)


Rubrics = list[tuple["SealedScenario", Path]]
"""Rubrics without a persona, each with the file of its logs."""


def _to_check(root: Path | None, names: list[str]) -> tuple[Library, int, Rubrics]:
    """What is to be checked, how many findings there were, and the rubrics that are files of their own."""
    from scenarios.exam_logs import SUFFIX
    from scenarios.given import rubric_of_file
    from scenarios.library import NO_SCENARIOS
    from scenarios.yamlfile import ScenarioFileError

    paths = [Path(name) for name in names if name.endswith(".yaml")]
    others = [name for name in names if not name.endswith(".yaml")]
    alone: Rubrics = []
    for path in paths:
        try:
            alone.append((rubric_of_file(path), path.with_suffix(SUFFIX)))
        except ScenarioFileError as error:
            raise LabsError(str(error)) from None
    library, findings = (NO_SCENARIOS, 0) if paths and not others else _lint(root, others)
    return library, findings, alone


def _rubrics_of(library: Library, root: Path | None) -> Rubrics:
    """Those of the collections."""
    from scenarios.exam_logs import SUFFIX
    from scenarios.lint import COLLECTIONS

    opened = (library.vault.open(*name) for name in library.vault.names())
    folder = root or COLLECTIONS
    return [(each, folder / each.collection / f"{each.card.slug}{SUFFIX}") for each in opened if not each.has_persona]


def _examined(examiner: Examiner, rubrics: Rubrics, model: LanguageModelCaller | None) -> list[RubricExam]:
    from reward_server.exam.rubric import examine_rubric
    from scenarios.exam_logs import load_logs

    async def work() -> list[RubricExam]:
        try:
            return [await examine_rubric(each, load_logs(path), examiner.marker.scorer) for each, path in rubrics]
        finally:
            if model is not None:
                await model.close()

    try:
        return asyncio.run(work())
    except ValueError as error:
        raise LabsError(str(error)) from None


def _settle_drafts(paths: list[Path], exams: list[RubricExam]) -> None:
    """A draft that has passed on graded logs is a rubric."""
    from reward_server.exam.draft import MARK

    for path, exam in zip(paths, exams, strict=False):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if exam.passed and exam.is_proven and any(line.strip() == MARK for line in lines):
            path.write_text("".join(line for line in lines if line.strip() != MARK), encoding="utf-8")
            typer.echo(f"{path} is no draft any more", err=True)


def _print_rubric(exam: RubricExam, console: Console) -> None:
    console.print(f"\n[bold]{escape(exam.name)}[/]", highlight=False)
    for line in exam.lines:
        console.print(f"  {line}", highlight=False, markup=False)
    for failure in (*exam.unscorable, *exam.failures):
        console.print(f"  ✗ {failure}", highlight=False, markup=False, soft_wrap=True)
    for note in exam.notes:
        console.print(f"  · {note}", highlight=False, markup=False)
    console.print(f"  {'passed' if exam.passed else 'failed'}", highlight=False, markup=False)


def _check_command(name: str, root: Path | None) -> str:
    """The command that checks a scenario, to be copied."""
    return as_called(f"./labs scenarios check {name}") + ("" if root is None else f" --dir {shlex.quote(str(root))}")


def _root(given: Path | None) -> Path | None:
    """The folder of collections: the option, else the setting; None for the packaged ones."""
    from reward_server.settings import load_settings

    return given or load_settings().scenarios


def _lint(root: Path | None, names: Iterable[str]) -> tuple[Library, int]:
    """Print what to mend; return what can be used, and how many errors there were."""
    from scenarios.library import load_sound

    library, errors = load_sound(root, list(names) or None)
    for finding in (*errors, *library.warnings):
        typer.echo(str(finding), err=True)
    if errors and not library.vault.names():
        raise LabsError(f"{counted(len(errors), 'finding')}; nothing could be checked")
    return library, len(errors)


@contextmanager
def _examiner(
    library: Library, root: Path | None, seeds: int, probing: int, *, asks: bool = False
) -> Iterator[tuple[Examiner, str, LanguageModelCaller | None]]:
    """An examiner on the server's own matcher and scorer, and the scoring version.

    With `asks`, the language model of the settings is asked, too: for rubrics, as played exams would ask it hundreds of
    times.
    """
    from reward_server.exam.build import examiner_of
    from reward_server.llm.build import language_model
    from reward_server.server.engine import offline_engine
    from reward_server.settings import load_settings

    settings = load_settings()
    model = language_model(settings) if asks else None
    with offline_engine(settings, library, model=model) as engine:
        examiner = examiner_of(library, engine, root, seeds=range(1, seeds + 1), probing_turns=probing)
        yield examiner, engine.scorer.scoring_version, model


def _played(library: Library) -> list[SealedScenario]:
    """Those with a persona."""
    opened = (library.vault.open(*name) for name in library.vault.names())
    return [each for each in opened if each.has_persona]


def _run(examiner: Examiner, library: Library, console: Console) -> list[ScenarioExam]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    sealed = _played(library)
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
    if exam.failures or exam.notes:
        console.print(f"\n[bold]{escape(_check_command(exam.figures.scenario, root))}[/]", highlight=False)
    for failure in exam.failures:
        console.print(f"  [red]✗[/] {failure.text}", highlight=False)
        for detail in failure.details:
            console.print(f"      {detail}", highlight=False, markup=False)
    for note in exam.notes:
        console.print(f"  · {note.text}", highlight=False, markup=False)
        for detail in note.details if details else ():
            console.print(f"      {detail}", highlight=False, markup=False)


if __name__ == "__main__":
    app()
