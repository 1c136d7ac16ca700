"""`launch`: one training in several processes, which accelerate starts."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Annotated

import typer

from learner.cli.options import ConfigFile

PASSED_ON: dict[str, bool] = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Options that `launch` does not know are those of `train`."""


def launch(
    context: typer.Context,
    file: ConfigFile,
    processes: Annotated[
        int, typer.Option(min=1, metavar="COUNT", help="Processes on all machines together; one for each GPU.")
    ] = 2,
    machines: Annotated[int, typer.Option(min=1, metavar="COUNT", help="Machines that take part.")] = 1,
    machine: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="The number of this one, from 0.")] = 0,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where machine 0 listens; with several machines.")
    ] = None,
) -> int:
    """Train in several processes, started by accelerate; options of `train` are passed on to it."""
    if importlib.util.find_spec("accelerate") is None:
        raise ValueError("launch needs accelerate: run `pip install accelerate`, or start the processes with torchrun")
    command = accelerate_command(processes, machines, machine, address)
    # This process becomes accelerate, which then hears every signal itself and ends its processes.
    arguments = [sys.executable, *command, "-m", "learner", "train", str(file), *context.args]
    sys.stdout.flush()
    os.execv(sys.executable, arguments)  # noqa: S606 - a list of arguments, and no shell


def accelerate_command(processes: int, machines: int, machine: int, address: str | None) -> list[str]:
    """What starts the processes, without what they run."""
    if processes % machines:
        raise ValueError(f"--processes {processes} cannot be spread evenly over --machines {machines}")
    if machine >= machines:
        raise ValueError(f"--machine {machine}: of {machines} machines the last is {machines - 1}")
    # "GPUs" is accelerate's word for several processes of torch.distributed; on a CPU they talk over gloo.
    command = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", str(processes)]
    command += ["--num_machines", str(machines), "--machine_rank", str(machine)]
    command += ["--mixed_precision", "no", "--dynamo_backend", "no"]
    if machines == 1:
        return command if address is None else [*command, *_listening(address)]
    if address is None:
        raise ValueError("several machines need --address HOST:PORT of machine 0")
    return [*command, *_listening(address)]


def _listening(address: str) -> list[str]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"--address {address}: write it as HOST:PORT")
    return ["--main_process_ip", host, "--main_process_port", port]
