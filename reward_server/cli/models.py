"""Parts that commands about reward models share: their options, the data they read, and the models of a data folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from reward_server.errors import InvalidRequest

if TYPE_CHECKING:
    from reward_server.fitting.reward_model.measure import ModelFigures
    from reward_server.reward_models.dataset import Dataset
    from reward_server.reward_models.feature_shelf import FeatureShelf
    from reward_server.reward_models.featurisers import Featurisers
    from reward_server.reward_models.registry import Registry
    from reward_server.settings import Settings

Data = Annotated[Path | None, typer.Option("--data", help="The server's data folder; LABS_DATA.", file_okay=False)]
Encoder = Annotated[
    str | None, typer.Option(help="Text encoder: the packaged one, a folder or a hub name; LABS_ENCODER.")
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="Id of a model, as `list` shows it, or its folder.")]
Lab = Annotated[
    str | None, typer.Option(help="One of this lab's own models. \\[default: the models that all labs share]")
]
Scale = Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="The labels that mean 0 and 1.")]
Ties = Annotated[
    Literal["drop", "half"], typer.Option(help="Pairs without a winner: drop, or half (learned as a tie).")
]


SkipBad = Annotated[
    int,
    typer.Option("--skip-bad", min=0, metavar="N", help="Leave out up to N invalid rows, and list them."),
]


def read(source: Path, scale: tuple[float, float], ties: Literal["drop", "half"], skip_bad: int = 0) -> Dataset:
    """Labelled conversations and preference pairs of a file."""
    from reward_server.fitting.reward_model.read import RowOptions, read_dataset

    return read_dataset(source, RowOptions(scale, ties, skip_bad))


def registry_of(settings: Settings, lab: str | None = None) -> Registry:
    """The models of the data folder that all labs share, or those of one lab."""
    from reward_server.reward_models.registry import Registry

    shared = Registry(settings.reward_models)
    found = shared if lab is None else shared.of(lab)
    if found is None:
        raise InvalidRequest("--lab must be at most 64 lower-case letters, digits and hyphens")
    return found


def shelf_of(settings: Settings) -> FeatureShelf:
    """The features that were computed before."""
    from reward_server.reward_models.feature_shelf import FeatureShelf

    return FeatureShelf((settings.cache or settings.data / "cache") / "features")


def featurisers_of(settings: Settings, encoder: str | None = None) -> Featurisers:
    """Featurisers with the encoder and the precision of the settings, or with another encoder."""
    from reward_server.reward_models.featurisers import Featurisers

    return Featurisers(encoder or settings.encoder, precision=settings.encoder_precision)


def show_figures(console: Console, measured: ModelFigures) -> None:
    """Print the table of a measurement in short."""
    from reward_server.fitting.reward_model.report import IN_SHORT, figure_rows

    head, *rows = figure_rows(measured, IN_SHORT)
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)
