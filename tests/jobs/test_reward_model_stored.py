"""The server's own evaluations and comparisons as training data."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reward_server.errors import InvalidRequest
from reward_server.jobs.reward_model.stored import StoredRows, stored_dataset
from reward_server.store.records import EvaluationSource
from scenarios.library import Catalog, load_library
from tests.store.builders import NOW, a_comparison, an_evaluation

COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"
WHERE = {"collection": "bike-shop", "scenario": "flat-tyre"}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_library(COLLECTIONS).catalog


def said(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "My tyre is flat."}, {"role": "assistant", "content": text}]


def evaluations(count: int = 40, **changes: Any) -> list[Any]:
    return [
        an_evaluation(
            **{**WHERE, "messages": said(f"answer {n}"), "reward": n / count, "scores": {"Care": n / count}, **changes}
        )
        for n in range(count)
    ]


def test_rewards_and_dimensions_become_labels_grouped_by_scenario(catalog: Catalog) -> None:
    found = stored_dataset(StoredRows(evaluations(), []), catalog)
    assert found.heads == ("score", "Care")
    assert dict(found.labelled[10].scores) == {"score": 0.25, "Care": 0.25}
    text = found.labelled[0].conversation.scenario
    card = catalog.collections["bike-shop"].scenarios["flat-tyre"].card
    assert text == f"{card.name}: {card.description}"


def test_whole_scenarios_are_held_out_where_there_are_enough(catalog: Catalog) -> None:
    names = [(slug, name) for slug, each in catalog.collections.items() for name in each.scenarios]
    rows = [row for slug, name in names for row in evaluations(8, collection=slug, scenario=name)]
    few = stored_dataset(StoredRows(rows, []), catalog)
    assert len(names) < 5
    assert few.grouped_by == "conversation"
    assert len(few.groups) == len(few.labelled)
    assert any("too few to hold one out" in note for note in few.notes)
    card = catalog.collections["bike-shop"].scenarios["flat-tyre"]
    shop = replace(catalog.collections["bike-shop"], scenarios={f"s{n}": card for n in range(5)})
    wide = replace(catalog, collections={"bike-shop": shop})
    many = [row for n in range(5) for row in evaluations(8, scenario=f"s{n}")]
    found = stored_dataset(StoredRows(many, []), wide)
    assert found.grouped_by == "scenario"
    assert found.groups == {f"bike-shop/s{n}" for n in range(5)}


def test_a_comparison_is_two_labels_and_a_pair(catalog: Catalog) -> None:
    won = a_comparison(**WHERE, winner="b", messages_a=said("What?"), messages_b=said("Let me look."))
    tied = a_comparison(**WHERE, winner="tie", messages_a=said("Aha"), messages_b=said("Oho"))
    found = stored_dataset(StoredRows(evaluations(), [won, tied]), catalog)
    assert len(found.labelled) == 44
    [pair] = found.preferred
    assert [turn.text for turn in pair.chosen.turns] == ["My tyre is flat.", "Let me look."]


def test_numbers_of_two_versions_do_not_mix(catalog: Catalog) -> None:
    old = evaluations(10, scoring_version="sv_old", messages=said("old"))
    new = evaluations(35, created_at=NOW + timedelta(hours=1))
    rows = StoredRows([*new, *old], [])
    assert len(stored_dataset(rows, catalog).labelled) == 35
    assert "10 stored rows of other versions" in stored_dataset(rows, catalog).notes[1]
    assert len(stored_dataset(rows, catalog, "sv_old").labelled) == 1
    with pytest.raises(InvalidRequest, match="no evaluations of scoring version sv_none"):
        stored_dataset(rows, catalog, "sv_none")


def test_only_rewards_made_as_the_scenario_says_are_taken(catalog: Catalog) -> None:
    odd = evaluations(5, reward_config={"skip_safety_gate": True}, messages=said("odd"))
    assert len(stored_dataset(StoredRows([*evaluations(), *odd], []), catalog).labelled) == 40


def test_what_is_stored_twice_counts_once(catalog: Catalog) -> None:
    again = evaluations(3, messages=said("answer 1"), source=EvaluationSource.BATCH, reward=0.9)
    assert len(stored_dataset(StoredRows([*evaluations(), *again], []), catalog).labelled) == 40


def test_rows_of_scenarios_that_are_gone_are_passed_over(catalog: Catalog) -> None:
    gone = evaluations(5, collection="closed-shop")
    assert len(stored_dataset(StoredRows([*evaluations(), *gone], []), catalog).labelled) == 40
    with pytest.raises(InvalidRequest, match="with its own scenarios"):
        stored_dataset(StoredRows(gone, []), catalog)


def test_a_dimension_that_never_varies_gets_no_head(catalog: Catalog) -> None:
    found = stored_dataset(StoredRows(evaluations(scores={"Care": 1.0}), []), catalog)
    assert found.heads == ("score",)
    assert any("no head for Care" in note for note in found.notes)


def test_the_agent_may_have_been_the_user(catalog: Catalog) -> None:
    messages = [{"role": "user", "content": "I am the agent"}, {"role": "assistant", "content": "I am not"}]
    found = stored_dataset(StoredRows(evaluations(31, messages=messages, agent_role="user"), []), catalog)
    assert next((turn.party, turn.text) for turn in found.labelled[0].conversation.turns) == ("agent", "I am the agent")


def test_an_empty_store_says_what_to_do(catalog: Catalog) -> None:
    with pytest.raises(InvalidRequest, match="play episodes and send them to /evaluate first"):
        stored_dataset(StoredRows([], []), catalog)
