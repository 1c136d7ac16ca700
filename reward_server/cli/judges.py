"""`labs judges`: who judges here, and how far each of them can be trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from reward_server.cli.judges_evaluate import evaluate
from reward_server.cli.progress import shown
from reward_server.cli.spending import spending
from reward_server.cli.tables import name_columns, show, wide_console
from reward_server.errors import InvalidRequest

if TYPE_CHECKING:
    from reward_server.fitting.agreement.read import LabelledEntry
    from reward_server.preferences.figures import Figures
    from reward_server.settings import Settings

app = typer.Typer(help="List judges, measure how far they agree, and show what they cost.", no_args_is_help=True)
app.command()(spending)
app.command()(evaluate)

Data = Annotated[Path | None, typer.Option("--data", help="The server's data folder; LABS_DATA.", file_okay=False)]
Root = Annotated[Path | None, typer.Option("--dir", help="Folder of collections.", file_okay=False)]


@app.command("list")
def list_judges(root: Root = None, data: Data = None) -> None:
    """Show the judges of this server: names, versions, what they decide, whether they report uncertainty."""
    from reward_server.fitting.agreement.roster import PER_ANSWER, seats
    from reward_server.llm.build import language_model
    from reward_server.server.engine import load_scenarios, offline_engine
    from reward_server.settings import load_settings

    settings = load_settings({"data": data})
    library = load_scenarios(root or settings.scenarios, settings.libraries)

    async def read() -> None:
        model = language_model(settings)
        try:
            with offline_engine(settings, library, model=model) as engine:
                found = seats(engine, settings.llm_samples)
        finally:
            if model is not None:
                await model.close()
        legend = f"{PER_ANSWER}: some answers report uncertainty, others do not"
        table = Table(caption=legend if any(seat.uncertainty == PER_ANSWER for seat in found) else None)
        name_columns(table, "judge", "version")
        for heading in ("decides", "states uncertainty"):
            table.add_column(heading, overflow="fold")
        for seat in found:
            table.add_row(seat.name, seat.version, seat.decides, seat.uncertainty)
        show(table, wide_console())

    asyncio.run(read())


@app.command()
def agree(
    source: Annotated[
        Path, typer.Argument(metavar="DATA", help="Conversations or scores with labels, or pairs with a winner.")
    ],
    judge: Annotated[
        list[str] | None, typer.Option(help="A judge to measure; may be repeated. \\[default: rubric]")
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Collection of rows that name none.")] = None,
    scenario: Annotated[str | None, typer.Option(help="Scenario of rows that name none.")] = None,
    scale: Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="The labels that mean 0 and 1.")] = (
        0.0,
        1.0,
    ),
    attacked: Annotated[
        int, typer.Option(min=0, help="Number of conversations to attack and to read again; 0 for no attacks.")
    ] = 50,
    out: Annotated[Path, typer.Option(help="Folder for report, figures and plot.", file_okay=False)] = Path(
        "agreement"
    ),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the files of an earlier report.")] = False,
    root: Root = None,
    data: Data = None,
) -> None:
    """Measure judges against people, each other, themselves and attacks; write report.md, agreement.json and a plot.

    Rows of JSON: {"messages": ..., "label": 0.7}, or {"response_a": ..., "response_b": ..., "winner": "a"}, or
    scores made elsewhere, {"scores": {"judge": 0.6}, "label": 0.7}. More in docs/calibration.md.
    """
    from reward_server.fitting.agreement.read import RowDefaults, read
    from reward_server.fitting.agreement.report import REPORT, markdown, refuse_written, write
    from reward_server.fitting.agreement.run import of_scores
    from reward_server.settings import load_settings

    if not source.is_file():
        raise InvalidRequest(f"There is no file {source}.")
    if not force:
        refuse_written(out)
    entries = read(source, RowDefaults(collection, scenario, scale))
    console = wide_console()
    if entries[0].sides[0].scores:
        if judge:
            raise InvalidRequest("The rows already contain scores: leave out --judge.")
        found = of_scores(entries)
    else:
        settings = load_settings({"data": data})
        found = asyncio.run(_measure(settings, root, entries, judge or ["rubric"], attacked, console))
    write(out, found)
    console.print(markdown(found).rpartition("![")[0].rstrip(), highlight=False, markup=False, soft_wrap=True)
    console.print(f"report in {out / REPORT}", highlight=False, markup=False, soft_wrap=True)


async def _measure(
    settings: Settings,
    root: Path | None,
    entries: Sequence[LabelledEntry],
    names: Sequence[str],
    attacked: int,
    console: Console,
) -> Figures:
    from reward_server.fitting.agreement.roster import chosen, seats
    from reward_server.fitting.agreement.run import PAIRWISE, AgreementTask, of_judges
    from reward_server.fitting.agreement.scores import MeasuredJudges, require_scenarios
    from reward_server.llm.build import language_model
    from reward_server.server.engine import load_scenarios, offline_engine

    library = load_scenarios(root or settings.scenarios, settings.libraries)
    require_scenarios([side for entry in entries for side in entry.sides], library.vault)
    model = language_model(settings)
    try:
        with offline_engine(settings, library, model=model) as engine:
            judges = chosen(seats(engine, settings.llm_samples), names)
            pairwise = None
            if engine.pairs is not None and PAIRWISE in names and len(entries[0].sides) == 2:
                pairwise = engine.pairs
                judges = MeasuredJudges(
                    tuple(name for name in judges.criteria if name != PAIRWISE), judges.conversation
                )
            task = AgreementTask(judges, attacked, pairwise)
            with shown(console) as report:
                return await of_judges(
                    entries,
                    engine.scorer,
                    library.vault,
                    task,
                    lambda done, total: report("conversations", done, total),
                )
    finally:
        if model is not None:
            await model.close()
