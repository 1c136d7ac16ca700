"""Normalisation windows and z-scores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reward_server.errors import InvalidRequest
from reward_server.scoring.normalise import WindowRange, normalised, parse_windows

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spec", "since", "last"),
    [
        ("7d", NOW - timedelta(days=7), None),
        ("2w", NOW - timedelta(days=14), None),
        ("3m", NOW - timedelta(days=90), None),
        ("100n", None, 100),
        ("0d", NOW, None),
        ("0n", None, 0),
        ("007n", None, 7),
        ("99999999999999d", None, None),
        ("999999999999999n", None, 2**31 - 1),
        ("0" * 200 + "5n", None, 5),
        ("9" * 255 + "n", None, 2**31 - 1),
        ("9" * 255 + "m", None, None),
    ],
)
def test_windows(spec: str, since: datetime | None, last: int | None) -> None:
    assert parse_windows([spec], NOW) == (WindowRange(spec, since, last),)


@pytest.mark.parametrize("spec", ["", "d", "7", "7y", "-7d", "7.5d", "7 d", "7D", "٣d", "7d\n", "1e3n"])
def test_malformed_windows_are_refused(spec: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_windows(["7d", spec], NOW)
    assert caught.value.errors[0].loc == ("normalization_windows", 1)


def test_a_window_given_twice_is_one() -> None:
    assert [each.spec for each in parse_windows(["7d", "5n", "7d"], NOW)] == ["7d", "5n"]


def test_z_is_the_distance_from_the_mean_in_deviations() -> None:
    # population of 0.2, 0.4, 0.6: mean 0.4, variance (0.04 + 0 + 0.04) / 3
    std = (0.08 / 3) ** 0.5
    window = normalised(0.7, n=3, mean=0.4, std=std)
    assert window.z == pytest.approx(0.3 / std)
    assert (window.mean, window.std, window.n) == (0.4, std, 3)


@pytest.mark.parametrize(("n", "mean", "std"), [(0, 0.0, 0.0), (1, 0.5, 0.0), (4, 0.5, 0.0), (4, 0.5, 1e-17)])
def test_z_is_null_when_nothing_can_be_said(n: int, mean: float, std: float) -> None:
    window = normalised(0.9, n, mean, std)
    assert window.z is None
    assert (window.n, window.std) == (n, 0.0)
