"""The server's own evaluations and comparisons as training data."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model.stored import (
    StoredRows,
    composed_scenarios,
    of_lab,
    of_the_only_lab,
    stored_dataset,
)
from reward_server.store.records import EvaluationSource
from scenarios.library import Catalog, Vault, load_library
from scenarios.schema import CompositeReward
from tests.store.builders import NOW, a_comparison, an_evaluation

COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"
LATER = NOW + timedelta(hours=1)
RUBRIC, OLD = "sv_0123456789ab", "sv_ba9876543210"
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
    rows = [row for slug, name in names for row in evaluations(20, collection=slug, scenario=name)]
    few = stored_dataset(StoredRows(rows, []), catalog)
    assert len(names) < 5
    assert few.grouped_by == "conversation"
    assert len(few.groups) == len(few.labelled)
    assert any("too few to hold whole scenarios out" in note for note in few.notes)
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
    old = evaluations(31, scoring_version=OLD)
    new = evaluations(35, created_at=NOW + timedelta(hours=1))
    rows = StoredRows([*new, *old], [])
    assert len(stored_dataset(rows, catalog).labelled) == 35
    assert "31 stored rows left out: of another scoring version" in stored_dataset(rows, catalog).notes[1]
    assert len(stored_dataset(rows, catalog, OLD).labelled) == 31
    with pytest.raises(InvalidRequest, match="no usable rows of scoring version sv_none"):
        stored_dataset(rows, catalog, "sv_none")


def test_rewards_of_the_rubric_alone_stay_whichever_model_is_active(catalog: Catalog) -> None:
    """Activating a model changes the end of the version, and no reward of the rubric."""
    before = evaluations(20, scoring_version=f"{RUBRIC}_11111111")
    after = [
        replace(row, messages=said(f"later {n}"))
        for n, row in enumerate(evaluations(20, created_at=LATER, scoring_version=f"{RUBRIC}_22222222"))
    ]
    never = [replace(row, messages=said(f"never {n}"), scoring_version=RUBRIC) for n, row in enumerate(after)]
    rows = StoredRows([*before, *after, *never], [])
    assert len(stored_dataset(rows, catalog).labelled) == 60
    assert not any("left out" in note for note in stored_dataset(rows, catalog).notes)
    assert len(stored_dataset(rows, catalog, RUBRIC).labelled) == 60
    whole = StoredRows([*rows.evaluations, *evaluations(40, scoring_version=f"{RUBRIC}_33333333")], [])
    assert len(stored_dataset(whole, catalog, f"{RUBRIC}_33333333").labelled) == 40
    with pytest.raises(InvalidRequest, match="20 usable rows of scoring version"):
        stored_dataset(rows, catalog, f"{RUBRIC}_11111111")


def test_a_reward_that_may_rest_on_the_model_is_left_out_unless_its_whole_version_is_named(catalog: Catalog) -> None:
    composed = frozenset({("front-desk", "lost-key")})
    with_model = {"collection": "front-desk", "scenario": "lost-key", "scoring_version": f"{RUBRIC}_22222222"}
    rows = StoredRows([*evaluations(), *evaluations(31, created_at=LATER, **with_model)], [])
    found = stored_dataset(rows, catalog, composed=composed)
    assert (len(found.labelled), found.notes[0]) == (40, f"scoring version {RUBRIC}")
    assert len(stored_dataset(rows, catalog, f"{RUBRIC}_22222222", composed).labelled) == 31
    alone = StoredRows(evaluations(31, **with_model), [])
    with pytest.raises(InvalidRequest, match=rf"--version takes one of these: {RUBRIC}_22222222 \(31\)"):
        stored_dataset(alone, catalog, composed=composed)


def test_what_a_composite_made_does_not_decide_which_version_is_newest(catalog: Catalog) -> None:
    odd = evaluations(1, created_at=LATER, scoring_version=OLD, reward_config={"composite": {"combine": "min"}})
    gone = evaluations(1, created_at=LATER, scoring_version=OLD, collection="closed-shop")
    own = evaluations(1, created_at=LATER, scoring_version=OLD, collection="front-desk", scenario="lost-key")
    rows = StoredRows([*evaluations(), *odd, *gone, *own], [])
    assert len(stored_dataset(rows, catalog, composed=frozenset({("front-desk", "lost-key")})).labelled) == 40


def test_too_little_names_the_versions_that_have_more(catalog: Catalog) -> None:
    won = a_comparison(**WHERE, scoring_version=OLD)
    old = [replace(row, scoring_version=f"{OLD}_11111111") for row in evaluations(35)]
    rows = StoredRows([*old, *evaluations(2, created_at=LATER)], [won])
    told = (
        rf"too little data: 2 usable rows of scoring version {RUBRIC} in scenarios of this server, at least 30 are "
        rf"needed: play .*examples/play_into_store\.py.* or name another --version: {OLD} \(36\)$"
    )
    with pytest.raises(InvalidRequest, match=told):
        stored_dataset(rows, catalog)


def test_scenarios_with_a_composite_of_their_own_are_known() -> None:
    vault = load_library(COLLECTIONS).vault
    sealed = {names: vault.open(*names) for names in vault.names()}
    own = CompositeReward(combine="min", parts=[{"judge": "rubric"}, {"judge": "reward_model"}])
    plain = CompositeReward(combine="min", parts=[{"judge": "rubric"}])
    for name, reward in ((("front-desk", "lost-key"), own), (("bike-shop", "flat-tyre"), plain)):
        secrets = sealed[name].secrets.model_copy(update={"reward": reward})
        sealed[name] = replace(sealed[name], secrets=secrets)
    assert composed_scenarios(Vault({names: (each,) for names, each in sealed.items()})) == {("front-desk", "lost-key")}


def test_a_lab_without_rows_is_told_who_has_some() -> None:
    mine = [an_evaluation(lab_id="acme"), an_evaluation(lab_id="acme", source=EvaluationSource.COMPARE)]
    rows = StoredRows(mine, [a_comparison(lab_id="acme"), a_comparison(lab_id="development")])
    assert of_lab(rows, "acme") == StoredRows(mine, rows.comparisons[:1])
    with pytest.raises(
        InvalidRequest,
        match=r"^lab nolab has no evaluations in the store; --lab takes one of these: acme \(2\), development \(1\)$",
    ):
        of_lab(rows, "nolab")
    assert of_lab(StoredRows([], []), "nolab") == StoredRows([], [])


def test_only_rewards_made_as_the_scenario_says_are_taken(catalog: Catalog) -> None:
    odd = evaluations(5, reward_config={"skip_safety_gate": True}, messages=said("odd"))
    assert len(stored_dataset(StoredRows([*evaluations(), *odd], []), catalog).labelled) == 40


def test_what_is_stored_twice_counts_once(catalog: Catalog) -> None:
    again = evaluations(3, messages=said("answer 1"), source=EvaluationSource.BATCH, reward=0.9)
    assert len(stored_dataset(StoredRows([*evaluations(), *again], []), catalog).labelled) == 40


def test_rows_of_scenarios_that_are_gone_are_passed_over(catalog: Catalog) -> None:
    gone = evaluations(5, collection="closed-shop")
    assert len(stored_dataset(StoredRows([*evaluations(), *gone], []), catalog).labelled) == 40
    with pytest.raises(
        InvalidRequest, match=r"none of the 5 stored rows .* in a scenario that is on this server: play"
    ):
        stored_dataset(StoredRows(gone, []), catalog)


def test_a_dimension_that_never_varies_gets_no_head(catalog: Catalog) -> None:
    found = stored_dataset(StoredRows(evaluations(scores={"Care": 1.0}), []), catalog)
    assert found.heads == ("score",)
    assert any("no head for Care" in note for note in found.notes)


def test_the_agent_may_have_been_the_user(catalog: Catalog) -> None:
    messages = [{"role": "user", "content": "I am the agent"}, {"role": "assistant", "content": "I am not"}]
    row = an_evaluation(**WHERE, messages=messages, agent_role="user")
    found = stored_dataset(StoredRows([row, *evaluations()], []), catalog)
    assert next((turn.party, turn.text) for turn in found.labelled[0].conversation.turns) == ("agent", "I am the agent")


def test_an_empty_store_says_what_to_do(catalog: Catalog) -> None:
    with pytest.raises(InvalidRequest, match="play episodes and send them to /evaluate first"):
        stored_dataset(StoredRows([], []), catalog)


def test_rows_of_several_labs_are_not_mixed_unawares() -> None:
    rows = StoredRows([an_evaluation(lab_id="acme")], [a_comparison(lab_id="rival")])
    with pytest.raises(InvalidRequest, match=r"--all-labs: acme \(1\), rival \(1\)"):
        of_the_only_lab(rows)
    alone = StoredRows([an_evaluation(lab_id="acme")], [])
    assert of_the_only_lab(alone) is alone
