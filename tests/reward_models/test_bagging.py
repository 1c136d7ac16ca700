"""An ensemble on resampled dialogues as the doubt of a trained head: around it, stored, served, aware of dialogues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from reward_server.errors import InvalidRequest, UnusableModel
from reward_server.reward_models import artefact
from reward_server.reward_models.bagging import Bagging
from reward_server.reward_models.dataset import Dataset, Split, groups_of, split
from reward_server.reward_models.model import UNCERTAINTY, RewardModel, model_of, pack, with_uncertainty
from reward_server.reward_models.posterior import Ensemble
from reward_server.reward_models.serving import LearnedJudge
from scenarios.library import load_library
from tests.reward_models.talks import WordCounts, labelled_talks, preferred_talks
from tests.reward_models.test_artefact import NOW, about
from tests.reward_models.test_serving import COLLECTIONS, case_of
from tests.reward_models.test_training import examples, fitted_on


def bagging_of(part: Dataset, members: int = 4, seed: int = 0) -> Bagging:
    return Bagging(tuple(groups_of(part.labelled)), tuple(groups_of(part.preferred)), members, seed)


def bagged(dataset: Dataset, parts: Split, bagging: Bagging) -> RewardModel:
    fitted, _ = fitted_on(dataset)
    train, middle = (examples(part, dataset.heads) for part in (parts.train, parts.validation))
    return with_uncertainty(fitted.heads, train, middle, fitted.l2, bagging)


@pytest.fixture(scope="module")
def parts() -> Split:
    return split(labelled_talks(), 0)


@pytest.fixture(scope="module")
def several(parts: Split) -> RewardModel:
    return bagged(labelled_talks(), parts, bagging_of(parts.train))


def test_its_mean_is_the_head_that_is_served_and_its_members_differ(several: RewardModel) -> None:
    rows = several.heads.standardised(WordCounts().features(list(labelled_talks(30, seed=4).conversations())))
    assert isinstance(several.posterior, Ensemble)
    means = np.stack([member.predict(rows).mean for member in several.posterior.members])
    head = rows @ several.heads.weights[0].astype(np.float64) + float(several.heads.bias[0])
    np.testing.assert_allclose(means.mean(axis=0), head, atol=1e-5)
    assert (means.std(axis=0) > 1e-4).all()


def test_the_same_seed_draws_the_same_dialogues(parts: Split) -> None:
    rows = WordCounts().features(list(labelled_talks(10, seed=4).conversations()))
    first, again, other = (
        bagged(labelled_talks(), parts, bagging_of(parts.train, seed=seed)).predict(rows).epistemic
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_rows_of_one_dialogue_that_are_alike_leave_more_doubt(parts: Split) -> None:
    """Labels of a dialogue share an offset: taken as independent rows they would tell the level too surely."""
    rows = WordCounts().features(list(labelled_talks(40, seed=4).conversations()))
    names = [f"dialogue {number % 8}" for number in range(len(parts.train.labelled))]
    labelled = tuple(
        replace(row, scores={**row.scores, "score": row.scores["score"] * 0.4 + 0.07 * int(name[-1])})
        for row, name in zip(parts.train.labelled, names, strict=True)
    )
    offset = replace(parts, train=replace(parts.train, labelled=labelled))
    aware = replace(bagging_of(parts.train, 16), labelled=tuple(names))
    unaware = replace(aware, labelled=tuple(str(number) for number in range(len(names))))
    spread = []
    for bagging in (aware, unaware):
        model = bagged(labelled_talks(), offset, bagging)
        assert isinstance(model.posterior, Ensemble)
        standard = model.heads.standardised(rows)
        spread.append(np.std([each.predict(standard).mean.mean() for each in model.posterior.members]))
    assert spread[0] > 2 * spread[1]


def test_too_few_dialogues_are_refused(parts: Split) -> None:
    bagging = replace(bagging_of(parts.train), labelled=("one",) * len(parts.train.labelled))
    with pytest.raises(InvalidRequest, match="An ensemble needs two members and 4 dialogues"):
        bagged(labelled_talks(), parts, bagging)


def test_pairs_have_an_ensemble_too_and_ties_are_left_out() -> None:
    dataset = preferred_talks(240)
    tied = tuple(replace(pair, tie=number % 5 == 0) for number, pair in enumerate(dataset.preferred))
    dataset = replace(dataset, preferred=tied)
    parts = split(dataset, 0)
    found = bagged(dataset, parts, bagging_of(parts.train)).predict(
        WordCounts().features(list(labelled_talks(10, seed=4).conversations()))
    )
    assert found.noise is None
    assert found.epistemic is not None
    assert ((found.epistemic > 0) & (found.epistemic <= 0.5)).all()


def test_it_is_stored_and_served_row_by_row_and_a_damaged_one_is_refused(tmp_path: Path, several: RewardModel) -> None:
    artefact.write(tmp_path / "model", several.heads, about(), NOW, extras=pack(several))
    found = artefact.read(tmp_path / "model")
    scenario = load_library(COLLECTIONS).vault.open("bike-shop", "flat-tyre")
    cases = [case_of(scenario, "please thanks sorry"), case_of(scenario, "bike tyre"), case_of(scenario, "glad lamp")]
    served = LearnedJudge(found.id, model_of(found), WordCounts())
    together, alone = served.estimate(cases), [served.estimate([case])[0] for case in cases]
    assert list(together) == alone == list(LearnedJudge(found.id, several, WordCounts()).estimate(cases))
    assert all(each.epistemic and each.noise for each in together)
    arrays = load(found.extras[UNCERTAINTY])
    for content in (
        {**arrays, "members": np.zeros(1, dtype=np.float32)},
        {name: values for name, values in arrays.items() if not name.startswith("member3.")},
    ):
        broken = replace(found, extras={UNCERTAINTY: save(content)})
        with pytest.raises(UnusableModel, match="is damaged"):
            model_of(broken)
