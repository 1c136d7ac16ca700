"""Drift of rewards: a scenario that pays differently from before."""

from __future__ import annotations

from reward_server.telemetry.drift import ENOUGH_BEFORE, LATEST, Drift
from reward_server.telemetry.metrics import Metrics

STEADY = (0.4, 0.6)


def fed(drift: Drift, count: int, rewards: tuple[float, ...] = STEADY, version: str = "sv_1") -> list[float | None]:
    said = []
    for i in range(count):
        enough = drift.note("tutoring", "fractions", rewards[i % len(rewards)], version)
        said.append(drift.moved("tutoring", "fractions"))
        assert enough == (said[-1] is not None)
    return said


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
    assert not drift.note("tutoring", "decimals", 0.9, "sv_1")
    assert drift.moved("tutoring", "fractions") is not None
    assert not drift.note("tutoring", "fractions", 0.9, "sv_2")
    assert (drift.moved("tutoring", "decimals"), drift.moved("tutoring", "fractions")) == (None, None)


def test_the_metrics_page_shows_what_is_known_at_the_moment_it_is_read() -> None:
    metrics = Metrics(by_scenario=True)
    names = {"collection": "tutoring", "scenario": "fractions"}

    def shown() -> float | None:
        return metrics.registry.get_sample_value("labs_reward_drift", names)

    def paid(count: int, rewards: tuple[float, ...], version: str = "sv_1") -> None:
        for i in range(count):
            metrics.rewarded("tutoring", "fractions", rewards[i % len(rewards)], version)

    paid(LATEST + ENOUGH_BEFORE - 1, STEADY)
    assert shown() is None
    paid(1, STEADY)
    assert shown() is not None
    paid(LATEST, (0.8,))
    moved = shown()
    assert moved is not None
    assert 2.9 < moved < 3.1
    paid(1, STEADY, "sv_2")
    assert shown() == 0.0
