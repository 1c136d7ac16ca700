"""The report of a training: digits that tell figures apart, and plain words where a figure is easily misread."""

from __future__ import annotations

from typing import Any

from reward_server.fitting.reward_model.measure import ModelFigures
from reward_server.fitting.reward_model.report import figures_table, in_words, page, uncertainty_lines


def measured(r2: float, spearman: dict[str, float] | None, mean: float = -0.01, **further: Any) -> ModelFigures:
    own = {"n": 12, "r2": {"value": r2}, **further}
    if spearman is not None:
        own["spearman"] = spearman
    return ModelFigures({"score": own}, {"mean": {"r2": {"value": mean}}}, {}, {})


def test_an_r2_below_0_with_a_good_order_is_a_ranking() -> None:
    [said] = in_words(measured(-0.42, {"value": 0.85}))
    assert said == (
        "Use the values of this model only to compare conversations with each other: their order is good (Spearman "
        "0.85), but they are further off than always predicting the mean (R² -0.42)."
    )
    assert said in page("A model", [], measured(-0.42, {"value": 0.85}), {}).decode()


def test_an_r2_below_0_without_one_is_no_model_to_activate() -> None:
    for order in (None, {"value": 0.2}, {"value": 0.6, "low": -0.3, "high": 0.9}):
        [said] = in_words(measured(-0.42, order))
        assert said.startswith("Do not activate this model: its values are further off than always predicting the mean")


def test_a_model_better_than_the_mean_needs_no_words() -> None:
    assert in_words(measured(0.3, {"value": 0.85})) == []
    assert in_words(ModelFigures({}, {}, {}, {})) == []


def test_another_mean_of_the_held_out_part_is_said() -> None:
    [said] = in_words(measured(0.3, {"value": 0.85}, mean=-2.5))
    assert "have another mean than those the model was trained on (R² of the baseline `mean`: -2.50)" in said


def test_small_errors_keep_three_digits() -> None:
    shown = figures_table(measured(0.3, None, mse={"value": 0.001234, "low": 0.000567, "high": 0.01}))
    assert "0.00123 [0.000567, 0.0100]" in shown
    assert "| 0.300 |" in shown


def test_the_headline_claims_intervals_only_where_there_are_some() -> None:
    with_one, without = measured(0.3, {"value": 0.8, "low": 0.6, "high": 0.9}), measured(0.3, {"value": 0.8})
    assert "dialogues, with 95 % intervals from" in page("A model", [], with_one, {}).decode()
    assert "dialogues, without intervals." in page("A model", [], without, {}).decode()
    both = ModelFigures({**with_one.metrics, "lamps": without.metrics["score"]}, {}, {}, {})
    assert "dialogues, some with 95 % intervals from" in page("A model", [], both, {}).decode()


def against(own: float, length: float, uncertainty: dict[str, Any] | None = None) -> ModelFigures:
    baselines = {
        "mean": {"r2": {"value": -0.01}},
        "length": {"r2": {"value": length}},
        "cosine": {"r2": {"value": 0.1}},
    }
    return ModelFigures({"score": {"n": 18, "r2": {"value": own}}}, baselines, {}, uncertainty or {})


def test_a_baseline_that_is_as_good_as_the_model_is_named() -> None:
    [said] = in_words(against(0.492, 0.499))
    assert said == (
        "The simple baseline `length` is at least as good as this model (R² 0.499; the model 0.492): on these rows "
        "the model adds nothing to it."
    )
    assert said in page("A model", [], against(0.492, 0.499), {}).decode()
    assert len(in_words(against(0.4991, 0.4989))) == 1  # as good, as far as the table shows
    assert in_words(against(0.566, 0.499)) == []
    pairs = ModelFigures({"pairs": {"pairwise": {"value": 0.7}}}, {"length": {"pairwise": {"value": 0.7}}}, {}, {})
    [said] = in_words(pairs)
    assert "(share of pairs in the right order 0.700; the model 0.700)" in said


def test_doubt_that_sorts_no_errors_is_named() -> None:
    def sorting(aurc: float, high: float | None = None) -> dict[str, Any]:
        difference = {"value": aurc - 0.1676} | ({} if high is None else {"low": aurc - 0.2, "high": high})
        area = {"aurc": aurc, "random": 0.1676, "oracle": 0.0736, "difference": difference}
        return {"coverage": {}, "epistemic_std": 0.1, "noise_std": 0.1, "aurc": area}

    [said] = in_words(against(0.6, 0.5, sorting(0.2006)))
    assert said.startswith("The uncertainty of this model does not show where it is wrong")
    assert "0.2006, at random 0.1676" in said
    [said] = in_words(against(0.6, 0.5, sorting(0.12, 0.01)))
    assert said == (
        "The uncertainty of this model is not shown to tell where it is wrong on these rows (AURC 0.1200, at random "
        "0.1676; difference -0.0476 [-0.0800, +0.0100]); more rows may show it."
    )
    [said] = in_words(against(0.6, 0.5, sorting(0.12)))
    assert "(AURC 0.1200, at random 0.1676); more rows" in said
    assert in_words(against(0.6, 0.5, sorting(0.12, -0.01))) == []


def test_doubt_of_pairs_has_no_intervals_to_count() -> None:
    area = {"aurc": 0.2, "random": 0.3, "oracle": 0.1, "difference": {"value": -0.1}}
    assert uncertainty_lines({"aurc": area}) == [
        "Area under the risk-coverage curve 0.2000 (at random 0.3000, best possible 0.1000)."
    ]
    assert uncertainty_lines({}) == []
