"""A library has a public and a private half, and nothing private is in the public one."""

from __future__ import annotations

import dataclasses
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from scenarios.library import Catalog, costly_commitments, load_library, load_sound
from scenarios.lint import COLLECTIONS
from scenarios.template import begin
from scenarios.yamlfile import ScenarioFileError
from tests.scenarios.conftest import Change


def test_the_catalog_shows_cards_dimensions_and_personas(collections: Path) -> None:
    scenario = load_library(collections).catalog.find("my-collection", "my-scenario")
    assert scenario is not None
    assert scenario.card.name == "A noise from the bicycle"
    assert scenario.dimensions == ("D1_Diagnosis", "D2_Care", "D3_Resolution")
    assert scenario.personas == ("plainspoken", "guarded")


def test_the_catalog_knows_only_what_there_is(collections: Path) -> None:
    catalog = load_library(collections).catalog
    assert catalog.find("my-collection", "absent") is None
    assert catalog.find("absent", "my-scenario") is None


def test_the_vault_opens_what_the_catalog_lists_and_nothing_else(collections: Path) -> None:
    vault = load_library(collections).vault
    assert vault.names() == (("my-collection", "my-scenario"),)
    assert vault.open("my-collection", "my-scenario").secrets.persona.name == "Robin Hale"
    with pytest.raises(KeyError):
        vault.open("my-collection", "absent")


def everything_in(value: Any) -> str:
    """All text that can be reached from a public value."""
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return " ".join(everything_in(getattr(value, f.name)) for f in dataclasses.fields(value))
    if isinstance(value, dict):
        return " ".join(f"{everything_in(k)} {everything_in(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(everything_in, value))
    return str(value)


PRIVATE_PLACES = [
    (
        "- It only happens when I squeeze the front brake.",
        "- It only happens when I squeeze CANARY.",
    ),
    ("- The hub of the front wheel is cracked.", "- The CANARY of the front wheel is cracked."),
    ("about: Finds out that it is the front brake.", "about: CANARY brake."),
    ("id: found_trigger", "id: canary_trigger"),
    ("see you later.\n", "see you CANARY.\n"),
    ("name: Robin Hale", "name: CANARY Hale"),
    ("- When did it start?", "- When did the CANARY start?", "collection.yaml"),
    ("- Do you like jazz?", "- Do you like CANARY?", "collection.yaml"),
]


def test_a_canary_in_any_private_place_is_nowhere_public(collections: Path, change: Change) -> None:
    for place in PRIVATE_PLACES:
        change(*place)
    library = load_library(collections)
    shown = [everything_in(library.catalog), repr(library), str(library.catalog), repr(library.vault)]
    sealed = library.vault.open("my-collection", "my-scenario")
    shown += [repr(sealed), str(sealed.secrets), repr(sealed.case), repr(sealed.secrets.rubric.criteria[0])]
    assert "canary" not in " ".join(shown).lower()
    assert "canary" in json.dumps(sealed.secrets.model_dump(mode="json")).lower()


def test_the_catalog_holds_no_way_to_the_vault(collections: Path) -> None:
    catalog: Catalog = load_library(collections).catalog
    assert b"ScenarioSecrets" not in pickle.dumps(catalog)


def test_the_digest_follows_content_and_not_comments(collections: Path, change: Change) -> None:
    first = load_library(collections).digest
    assert load_library(collections).digest == first
    change("# A scenario:", "# A remark:")
    assert load_library(collections).digest == first
    change("weight: 0.5}", "weight: 0.50}")
    assert load_library(collections).digest == first
    change("points: 4", "points: 5")
    second = load_library(collections).digest
    assert second != first
    change("- Do you like jazz?", "- Do you like rock?", "collection.yaml")
    assert load_library(collections).digest not in (first, second)


def test_a_broken_file_stops_the_library_and_is_left_out_for_authors(collections: Path, change: Change) -> None:
    begin("my-collection/sound", collections)
    change("given: [pads_age]", "given: [nothing_such]")
    with pytest.raises(ScenarioFileError, match="nothing_such"):
        load_library(collections)
    library, findings = load_sound(collections)
    assert library.vault.names() == (("my-collection", "sound"),)
    assert len(findings) == 1


def test_parts_of_a_library_can_be_loaded(collections: Path) -> None:
    begin("my-collection/second", collections)
    begin("other/third", collections)
    names = load_library(collections, ["my-collection/second", "other"]).vault.names()
    assert names == (("my-collection", "second"), ("other", "third"))
    with pytest.raises(ScenarioFileError, match="no such scenario"):
        load_library(collections, ["other/absent"])
    with pytest.raises(ScenarioFileError, match="cannot be read"):
        load_library(collections, ["absent"])


def test_an_empty_folder_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(ScenarioFileError, match="no collections"):
        load_library(tmp_path)
    with pytest.raises(ScenarioFileError, match="no collections"):
        load_library(tmp_path / "absent")


def test_the_limit_of_a_refund_can_be_known() -> None:
    """A fact that its persona cannot know must not decide about a reward unless the agent can read it somewhere."""
    library = load_library(only=["customer-support/charged-twice"], turns=False)
    card = library.vault.open("customer-support", "charged-twice").card
    assert "for the last two billing periods" in f"{card.tools}"


def test_a_copy_of_the_packaged_scenarios_is_read_as_one_of_ones_own(tmp_path: Path) -> None:
    only = ["it-helpdesk/new-phone-no-codes"]
    shutil.copytree(COLLECTIONS / "it-helpdesk", tmp_path / "it-helpdesk")
    packaged, own = load_library(only=only), load_library(tmp_path, only)
    cases = [each.vault.open("it-helpdesk", "new-phone-no-codes").case for each in (packaged, own)]
    assert [case.learned for case in cases] == [True, False]
    assert packaged.digest != own.digest
    assert {each.id for each in cases[0].commitments if each.costs} == {
        each.id for each in cases[1].commitments if each.costs
    }


def test_what_costs_is_known_to_the_case(collections: Path) -> None:
    sealed = load_library(collections).vault.open("my-collection", "my-scenario")
    costly = costly_commitments(sealed.secrets.rubric.criteria)
    assert {each.id for each in sealed.case.commitments if each.costs} == costly != frozenset()
    assert costly < {each.id for each in sealed.case.commitments}
