"""The reward config of a request."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.errors import InvalidRewardConfig
from reward_server.scoring.compose import ScoringComposite, ScoringCompositePart
from reward_server.scoring.config import RewardConfig, read_config
from scenarios.schema import Family
from trainer_client import wire

OFF = dict.fromkeys(Family, 0.0)


@pytest.mark.parametrize("given", [None, {}, {"quality_weights": None}, wire.RewardConfig()])
def test_without_weights_every_family_counts_alike(given: Any) -> None:
    assert read_config(given) == RewardConfig(dict.fromkeys(Family, 1.0))


def test_omitted_families_do_not_run() -> None:
    config = read_config({"quality_weights": {"discovery": 1}})
    assert config.weights == {**OFF, Family.DISCOVERY: 1.0}
    assert config.runs(Family.DISCOVERY)
    assert not config.runs(Family.RUBRICS)


def test_weights_are_relative() -> None:
    one = read_config({"quality_weights": {"discovery": 1, "rubrics": 0.25}})
    assert one == read_config({"quality_weights": {"rubrics": 250, "discovery": 1000}})


@pytest.mark.parametrize("huge", [1e308, 5e-324])
def test_extreme_weights_are_weights(huge: float) -> None:
    config = read_config({"quality_weights": {"discovery": huge, "rubrics": huge}})
    assert config.weights == {**OFF, Family.DISCOVERY: 1.0, Family.RUBRICS: 1.0}


@pytest.mark.parametrize(
    "given",
    [
        {"quality_weights": {}},
        {"quality_weights": {"discovery": 0, "rubrics": 0.0}},
        {"quality_weights": {"discovery": -1}},
        {"quality_weights": {"discovery": 1, "kindness": 1}},
        {"quality_weights": {"discovery": float("nan")}},
        {"quality_weights": {"discovery": float("inf")}},
        {"quality_weights": {"discovery": "much"}},
        {"quality_weights": [1]},
        {"weights": {"discovery": 1}},
        {"skip_safety_gate": "perhaps"},
        wire.RewardConfig(quality_weights=wire.QualityWeights()),
    ],
)
def test_empty_zero_negative_and_unknown_weights_are_refused(given: Any) -> None:
    with pytest.raises(InvalidRewardConfig) as caught:
        read_config(given)
    assert caught.value.code == "invalid_reward_config"
    assert caught.value.errors[0].loc[0] == "reward_config"


def test_the_safety_gate_is_on_unless_skipped() -> None:
    assert not read_config({}).skip_safety_gate
    assert read_config({"skip_safety_gate": True, "quality_weights": {"rubrics": 1}}).skip_safety_gate


# --- composites ------------------------------------------------------------------------------------

RUBRIC = {"judge": "rubric"}
OTHER = {"judge": "reward_model", "weight": 0.5}


def test_a_composite_is_read() -> None:
    config = read_config({"composite": {"combine": "weighted_sum", "parts": [RUBRIC, OTHER]}})
    assert config.composite == ScoringComposite(
        "weighted_sum", (ScoringCompositePart("rubric"), ScoringCompositePart("reward_model", 0.5))
    )
    assert config.weights == dict.fromkeys(Family, 1.0)


@pytest.mark.parametrize(
    "composite",
    [
        {},
        {"combine": "weighted_sum"},
        {"combine": "weighted_sum", "parts": []},
        {"combine": "median", "parts": [RUBRIC, OTHER]},
        {"combine": "weighted_sum", "parts": [RUBRIC, RUBRIC]},
        {"combine": "weighted_sum", "parts": [RUBRIC] * 9},
        {"combine": "weighted_sum", "parts": [{"judge": "rubric", "weight": 0.0}]},
        {"combine": "product", "parts": [{"judge": "rubric", "weight": -1.0}, OTHER]},
        {"combine": "product", "parts": [{"judge": "rubric", "weight": float("inf")}, OTHER]},
        {"combine": "product", "parts": [{"judge": "rubric", "weight": float("nan")}, OTHER]},
        {"combine": "product", "parts": [{"judge": "rubric", "weight": "1"}, OTHER]},
        {"combine": "product", "parts": [{"judge": "rubric", "weight": True}, OTHER]},
        {"combine": "product", "parts": [{"judge": "Rubric!"}, OTHER]},
        {"combine": "product", "parts": [{"judge": "rubric", "bias": 1}, OTHER]},
        {"combine": "min", "parts": [{"judge": "rubric", "at_least": 0.5}, OTHER]},
        {"combine": "gated", "parts": [RUBRIC, OTHER]},
        {"combine": "gated", "parts": [{"judge": "rubric", "at_least": 0.5}]},
        {"combine": "gated", "parts": [RUBRIC, {**OTHER, "at_least": 0.5}]},
        {"combine": "gated", "parts": [{"judge": "rubric", "at_least": 1.5}, OTHER]},
        {"combine": "gated", "parts": [{"judge": "rubric", "at_least": 0.5}, {**OTHER, "weight": 0.0}]},
    ],
)
def test_a_composite_that_makes_no_sense_is_refused(composite: dict[str, Any]) -> None:
    with pytest.raises(InvalidRewardConfig) as caught:
        read_config({"composite": composite})
    assert caught.value.errors[0].loc[:2] == ("reward_config", "composite")


def test_a_refusal_is_told_in_our_own_words() -> None:
    twice = {"combine": "min", "parts": [{"judge": "rubric"}, {"judge": "rubric"}]}
    with pytest.raises(InvalidRewardConfig) as refused:
        read_config({"composite": twice})
    assert [problem.msg for problem in refused.value.errors] == ["each judge may be named once"]
