"""`labs reward-model`: train, measure, list, activate and export learned reward models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reward_server.cli import training
from reward_server.cli.models import (
    Data,
    Encoder,
    Lab,
    Model,
    Scale,
    SkipBad,
    Ties,
    featurisers_of,
    read,
    registry_of,
    shelf_of,
    show_figures,
)
from reward_server.cli.progress import shown
from reward_server.cli.tables import wide_console
from reward_server.errors import InvalidRequest
from reward_server.program import as_called
from scenarios.spelling import counted

if TYPE_CHECKING:
    from reward_server.reward_models.artefact import Artefact, Card
    from reward_server.reward_models.registry import Registry
    from reward_server.settings import Settings

app = typer.Typer(help="Train, measure and serve learned reward models.", no_args_is_help=True)


@app.command()
def train(
    source: training.Source = None,
    out: training.Out = Path("reward-model"),
    from_store: training.FromStore = False,
    lab: training.OfLab = None,
    all_labs: training.AllLabs = False,
    version: training.Version = None,
    scale: Scale = (0.0, 1.0),
    ties: Ties = "drop",
    held_out: training.HeldOut = 0.2,
    seed: training.Seed = 0,
    epochs: training.Epochs = 200,
    keep_uncertainty: training.KeepUncertainty = False,
    reads: training.ReadsOption = "answers",
    features: training.Features = "auto",
    counterparts: training.CounterpartsOption = "auto",
    relations: training.RelationsOption = True,
    style_data: training.StyleData = None,
    skip_bad: SkipBad = 0,
    encoder: Encoder = None,
    resume: training.Resume = False,
    data: Data = None,
) -> None:
    """Train a reward model and measure it on held-out dialogues.

    Rows of JSON: {"messages": ..., "score": 0.7}, or {"chosen": ..., "rejected": ...}; rows of hh-rlhf, LLMBar
    and MRBench are read as they are. More in docs/reward-models.md.
    """
    # fmt: off
    wanted = training.TrainOptions(
        source=source, out=out, from_store=from_store, lab=lab, all_labs=all_labs, version=version, scale=scale,
        ties=ties, held_out=held_out, seed=seed, epochs=epochs,
        keep_uncertainty=keep_uncertainty, reads=reads, features=features,
        counterparts=counterparts, relations=relations, style_data=style_data, skip_bad=skip_bad,
        resume=resume,
    )
    # fmt: on
    wanted.check()
    with training.told(out):
        from reward_server.settings import load_settings

        settings = load_settings({"data": data, "encoder": encoder})
        trained = training.run(wanted, settings)
    training.announce(trained, settings, out, lab)


@app.command()
def evaluate(
    model: Model,
    source: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="Rows as for `train`, but not the ones it was trained on.", dir_okay=False),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for report.md and plots.", file_okay=False)] = None,
    scale: Scale = (0.0, 1.0),
    ties: Ties = "drop",
    skip_bad: SkipBad = 0,
    encoder: Encoder = None,
    data: Data = None,
) -> None:
    """Measure a model on other data, next to the simple baselines that were fitted with it."""
    console = wide_console()
    with shown(console) as report:
        report("reading", 0, 1)
        from reward_server.fitting.reward_model.evaluate import evaluate as measure
        from reward_server.fitting.reward_model.evaluate import lacks, overlap_line, systems_line
        from reward_server.fitting.reward_model.report import in_words, page, pictures, uncertainty_lines, write_folder
        from reward_server.reward_models.artefact import REPORT, refuse_taken
        from reward_server.reward_models.plain_features import PlainFeatures
        from reward_server.settings import load_settings

        settings = load_settings({"data": data})
        found = _open(model, settings)
        if out is not None:
            refuse_taken(out)
        dataset = read(source, scale, ties, skip_bad)
        report("reading", 1, 1)
        report("loading the encoder", 0, 1)
        featurisers = featurisers_of(settings, encoder or found.card.encoder)
        featuriser, plain = featurisers.of(found), PlainFeatures(featurisers.encoder)
        report("loading the encoder", 1, 1)
        measured = measure(found, dataset, featuriser, plain, shelf=shelf_of(settings), report=report)
    show_figures(console, measured)
    overlap = overlap_line(found, dataset)
    missing = (*systems_line(found, dataset), *dataset.notes, *lacks(found, dataset))
    for line in (overlap, *missing, *in_words(measured), *uncertainty_lines(measured.uncertainty)):
        console.print(line, highlight=False)
    if out is not None:
        images = pictures(measured)
        groups = counted(len(dataset.groups), "group")
        notes = [f"model {found.id}, data {dataset.digest[:12]}, {groups} by {dataset.grouped_by}", overlap, *missing]
        write_folder(out, {**images, REPORT: page(f"Evaluation of {found.id}", notes, measured, images, "these rows")})
        console.print(f"report in {out / REPORT}", highlight=False)


@app.command("list")
def list_models(lab: Lab = None, data: Data = None) -> None:
    """List the models of the server, one per line, newest first; those that serve are marked.

    Behind the models that all labs share come those of each lab, with its name.
    """
    from reward_server.settings import load_settings

    registry = registry_of(load_settings({"data": data}), lab)
    shown = {lab or "": registry, **registry.of_labs()}
    lines = [line for owner, each in shown.items() for line in _lines(each, owner)]
    for line in lines:
        typer.echo(line)
    if not lines:
        hint = "There is no reward model yet: ./labs reward-model train DATA --out FOLDER makes one."
        typer.echo(as_called(hint), err=True)


@app.command()
def activate(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A model's id, or its folder.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Deactivate the active model.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Activate it even if it is below a simple baseline or judges style.")
    ] = False,
    lab: Lab = None,
    encoder: Encoder = None,
    data: Data = None,
) -> None:
    """Activate a model as `reward_model`, for all labs or for one; running servers notice immediately."""
    from reward_server.reward_models.dataset import NOT_FOR_SCENARIOS
    from reward_server.reward_models.fitness import unfit
    from reward_server.settings import load_settings

    if (model is None) != off:
        raise InvalidRequest("give a model, or --off")
    settings = load_settings({"data": data, "encoder": encoder})
    registry = registry_of(settings, lab)
    if model is None:
        registry.deactivate()
        told = [] if lab else _own_models(registry)
        whose = f" of lab {lab}" if lab else " that all labs share" if told else ""
        for line in (f"No reward model{whose} is active.", *told):
            typer.echo(line, err=True)
        return
    found = registry.open(model) if registry.has(model) else _open(model, settings)
    featurisers_of(settings).of(found)  # the server could not serve what does not fit its encoder
    if (why := unfit(found.card)) and not force:
        raise InvalidRequest(f"{found.id} is not activated: {why}; --force activates it anyway")
    registry.activate(registry.add(found).id)
    for line in (f"Reward model {found.id} is active.", *_own_models(registry)):
        typer.echo(line, err=True)
    for note in found.card.data.notes:
        if NOT_FOR_SCENARIOS in note:
            typer.echo(f"labs: its card says: {note}", err=True)


@app.command()
def export(
    model: Model,
    out: Annotated[Path, typer.Option(help="Folder to write.", file_okay=False)],
    data: Data = None,
) -> None:
    """Export a model with its encoder and a README to a folder that can be used elsewhere."""
    from reward_server.reward_models.portable import export as write
    from reward_server.settings import load_settings

    found = _open(model, load_settings({"data": data}))
    write(found, out)
    typer.echo(f"{found.id} was exported to {out}.", err=True)


# --- reading and showing --------------------------------------------------------------------------


def _open(model: str, settings: Settings) -> Artefact:
    """A model by its id, or by the folder it lies in."""
    from reward_server.reward_models import artefact

    if Path(model).is_dir():
        return artefact.read(Path(model))
    return registry_of(settings).open(model)


def _own_models(registry: Registry) -> list[str]:
    """One line for each lab that is served by a model of its own, whatever is active for all."""
    found = {lab_id: own.active_id() for lab_id, own in registry.of_labs().items()}
    return [
        f"Lab {lab_id} has an active model of its own, {model_id}: --lab {lab_id}."
        for lab_id, model_id in found.items()
        if model_id is not None
    ]


def _lines(registry: Registry, lab: str) -> list[str]:
    active = registry.active_id()
    return [_line(card, lab, active=card.id == active) for card in registry.cards()]


def _line(card: Card, lab: str, *, active: bool) -> str:
    """One model on one line, so that it can be searched and cut."""
    overall, pairs = card.metrics.get("score", {}), card.metrics.get("pairs", {})
    figures = [
        f"{name}={found[name]['value']:.3f}"
        for found, name in ((overall, "r2"), (overall, "spearman"), (pairs, "pairwise"))
        if name in found
    ]
    data = card.data
    parts = [card.id, f"created={card.created:%Y-%m-%dT%H:%MZ}", f"data={data.sha256[:12]}"]
    parts += [f"labelled={data.labelled}", f"pairs={data.pairs}", *figures]
    parts += [f"lab={lab}"] if lab else []
    return "  ".join([*parts, "active"] if active else parts)
