"""`labs migrate`: to this version's schema, and back to an older one, on both engines."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reward_server.store.engine import sqlite_url
from reward_server.store.migrate import revisions
from reward_server.store.occupancy import occupied
from reward_server.store.store import Store
from tests.cli.warm import Labs

pytestmark = pytest.mark.slow

OLDER, NEWEST = revisions()[-3], revisions()[-1]


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    url = {"LABS_DATABASE_URL": str(request.getfixturevalue("postgres_url"))} if request.param == "postgres" else {}
    return {"LABS_DATA": str(tmp_path), **url}


def test_back_to_an_older_revision_and_up_again(labs: Labs, where: dict[str, str]) -> None:
    assert labs("keys", "create", "ci", "--lab", "acme", **where).returncode == 0
    back = labs("migrate", "--to", OLDER, "--yes", **where)
    assert back.stdout == f"The database is at revision {OLDER}.\n", back.stderr
    told = [line.strip() for line in back.stderr.splitlines()[1:]]
    assert [line.split(":")[0] for line in told] == revisions()[:-3:-1]
    assert all(line.split(": ", 1)[1] for line in told)
    older = f"✓ database     whole, revision {OLDER}, which the next start brings to {NEWEST}, 1 API key\n"
    assert older in labs("doctor", LABS_PORT="0", **where).stdout
    assert labs("migrate", **where).stdout == f"The database is at revision {NEWEST}.\n"
    assert "schema is current" in labs("doctor", LABS_PORT="0", **where).stdout
    assert "lab=acme" in labs("keys", "list", **where).stdout


def test_what_is_no_older_revision_is_refused_and_nothing_is_asked_twice(labs: Labs, where: dict[str, str]) -> None:
    assert labs("migrate", **where).returncode == 0
    for wrong in (NEWEST, "9999", "base"):
        refused = labs("migrate", "--to", wrong, "--yes", **where)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert f"older revision than that of the database, {NEWEST}: 0001, " in refused.stderr
    assert labs("migrate", "--to", OLDER, **where).returncode != 0  # nobody is there to confirm it
    assert labs("migrate", **where).stdout == f"The database is at revision {NEWEST}.\n"


def test_a_database_that_a_server_uses_stays_as_it_is(labs: Labs, tmp_path: Path) -> None:
    assert labs("migrate", LABS_DATA=str(tmp_path)).returncode == 0
    with occupied(sqlite_url(tmp_path / "labs.sqlite")):
        refused = labs("migrate", "--to", OLDER, "--yes", LABS_DATA=str(tmp_path))
    assert "stop it" in refused.stderr
    assert labs("migrate", LABS_DATA=str(tmp_path)).stdout == f"The database is at revision {NEWEST}.\n"


def test_a_database_that_replicas_use_stays_as_it_is(labs: Labs, postgres_url: str, tmp_path: Path) -> None:
    where = {"LABS_DATA": str(tmp_path), "LABS_DATABASE_URL": postgres_url}

    async def while_open() -> str:
        store = await Store.open(postgres_url)
        try:
            await store.ping()
            return (await asyncio.to_thread(labs, "migrate", "--to", OLDER, "--yes", **where)).stderr
        finally:
            await store.close()

    assert "stop all servers and workers first" in asyncio.run(while_open())
