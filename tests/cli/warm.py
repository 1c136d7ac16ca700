"""Runs `labs` commands in forks of a process that has imported everything: a start of its own takes seconds.

A command gets a process, arguments, an environment and streams of its own, as from a shell. Scenarios and encoder,
which no command changes, were read once. What is about the start itself runs in a fresh interpreter (`anew`).

As a program (`-m tests.cli.warm`) it reads one JSON object per line and answers each with the exit code of its command.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]
IN_A_CHECKOUT = ("-m", "reward_server.cli.main")


class Labs(Protocol):
    """Runs the command to its end."""

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]: ...


def surroundings(**environment: str) -> dict[str, str]:
    """The environment of a command."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "COLUMNS": "200", **environment}


def anew(
    *arguments: str, program: tuple[str, ...] = IN_A_CHECKOUT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-P", *program, *arguments],
        capture_output=True,
        text=True,
        env=surroundings(**environment),
        timeout=120,
        check=False,
    )


class Warm:
    """The process that forks; one command at a time."""

    def __init__(self, folder: Path) -> None:
        self._out, self._err = folder / "out", folder / "err"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.cli.warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """What the command said, and its exit code."""
        assert self._process.stdin
        assert self._process.stdout
        asked = {
            "arguments": arguments,
            "environment": surroundings(**environment),
            "folder": os.getcwd(),
            "out": str(self._out),
            "err": str(self._err),
        }
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return subprocess.CompletedProcess(list(arguments), code, self._out.read_text(), self._err.read_text())

    def end(self) -> None:
        """Let it go."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)


def warm_up() -> None:
    """Import what commands import, and read once what they all read."""
    from reward_server.server.engine import load_matcher, load_scenarios
    from reward_server.settings import Settings

    load_scenarios(None)
    load_matcher(Settings())
    # Memory that no collection walks through stays shared with the forks.
    gc.collect()
    gc.freeze()


def become(asked: dict[str, Any]) -> None:
    """Turn this fork into the command; does not return."""
    from reward_server.cli.main import main

    code = 1
    try:
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.path[:0] = [each for each in os.environ["PYTHONPATH"].split(os.pathsep) if each not in sys.path]
        for stream, path in ((sys.stdout, asked["out"]), (sys.stderr, asked["err"])):
            with open(path, "wb") as file:
                os.dup2(file.fileno(), stream.fileno())
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        sys.argv = ["main.py", *asked["arguments"]]
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 (a defect: its traceback is what a fresh process would show)
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve() -> None:
    """Run commands until nobody asks any more."""
    warm_up()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
