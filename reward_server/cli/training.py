"""`labs reward-model train`, step by step: what was asked for, the data, the training, and what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reward_server.cli.interruption import interruption_told
from reward_server.cli.models import featurisers_of, read, registry_of, shelf_of, show_figures
from reward_server.cli.progress import Report, shown
from reward_server.cli.tables import wide_console
from reward_server.errors import InvalidRequest, UnusableModel
from reward_server.program import as_called

if TYPE_CHECKING:
    from reward_server.fitting.reward_model.train import TrainingResult, TrainingTask
    from reward_server.reward_models.conversation import Reads
    from reward_server.reward_models.dataset import Dataset
    from reward_server.settings import Settings

Source = Annotated[
    Path | None,
    typer.Argument(metavar="DATA", help="JSONL of labelled conversations and preference pairs.", dir_okay=False),
]
Out = Annotated[Path, typer.Option(help="Folder for the model.", file_okay=False)]
FromStore = Annotated[bool, typer.Option("--from-store", help="Train on the server's own evaluations and comparisons.")]
OfLab = Annotated[
    str | None,
    typer.Option(help="With --from-store, the rows of this lab only; the model is its own. \\[default: the only lab]"),
]
AllLabs = Annotated[
    bool, typer.Option("--all-labs", help="Use the rows of all labs together; all labs share the model.")
]
Version = Annotated[
    str | None,
    typer.Option(
        help="Of the store, this scoring version: sv_ and 12 digits for all rewards of the rubric alone, a longer "
        "one for itself. \\[default: that of the newest reward of the rubric alone]"
    ),
]
HeldOut = Annotated[float, typer.Option(min=0.05, max=0.5, help="Share of the rows to measure on.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the split and the order of rows.")]
Epochs = Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of epochs.")]
KeepUncertainty = Annotated[
    bool,
    typer.Option(
        "--keep-uncertainty",
        help="Keep the uncertainty even if it is not shown to sort the errors of the held-out rows.",
    ),
]
ReadsOption = Annotated[
    Literal["answers", "words"],
    typer.Option(
        "--reads",
        help="What an agent earns by in a scenario: answers (those it got; its own words can only cost, so it "
        "cannot talk a score up), or words (its own, too: for labels that hang on how well it speaks).",
    ),
]
Features = Annotated[
    Literal["auto", "all", "content", "meaning"],
    typer.Option(
        help="What heads may use: all features, content (no style and counts), meaning alone; auto tries the three "
        "and keeps what does best where style has changed places, too."
    ),
]
CounterpartsOption = Annotated[
    Literal["auto", "with", "without"],
    typer.Option(
        "--counterparts",
        help="Whether heads learn from pairs in which neither style nor a reply alone tells the better side, too; auto "
        "tries both.",
    ),
]
RelationsOption = Annotated[
    bool,
    typer.Option(
        "--relations/--no-relations",
        help="Of preferences: weigh the likeness of a reply to its request beside the head, as far as pairs of other "
        "dialogues say.",
    ),
]
StyleData = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Open data to make style sets of, besides the held-out rows.",
        exists=True,
        file_okay=False,
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted training.")]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of a call of `train`, by their names."""

    source: Path | None
    out: Path
    from_store: bool
    lab: str | None
    all_labs: bool
    version: str | None
    scale: tuple[float, float]
    ties: Literal["drop", "half"]
    held_out: float
    seed: int
    epochs: int
    keep_uncertainty: bool
    reads: Reads
    features: Literal["auto", "all", "content", "meaning"]
    counterparts: Literal["auto", "with", "without"]
    relations: bool
    style_data: Path | None
    skip_bad: int
    resume: bool

    def check(self) -> None:
        """Refuse what does not go together, before anything slow (`InvalidRequest`)."""
        self._check_source()
        self._check_effect()

    def _check_source(self) -> None:
        if self.source is not None and self.from_store:
            raise InvalidRequest("give a file or --from-store, not both")
        if self.source is None and not self.from_store:
            raise InvalidRequest("give a file of labelled conversations or preference pairs, or --from-store")
        if self.lab is not None and self.all_labs:
            raise InvalidRequest("give --lab or --all-labs, not both")

    def _check_effect(self) -> None:
        for given, option, needs, has in (
            (self.lab, "--lab", "--from-store", self.from_store),
            (self.all_labs or None, "--all-labs", "--from-store", self.from_store),
            (self.version, "--version", "--from-store", self.from_store),
        ):
            if given is not None and not has:
                raise InvalidRequest(f"{option} has no effect without {needs}: leave it out, or add {needs}")

    def rows(self, settings: Settings) -> Dataset:
        """The data, if it is enough to learn from."""
        from reward_server.reward_models.dataset import check_enough

        found = read(self.source, self.scale, self.ties, self.skip_bad) if self.source else self._stored(settings)
        check_enough(found)
        return found

    def _stored(self, settings: Settings) -> Dataset:
        """The rows that the store holds, or held when the training began that is gone on with."""
        from reward_server.fitting.reward_model.frozen_rows import frozen_rows

        kept = frozen_rows(self.out, self._asked(settings)) if self.resume else None
        return kept if kept is not None else stored_rows(settings, self.lab, self.version, all_labs=self.all_labs)

    def _asked(self, settings: Settings) -> str:
        """Names what is asked of the store; empty where the rows come from a file."""
        if not self.from_store:
            return ""
        return hashlib.sha256(
            json.dumps([settings.database, self.lab, self.all_labs, self.version]).encode()
        ).hexdigest()

    def task(self, settings: Settings) -> TrainingTask:
        """The same in the terms of the job."""
        from reward_server.clock import SystemClock
        from reward_server.fitting.reward_model.head_training import Recipe
        from reward_server.fitting.reward_model.train import TrainingTask

        return TrainingTask(
            out=self.out,
            encoder=settings.encoder,
            created=SystemClock().now(),
            source="store" if self.from_store else "file",
            asked=self._asked(settings),
            scale=self.scale,
            recipe=Recipe(seed=self.seed, epochs=self.epochs),
            held_out=self.held_out,
            reads=self.reads,
            resume=self.resume,
            keep_uncertainty=self.keep_uncertainty,
            features=self.features,
            counterparts=self.counterparts,
            relations=self.relations,
            open_data=self._open_data(),
        )

    def _open_data(self) -> Dataset | None:
        from reward_server.fitting.reward_model.read import RowOptions, read_folder

        return None if self.style_data is None else read_folder(self.style_data, RowOptions(ties=self.ties))


def told(out: Path) -> AbstractContextManager[None]:
    """Say on Ctrl-C whether the training of a model for this folder can be gone on with."""
    return interruption_told(out, partial(_is_kept, out))


def run(wanted: TrainOptions, settings: Settings) -> TrainingResult:
    """Read the data and train; the artefact lies in the folder that was asked for.

    Raises:
        InvalidRequest: the folder is taken, a training of it is finished, or the data is not good enough.
    """
    from reward_server.reward_models.artefact import refuse_taken

    if wanted.resume:
        _refuse_finished(wanted.out)
    refuse_taken(wanted.out)
    with shown(wide_console()) as report:
        report("reading", 0, 1)
        dataset = wanted.rows(settings)  # before anything slow is loaded
        report("reading", 1, 1)
        return _trained(dataset, wanted.task(settings), settings, report)


def stored_rows(settings: Settings, lab: str | None, version: str | None, *, all_labs: bool) -> Dataset:
    """The server's own evaluations and comparisons, of one lab and one scoring version, as training data."""
    from reward_server.fitting.reward_model.stored import composed_scenarios, read_stored, stored_dataset
    from reward_server.server.engine import load_scenarios
    from reward_server.store.migrate import migrate

    library = load_scenarios(settings.scenarios, settings.libraries)

    async def fetch() -> Dataset:
        await migrate(settings.database)
        rows = await read_stored(settings.database, lab, all_labs=all_labs)
        return stored_dataset(rows, library.catalog, version, composed_scenarios(library.vault))

    return asyncio.run(fetch())


def announce(trained: TrainingResult, settings: Settings, out: Path, lab: str | None) -> None:
    """Say what came of a training; the model joins those of the lab whose rows it was made from, else those of all."""
    from reward_server.fitting.reward_model.notes import cap_line
    from reward_server.fitting.reward_model.report import in_words
    from reward_server.fitting.reward_model.style_check import style_lines
    from reward_server.reward_models import artefact
    from reward_server.reward_models.fitness import unfit

    console = wide_console()
    measured = trained.attempt.measured
    show_figures(console, measured)
    for note in (*style_lines(trained.card.style), *in_words(measured), *trained.card.data.notes):
        console.print(note, highlight=False)
    if capped := cap_line(trained.card.recipe):
        console.print(capped, highlight=False)
    registry_of(settings, lab).add(artefact.read(out))
    console.print(f"{trained.card.id}: report in {out / artefact.REPORT}", highlight=False)
    whose = "" if lab is None else f" --lab {lab}"
    command = f"./labs reward-model activate {trained.card.id}{whose}"
    if why := unfit(trained.card):
        told = f"it should not serve: {why}; {command} --force activates it anyway"
    else:
        told = f"{command} lets it serve"
    console.print(as_called(told), highlight=False)


def _is_kept(out: Path) -> bool:
    from reward_server.fitting.reward_model.interrupted import is_interrupted

    return is_interrupted(out)


def _refuse_finished(out: Path) -> None:
    """There is nothing to resume where the model is whole: that the folder is taken would not say so."""
    from reward_server.reward_models.artefact import read_card

    with suppress(UnusableModel):
        card = read_card(out)
        raise InvalidRequest(
            f"nothing to resume: the model in {out} is finished ({card.id}); leave out --resume and give another "
            "--out to train another one"
        )


def _trained(dataset: Dataset, task: TrainingTask, settings: Settings, report: Report) -> TrainingResult:
    from reward_server.fitting.reward_model.interrupted import is_interrupted
    from reward_server.fitting.reward_model.tools import tools_on
    from reward_server.fitting.reward_model.train import train

    if task.resume and not is_interrupted(task.out):
        typer.echo(f"labs: nothing to resume for {task.out}: training from the start", err=True)
    report("loading the encoder", 0, 1)
    tools = tools_on(featurisers_of(settings), task.reads, shelf_of(settings))
    report("loading the encoder", 1, 1)
    return train(dataset, task, tools, report)
