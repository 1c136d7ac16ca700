"""What the store promises, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy.exc import IntegrityError

from reward_server.auth.actor import COMMAND_LINE
from reward_server.errors import Conflict, StoreUnavailable, TurnInProgress
from reward_server.store import pages
from reward_server.store.migrate import check, downgrade, migrate
from reward_server.store.records import (
    BookingRow,
    Ceiling,
    DeliveryRow,
    DeliveryState,
    LabLimitsRow,
    LabRow,
    PageEnd,
    Spend,
    Stats,
    UsageRow,
    WebhookRow,
)
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork
from tests.store.builders import (
    NOW,
    a_comparison,
    a_delivery,
    a_key,
    a_turn,
    a_webhook,
    after_a_turn,
    an_answer,
    an_episode,
    an_evaluation,
)

ODD = {"z": 1, "a": [None, "ü\u2028", 0.1, 1e-17], "deep": {"b": 1, "a": 2}}
"""Order of keys, precision and characters that a database might change."""


@pytest.fixture
def store(store_on_both: Store) -> Store:
    return store_on_both


async def test_a_turn_and_its_answer_come_back_as_they_went_in(store: Store) -> None:
    episode = an_episode(metadata=ODD)
    after = after_a_turn(episode)
    turn = a_turn(after, answer=ODD, reward=0.1 + 0.2)
    async with store.transaction() as work:
        await work.episodes.add(episode)
        await work.episodes.append_turn(after, turn)
        await work.answers.put(an_answer(body=ODD))
    async with store.reading() as work:
        assert await work.episodes.get("acme", episode.episode_id) == after
        assert await work.episodes.turns("acme", episode.episode_id) == [turn]
        found = await work.answers.get("acme", "key-1", NOW)
    assert found is not None
    # Equality of dictionaries does not look at the order.
    assert str(found.body) == str(ODD)


async def test_a_batch_of_no_turns_changes_nothing(store: Store) -> None:
    async with store.transaction() as work:
        assert await work.episodes.append_turns([]) == set()


async def test_of_turns_stored_together_those_that_came_too_late_are_left_out(store: Store) -> None:
    episodes = [an_episode() for _ in range(4)]
    first = [after_a_turn(episode) for episode in episodes]
    async with store.transaction() as work:
        await work.episodes.add(*episodes)
        await work.episodes.append_turn(first[1], a_turn(first[1]))
    late = replace(first[1], persona_state={"late": True})
    together = [first[0], late, first[2], first[3]]

    async def write(unit: UnitOfWork) -> set[str]:
        return await unit.episodes.append_turns([(after, a_turn(after)) for after in together])

    assert await store.write(write) == {each.episode_id for each in (first[0], first[2], first[3])}
    async with store.reading() as work:
        assert await work.episodes.named("acme", [each.episode_id for each in episodes]) == {
            each.episode_id: each for each in first
        }
        turns = await work.episodes.turns_of("acme", [each.episode_id for each in episodes])
    assert [len(turns[each.episode_id]) for each in episodes] == [1, 1, 1, 1]


async def test_of_many_that_write_one_position_one_wins(store: Store) -> None:
    episode = an_episode()
    async with store.transaction() as work:
        await work.episodes.add(episode)
    after = after_a_turn(episode)

    async def play() -> None:
        async with store.transaction() as work:
            await work.episodes.append_turn(after, a_turn(after))

    outcomes = await asyncio.gather(*(play() for _ in range(8)), return_exceptions=True)
    assert [type(each) for each in outcomes].count(TurnInProgress) == 7


async def test_a_failed_member_of_a_group_takes_nobody_along(store: Store) -> None:
    episodes = [an_episode() for _ in range(4)]

    async def add(index: int) -> None:
        async with store.transaction() as work:
            await work.episodes.add(episodes[index])
            if index in (0, 2):
                await work.episodes.add(episodes[index])

    outcomes = await asyncio.gather(*(add(index) for index in range(4)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [IntegrityError, type(None), IntegrityError, type(None)]
    async with store.reading() as work:
        found = [await work.episodes.get("acme", each.episode_id) for each in episodes]
    assert [each is not None for each in found] == [False, True, False, True]


async def test_a_key_that_was_just_used_conflicts(store: Store) -> None:
    async with store.transaction() as work:
        await work.answers.put(an_answer())
    with pytest.raises(Conflict):
        async with store.transaction() as work:
            await work.answers.put(an_answer())


async def test_a_reader_sees_one_state_and_cannot_write(store: Store) -> None:
    async with store.reading() as before:
        assert await before.keys.count() == 0
        async with store.transaction() as work:
            await work.keys.add(a_key())
        assert await before.keys.count() == 0
    with pytest.raises(StoreUnavailable):
        async with store.reading() as work:
            await work.answers.put(an_answer())


async def test_lists_are_paged_in_one_order(store: Store) -> None:
    rows = [an_episode(created_at=NOW + timedelta(seconds=index // 2)) for index in range(6)]
    async with store.transaction() as work:
        for row in rows:
            await work.episodes.add(row)
    seen: list[str] = []
    after: PageEnd | None = None
    while True:
        async with store.reading() as work:
            page = await work.episodes.page("acme", 2, now=NOW, after=after)
        if not page:
            break
        seen += [row.episode_id for row in page]
        after = PageEnd(page[-1].created_at, page[-1].episode_id)
    newest_first = sorted(rows, key=lambda row: (row.created_at, row.episode_id), reverse=True)
    assert seen == [row.episode_id for row in newest_first]


async def test_statistics_and_training_rows(store: Store) -> None:
    async with store.transaction() as work:
        await work.evaluations.add_many([an_evaluation(reward=reward) for reward in (0.25, 0.75)])
        await work.comparisons.add(a_comparison())
    async with store.reading() as work:
        assert await work.evaluations.window("acme", "run-1", last=10) == Stats(n=2, mean=0.5, std=0.25)
        assert await work.evaluations.window("rival", "run-1") == Stats(n=0, mean=0.0, std=0.0)
        assert len(await work.evaluations.of()) == len(await work.evaluations.of("acme")) == 2
        assert len(await work.comparisons.of("acme")) == 1
        assert sorted(await work.evaluations.plain_rewards("sv_0123456789ab")) == [0.25, 0.75]


async def test_a_budget_is_never_overbooked(store: Store) -> None:
    day, ceiling = NOW.date(), Ceiling(tokens=100)

    async def book(number: int) -> bool:
        row = BookingRow(
            booking_id=f"b{number}", lab_id="acme", day=day, spend=Spend(tokens=30),
            runs_out_at=NOW + timedelta(minutes=1),
        )  # fmt: skip
        async with store.transaction() as work:
            return await work.spending.book(row, NOW, ceiling)

    assert sum(await asyncio.gather(*(book(number) for number in range(8)))) == 3


async def test_what_models_decided_is_kept_once(store: Store) -> None:
    odd = 'a \\ backslash, "quotes", ü'
    async with store.transaction() as work:
        await work.llm_answers.put_many({"k1": odd, "k2": "two"}, NOW)
        await work.llm_answers.put_many({"k1": "another"}, NOW)
        await work.llm_answers.replace("k2", "two", "mended", NOW)
    async with store.reading() as work:
        assert await work.llm_answers.get_many(["k1", "k2", "k3"]) == {"k1": odd, "k2": "mended"}


async def test_usage_adds_up_and_events_are_paged(store: Store) -> None:
    day = UsageRow(lab_id="acme", day=NOW.date(), requests=1, characters=10)
    other = UsageRow(lab_id="rival", day=NOW.date(), turns=2)
    events = [COMMAND_LINE.did(NOW + timedelta(seconds=index), "key.created", str(index)) for index in range(3)]
    async with store.transaction() as work:
        assert await work.usage.add_many([day, other]) == [day, other]
        [total] = await work.usage.add_many([day])
        for event in events:
            await work.audit.add(event)
    assert (total.requests, total.characters) == (2, 20)
    async with store.reading() as work:
        assert await work.usage.of("acme", NOW.date()) == [total]
        first = await work.audit.page(2)
        rest = await work.audit.page(2, after=PageEnd(first[-1].at, first[-1].event_id))
    assert [row.target for row in first + rest] == ["2", "1", "0"]


async def test_a_labs_conversations_are_measured_and_deleted_and_nobody_elses(store: Store) -> None:
    for lab_id in ("acme", "rival"):
        episode = an_episode(lab_id=lab_id)
        after = after_a_turn(episode)
        async with store.transaction() as work:
            await work.episodes.add(episode)
            await work.episodes.append_turn(after, a_turn(after))
            await work.evaluations.add_many([an_evaluation(lab_id=lab_id)])
            await work.comparisons.add(a_comparison(lab_id=lab_id))
            await work.answers.put(an_answer(lab_id=lab_id))
    async with store.reading() as work:
        acme = await work.disposal.stored_bytes("acme")
        rival = await work.disposal.stored_bytes("rival")
    assert abs(acme - rival) <= 2
    assert acme > 100
    async with store.transaction() as work:
        assert await work.disposal.delete("acme", before=NOW) == {}
        deleted = await work.disposal.delete("acme", before=NOW + timedelta(days=1))
    assert deleted == {"episode": 1, "evaluation": 1, "comparison": 1, "stored_answer": 1}
    async with store.reading() as work:
        assert await work.disposal.stored_bytes("acme") == 0
        assert await work.disposal.stored_bytes("rival") == rival


async def test_a_lab_has_limits_that_can_be_changed(store: Store) -> None:
    row = LabRow(lab_id="acme", name="", created_at=NOW, limits=LabLimitsRow(storage_bytes=2**40, retention_days=30))
    changed = replace(row, name="Acme", limits=LabLimitsRow(concurrency=3))
    async with store.transaction() as work:
        assert await work.labs.add(row)
        assert not await work.labs.add(changed)
        assert await work.labs.get("acme") == row
        await work.labs.change(changed)
        assert await work.labs.list() == [changed]


async def test_a_probe_writes(store: Store) -> None:
    await store.probe()


async def fill(store: Store) -> None:
    episode = an_episode()
    after = after_a_turn(episode)
    async with store.transaction() as work:
        await work.keys.add(a_key())
        await work.episodes.add(episode)
        await work.episodes.append_turn(after, a_turn(after))
        await work.evaluations.add_many([an_evaluation()])
        await work.comparisons.add(a_comparison())
        await work.answers.put(an_answer())


async def test_up_down_and_up_again_with_data(engine_url: str) -> None:
    for _ in range(2):
        store = await Store.open(engine_url)
        await fill(store)
        await store.close()
        await downgrade(engine_url, "base")
        await migrate(engine_url)
        await check(engine_url)


async def test_more_rows_than_one_statement_reads_come_once_each_in_order(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "STATEMENT_ROWS", 4)
    # Three rows share each moment, so a piece ends within one.
    rows = [an_evaluation(lab_id="acme", created_at=NOW + timedelta(seconds=number // 3)) for number in range(12)]
    async with store.transaction() as work:
        await work.evaluations.add_many([*rows, an_evaluation(lab_id="other")])
    async with store.reading() as work:
        assert await work.evaluations.of("acme") == sorted(rows, key=lambda row: (row.created_at, row.evaluation_id))
        assert len(await work.evaluations.of()) == 13


async def test_a_message_is_claimed_as_it_was_read_or_not_at_all(store: Store) -> None:
    hook, other = a_webhook(), a_webhook(lab_id="rival")
    waiting = [a_delivery(hook, next_at=NOW + timedelta(seconds=second)) for second in (3, 2, 1)]
    theirs, later = a_delivery(other, next_at=NOW), a_delivery(other, next_at=NOW + timedelta(days=1))
    async with store.transaction() as work:
        await work.webhooks.add(hook)
        await work.webhooks.add(other)
        await work.webhooks.queue([*waiting, theirs, later])
    now, lease = NOW + timedelta(minutes=1), NOW + timedelta(minutes=2)

    async def due(limit: int = 10, *but: str) -> list[DeliveryRow]:
        return await store.read(lambda work: work.webhooks.due(now, limit, but=but))

    async def claim(*rows: DeliveryRow) -> list[tuple[WebhookRow, DeliveryRow]]:
        return await store.write(lambda work: work.webhooks.claim(rows, lease))

    assert await due() == [theirs, waiting[2]]
    assert await due(1) == [theirs]
    assert await due(10, "rival") == await due(10, other.webhook_id) == [waiting[2]]
    taken = replace(theirs, attempts=1, next_at=lease), replace(waiting[2], attempts=1, next_at=lease)
    assert await claim(theirs, waiting[2]) == [(other, taken[0]), (hook, taken[1])]
    assert await claim(theirs, waiting[2]) == []
    assert await due() == [waiting[1]]
    async with store.transaction() as work:
        await work.webhooks.settle(replace(waiting[1], state=DeliveryState.DELIVERED))
        await work.webhooks.settle(replace(waiting[0], next_at=now))
        await work.webhooks.delete("rival", other.webhook_id)
    assert await claim(theirs, *waiting) == []
    assert await due() == [replace(waiting[0], next_at=now)]
