"""The small parts: forms of tools, what is made visible, quotes in place, curves, claims, snippets."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from importlib.resources import files
from typing import Any

import pytest

from reward_server.console import assets, snippets, tool_forms, wording
from reward_server.console.claims import LASTS, Claims
from reward_server.console.conversation import of_messages
from reward_server.console.forms import Form
from reward_server.console.pages.charts import histogram
from reward_server.console.pages.training import curves_of
from reward_server.console.pairs import digest, key_of
from reward_server.console.reasons import marked
from reward_server.errors import InvalidRequest

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Tool:
    input_schema: dict[str, Any]
    id: str = "sheet"


SHEET = Tool(
    {
        "type": "object",
        "required": ["summary", "urgent", "count"],
        "properties": {
            "summary": {"type": "string", "maxLength": 400},
            "code": {"type": "string", "maxLength": 10},
            "count": {"type": "integer", "minimum": 1},
            "price": {"type": "number"},
            "urgent": {"type": "boolean"},
            "way": {"enum": ["post", "van"]},
            "notes": {"type": "array", "items": {"type": "string"}},
            "rest": {"type": "object"},
        },
    }
)


def entered(**fields: str) -> Form:
    return Form({f"sheet.{name}": [value] for name, value in fields.items()})


def test_a_form_follows_the_schema() -> None:
    kinds = {field.name: field.kind.value for field in tool_forms.fields_of(SHEET)}
    assert kinds == {
        "summary": "text",
        "code": "line",
        "count": "whole",
        "price": "number",
        "urgent": "yes",
        "way": "choice",
        "notes": "lines",
        "rest": "json",
    }


def test_what_was_entered_has_the_types_of_the_schema() -> None:
    form = entered(summary="x", count="3", price="2.5", urgent="on", way="van", notes="a\n\n b ", rest='{"k": [1]}')
    assert tool_forms.input_of(SHEET, form) == {
        "summary": "x",
        "count": 3,
        "price": 2.5,
        "urgent": True,
        "way": "van",
        "notes": ["a", "b"],
        "rest": {"k": [1]},
    }
    assert tool_forms.input_of(SHEET, entered(summary="x", count="1")) == {"summary": "x", "count": 1, "urgent": False}


def test_what_a_tool_needs_and_was_left_empty_is_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        tool_forms.input_of(SHEET, entered(summary=" "))
    assert [problem.loc for problem in caught.value.errors] == [("summary",), ("count",)]


@pytest.mark.parametrize(("name", "value"), [("count", "many"), ("price", "x"), ("rest", "{")])
def test_a_number_that_is_none_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        tool_forms.input_of(SHEET, entered(**{"summary": "x", "count": "1", name: value}))
    assert caught.value.errors[0].loc == (name,)


def test_what_nobody_would_see_is_shown() -> None:
    assert wording.shown("plain") == "plain"
    assert wording.shown("\x1b[31m\u202ex\u200e\x07\x00é 日本\n") == "␛[31m⟨U+202E⟩x⟨U+200E⟩⟨U+0007⟩⟨U+0000⟩é 日本\n"


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "+0.100"), (-0.25, "−0.250"), (0.0, "±0"), (0.0004, "±0"), (-0.0004, "±0")]
)
def test_steps_have_signs(value: float, text: str) -> None:
    assert wording.signed(value) == text


def test_names_of_dimensions_are_words() -> None:
    assert wording.dimension("D2_RiskChecks") == "Risk Checks"
    assert wording.dimension("other") == "other"


def test_quotes_are_marked_where_they_stand() -> None:
    pieces = marked("So: How  did it\nhappen? And <b>then</b>?", ["how did it happen?", "did it", "<b>then</b>", "a"])
    assert [(piece.text, piece.is_cited) for piece in pieces] == [
        ("So: ", False),
        ("How  did it\nhappen?", True),
        (" And ", False),
        ("<b>then</b>", True),
        ("?", False),
    ]
    assert "".join(piece.text for piece in marked("abcabc", ["abc", "bca", "cab"])) == "abcabc"


def test_a_histogram_counts_one_in_its_last_bin() -> None:
    counts = histogram([0.0, 0.049, 0.05, 1.0], "reward")["counts"]
    assert (counts[0], counts[1], counts[-1], sum(counts)) == (2, 1, 1, 4)


def test_curves_are_those_that_the_run_has() -> None:
    records = [
        {"kind": "train", "step": 1, "reward/mean": 0.1, "update/entropy": 2.0},
        {"kind": "train", "step": 2, "reward/mean": 0.2, "update/entropy": None},
        {"kind": "eval", "step": 2, "reward/mean": 0.5},
    ]
    curves = dict(curves_of(records))
    assert list(curves) == ["Reward", "Entropy"]
    lines = {line["name"]: line["values"] for line in curves["Reward"]["lines"]}
    assert lines == {"reward/mean": [0.1, 0.2], "held out": [None, 0.5]}
    assert curves["Entropy"]["lines"][0]["values"] == [2.0, None]


def test_a_claim_keeps_others_away_for_a_while() -> None:
    claims = Claims()
    claims.claim("p", "one", NOW)
    assert claims.is_free("p", "one", NOW)
    assert not claims.is_free("p", "two", NOW)
    assert claims.is_free("p", "two", NOW + LASTS)
    claims.skip("p", "one")
    assert claims.is_free("p", "two", NOW + timedelta(0))
    assert claims.is_skipped("p", "one")
    assert not claims.is_skipped("p", "two")


def test_a_pair_is_the_same_whichever_side_stands_first() -> None:
    a, b = [{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]
    assert key_of(a, b) == key_of(b, a)
    assert digest(a) != digest([{"role": "assistant", "content": "a"}])
    assert digest(a) == digest([{"role": "user", "content": "a", "tool_calls": []}])


def test_messages_become_turns() -> None:
    talk = of_messages(
        [
            {"role": "user", "content": "Hello."},
            {"role": "user", "content": "It leaks."},
            {"role": "assistant", "content": "When?", "tool_calls": [{"name": "t", "input": {"a": 1}}]},
            {"role": "tool", "content": "ok"},
            {"role": "user", "content": "Always."},
            {"role": "assistant", "content": None},
        ],
        "assistant",
    )
    assert talk.opening == "Hello.\nIt leaks."
    assert [(turn.agent, turn.persona) for turn in talk.turns] == [("When?", "Always."), ("", None)]
    assert talk.turns[0].calls[0].input == {"a": 1}


def test_snippets_survive_whatever_was_said() -> None:
    place = snippets.SnippetTarget("http://localhost:1", "c", "s", needs_key=True)
    said = "it's \"odd\"; $(rm -rf /) `x` \\ \n 'y'"
    curl, python, openai = snippets.to_score(place, [{"role": "assistant", "content": said}])
    sent = shlex.split(curl.text.replace("\\\n", ""))
    assert json.loads(sent[sent.index("-d") + 1])["messages"][0]["content"] == said
    assert f"Authorization: Bearer {snippets.KEY}" in curl.text
    for snippet in (python, openai):
        compile(snippet.text, snippet.id, "exec")
        listed = re.search(r"messages = (\[.*?\n\])", snippet.text, re.DOTALL)
        assert listed is not None
        assert eval(listed[1])[0]["content"] == said


def test_vendored_files_are_those_of_their_digests() -> None:
    folder = files("reward_server.console").joinpath("static")
    lines = folder.joinpath("vendored.sha256").read_text().splitlines()
    assert len(lines) == 3
    for line in lines:
        told, name = line.split()
        assert sha256(folder.joinpath(name).read_bytes()).hexdigest() == told
        assert folder.joinpath(f"{name.partition('.')[0]}.LICENSE.txt").is_file()
        assert name in assets.KINDS
