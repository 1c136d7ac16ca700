"""`labs calibrate`: fit a calibration on labels or pairs, or rescale the server's own rewards."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from reward_server.cli.calibrate_decisions import calibrate_decisions
from reward_server.cli.progress import busy
from reward_server.cli.tables import name_columns, show, wide_console
from reward_server.errors import InvalidRequest, LabsError
from reward_server.program import as_called
from scenarios.spelling import counted

if TYPE_CHECKING:
    from reward_server.fitting.calibration.read import CalibrationInput
    from reward_server.fitting.calibration.run import SavedCalibration
    from reward_server.reward_models.calibration import Calibration, Error
    from reward_server.settings import Settings

SERVED_NAMES = ("rubric", "reward_model")
"""What composites call the judges that every server may have; all other names are those of plug-ins."""


Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="Rows of reward and label, pairs with a winner, or the folder or results.jsonl of an evaluation.",
    ),
]
Method = Annotated[
    str | None,
    typer.Option(help="temperature (pairs), isotonic (labels), or without labels z_score, min_max, percentile."),
]
Labels = Annotated[
    Path | None, typer.Option(help="Labels for the results of an evaluation, by key, id or row.", exists=True)
]
Scale = Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="The labels that mean 0 and 1.")]
Owner = Annotated[
    str | None,
    typer.Option("--for", help="Scoring version or reward model of the rewards, if the rows do not name it."),
]
Combine = Annotated[
    bool, typer.Option("--combine", help="Also fit one non-negative combination of several named rewards.")
]
FromStore = Annotated[
    bool,
    typer.Option(
        "--from-store",
        help="Fit to the server's own plain rewards: of the newest scoring version, or of the one in --for.",
    ),
]
OfLab = Annotated[
    str | None,
    typer.Option(
        "--lab",
        help="With --from-store, the rewards of this lab only; the calibration is its own. \\[default: the only lab]",
    ),
]
AllLabs = Annotated[bool, typer.Option("--all-labs", help="Use the rewards of all labs together.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder to write to. \\[default: where the server looks]", file_okay=False)
]
Remove = Annotated[
    str | None, typer.Option(metavar="ID", help="Delete a calibration and its diagram; nothing is fitted.")
]
Decisions = Annotated[
    bool,
    typer.Option(
        "--decisions",
        help="Map the probabilities of the decision model of LABS_DECISIONS instead: DATA are labelled turns and "
        "verdicts, a file or a folder. \\[default: the packaged ones]",
    ),
]
Data = Annotated[Path | None, typer.Option(help="The server's data folder; LABS_DATA.", file_okay=False)]


def calibrate(
    source: Source = None,
    method: Method = None,
    labels: Labels = None,
    scale: Scale = (0.0, 1.0),
    owner: Owner = None,
    combine: Combine = False,
    from_store: FromStore = False,
    lab: OfLab = None,
    all_labs: AllLabs = False,
    out: Out = None,
    remove: Remove = None,
    decisions: Decisions = False,
    data: Data = None,
) -> None:
    """Fit a calibration, write it with a reliability diagram, and print the errors before and after.

    Rows of JSON: {"reward": 0.6, "label": 1}, {"rewards": {"name": 0.6}, "label": 1} or {"reward_a": 0.6,
    "reward_b": 0.4, "winner": "a"}; or results.jsonl of an evaluation with --labels. More in docs/calibration.md.
    """
    from reward_server.clock import SystemClock
    from reward_server.fitting.calibration.read import read
    from reward_server.fitting.calibration.run import calibrate as run
    from reward_server.fitting.calibration.run import owner_of
    from reward_server.settings import load_settings

    settings = load_settings({"data": data})
    if decisions:
        if any(given is not None for given in (method, labels, owner, lab, out, remove)) or from_store or combine:
            raise InvalidRequest("--decisions can be combined with DATA and --data only")
        calibrate_decisions(settings, source)
        return
    folder = out or _folder(settings, lab)
    if remove is not None:
        if source is not None or method is not None or from_store:
            raise InvalidRequest("--remove can be combined with --out and --data only")
        _take_away(remove, folder)
        return
    chosen = _known(method)
    if (source is None) != from_store:
        raise InvalidRequest("give either a file or --from-store")
    if lab is not None and all_labs:
        raise InvalidRequest("give --lab or --all-labs, not both")
    if all_labs and not from_store:
        raise InvalidRequest("--all-labs has no effect without --from-store: leave it out, or add --from-store")
    if source is None:
        found = asyncio.run(_stored(settings, owner, chosen, lab, all_labs=all_labs))
    else:
        found = read(source, labels, scale)
    kept = run(found, chosen, owner_of(found, owner), SystemClock().now(), folder, combine=combine)
    _print(wide_console(), kept, found.left_out)
    with busy(Console(stderr=True), "seeing whether the server would take it"):
        warning = _stranger(kept.calibration, settings)
    if warning:
        typer.echo(warning, err=True)


def _folder(settings: Settings, lab: str | None) -> Path:
    """The folder in which the server looks for those that all labs share, or for a lab's own."""
    from reward_server.ownership import of_lab

    found = settings.calibrations if lab is None else of_lab(settings.calibrations, lab)
    if found is None:
        raise InvalidRequest("--lab must be at most 64 lower-case letters, digits and hyphens")
    return found


def _take_away(calibration_id: str, folder: Path) -> None:
    from reward_server.reward_models.calibration import take_away

    take_away(calibration_id, folder)
    typer.echo(f"{calibration_id} was deleted from {folder}")


def _known(method: str | None) -> str:
    """The method, if there is such a one."""
    from reward_server.fitting.calibration.calibration_fit import MINIMUM, check_method

    if method is None:
        raise typer.BadParameter(f"give --method, one of {', '.join(MINIMUM)}")
    check_method(method)
    return method


def _stranger(calibration: Calibration, settings: Settings) -> str | None:
    """A line where the server of this data folder would refuse the calibration as things stand."""
    from reward_server.cli.fitting import refused

    try:
        reason = refused([calibration], settings).get(calibration.id)
    except LabsError as error:
        return f"warning: cannot check whether it matches the server of {settings.data}: {error.message}"
    return reason and as_called(f"warning: the server of {settings.data} will reject it (409): {reason}")


def _print(console: Console, kept: SavedCalibration, left_out: int) -> None:
    from reward_server.reward_models.calibration import DEFAULT_REWARD

    calibration = kept.calibration
    show(_spreads(kept) if kept.rescaled else _errors(calibration), console)
    for line in _larger_errors(calibration):
        console.print(line, highlight=False, soft_wrap=True)
    if left_out:
        console.print(f"{counted(left_out, 'result')} without a reward or a label left out", highlight=False)
    if calibration.is_scaling:
        console.print(f"{calibration.method} rescales rewards; it is not a calibration to labels", highlight=False)
    unused = [name for name in calibration.names if name != DEFAULT_REWARD]
    if not calibration.is_of_parts and unused:
        console.print(
            f"the server will use the map of {DEFAULT_REWARD} alone, for plain rewards: {', '.join(unused)} and a "
            f"combination serve only where no reward is called {DEFAULT_REWARD}",
            highlight=False,
        )
    strangers = [name for name in calibration.names if name not in SERVED_NAMES]
    if calibration.is_of_parts and strangers:
        console.print(
            f"the server maps parts of a composite by the names of their judges (rubric, reward_model, a plug-in's): "
            f"it will use this one only if it has a plug-in called {', '.join(strangers)}",
            highlight=False,
        )
    console.print(
        f"{calibration.id}: {calibration.method} on {calibration.n} rows for {calibration.belongs_to}, "
        f"diagram in {kept.diagram}",
        highlight=False,
        soft_wrap=True,
    )


def _errors(calibration: Calibration) -> Table:
    """The distance of each reward from the labels, before and after."""
    table = Table()
    name_columns(table, "reward", "ECE before", "ECE after (cross-fitted)")
    for each in calibration.maps:
        table.add_row(each.name, _interval(each.ece_before), _interval(each.ece_after))
    if calibration.combination is not None:
        weights = ", ".join(f"{weight:.2f} {name}" for name, weight in calibration.combination.weights.items())
        table.add_row(f"all: {weights}", "", _interval(calibration.combination.ece_after))
    return table


def _larger_errors(calibration: Calibration) -> Iterator[str]:
    """A line for each error that the calibration did not lower: it is kept, and whoever reads the table may miss it."""
    afters: dict[str, float] = {}
    for each in calibration.maps:
        if each.ece_after is None:
            continue
        afters[each.name] = each.ece_after.value
        if each.ece_before is not None and each.ece_after.value > each.ece_before.value:
            yield f"the error of {each.name} is larger after than before: this map makes it no more reliable"
    combination = calibration.combination
    if combination is None or not afters:
        return
    best = min(afters, key=lambda name: (afters[name], name))
    if combination.ece_after.value > afters[best]:
        yield f"the error of the combination is larger than that of {best} after its own map"


def _interval(error: Error | None) -> str:
    """Of a reward that goes beyond 0 to 1 there is none before: it is no chance of anything."""
    return "not in [0, 1]" if error is None else f"{error.value:.3f} [{error.low:.3f}, {error.high:.3f}]"


def _spreads(kept: SavedCalibration) -> Table:
    """The position of rewards on both scales: without labels there is no error to speak of."""
    table = Table()
    name_columns(table, "reward", "scale")
    for heading in ("mean", "std", "5 %", "median", "95 %"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, found in sorted(kept.rescaled.items()):
        for label, scale, spread in ((name, "before", found.before), ("", "after", found.after)):
            numbers = (spread.mean, spread.std, spread.low, spread.median, spread.high)
            table.add_row(label, scale, *(f"{round(number, 3) + 0.0:.3f}" for number in numbers))  # no -0.000
    return table


async def _stored(
    settings: Settings, owner: str | None, method: str, lab: str | None, *, all_labs: bool
) -> CalibrationInput:
    """The plain rewards of the store: of the scoring version that is asked for, else of the newest one.

    Rewards of several versions are on several scales. Where there are more, it is said which are taken. Those of
    several labs are taken together only where that is asked for.
    """
    import numpy as np

    from reward_server.fitting.calibration.calibration_data import LabelledRows
    from reward_server.fitting.calibration.calibration_fit import MINIMUM, check_method
    from reward_server.fitting.calibration.read import CalibrationInput
    from reward_server.reward_models.calibration import DEFAULT_REWARD
    from reward_server.store.migrate import migrate
    from reward_server.store.store import Store

    await migrate(settings.database)
    store = await Store.open(settings.database)
    try:
        async with store.reading() as unit:
            counts = await unit.evaluations.plain_versions()
            versions = _of_one_lab(counts, lab, all_labs=all_labs)
            version = owner or next(iter(versions), None)
            rewards = await unit.evaluations.plain_rewards(version, lab) if version else []
    finally:
        await store.close()
    least = MINIMUM[check_method(method)]
    others = _counts({name: count for name, count in versions.items() if name != version})
    enough = _counts({name: count for name, count in versions.items() if name != version and count >= least})
    if not rewards and others:
        raise InvalidRequest(f"The store has no plain rewards of {version}; --for takes one of these: {others}")
    if not rewards:
        raise InvalidRequest("The store has no plain rewards yet: send conversations to /evaluate first.")
    if len(rewards) < least and enough:
        raise InvalidRequest(
            f"{method} needs {least} rewards of one scoring version, and of {version} the store has {len(rewards)}; "
            f"--for takes one of these: {enough}"
        )
    if others:
        typer.echo(
            f"{counted(len(rewards), 'reward')} of {version}; instead of it --for takes one of these: {others}",
            err=True,
        )
    groups = tuple(str(number) for number in range(len(rewards)))
    return CalibrationInput(LabelledRows({DEFAULT_REWARD: np.array(rewards)}, None, groups), version, 0)


def _of_one_lab(counts: Mapping[tuple[str, str], int], lab: str | None, *, all_labs: bool) -> Mapping[str, int]:
    """By scoring version, the newest first, of one lab or, where that is asked for, of all."""
    labs: Counter[str] = Counter()
    versions: Counter[str] = Counter()
    for (lab_id, version), count in counts.items():
        labs[lab_id] += count
        versions[version] += count if lab in (None, lab_id) else 0
    if lab is None and len(labs) > 1 and not all_labs:
        raise InvalidRequest(f"several labs have rewards in the store: give --lab or --all-labs: {_counts(labs)}")
    if lab is not None and labs and lab not in labs:
        raise InvalidRequest(f"lab {lab} has no plain rewards in the store; --lab takes one of these: {_counts(labs)}")
    return {version: count for version, count in versions.items() if count}


def _counts(versions: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in versions.items())
