"""The scenarios of one's own: their turns fit their cases, and the tables count them and have a row a measure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.own_scenarios.__main__ import TIME, main, understood, with_labels
from benchmarks.own_scenarios.measures import MEASURES, added, measured
from benchmarks.own_scenarios.sets import TurnSet, own_sets, practice_set
from reward_server.fitting.reader.dataset import ReaderRow
from reward_server.fitting.reader.evaluate import Share, TurnPrediction
from reward_server.fitting.reader.own import LEAST
from reward_server.reader.build import local_reader
from scenarios.turns import LabelledTurn

pytestmark = pytest.mark.slow

COSTS = {("desk", "late"): frozenset({"guarantee"})}


def predicted(
    turn: LabelledTurn, *, asks: tuple[str, ...] = (), commits: tuple[str, ...] = (), binding: tuple[str, ...] = ()
) -> dict[str, Share]:
    row = ReaderRow("desk", "late", turn)
    found = TurnPrediction(row, asks, commits, off_topic=False, acts=(), binding=frozenset(binding))
    return {name: share for name, share in measured([row], [found], COSTS).items() if share.of}


def few(given: TurnSet, kinds: tuple[str, ...]) -> TurnSet:
    """The first turn of each of these kinds."""
    return replace(given, rows=[next(row for row in given.rows if row.turn.kind == kind) for kind in kinds])


def test_the_turns_fit_their_cases_and_are_of_every_kind_that_is_counted() -> None:
    sets = own_sets()
    assert [each.name for each in sets] == ["home-repair/stain-on-the-ceiling", "hr-desk/late-mornings"]
    for each in sets:
        assert len({row.turn.turn for row in each.rows}) == 180
        nothing_found = [TurnPrediction(row, (), (), off_topic=False, acts=()) for row in each.rows]
        counted = {name: share.of for name, share in measured(each.rows, nothing_found, each.costs).items()}
        assert counted == {
            "specific questions understood": 60,
            "specific questions taken for others": 60,
            "follow-ups understood": 20,
            "facts of double questions": 30,
            "foreign questions that open a fact": 20,
            "promises that earn, heard": 15,
            "near misses taken for one": 30,
            "breaches that cost": 20,
            "near misses that cost": 30,
            "other turns that cost": 150,
        }


def test_a_question_counts_as_what_it_is() -> None:
    asked = LabelledTurn("Since when?", ("since",), (), "specific")
    assert predicted(asked, asks=("where",))["specific questions taken for others"] == Share(1, 1)
    assert predicted(asked)["specific questions taken for others"] == Share(0, 1)
    assert predicted(asked, asks=("since", "where"))["specific questions understood"] == Share(1, 1)
    after_a_line = predicted(replace(asked, line="It got worse."), asks=("since",))
    assert after_a_line == {"follow-ups understood": Share(1, 1), "other turns that cost": Share(0, 1)}
    double = LabelledTurn("Since when, and where?", ("since", "where"), (), "double")
    assert predicted(double, asks=("where",))["facts of double questions"] == Share(1, 2)


def test_a_commitment_costs_only_if_it_binds() -> None:
    breach = LabelledTurn("I guarantee it.", (), ("guarantee",), "commit")
    heard = predicted(breach, commits=("guarantee",))
    assert heard == {"breaches that cost": Share(0, 1), "other turns that cost": Share(0, 1)}
    bound = predicted(breach, commits=("guarantee",), binding=("guarantee",))
    assert bound == {"breaches that cost": Share(1, 1), "other turns that cost": Share(0, 1)}
    near = LabelledTurn("I can't guarantee it.", (), (), "near_commit", near="guarantee")
    assert predicted(near, commits=("guarantee",), binding=("guarantee",)) == {
        "near misses taken for one": Share(0, 1),
        "near misses that cost": Share(1, 1),
    }
    offer = LabelledTurn("I'll come with you.", (), ("come_along",), "commit")
    assert predicted(offer, commits=("come_along",))["promises that earn, heard"] == Share(1, 1)


def test_draws_are_added_up() -> None:
    part = dict.fromkeys(MEASURES, Share(1, 3))
    assert added([part, part]) == dict.fromkeys(MEASURES, Share(2, 6))


def test_every_set_is_a_column_read_once_and_one_read_twice() -> None:
    own = few(own_sets()[1], ("specific", "commit"))
    practice = few(practice_set(), ("foreign",))
    table = understood([own, practice])
    assert table.head[1:] == [f"{each.name}, {times}" for each in (own, practice) for times in ("once", "twice")]
    assert [row[0] for row in table.rows] == [*MEASURES, TIME]
    assert {row[0]: row[1].partition(" ")[0] for row in table.rows}["specific questions understood"] in ("0/1", "1/1")
    assert all(float(cell) > 0 for cell in table.rows[-1][1:])


def test_the_turns_that_lent_their_labels_are_not_measured() -> None:
    own = own_sets()[0]
    own = replace(own, rows=[row for row in own.rows if row.turn.kind == "specific"][: LEAST + 4])
    table = with_labels(local_reader(twice=True), [own], LEAST, draws=2)
    assert table.head[1:] == [f"{own.name}, {way}" for way in ("without", "as examples", "calibrated")]
    [others] = [row[1:] for row in table.rows if row[0] == "other turns that cost"]
    assert others == ["0/8 (0%)"] * 3


@pytest.mark.parametrize("labels", [LEAST - 1, 180])
def test_too_few_and_too_many_labels_are_refused(labels: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--labels", str(labels)])
    assert f"--labels: give a number from {LEAST} to 179, not {labels}" in capsys.readouterr().err
