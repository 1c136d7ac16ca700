"""`begin` writes a scenario that passes, into a new or an existing collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.lint import lint
from scenarios.template import begin


def test_a_new_scenario_brings_its_collection_and_passes(tmp_path: Path) -> None:
    written = begin("bike-shop/squeaky-brake", tmp_path)
    assert [path.name for path in written] == [
        "collection.yaml",
        "squeaky-brake.yaml",
        "squeaky-brake.rubric.yaml",
        "squeaky-brake.agents.yaml",
        "squeaky-brake.background.yaml",
        "squeaky-brake.turns.jsonl",
    ]
    assert '  name: "Bike shop" ' in written[0].read_text()
    assert lint([tmp_path]) == (1, [])


def test_the_scenario_its_rubric_and_its_oracle_are_enough_to_pass(tmp_path: Path) -> None:
    agents, background, turns = begin("bike-shop/squeaky-brake", tmp_path)[3:]
    background.unlink()
    turns.unlink()
    agents.write_text(agents.read_text().partition("excellent:")[0])
    assert lint([tmp_path]) == (1, [])


def test_a_second_scenario_leaves_the_collection_as_it_is(tmp_path: Path) -> None:
    begin("bike-shop/squeaky-brake", tmp_path)
    card = tmp_path / "bike-shop" / "collection.yaml"
    before = card.read_text()
    assert [path.name for path in begin("bike-shop/flat-tyre", tmp_path)] == [
        "flat-tyre.yaml",
        "flat-tyre.rubric.yaml",
        "flat-tyre.agents.yaml",
        "flat-tyre.background.yaml",
        "flat-tyre.turns.jsonl",
    ]
    assert card.read_text() == before
    assert lint([tmp_path]) == (2, [])


def test_a_collection_without_the_shared_topic_gets_it_written_out(tmp_path: Path) -> None:
    begin("bike-shop/squeaky-brake", tmp_path)
    (tmp_path / "bike-shop" / "squeaky-brake.yaml").unlink()
    card = tmp_path / "bike-shop" / "collection.yaml"
    card.write_text(card.read_text().replace("  since_when:", "  other_topic:"))
    begin("bike-shop/flat-tyre", tmp_path)
    assert "topic: since_when" not in (tmp_path / "bike-shop" / "flat-tyre.yaml").read_text()
    assert lint([tmp_path]) == (1, [])


def test_its_head_names_the_command_that_checks_it(tmp_path: Path) -> None:
    root = tmp_path / "my collections"
    head = begin("bike-shop/squeaky-brake", root)[1].read_text().splitlines()[:6]
    assert f"#   ./labs scenarios check bike-shop/squeaky-brake --dir '{root}'" in head


def test_an_existing_scenario_is_never_overwritten(tmp_path: Path) -> None:
    path = begin("bike-shop/squeaky-brake", tmp_path)[1]
    path.write_text("mine")
    with pytest.raises(ValueError, match="exists already"):
        begin("bike-shop/squeaky-brake", tmp_path)
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["no-slash", "A/b", "a/B", "a/b/c", "../x/y", "a/", "/b", "a_b/c", f"a/{'b' * 70}"])
def test_names_that_are_no_slugs_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="COLLECTION/SLUG"):
        begin(name, tmp_path)
    assert list(tmp_path.iterdir()) == []
