"""Variants of a scenario: written out whole, told apart by their first line, drawn by the seed, wrong at their line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from scenarios.library import Library, SealedScenario, load_library
from scenarios.lint import COLLECTIONS, lint
from scenarios.variants import read_variants

WHERE = ("my-collection", "my-scenario")
VARIANTS = """base: train
variants:
  - id: bent_disc
    split: eval
    about: The disc is bent, so new pads would not help.
    words: {Robin: Alex, four years: two years}
    openings: ["Hello, my bike scrapes at every turn of the wheel.", "Hi, something scrapes in my wheel."]
    drop: [fair_price]
    facts:
      - id: noise
        says: ["My bike scrapes at every turn of the wheel.", "Something scrapes in my wheel."]
      - id: fell_over
        says: ["It fell over in the shed and the wheel took the knock.", "It tipped over onto the front wheel."]
        asks: ["Did it fall over?", "Has the wheel been knocked?", "Was there an accident with it?"]
    criteria:
      - {id: insulted, cap: 0.1}
    oracle:
      keep: 2
      then: [{say: Did it fall over?}]
"""


def written(root: Path, text: str = VARIANTS, *changes: tuple[str, str]) -> Path:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    (root / "my-collection" / "my-scenario.variants.yaml").write_text(text)
    return root


def without_drop(root: Path, *changes: tuple[str, str]) -> Path:
    return written(root, VARIANTS, ("    drop: [fair_price]\n", ""), *changes)


def both(library: Library) -> tuple[SealedScenario, SealedScenario]:
    base, other = library.vault.variants(*WHERE)
    return base, other


def test_a_variant_is_the_scenario_with_what_it_says(collections: Path) -> None:
    base, other = both(load_library(without_drop(collections)))
    assert (base.variant, base.split, other.variant, other.split) == ("base", "train", "bent_disc", "eval")
    assert other.card == base.card
    assert (base.secrets.persona.name, other.secrets.persona.name) == ("Robin Hale", "Alex Hale")
    facts = {fact.id: fact for fact in other.secrets.persona.facts}
    assert "two years" in facts["pads_age"].says[0]
    assert facts["pads_age"].asks == base.secrets.persona.facts[3].asks
    assert facts["fell_over"].says[0].startswith("It fell over")
    assert facts["noise"].label == "what brings me here"
    caps = {c.id: c.cap for c in other.secrets.rubric.criteria}
    assert caps["insulted"] == 0.1
    assert [step.say for step in other.secrets.exam.oracle][2:] == ["Did it fall over?"]


def test_words_are_replaced_where_a_sentence_begins_with_them_too(collections: Path) -> None:
    without_drop(collections, ("four years: two years", "my bike: our tandem"))
    openings = "My bike makes a noise."
    (change,) = read_variants(collections / "my-collection" / "my-scenario.yaml")[1]  # type: ignore[index]
    assert change.reworded(openings) == "Our tandem makes a noise."
    assert change.reworded("It is my bike, not a My bike.") == "It is our tandem, not a Our tandem."


def test_without_the_file_nothing_is_different(collections: Path) -> None:
    before = load_library(collections)
    assert before.vault.variants(*WHERE) == (before.vault.open(*WHERE),)
    assert before.catalog.find(*WHERE).splits == ()  # type: ignore[union-attr]
    assert load_library(without_drop(collections)).digest != before.digest


def test_a_seed_draws_a_variant_always_the_same_and_of_the_split_asked_for(collections: Path) -> None:
    library = load_library(without_drop(collections))
    drawn = Counter(library.vault.drawn(*WHERE, seed).variant for seed in range(400))
    assert 140 < drawn["base"] < 260
    assert drawn["base"] + drawn["bent_disc"] == 400
    assert [library.vault.drawn(*WHERE, seed).variant for seed in (1, 2, 3, 2**40)] == [
        "bent_disc", "base", "base", "base",
    ]  # fmt: skip
    for split, name in (("train", "base"), ("eval", "bent_disc")):
        assert {library.vault.drawn(*WHERE, seed, split).variant for seed in range(40)} == {name}
    assert library.catalog.find(*WHERE).splits == ("eval", "train")  # type: ignore[union-attr]


def test_a_conversation_tells_its_variant(collections: Path) -> None:
    library = load_library(without_drop(collections))
    for each in both(library):
        for opening in each.case.openings:
            assert library.vault.heard(*WHERE, opening) is each
    told = ["It fell over in the shed and the wheel took the knock."]
    assert library.vault.heard(*WHERE, "", told).variant == "bent_disc"
    assert library.vault.heard(*WHERE, "", ["Hm."]).variant == "base"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("words: {Robin:", "words: {Robbin:", "the scenario does not have these words"),
        ("- id: fell_over", "- id: fell_over\n        sayz: [x]", "in the variant `bent_disc`: unknown key `sayz`"),
        ("{id: insulted, cap: 0.1}", "{id: insolted, cap: 0.1}", "a variant has the criteria of its scenario"),
        ("{id: insulted, cap: 0.1}", "{id: insulted, points: -1}", "has the family, dimension and points"),
        ("split: eval", "split: test", "must be"),
        ("about: The disc", "persona: {temperaments: [anxious]}\n    about: The disc", "cannot change `temperaments`"),
        (
            '["Hello, my bike scrapes at every turn of the wheel.", "Hi, something scrapes in my wheel."]',
            '["Hi, my bike makes a dreadful noise and I need it looked at.", "Hi, something scrapes in my wheel."]',
            "begins as `base` does",
        ),
        ("    facts:\n", "    drop: [padz_age]\n    facts:\n", "there is no `padz_age` to leave out"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(collections: Path, old: str, new: str, told: str) -> None:
    without_drop(collections, (old, new))
    findings = lint([collections])[1]
    assert any(told in finding.message for finding in findings), findings
    assert {Path(finding.file).name for finding in findings} == {"my-scenario.variants.yaml"}
    assert all(finding.line > 1 for finding in findings)


def test_a_fact_that_the_rubric_names_cannot_be_left_out(collections: Path) -> None:
    without_drop(collections, ("    facts:\n", "    drop: [pads_age]\n    facts:\n"))
    assert all("in the variant `bent_disc`" in finding.message for finding in lint([collections])[1])
    assert lint([collections])[1]


@pytest.mark.slow
def test_packaged_variants_are_at_least_four_of_both_splits() -> None:
    vault = load_library(COLLECTIONS, turns=False).vault
    for name in vault.names():
        variants = vault.variants(*name)
        assert len(variants) >= 4, name
        assert {each.split for each in variants} == {"train", "eval"}, name
