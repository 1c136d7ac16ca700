"""`labs calibrate --decisions`: maps of the configured decision model's probabilities, a kind of question each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from reward_server.cli.progress import shown
from reward_server.cli.tables import name_columns, show, wide_console
from reward_server.errors import InvalidRequest

if TYPE_CHECKING:
    from reward_server.fitting.decisions.ask import LabelledAnswers
    from reward_server.fitting.decisions.fit import KindFit
    from reward_server.fitting.reader.dataset import ReaderRow
    from reward_server.fitting.verdicts.read import LabelledTalk
    from reward_server.reward_models.reliability import FigureInterval
    from reward_server.settings import Settings

TURNS = 400
"""Of the packaged labelled turns so many are asked about; a paid model costs a call for each."""


def calibrate_decisions(settings: Settings, source: Path | None) -> None:
    """Ask the model what people answered, fit the maps, write them with curves, and print before and after."""
    from reward_server.decisions.maps import FOLDER, DecisionMaps, save_maps
    from reward_server.fitting.decisions.diagram import draw
    from reward_server.fitting.decisions.fit import fit_kinds

    if settings.decisions == "none":
        raise InvalidRequest("There is no decision model to calibrate: set LABS_DECISIONS, see docs/decision-models.md")
    rows, talks = _labelled(settings, source)
    answers, model_version, used = asyncio.run(_answers(settings, rows, talks))
    fits = fit_kinds(answers.given)
    console = wide_console()
    if fits:
        show(_table(fits), console)
    failed = ", ".join(f"{count} {kind}" for kind, count in answers.failures.most_common())
    typer.echo(f"{used}; {answers.failures.total()} without an answer{f' ({failed})' if failed else ''}")
    kinds = {each.kind: each.map for each in fits if each.map is not None}
    if not kinds:
        raise InvalidRequest(f"No map was written for {model_version}: no kind of question has one that helps.")
    maps = DecisionMaps(model_version=model_version, kinds=kinds)
    path = save_maps(maps, settings.data / FOLDER)
    draw(path.with_suffix(".png"), fits)
    typer.echo(
        f"{maps.id} for {model_version} in {path}, curves beside it; servers use it from their next start, and "
        "scoring_version names it. To undo it, delete the file."
    )


def _labelled(settings: Settings, source: Path | None) -> tuple[list[ReaderRow], list[LabelledTalk]]:
    """Labelled turns by the names of their files, and verdicts from all others; never what is kept aside."""
    from reward_server.fitting.reader.dataset import packaged_turns, turns_of_file
    from reward_server.fitting.verdicts.read import FOLDER_NAMES, read
    from reward_server.server.engine import load_scenarios
    from scenarios.lint import COLLECTIONS
    from scenarios.turns import BACKGROUND_KIND

    if source is None:
        root = settings.scenarios or COLLECTIONS
        packaged = packaged_turns(root, load_scenarios(settings.scenarios, settings.libraries))
        rows = [row for row in packaged if not row.turn.kept_aside and row.turn.kind != BACKGROUND_KIND]
        return rows[:: max(1, -(-len(rows) // TURNS))], read(None)
    if not source.exists():
        raise InvalidRequest(f"There is no {source}.")
    files = sorted(each for name in FOLDER_NAMES for each in source.glob(name)) if source.is_dir() else [source]
    turns = [each for each in files if "__" in each.name or each.name.endswith(".turns.jsonl")]
    try:
        library = load_scenarios(settings.scenarios, settings.libraries) if turns else None
        rows = [row for path in turns if library is not None for row in turns_of_file(path, library)]
        rows = [row for row in rows if row.turn.kind != BACKGROUND_KIND]
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    found = rows, [talk for path in files if path not in turns for talk in read(path)]
    if not any(found):
        raise InvalidRequest(f"{source} holds neither labelled turns nor verdicts, as JSONL.")
    return found


async def _answers(
    settings: Settings, rows: Sequence[ReaderRow], talks: Sequence[LabelledTalk]
) -> tuple[LabelledAnswers, str, str]:
    """What the model answered, its version, and what was used for it."""
    from reward_server.decisions.build import decision_model
    from reward_server.fitting.decisions.ask import answers_of
    from reward_server.llm.counting import CountingMeter
    from reward_server.server.engine import load_matcher, load_scenarios

    meter, matcher = CountingMeter(), load_matcher(settings)
    model = decision_model(settings, (matcher.cosine, matcher.version), meter=meter, calibrated=False)
    assert model is not None, "an adapter is set"
    try:
        with shown(wide_console(stderr=True)) as report:
            found = await answers_of(
                model, load_scenarios(settings.scenarios, settings.libraries) if rows else {}, rows, talks, report
            )
    finally:
        await model.close()
    return found, model.model_version, meter.used(len(rows) + len(talks), "turn or conversation")


def _table(fits: Sequence[KindFit]) -> Table:
    table = Table()
    name_columns(table, "question", "answers", "right", "log loss", "ECE before", "ECE after (cross-fitted)", "map")
    for each in fits:
        if each.before is None or each.after is None:
            table.add_row(each.kind, str(each.n), "", "", "", "", each.why)
            continue
        before, after = each.before, each.after
        told = each.why if each.map is None else f"slope {each.map.slope:.2f}, bias {each.map.bias:+.2f}"
        right = f"{before.right:.0%} to {after.right:.0%}"
        loss = f"{before.loss:.3f} to {after.loss:.3f}"
        table.add_row(each.kind, str(each.n), right, loss, _interval(before.error), _interval(after.error), told)
    return table


def _interval(found: FigureInterval) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
