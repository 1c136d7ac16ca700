"""`labs reward-model`: train, measure, list, activate and export learned reward models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from reward_server.errors import InvalidRequest

if TYPE_CHECKING:
    from reward_server.jobs.reward_model.train import Report, Tools
    from reward_server.settings import Settings

app = typer.Typer(help="Train, measure and serve learned reward models.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option("--data", help="The server's data folder; LABS_DATA.", file_okay=False)]
Encoder = Annotated[
    str | None, typer.Option(help="Text encoder: the packaged one, a folder or a hub name; LABS_ENCODER.")
]


@app.command()
def train(
    source: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="JSONL of labelled conversations and preference pairs.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the model.", file_okay=False)] = Path("reward-model"),
    scale: Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="The labels that mean 0 and 1.")] = (
        0.0,
        1.0,
    ),
    ties: Annotated[str, typer.Option(help="Pairs without a winner: drop, or half.")] = "drop",
    held_out: Annotated[float, typer.Option(min=0.05, max=0.5, help="Share of the rows to measure on.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Decides the split and the order of rows.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, max=10_000, help="Most epochs of one run.")] = 200,
    encoder: Encoder = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted training stopped.")] = False,
    data: Data = None,
) -> None:
    """Train a reward model and measure it on held-out dialogues."""
    from reward_server.clock import SystemClock
    from reward_server.jobs.reward_model.read import Reading, read_dataset
    from reward_server.jobs.reward_model.train import Task
    from reward_server.jobs.reward_model.train import train as run
    from reward_server.reward_models.training import Recipe
    from reward_server.settings import load_settings

    if source is None:
        raise InvalidRequest("give a file of labelled conversations or preference pairs")
    settings = load_settings({"data": data, "encoder": encoder})
    dataset = read_dataset(source, Reading(scale, ties))  # type: ignore[arg-type]
    task = Task(
        out=out,
        encoder=settings.encoder,
        created=SystemClock().now(),
        scale=scale,
        recipe=Recipe(seed=seed, epochs=epochs),
        held_out=held_out,
        resume=resume,
    )
    console = Console()
    with _progress(console) as report:
        trained = run(dataset, task, _tools(settings), report)
    console.print(f"{trained.card.id} in {out}", highlight=False)


@contextmanager
def _progress(console: Console) -> Iterator[Report]:
    """A bar for each stage of the work."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        stages: dict[str, int] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bar.add_task(stage, total=total)
            bar.update(stages[stage], completed=done, total=total)  # type: ignore[arg-type]

        yield report


def _tools(settings: Settings) -> Tools:
    from reward_server.jobs.reward_model.train import Tools
    from reward_server.reward_models.encoder import load_encoder
    from reward_server.reward_models.feature_shelf import FeatureShelf
    from reward_server.reward_models.features import ConversationFeaturiser
    from reward_server.reward_models.plain_features import PlainFeatures

    encoder = load_encoder(settings.encoder)
    folder = (settings.cache or settings.data / "cache") / "features"
    return Tools(ConversationFeaturiser(encoder), PlainFeatures(encoder), encoder.version, FeatureShelf(folder))
