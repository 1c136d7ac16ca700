"""What is trained on: splits by dialogue, duplicates, checks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reward_server.errors import InvalidRequest
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import (
    OVERALL,
    Dataset,
    Labelled,
    fair_label,
    grouped,
    hold_out,
    notes_on_reading,
    notes_on_scenarios,
    split,
    without_constant_dimensions,
)
from reward_server.reward_models.segments import read
from tests.reward_models.talks import labelled_talks, preferred_talks, talk


def parts_of(dataset: Dataset, seed: int = 0) -> list[Dataset]:
    parts = split(dataset, seed)
    return [parts.train, parts.validation, parts.held_out]


def test_no_dialogue_is_on_two_sides_and_no_row_is_lost() -> None:
    dataset = labelled_talks()
    parts = parts_of(dataset)
    groups = [part.groups for part in parts]
    assert not groups[0] & groups[1]
    assert not groups[0] & groups[2]
    assert not groups[1] & groups[2]
    assert sum(len(part.labelled) for part in parts) == len(dataset.labelled)
    assert 0.1 < len(parts[2].labelled) / len(dataset.labelled) < 0.3


def test_a_split_follows_from_groups_and_seed_alone() -> None:
    dataset = labelled_talks()
    shuffled = replace(dataset, labelled=tuple(reversed(dataset.labelled)))
    assert split(dataset, 3).held_out.groups == split(shuffled, 3).held_out.groups
    assert split(dataset, 3).held_out.groups != split(dataset, 4).held_out.groups
    assert dataset.digest == shuffled.digest


def test_a_conversation_that_is_held_out_is_not_trained_on_under_another_group() -> None:
    dataset = labelled_talks()
    held = split(dataset, 0).held_out.labelled[0]
    elsewhere = next(g for g in sorted(dataset.groups) if g in split(dataset, 0).train.groups)
    copied = replace(dataset, labelled=(*dataset.labelled, replace(held, group=elsewhere)))
    parts = hold_out(copied, split(dataset, 0).held_out.groups, 0)
    seen = {row.conversation.digest for part in (parts.train, parts.validation) for row in part.labelled}
    assert held.conversation.digest not in seen
    assert parts.duplicates == 1


def test_pairs_of_a_dialogue_stay_together_too() -> None:
    first, middle, last = parts_of(preferred_talks())
    assert first.preferred
    assert middle.preferred
    assert last.preferred
    assert not first.groups & last.groups


def test_rows_without_a_group_are_grouped_by_scenario_or_by_how_they_begin() -> None:
    bare = [Labelled(talk(["bike"], f"opening {n % 3}"), {OVERALL: 0.5}) for n in range(9)]
    by_beginning = grouped(Dataset(tuple(bare)))
    assert by_beginning.grouped_by == "beginning"
    assert len(by_beginning.groups) == 3
    played = [replace(row, conversation=replace(row.conversation, scenario=f"s{n}")) for n, row in enumerate(bare)]
    by_scenario = grouped(Dataset(tuple(played)))
    assert by_scenario.grouped_by == "scenario"
    assert by_scenario.groups == {f"s{n}" for n in range(9)}
    own = grouped(Dataset(tuple(replace(row, group="mine") for row in played)))
    assert (own.grouped_by, own.groups) == ("group", {"mine"})


def test_pairs_that_differ_in_nothing_that_is_read_are_named() -> None:
    """In a scenario answers are read, and these are equal where only the agent's words differ."""
    pairs = preferred_talks(count=40).preferred
    played = [
        replace(pair, chosen=replace(pair.chosen, scenario="s"), rejected=replace(pair.rejected, scenario="s"))
        for pair in pairs
    ]
    assert not list(notes_on_reading(Dataset((), pairs), "answers"))
    (note,) = notes_on_reading(Dataset((), (*pairs, *played)), "answers")
    assert note.startswith("40 of 80 pairs teach little")
    assert "--reads words" in note
    told_apart = [pair for pair in played if read(pair.chosen, "words") != read(pair.rejected, "words")]
    assert len(told_apart) > 20
    assert not list(notes_on_reading(Dataset((), (*pairs, *told_apart)), "words"))


def test_rows_without_a_scenario_are_named() -> None:
    rows, pairs = labelled_talks(count=40).labelled, preferred_talks(count=40).preferred
    (note,) = notes_on_scenarios(Dataset(rows, pairs), "answers")
    assert note.startswith("no row has a `scenario`: in a scenario, as the server always scores, this model knows")
    assert "of the answers" in note
    played = tuple(replace(row, conversation=replace(row.conversation, scenario="s")) for row in rows)
    (note,) = notes_on_scenarios(Dataset(played, pairs), "answers")
    assert note.startswith("40 of 80 rows have no `scenario`: in a scenario, as the server always scores, they teach")
    (note,) = notes_on_scenarios(Dataset(played, pairs), "words")
    assert "answers" not in note
    assert not list(notes_on_scenarios(Dataset(played), "answers"))


def test_conversations_in_which_nothing_can_earn_are_named() -> None:
    rows = labelled_talks(count=40).labelled
    alone = [replace(row, conversation=Conversation(row.conversation.turns[:2], "s")) for row in rows]
    (note,) = notes_on_reading(Dataset((*rows, *alone)), "answers")
    assert note.startswith("40 of 80 labelled conversations have a scenario and no answer")
    assert not list(notes_on_reading(Dataset((*rows, *alone)), "words"))


@pytest.mark.parametrize(
    ("dataset", "line"),
    [
        (labelled_talks(count=20), "too little data: 20 usable rows, at least 30 are needed"),
        (labelled_talks(groups=3), "too few dialogues: the rows fall into 3 groups by group, at least 5"),
        (
            replace(
                labelled_talks(),
                labelled=tuple(replace(row, scores={OVERALL: 0.5}) for row in labelled_talks().labelled),
            ),
            "all 160 labels of `score` are 0.5: there is nothing to tell apart",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused_with_what_is_needed(dataset: Dataset, line: str) -> None:
    with pytest.raises(InvalidRequest, match=line):
        split(dataset, 0)


def test_dimensions_that_never_vary_get_no_head_and_the_notes_say_so() -> None:
    rows = tuple(replace(row, scores={**row.scores, "same": 1.0}) for row in labelled_talks().labelled)
    kept = without_constant_dimensions(Dataset(rows))
    assert kept.heads == (OVERALL, "lamps")
    assert "no head for same" in kept.notes[0]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.5", None, True, [1]])
def test_what_is_no_number_is_no_label(value: object) -> None:
    with pytest.raises(ValueError, match="is not a"):
        fair_label(value, 0, 1)


def test_labels_of_another_scale_are_refused_unless_the_scale_is_given() -> None:
    with pytest.raises(ValueError, match="outside 0 to 1; give the scale as --scale LOW HIGH"):
        fair_label(4, 0, 1)
    assert fair_label(4, 1, 5) == 0.75
    with pytest.raises(ValueError, match="outside 1 to 5"):
        fair_label(6, 1, 5)
