"""Scenario files are read strictly, and every refusal names a place and never a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.schema import CollectionFile, ScenarioFile
from scenarios.yamlfile import MAX_BYTES, MAX_NODES, ScenarioFileError, load, read_document
from tests.scenarios.conftest import TEMPLATE, in_one_file


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(ScenarioFileError) as caught:
        read_document(written(tmp_path, text), "file.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a: &x [1]\nb: *x\n", 1, "anchors"),
        ("a: 1\nb: *x\n", 2, "anchors"),
        ("a: 1\n<<: {b: 2}\n", 2, "merge keys"),
        ("a: 1\nb: !!python/object:os.system x\n", 2, "tags"),
        ("a: 1\nb: !x y\n", 2, "tags"),
        ("a: 1\nb: 2\na: 3\n", 3, "twice"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: 1\n? [x, y]\n: 3\n", 2, "plain word"),
        ("a: 1\nb: [1, 2\nc: 3\n", 3, "indentation"),
        ("a: 1\nb: 'x\n", 3, "indentation"),
        ("a: 1\nb:\tx: y\n", 2, ""),
    ],
)
def test_anything_beyond_plain_data_is_refused_with_its_line(tmp_path: Path, text: str, line: int, word: str) -> None:
    message = refusal(tmp_path, text)
    assert message.startswith(f"file.yaml:{line}: ")
    assert word in message


def test_a_yaml_bomb_is_refused_at_its_first_anchor(tmp_path: Path) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
    )
    assert refusal(tmp_path, bomb).startswith("file.yaml:1: anchors")


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    assert "nested deeper" in refusal(tmp_path, "a: " + "[" * 60 + "]" * 60)


def test_nesting_deep_enough_to_exhaust_a_parser_is_refused(tmp_path: Path) -> None:
    assert "file.yaml:1:" in refusal(tmp_path, "a: " + "[" * 100_000)


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    assert "larger than" in refusal(tmp_path, "a: " + "x" * MAX_BYTES)


def test_many_nodes_are_refused(tmp_path: Path) -> None:
    assert "nodes" in refusal(tmp_path, "a: [" + "1," * (MAX_NODES + 1) + "]")


def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    assert refusal(tmp_path, b"a: 1\nb: \xff\n").startswith("file.yaml:2: the file is not UTF-8")


def test_a_control_character_is_refused(tmp_path: Path) -> None:
    assert "control characters" in refusal(tmp_path, b"a: x\x00y\n")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioFileError, match="cannot be read"):
        read_document(tmp_path / "absent.yaml")


def test_plain_scalars_follow_the_core_schema(tmp_path: Path) -> None:
    text = "a: yes\nb: 12:30\nc: 2020-01-01\nd: true\ne: 7\nf: 1.5\ng: '7'\nh: ~\ni: 1_000\nj: 'true'\nk: off\n"
    data = read_document(written(tmp_path, text)).data
    assert data == {
        "a": "yes", "b": "12:30", "c": "2020-01-01", "d": True, "e": 7, "f": 1.5, "g": "7", "h": None,
        "i": "1_000", "j": "true", "k": "off",
    }  # fmt: skip


def test_nodes_know_their_lines(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, "a:\n  - x\n  - b: 1\n    c: 2\n"))
    assert document.line(("a", 1, "c")) == 4
    assert document.line(("a", 1, "absent", 3)) == 3


def broken(tmp_path: Path, old: str, new: str) -> list[str]:
    text = in_one_file()
    assert text.count(old) >= 1
    with pytest.raises(ScenarioFileError) as caught:
        load(written(tmp_path, text.replace(old, new, 1)), ScenarioFile, "s.yaml")
    return str(caught.value).splitlines()


def line_of(text: str) -> int:
    lines = in_one_file().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def test_an_unknown_key_is_named_with_the_key_that_was_meant(tmp_path: Path) -> None:
    messages = broken(tmp_path, "    role: customer", "    rolle: customer")
    line = line_of("role: customer")
    assert any(m.startswith(f"s.yaml:{line}: unknown key `rolle`: did you mean `role`?") for m in messages)
    assert any("`private.persona.role` is missing" in m for m in messages)


def test_a_missing_key_comes_with_the_values_that_it_may_have(tmp_path: Path) -> None:
    tool = "tools: [{id: ticket, type: decision, name: Ticket, options: [a, b]}]"
    messages = broken(tmp_path, "tools: []", tool)
    assert any("`public.tools[0].mode` is missing: add it (json_schema or options)" in m for m in messages)
    messages = broken(tmp_path, "        family: discovery\n", "")
    wanted = ".family` is missing: add it (success_metrics, failure_metrics, best_practices, rubrics, discovery, "
    assert any(wanted + "output_similarity or decision_match)" in m for m in messages)


def test_weights_that_do_not_sum_to_one_are_refused_at_the_rubric(tmp_path: Path) -> None:
    (message,) = broken(tmp_path, "weight: 0.5}", "weight: 0.4}")
    assert message.startswith(f"s.yaml:{line_of('  rubric:')}: ")
    assert "sum to 1" in message


def test_a_wrong_tier_names_the_tiers_and_the_line(tmp_path: Path) -> None:
    (message,) = broken(tmp_path, "tier: rapport", "tier: secretly")
    assert message.startswith(f"s.yaml:{line_of('tier: rapport')}: ")
    assert "volunteered" in message
    assert "secretly" not in message


def test_no_refusal_quotes_what_stands_in_the_file(tmp_path: Path) -> None:
    for old, new in [
        ("points: 4", "points: CANARY"),
        ("name: Robin Hale", "name: [CANARY]"),
        ("family: discovery", "family: CANARY"),
        ("cap: 0.25", "cap: CANARY"),
        ("need: share", "need: CANARY"),
        ("goals:", "CANARY is a line that became a key:"),
    ]:
        assert "CANARY" not in "\n".join(broken(tmp_path, old, new))


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioFileError, match="must be a mapping"):
        load(written(tmp_path, "- a\n"), CollectionFile)


def test_the_templates_are_valid(tmp_path: Path) -> None:
    scenario, _ = load(written(tmp_path, in_one_file()), ScenarioFile)
    collection, _ = load(TEMPLATE / "collection.yaml", CollectionFile)
    assert scenario.public.slug == "my-scenario"
    assert collection.public.slug == "my-collection"
