"""What any agent asks: one background for all collections, one for a collection, and which scenarios it suits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from personas.case.compiled import CompiledCase
from scenarios.background import OF_COLLECTION, background_of_all
from scenarios.library import load_library
from scenarios.lint import load_collection
from tests.scenarios.conftest import NAME

COMMON = """\
background:
- id: ours
  asks: [Did the bell ring?, Is the bell all right?, And the bell?]
  says: [It rings.]
- id: reach_me
  asks: [Which number is yours?, May I have a number?, Where do I reach you?]
  says: [Any time.]
- id: tells_too_much
  asks: [Anything new?, What is new?, Is there news?]
  says: [I have never changed the brake pads in four years.]
- id: changes
  asks: [Is it hard?, Is that hard for you?, How hard is that?]
  says: [It is hard.]
  later: {after: [pads_age], says: [Not any more.]}
"""


@pytest.fixture
def folder(collections: Path) -> Path:
    """The folder of the template's collection."""
    return collections / NAME.partition("/")[0]


def case_of(folder: Path) -> CompiledCase:
    return load_library(folder.parent).vault.open(*NAME.split("/")).case


def own(folder: Path) -> Iterator[str]:
    yield from (entry.id for entry in case_of(folder).own_background)


def test_every_persona_answers_what_any_agent_asks(folder: Path) -> None:
    case = case_of(folder)
    common = {entry.id for entry in background_of_all()}
    assert common
    assert common <= set(case.background)
    assert not common & set(own(folder))


def test_a_collection_adds_what_suits_each_scenario(folder: Path) -> None:
    before = case_of(folder)
    (folder / OF_COLLECTION).write_text(COMMON)
    case = case_of(folder)
    assert set(case.background) - set(before.background) == {"ours", "changes"}
    assert "reach_me" in own(folder)
    assert case.background["reach_me"].says == before.background["reach_me"].says
    assert "changes/later" in case.asides


@pytest.mark.parametrize("where", ["after: [{}]", "later: {{after: [{}], says: [Not any more.]}}"])
def test_an_entry_is_not_said_where_a_case_lacks_what_it_waits_for(folder: Path, where: str) -> None:
    name = background_of_all()[0].id
    entry = f"- id: {name}\n  asks: [Is it new?, How new is it?, Is that new?]\n  says: [Brand new.]\n"
    (folder / OF_COLLECTION).write_text(f"background:\n{entry}  {where.format('pads_age')}\n")
    for ending in ("yaml", "rubric.yaml", "agents.yaml"):
        text = (folder / f"my-scenario.{ending}").read_text().replace("slug: my-scenario", "slug: second")
        (folder / f"second.{ending}").write_text(text.replace("pads_age", "age_of_pads"))
    library = load_library(folder.parent)
    first, second = (library.vault.open(folder.name, slug).case for slug in ("my-scenario", "second"))
    assert first.background[name].says == ("Brand new.",)
    if where.startswith("later"):
        assert f"{name}/later" in first.asides
        assert f"{name}/later" not in second.asides
    else:
        assert second.background[name].says == background_of_all()[0].says


def test_an_entry_that_waits_for_what_no_scenario_has_is_found(folder: Path) -> None:
    (folder / OF_COLLECTION).write_text(COMMON.replace("after: [pads_age]", "after: [pad_age]"))
    _, findings = load_collection(folder)
    assert any("no scenario has `pad_age`, which `changes` waits for" in str(each) for each in findings)


def test_a_collections_entry_replaces_the_one_for_all(folder: Path) -> None:
    name = background_of_all()[0].id
    (folder / OF_COLLECTION).write_text(COMMON.replace("id: ours", f"id: {name}"))
    assert case_of(folder).background[name].says == ("It rings.",)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("id: ours", "id: changes", "`changes` is used twice"), ("says: [It rings.]", "says: []", "at least 1")],
)
def test_a_broken_background_of_a_collection_is_named(folder: Path, old: str, new: str, told: str) -> None:
    (folder / OF_COLLECTION).write_text(COMMON.replace(old, new))
    loaded, findings = load_collection(folder)
    assert loaded is None
    assert any(told in str(each) and OF_COLLECTION in str(each) for each in findings)
