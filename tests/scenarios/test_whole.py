"""What an author writes once reads as if written out, and what cannot be put together is named with its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scenarios.background import load_background
from scenarios.library import Library, load_library, natural_agents
from scenarios.lint import COLLECTIONS, is_scenario, lint
from tests.scenarios.conftest import NAME, Change, in_one_file

MAX_LINES = 330
INSULTED = """  - id: insulted
    family: failure_metrics
    dimension: D2_Care
    points: 0                    # a cap alone leaves the rest of the reward as it is
    cap: 0.2
    about: Is rude to the customer.
    check: {conduct: {act: rude}}
"""
SHARED = """criteria:
  - {id: insulted, family: failure_metrics, dimension: D3_Resolution, points: 0, cap: 0.2,
     about: Is rude to the customer., check: {conduct: {act: rude}}}
"""
NEED = "after: [when_braking, pads_age]"


@pytest.fixture
def share(collections: Path, change: Change) -> Callable[[str, str], None]:
    """Puts criteria into the collection, and another criterion in place of the scenario's `insulted`."""

    def apply(shared: str, own: str) -> None:
        change("\nforeign:\n", f"\n{shared}\nforeign:\n", "collection.yaml")
        change(INSULTED, own)

    return apply


def secrets(library: Library) -> dict[str, Any]:
    sealed = library.vault.open(*NAME.split("/"))
    return sealed.secrets.model_dump(mode="json", exclude={"fact_groups"})


def messages(root: Path) -> list[str]:
    return [str(finding) for finding in lint([root])[1]]


def line_of(path: Path, text: str) -> int:
    return next(i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line)


# --- files ----------------------------------------------------------------------------------------


def test_a_scenario_in_one_file_is_the_same_as_in_several(collections: Path) -> None:
    several = load_library(collections)
    agents_of_several = natural_agents(several, collections)
    path = collections / f"{NAME}.yaml"
    text = in_one_file().replace("  fact_groups:\n    about_the_brake: [when_braking, pads_age]\n", "")
    path.write_text(text.replace("[about_the_brake]", "[[when_braking, pads_age]]"))
    path.with_suffix(".rubric.yaml").unlink()
    agents = path.with_suffix(".agents.yaml")
    agents.write_text(agents.read_text().partition("\n\n")[2])
    one = load_library(collections)
    assert secrets(one) == secrets(several)
    assert one.digest == several.digest
    assert natural_agents(one, collections) == agents_of_several


def test_a_finding_names_the_file_of_its_part_and_the_place_in_it(collections: Path, change: Change) -> None:
    path = change("points: 4\n", "points: 40\n")
    (found,) = messages(collections)
    assert f"my-scenario.rubric.yaml:{line_of(path, 'points: 40')}: `criteria[0].points` must be at most 20" in found


def test_a_step_of_the_oracle_is_named_in_the_file_of_the_agents(collections: Path, change: Change) -> None:
    old = "  - say: How old are the brake pads?\n"
    path = change(old, f"{old}    tools: [{{name: hammer, input: {{}}}}]\n")
    (found,) = messages(collections)
    assert f"my-scenario.agents.yaml:{line_of(path, 'hammer')}: the call names no tool" in found


@pytest.mark.parametrize("ending", ["rubric", "agents"])
def test_a_missing_rubric_or_oracle_comes_with_the_file_to_write(collections: Path, ending: str) -> None:
    (collections / f"{NAME}.{ending}.yaml").unlink()
    (found,) = messages(collections)
    missing = {"rubric": "rubric", "agents": "oracle"}[ending]
    assert found.endswith(f"there is no {missing}: write it to my-scenario.{ending}.yaml")


@pytest.mark.parametrize(("key", "other"), [("rubric", "rubric"), ("exam", "agents")])
def test_a_part_that_stands_in_two_files_is_refused(collections: Path, key: str, other: str) -> None:
    one = in_one_file()
    rubric, exam = one.index("  rubric:\n"), one.index("  exam:\n")
    text = one[:exam] if key == "rubric" else one[:rubric] + one[exam:]
    path = collections / f"{NAME}.yaml"
    path.write_text(text)
    (found,) = messages(collections)
    assert f"my-scenario.yaml:{line_of(path, f'  {key}:')}: my-scenario.{other}.yaml has" in found
    assert found.endswith("too: keep one of the two")


def test_a_rubric_that_is_no_mapping_is_refused(collections: Path) -> None:
    (collections / f"{NAME}.rubric.yaml").write_text("- one\n")
    (found,) = messages(collections)
    assert "my-scenario.rubric.yaml:1: the file must be a mapping" in found


# --- criteria of a collection ---------------------------------------------------------------------


def test_a_criterion_takes_over_what_it_leaves_out(collections: Path, share: Callable[[str, str], None]) -> None:
    before = load_library(collections)
    share(SHARED, "  - {id: insulted, dimension: D2_Care}\n")
    after = load_library(collections)
    assert secrets(after) == secrets(before)
    assert after.digest == before.digest


def test_a_criterion_that_no_scenario_names_scores_nothing(
    collections: Path, share: Callable[[str, str], None]
) -> None:
    before = load_library(collections)
    share(SHARED.replace("id: insulted", "id: shouted"), INSULTED)
    after = load_library(collections)
    assert secrets(after) == secrets(before)
    assert after.digest == before.digest


def test_a_criterion_that_the_collection_lacks_is_named_with_the_one_that_was_meant(
    collections: Path, share: Callable[[str, str], None]
) -> None:
    share(SHARED, "  - {id: insultd, dimension: D2_Care}\n")
    (found,) = messages(collections)
    line = line_of(collections / f"{NAME}.rubric.yaml", "insultd")
    assert (
        f"my-scenario.rubric.yaml:{line}: the collection has no criterion `insultd`: did you mean `insulted`?" in found
    )


def test_a_criterion_that_leaves_out_what_the_collection_lacks_too_is_refused(
    collections: Path, share: Callable[[str, str], None]
) -> None:
    share(SHARED.replace("points: 0, ", ""), "  - {id: insulted, dimension: D2_Care}\n")
    (found,) = messages(collections)
    assert ".points` is missing: add it" in found
    assert f"my-scenario.rubric.yaml:{line_of(collections / f'{NAME}.rubric.yaml', 'id: insulted')}: " in found


def test_a_dimension_that_is_taken_over_must_be_one_of_the_scenario(
    collections: Path, share: Callable[[str, str], None]
) -> None:
    share(SHARED.replace("D3_Resolution", "D3_Other"), "  - {id: insulted}\n")
    (found,) = messages(collections)
    assert f":{line_of(collections / f'{NAME}.rubric.yaml', 'id: insulted')}: no dimension `D3_Other`" in found


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("family: failure_metrics", "family: failures", "`criteria[0].family` must be one of"),
        ("id: insulted, ", "", "`criteria[0].id` is missing"),
        ("act: rude", "act: loud", "must be"),
        ("criteria:\n", "criteria:\n  - {id: insulted, points: 1}\n", "`insulted` is used twice among criteria"),
    ],
)
def test_a_broken_criterion_of_a_collection_is_found_there(
    collections: Path, share: Callable[[str, str], None], old: str, new: str, word: str
) -> None:
    share(SHARED.replace(old, new), INSULTED)
    assert any("collection.yaml:" in found and word in found for found in messages(collections))


# --- groups of facts ------------------------------------------------------------------------------


def test_a_group_stands_for_any_one_of_its_facts_wherever_facts_are_needed(collections: Path, change: Change) -> None:
    change("requires: [[when_braking, since_rain]]", "requires: [about_the_rain]")
    change("    about_the_brake:", "    about_the_rain: [when_braking, since_rain]\n    about_the_brake:")
    change(NEED, "before: [about_the_rain, pads_age]")
    change("after: [pads_age]", "after: [about_the_rain]", "my-scenario.background.yaml")
    library = load_library(collections)
    found = secrets(library)
    (gate,) = [fact["gate"] for fact in found["persona"]["facts"] if fact["id"] == "pads_age"]
    checks = {criterion["id"]: criterion["check"] for criterion in found["rubric"]["criteria"]}
    rain = ["when_braking", "since_rain"]
    assert gate["requires"] == [rain]
    assert checks["booked_knowingly"]["committed"]["before"] == [rain, "pads_age"]
    sealed = library.vault.open(*NAME.split("/"))
    background = load_background(collections / f"{NAME}.background.yaml", sealed.secrets, sealed.topics)
    assert [entry.after for entry in background if entry.id == "what_pads_cost"] == [(tuple(rain),)]


def test_a_group_beside_a_fact_stands_for_any_one_of_them_all(collections: Path, change: Change) -> None:
    change(NEED, "after: [[about_the_brake, since_rain]]")
    criteria = secrets(load_library(collections))["rubric"]["criteria"]
    (committed,) = [each["check"]["committed"] for each in criteria if each["id"] == "booked_knowingly"]
    assert committed["after"] == [["when_braking", "pads_age", "since_rain"]]


def test_a_name_in_the_options_of_a_plug_in_stays_as_it_is(collections: Path, change: Change) -> None:
    change("check: {conduct: {act: rude}}", "check: {plugin: {name: own, options: {after: [about_the_brake]}}}")
    criterion = secrets(load_library(collections))["rubric"]["criteria"][-1]
    assert criterion["check"]["plugin"]["options"] == {"after": ["about_the_brake"]}


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (NEED, "after: [about_the_brakes]", "`about_the_brakes`: did you mean `about_the_brake`?"),
        ("given: [about_the_brake]", "given: [about_brakes]", "`about_brakes`: did you mean `about_the_brake`?"),
        ("about_the_brake: [when_braking, pads_age]", "about_the_brake: [when_braking, pad_age]", "denial `pad_age`"),
        ("about_the_brake: [when_braking, pads_age]", "about_the_brake: [when_braking]", "at least 2"),
        ("about_the_brake: [when_braking, pads_age]", "about_the_brake: when_braking", "must be a list"),
        ("    about_the_brake:", "    no_oil: [noise, pads_age]\n    about_the_brake:", "`no_oil` is also used"),
        ("facts: [when_braking]", "facts: [about_the_brake]", "no fact or denial `about_the_brake`"),
    ],
)  # fmt: skip
def test_a_wrong_name_or_group_is_found(collections: Path, change: Change, old: str, new: str, word: str) -> None:
    change(old, new)
    assert any(word in found for found in messages(collections)), messages(collections)


# --- the packaged scenarios -----------------------------------------------------------------------


def test_packaged_scenario_files_and_rubrics_are_short_enough_to_be_read() -> None:
    paths = [path for path in sorted(COLLECTIONS.glob("*/*.yaml")) if is_scenario(path)]
    assert len(paths) == 30
    files = [*paths, *(path.with_suffix(".rubric.yaml") for path in paths)]
    assert [path.name for path in files if len(path.read_text().splitlines()) > MAX_LINES] == []
