"""Fitting heads: what is learned, which epoch is kept, and that an interruption changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model.head_training import Epoch, Fitted, Recipe, fit
from reward_server.fitting.reward_model.metrics import pairwise, r2
from reward_server.reward_models.checkpoint import TrainingCheckpoint
from reward_server.reward_models.dataset import OVERALL, Dataset, split
from reward_server.reward_models.feature_rows import BLOCK_ROWS
from reward_server.reward_models.matrices import ExampleMatrices, moments, scaled
from tests.reward_models.talks import KIND, PLAIN, WordCounts, labelled_talks, preferred_talks

QUICK = Recipe(epochs=60, learning_rate=2e-2, l2=(0.01, 0.3))


def examples(dataset: Dataset, names: tuple[str, ...]) -> ExampleMatrices:
    conversations = list(dataset.conversations())
    rows = WordCounts().features(conversations)
    features = {c.digest: row for c, row in zip(conversations, rows, strict=True)}
    return ExampleMatrices.of(dataset, features, names, WordCounts.width)


def fitted_on(dataset: Dataset, recipe: Recipe = QUICK, **options: object) -> tuple[Fitted, ExampleMatrices]:
    parts = split(dataset, recipe.seed)
    train, middle, last = (examples(part, dataset.heads) for part in (parts.train, parts.validation, parts.held_out))
    return fit(dataset.heads, train, middle, recipe, **options), last  # type: ignore[arg-type]


def test_scores_of_held_out_dialogues_are_predicted_by_head() -> None:
    fitted, last = fitted_on(labelled_talks())
    values = fitted.heads.values(last.features)
    assert fitted.heads.names == (OVERALL, "lamps")
    for head in (0, 1):
        share = r2(values[:, head], last.labels[:, head].astype(np.float64))
        assert share is not None
        assert share > 0.7


def test_a_regressor_serves_what_it_was_taught_over_the_whole_range() -> None:
    """With a sigmoid over it, 0 would be served as 0.5 and 1 as 0.73."""
    fitted, last = fitted_on(labelled_talks(count=400))
    values = fitted.heads.values(last.features)[:, 0]
    assert fitted.heads.link == "identity"
    assert values[last.labels[:, 0] == 0.0].mean() < 0.15
    assert values[last.labels[:, 0] >= 0.8].mean() > 0.7
    assert values.min() >= 0.0
    assert values.max() <= 1.0


def test_preferences_alone_give_an_order_and_a_chance_to_win() -> None:
    fitted, last = fitted_on(preferred_talks())
    chances = fitted.heads.chances(last.chosen, last.rejected)
    right = pairwise(chances - 0.5, last.targets.astype(np.float64))
    assert right is not None
    assert right > 0.85
    assert fitted.heads.link == "preference"
    values = fitted.heads.values(last.chosen)[:, 0]
    assert ((values > 0) & (values < 1)).all()
    swapped = fitted.heads.chances(last.rejected, last.chosen)
    np.testing.assert_allclose(chances + swapped, 1.0)


def test_labels_and_preferences_are_learned_together() -> None:
    labels, pairs = labelled_talks(count=60), preferred_talks()
    both = replace(labels, preferred=pairs.preferred)
    fitted, last = fitted_on(both)
    assert fitted.heads.link == "identity"
    right = pairwise(fitted.heads.chances(last.chosen, last.rejected) - 0.5, last.targets.astype(np.float64))
    assert right is not None
    assert right > 0.85
    assert fitted.heads.values(last.features).max() <= 1.0


def test_a_tie_pulls_the_two_sides_together() -> None:
    dataset = preferred_talks()
    tied = replace(dataset, preferred=tuple(replace(pair, tie=True) for pair in dataset.preferred))
    apart, last = fitted_on(dataset)
    together, _ = fitted_on(tied)

    def distance(fitted: Fitted) -> float:
        return float(np.abs(fitted.heads.chances(last.chosen, last.rejected) - 0.5).mean())

    assert distance(together) < 0.05 < distance(apart)


def test_rewards_of_a_preference_model_do_not_float() -> None:
    """Without the centring term the mean of r is free; with it, it stays near 0."""
    fitted, last = fitted_on(preferred_talks(), replace(QUICK, centring=0.1))
    raw = fitted.heads.raw(np.concatenate([last.chosen, last.rejected]))[:, 0]
    assert abs(raw.mean()) < 0.5


def best(history: tuple[Epoch, ...]) -> Epoch:
    return min(history, key=lambda point: point.validation_loss)


def test_the_best_epoch_is_kept_not_the_last() -> None:
    """A rate that is far too high for the data gets worse at the end; what is served is the best point."""
    noisy = labelled_talks(count=60, groups=12)
    source = np.random.default_rng(0)
    rows = tuple(replace(row, scores={OVERALL: float(source.random())}) for row in noisy.labelled)
    recipe = Recipe(epochs=80, learning_rate=0.2, l2=(1e-4,), patience=80)
    dataset = replace(noisy, labelled=rows)
    parts = split(dataset, 0)
    train, middle = (examples(part, dataset.heads) for part in (parts.train, parts.validation))
    fitted = fit(dataset.heads, train, middle, recipe)
    kept = best(fitted.history)
    assert fitted.epoch == kept.number < fitted.history[-1].number
    errors = fitted.heads.raw(middle.features)[:, 0] - middle.labels[:, 0]
    loss = float((errors**2).mean() / train.labels[:, 0].var())
    assert loss == pytest.approx(kept.validation_loss, rel=1e-3)


def test_warm_up_is_a_share_of_the_run_so_short_runs_learn_too() -> None:
    fitted, last = fitted_on(labelled_talks(), replace(QUICK, epochs=25, learning_rate=0.05))
    share = r2(fitted.heads.values(last.features)[:, 0], last.labels[:, 0].astype(np.float64))
    assert share is not None
    assert share > 0.5


def test_a_stopped_candidate_ends_early() -> None:
    fitted, _ = fitted_on(labelled_talks(), replace(QUICK, epochs=400, patience=5))
    assert len(fitted.history) < 800


def test_the_same_data_and_seed_give_the_same_weights() -> None:
    first, second = fitted_on(labelled_talks())[0], fitted_on(labelled_talks())[0]
    assert first.heads.weights.tobytes() == second.heads.weights.tobytes()
    other = fitted_on(labelled_talks(), replace(QUICK, seed=5))[0]
    assert first.heads.weights.tobytes() != other.heads.weights.tobytes()


class Interrupted(KeyboardInterrupt):
    pass


@pytest.mark.parametrize("after", [1, 7, 61, 100])
def test_an_interrupted_training_goes_on_to_the_very_same_end(tmp_path: Path, after: int) -> None:
    recipe = replace(QUICK, patience=60)
    whole, _ = fitted_on(labelled_talks(), recipe)

    def stop(done: int, total: int) -> None:
        assert done <= total
        if done == after:
            raise Interrupted

    with pytest.raises(Interrupted):
        fitted_on(labelled_talks(), recipe, checkpoint=TrainingCheckpoint(tmp_path, "key"), on_epoch=stop)
    seen: list[int] = []
    resumed, _ = fitted_on(
        labelled_talks(),
        recipe,
        checkpoint=TrainingCheckpoint(tmp_path, "key"),
        on_epoch=lambda done, total: seen.append(done),
    )
    assert seen[0] == after + 1
    assert resumed.history == whole.history
    assert resumed.heads.weights.tobytes() == whole.heads.weights.tobytes()
    assert resumed.heads.sharpness == whole.heads.sharpness


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    fitted_on(labelled_talks(), replace(QUICK, epochs=10), checkpoint=TrainingCheckpoint(tmp_path, "key"))
    with pytest.raises(InvalidRequest, match="other data or settings"):
        fitted_on(labelled_talks(), checkpoint=TrainingCheckpoint(tmp_path, "another"))


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    fitted_on(labelled_talks(), replace(QUICK, epochs=10), checkpoint=TrainingCheckpoint(tmp_path, "key"))
    next(tmp_path.glob("*.safetensors")).write_bytes(b"no tensors")
    with pytest.raises(InvalidRequest, match="cannot be read"):
        fitted_on(labelled_talks(), checkpoint=TrainingCheckpoint(tmp_path, "key"))


def test_a_training_that_diverges_is_no_model() -> None:
    with pytest.raises(InvalidRequest, match="training diverged"):
        fitted_on(labelled_talks(), replace(QUICK, learning_rate=1e38))


def test_what_may_only_cost_earns_nothing_and_costs_what_it_should() -> None:
    """Kind words raise these labels; where they may only cost, they get no weight, and the words that lower it do."""
    costs = np.zeros(WordCounts.width, dtype=np.bool_)
    costs[: len(KIND) + len(PLAIN)] = True
    dataset = labelled_talks()
    free = fitted_on(dataset)[0].heads.weights[0]
    fitted, last = fitted_on(dataset, costs=costs)
    capped = fitted.heads.weights
    assert (free[costs] > 0).any()
    assert (capped[:, costs] <= 0).all()
    assert (capped[0, len(KIND) : -1] < 0).any()
    more = last.features.copy()
    more[:, costs] += 1.0
    assert (fitted.heads.values(more) <= fitted.heads.values(last.features)).all()


def test_pairs_teach_costs_as_well() -> None:
    fitted, _ = fitted_on(preferred_talks(), costs=np.ones(WordCounts.width, dtype=np.bool_))
    assert (fitted.heads.weights <= 0).all()
    assert (fitted.heads.weights < 0).any()


def test_moments_and_scaling_by_blocks_are_those_of_the_whole() -> None:
    source = np.random.default_rng(0)
    parts = [source.normal(3.0, 2.0, size=(rows, 4)).astype(np.float32) for rows in (BLOCK_ROWS + 7, 0, 5)]
    whole = np.concatenate(parts).astype(np.float64)
    centre, spread = moments(parts)
    np.testing.assert_allclose(centre, whole.mean(0), rtol=1e-12)
    np.testing.assert_allclose(spread, whole.std(0), rtol=1e-12)
    found = scaled(parts[0], centre, spread)
    assert np.array_equal(found, ((parts[0].astype(np.float64) - centre) / spread).astype(np.float32))
