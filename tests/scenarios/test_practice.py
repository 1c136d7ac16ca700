"""The practice cases that ship are consistent, and a file that is not is named with its line."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from personas.case.schema import Tier
from scenarios.practice import PracticeCase, load_practice
from scenarios.yamlfile import ScenarioFileError

CASE = """\
name: Ada
role: pet owner
agent: receptionist
openings: [Hello., Good morning.]
facts:
- {id: a, says: [A.], asks: [A?]}
- {id: b, says: [B.], asks: [B?]}
- {id: c, says: [C.], asks: [C?]}
- {id: d, says: [D.], asks: [D?]}
- {id: e, says: [E.], asks: [E?]}
- {id: f, says: [F.], asks: [F?]}
denials:
- {id: g, says: [G.], asks: [G?]}
commitments:
- {id: call, costs: false, examples: [I call.]}
- {id: visit, costs: false, examples: [I come.]}
- {id: cure, costs: true, examples: [It will heal.]}
- {id: blame, costs: true, examples: [That is your fault.]}
background:
- {id: garden, asks: [Garden?, A garden?, Your garden?], says: [Roses.]}
- {id: tea, asks: [Tea?, A tea?, Your tea?], says: [Please.]}
unknown: [No idea.]
"""


def row(turn: str = "When?", kind: str = "specific", **labels: Any) -> dict[str, Any]:
    return {"turn": turn, "asks": ["a"] if kind == "specific" else [], "commits": [], "kind": kind, **labels}


def write(root: Path, *rows: dict[str, Any] | str, case: str = CASE) -> Path:
    folder = root / "vet"
    folder.mkdir()
    (folder / "ada.yaml").write_text(case)
    lines = [each if isinstance(each, str) else json.dumps(each) for each in rows]
    (folder / "ada.turns.jsonl").write_text("".join(line + "\n" for line in lines))
    return root


@pytest.fixture(scope="module")
def cases() -> list[PracticeCase]:
    return load_practice()


def test_cases_have_turns_of_every_kind(cases: list[PracticeCase]) -> None:
    assert cases
    for each in cases:
        kinds = Counter(turn.kind for turn in each.turns)
        assert len(each.turns) >= 40, each.slug
        assert set(kinds) >= {"specific", "double", "open", "foreign", "background", "commit", "near_commit"}, each.slug
        assert sum(bool(turn.line) for turn in each.turns) >= 6, each.slug


def test_cases_hold_what_makes_the_distinctions_hard(cases: list[PracticeCase]) -> None:
    for each in cases:
        breaches = {promise.id for promise in each.case.commitments if promise.costs}
        made = {name for turn in each.turns for name in turn.commits}
        assert len(breaches) >= 2, each.slug
        assert len(breaches & made) >= 2, each.slug
        assert sum(fact.tier is Tier.RAPPORT for fact in each.case.facts) >= 2, each.slug


def test_no_two_cases_share_a_name_or_a_turn_of_some_length(cases: list[PracticeCase]) -> None:
    slugs = Counter((each.domain, each.slug) for each in cases)
    said = Counter(turn.turn.casefold() for each in cases for turn in each.turns if len(turn.turn.split()) > 6)
    assert [name for name, times in (slugs + said).items() if times > 1] == []


def test_a_row_becomes_a_labelled_turn(tmp_path: Path) -> None:
    before = [["persona", "Hi."], ["agent", "Yes?"], ["persona", "It is Rex."]]
    written = write(tmp_path, row(style="terse", before=before), row("Roses?", "background", asks=["garden"]))
    (case,) = load_practice(written)
    assert (case.domain, case.slug, case.case.name) == ("vet", "ada", "Ada")
    assert [(turn.line, turn.style, turn.number) for turn in case.turns] == [
        ("It is Rex.", "terse", 1),
        ("", "plain", 2),
    ]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (row(asks=["z"]), "no `z`"),
        (row(asks=["garden"]), "no `garden`"),
        (row("Roses?", "background", asks=["a"]), "no `a`"),
        (row("I swear.", "commit", commits=["oath"]), "no `oath`"),
        (row("I swear.", "near_commit", near="oath", stance="past"), "no `oath`"),
        (row("I called.", "near_commit", near="call"), "`near` and `stance`"),
        (row(near="call", stance="past"), "`near` and `stance`"),
        (row("I call.", "commit"), "`commits` names something"),
        (row(kind="double", asks=["a"]), "at least 2"),
        (row("Rain?", "foreign", asks=["a"]), "asks for nothing"),
        (row(kind="odd"), "`kind`: Input should be"),
        (row(style="loud"), "`style`: Input should be"),
        (row(tone=1), "`tone`: Extra inputs"),
        (row(before=[["dog", "Woof."]]), "`before.0.0`"),
        (row("First?"), "stands in line 1, too"),
        ({"turn": "When?", "asks": ["a"], "kind": "specific"}, "`commits`: Field required"),
        ("{", "not JSON"),
        ("", "not JSON"),
    ],
)
def test_a_bad_row_is_named_with_file_and_line(tmp_path: Path, bad: dict[str, Any] | str, reason: str) -> None:
    with pytest.raises(ScenarioFileError) as error:
        load_practice(write(tmp_path, row("First?"), bad))
    (line,) = str(error.value).splitlines()
    assert "ada.turns.jsonl:2: " in line
    assert reason in line


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("id: g,", "id: a,", 13, "the id `a` stands here twice"),
        ("costs: true, examples: [It", "examples: [It", 17, "is missing"),
        ("role: pet owner\n", "", 1, "`role` is missing"),
        ("name: Ada", "name: Ada\ntone: rough", 2, "unknown key `tone`"),
    ],
)
def test_a_bad_case_is_named_with_file_and_line(tmp_path: Path, old: str, new: str, line: int, reason: str) -> None:
    with pytest.raises(ScenarioFileError) as error:
        load_practice(write(tmp_path, row(), case=CASE.replace(old, new)))
    assert f"ada.yaml:{line}: " in str(error.value)
    assert reason in str(error.value)


@pytest.mark.parametrize("gone", ["ada.yaml", "ada.turns.jsonl"])
def test_a_case_needs_both_its_files(tmp_path: Path, gone: str) -> None:
    write(tmp_path, row())
    (tmp_path / "vet" / gone).unlink()
    with pytest.raises(ScenarioFileError, match=f"{gone}:1: the file"):
        load_practice(tmp_path)
