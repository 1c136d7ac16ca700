"""Heads for few pairs: what they are measured on, and what a small block may do to a large head."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality import data, few_pairs
from benchmarks.quality.data import DIMENSIONS, Pair
from benchmarks.quality.few_pairs import COMPARED, EVIDENCE, FULL, NUMBERS, PRODUCT, Large
from reward_server.encoders.encoder import Vectors
from reward_server.fitting.reward_model.head_training import Recipe
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.features import ConversationFeaturiser

pytestmark = pytest.mark.slow

THINGS = ["bicycle", "kettle", "window", "garden", "letter", "ladder", "pillow", "carpet", "engine", "bottle"]


class Flat:
    """An encoder that knows nothing."""

    version = "flat"
    width = 12

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), self.width), dtype=np.float32)


def a_pair(thing: str, number: int) -> Pair:
    better, worse = (
        Conversation((ConversationMessage("persona", f"How do I mend my {thing}?"), ConversationMessage("agent", text)))
        for text in (f"Please take the {thing} to shop {number} and ask there.", f"Smash it, fool {number}!")
    )
    return Pair(better, worse, group=thing)


def replies(folder: Path, good: Sequence[Sequence[str]]) -> Path:
    """A conversation per entry; each reply is met with yes on the dimensions named by their first letters."""
    rows = [
        {
            "conversation_id": str(number),
            "conversation_history": f"Tutor: How many?\u00a0\n\u00a0Student: There are {number}.",
            "anno_llm_responses": {
                str(place): {
                    "response": f"Reply {place} is {letters}.",
                    "annotation": {name: "Yes" if name[0] in letters else "No" for name in DIMENSIONS},
                }
                for place, letters in enumerate(each)
            },
        }
        for number, each in enumerate(good)
    ]
    (folder / "MRBench.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


def test_a_reply_with_more_good_verdicts_is_preferred_and_telling_the_answer_is_not_good(tmp_path: Path) -> None:
    # Both Ms count: mistake identification and location.
    pairs = data.mrbench_pairs(replies(tmp_path, [["MR", "MA"], ["MPA", "R"], ["P", "PC"]]))
    said = [tuple(side.turns[-1].text for side in (pair.chosen, pair.rejected)) for pair in pairs]
    assert said == [("Reply 1 is MA.", "Reply 0 is MR."), ("Reply 0 is MPA.", "Reply 1 is R.")]


def test_no_conversation_gives_more_pairs_than_others_by_far(tmp_path: Path) -> None:
    assert len(data.mrbench_pairs(replies(tmp_path, [["M"] * 6 + ["MR"] * 6 + ["MPAC"] * 6]))) == data.MOST_PAIRS


def test_no_dialogue_is_on_both_sides() -> None:
    groups = [str(row // 3) for row in range(600)]
    found = list(few_pairs.parts(groups, 2, 5))
    assert [size for size, _, _ in found] == ["150", "400"] * 2 + [FULL] * 5
    for _, train, held_out in found:
        assert not {groups[row] for row in train} & {groups[row] for row in held_out}
    assert [len(train) for size, train, _ in found if size != FULL] == [150, 400] * 2


def test_a_large_head_that_errs_on_unseen_dialogues_is_not_turned_round() -> None:
    draw = np.random.default_rng(0)
    plain, others = draw.normal(size=(80, 3)), draw.normal(size=(9, 3))
    large = Large(unseen=-1.0 + 0.1 * draw.normal(size=80), held_out=draw.normal(size=9))
    assert few_pairs.with_block(large, plain, others, summed=False) is large.held_out


def test_a_telling_block_is_used_beside_a_large_head() -> None:
    draw = np.random.default_rng(0)
    plain = draw.normal(size=(80, 3)) + np.array([1.5, 0.0, 0.0])
    large = Large(unseen=0.5 + draw.normal(size=80), held_out=np.zeros(2))
    found = few_pairs.with_block(large, plain, np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0]]), summed=False)
    assert found[0] > 1.0
    assert found[1] < -1.0


def test_every_head_is_measured_and_learns_what_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_pairs, "SIZES", (24,))
    monkeypatch.setattr(few_pairs, "Recipe", lambda: Recipe(epochs=20, l2=(0.1,)))
    featuriser = ConversationFeaturiser(Flat())
    known = few_pairs.known_of(featuriser, [a_pair(thing, number) for number in range(4) for thing in THINGS])
    found = few_pairs.measured(featuriser, known, 1, 5)
    heads = [name + more for name in (PRODUCT, EVIDENCE) for more in ("", f", with {NUMBERS}", f", with {COMPARED}")]
    assert {size: list(each) for size, each in found.items()} == {"24": heads, FULL: heads}
    assert [len(each[PRODUCT]) for each in found.values()] == [1, 5]
    assert all(value == 1.0 for each in found.values() for values in each.values() for value in values)
    shown = few_pairs.table("mended", known, found, 1)
    assert "| as the product trains | 1.000 | 1.000 |" in shown
    assert "40 pairs in 10 dialogues; 1 draws, or 5 folds of all" in shown


def test_what_a_reply_answers_is_the_latest_message_as_it_is_read() -> None:
    before = ConversationMessage("persona", "Hello."), ConversationMessage("agent", "Hi.")
    last = ConversationMessage("persona", "Mend 3 bikes."), ConversationMessage("agent", "Do.\n\n- **One**")
    conversation = Conversation((*before, *last))
    asked, reply = few_pairs._exchange(conversation)
    assert asked == "Mend 3 bikes."
    assert "- " not in reply
    assert reply.startswith("Do.")
