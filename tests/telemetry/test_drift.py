"""Drift of rewards: a scenario that pays differently from before."""

from __future__ import annotations

from reward_server.telemetry.drift import ENOUGH_BEFORE, LATEST, Drift

STEADY = (0.4, 0.6)


def fed(drift: Drift, count: int, rewards: tuple[float, ...] = STEADY, version: str = "sv_1") -> list[float | None]:
    return [drift.moved("tutoring", "fractions", rewards[i % len(rewards)], version) for i in range(count)]


def test_nothing_is_said_before_there_is_enough() -> None:
    assert set(fed(Drift(), LATEST + ENOUGH_BEFORE - 1)) == {None}


def test_what_pays_as_before_stands_at_zero_and_a_jump_is_counted_in_deviations() -> None:
    drift = Drift()
    assert fed(drift, LATEST + ENOUGH_BEFORE)[-1] == 0.0
    moved = fed(drift, LATEST, (0.8,))[-1]
    assert moved is not None
    assert 2.9 < moved < 3.1


def test_scenarios_and_scoring_versions_have_windows_of_their_own() -> None:
    drift = Drift()
    fed(drift, LATEST + ENOUGH_BEFORE)
    assert drift.moved("tutoring", "decimals", 0.9, "sv_1") is None
    assert drift.moved("tutoring", "fractions", 0.9, "sv_2") is None
