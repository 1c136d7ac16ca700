"""Prepare an environment for this checkout, then run the command that was asked for.

Standard library only: this runs before anything is installed. The environment is a virtual one in
`.venv` beside the checkout's files (or under LABS_HOME, or in the user's cache where the checkout is
read-only). A stamp with a fingerprint of everything that decides its contents is written last, so an
interrupted installation is simply done again; a file lock lets two terminals start at once. When the
stamp fits, nothing is looked up and no network is needed.
"""

from __future__ import annotations

import _signal

if __name__ == "__main__" and _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
    # Where whoever started this ignores Ctrl-C, as a shell script does for a background job, it stays ignored.
    # Else: until there is something to tidy up, Ctrl-C ends this without a word: also while the rest is imported,
    # `signal` first of all, which takes a hundredth of a second.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG_LINES_SHOWN = 20
NO_TESTS = 5
"""The exit code of pytest where no test was selected."""
OURS = ".made-by-labs"
TEST_HELP = """usage: ./labs test [--all] [--models FOLDER] [pytest arguments]

Without arguments: format, lint, import rules, types and the tests.
With arguments: pytest with them, for example ./labs test tests/scoring -k caps
--all: the tests marked slow, too, which are left out otherwise; CI runs ./labs test --all
--models FOLDER: instead of all others, the tests that ask a real language model. FOLDER holds its weights, one *.gguf
file; llama.cpp's llama-server is looked for there and on the PATH"""


def fail(message: str) -> None:
    """End with one line on standard error."""
    sys.exit(f"labs: {message}")


def home() -> Path:
    """The folder that holds the environment: LABS_HOME, the checkout, or the user's cache."""
    if chosen := os.environ.get("LABS_HOME"):
        return Path(chosen).expanduser().resolve()
    if os.access(ROOT, os.W_OK):
        return ROOT
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "labs" / hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]


def requirements(*, dev: bool) -> list[str]:
    """What pyproject.toml asks for, with our own extras written out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["learner"]]
    for requirement in extras["dev"] if dev else ():
        ours = requirement.startswith(project["name"])
        wanted += [each for extra in _named(requirement) for each in extras[extra]] if ours else [requirement]
    return wanted


def _named(requirement: str) -> list[str]:
    """The extras of a requirement: "labs[a,b]" has a and b."""
    return requirement.partition("[")[2].rstrip("]").split(",")


def fingerprint(wanted: list[str]) -> str:
    """Identifies the environment that these requirements give on this machine."""
    parts = [*wanted, (ROOT / "constraints" / "constraints.txt").read_text(), sys.version]
    # One interpreter has several names, and each of them would ask for an installation of its own.
    parts.append(os.path.realpath(sys.executable))
    parts += [platform.platform(), str(ROOT)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@contextlib.contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Hold an exclusive file lock; says so when it has to wait."""
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("labs: another ./labs is preparing the environment; waiting for it ...", file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run_logged(command: list[str], log: Path, doing: str) -> None:
    """Run a step of the preparation; on failure show the end of its log and stop."""
    with log.open("ab") as sink:
        code = subprocess.run(command, stdout=sink, stderr=subprocess.STDOUT, check=False).returncode
    if code != 0:
        tail = log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        print("\n".join(tail), file=sys.stderr)
        fail(f"{doing} failed (exit {code}); the whole log is {log}")


def create_venv(venv: Path, log: Path) -> None:
    """A fresh virtual environment; a half-built one of ours is removed first, somebody else's never."""
    if venv.exists() and not (venv / OURS).is_file():
        fail(f"there is a {venv} that ./labs did not make; move it away or set LABS_HOME to another folder")
    if venv.exists():
        shutil.rmtree(venv)
    venv.mkdir()
    (venv / OURS).touch()
    missing = subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True, check=False)
    if missing.returncode != 0:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        fail(f"this Python cannot make virtual environments; install python{version}-venv (or python3-venv)")
    run_logged([sys.executable, "-m", "venv", str(venv)], log, "creating the virtual environment")


def install(venv: Path, wanted: list[str], log: Path) -> None:
    """Install the requirements and make the checkout importable; honours the user's pip settings."""
    python = str(venv / "bin" / "python")
    listing = venv / "requirements.txt"
    listing.write_text("\n".join(wanted) + "\n")
    constraints = str(ROOT / "constraints" / "constraints.txt")
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--retries", "5", "--timeout", "60"]
    run_logged([*pip, "-r", str(listing), "-c", constraints], log, "installing the requirements")
    site = next((venv / "lib").glob("python*/site-packages"))
    (site / "labs_checkout.pth").write_text(f"{ROOT}\n")


def prepare(*, dev: bool) -> Path:
    """The interpreter of an environment that fits; built when there is none."""
    base = home()
    venv = base / ".venv"
    wanted = requirements(dev=dev)
    # An environment made for the tests holds all that the server needs, so either stamp will do for the server.
    stamps = {venv / ".labs-dev": fingerprint(requirements(dev=True))}
    if not dev:
        stamps[venv / ".labs-base"] = fingerprint(wanted)

    def fits() -> bool:
        return any(stamp.is_file() and stamp.read_text() == value for stamp, value in stamps.items())

    if not fits():
        try:
            base.mkdir(parents=True, exist_ok=True)
            with only_one(base / ".labs.lock"):
                if not fits():
                    build(venv, wanted, dev=dev)
        except OSError as error:
            fail(f"cannot prepare {venv}: {error.strerror}; set LABS_HOME to a folder you can write")
    return venv / "bin" / "python"


def build(venv: Path, wanted: list[str], *, dev: bool) -> None:
    """Build or complete the environment and stamp it."""
    log = venv.parent / ".labs-install.log"
    log.write_bytes(b"")
    print(
        f"labs: preparing {venv} (once; one to five minutes, progress in {log}) ...",
        file=sys.stderr,
    )
    finished = any((venv / name).is_file() for name in (".labs-dev", ".labs-base"))
    if not finished:
        create_venv(venv, log)
    for name in (".labs-dev", ".labs-base"):
        (venv / name).unlink(missing_ok=True)
    try:
        install(venv, wanted, log)
    except KeyboardInterrupt:
        fail("interrupted; run the same command again to start over")
    stamp = venv / (".labs-dev" if dev else ".labs-base")
    draft = stamp.with_suffix(".new")
    draft.write_text(fingerprint(wanted))
    draft.replace(stamp)


def test_commands(python: Path, arguments: list[str]) -> list[list[str]]:
    """The whole check: format, lint, import rules, types, tests. With arguments: those tests alone.

    Tests marked slow run with `--all` only; an `-m` among the arguments has the last word.
    """
    bin_ = python.parent
    chosen = [argument for argument in arguments if argument != "--all"]
    if "--models" in chosen[:-1]:
        # As one word: pytest takes a folder of its own for a place of tests, before it knows the option.
        place = chosen.index("--models")
        chosen[place : place + 2] = [f"--models={Path(chosen[place + 1]).resolve()}"]
    pytest = [str(python), "-m", "pytest", *([] if "--all" in arguments else ["-m", "not slow"])]
    if chosen:
        return [[*pytest, *chosen]]
    return [
        [str(bin_ / "ruff"), "format", "--check", "."],
        [str(bin_ / "ruff"), "check", "."],
        [str(bin_ / "lint-imports")],
        [str(python), "-m", "mypy"],
        [*pytest, "-n", str(min(os.cpu_count() or 1, 4)), "--dist", "worksteal", "-q"],
    ]


def run_tests(python: Path, arguments: list[str]) -> int:
    """Run every step, even after a failure, so that one run shows all that is wrong."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    # The tests start hundreds of processes: each would compile the program again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    failed, was_empty = [], False
    commands = test_commands(python, arguments)
    # Types take a minute of one core: they are looked at beside the other steps, and spoken of after them.
    aside = [command for command in commands if "mypy" in command]
    with contextlib.ExitStack() as stack:
        started = [(command, in_background(command, environment, stack)) for command in aside]
        for command in commands:
            if command not in aside:
                announce(command)
                code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
                was_empty = was_empty or ("pytest" in command and code == NO_TESTS)
                if code != 0:
                    failed.append(command)
        for command, process in started:
            announce(command)
            print(process.communicate()[0], end="", flush=True)
            if process.returncode != 0:
                failed.append(command)
    for command in failed:
        announce(command, "FAILED: ")
    if was_empty and "--all" not in arguments:
        print(
            "labs: no test was selected: those marked slow need --all, those of a real model --models FOLDER",
            file=sys.stderr,
        )
    return 1 if failed else 0


def announce(command: list[str], what: str = "") -> None:
    """Name a step on standard error."""
    print(f"labs: {what}{Path(command[0]).name} {' '.join(command[1:])}", file=sys.stderr, flush=True)


def in_background(
    command: list[str], environment: dict[str, str], stack: contextlib.ExitStack
) -> subprocess.Popen[str]:
    """Start a step whose words are kept; it ends with the stack at the latest."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    stack.enter_context(process)
    stack.callback(process.terminate)
    return process


def main(arguments: list[str]) -> int:
    """`labs test …` and `labs audit` check the checkout, `labs learner …` is the learner, all else the server's CLI."""
    if arguments[:1] == ["test"]:
        if arguments[1:] in (["--help"], ["-h"]):
            print(TEST_HELP)
            return 0
        return run_tests(prepare(dev=True), arguments[1:])
    if arguments[:1] == ["audit"]:
        os.execv(sys.executable, [sys.executable, "-I", "-S", str(ROOT / "deploy" / "audit.py"), *arguments[1:]])
    python = prepare(dev=False)
    module = "reward_server.cli.start"
    if arguments[:1] == ["learner"]:
        module, arguments = "learner", arguments[1:]
    sys.stdout.flush()
    if hasattr(signal, "pthread_sigmask"):
        # An interpreter that starts answers Ctrl-C with a traceback: held back, until either module lets it through.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.execv(python, [str(python), "-P", "-m", module, *arguments])


if __name__ == "__main__":
    try:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
