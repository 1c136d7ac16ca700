"""A name that nobody has is answered by the one that was meant, if one is near."""

from __future__ import annotations

import pytest

from scenarios.spelling import OF_IDS, meant, nearest

KNOWN = ("customer-support", "sales", "leaking-blender")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("custmer-support", "customer-support"),
        ("sale", "sales"),
        ("blender", "leaking-blender"),
        ("qqq", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_found_or_none(written: str, found: str | None) -> None:
    assert nearest(written, KNOWN) == found
    assert meant(written, KNOWN) == ("" if found is None else f" Did you mean {found}?")


def test_an_id_is_near_by_a_slip_and_not_by_chance() -> None:
    assert nearest("rm_0123456789ax", ["rm_0123456789ab"], OF_IDS) == "rm_0123456789ab"
    assert nearest("rm_0f1e2d3c4b5a", ["rm_0123456789ab"], OF_IDS) is None


def test_a_name_without_end_costs_no_time() -> None:
    assert nearest("sales" * 1_000_000, KNOWN) is None
