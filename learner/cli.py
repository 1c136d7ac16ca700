"""The `learner` command: `demo`, `train`, `algorithms`, `check`.

What goes wrong on the outside (no server, a bad file, a busy folder) is one line and exit status 2,
never a traceback. Heavy libraries are loaded by the commands that need them.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import importlib.resources
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainer_client import AsyncLabsClient, LabsClient, LabsError, NotFound, RetryPolicy

if TYPE_CHECKING:
    from learner.config import Config
    from learner.display import Display
    from learner.run import Run

# What shells give a command that ended on Ctrl-C.
INTERRUPTED = 130
# A server that is not there should be noticed at once; one that is busy deserves patience.
FIRST_LOOK = RetryPolicy(attempts=2, attempt_timeout_s=5.0, deadline_s=10.0, first_pause_s=0.1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt as interrupt:
        print(f"\ninterrupted{''.join(interrupt.args)}", file=sys.stderr)
        return INTERRUPTED
    except _refusals() as error:
        print(f"learner: {_one_line(error)}", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="labs learner", description="Train a policy on the rewards of a Labs server.")
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="watch a tiny model learn a scenario in minutes, on a CPU")
    demo.add_argument("--seed", type=int, default=0, help="of the weights and all sampling (default 0)")
    demo.add_argument("--updates", type=int, help="how many updates (default: the preset's)")
    demo.set_defaults(run=_demo)

    train = commands.add_parser("train", help="train as a TOML file says")
    train.add_argument("file", type=Path, help="such as run.toml; docs/training.md has one to begin with")
    train.set_defaults(run=_train)

    check = commands.add_parser("check", help="test server, template and sampler with one episode; no update")
    check.add_argument("file", type=Path, nargs="?", help="default: the configuration of the demo")
    check.set_defaults(run=_check)

    algorithms = commands.add_parser("algorithms", help="list the objectives")
    algorithms.add_argument("--show", metavar="NAME", help="all choices of one")
    algorithms.set_defaults(run=_algorithms)

    for command in (demo, train, check):
        command.add_argument("--url", help="address of the server (default: LABS_URL, else http://127.0.0.1:8321)")
        command.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="SECTION.KEY=VALUE",
            help="change a setting of the file, such as optim.learning_rate=1e-5 or run.updates=50; may be repeated",
        )
    for command, default in ((demo, "runs/demo-seed-SEED"), (train, "runs/ and the name of FILE without its ending")):
        command.add_argument(
            "--out", type=Path, help=f"folder of the run; one that exists is continued (default: {default})"
        )
    return parser


def _demo(options: argparse.Namespace) -> int:
    from learner import config

    changes = [f"run.seed={options.seed}"]
    if options.updates is not None:
        changes.append(f"run.updates={options.updates}")
    folder = options.out or Path("runs") / f"demo-seed-{options.seed}"
    return _train_in(config.load(demo_file(), [*changes, *options.set]), folder, options.url)


def _train(options: argparse.Namespace) -> int:
    from learner import config

    return _train_in(
        config.load(options.file, options.set), options.out or Path("runs") / options.file.stem, options.url
    )


def demo_file() -> Path:
    """The configuration of the demo, shipped with the package."""
    return Path(str(importlib.resources.files("learner") / "data" / "demo.toml"))


def _train_in(config: Config, folder: Path, url: str | None) -> int:
    from learner import interrupt, loop, offline
    from learner.display import Display

    address = url or config.server.url
    from_file = config.objective().kind != "reward"
    if not from_file:
        _look(config, address)
    started = time.monotonic()
    display = Display()
    run = _opened(config, folder, display)

    async def go(asked_to_end: Callable[[], bool]) -> None:
        if from_file:
            offline.train(run, display.say, asked_to_end, display.now)
            return
        async with AsyncLabsClient(address, max_connections=config.rollout.connections) as client:
            await loop.train(run, client, display.say, asked_to_end, display.now)

    try:
        with interrupt.first_one_waits(_say_it_will_end) as asked_to_end:
            asyncio.run(go(asked_to_end))
    except KeyboardInterrupt:
        print(file=sys.stderr)
    finally:
        display.clear()
        curve = loop.draw(folder, f"{config.server.collection}/{config.server.scenario}, {config.algorithm.name}")
    if run.saved < config.run.updates and not loop.is_over(run):
        print(f"interrupted; the same command will go on from update {run.saved}", file=sys.stderr)
        return INTERRUPTED
    _report(run, time.monotonic() - started, curve)
    return 0


def _opened(config: Config, folder: Path, display: Display) -> Run:
    """The run; a Ctrl-C before it is open goes on its way with what is left to go on from."""
    from learner import checkpoint
    from learner.run import open_run

    try:
        return open_run(config, folder, display.say, display.now)
    except KeyboardInterrupt:
        display.clear()
        kept = checkpoint.newest(folder / "checkpoints")
        told = " before there was a checkpoint: nothing is kept, and the same command starts again"
        if kept is not None:
            told = f"; the same command will go on from update {kept.step}"
        raise KeyboardInterrupt(told) from None
    finally:
        display.clear()


def _say_it_will_end() -> None:
    print("\nending after this update, with a checkpoint; Ctrl-C again ends at once", file=sys.stderr, flush=True)


def _look(config: Config, url: str | None) -> None:
    """See that the server is there and has the scenario, before anything is built."""
    with LabsClient(url, retry=FIRST_LOOK) as client:
        try:
            client.scenario(config.server.collection, config.server.scenario)
        except NotFound:
            raise ServerUnfitError(
                f"the server has no scenario {config.server.collection}/{config.server.scenario}"
            ) from None
        except LabsError as error:
            if error.status is None:
                address = client.connection.url.removesuffix("/api/v1")
                raise ServerUnfitError(f"no server answers at {address}; start one with `./labs serve`") from None
            raise


def _report(run: Run, seconds: float, curve: Path) -> None:
    from learner.metrics import read_metrics

    records = read_metrics(run.folder / "metrics.jsonl")
    held_out = [record for record in records if record["kind"] == "eval" and "reward/mean" in record]
    if held_out:
        first, last = held_out[0], held_out[-1]
        print(
            f"held-out reward {first['reward/mean']:.3f} -> {last['reward/mean']:.3f}"
            f" after {run.step} updates ({seconds:.0f} s this time)"
        )
    print(f"curve: {curve}\nmetrics: {run.folder / 'metrics.jsonl'}\ntranscripts: {run.folder / 'samples'}")


def _check(options: argparse.Namespace) -> int:
    from learner import config
    from learner.display import Display
    from learner.dry_run import dry_run

    chosen = config.load(options.file or demo_file(), options.set)
    address = options.url or chosen.server.url
    _look(chosen, address)
    display = Display()
    try:
        return 0 if dry_run(chosen, address, display.say, display.now) else 1
    finally:
        display.clear()


def _algorithms(options: argparse.Namespace) -> int:
    from learner.algorithms import ALGORITHMS, PAPERS
    from learner.config import ConfigError, nearest

    if options.show is None:
        for name, row in ALGORITHMS.items():
            print(f"{name:24} {row.advantage:26} {row.ratio:20} {row.gate:18} {row.aggregation}")
        return 0
    if options.show not in ALGORITHMS:
        raise ConfigError(f"algorithm {options.show!r}: {nearest(options.show, ALGORITHMS)}")
    print(f"{'paper':18} {PAPERS[options.show]}")
    for name, value in dataclasses.asdict(ALGORITHMS[options.show]).items():
        print(f"{name:18} {value}")
    return 0


class ServerUnfitError(RuntimeError):
    """There is no server, or not the right one."""


def _refusals() -> tuple[type[Exception], ...]:
    """Errors that are a message to the user. Torch is only loaded if a command already did."""
    names = (("loop", "NoEpisodesError"), ("canary", "CanaryError"), ("update", "NonFiniteError"))
    loaded = [(sys.modules.get(f"learner.{module}"), name) for module, name in names]
    more = tuple(getattr(module, name) for module, name in loaded if module is not None)
    return (LabsError, ValueError, OSError, ServerUnfitError, *more)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
