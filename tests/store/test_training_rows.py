"""What the operator trains models on: all evaluations and comparisons of a lab, or of all, oldest first."""

from __future__ import annotations

from datetime import timedelta

from reward_server.store.store import Store
from tests.store.builders import NOW, a_comparison, an_evaluation


async def test_rows_come_oldest_first_of_one_lab_or_of_all(store: Store) -> None:
    rows = [
        an_evaluation(lab_id=lab, created_at=NOW + timedelta(seconds=second))
        for lab, second in (("acme", 3), ("other", 2), ("acme", 1))
    ]
    pairs = [a_comparison(lab_id=lab) for lab in ("acme", "other")]
    async with store.transaction() as unit:
        await unit.evaluations.add_many(rows)
        for pair in pairs:
            await unit.comparisons.add(pair)
    async with store.reading() as unit:
        assert await unit.evaluations.of("acme") == [rows[2], rows[0]]
        assert await unit.evaluations.of() == [rows[2], rows[1], rows[0]]
        assert await unit.comparisons.of("other") == [pairs[1]]
        assert {row.comparison_id for row in await unit.comparisons.of()} == {row.comparison_id for row in pairs}
        assert await unit.evaluations.of("nobody") == []
