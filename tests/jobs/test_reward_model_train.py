"""A whole training: the artefact, the same id again, what is kept of fine-tuning, and interruptions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model import metrics
from reward_server.fitting.reward_model.evaluate import evaluate, overlap_line
from reward_server.fitting.reward_model.evaluate import lacks as lacks_on
from reward_server.fitting.reward_model.head_training import Recipe
from reward_server.fitting.reward_model.interrupted import checkpoint_folder
from reward_server.fitting.reward_model.notes import cap_line
from reward_server.fitting.reward_model.train import FeatureTools, TrainingResult, TrainingTask, train
from reward_server.reward_models import artefact
from reward_server.reward_models.conversation import Conversation, ConversationMessage, Reads
from reward_server.reward_models.dataset import Dataset, split
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.featurisers import Featurisers
from reward_server.reward_models.plain_features import PlainFeatures
from tests.reward_models.letters import LetterEncoder
from tests.reward_models.talks import WordCounts, labelled_talks, preferred_talks
from tests.reward_models.tiny_encoder import make_tiny_encoder

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NO_SCENARIO = (
    "no row has a `scenario`: in a scenario, as the server always scores, this model knows nothing of the task and of "
    "the answers that agents earn by; give rows their `scenario`"
)
OK = ConversationMessage("persona", "All right. Go on.")
RECIPE = Recipe(epochs=30, learning_rate=2e-2, l2=(0.01, 0.3))


class Counted(WordCounts):
    """Word counts whose work can be counted across tools."""


def tools_at(folder: Path, featuriser: WordCounts | None = None) -> FeatureTools:
    return FeatureTools(
        featuriser or WordCounts(), PlainFeatures(LetterEncoder()), "letters/1", FeatureShelf(folder / "cache")
    )


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals are not what most of these tests are about, and resampling is most of their time."""
    monkeypatch.setattr(metrics, "RESAMPLES", 100)


def quiet(stage: str, done: int, total: int) -> None:
    assert 0 <= done <= total
    assert stage


def trained(folder: Path, dataset: Dataset, **changes: Any) -> TrainingResult:
    # Half the fits: what counterparts do is asked in `test_reward_model_style`.
    task = replace(TrainingTask(folder / "model", "letters", NOW, recipe=RECIPE, counterparts="without"), **changes)
    return train(dataset, task, tools_at(folder), quiet)


def test_a_training_leaves_a_verified_model_with_card_report_and_plots(tmp_path: Path) -> None:
    card = trained(tmp_path, labelled_talks(), keep_uncertainty=True).card
    assert artefact.read(tmp_path / "model").card == card
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == {
        "card.json",
        "heads.safetensors",
        "uncertainty.safetensors",
        "rows-2.sha256",
        "words.safetensors",
        "report.md",
        "learning_curve.png",
        "reliability.png",
        "scatter.png",
        "risk_coverage.png",
    }
    assert not checkpoint_folder(tmp_path / "model").exists()
    assert card.data.sha256 == labelled_talks().digest
    assert (card.heads, card.features_version, card.encoder_version) == (("score", "lamps"), "counts/1", "letters/1")
    assert card.split["train"] + card.split["validation"] + card.split["held_out"] == 160


def test_figures_stand_beside_the_simple_baselines(tmp_path: Path) -> None:
    card = trained(tmp_path, labelled_talks()).card
    own, baselines = card.metrics["score"], card.baselines["metrics"]
    assert own["r2"]["low"] < own["r2"]["value"] < own["r2"]["high"]
    assert own["r2"]["value"] > 0.7 > baselines["length"]["r2"]["value"]
    assert set(baselines) == {"mean", "length", "cosine", "persona words", "tf-idf"}
    assert "spearman" not in baselines["mean"]
    assert own["mse"]["value"] < own["variance"]
    report = (tmp_path / "model" / "report.md").read_text()
    assert "baseline: length" in report
    assert "![learning curve](learning_curve.png)" in report


def test_what_little_data_cannot_give_is_said_and_claimed_nowhere(tmp_path: Path) -> None:
    """Two of ten dialogues are held out: neither intervals nor doubt."""
    card = trained(tmp_path, labelled_talks(60, 10)).card
    assert (card.split["validation"], card.split["held_out"]) == (6, 12)
    assert "uncertainty.safetensors" not in card.files
    assert card.recipe["uncertainty"] == "none"
    lacks = (
        "no uncertainty: fewer than 3 held-out groups cannot show that it sorts errors; --keep-uncertainty keeps it",
        "no intervals for labels: they need 3 groups to be measured on and have 2; add groups, or use "
        "a larger --held-out",
    )
    assert card.data.notes[:-1] == lacks
    report = (tmp_path / "model" / "report.md").read_text()
    assert all(f"- {note}" in report for note in lacks)
    assert "Figures on held-out dialogues, without intervals." in report
    assert "Uncertainty by" not in report
    found = artefact.read(tmp_path / "model")
    assert lacks_on(found, labelled_talks(60, 10)) == (f"no uncertainty: {card.id} was trained without one",)
    assert lacks_on(found, labelled_talks(60, 1))[1].startswith(
        "no intervals for labels: they need 3 groups to be measured on and have 1"
    )


def test_doubt_from_groups_left_out_is_said_to_be_that(tmp_path: Path) -> None:
    card = trained(tmp_path, labelled_talks(60, 10), keep_uncertainty=True).card
    assert card.recipe["uncertainty"] == "bayesian"
    assert "uncertainty.safetensors" in card.files
    assert card.data.notes[0] == (
        "the uncertainty was estimated on training groups left out in turn: it needs 8 labelled rows to be checked on "
        "and has 6; more rows make it more reliable"
    )


@pytest.mark.parametrize("dataset", [labelled_talks(), preferred_talks()], ids=["labels", "pairs"])
def test_enough_data_lacks_nothing(tmp_path: Path, dataset: Dataset) -> None:
    card = trained(tmp_path, dataset).card
    assert [note for note in card.data.notes if "not shown to sort" not in note] == [NO_SCENARIO]
    report = (tmp_path / "model" / "report.md").read_text()
    assert "Figures on held-out dialogues, with 95 % intervals" in report


def test_rows_with_several_raters_give_the_human_ceiling(tmp_path: Path) -> None:
    source = np.random.default_rng(0)
    rows = [
        replace(row, ratings=tuple(np.clip(row.scores["score"] + source.normal(0, 0.2, 3), 0, 1)))
        for row in labelled_talks().labelled
    ]
    card = trained(tmp_path, replace(labelled_talks(), labelled=tuple(rows))).card
    assert 0.2 < card.ceiling["spearman"]["value"] < 0.95
    assert "one person against the others" in (tmp_path / "model" / "report.md").read_text()


def test_the_same_data_and_seed_make_the_same_model(tmp_path: Path) -> None:
    first = trained(tmp_path / "a", labelled_talks()).card
    again = trained(tmp_path / "b", labelled_talks()).card
    other = trained(tmp_path / "c", labelled_talks(), recipe=replace(RECIPE, seed=1)).card
    assert first.id == again.id != other.id


def test_preferences_alone_are_measured_by_their_order(tmp_path: Path) -> None:
    card = trained(tmp_path, preferred_talks(count=240)).card
    assert card.link == "preference"
    assert card.metrics["pairs"]["pairwise"]["value"] > 0.8
    assert 0.0 <= card.metrics["pairs"]["ece"]["value"] < 0.3
    assert card.metrics.keys() == {"pairs"}
    assert (tmp_path / "model" / "reliability_pairs.png").exists()


def test_features_are_computed_once(tmp_path: Path) -> None:
    first, second = WordCounts(), WordCounts()
    task = TrainingTask(tmp_path / "model", "letters", NOW, recipe=RECIPE)
    train(labelled_talks(), task, tools_at(tmp_path, first), quiet)
    train(labelled_talks(), replace(task, out=tmp_path / "again"), tools_at(tmp_path, second), quiet)
    assert first.calls >= 160
    assert first.forgotten == [160]  # before heads are fitted
    assert second.calls == 0
    newer = WordCounts("counts/2")
    train(labelled_talks(), replace(task, out=tmp_path / "newer"), tools_at(tmp_path, newer), quiet)
    assert newer.calls == first.calls


def test_nothing_is_written_where_the_data_says_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="too little data"):
        trained(tmp_path, labelled_talks(count=10))
    assert not (tmp_path / "model").exists()
    assert not checkpoint_folder(tmp_path / "model").exists()


def test_a_taken_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("x")
    with pytest.raises(InvalidRequest, match="is not empty"):
        trained(tmp_path, labelled_talks())
    assert not (tmp_path / "cache").exists()


def test_an_interrupted_training_is_resumed_only_when_asked_and_ends_the_same(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", labelled_talks()).card

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "training" and done == 13:
            raise KeyboardInterrupt

    task = TrainingTask(tmp_path / "model", "letters", NOW, recipe=RECIPE)
    with pytest.raises(KeyboardInterrupt):
        train(labelled_talks(), task, tools_at(tmp_path), stop)
    assert not task.out.exists()
    with pytest.raises(InvalidRequest, match="use --resume to go on"):
        train(labelled_talks(), task, tools_at(tmp_path), quiet)
    with pytest.raises(InvalidRequest, match="other data or settings"):
        train(labelled_talks(seed=9), replace(task, resume=True), tools_at(tmp_path), quiet)
    first: list[int] = []

    def listen(stage: str, done: int, total: int) -> None:
        if stage == "training":
            first.append(done)

    resumed = train(labelled_talks(), replace(task, resume=True), tools_at(tmp_path), listen)
    assert first[0] == 14
    assert resumed.card.id == whole.id


@pytest.mark.parametrize("reads", ["answers", "words"])
def test_a_model_is_served_what_it_was_trained_to_read(tmp_path: Path, reads: Reads) -> None:
    """In a scenario, the answers to an agent, or its words, too, for credit; `of` would refuse other features."""
    played = tuple(
        replace(row, conversation=Conversation((*row.conversation.turns, OK), "A visit."))
        for row in labelled_talks(count=80).labelled
    )
    tiny = str(make_tiny_encoder(tmp_path / "tiny"))
    featurisers = Featurisers(tiny)
    encoder, shelf = featurisers.encoder, FeatureShelf(tmp_path / "cache")
    tools = FeatureTools(featurisers.reading(reads), PlainFeatures(encoder), encoder.version, shelf)
    task = TrainingTask(tmp_path / "model", tiny, NOW, recipe=RECIPE, reads=reads)
    card = train(Dataset(played), task, tools, quiet).card
    kind, rude = (
        Conversation(
            (ConversationMessage("persona", "My knee hurts."), ConversationMessage("agent", words), OK), "A visit."
        )
        for words in ("I am sorry to hear that. Since when?", "That is not my problem, you know.")
    )
    read = featurisers.of(artefact.read(task.out))
    rows = read.features([kind, rude])
    assert card.reads == reads
    assert np.array_equal(rows[0, ~read.costs], rows[1, ~read.costs]) == (reads == "answers")
    assert np.array_equal(rows[0, read.costs], rows[1, read.costs]) == (reads == "words")


# --- other data -----------------------------------------------------------------------------------


def test_a_model_is_measured_on_other_data_with_its_own_baselines(tmp_path: Path) -> None:
    trained(tmp_path, labelled_talks())
    found = artefact.read(tmp_path / "model")
    shelf = FeatureShelf(tmp_path / "cache")
    plain = PlainFeatures(LetterEncoder())
    measured = evaluate(found, labelled_talks(seed=7), WordCounts(), plain, shelf=shelf, report=quiet)
    assert measured.metrics["score"]["n"] == 160
    assert measured.metrics["score"]["r2"]["value"] > 0.7
    assert measured.baselines["mean"]["r2"]["value"] < 0.05
    rows = tuple(replace(row, scores={"unheard of": 0.5}) for row in labelled_talks(seed=7).labelled)
    with pytest.raises(InvalidRequest, match="no row has a label that rm_"):
        evaluate(found, Dataset(rows), WordCounts(), plain, shelf=shelf, report=quiet)


def test_rows_that_were_trained_on_are_known_again_in_a_part_of_the_file_and_with_other_labels(tmp_path: Path) -> None:
    dataset = labelled_talks()
    trained(tmp_path, dataset)
    found = artefact.read(tmp_path / "model")
    held_out = {c.digest for c in split(dataset, RECIPE.seed, 0.2).held_out.conversations()}
    seen = [row for row in dataset.labelled if row.conversation.digest not in held_out][:30]
    shouted = [
        replace(
            row,
            conversation=replace(
                row.conversation,
                turns=tuple(
                    ConversationMessage(said.party, f" {said.text.upper()}\n") for said in row.conversation.turns
                ),
                scenario="told elsewhere",
            ),
            scores={"score": 0.5},
        )
        for row in seen
    ]
    others = labelled_talks(10, seed=7).labelled
    assert overlap_line(found, Dataset(tuple([*shouted, *others]))).startswith("30 of 40 rows were trained on: ")
    assert overlap_line(found, Dataset(others)) == "0 of 10 rows were trained on."
    last = [row for row in dataset.labelled if row.conversation.digest in held_out]
    assert overlap_line(found, Dataset(tuple(last))) == f"0 of {len(last)} rows were trained on."
    kept = (tmp_path / "model" / "rows-2.sha256").read_text().split()
    assert kept == sorted(kept)
    assert all(len(each) == 64 for each in kept)


def test_a_model_without_hashes_says_that_it_does_not_know(tmp_path: Path) -> None:
    trained(tmp_path, labelled_talks())
    found = replace(artefact.read(tmp_path / "model"), extras={})
    assert "is not known" in overlap_line(found, labelled_talks(seed=7))
    older = replace(found, extras={"rows.sha256": b"0" * 64 + b"\n"})
    assert "is not known" in overlap_line(older, labelled_talks(seed=7))
    assert "160 of 160 rows were trained on" in overlap_line(found, labelled_talks())


def test_the_report_says_whether_training_was_cut_short() -> None:
    recipe = {"epochs": 40, "epochs_run": 40, "epoch": 33, "patience": 25}
    assert cap_line(recipe) == (
        "Training ended at its limit of 40 epochs, and its best epoch was 7 epochs before that: a larger --epochs may "
        "give a better model"
    )
    assert "and it was still improving: a larger" in cap_line({**recipe, "epoch": 40})
    assert cap_line({**recipe, "epochs_run": 39}) == ""
    assert cap_line({**recipe, "epoch": 15}) == ""
