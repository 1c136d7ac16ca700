"""Style: balanced away in pairs, exchanged without changing a word, and caught where a judge lives by it."""

from __future__ import annotations

import numpy as np

from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import OVERALL, Dataset, Labelled, PreferredPair
from reward_server.reward_models.style import balanced, dressed, leans, reply_of, style_of, undressed
from reward_server.reward_models.style_sets import AGREES, DISAGREES, NEIGHBOURS, RESTYLED, style_sets
from tests.reward_models.letters import LetterEncoder

LIST = "## Plan\n- **First** pump it up.\n- Then ride home."


def answered(reply: str, asked: str = "How do I mend it?", scenario: str = "") -> Conversation:
    return Conversation((ConversationMessage("persona", asked), ConversationMessage("agent", reply)), scenario)


def pair(better: str, worse: str, group: str = "g", weight: float = 1.0) -> PreferredPair:
    return PreferredPair(answered(better, group), answered(worse, group), group, weight=weight)


def test_what_is_longer_or_laid_out_leads() -> None:
    assert leans(pair("Pump it up and then ride home slowly.", "Pump it.")) == 1
    assert leans(pair("Pump it up now.", "- Pump it\n- up now.")) == -1
    assert leans(pair("Pump it up now.", "Ride it home now.")) == 0


def test_layout_changes_and_no_word_does() -> None:
    words = ["Plan.", "First", "pump", "it", "up.", "Then", "ride", "home."]
    assert undressed(LIST).split() == words
    assert [word for word in dressed(LIST).replace("-", "").split() if word != "**Answer**"] == words
    assert style_of(dressed(LIST))[1] > style_of(undressed(LIST))[1] == 0
    assert dressed("") == ""


def test_balanced_pairs_say_nothing_of_length_or_layout() -> None:
    source = np.random.default_rng(0)
    pairs = [
        pair("word " * int(source.integers(5, 60)), "word " * int(source.integers(5, 30)), f"g{n}") for n in range(300)
    ]
    pairs += [pair(LIST, "Pump it.", f"l{n}") for n in range(20)] + [pair("Pump it.", LIST, f"m{n}") for n in range(5)]

    def tilt(found: tuple[PreferredPair, ...] | list[PreferredPair]) -> np.ndarray:
        rows = [style_of(reply_of(each.chosen)) - style_of(reply_of(each.rejected)) for each in found]
        weights = np.array([each.weight for each in found])
        return np.abs(weights @ np.array(rows)) / weights.sum()

    after = balanced(pairs)
    assert (tilt(after) < 0.15 * tilt(pairs)).all()
    assert abs(sum(each.weight for each in after) - len(pairs)) < 1e-6
    assert [each.chosen for each in after] == [each.chosen for each in pairs]


def test_ties_and_pairs_of_one_style_keep_their_weight() -> None:
    tie = PreferredPair(answered("Pump it."), answered("Ride it."), "g", weight=2.0, tie=True)
    alike = pair("Pump it.", "Ride it.", weight=3.0)
    assert [each.weight for each in balanced([tie, alike])] == [2.0, 3.0]
    assert balanced([tie]) == (tie,)


def test_sets_exchange_the_style_and_keep_the_merit() -> None:
    pairs = (
        *(
            pair(f"Use tool {n}. Then ride home.", f"- Nothing {n} helps, sell it.\n- Or walk.", f"{n}?")
            for n in range(12)
        ),
        pair("Long and good and more of it, with care.", "Short.", "Question 99?"),
    )
    found = style_sets(Dataset((), pairs), LetterEncoder())
    sizes = {name: len(some) for name, some in found.items()}
    assert sizes == {AGREES: 1, DISAGREES: 12, RESTYLED: 13, NEIGHBOURS: 13}
    for name in (RESTYLED, NEIGHBOURS):
        for each in found[name]:
            better, worse = style_of(reply_of(each.chosen)), style_of(reply_of(each.rejected))
            assert better[1] == 0 < worse[1]
            assert each.chosen.turns[0] == each.rejected.turns[0]
    foreign = {reply_of(each.rejected) for each in found[NEIGHBOURS]}
    assert foreign <= {dressed(reply_of(side)) for each in pairs for side in (each.chosen, each.rejected)}
    assert all(reply_of(each.rejected) != dressed(reply_of(each.chosen)) for each in found[NEIGHBOURS])
    assert all(style_of(reply_of(each.rejected))[0] > style_of(reply_of(each.chosen))[0] for each in found[NEIGHBOURS])


def test_labels_of_one_dialogue_make_pairs_and_those_in_a_scenario_none() -> None:
    rows = tuple(
        Labelled(answered(f"Reply {n} to it.", scenario=scenario), {OVERALL: n / 4}, group)
        for group, scenario in (("a", ""), ("b", "Shop: a bike shop."))
        for n in range(4)
    )
    found = style_sets(Dataset(rows), LetterEncoder())
    assert len(found[RESTYLED]) == 6
    assert {each.group for each in found[RESTYLED]} == {"a"}
    assert len(style_sets(Dataset(rows), LetterEncoder(), "words")[RESTYLED]) == 12
