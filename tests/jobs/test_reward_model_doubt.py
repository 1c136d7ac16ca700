"""A training keeps an uncertainty if it is shown to sort the errors of the held-out rows, or if that is asked for."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reward_server.fitting.reward_model import metrics
from reward_server.fitting.reward_model.doubt import doubt_figures, not_shown, sorts_errors
from reward_server.reward_models import artefact
from reward_server.reward_models.dataset import OVERALL, Dataset, Labelled, grouped
from reward_server.reward_models.heads import Heads
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.model import RewardModel, model_of
from reward_server.reward_models.posterior import LinearPosterior
from tests.jobs.test_reward_model_train import trained
from tests.reward_models.talks import PLAIN, WordCounts, drawn, kindness, preferred_talks, talk

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "RESAMPLES", 100)


def uneven_talks(*, noisy: str, count: int = 320, groups: int = 80) -> Dataset:
    """Every fourth talk is about few things at great length, far from all others; labels of `noisy` ones are noise.

    `long`: errors are where a model has seen little. `short`: they are where it has seen most.
    """
    source = random.Random(4)
    rows = []
    for number in range(count):
        long = number % 4 == 0
        words = source.sample(PLAIN, 3) * source.randint(4, 12) if long else drawn(source)
        known = 0.5 if long else kindness(words)
        label = source.random() if long == (noisy == "long") else known
        rows.append(Labelled(talk(words, f"hello {number}"), {OVERALL: label}, f"g{number % groups}", number + 1))
    source.shuffle(rows)
    return grouped(Dataset(tuple(rows)))


def test_doubt_that_sorts_errors_is_kept(tmp_path: Path) -> None:
    made = trained(tmp_path, uneven_talks(noisy="long"))
    assert made.card.recipe["uncertainty"] == "bayesian"
    assert "uncertainty.safetensors" in made.card.files
    area = made.card.uncertainty["aurc"]
    assert area["difference"]["high"] < 0.0
    assert area["difference"]["value"] == pytest.approx(area["aurc"] - area["random"], abs=2e-4)
    assert not any("uncertainty" in note for note in made.card.data.notes)
    assert "Uncertainty by a last-layer posterior" in (tmp_path / "model" / "report.md").read_text()
    stored = model_of(artefact.read(tmp_path / "model"))
    epistemic = stored.predict(WordCounts().features([talk(["bike"])])).epistemic
    assert epistemic is not None
    assert (epistemic > 0.0).all()


def test_doubt_that_does_not_is_dropped_and_card_and_report_say_why(tmp_path: Path) -> None:
    made = trained(tmp_path, uneven_talks(noisy="short"))
    card = made.card
    assert (card.recipe["uncertainty"], card.uncertainty) == ("none", {})
    assert "uncertainty.safetensors" not in card.files
    [note] = [each for each in card.data.notes if "uncertainty" in each]
    assert note.startswith("no uncertainty: it is not shown to sort the errors of the held-out rows (AURC 0.")
    assert note.endswith("]); --keep-uncertainty keeps it")
    report = (tmp_path / "model" / "report.md").read_text()
    assert f"- {note}" in report
    assert "Uncertainty by" not in report
    assert "Share of labels inside the interval" not in report
    assert not (tmp_path / "model" / "risk_coverage.png").exists()
    for model in (made.attempt.model, model_of(artefact.read(tmp_path / "model"))):
        assert model.predict(WordCounts().features([talk(["bike"])])).epistemic is None


def test_doubt_that_does_not_is_kept_on_request_and_card_and_report_say_so(tmp_path: Path) -> None:
    usual = trained(tmp_path / "usual", uneven_talks(noisy="short")).card
    card = trained(tmp_path, uneven_talks(noisy="short"), keep_uncertainty=True).card
    assert card.recipe["uncertainty"] == "bayesian"
    assert card.files["heads.safetensors"] == usual.files["heads.safetensors"]
    [note] = [each for each in card.data.notes if "uncertainty" in each]
    assert note.startswith(
        "the uncertainty was kept on request, but it is not shown to sort the errors of the held-out"
    )
    report = (tmp_path / "model" / "report.md").read_text()
    assert f"- {note}" in report
    assert "The uncertainty of this model does not show where it is wrong on these rows" in report
    assert model_of(artefact.read(tmp_path / "model")).posterior is not None


def test_too_few_groups_show_nothing(tmp_path: Path) -> None:
    card = trained(tmp_path, uneven_talks(noisy="long", groups=8)).card
    assert card.recipe["uncertainty"] == "none"
    told = "fewer than 3 held-out groups cannot show that it sorts errors"
    assert f"no uncertainty: {told}; --keep-uncertainty keeps it" in card.data.notes
    assert not_shown({}) == "no held-out row can tell whether it sorts errors"


def pairs_to_judge(*, noisy: str) -> tuple[Dataset, ExampleMatrices]:
    """Pairs with a feature that says who wins, and one by which sides are far or near; `noisy` ones are random."""
    source = np.random.default_rng(5)
    dataset = preferred_talks(200, groups=100)
    chosen = np.zeros((200, 2), dtype=np.float32)
    for number in range(len(chosen)):
        far = number % 2 == 0
        right = source.random() < 0.5 if far == (noisy == "far") else True
        chosen[number] = (1.0 if right else -1.0), (5.0 if far else 0.5) * source.uniform(0.8, 1.2)
    alone, every = np.zeros((0, 2), dtype=np.float32), np.ones(200, dtype=np.float32)
    return dataset, ExampleMatrices(alone, np.zeros((0, 1), np.float32), chosen, np.zeros_like(chosen), every, every)


def judge_of_the_first() -> RewardModel:
    """Decides by the first feature, and has seen nothing of the second."""
    zeros, ones = np.zeros(2, dtype=np.float32), np.ones(2, dtype=np.float32)
    heads = Heads(
        (OVERALL,), zeros, ones, np.array([[1.0, 0.0]], np.float32), np.zeros(1, np.float32), 1.0, link="preference"
    )
    wide = LinearPosterior(np.zeros(2), np.ones(2), np.array([1.0, 0.0]), np.eye(2)[:1], np.array([0.01]), outside=1.0)
    return RewardModel(heads, wide)


@pytest.mark.parametrize(("noisy", "sorts"), [("far", True), ("near", False)])
def test_pairs_are_sorted_by_the_spread_of_their_margin(noisy: str, sorts: bool) -> None:
    dataset, examples = pairs_to_judge(noisy=noisy)
    figures, curve = doubt_figures(judge_of_the_first(), dataset, examples, 0)
    assert (sorts_errors(figures), curve) == (sorts, None)
    assert figures.keys() == {"aurc"}
    wrong = float((np.asarray(examples.chosen)[:, 0] < 0).mean())
    assert figures["aurc"]["random"] == pytest.approx(wrong, abs=1e-4)
    tied = replace(examples, targets=examples.targets * 0.5)
    assert doubt_figures(judge_of_the_first(), dataset, tied, 0) == ({}, None)


def test_a_model_of_pairs_says_whether_its_doubt_is_kept(tmp_path: Path) -> None:
    usual = trained(tmp_path / "usual", preferred_talks(240)).card
    kept = trained(tmp_path, preferred_talks(240), keep_uncertainty=True).card
    assert usual.recipe["uncertainty"] == "none"
    assert any(note.startswith("no uncertainty: it is not shown to sort") for note in usual.data.notes)
    assert kept.recipe["uncertainty"] == "bayesian"
    report = (tmp_path / "model" / "report.md").read_text()
    assert "Uncertainty by a last-layer posterior" in report
    assert "Area under the risk-coverage curve" in report
