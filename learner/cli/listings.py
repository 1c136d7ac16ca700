"""`algorithms`, `presets`, `config`, `metrics`, `report`: what there is, and what came of a run. Needs no torch."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from learner.cli.options import Changes, ConfigFile, RunFolder


def algorithms(
    show: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show all settings of one objective, with its paper.")
    ] = None,
) -> None:
    """List the objectives."""
    from learner.algorithms import ALGORITHMS, PAPERS, choices
    from learner.config import ConfigError
    from learner.suggestions import nearest

    if show is None:
        typer.echo(f"{'name':24} {'advantage':26} {'ratio':20} {'gate':18} aggregation")
        for name, row in ALGORITHMS.items():
            typer.echo(f"{name:24} {row.advantage:26} {row.ratio:20} {row.gate:18} {row.aggregation}")
        return
    if show not in ALGORITHMS:
        raise ConfigError(f"algorithm {show!r}: {nearest(show, ALGORITHMS)}")
    typer.echo(f"{'paper':18} {PAPERS[show]}")
    if ALGORITHMS[show].kind == "reward":
        typer.echo(f"{'divided by':18} {ALGORITHMS[show].denominator}")
    possible = choices()
    for name, value in dataclasses.asdict(ALGORITHMS[show]).items():
        others = ", ".join(each for each in possible.get(name, ()) if each != value)
        typer.echo(f"{name:18} {value!s:28} {others and f'or {others}'}".rstrip())


def presets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Print a preset, as a start for your own file.")
    ] = None,
) -> None:
    """List the packaged configurations; `train NAME` runs one."""
    from learner.presets import about, preset_file, preset_names

    if name is not None:
        typer.echo(preset_file(name).read_text().rstrip())
        return
    for each in preset_names():
        typer.echo(f"{each:14} {about(each)}")


def profiles(
    show: Annotated[str | None, typer.Option(metavar="NAME", help="What a profile changes.")] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of this file or preset.", show_default="the demo")
    ] = None,
) -> None:
    """List the profiles; `train FILE --profile NAME` uses one."""
    from learner.config import load_with_profile
    from learner.presets import demo_file, file_or_preset
    from learner.profiles import PROFILES

    if show is None:
        for name, each in PROFILES.items():
            typer.echo(f"{name:14} {each.about}")
        return
    _, told = load_with_profile(file_or_preset(file) if file else demo_file(), show)
    for line in told or ["no setting changes"]:
        typer.echo(line)


def config(file: ConfigFile, change: Changes = None) -> None:
    """Check a TOML file or a preset, and print all its settings as JSON."""
    from learner.config import load
    from learner.presets import file_or_preset

    typer.echo(json.dumps(load(file_or_preset(file), change or []).resolved(), indent=1))


def metrics() -> None:
    """List the figures of metrics.jsonl with their units."""
    from learner.metric_names import METRICS

    for name, (unit, meaning) in METRICS.items():
        typer.echo(f"{name:28} {unit:18} {meaning}".rstrip())


def report(folder: RunFolder) -> None:
    """Write report.html of a run: plots and dialogues in one file that needs nothing else."""
    from learner.report import write_report

    if not (folder / "metrics.jsonl").exists():
        raise ValueError(f"{folder} contains no run: it has no metrics.jsonl")
    typer.echo(f"report: {write_report(folder)}")
