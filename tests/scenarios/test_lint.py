"""Each rule of a good scenario is found broken, at the right line, without quoting private text."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.library import load_library
from scenarios.lint import lint, main
from scenarios.yamlfile import Severity
from tests.scenarios.conftest import Change


def messages(root: Path) -> list[str]:
    _, findings = lint([root])
    return [str(finding) for finding in findings]


def test_the_template_passes(collections: Path) -> None:
    assert lint([collections]) == (1, [])


BROKEN = [
    ("weight: 0.5}", "weight: 0.4}", "sum to 1"),
    ("family: decision_match", "family: rubrics", "no criterion of decision_match"),
    (
        "dimension: D3_Resolution\n    points: 3",
        "dimension: D4_Other\n    points: 3",
        "no dimension `D4_Other`",
    ),
    ("    given: [about_the_brake]", "", "`kind_words` pays for `conduct` alone"),
    ("given: [pads_age]", "given: [noise]", "tier `volunteered`"),
    ("given: [pads_age]", "given: [nothing_such]", "no fact or denial `nothing_such`"),
    ("given: [about_the_brake]", "given: [[when_braking, nothing_such]]", "no fact or denial `nothing_such`"),
    ("facts: [when_braking]}}", "facts: [cracked_hub]}}", "tier `unknown`"),
    ("any_of: [offer_inspection]", "any_of: [offer_nothing]", "no commitment `offer_nothing`"),
    ("after: [when_braking, pads_age]", "after: [when_braking, cracked_hub]", "no sayable fact"),
    ("id: found_causes", "id: found_trigger", "used twice among criteria"),
    ("name: D2_Care", "name: D1_Diagnosis", "used twice among dimensions"),
    ("floor: 0.4", "floor: 0.7", "`floor` must be below `full`"),
    ("          - Worn brake pads make that noise, so we replace them.\n", "", "at least two different"),
    ("- [offer_inspection]     #", "- [offer_rest]     #", "offer_rest"),
    ("requires: [[when_braking, since_rain]]", "requires: [pads_age]", "never open"),
    ("id: since_rain", "id: pads_age", "used twice"),
    ("topic: since_when", "topic: since_never", "no topic"),
    ("- say: How old are the brake pads?", "- say: Did any oil or spray get onto the brake disc?", "same line twice"),
    ("max_turns: 16", "max_turns: 5", "do not fit into 5 turns"),
    ("temperaments: [plainspoken", "temperaments: [stormy", "stormy"),
    ("slug: my-scenario", "slug: my-other", "name of the file"),
    (
        "A customer comes in about a noise.",
        "I have never changed the brake pads in four years.",
        "public half contains",
    ),
]


@pytest.mark.parametrize(("old", "new", "word"), BROKEN, ids=[word for _, _, word in BROKEN])
def test_a_broken_rule_is_found(collections: Path, change: Change, old: str, new: str, word: str) -> None:
    change(old, new)
    assert any(word in message for message in messages(collections))


def test_a_warning_is_said_and_refuses_nothing(
    collections: Path, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    for points, changed in (("3", "20"), ("6", "1"), ("5", "1")):
        change(f"    points: {points}\n", f"    points: {changed}\n")
    passed, [finding] = lint([collections])
    assert passed == 1
    assert finding.severity is Severity.WARNING
    assert "warning: `" in str(finding)
    assert "of the points: split it" in finding.message
    assert main([str(collections)]) == 0
    assert "1 scenario passed, 1 finding\n" in capsys.readouterr().out
    assert load_library(collections).warnings == (finding,)


def test_a_finding_stands_at_its_line(collections: Path, change: Change) -> None:
    path = change("given: [pads_age]", "given: [nothing_such]")
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if "nothing_such" in text)
    assert f"my-scenario.rubric.yaml:{line}: " in messages(collections)[0]


def test_a_case_problem_stands_at_the_line_of_the_persona_part(collections: Path, change: Change) -> None:
    path = change("topic: since_when", "topic: since_never")
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if "topic: since_never" in text)
    assert any(f"my-scenario.yaml:{line}: " in message for message in messages(collections))


def test_findings_never_quote_what_the_persona_says(collections: Path, change: Change) -> None:
    change("It only happens when I squeeze the front brake.", "My CANARY bike makes a dreadful noise.")
    change("tier: rapport", "tier: asked")
    change("points: 4", "points: CANARY")
    found = messages(collections)
    assert found
    assert "CANARY" not in "\n".join(found)


def test_judged_points_may_not_carry_a_dimension(collections: Path, change: Change) -> None:
    change("check: {elicited: {facts: [fell_off]}}", "given: [fell_off]\n    check: {judge: {question: Was it kind?}}")
    assert any("need an LLM judge" in message for message in messages(collections))


FALLBACKS = [
    ("[{unsure: [0.2, 0.8], check: {judge: {question: Was it explained?}}}]", None),
    ("[{unsure: [0.0, 0.8], check: {judge: {question: Was it explained?}}}]", "values of 0 and 1 are sure"),
    ("[{unsure: [0.2, 1.0], check: {judge: {question: Was it explained?}}}]", "values of 0 and 1 are sure"),
    ("[{unsure: [0.8, 0.2], check: {judge: {question: Was it explained?}}}]", "0 <= low <= high <= 1"),
    ("[{unsure: [0.2, 0.8], check: {judge: {question: Was it?}, length: {max_words: 9}}}]", "exactly one kind"),
    ("[{unsure: [0.2, 0.8], check: {similar: {exemplars: [a, b]}}}]", "same kind of judge twice"),
    ("[{unsure: [0.2, 0.8], check: {elicited: {facts: [nothing_such]}}}]", "no fact or denial `nothing_such`"),
    ("[{unsure: [0.2, 0.8], check: {plugin: {name: Not A Name}}}]", "must match"),
    (
        "[{unsure: [0.2, 0.8], check: {judge: {question: Was it?}}}, {unsure: [0.2, 0.8], check: {length: {}}}]",
        "`judge` comes last",
    ),
]


@pytest.mark.parametrize(("fallback", "word"), FALLBACKS, ids=[str(word) for _, word in FALLBACKS])
def test_fallbacks_are_linted_as_checks_are(collections: Path, change: Change, fallback: str, word: str | None) -> None:
    change("        floor: 0.4\n        full: 0.6\n", f"        floor: 0.4\n    fallback: {fallback}\n")
    found = messages(collections)
    assert found == [] if word is None else any(word in message for message in found), found


def test_a_fallback_that_is_no_fact_pays_only_beside_facts(collections: Path, change: Change) -> None:
    change(
        "check: {elicited: {facts: [fell_off]}}",
        "check: {elicited: {facts: [fell_off]}}\n    fallback: [{unsure: [0.2, 0.8], check: {length: {}}}]",
    )
    assert any("pays for `length` alone" in message for message in messages(collections))


REWARDS = [
    ("{combine: weighted_sum, parts: [{judge: rubric}, {judge: reward_model, weight: 0.5}]}", None),
    ("{combine: gated, parts: [{judge: rubric, at_least: 0.5}, {judge: reward_model}]}", None),
    ("{combine: gated, parts: [{judge: rubric}, {judge: reward_model}]}", "`at_least` belongs to"),
    ("{combine: gated, parts: [{judge: rubric, at_least: 0.5}]}", "a gate and at least one further part"),
    ("{combine: min, parts: [{judge: rubric}, {judge: rubric}]}", "may be named once"),
    ("{combine: product, parts: [{judge: rubric, weight: 0}]}", "weight must be greater than 0"),
    ("{combine: product, parts: [{judge: rubric, weight: .inf}]}", "weight"),
    ("{combine: product, parts: []}", "at least 1"),
]


@pytest.mark.parametrize(("reward", "word"), REWARDS, ids=[str(i) for i in range(len(REWARDS))])
def test_a_composite_reward_is_checked_when_it_is_read(
    collections: Path, change: Change, reward: str, word: str | None
) -> None:
    change("\nprivate:\n", f"\nprivate:\n  reward: {reward}\n")
    found = messages(collections)
    assert found == [] if word is None else any(word in message for message in found), found


TOOLS = """tools:
    - id: ticket
      type: artifact
      name: File a ticket
      mode: json_schema
      json_schema: {type: object, properties: {part: {type: string}}, required: [part], additionalProperties: false}
    - id: choice
      type: decision
      name: Choose
      mode: options
      options: [repair, refuse]"""


def with_tools(change: Change, call: str) -> None:
    change("tools: []", TOOLS)
    step = "- say: I would like to take the bike in and inspect the front brake today."
    change(step, f"{step}\n    tools: [{call}]")


@pytest.mark.parametrize(
    "call",
    [
        "{name: ticket, input: {part: pads}}",
        "{name: choice, input: {value: repair}}",
        "{name: Choose, input: {value: refuse}}",
    ],
)
def test_calls_that_fit_are_accepted(collections: Path, change: Change, call: str) -> None:
    with_tools(change, call)
    assert messages(collections) == []


@pytest.mark.parametrize("text", ["'Which one, in a word'", "Which one", "Which one, default: null"])
def test_what_a_tool_says_of_its_input_may_have_commas_in_quotes(collections: Path, change: Change, text: str) -> None:
    change("tools: []", TOOLS)
    change("{part: {type: string}}", f"{{part: {{type: string, description: {text}}}}}")
    assert messages(collections) == []


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ("{name: ticket, input: {}}", "does not fit its schema"),
        ("{name: ticket, input: {part: 7}}", "does not fit its schema at `part`"),
        ("{name: choice, input: {value: sell}}", "one of its options"),
        ("{name: hammer, input: {}}", "names no tool"),
        ("{tool: ticket}", "correct its keys"),
        ("{name: ticket, input: pads}", "must be a mapping"),
    ],
)
def test_calls_that_do_not_fit_are_refused(collections: Path, change: Change, call: str, word: str) -> None:
    with_tools(change, call)
    assert any(word in message for message in messages(collections))


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("{part: {type: string}}", "{part: {type: words}}", "not a valid JSON Schema"),
        ("{part: {type: string}}", "{part: {$ref: 'http://127.0.0.1/x'}}", "same schema"),
        ("{part: {type: string}}", "{part: {type: string, pattern: '(a+)+b'}}", "repeat"),
        ("{part: {type: string}}", "{part: {type: string, description: Which one, in a word}}", "there is no value"),
        ("type: object, ", "", "an object"),
        ("id: choice", "id: wave_off", "also used by the persona"),
        ("id: choice", "id: ticket", "twice among tools"),
    ],
)
def test_tools_that_cannot_work_are_refused(collections: Path, change: Change, old: str, new: str, word: str) -> None:
    change("tools: []", TOOLS)
    change(old, new)
    assert any(word in message for message in messages(collections))


def test_a_final_tool_must_be_a_goal(collections: Path, change: Change) -> None:
    change("tools: []", TOOLS)
    change("\nprivate:\n", "\nprivate:\n  tools:\n    - {id: ticket, final: true}\n")
    assert any("name it in `ending.goals`" in message for message in messages(collections))
    change("- [offer_inspection]     #", "- [offer_inspection, ticket]     #")
    assert messages(collections) == []


def test_a_tool_criterion_must_fit_the_tool(collections: Path, change: Change) -> None:
    change("tools: []", TOOLS)
    change("check: {committed: {any_of: [offer_inspection], after: [when_braking, pads_age]}}",
           "check: {tool: {tool: choice, value: [sell], contains: {colour: ['red']}}}")  # fmt: skip
    found = "\n".join(messages(collections))
    assert "not among the options" in found
    assert "no input field `colour`" in found


def test_words_of_a_tool_input_must_be_words(collections: Path, change: Change) -> None:
    change("tools: []", TOOLS)
    change("check: {committed: {any_of: [offer_inspection], after: [when_braking, pads_age]}}",
           "check: {tool: {tool: ticket, contains: {part: ['?!']}}}")  # fmt: skip
    assert any("`part` names no word" in message for message in messages(collections))


def test_files_beside_a_scenario_are_linted_with_it(collections: Path, change: Change) -> None:
    change('"asks": ["pads_age"]', '"asks": ["pad_age"]', "my-scenario.turns.jsonl")
    change("  - say: Hi. When does it make the noise?", "  - said: Hi.", "my-scenario.agents.yaml")
    found = "\n".join(messages(collections))
    assert "turns.jsonl:7: the case has no `pad_age`: correct the label" in found
    assert "agents.yaml:" in found
    change('"kind": "specific"}', '"kind": "odd"}', "my-scenario.turns.jsonl")
    assert "line 1: unknown kind `odd`" in "\n".join(messages(collections))


def test_labels_of_the_background_name_its_entries(collections: Path) -> None:
    turns = collections / "my-collection" / "my-scenario.turns.jsonl"
    line = '{{"turn": "Does Friday suit you?", "asks": ["{}"], "commits": [], "kind": "background"}}\n'
    turns.write_text(turns.read_text() + line.format("collect_when"))
    assert messages(collections) == []
    turns.write_text(turns.read_text() + line.format("pads_age"))
    (found,) = messages(collections)
    assert "the case has no `pads_age`: correct the label" in found


def test_labelled_turns_of_another_scenario_are_one_finding(collections: Path) -> None:
    turns = collections / "my-collection" / "my-scenario.turns.jsonl"
    turns.write_text(
        '{"turn": "Which room is it?", "asks": ["room"], "commits": [], "kind": "specific"}\n'
        '{"turn": "You can move today.", "asks": [], "commits": ["move"], "kind": "commit"}\n'
    )
    (found,) = messages(collections)
    assert "turns.jsonl:1: no label here names anything in the case" in found
    assert "remove the file until you have some" in found


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("id: reach_me", "id: collect_when", "the id `collect_when` is used twice"),
        ("id: reach_me", "id: pads_age", "the id `pads_age` is used twice"),
        ("after: [pads_age]", "after: [pad_age]", "no fact or denial `pad_age`"),
        ("Does tomorrow at five suit you?", "How old are the brake pads?", "`pads_age` has this example question"),
        (
            "Any evening is fine, after five.",
            "I have never changed the brake pads in four years.",
            "repeats `pads_age`",
        ),
        ("      - May I take down a phone number?\n", "", "at least 3"),
        (
            "id: reach_me",
            "id: reach_me\n    later: {after: [pad_age], says: [Ring me.]}",
            "no fact or denial `pad_age`",
        ),
        (
            "id: reach_me",
            "id: reach_me\n    later:\n      after: [when_braking]\n"
            "      says: [I have never changed the brake pads in four years]",
            "repeats `pads_age`",
        ),
    ],
)
def test_a_background_that_does_not_fit_is_found(
    collections: Path, change: Change, old: str, new: str, word: str
) -> None:
    change(old, new, "my-scenario.background.yaml")
    found = "\n".join(messages(collections))
    assert word in found
    assert "my-scenario.background.yaml:" in found


def test_names_of_folders_and_files_are_held_against_slugs(collections: Path, change: Change) -> None:
    change("slug: my-collection", "slug: other", "collection.yaml")
    assert any("name of the folder" in message for message in messages(collections))


def test_foreign_questions_must_be_foreign(collections: Path, change: Change) -> None:
    change("- Do you like jazz?", "- When did it start?", "collection.yaml")
    change("- Do you believe in ghosts?", "- How tall is the Eiffel Tower?", "collection.yaml")
    found = "\n".join(messages(collections))
    assert "not foreign" in found
    assert "stands here twice" in found


def test_a_folder_without_its_collection_file_is_refused(collections: Path) -> None:
    (collections / "my-collection" / "collection.yaml").unlink()
    assert "cannot be read" in messages(collections)[0]


def test_a_file_with_the_wrong_ending_is_not_overlooked(collections: Path) -> None:
    scenario = collections / "my-collection" / "my-scenario.yaml"
    scenario.rename(scenario.with_suffix(".yml"))
    assert "must end in `.yaml`" in messages(collections)[0]


def test_one_file_can_be_linted_alone(collections: Path, change: Change, capsys: pytest.CaptureFixture[str]) -> None:
    path = collections / "my-collection" / "my-scenario.yaml"
    assert main([str(change("given: [pads_age]", "given: [nothing_such]"))]) == 1
    assert "0 scenarios passed, 1 finding\n" in capsys.readouterr().out
    assert main([str(path.parent / "absent.yaml")]) == 1
    assert "no such scenario: check the name\n" in capsys.readouterr().out
    assert main([str(path.with_stem(path.stem[:-1]))]) == 1
    assert f"Did you mean {path.stem}?" in capsys.readouterr().out
