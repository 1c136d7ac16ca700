"""From verdicts to the reward, with numbers computed by hand.

The rubric of the builders, positive points in brackets:
D1 (10, weight .5): found_place 4 discovery, found_rest 4 rubrics, early 2 success.
D2 (10, weight .3): sends 5 success, decides 3 decision, writes_it_down 2 best; bad_call -1 rubrics,
                    premature 0 failure (cap .4), gives_away -3 failure (cap .3).
D3 (10, weight .2): kind 2 best, explains 4 similarity, brief 3 rubrics, tone 1 rubrics; rude -2 failure (cap .25).
"""

from __future__ import annotations

import pytest

from reward_server.judges.base import Verdict, VerdictStatus
from reward_server.scoring.aggregate import Aggregate, aggregate, considered
from reward_server.scoring.config import RewardConfig, read_config
from tests.scoring.builders import CRITERIA, a_scenario

RUBRIC = a_scenario().secrets.rubric
CREDIT = {c["id"]: 1.0 for c in CRITERIA if c["points"] > 0}
ALL = RewardConfig()


def total(values: dict[str, float | None], config: RewardConfig = ALL) -> Aggregate | None:
    """The aggregate of verdicts with these values; what is not named is unmet."""
    verdicts = {}
    for criterion in RUBRIC.criteria:
        value = values.get(criterion.id, 0.0)
        status = (
            VerdictStatus.ABSTAINED if value is None else VerdictStatus.MET if value == 1 else VerdictStatus.PARTIAL
        )
        if value == 0:
            status = VerdictStatus.UNMET
        verdicts[criterion.id] = Verdict(criterion.id, status, value, (), "test", "1")
    return aggregate(RUBRIC, verdicts, config)


def weights(**given: float) -> RewardConfig:
    return read_config({"quality_weights": given})


def check(
    found: Aggregate | None, reward: float, dimensions: dict[str, float], caps: tuple[float, ...] = ()
) -> Aggregate:
    assert found is not None
    assert found.reward == pytest.approx(reward, abs=1e-12)
    assert {name[:2]: score for name, score in found.dimensions.items()} == pytest.approx(dimensions, abs=1e-12)
    assert found.caps == caps
    return found


def test_everything_and_nothing() -> None:
    assert check(total(CREDIT), 1.0, {"D1": 1, "D2": 1, "D3": 1}).coverage == 1.0
    check(total({}), 0.0, {"D1": 0, "D2": 0, "D3": 0})


def test_points_and_partial_credit() -> None:
    # D1: 4 + 4 * .5 = 6 of 10. D2: 5 + 2 - 1 = 6 of 10. D3: 4 * .25 + 3 = 4 of 10.
    values = {"found_place": 1.0, "found_rest": 0.5, "sends": 1.0, "writes_it_down": 1.0, "bad_call": 1.0}
    # Reward: .5 * .6 + .3 * .6 + .2 * .4
    check(total({**values, "explains": 0.25, "brief": 1.0}), 0.56, {"D1": 0.6, "D2": 0.6, "D3": 0.4})


def test_a_dimension_does_not_fall_below_zero() -> None:
    found = total({"found_place": 1.0, "bad_call": 1.0, "gives_away": 1.0})
    check(found, 0.2, {"D1": 0.4, "D2": 0.0, "D3": 0.0}, caps=(0.3,))


def test_a_failure_costs_its_points_and_caps() -> None:
    # D3: (10 - 2) / 10
    check(total({**CREDIT, "rude": 1.0}), 0.96, {"D1": 1, "D2": 1, "D3": 0.8}, caps=(0.25,))
    check(total({**CREDIT, "premature": 1.0, "rude": 1.0}), 0.96, {"D1": 1, "D2": 1, "D3": 0.8}, caps=(0.4, 0.25))


def test_a_failure_that_only_partly_happened_does_not_cap() -> None:
    check(total({**CREDIT, "rude": 0.5}), 0.98, {"D1": 1, "D2": 1, "D3": 0.9})


def test_an_abstained_criterion_leaves_both_sides() -> None:
    # D3: (2 + 3) of 9, so 5/9
    found = total({"kind": 1.0, "brief": 1.0, "tone": None})
    assert check(found, 0.2 * 5 / 9, {"D1": 0, "D2": 0, "D3": 5 / 9}).coverage == pytest.approx(29 / 30)


@pytest.mark.parametrize(("undecided", "present"), [({"brief"}, True), ({"brief", "tone"}, False)])
def test_a_dimension_that_lost_over_30_percent_of_its_points_is_absent(undecided: set[str], present: bool) -> None:
    found = total({**CREDIT, "found_place": 0.0, **dict.fromkeys(undecided)})
    # With D3: .5 * .6 + .3 + .2; without: (.5 * .6 + .3) / .8
    assert found is not None
    assert found.reward == pytest.approx(0.8 if present else 0.75)
    assert ("D3_Manner" in found.dimensions) is present
    assert found.left_out == (() if present else ("D3_Manner",))


def test_a_dimension_whose_families_do_not_run_is_not_left_out() -> None:
    found = total({"found_place": 1.0}, weights(discovery=1))
    assert found is not None
    assert "D3_Manner" not in found.dimensions
    assert found.left_out == ()


def test_a_failure_nobody_could_decide_neither_costs_nor_caps() -> None:
    check(total({**CREDIT, "rude": None}), 1.0, {"D1": 1, "D2": 1, "D3": 1})


def test_when_nothing_can_be_decided_there_is_no_number() -> None:
    assert total(dict.fromkeys(c["id"] for c in CRITERIA)) is None
    assert total({"found_place": None}, weights(discovery=1)) is None


def test_one_family_alone() -> None:
    found = total({"found_place": 1.0, "rude": 1.0, "bad_call": 1.0}, weights(discovery=1))
    check(found, 1.0, {"D1": 1.0})
    check(total({**CREDIT, "found_place": 0.0}, weights(discovery=1)), 0.0, {"D1": 0.0})


def test_family_weights_scale_points_and_how_much_a_dimension_counts() -> None:
    # D1: (.5*4*.5 + 1*2) / (.5*4 + 2) = .75, weight .5 * 4/10 = .2
    # D2: (1*5 - .5*1) / 5 = .9, weight .3 * 5/10 = .15
    # D3: .5*3 / (.5*4) = .75, weight .2 * 2/10 = .04
    values = {"found_rest": 0.5, "early": 1.0, "sends": 1.0, "bad_call": 1.0, "brief": 1.0, "rude": 1.0}
    found = total(values, weights(success_metrics=2, rubrics=1))
    check(found, (0.2 * 0.75 + 0.15 * 0.9 + 0.04 * 0.75) / 0.39, {"D1": 0.75, "D2": 0.9, "D3": 0.75})


def test_failures_alone_start_from_one() -> None:
    config = weights(failure_metrics=1)
    check(total({}, config), 1.0, {"D2": 1.0, "D3": 1.0})
    # D2: 1 - 3/10 = .7; D3: 1. (.3 * .7 + .2 * 1) / .5
    check(total({"gives_away": 1.0}, config), 0.82, {"D2": 0.7, "D3": 1.0}, caps=(0.3,))


def test_failures_beside_credit_do_not_dilute_it() -> None:
    config = weights(failure_metrics=1, discovery=1)
    check(total({"found_place": 1.0}, config), 1.0, {"D1": 1.0})
    check(total({"found_place": 1.0, "rude": 1.0}, config), 1.0, {"D1": 1.0}, caps=(0.25,))


def test_only_families_that_run_are_considered() -> None:
    assert [c.id for c in considered(RUBRIC, weights(best_practices=1))] == ["writes_it_down", "kind"]
    assert len(considered(RUBRIC, ALL)) == len(CRITERIA)


@pytest.mark.parametrize("factor", [1e-300, 0.1, 3, 1e300])
def test_the_scale_of_the_weights_does_not_matter(factor: float) -> None:
    values = {"found_rest": 0.3, "early": 1.0, "sends": 1.0, "brief": 1.0}
    given = {"success_metrics": 0.7, "rubrics": 0.2}
    plain, scaled = total(values, weights(**given)), total(values, weights(**{k: v * factor for k, v in given.items()}))
    assert plain is not None
    assert scaled is not None
    assert scaled.reward == pytest.approx(plain.reward, abs=1e-12)
