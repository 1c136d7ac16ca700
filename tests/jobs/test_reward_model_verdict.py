"""A tuned encoder is kept only where it wins beyond what chance would do."""

from __future__ import annotations

import numpy as np
import pytest

from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model.measure import Measured
from reward_server.fitting.reward_model.metrics import PAIR_STATISTICS, VALUE_STATISTICS, Exact, Resamples, as_json
from reward_server.fitting.reward_model.verdict import Metric, verdict, verdict_line
from reward_server.reward_models.dataset import Dataset
from tests.reward_models.talks import labelled_talks, preferred_talks


def of_labels(predicted: Exact, labels: Exact) -> Measured:
    figures = as_json(Resamples(()).figures(VALUE_STATISTICS, predicted, labels))
    return Measured({"score": figures}, {}, {}, {}, predicted=predicted, labels=labels)


def of_pairs(chances: Exact) -> Measured:
    targets = np.ones(len(chances))
    figures = as_json(Resamples(()).figures(PAIR_STATISTICS, chances - 0.5, targets))
    return Measured({"pairs": figures}, {}, {}, {}, chances=chances, targets=targets)


def guesses(count: int, groups: int, error: float, seed: int) -> tuple[Dataset, Measured]:
    dataset = labelled_talks(count, groups)
    labels = np.array([row.scores["score"] for row in dataset.labelled])
    return dataset, of_labels(labels + np.random.default_rng(seed).normal(0, error, count), labels)


@pytest.mark.parametrize("metric", ["r2", pytest.param("spearman", marks=pytest.mark.slow)])
def test_a_lead_that_chance_explains_is_not_kept(metric: Metric) -> None:
    """Twelve rows of six dialogues, both encoders equally good: whichever leads, the frozen one stays."""
    kept = set()
    leads = 0
    for seed in range(20):
        dataset, frozen = guesses(12, 6, 0.1, seed)
        _, tuned = guesses(12, 6, 0.1, 100 + seed)
        wins, found = verdict(frozen, tuned, dataset, metric, 0)
        leads += found["tuned"] > found["frozen"]
        if found["tuned"] > found["frozen"] and found["difference"]["low"] <= 0:
            kept.add(found["kept"])
            assert not wins
    assert leads >= 5
    assert kept == {"frozen"}


def test_a_clear_lead_is_kept_and_the_difference_is_said() -> None:
    dataset, frozen = guesses(120, 30, 0.4, 1)
    _, tuned = guesses(120, 30, 0.05, 2)
    wins, found = verdict(frozen, tuned, dataset, "r2", 0)
    assert wins
    assert 0 < found["difference"]["low"] < found["difference"]["value"] < found["difference"]["high"]
    line = verdict_line(found)
    assert f"difference +{found['difference']['value']:.3f} [{found['difference']['low']:.3f}" in line
    assert "kept: tuned" in line
    again, _ = verdict(tuned, frozen, dataset, "r2", 0)
    assert not again


def test_rows_of_one_dialogue_are_not_independent_evidence() -> None:
    """Better by as much on as many rows; in few dialogues that says less."""
    source = np.random.default_rng(5)
    many, few = labelled_talks(60, 60), labelled_talks(60, 4)
    labels = np.array([row.scores["score"] for row in many.labelled])
    frozen = of_labels(labels + source.normal(0, 0.2, 60), labels)
    of_dialogue = np.where(np.arange(60) % 4 == 0, 0.3, 0.12)
    tuned = of_labels(labels + source.normal(0, 1, 60) * of_dialogue, labels)
    (_, wide), (_, narrow) = (verdict(frozen, tuned, data, "r2", 0) for data in (few, many))
    assert wide["difference"]["value"] == narrow["difference"]["value"]
    assert wide["difference"] != narrow["difference"]


def test_too_few_dialogues_keep_the_frozen_encoder() -> None:
    dataset, frozen = guesses(20, 2, 0.4, 1)
    _, tuned = guesses(20, 2, 0.01, 2)
    wins, found = verdict(frozen, tuned, dataset, "r2", 0)
    assert not wins
    assert found["kept"] == "frozen"
    assert "too few dialogues to resample" in verdict_line(found)


def test_pairs_are_compared_by_their_order() -> None:
    dataset = preferred_talks(80, 40)
    frozen = of_pairs(np.where(np.arange(80) % 2 == 0, 0.8, 0.3))
    wins, found = verdict(frozen, of_pairs(np.full(80, 0.8)), dataset, "pairwise", 0)
    assert wins
    assert (found["frozen"], found["tuned"]) == (0.5, 1.0)
    with pytest.raises(InvalidRequest, match="has no r2 to compare by"):
        verdict(frozen, frozen, dataset, "r2", 0)
