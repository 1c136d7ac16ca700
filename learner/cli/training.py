"""`demo`, `train`, `check`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from learner.cli.options import (
    INTERRUPTED,
    Changes,
    ConfigFile,
    DryRun,
    Overwrite,
    PluginNames,
    ProfileName,
    SkipBad,
    Url,
    interrupted,
)
from learner.presets import demo_file, file_or_preset
from trainer_client import (
    AsyncLabsClient,
    LabsError,
    NotFound,
    RateLimited,
    RetryPolicy,
    Unauthenticated,
    Unavailable,
)

if TYPE_CHECKING:
    from learner.config import Config
    from learner.display import Display, Say
    from learner.plugins import Plugins
    from learner.run import Run
    from trainer_client.wire.catalog import CatalogResponse

# A server that is not there should be noticed at once; one that is busy deserves patience.
FIRST_LOOK = RetryPolicy(attempts=2, attempt_timeout_s=5.0, deadline_s=10.0, first_pause_s=0.1)
_OUT_HELP = "Folder of the run; one that exists is continued."


class ServerUnfitError(RuntimeError):
    """There is no server, or not the right one."""


def demo(
    seed: Annotated[int, typer.Option(help="Seed of the weights and all sampling.")] = 0,
    updates: Annotated[int | None, typer.Option(help="Number of updates.", show_default="the preset's")] = None,
    url: Url = None,
    out: Annotated[
        Path | None, typer.Option(help=_OUT_HELP, show_default="runs/demo-seed-SEED", metavar="FOLDER")
    ] = None,
    change: Changes = None,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    plugin: PluginNames = None,
    profile: ProfileName = None,
) -> int:
    """Watch a tiny model learn a scenario in minutes, on a CPU."""
    changes = [f"run.seed={seed}"]
    if updates is not None:
        changes.append(f"run.updates={updates}")
    chosen = _configured(demo_file(), profile, [*changes, *(change or [])])
    folder = out or Path("runs") / f"demo-seed-{seed}"
    return _start(chosen, folder, url, plugin or [], dry_run=dry_run, overwrite=overwrite)


def train(
    file: ConfigFile,
    url: Url = None,
    out: Annotated[
        Path | None,
        typer.Option(help=_OUT_HELP, show_default="runs/ and the name of FILE without its ending", metavar="FOLDER"),
    ] = None,
    change: Changes = None,
    skip_bad: SkipBad = False,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    plugin: PluginNames = None,
    profile: ProfileName = None,
) -> int:
    """Train with a file or a preset."""
    chosen = _configured(file_or_preset(file), profile, [*(change or []), *_skipping(skip_bad)])
    return _start(chosen, out or Path("runs") / file.stem, url, plugin or [], dry_run=dry_run, overwrite=overwrite)


def check(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A TOML file or a preset.", show_default="the demo")
    ] = None,
    url: Url = None,
    change: Changes = None,
    skip_bad: SkipBad = False,
) -> int:
    """Test server (or training file), template and sampler; no update."""
    from learner import config
    from learner.display import Display
    from learner.dry_run import dry_run

    changes = [*(change or []), *_skipping(skip_bad)]
    chosen = config.load(file_or_preset(file) if file else demo_file(), changes)
    address = url or chosen.server.url
    display = Display()
    _look(chosen, address, display.say)
    try:
        return 0 if dry_run(chosen, address, display.say, display.now) else 1
    finally:
        display.clear()


def _configured(file: Path, profile: str | None, changes: Sequence[str]) -> Config:
    """The configuration; what a profile changes is printed."""
    from learner import config

    if profile is None:
        return config.load(file, changes)
    chosen, told = config.load_with_profile(file, profile, changes)
    typer.echo(f"profile {profile}" if told else f"profile {profile}: no setting changes")
    for line in told:
        typer.echo(f"  {line}")
    return chosen


def _skipping(skip_bad: bool) -> list[str]:
    return ["data.skip_bad=true"] if skip_bad else []


def _start(
    config: Config, folder: Path, url: str | None, plugins: Sequence[str], *, dry_run: bool, overwrite: bool
) -> int:
    from learner.plugins import load_plugins

    loaded = load_plugins(plugins)
    loaded.fit(single_turn=config.rollout.single_turn)
    if not dry_run:
        return train_in(config, folder, url, overwrite=overwrite, plugins=loaded)
    from learner.plan import plan

    for name, value in plan(config, folder, url or config.server.url):
        typer.echo(f"{name:14} {value}")
    return 0


def train_in(
    config: Config, folder: Path, url: str | None, *, overwrite: bool = False, plugins: Plugins | None = None
) -> int:
    """Train in a folder and say how it went; the exit status. `overwrite` removes the run that is there."""
    from learner.display import Display
    from learner.folder import remove_run
    from learner.lock import locked
    from learner.plugins import NO_PLUGINS

    used = plugins or NO_PLUGINS
    address = url or config.server.url
    is_first = os.environ.get("RANK", "0") == "0"
    display = Display(speaks=is_first)
    begun = any((folder / "checkpoints").glob("step-*")) and not overwrite
    if used.environment is None:
        _look(config, address, display.say, begun=begun)
    with locked(folder) if is_first else nullcontext():
        if overwrite and is_first:
            remove_run(folder)
        return _train_in(config, folder, address, display, used)


def _train_in(config: Config, folder: Path, address: str | None, display: Display, plugins: Plugins) -> int:
    from learner import interrupt, loop, offline
    from learner.ranks import leave_ranks

    from_file = config.objective().kind != "reward"
    started = time.monotonic()
    run = _opened(config, folder, display, plugins)
    display.follow(lambda: run.step, config.run.updates)
    if run.step < config.run.updates:
        display.say(f"training to update {config.run.updates}; metrics and checkpoints are in {folder}")

    async def play_and_learn(asked_to_end: Callable[[], bool]) -> None:
        async with AsyncLabsClient(address, max_connections=config.rollout.connections) as client:
            await loop.train(run, client, display.say, asked_to_end, display.now)

    try:
        with interrupt.first_one_waits(_say_it_will_end) as interrupts:
            if from_file:
                offline.train(run, display.say, interrupts.asked_to_end, display.now)
            else:
                interrupts.run(play_and_learn(interrupts.asked_to_end))
    except KeyboardInterrupt:
        print(file=sys.stderr)
    finally:
        display.clear()
        run.metrics.close()
        leave_ranks()
        if run.ranks.first:
            _write_report(run)
    if not run.ranks.first:
        return 0
    if run.saved < config.run.updates and not run.is_over():
        typer.echo(f"interrupted; the same command will continue from update {run.saved}", err=True)
        return INTERRUPTED
    _say_what_came(run, time.monotonic() - started)
    return 0


def _opened(config: Config, folder: Path, display: Display, plugins: Plugins) -> Run:
    """The run; a Ctrl-C before it is open goes on its way with what is left to go on from."""
    from learner import checkpoint
    from learner.run import open_run

    try:
        return open_run(config, folder, display.say, display.now, plugins)
    except KeyboardInterrupt:
        display.clear()
        kept = checkpoint.newest(folder / "checkpoints")
        told = " before there was a checkpoint: nothing is kept, and the same command starts again"
        if kept is not None:
            told = f"; the same command will continue from update {kept.step}"
        raise interrupted(told) from None
    finally:
        display.clear()


def _say_it_will_end() -> None:
    print(
        "\nstopping after this update, with a checkpoint; press Ctrl-C again to stop immediately",
        file=sys.stderr,
        flush=True,
    )


def _look(config: Config, url: str | None, say: Say, *, begun: bool = False) -> None:
    """See that the server is there and has the scenarios, or that the file can be used, before anything is built.

    Of a run that has `begun`, the model may be gone that its file was checked for.
    """
    if config.objective().kind != "reward":
        from learner.datafile import check_data
        from learner.rows import check_file

        check_file(Path(config.data.file or ""))
        if not begun:
            check_data(config, say)
        return
    if config.rollout.prompts is not None:
        from learner.single_turn import read_prompts

        read_prompts(Path(config.rollout.prompts), skip_bad=config.data.skip_bad, say=say)
    asyncio.run(_look_at_server(config, url, say))


async def _look_at_server(config: Config, url: str | None, say: Say) -> None:
    from learner.failures import SET_A_KEY
    from learner.retry import OutageRetryPolicy
    from learner.stages import open_single_stage, open_stages, reward_config

    server = config.server
    reward_config(server)
    retry_policy = OutageRetryPolicy(server.patience_s, say=say, waits_for=(RateLimited, Unavailable))
    async with AsyncLabsClient(url, retry=FIRST_LOOK) as client:
        address = client.connection.url.removesuffix("/api/v1")
        try:
            if server.scenarios or server.held_out:
                await open_stages(config, client, retry_policy)
            else:
                await open_single_stage(server, client, retry_policy)
        except NotFound:
            wanted = f"{server.collection}/{server.scenario}"
            raise ServerUnfitError(_unknown(wanted, await retry_policy.ask(lambda _: client.catalog()))) from None
        except Unauthenticated:
            what = "does not know this key" if client.connection.api_key else "needs a key"
            raise ServerUnfitError(f"the server at {address} {what}; {SET_A_KEY}") from None
        except LabsError as error:
            if error.status is None:
                raise ServerUnfitError(f"no server answers at {address}; start one with `./labs serve`") from None
            raise


def _unknown(scenario: str, catalog: CatalogResponse) -> str:
    """The message about a scenario that the server does not have."""
    from learner.suggestions import nearest

    known = [f"{each.slug}/{found.slug}" for each in catalog.collections for found in each.scenarios]
    return f"the server has no scenario {scenario}; {nearest(scenario, known).removeprefix('unknown; ')}"


def _write_report(run: Run) -> None:
    from learner.report import write_report

    write_report(run.folder)


def _say_what_came(run: Run, seconds: float) -> None:
    from learner.metrics import read_metrics

    records = read_metrics(run.folder / "metrics.jsonl")
    held_out = [record for record in records if record["kind"] == "eval" and "reward/mean" in record]
    if held_out:
        first, last = held_out[0], held_out[-1]
        typer.echo(
            f"held-out reward {first['reward/mean']:.3f} -> {last['reward/mean']:.3f}"
            f" after {run.step} updates ({seconds:.0f} s this time)"
        )
    elif losses := _losses(records):
        of, values = losses
        typer.echo(f"{of} {values[0]:.2f} -> {values[-1]:.2f} after {run.step} updates ({seconds:.0f} s this time)")
    folder = run.folder
    typer.echo(f"report: {folder / 'report.html'}\ncurve: {folder / 'curve.png'}\nmetrics: {folder / 'metrics.jsonl'}")


def _losses(records: Sequence[Mapping[str, Any]]) -> tuple[str, list[float]] | None:
    """Of a run from a file: on the held-out rows, or in training where none are held out."""
    for title, kind in (("held-out loss", "eval"), ("loss", "train")):
        values = [record["update/loss"] for record in records if record["kind"] == kind and "update/loss" in record]
        if values:
            return title, values
    return None
