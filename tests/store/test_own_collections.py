"""Labs' own scenarios in the store, on both engines."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from reward_server.store.own_collection_records import CheckStatus, OwnCollectionRow
from reward_server.store.store import Store

ROW = OwnCollectionRow(
    lab_id="acme",
    slug="repairs",
    version=1,
    status=CheckStatus.CHECKING,
    digest="1" * 64,
    files={"collection.yaml": "schema: labs.collection/1\nname: Störung\n"},
    findings=[],
    created_at=datetime(2026, 1, 2, tzinfo=UTC),
)
SECOND = replace(ROW, version=2, digest="2" * 64)


async def test_the_newest_version_that_passed_is_in_use(store_on_both: Store) -> None:
    async with store_on_both.transaction() as work:
        await work.own_collections.add(ROW)
        await work.own_collections.add(SECOND)
        await work.own_collections.add(replace(ROW, lab_id="rival"))
        assert await work.own_collections.in_use() == []
        await work.own_collections.settle(ROW, CheckStatus.PASSED, [])
        await work.own_collections.settle(SECOND, CheckStatus.FAILED, ["answers: too much"])
    async with store_on_both.reading() as work:
        [used] = await work.own_collections.in_use()
        assert (used.lab_id, used.slug, used.version, used.digest) == ("acme", "repairs", 1, ROW.digest)
        found = await work.own_collections.of("acme")
        assert found == [
            replace(SECOND, status=CheckStatus.FAILED, findings=["answers: too much"]),
            replace(ROW, status=CheckStatus.PASSED),
        ]
        assert await work.own_collections.get("rival", "repairs", 2) is None


async def test_old_versions_go_and_other_labs_stay(store_on_both: Store) -> None:
    async with store_on_both.transaction() as work:
        for row in (ROW, SECOND, replace(ROW, lab_id="rival")):
            await work.own_collections.add(row)
        assert await work.own_collections.delete("acme", "repairs", below=2)
        assert [row.version for row in await work.own_collections.of("acme")] == [2]
        assert await work.own_collections.delete("acme", "repairs")
        assert not await work.own_collections.delete("acme", "repairs")
        assert len(await work.own_collections.of("rival")) == 1


async def test_a_labs_conversations_go_and_its_scenarios_stay(store_on_both: Store) -> None:
    async with store_on_both.transaction() as work:
        await work.own_collections.add(ROW)
        await work.disposal.delete("acme")
        assert await work.own_collections.of("acme") == [ROW]
