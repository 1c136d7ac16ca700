"""Measures of a reader, on readings made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from personas.reading.acts import Act, ReadCandidate, Reading, Sentence
from reward_server.fitting.reader.dataset import (
    ReaderRow,
    after_lines,
    after_opening,
    background_rows,
    borrowed,
    case_of,
    packaged_acts,
    turns_of_file,
)
from reward_server.fitting.reader.evaluate import (
    APART,
    MEASURES,
    Share,
    TurnPrediction,
    all_measured,
    by_collection,
    is_right,
    predict,
    table,
)
from scenarios.library import Library, load_library
from scenarios.turns import LabelledTurn

NAME = ("tutoring", "half-a-cup")


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(only=["/".join(NAME), "clinical-intake/tired-and-dizzy"])


def turn(text: str, kind: str, *asks: str) -> ReaderRow:
    return ReaderRow(*NAME, LabelledTurn(text, asks, (), kind))


class Parrot:
    """Reads the id of a topic out of the text."""

    version = "parrot"

    def read(self, case: object, turns: list[tuple[str, str]]) -> list[Reading]:
        return [
            Reading(
                (
                    Sentence(
                        text, frozenset({Act.ASK}), topics=(ReadCandidate(text.split()[0], 0.9),) if " " in text else ()
                    ),
                )
            )
            for _, text in turns
        ]


def test_each_kind_is_measured_by_what_the_persona_would_do(library: Library) -> None:
    rows = [
        turn("tops_and_bottoms ?", "specific", "tops_and_bottoms"),
        turn("tops_and_bottoms ?", "specific", "bigger_is_bigger"),
        turn("nothing", "specific", "bigger_is_bigger"),
        turn("tops_and_bottoms ?", "foreign"),
        turn("nothing", "foreign"),
        turn("tops_and_bottoms ?", "double", "tops_and_bottoms", "bigger_is_bigger"),
    ]
    found = by_collection(predict(library, Parrot(), rows))["all"]
    assert found["specific understood"] == Share(1, 3)
    assert found["specific wrong"] == Share(1, 3)
    assert found["foreign opened"] == Share(1, 2)
    assert found["double, per fact"] == Share(1, 2)
    assert list(found) == [*MEASURES, *APART]


def test_an_invitation_to_say_what_was_said_in_the_opening_is_not_counted(library: Library) -> None:
    opening = library.vault.open(*NAME).case.openings[0]
    told, untold = (
        ReaderRow(*NAME, LabelledTurn("nothing", asks, (), "open", line=opening))
        for asks in (("two_fifths",), ("two_fifths", "tops_and_bottoms"))
    )
    assert by_collection(predict(library, Parrot(), [told, untold]))["all"]["open apt"] == Share(0, 1)


def test_a_prediction_is_written_with_the_names_of_its_file(library: Library) -> None:
    [found] = predict(library, Parrot(), [turn("tops_and_bottoms ?", "specific", "tops_and_bottoms")])
    assert found.to_json() == {
        "collection": "tutoring",
        "scenario": "half-a-cup",
        "turn": "tops_and_bottoms ?",
        "asks": ["tops_and_bottoms"],
        "commits": [],
        "off_topic": False,
        "acts": ["ask"],
    }


def test_the_interval_is_wilson_s() -> None:
    low, high = Share(9, 10).interval
    assert (round(low, 3), round(high, 3)) == (0.596, 0.982)
    assert Share(0, 0).interval == (0.0, 1.0)


def test_the_table_has_a_row_per_measure_that_has_turns(library: Library) -> None:
    lines = table(by_collection(predict(library, Parrot(), [turn("nothing", "foreign")]))).splitlines()
    named = [line.split(" (")[0].removeprefix("| ") for line in lines[2:]]
    assert named == ["foreign opened", "off topic, wrongly", "other turn fires a breach"]
    assert "- | 0% | -" in table({"one": {"a": Share(0, 0)}, "two": {"a": Share(0, 2)}, "none": {"a": Share(0, 0)}})


def test_breaches_that_fire_and_credits_that_are_heard_are_measured_apart(library: Library) -> None:
    def made(
        kind: str, *commits: str, heard: tuple[str, ...], fires: tuple[str, ...] = (), near: str | None = None
    ) -> TurnPrediction:
        row = ReaderRow(*NAME, LabelledTurn("x", (), commits, kind, near=near))
        return TurnPrediction(row, (), heard, False, (), binding=frozenset(fires), costs=frozenset({"cap"}))

    found = all_measured(
        [
            made("commit", "cap", heard=("cap",)),
            made("commit", "cap", heard=("cap",), fires=("cap",)),
            made("commit", "good", heard=("good",)),
            made("commit", "good", heard=(), fires=("cap",)),
            made("near_commit", heard=("cap",), near="cap"),
            made("near_commit", heard=("cap",), fires=("cap",), near="cap"),
            made("near_commit", heard=("cap",), fires=("cap",)),
            made("near_commit", heard=("good",), near="good"),
        ]
    )
    assert found["breach fires"] == Share(1, 2)
    assert found["near breach fires"] == Share(2, 3)
    assert found["credit heard"] == Share(1, 2)
    assert found["near credit taken"] == Share(1, 1)
    assert found["other turn fires a breach"] == Share(1, 4)
    assert found["commitment heard"] == Share(3, 4)


def test_what_costs_is_what_the_rubric_says(library: Library) -> None:
    [found] = predict(library, Parrot(), [turn("nothing", "commit")])
    costs = {each.id for each in library.vault.open(*NAME).case.commitments if each.costs}
    assert found.costs == costs != set()


def test_a_heard_breach_is_right_whether_it_fires_or_not() -> None:
    row = ReaderRow(*NAME, LabelledTurn("x", (), ("cap",), "commit"))
    heard = TurnPrediction(row, (), ("cap",), False, (), costs=frozenset({"cap"}))
    assert is_right(heard)
    assert all_measured([heard])["breach fires"] == Share(0, 1)


def test_only_what_names_a_line_before_it_is_a_follow_up(library: Library) -> None:
    asked = LabelledTurn("tops_and_bottoms ?", ("tops_and_bottoms",), (), "specific")
    rows = [ReaderRow(*NAME, asked), ReaderRow(*NAME, replace(asked, line="I added them."))]
    missed = ReaderRow(*NAME, replace(asked, turn="nothing", line="I added them."))
    found = by_collection(predict(library, Parrot(), after_opening(library, [*rows, missed])))["all"]
    assert found["follow-up understood"] == Share(1, 2)
    assert found["specific understood"] == Share(2, 3)


def test_a_turn_about_the_background_is_measured_alone(library: Library) -> None:
    entry = library.vault.open(*NAME).case.own_background[0]

    class Recalls(Parrot):
        def beside(self, case: object, line: str, said: Sequence[Sentence]) -> list[tuple[ReadCandidate, ...]]:
            return [(ReadCandidate(entry.id, 0.99),) if "right" in each.text else () for each in said]

    rows = [turn(text, "background", entry.id) for text in ("right", "other")]
    found = by_collection(predict(library, Recalls(), rows))["all"]
    assert found["own background used"] == Share(1, 2)
    assert [name for name, share in found.items() if share.of] == ["own background used"]


def test_labels_of_a_background_name_its_entries(library: Library, tmp_path: Path) -> None:
    entry = library.vault.open(*NAME).case.own_background[0]
    path = tmp_path / "tutoring__half-a-cup.jsonl"
    line = '{{"turn": "Is it?", "asks": ["{}"], "commits": [], "kind": "{}"}}\n'
    path.write_text(line.format(entry.id, "background"))
    assert [row.turn.asks for row in turns_of_file(path, library)] == [(entry.id,)]
    for label, kind in ((entry.id, "specific"), ("tops_and_bottoms", "background")):
        path.write_text(line.format(label, kind))
        with pytest.raises(ValueError, match=f"has no `{label}`"):
            turns_of_file(path, library)


@pytest.mark.parametrize("name", ["tutoring__half-a-cup.jsonl", "tutoring/half-a-cup.turns.jsonl"])
def test_collection_and_scenario_come_from_the_name_of_the_file(library: Library, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"turn": "Why?", "asks": [], "commits": [], "kind": "foreign"}\n')
    assert [row.key for row in turns_of_file(path, library)] == [NAME]


def test_a_file_with_another_name_is_refused(library: Library, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name the file <collection>__<scenario>"):
        turns_of_file(tmp_path / "turns.jsonl", library)


def test_borrowed_questions_are_about_nothing_and_come_from_elsewhere(library: Library) -> None:
    rows = [
        ReaderRow("clinical-intake", "tired-and-dizzy", LabelledTurn(f"Pain {n}?", ("onset",), (), "specific"))
        for n in range(40)
    ]
    own = turn("And which is the bigger piece?", "specific", "tops_and_bottoms")
    lent = [row for row in borrowed(library, [*rows, own], seed=1, most=5) if row.key == NAME]
    assert len(lent) == 5
    assert all(row.turn.kind == "foreign" and row.turn.asks == () for row in lent)
    left_out = [row for row in borrowed(library, rows, seed=1, most=5) if row.key == NAME]
    assert not left_out


def test_what_a_background_answers_is_a_turn_about_no_topic(library: Library) -> None:
    found = list(background_rows({NAME: library.vault.open(*NAME).case}))
    case = library.vault.open(*NAME).case
    assert {row.key for row in found} == {NAME}
    assert [row.turn.turn for row in found] == [ask for each in case.own_background for ask in each.examples]
    assert not {name for row in found for name in row.turn.asks} & set(case.by_id)


def test_the_packaged_sentences_have_known_acts() -> None:
    rows = packaged_acts()
    assert len(rows) > 1500
    assert {act for row in rows for act in row.acts} <= set(Act)


def test_most_turns_are_trained_after_a_line_that_does_not_answer_them(library: Library) -> None:
    alone = [turn(f"What about it, {number}?", "specific", "tops_and_bottoms") for number in range(300)]
    named = ReaderRow(*NAME, LabelledTurn("And then?", (), (), "open", line="I added them."))
    found = list(after_lines(library, [*alone, named], seed=0))
    assert [row.turn.turn for row in found] == [row.turn.turn for row in (*alone, named)]
    assert found[-1] == named
    lines = [row.turn.line for row in found[:-1]]
    assert 0.5 < sum(map(bool, lines)) / len(lines) < 0.8
    case = case_of(library, alone[0])
    assert set(lines) & set(case.openings)
    assert not set(lines) & set(case.by_id["tops_and_bottoms"].says)
    assert list(after_lines(library, [*alone, named], seed=0)) == found


def test_turns_that_name_no_line_can_be_read_after_the_opening(library: Library) -> None:
    named = ReaderRow(*NAME, LabelledTurn("And then?", (), (), "open", line="I added them."))
    [first, second] = after_opening(library, [turn("How are you?", "open"), named])
    assert first.turn.line == case_of(library, first).openings[0]
    assert second == named
