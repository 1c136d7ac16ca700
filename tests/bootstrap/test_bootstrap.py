"""`./labs` prepares an environment once, mends an interrupted one, and two at once do not collide.

Installing is replaced by a stand-in that records calls; the real installation is what runs this suite.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "deploy" / "bootstrap.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load()
    monkeypatch.setenv("LABS_HOME", str(tmp_path / "a home"))
    calls = tmp_path / "calls"
    monkeypatch.setattr(module, "create_venv", lambda venv, log: stand_in_venv(venv, calls))
    monkeypatch.setattr(module, "install", lambda venv, wanted, log: note(calls, "install"))
    module.calls = calls
    return module


def stand_in_venv(venv: Path, calls: Path) -> None:
    (venv / "bin").mkdir(parents=True, exist_ok=True)
    note(calls, "venv")


def note(calls: Path, what: str) -> None:
    with calls.open("a") as file:
        file.write(what + "\n")


def noted(module: ModuleType) -> list[str]:
    return module.calls.read_text().split() if module.calls.exists() else []


def test_the_second_run_prepares_nothing(bootstrap: ModuleType) -> None:
    first = bootstrap.prepare(dev=False)
    assert noted(bootstrap) == ["venv", "install"]
    assert bootstrap.prepare(dev=False) == first
    assert noted(bootstrap) == ["venv", "install"]


def test_an_environment_for_the_tests_serves_as_well(bootstrap: ModuleType) -> None:
    bootstrap.prepare(dev=True)
    bootstrap.prepare(dev=False)
    assert noted(bootstrap) == ["venv", "install"]


def test_the_tests_complete_an_environment_of_the_server(bootstrap: ModuleType) -> None:
    bootstrap.prepare(dev=False)
    bootstrap.prepare(dev=True)
    assert noted(bootstrap) == ["venv", "install", "install"]


def test_an_interrupted_installation_is_done_again(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(venv: Path, wanted: list[str], log: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "install", interrupted)
        with pytest.raises(SystemExit, match="run the same command again"):
            bootstrap.prepare(dev=False)
    bootstrap.prepare(dev=False)
    assert noted(bootstrap) == ["venv", "venv", "install"]


def test_an_environment_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    venv = tmp_path / ".venv"
    venv.mkdir()
    (venv / "theirs").touch()
    with pytest.raises(SystemExit, match=r"that \./labs did not make"):
        load().create_venv(venv, tmp_path / "log")
    assert (venv / "theirs").exists()


def test_changed_requirements_are_installed(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap.prepare(dev=False)
    monkeypatch.setattr(bootstrap, "requirements", lambda *, dev: ["something-else"])
    bootstrap.prepare(dev=False)
    assert noted(bootstrap).count("install") == 2


def prepare_in_a_process(home: str, calls: str) -> None:
    os.environ["LABS_HOME"] = home
    module = load()
    module.create_venv = lambda venv, log: stand_in_venv(venv, Path(calls))
    module.install = lambda venv, wanted, log: note(Path(calls), "install")
    module.prepare(dev=False)


def test_two_at_once_install_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    calls = tmp_path / "calls"
    arguments = (str(tmp_path / "home"), str(calls))
    processes = [context.Process(target=prepare_in_a_process, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert calls.read_text().split() == ["venv", "install"]


def test_a_failed_step_shows_its_log_and_keeps_it(bootstrap: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", "import sys; print('no such package'); sys.exit(3)"]
    with pytest.raises(SystemExit, match=r"installing failed \(exit 3\)"):
        bootstrap.run_logged(command, log, "installing")
    assert "no such package" in log.read_text()


def test_a_home_that_cannot_be_written_is_one_line(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABS_HOME", "/proc/nowhere")
    with pytest.raises(SystemExit, match="set LABS_HOME"):
        bootstrap.prepare(dev=False)


def test_without_a_python_the_script_says_what_to_install(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "LABS_PYTHON": ""}
    (tmp_path / "dirname").symlink_to("/usr/bin/dirname")
    done = subprocess.run(["/bin/sh", str(ROOT / "labs"), "version"], capture_output=True, env=environment, check=False)
    assert done.returncode == 1
    assert b"no Python 3.11, 3.12 or 3.13 found" in done.stderr


def pytest_of(bootstrap: ModuleType, *arguments: str) -> list[str]:
    """What pytest is told at the end of `./labs test` with these arguments."""
    command = bootstrap.test_commands(Path("/an/env/bin/python"), list(arguments))[-1]
    assert command[:3] == ["/an/env/bin/python", "-m", "pytest"]
    return command[3:]


def test_slow_tests_run_with_all_alone(bootstrap: ModuleType) -> None:
    default, whole = pytest_of(bootstrap), pytest_of(bootstrap, "--all")
    assert default[:2] == ["-m", "not slow"]
    assert whole == default[2:]


def test_all_is_still_the_whole_check(bootstrap: ModuleType) -> None:
    python = Path("/an/env/bin/python")
    assert bootstrap.test_commands(python, ["--all"])[:-1] == bootstrap.test_commands(python, [])[:-1]
    assert len(bootstrap.test_commands(python, ["--all"])) == 5


def test_chosen_tests_leave_the_slow_ones_out_unless_asked(bootstrap: ModuleType) -> None:
    assert pytest_of(bootstrap, "tests/scoring", "-k", "caps") == ["-m", "not slow", "tests/scoring", "-k", "caps"]
    assert pytest_of(bootstrap, "tests/scoring", "--all") == ["tests/scoring"]


def test_the_folder_of_a_model_is_no_place_of_tests(bootstrap: ModuleType, tmp_path: Path) -> None:
    told = pytest_of(bootstrap, "--models", str(tmp_path), "-k", "voice")
    assert told == ["-m", "not slow", f"--models={tmp_path}", "-k", "voice"]


def steps(folder: Path, *codes: int) -> list[list[str]]:
    """Steps that say where they are and end with these exit codes; the first is called as types are."""
    says = "import sys; print('step', sys.argv[1]); sys.exit(int(sys.argv[2]))"
    script = folder / "step.py"
    script.write_text(says)
    names = ["mypy", *map(str, range(1, len(codes)))]
    return [[sys.executable, str(script), name, str(code)] for name, code in zip(names, codes, strict=True)]


@pytest.mark.parametrize(("codes", "failed"), [((0, 0, 0), []), ((1, 0, 2), ["2 2", "mypy 1"]), ((0, 3, 0), ["1 3"])])
def test_every_step_runs_and_every_failure_is_named(
    codes: tuple[int, ...],
    failed: list[str],
    bootstrap: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bootstrap, "test_commands", lambda python, arguments: steps(tmp_path, *codes))
    assert bootstrap.run_tests(Path(sys.executable), []) == int(bool(failed))
    said = capfd.readouterr()
    assert said.out.splitlines() == ["step 1", "step 2", "step mypy"]
    named = [line for line in said.err.splitlines() if line.startswith("labs: FAILED: ")]
    assert [line.partition("step.py ")[2] for line in named] == failed


@pytest.mark.parametrize(("arguments", "is_said"), [(["{folder}"], True), (["{folder}", "--all"], False)])
def test_where_all_tests_are_slow_it_is_said(
    arguments: list[str],
    is_said: bool,
    bootstrap: ModuleType,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: slow\n")
    (tmp_path / "test_slow.py").write_text("import pytest\n\n@pytest.mark.slow\ndef test_it():\n    pass\n")
    given = [argument.format(folder=tmp_path) for argument in arguments]
    assert bootstrap.run_tests(Path(sys.executable), given) == int(is_said)
    assert ("those marked slow need --all" in capfd.readouterr().err) == is_said


def test_ci_runs_the_slow_tests() -> None:
    assert "./labs test --all" in (ROOT / ".ci" / "run").read_text().splitlines()


def test_requirements_name_no_address() -> None:
    listing = (ROOT / "constraints" / "constraints.txt").read_text()
    assert "://" not in listing
    assert "@" not in listing


INTERRUPTED_AT_AN_IMPORT = """
import os, runpy, sys

script, awaited, *sys.argv[1:] = sys.argv[1:]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == awaited:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), 2)

sys.meta_path.insert(0, Interrupting())
runpy.run_path(script, run_name="__main__")
"""


@pytest.mark.parametrize("name", ["signal", "tomllib"])
def test_ctrl_c_while_it_loads_ends_it_without_a_word(name: str) -> None:
    command = [sys.executable, "-I", "-S", "-c", INTERRUPTED_AT_AN_IMPORT, str(ROOT / "deploy" / "bootstrap.py"), name]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    # Killed by the signal, which shells show as 130.
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.parametrize("name", ["signal", "tomllib"])
def test_ctrl_c_that_is_ignored_stays_so(name: str) -> None:
    """As in a shell script that sends the command to the background."""
    program = f"import _signal; _signal.signal(_signal.SIGINT, _signal.SIG_IGN){INTERRUPTED_AT_AN_IMPORT}"
    bootstrap = str(ROOT / "deploy" / "bootstrap.py")
    command = [sys.executable, "-I", "-S", "-c", program, bootstrap, name, "test", "--help"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"usage: ./labs test")


@pytest.mark.parametrize("arguments", [["version"], ["learner", "algorithms"]])
def test_ctrl_c_is_held_back_while_the_next_interpreter_starts(
    arguments: list[str], bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    monkeypatch.setattr(
        bootstrap.os, "execv", lambda *_: held.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    )
    try:
        bootstrap.main(arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert held == [True]
