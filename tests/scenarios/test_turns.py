from pathlib import Path

import pytest

from scenarios.lint import COLLECTIONS
from scenarios.turns import BACKGROUND_KIND, LabelledTurn, examples_of, files_below, load_turns, question_of, quote_of


def turn(text: str, **labels: object) -> LabelledTurn:
    return LabelledTurn(**{"turn": text, "asks": (), "commits": (), "kind": "specific", **labels})  # type: ignore[arg-type]


def test_every_scenario_has_turns_and_an_eighth_is_kept_aside() -> None:
    files = list(files_below(COLLECTIONS))
    turns = [each for path in files for each in load_turns(path)]
    assert len(files) == 30
    assert len(turns) >= 3000
    assert 0.10 < sum(each.kept_aside for each in turns) / len(turns) < 0.15


@pytest.mark.slow
def test_labels_name_what_the_case_holds() -> None:
    from scenarios.library import load_library

    library = load_library()
    for path in files_below(COLLECTIONS):
        case = library.vault.open(path.parent.name, path.name.removesuffix(".turns.jsonl")).case
        promises = {commitment.id for commitment in case.commitments}
        for each in load_turns(path):
            assert set(each.asks) <= set(case.by_id), (path.name, each.turn)
            assert set(each.commits) <= promises, (path.name, each.turn)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{}", "`kind` is missing"),
        ('{"turn": "a", "asks": [], "commits": [], "kind": "odd"}', "unknown kind `odd`"),
        ('{"turn": "a", "asks": [], "commits": [], "kind": "open", "tone": 1}', "unknown key `tone`"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "a.turns.jsonl"
    path.write_text('{"turn": "a", "asks": [], "commits": [], "kind": "open"}\n' + line + "\n")
    with pytest.raises(ValueError, match="line 2") as error:
        load_turns(path)
    assert reason in str(error.value)


def test_a_turn_about_the_background_is_for_measuring_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.turns.jsonl"
    path.write_text('{"turn": "Does Friday suit you?", "asks": ["when_home"], "commits": [], "kind": "background"}\n')
    (found,) = load_turns(path)
    assert found.kind == BACKGROUND_KIND
    assert examples_of([found]).topics == {}


def test_the_sentence_that_asks_lends_itself_as_an_example() -> None:
    asked = turn("Thanks for calling. When did it start?", asks=("onset",))
    assert question_of(asked) == "When did it start?"


def test_an_elliptic_question_behind_a_line_lends_nothing() -> None:
    assert question_of(turn("Since when?", asks=("onset",), line="My knee hurts.")) is None


def test_the_sentence_that_commits_is_found_by_its_quote() -> None:
    made = turn("I see. I'll send a crew.", commits=("crew",), kind="commit", quotes={"crew": "I'll send a crew."})
    assert quote_of(made, "crew") == "I'll send a crew."
    assert quote_of(turn("I see. I'll send a crew.", commits=("crew",), kind="commit"), "crew") is None


def test_turns_kept_aside_lend_nothing() -> None:
    turns = [turn(f"When did number {n} start?", asks=("onset",)) for n in range(64)]
    lent = examples_of(turns).topics["onset"]
    assert lent
    assert not {each.turn for each in turns if each.kept_aside} & set(lent)
