"""Ctrl-C ends a command without a traceback from its first moment on; shells see 130."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.processes import ROOT

INTERRUPTED_AT_AN_IMPORT = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["labs", *sys.argv[1:]]
runpy.run_module({module!r}, run_name="__main__")
"""
IGNORED = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
HELD_BACK = """
import os, runpy, signal, sys

signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGINT}})
os.kill(os.getpid(), signal.SIGINT)
sys.argv = ["labs", *sys.argv[1:]]
runpy.run_module({module!r}, run_name="__main__")
"""


def run(program: str, *arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    few = ROOT / "tests" / "data" / "collections"
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "LABS_SCENARIOS": str(few), "LABS_DATA": str(data)}
    command = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=120, check=False)


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("reward_server.cli.start", "typer", ["version"]),
        ("reward_server.cli.start", "reward_server.cli.main", ["version"]),
        ("reward_server.cli.start", "sqlalchemy", ["keys", "list"]),
        ("reward_server.cli.start", "uvicorn", ["serve", "--port", "0"]),
        ("reward_server.cli.start", "reward_server.server.app", ["serve", "--port", "0"]),
        ("learner", "trainer_client", ["algorithms"]),
    ],
)
@pytest.mark.slow
def test_while_a_command_loads_it_ends_without_a_word(
    module: str, name: str, arguments: list[str], tmp_path: Path
) -> None:
    done = run(INTERRUPTED_AT_AN_IMPORT.format(module=module, name=name), *arguments, data=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("name", ["typer", "reward_server.cli.main", "reward_server.settings"])
def test_a_training_says_even_then_that_nothing_is_lost(name: str, tmp_path: Path) -> None:
    program = INTERRUPTED_AT_AN_IMPORT.format(module="reward_server.cli.start", name=name)
    done = run(program, "reward-model", "train", "talks.jsonl", data=tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.startswith("labs: interrupted before ")
    assert done.stderr.endswith("; the same command starts again\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("module", "name", "command"),
    [
        ("reward_server.cli.start", "typer", "version"),
        ("reward_server.cli.start", "reward_server.cli.main", "version"),
        ("learner", "trainer_client", "algorithms"),
    ],
)
def test_where_it_is_ignored_it_stays_ignored(module: str, name: str, command: str, tmp_path: Path) -> None:
    """As in a shell script that sends the command to the background: Ctrl-C is for what runs in front."""
    done = run(f"{IGNORED}{INTERRUPTED_AT_AN_IMPORT.format(module=module, name=name)}", command, data=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("module", ["reward_server.cli.start", "learner"])
def test_without_signal_masks_it_starts_all_the_same(module: str, tmp_path: Path) -> None:
    without = (
        f"import runpy, signal, sys; del signal.pthread_sigmask; runpy.run_module({module!r}, run_name='__main__')"
    )
    done = run(without, "--help", data=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("module", ["reward_server.cli.start", "learner"])
def test_what_was_held_back_while_the_interpreter_started_is_heard(module: str, tmp_path: Path) -> None:
    done = run(HELD_BACK.format(module=module), "--help", data=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_help_waits_for_nothing_that_only_some_commands_need(tmp_path: Path) -> None:
    loaded = (
        "import sys; import reward_server.cli.main; print({'numpy', 'sqlalchemy', 'torch', 'yaml'} & {*sys.modules})"
    )
    assert run(loaded, data=tmp_path).stdout == "set()\n"
