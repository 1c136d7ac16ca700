"""Schema changes: forwards and back with data, from many processes at once, whole or not at all."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from reward_server.errors import ConfigurationError, StoreUnavailable
from reward_server.store import migrate as migrations
from reward_server.store.engine import sqlite_url
from reward_server.store.migrate import check, downgrade, migrate
from reward_server.store.records import Spend
from reward_server.store.store import Store
from tests.store.builders import a_comparison, a_key, a_turn, after_a_turn, an_answer, an_episode, an_evaluation

ROOT = Path(__file__).parents[2]


def tables(database: Path) -> set[str]:
    with sqlite3.connect(database) as connection:
        found = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    return found


async def fill(url: str) -> None:
    store = await Store.open(url)
    episode = an_episode()
    after = after_a_turn(episode)
    async with store.transaction() as work:
        await work.episodes.add(episode)
        await work.episodes.append_turn(after, a_turn(after))
        await work.evaluations.add_many([an_evaluation()])
        await work.comparisons.add(a_comparison())
        await work.answers.put(an_answer())
        await work.keys.add(a_key())
    await store.close()


async def test_the_revisions_make_exactly_the_tables_of_the_code(url: str) -> None:
    await check(url)


async def test_a_difference_between_tables_and_revisions_is_found(url: str, database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("ALTER TABLE turn ADD COLUMN stray INTEGER")
    connection.close()
    with pytest.raises(ConfigurationError, match="stray"):
        await check(url)


async def test_up_down_and_up_again_with_data(url: str, database: Path) -> None:
    await fill(url)
    await downgrade(url, "base")
    assert tables(database) == {"alembic_version"}
    await migrate(url)
    await check(url)
    await fill(url)


async def test_keys_of_an_older_version_become_no_operators(database: Path) -> None:
    url = sqlite_url(database)
    await migrate(url, "0001")
    with sqlite3.connect(database) as connection:
        connection.execute(
            "INSERT INTO api_key (key_id, lab_id, name, digest, plan, full_scores, created_at)"
            " VALUES ('k', 'acme', 'old', x'00', 'standard', 0, '2026-01-01 00:00:00.000000')"
        )
    connection.close()
    await migrate(url)
    store = await Store.open(url)
    async with store.reading() as work:
        (key,) = await work.keys.list()
        (lab,) = await work.labs.list()
    await store.close()
    assert (key.name, key.scopes) == ("old", ("train", "score", "export", "label"))
    assert lab.lab_id == "acme"


async def test_operators_keys_of_an_older_version_may_operate_and_go_back(database: Path) -> None:
    url = sqlite_url(database)
    await migrate(url, "0004")
    with sqlite3.connect(database) as connection:
        connection.execute(
            "INSERT INTO api_key (key_id, lab_id, name, digest, plan, full_scores, operator, created_at)"
            " VALUES ('k', 'acme', 'ops', x'00', 'standard', 0, 1, '2026-01-01 00:00:00.000000')"
        )
    connection.close()
    await migrate(url)
    store = await Store.open(url)
    async with store.reading() as work:
        (key,) = await work.keys.list()
    await store.close()
    assert key.scopes == ("train", "score", "export", "label", "operate")
    await downgrade(url, "0004")
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT operator FROM api_key").fetchall() == [(1,)]
    connection.close()


async def test_what_was_spent_before_calls_were_counted_is_kept(database: Path) -> None:
    url = sqlite_url(database)
    await migrate(url, "0002")
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO llm_spending (lab_id, day, tokens, nano_usd) VALUES ('a', '2026-01-01', 5, 7)")
    connection.close()
    await migrate(url)
    store = await Store.open(url)
    async with store.reading() as work:
        (row,) = await work.spending.since(date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC))
    await store.close()
    assert (row.calls, row.spent) == (0, Spend(tokens=5, nano_usd=7))
    await downgrade(url, "0002")
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT * FROM llm_spending").fetchall() == [("a", "2026-01-01", 5, 7)]
    connection.close()


async def test_migrating_again_changes_nothing(url: str, database: Path) -> None:
    await fill(url)
    await migrate(url)
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM turn").fetchone() == (1,)
    connection.close()


@pytest.mark.parametrize("name", ["with a space", "100%25", "what?", "a#b", "ünï"])
async def test_any_directory_name_will_do(tmp_path: Path, name: str) -> None:
    database = tmp_path / name / "labs.sqlite"
    await migrate(sqlite_url(database))
    await fill(sqlite_url(database))
    assert database.exists()
    assert (tmp_path / name).stat().st_mode & 0o077 == 0


async def test_the_database_of_a_newer_version_is_refused(url: str, database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(ConfigurationError, match="does not fit"):
        await migrate(url)


async def test_a_migration_that_fails_leaves_the_schema_as_it_was(database: Path) -> None:
    def stop_halfway(config: Config) -> None:
        command.upgrade(config, "head")
        raise ConfigurationError("stopped")

    with pytest.raises(ConfigurationError, match="stopped"):
        await migrations._run(sqlite_url(database), stop_halfway)
    assert tables(database) == set()
    await migrate(sqlite_url(database))


async def test_rows_that_refer_to_nothing_stop_a_migration(url: str, database: Path) -> None:
    await fill(url)
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM episode")
    connection.close()
    with pytest.raises(ConfigurationError, match="refer to nothing"):
        await migrate(url)


async def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        await migrate(sqlite_url(tmp_path / "file" / "labs.sqlite"))


async def test_a_database_held_by_another_program_is_reported(
    url: str, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_WAIT_S", 0.05)
    locker = sqlite3.connect(database, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable):
        await migrate(url)
    locker.close()


async def test_a_migration_in_progress_elsewhere_is_waited_for_but_not_for_ever(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_WAIT_S", 0.05)
    with migrations._alone(sqlite_url(database)), pytest.raises(ConfigurationError, match="Another process"):
        await migrate(sqlite_url(database))


@pytest.mark.slow
def test_processes_that_start_together_all_find_a_migrated_database(database: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from reward_server.store.migrate import migrate\n"
        "from reward_server.store.store import Store\n"
        "async def main():\n"
        "    await migrate(sys.argv[1])\n"
        "    store = await Store.open(sys.argv[1])\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, sqlite_url(database)], cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
        for _ in range(3)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    asyncio.run(check(sqlite_url(database)))


@pytest.mark.parametrize(
    "url",
    ["no url", "postgresql://user:hunter2@host/db", "sqlite://", "sqlite:///:memory:", "sqlite:///file:x?uri=true"],
)
async def test_a_database_this_version_cannot_use_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await migrate(url)
    assert "hunter2" not in caught.value.message


async def test_the_database_is_for_its_owner_alone(tmp_path: Path) -> None:
    await migrate(f"sqlite:///{tmp_path / 'labs.sqlite'}")
    assert (tmp_path / "labs.sqlite").stat().st_mode & 0o777 == 0o600
