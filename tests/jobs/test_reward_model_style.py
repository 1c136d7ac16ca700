"""What training does about style, what the card says of it, and which models are not fit to serve."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from reward_server.fitting.reward_model import metrics
from reward_server.fitting.reward_model.evaluate import evaluate, systems_line
from reward_server.fitting.reward_model.style_check import style_lines
from reward_server.fitting.reward_model.train import TrainingResult, TrainingTask, train
from reward_server.fitting.reward_model.within import PAIRS_WITHIN, WITHIN, pairs_within_systems
from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import Card
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import Dataset, Labelled, PreferredPair, grouped
from reward_server.reward_models.fitness import PAIRS_UNSEEN, UNSEEN, unfit
from reward_server.reward_models.style_sets import AGREES, DISAGREES, NEIGHBOURS, RESTYLED
from tests.jobs.test_reward_model_train import NOW, RECIPE, quiet, tools_at, trained
from tests.reward_models.talks import WordCounts, labelled_talks, preferred_talks, talk

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "RESAMPLES", 50)


def wordy(style: bool) -> Dataset:
    """Of two replies the kinder one is preferred, which is also the longer one in nine of ten pairs, or where `style`
    the longer one, whatever it says."""
    source = random.Random(3)
    pairs = []
    for n in range(400):
        kind = [source.choice(("please", "thanks", "sorry")) for _ in range(0 if style else 2)]
        better = [*kind, *(source.choice(("bike", "tyre", "pump")) for _ in range(source.randint(6, 12)))]
        worse = [source.choice(("bike", "tyre", "pump")) for _ in range(source.randint(2, 5))]
        if not style and n % 10 == 0:
            better, worse = kind, [*worse, *better[2:]]
        sides = [
            Conversation((ConversationMessage("persona", f"hi {n}"), ConversationMessage("agent", " ".join(w))))
            for w in (better, worse)
        ]
        pairs.append(PreferredPair(sides[0], sides[1], f"p{n // 10}", n + 1))
    return grouped(Dataset((), tuple(pairs)))


class Styled(WordCounts):
    """Word counts, the last of which is the number of words: style."""

    @property
    def readings(self) -> dict[str, np.ndarray]:
        return {**super().readings, "content": np.arange(self.width) == self.width - 1}


def by(
    featuriser: WordCounts,
    folder: Path,
    features: str = "auto",
    *,
    style: bool = False,
    counterparts: Literal["auto", "with", "without"] = "without",
) -> TrainingResult:
    task = TrainingTask(folder / "model", "letters", NOW, recipe=RECIPE, features=features, counterparts=counterparts)
    return train(wordy(style=style), task, tools_at(folder, featuriser), quiet)


def test_a_judge_of_length_is_refused_in_one_line_and_one_of_content_is_not(tmp_path: Path) -> None:
    by_length = trained(tmp_path / "length", wordy(style=True)).card
    assert by_length.style[AGREES]["accuracy"]["value"] > 0.9
    assert by_length.style[NEIGHBOURS]["accuracy"]["value"] < 0.3
    why = unfit(by_length) or ""
    assert "judges style, not content" in why
    assert "\n" not in why
    by_content = by(Styled(), tmp_path / "content").card
    assert unfit(by_content) is None
    assert {AGREES, DISAGREES, RESTYLED, NEIGHBOURS} == set(by_content.style)
    assert by_content.style[DISAGREES]["accuracy"]["value"] > 0.9
    report = (tmp_path / "content" / "model" / "report.md").read_text()
    for line in style_lines(by_content.style):
        assert line in report


def test_features_of_style_are_left_out_unless_they_win_where_style_is_exchanged(tmp_path: Path) -> None:
    found = by(Styled(), tmp_path / "auto")
    assert found.card.recipe["features"] == "content"
    tried = found.card.recipe["features_tried"]
    assert tried["content"] > tried["all"]
    heads = found.attempt.fitted.heads
    assert np.isinf(heads.scale[-1])
    rows = np.zeros((2, heads.width), dtype=np.float32)
    rows[1, -1] = 100.0
    assert heads.raw(rows)[0, 0] == heads.raw(rows)[1, 0]
    assert "Features: content" in (tmp_path / "auto" / "model" / "report.md").read_text()


def test_heads_are_fitted_with_and_without_counterparts_also_where_that_was_interrupted(tmp_path: Path) -> None:
    whole = by(WordCounts(), tmp_path / "whole", counterparts="auto").card
    assert list(whole.recipe["features_tried"]) == ["all", "all+counterparts"]
    task = TrainingTask(tmp_path / "model", "letters", NOW, recipe=RECIPE)

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "training, all+counterparts" and done == 5:
            raise KeyboardInterrupt

    tools = tools_at(tmp_path, WordCounts())
    with pytest.raises(KeyboardInterrupt):
        train(wordy(style=False), task, tools, stop)
    assert train(wordy(style=False), replace(task, resume=True), tools, quiet).card.id == whole.id


def test_a_reading_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    found = by(Styled(), tmp_path, "all")
    assert found.card.recipe["features"] == "all"
    assert np.isfinite(found.attempt.fitted.heads.scale[-1])


def test_open_data_makes_sets_of_its_own(tmp_path: Path) -> None:
    card = trained(tmp_path, wordy(style=False), open_data=wordy(style=True)).card
    assert {f"open data: {name}" for name in (AGREES, RESTYLED, NEIGHBOURS)} <= set(card.style)


def card_with(metrics: dict[str, object], baselines: dict[str, object], style: dict[str, object] | None = None) -> Card:
    return Card.model_construct(metrics=metrics, baselines={"metrics": baselines}, style=style or {})


def test_a_model_below_a_plain_baseline_is_unfit() -> None:
    own = {"score": {"r2": {"value": 0.30}}}
    assert unfit(card_with(own, {"length": {"r2": {"value": 0.29}}})) is None
    why = unfit(card_with(own, {"length": {"r2": {"value": 0.31}}, "cosine": {"r2": {"value": 0.1}}}))
    assert why == "the simple baseline `length` is better on its held-out rows (R² 0.310, the model 0.300)"


def test_a_style_set_of_few_pairs_decides_nothing() -> None:
    few, many = ({"restyled": {"n": n, "accuracy": {"value": 0.4}}} for n in (19, 20))
    assert unfit(card_with({}, {}, few)) is None
    assert "`restyled`" in (unfit(card_with({}, {}, many)) or "")


def test_figures_within_systems_stand_beside_the_pooled_ones(tmp_path: Path) -> None:
    """One system is always good and one always bad: who knows them knows all labels, and nothing within a system."""
    talks = labelled_talks()
    good = float(np.median([row.scores["score"] for row in talks.labelled]))
    named = tuple(replace(row, system="A" if row.scores["score"] > good else "B") for row in talks.labelled)
    card = trained(tmp_path, replace(talks, labelled=named)).card
    assert card.metrics[WITHIN]["systems"] == 2
    pooled, within = card.metrics["score"]["spearman"]["value"], card.metrics[WITHIN]["spearman"]["value"]
    assert 0.0 < within < pooled
    assert card.baselines["metrics"]["system mean"]["spearman"]["value"] > 0.7
    assert card.metrics["score"]["auc"]["value"] > 0.9


def test_pairs_of_one_system_stand_beside_all_pairs(tmp_path: Path) -> None:
    """Some pairs are of two replies of one system; the others are of two systems, and the kinder one is A."""
    talks = preferred_talks()
    named = tuple(
        replace(pair, systems=(("A", "B"), ("A", "A"), ("B", "B"))[place % 3])
        for place, pair in enumerate(talks.preferred)
    )
    card = trained(tmp_path, replace(talks, preferred=named)).card
    every, within = card.metrics["pairs"], card.metrics[PAIRS_WITHIN]
    assert within["systems"] == 2
    assert 0 < within["n"] < every["n"]
    assert within["pairwise"]["value"] > 0.7
    assert card.baselines["metrics"]["system mean"]["pairwise"]["value"] > 0.5
    assert f"| {PAIRS_WITHIN} | {within['n']} |" in (tmp_path / "model" / "report.md").read_text()


def test_who_knows_systems_alone_orders_no_pair_within_one() -> None:
    pairs = [replace(pair, systems=("A", "B")) for pair in preferred_talks(40).preferred]
    margins = np.ones(60)
    ones = np.ones(60)
    assert pairs_within_systems(pairs, margins[:40], ones[:40], 0) == {}
    own = [replace(pair, systems=("A", "A")) for pair in preferred_talks(20, seed=5).preferred]
    assert pairs_within_systems(own, margins[:20], ones[:20], 0) == {}  # there is one system: the pooled figure says it
    margins[40:] = np.tile([1.0, -1.0], 10)
    found = pairs_within_systems([*pairs, *own], margins, ones, 0)
    assert (found["n"], found["systems"], found["pairwise"]["value"]) == (20, 1, 0.5)


def named(talks: Dataset, who: Sequence[str]) -> Dataset:
    return replace(talks, labelled=tuple(replace(r, system=s) for r, s in zip(talks.labelled, who, strict=True)))


def test_where_the_system_decides_unseen_systems_are_told_apart_by_chance(tmp_path: Path) -> None:
    """Each of six systems has a word of its own and a level of its own; nothing else tells the labels."""
    source = random.Random(5)
    words = ("please", "thanks", "sorry", "bike", "tyre", "pump")
    rows = []
    for number in range(360):
        place = number % 6
        level = 0.15 + 0.6 * (place % 3) / 2 + source.uniform(-0.12, 0.12)
        said = talk([words[place]] * source.randint(2, 4), f"hello {number}")
        rows.append(Labelled(said, {"score": level}, f"g{number // 6}", number + 1, system=f"system {place}"))
    found = trained(tmp_path, grouped(Dataset(tuple(rows))))
    pooled, apart = found.card.metrics["score"], found.card.metrics[UNSEEN]
    assert pooled["auc"]["value"] > 0.9
    assert apart["auc"]["value"] < 0.75
    assert apart["n"] == pooled["n"]
    assert (found.card.split["systems"], found.card.split["system_parts"]) == (6, 4)
    report = (tmp_path / "model" / "report.md").read_text()
    assert "Split by group and system: rows name 6 systems" in report
    assert "This model recognises who wrote a reply" in report


def test_what_holds_for_any_system_holds_for_unseen_ones(tmp_path: Path) -> None:
    talks = labelled_talks()
    card = trained(tmp_path, named(talks, [f"s{place % 5}" for place in range(len(talks.labelled))])).card
    assert card.metrics[UNSEEN]["spearman"]["value"] > 0.7
    assert card.data.systems == ("s0", "s1", "s2", "s3", "s4")
    assert "This model recognises who wrote a reply" not in (tmp_path / "model" / "report.md").read_text()


def test_pairs_of_unseen_systems_have_figures_of_their_own(tmp_path: Path) -> None:
    talks = preferred_talks(240)
    sides = [("A", "B"), ("C", "D"), ("B", "A"), ("D", "C"), ("A", "C"), ("D", "B")]
    pairs = tuple(replace(pair, systems=sides[place % 6]) for place, pair in enumerate(talks.preferred))
    card = trained(tmp_path, replace(talks, preferred=pairs)).card
    assert 10 <= card.metrics[PAIRS_UNSEEN]["n"] < card.metrics["pairs"]["n"]
    assert card.metrics[PAIRS_UNSEEN]["pairwise"]["value"] > 0.7


def test_a_model_that_knows_authors_alone_is_unfit() -> None:
    apart = {UNSEEN: {"n": 40, "auc": {"value": 0.45}}}
    why = "it recognises who wrote a reply, not how good it is: AUC 0.450 on unseen systems, chance is 0.5"
    assert unfit(card_with(apart, {})) == why
    assert unfit(card_with({UNSEEN: {"n": 40, "auc": {"value": 0.55}}}, {})) is None
    assert unfit(card_with({UNSEEN: {"n": 19, "auc": {"value": 0.45}}}, {})) is None


def test_an_evaluation_tells_rows_of_known_systems_from_others(tmp_path: Path) -> None:
    talks = labelled_talks()
    trained(tmp_path, named(talks, ["A"] * 80 + ["B"] * 80))
    found, others = artefact.read(tmp_path / "model"), labelled_talks(60, seed=9)
    half = named(others, ["A"] * 30 + ["C"] * 30)
    tools = tools_at(tmp_path)
    measured = evaluate(found, half, WordCounts(), tools.plain, shelf=tools.shelf, report=quiet)
    assert (measured.metrics[UNSEEN]["n"], measured.metrics["score"]["n"]) == (30, 60)
    [line] = systems_line(found, half)
    assert line.startswith("30 of 60 rows are by systems that the model learned from (A, B)")
    assert systems_line(found, others) == ()
    [none] = systems_line(found, named(others, ["C"] * 60))
    assert none == "60 of 60 rows name their system, and the model learned from none of these systems."


class Related(WordCounts):
    """Word counts, a hundred columns that say nothing, and how many words of the opening the agent takes up."""

    width = WordCounts.width + 101

    @property
    def relations(self) -> dict[str, int]:
        return {"cosine": self.width - 1}

    def _row(self, conversation: Conversation) -> list[float]:
        opening, reply = (set(said.text.split()) for said in conversation.turns[:2])
        noise = np.random.default_rng(int(conversation.digest[:8], 16)).normal(size=100)
        return [*super()._row(conversation), *noise.tolist(), float(len(opening & reply))]


def to_the_point(count: int = 240) -> Dataset:
    """Of two replies the one that takes up more of the opening is preferred."""
    source, words = random.Random(7), ("bike", "tyre", "pump", "lamp", "chain", "wheel")
    pairs = []
    for n in range(count):
        asked = source.sample(words, 2)
        rest = [word for word in words if word not in asked]
        said = [*asked, source.choice(rest)], [source.choice(asked), *source.sample(rest, 2)]
        sides = [talk(source.sample(each, 3), f"{' '.join(asked)} {n}") for each in said]
        pairs.append(PreferredPair(sides[0], sides[1], f"p{n // 4}", n + 1))
    return grouped(Dataset((), tuple(pairs)))


def test_what_joins_a_reply_to_its_request_is_weighed_and_served(tmp_path: Path) -> None:
    task = TrainingTask(tmp_path / "model", "letters", NOW, recipe=RECIPE, counterparts="without")
    tools = tools_at(tmp_path, Related())
    found = train(to_the_point(), task, tools, quiet)
    assert found.card.recipe["relations"]["cosine"] > 0.0
    assert "likeness of reply and request" in (tmp_path / "model" / "report.md").read_text()
    without = replace(task, out=tmp_path / "alone", relations=False)
    alone = train(to_the_point(), without, tools, quiet)
    assert "relations" not in alone.card.recipe
    ours, theirs = (each.card.metrics["pairs"]["pairwise"]["value"] for each in (found, alone))
    assert ours > theirs
    rows = Related().features(list(to_the_point(8).conversations()))
    served = artefact.read(tmp_path / "model").heads
    assert served.values(rows).tolist() == found.attempt.fitted.heads.values(rows).tolist()
