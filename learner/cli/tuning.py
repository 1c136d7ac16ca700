"""`tune`: a search over settings, with Optuna."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from learner.cli.options import Changes, ConfigFile, Url, interrupted
from learner.cli.training import train_in
from learner.presets import file_or_preset


def tune(
    file: ConfigFile,
    search: Annotated[
        list[str],
        typer.Option(
            metavar="SECTION.KEY=RANGE",
            help="LOW..HIGH, LOW..HIGH:log, or a,b,c; such as optim.learning_rate=1e-5..1e-2:log. May be repeated.",
        ),
    ],
    trials: Annotated[int, typer.Option(min=1, help="Number of runs.")] = 10,
    workers: Annotated[int, typer.Option(min=1, help="Runs at the same time; more than one use Ray Tune.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the search; the seed of the runs is run.seed.")] = 0,
    url: Url = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the search; an existing search is continued.", show_default="runs/tune-FILE"),
    ] = None,
    change: Changes = None,
) -> int:
    """Search for settings: each trial is a separate run, judged by its best held-out reward."""
    from learner import config
    from learner.tuning import Search

    study = Search(file_or_preset(file), change or [], search, out or Path("runs") / f"tune-{file.stem}", seed)

    def play(chosen: config.Config, folder: Path) -> None:
        if train_in(chosen, folder, url) != 0:
            raise interrupted("; the same command continues the search")

    best = study.go(trials, play, typer.echo) if workers == 1 else study.go_on_ray(trials, workers, url, typer.echo)
    typer.echo(f"best held-out reward {best.value:.3f}: " + " ".join(f"--set {each}" for each in best.changes))
    return 0
