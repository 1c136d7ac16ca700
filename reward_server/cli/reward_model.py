"""`labs reward-model`: train, measure, list, activate and export learned reward models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from reward_server.cli.progress import shown
from reward_server.errors import InvalidRequest, UnusableModel
from reward_server.program import as_called

if TYPE_CHECKING:
    from reward_server.jobs.reward_model.train import Task, Tools, Trained
    from reward_server.reward_models.artefact import Artefact, Card
    from reward_server.reward_models.conversation import Reads
    from reward_server.reward_models.dataset import Dataset
    from reward_server.reward_models.featurisers import Featurisers
    from reward_server.reward_models.registry import Registry
    from reward_server.settings import Settings

app = typer.Typer(help="Train, measure and serve learned reward models.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option("--data", help="The server's data folder; LABS_DATA.", file_okay=False)]
Encoder = Annotated[
    str | None, typer.Option(help="Text encoder: the packaged one, a folder or a hub name; LABS_ENCODER.")
]
Source = Annotated[
    Path | None,
    typer.Argument(metavar="DATA", help="JSONL of labelled conversations and preference pairs.", dir_okay=False),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model's id, as `list` shows it, or its folder.")]
Scale = Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="The labels that mean 0 and 1.")]
Ties = Annotated[str, typer.Option(help="Pairs without a winner: drop, or half (learned as a tie).")]


@app.command()
def train(
    source: Source = None,
    out: Annotated[Path, typer.Option(help="Folder for the model.", file_okay=False)] = Path("reward-model"),
    from_store: Annotated[
        bool, typer.Option("--from-store", help="Train on the server's own evaluations and comparisons.")
    ] = False,
    lab: Annotated[str | None, typer.Option(help="Of the store, this lab's rows alone. \\[default: all]")] = None,
    version: Annotated[
        str | None,
        typer.Option(
            help="Of the store, this scoring version: sv_ and 12 digits for all rewards of the rubric alone, a longer "
            "one for itself. \\[default: that of the newest reward of the rubric alone]"
        ),
    ] = None,
    scale: Scale = (0.0, 1.0),
    ties: Ties = "drop",
    held_out: Annotated[float, typer.Option(min=0.05, max=0.5, help="Share of the rows to measure on.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Decides the split and the order of rows.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, max=10_000, help="Most epochs of one run.")] = 200,
    uncertainty: Annotated[
        str, typer.Option(help="Where its doubt comes from: bayesian (last-layer posterior) or ensemble.")
    ] = "bayesian",
    members: Annotated[
        int | None, typer.Option(min=2, max=32, help="Heads of an ensemble, on resampled dialogues. \\[default: 8]")
    ] = None,
    reads: Annotated[
        str,
        typer.Option(
            help="What an agent earns by in a scenario: answers (those it got; its own words can only cost, so it "
            "cannot talk a score up), or words (its own, too: for labels that hang on how well it speaks)."
        ),
    ] = "answers",
    unfreeze: Annotated[
        bool,
        typer.Option(
            "--unfreeze", help="Fine-tune the encoder, too; kept only if it surely wins on held-out dialogues."
        ),
    ] = False,
    keep_by: Annotated[
        str | None,
        typer.Option(
            help="The figure by which it has to win: r2, spearman or pairwise. \\[default: r2, or pairwise where there "
            "are no labels]"
        ),
    ] = None,
    encoder: Encoder = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted training stopped.")] = False,
    data: Data = None,
) -> None:
    """Train a reward model and measure it on held-out dialogues.

    Rows of JSON: {"messages": ..., "score": 0.7}, or {"chosen": ..., "rejected": ...}; rows of hh-rlhf, LLMBar
    and MRBench are read as they are. More in docs/reward-models.md.
    """
    with _interruption_told(out):  # much is loaded here, too
        from reward_server.clock import SystemClock
        from reward_server.jobs.reward_model.train import Task
        from reward_server.reward_models.artefact import refuse_taken
        from reward_server.reward_models.bagging import MEMBERS
        from reward_server.reward_models.dataset import check_enough
        from reward_server.reward_models.finetune import Tuning
        from reward_server.reward_models.training import Recipe
        from reward_server.settings import load_settings

    if keep_by not in (None, "r2", "spearman", "pairwise"):
        raise InvalidRequest("--keep-by must be r2, spearman or pairwise")
    if uncertainty not in ("bayesian", "ensemble"):
        raise InvalidRequest("--uncertainty must be bayesian or ensemble")
    if reads not in ("answers", "words"):
        raise InvalidRequest("--reads must be answers or words")
    if source is not None and from_store:
        raise InvalidRequest("give a file or --from-store, not both")
    if source is None and not from_store:
        raise InvalidRequest("give a file of labelled conversations or preference pairs, or --from-store")
    for given, option, needs, has in (
        (lab, "--lab", "--from-store", from_store),
        (version, "--version", "--from-store", from_store),
        (keep_by, "--keep-by", "--unfreeze", unfreeze),
        (members, "--members", "--uncertainty ensemble", uncertainty == "ensemble"),
    ):
        if given is not None and not has:
            raise InvalidRequest(f"{option} has no effect without {needs}: leave it out, or add that")
    settings = load_settings({"data": data, "encoder": encoder})
    if resume:
        _refuse_finished(out)
    refuse_taken(out)
    with _interruption_told(out):
        dataset = _read(source, scale, ties) if source else stored_rows(settings, lab, version)
        check_enough(dataset)  # before anything slow is loaded
        task = Task(
            out=out,
            encoder=settings.encoder,
            created=SystemClock().now(),
            source="store" if from_store else "file",
            scale=scale,
            recipe=Recipe(seed=seed, epochs=epochs),
            held_out=held_out,
            reads=reads,  # type: ignore[arg-type]
            resume=resume,
            uncertainty=uncertainty,  # type: ignore[arg-type]
            members=members or MEMBERS,
            tuning=Tuning(seed=seed, reads=reads) if unfreeze else None,  # type: ignore[arg-type]
            keep_by=keep_by,  # type: ignore[arg-type]
        )
        trained = _trained(dataset, task, settings)
    _announce(trained, settings, out)


@app.command()
def evaluate(
    model: Model,
    source: Annotated[
        Path, typer.Argument(metavar="DATA", help="Rows as for `train`, which it was not trained on.", dir_okay=False)
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for report.md and plots.", file_okay=False)] = None,
    scale: Scale = (0.0, 1.0),
    ties: Ties = "drop",
    encoder: Encoder = None,
    data: Data = None,
) -> None:
    """Measure a model on other data, beside the simple baselines that were fitted with it."""
    from reward_server.jobs.reward_model.evaluate import evaluate as measure
    from reward_server.jobs.reward_model.evaluate import lacks, overlap_line
    from reward_server.jobs.reward_model.report import in_words, page, pictures, uncertainty_lines, write_folder
    from reward_server.reward_models.artefact import REPORT, refuse_taken
    from reward_server.reward_models.plain_features import PlainFeatures
    from reward_server.settings import load_settings

    settings = load_settings({"data": data})
    found = _open(model, settings)
    if out is not None:
        refuse_taken(out)
    dataset = _read(source, scale, ties)
    featurisers = _featurisers(settings, encoder or found.card.encoder)
    console = Console()
    with shown(console) as report:
        measured = measure(
            found,
            dataset,
            featurisers.of(found),
            PlainFeatures(featurisers.encoder),
            shelf=_shelf(settings),
            report=report,
        )
    _show_figures(console, measured)
    overlap = overlap_line(found, dataset)
    missing = lacks(found, dataset)
    for line in (overlap, *missing, *in_words(measured), *uncertainty_lines(measured.uncertainty)):
        console.print(line, highlight=False)
    if out is not None:
        images = pictures(measured)
        notes = [f"model {found.id}, data {dataset.digest[:12]}, {len(dataset.groups)} groups by {dataset.grouped_by}"]
        notes += [overlap, *missing]
        write_folder(out, {**images, REPORT: page(f"Evaluation of {found.id}", notes, measured, images)})
        console.print(f"report in {out / REPORT}", highlight=False)


@app.command("list")
def list_models(data: Data = None) -> None:
    """List the models of the server, newest first, one a line; the active one is marked."""
    from reward_server.settings import load_settings

    registry = _registry(load_settings({"data": data}))
    active = registry.active_id()
    cards = registry.cards()
    for card in cards:
        typer.echo(_line(card, active=card.id == active))
    if not cards:
        hint = "There is no reward model yet: ./labs reward-model train DATA --out FOLDER makes one."
        typer.echo(as_called(hint), err=True)


@app.command()
def activate(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A model's id, or its folder.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Let no model serve.")] = False,
    encoder: Encoder = None,
    data: Data = None,
) -> None:
    """Let a model serve as `reward_model`; running servers notice at once."""
    from reward_server.settings import load_settings

    if (model is None) != off:
        raise InvalidRequest("give a model, or --off")
    settings = load_settings({"data": data, "encoder": encoder})
    registry = _registry(settings)
    if model is None:
        registry.deactivate()
        typer.echo("No reward model is active.", err=True)
        return
    found = _open(model, settings)
    _featurisers(settings).of(found)  # the server could not serve what does not fit its encoder
    registry.activate(registry.add(found).id)
    typer.echo(f"Reward model {found.id} is active.", err=True)


@app.command()
def export(
    model: Model,
    out: Annotated[Path, typer.Option(help="Folder to write.", file_okay=False)],
    data: Data = None,
) -> None:
    """Write a model with its encoder and a README to a folder that can be used elsewhere."""
    from reward_server.reward_models.portable import export as write
    from reward_server.settings import load_settings

    found = _open(model, load_settings({"data": data}))
    write(found, out)
    typer.echo(f"{found.id} is exported to {out}.", err=True)


# --- reading --------------------------------------------------------------------------------------


def _read(source: Path, scale: tuple[float, float], ties: str) -> Dataset:
    from reward_server.jobs.reward_model.read import Reading, read_dataset

    return read_dataset(source, Reading(scale, ties))  # type: ignore[arg-type]  # Reading refuses what it does not know


def stored_rows(settings: Settings, lab: str | None, version: str | None) -> Dataset:
    """The server's own evaluations and comparisons, of one lab and one scoring version, as training data."""
    from reward_server.engine import load_scenarios
    from reward_server.jobs.reward_model.stored import composed_scenarios, read_stored, stored_dataset
    from reward_server.store.migrate import migrate

    library = load_scenarios(settings.scenarios)

    async def read() -> Dataset:
        await migrate(settings.database)
        rows = await read_stored(settings.database, lab)
        return stored_dataset(rows, library.catalog, version, composed_scenarios(library.vault))

    return asyncio.run(read())


def _open(model: str, settings: Settings) -> Artefact:
    """A model by its id, or by the folder it lies in."""
    from reward_server.reward_models import artefact

    if Path(model).is_dir():
        return artefact.read(Path(model))
    return _registry(settings).open(model)


def _registry(settings: Settings) -> Registry:
    from reward_server.reward_models.registry import Registry

    return Registry(settings.reward_models)


def _shelf(settings: Settings) -> Any:
    from reward_server.reward_models.feature_shelf import FeatureShelf

    return FeatureShelf((settings.cache or settings.data / "cache") / "features")


# --- training -------------------------------------------------------------------------------------


def _trained(dataset: Dataset, task: Task, settings: Settings) -> Trained:
    from reward_server.jobs.reward_model.interrupted import is_interrupted
    from reward_server.jobs.reward_model.train import train as run

    if task.resume and not is_interrupted(task.out):
        typer.echo(f"labs: nothing to go on with for {task.out}: training from the start", err=True)
    with shown(Console()) as report:
        return run(dataset, task, _tools(settings, task.reads), report)


@contextmanager
def _interruption_told(out: Path) -> Iterator[None]:
    """Ctrl-C ends the command; what is said is what is true: whether anything was kept to go on with."""
    try:
        yield
    except KeyboardInterrupt:
        from reward_server.jobs.reward_model.interrupted import is_interrupted

        told = "interrupted before anything was worth keeping; the same command starts again"
        if is_interrupted(out):
            told = f"interrupted; the same command with --resume goes on (--out {out})"
        typer.echo(f"labs: {told}", err=True)
        raise


def _refuse_finished(out: Path) -> None:
    """There is nothing to resume where the model is whole: that the folder is taken would not say so."""
    from reward_server.reward_models.artefact import read_card

    with suppress(UnusableModel):
        card = read_card(out)
        raise InvalidRequest(
            f"nothing to go on with: the model in {out} is finished ({card.id}); leave out --resume and give another "
            "--out to train another one"
        )


def _featurisers(settings: Settings, encoder: str | None = None) -> Featurisers:
    """Featurisers with the encoder and the precision of the settings, or with another encoder."""
    from reward_server.reward_models.featurisers import Featurisers

    return Featurisers(encoder or settings.encoder, precision=settings.encoder_precision)


def _tools(settings: Settings, reads: Reads) -> Tools:
    from reward_server.jobs.reward_model.train import Tools
    from reward_server.reward_models.features import ConversationFeaturiser
    from reward_server.reward_models.plain_features import PlainFeatures

    featurisers = _featurisers(settings)
    encoder = featurisers.encoder
    return Tools(
        featurisers.reading(reads),
        PlainFeatures(encoder),
        encoder.version,
        _shelf(settings),
        featuriser_on=partial(ConversationFeaturiser, reads=reads),
        precision=settings.encoder_precision,
    )


def _announce(trained: Trained, settings: Settings, out: Path) -> None:
    """What came of a training; the model joins those of the server."""
    from reward_server.jobs.reward_model.report import in_words
    from reward_server.jobs.reward_model.train import cap_line
    from reward_server.jobs.reward_model.verdict import verdict_line
    from reward_server.reward_models import artefact

    console = Console()
    measured = trained.attempt.measured
    _show_figures(console, measured)
    for note in (*in_words(measured), *trained.card.data.notes):
        console.print(note, highlight=False)
    if capped := cap_line(trained.card.recipe):
        console.print(capped, highlight=False)
    tuning = trained.card.finetuning
    if tuning["tried"]:
        console.print(verdict_line(tuning), highlight=False)
    _registry(settings).add(artefact.read(out))
    console.print(f"{trained.card.id}: report in {out / artefact.REPORT}", highlight=False)
    console.print(as_called(f"./labs reward-model activate {trained.card.id} lets it serve"), highlight=False)


def _show_figures(console: Console, measured: Any) -> None:
    from rich.table import Table

    from reward_server.jobs.reward_model.report import IN_SHORT, figure_rows

    head, *rows = figure_rows(measured, IN_SHORT)
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _line(card: Card, *, active: bool) -> str:
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
    return "  ".join([*parts, "active"] if active else parts)
