"""The judge of two levels: what it compares, that the order cannot matter, and what it is never shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from benchmarks.quality import protocols, two_levels
from benchmarks.quality.comparisons import COMPARISONS, compared, traits
from benchmarks.quality.data import Pair
from benchmarks.quality.figures import folds_of
from benchmarks.quality.preferences import sides
from benchmarks.quality.two_levels import Compared, Margins
from reward_server.encoders.encoder import Vectors
from reward_server.encoders.loading import load_encoder
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.features import ConversationFeaturiser

pytestmark = pytest.mark.slow

WORDS, FIGURES, MARKS, REPETITION, REFUSAL = range(5)


class Flat:
    """An encoder that knows nothing; heads need no more of it than how wide its vectors are."""

    version = "flat"
    width = 60

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), self.width), dtype=np.float32)


def a_pair(instruction: str, better: str, worse: str) -> Pair:
    chosen, rejected = (
        Conversation((ConversationMessage("persona", instruction), ConversationMessage("agent", text)))
        for text in (better, worse)
    )
    return Pair(chosen, rejected, instruction)


def made_up(featuriser: ConversationFeaturiser, n: int, seed: int) -> Compared:
    """Features are noise; the first comparison is right in about five of six."""
    draw = np.random.default_rng(seed)
    plain = draw.normal(size=(n, len(COMPARISONS)))
    plain[:, 0] += 1.0
    noise = draw.normal(size=(n, featuriser.width)).astype(np.float32)
    return Compared(noise, plain, tuple(str(number) for number in range(n)))


@pytest.mark.parametrize(
    ("place", "better", "worse"),
    [
        (WORDS, "The bicycle has a chain.", "The car has an engine."),
        (FIGURES, "It has 12 parts.", "It has 13 parts."),
        (MARKS, "- one\n- two", "one, two"),
        (MARKS, "**One** and two", "One and two"),
        (REPETITION, "Oil it, then ride it home.", "Oil it now. Oil it now. Oil it now."),
        (REFUSAL, "Oil it.", "I'm sorry, I can't say."),
    ],
)
def test_more_of_each_trait_is_better(place: int, better: str, worse: str) -> None:
    instruction = "Name 12 parts of a bicycle."
    assert traits(instruction, better)[place] > traits(instruction, worse)[place]


def test_an_empty_output_has_traits_too() -> None:
    assert np.isfinite(traits("", "")).all()


def test_comparisons_of_outputs_that_change_places_change_their_sign() -> None:
    featuriser = ConversationFeaturiser(load_encoder())
    texts = "Name 12 parts of a bicycle.", "1. A chain\n2. A wheel, and 12 parts more", "Sorry, I cannot."
    pairs = [a_pair(*texts)]
    swapped = [a_pair(texts[0], texts[2], texts[1])]
    one = compared(featuriser, pairs, sides(featuriser, pairs).differences)
    other = compared(featuriser, swapped, sides(featuriser, swapped).differences)
    assert one.shape == (1, len(COMPARISONS))
    assert (one == -other).all()
    assert (one[0, [0, 2, 3, 4, 6]] > 0.0).all()


def test_both_levels_say_the_same_in_both_orders() -> None:
    featuriser = ConversationFeaturiser(Flat())
    heads = two_levels.fit(featuriser, made_up(featuriser, 40, seed=1))
    pairs = made_up(featuriser, 20, seed=2)
    one, other = heads.margins(pairs), heads.margins(pairs.swapped)
    for level in protocols.LEVELS:
        assert getattr(one, level) == pytest.approx(-getattr(other, level))
        assert np.abs(getattr(one, level)).min() > 0.0


def test_a_large_head_that_only_knows_its_own_pairs_is_not_believed() -> None:
    featuriser = ConversationFeaturiser(Flat())
    heads = two_levels.fit(featuriser, made_up(featuriser, 100, seed=3))
    pairs = made_up(featuriser, 400, seed=4)
    said = heads.margins(pairs)
    assert (said.large > 0.0).mean() < 0.6
    assert (said.both > 0.0).mean() > (said.small > 0.0).mean() - 0.03 > 0.75


def in_groups(*groups: str) -> Compared:
    rows = np.arange(len(groups), dtype=np.float64)[:, None]
    return Compared(rows.astype(np.float32), rows, groups)


class Shown:
    """Stands for fitted heads: remembers which instructions it was fitted on, and is asked about others."""

    def __init__(self, pairs: Compared) -> None:
        self.groups = set(pairs.groups)

    def margins(self, pairs: Compared) -> Margins:
        assert not self.groups.intersection(pairs.groups)
        ones = np.ones(len(pairs.groups))
        return Margins(ones, ones, ones)


@pytest.fixture
def subsets(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Compared]:
    """Two subsets that share an instruction; heads are not fitted."""
    monkeypatch.setattr(two_levels, "fit", lambda featuriser, pairs: Shown(pairs))
    one = in_groups("shared", *(f"one {number // 2}" for number in range(30)))
    return {"one": one, "other": in_groups("shared", *(f"other {number}" for number in range(20)))}


def test_a_head_of_other_subsets_sees_no_instruction_of_the_subset(subsets: Mapping[str, Compared]) -> None:
    featuriser = ConversationFeaturiser(Flat())
    heads = protocols.on_others(featuriser, subsets, "one")
    assert isinstance(heads, Shown)
    assert heads.groups == {f"other {number}" for number in range(20)}


def test_with_its_own_kind_each_pair_is_judged_once_a_division_by_heads_without_its_instruction(
    subsets: Mapping[str, Compared],
) -> None:
    said = protocols.with_own_kind(ConversationFeaturiser(Flat()), subsets)
    assert set(said) == set(protocols.LEVELS)
    for margins in said.values():
        assert {name: rows.shape for name, rows in margins.items()} == {
            "one": (protocols.DIVISIONS, 31),
            "other": (protocols.DIVISIONS, 21),
        }
        assert all((rows == 1.0).all() for rows in margins.values())


def test_a_salt_deals_folds_anew_and_keeps_dialogues_whole() -> None:
    groups = [str(number // 2) for number in range(60)]

    def dealt(salt: str) -> list[set[str]]:
        folds = [held_out.tolist() for _, held_out in folds_of(groups, 5, salt)]
        assert sorted(row for fold in folds for row in fold) == list(range(60))
        return [{groups[row] for row in fold} for fold in folds]

    assert all(len(fold) == 6 for fold in dealt("a"))
    assert dealt("a") == dealt("a")
    assert dealt("a") != dealt("b")
