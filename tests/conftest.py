"""Settings of the whole suite, and the real servers that some tests need: one each, when first asked for."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import re
import secrets
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from benchmarks.real_servers import PostgresServer, RedisServer

SLOW_AS_A_WHOLE = re.compile(r"^pytestmark = (\[.*)?pytest\.mark\.slow\b", re.MULTILINE)


REAL_MODELS = Path(__file__).with_name("models")
"""Tests that ask a real language model: they need its weights, which nobody ships with a project."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--models FOLDER`: the tests of a real model, and no others."""
    parser.addoption(
        "--models",
        type=Path,
        metavar="FOLDER",
        help="run the tests that ask a real language model, with the one *.gguf file of FOLDER and llama.cpp's "
        "llama-server, from FOLDER or the PATH",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The same start for every run: Ctrl-C is heard, vectors of authored sentences are kept between processes.

    No test leaves this machine, so HTTP clients read no certificates, which takes each of them 25 ms. Ray gets its
    token from the environment: else it writes one into the home folder, and a process remembers whether it has one.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So do shells start what runs in the background; tests of Ctrl-C need it heard, here and in their processes.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = os.devnull
    os.environ.setdefault("LABS_CACHE", str(Path(config.rootpath) / ".pytest_cache" / "labs"))
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Tests of a real model run with `--models` only, and then no others run.

    A module whose tests are all slow is not imported where no slow test is wanted: its libraries take seconds.
    """
    if collection_path.suffix == ".py" and REAL_MODELS in collection_path.parents:
        return None if config.option.models else True
    if config.option.models:
        return True if collection_path.match("test_*.py") else None
    if config.option.markexpr != "not slow" or not collection_path.match("test_*.py"):
        return None
    return True if SLOW_AS_A_WHOLE.search(collection_path.read_text()) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and test items live as long as the run: the garbage collector walks through them once, not each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file to copy: migrating takes a hundred times as long."""
    from reward_server.store.engine import sqlite_url
    from reward_server.store.migrate import migrate

    path = tmp_path_factory.mktemp("migrated") / "labs.sqlite"
    asyncio.run(migrate(sqlite_url(path)))
    return path


@pytest.fixture
def sqlite_database(tmp_path: Path, migrated_sqlite: Path) -> str:
    """The URL of a migrated `labs.sqlite` of this test."""
    from reward_server.store.engine import sqlite_url

    return sqlite_url(Path(shutil.copy(migrated_sqlite, tmp_path / "labs.sqlite")))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def migrated(postgres: PostgresServer) -> str:
    """The name of a migrated database to copy: migrating takes ten times as long."""
    from reward_server.store.migrate import migrate

    asyncio.run(migrate(postgres.new_database("migrated")))
    return "migrated"


@pytest.fixture(scope="session")
def new_database(postgres: PostgresServer, migrated: str) -> Callable[[], str]:
    """Makes migrated databases, and gives their URLs."""
    numbers = itertools.count()
    return lambda: postgres.new_database(f"labs_{next(numbers)}", migrated)


@pytest.fixture
def postgres_url(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server
