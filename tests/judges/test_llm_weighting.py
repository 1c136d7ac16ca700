"""The probability of a verdict, found at the right token or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log

import pytest

from reward_server.judges.weighting import likelihoods
from reward_server.llm.base import TokenChoice

SURE: Mapping[str, float] = {}


def spelled(*parts: str | tuple[str, Mapping[str, float]]) -> list[TokenChoice]:
    """Tokens; a plain text is one whose alternatives do not matter."""
    return [TokenChoice(p, {p: 0.0}) if isinstance(p, str) else TokenChoice(*p) for p in parts]


def logs(**chances: float) -> dict[str, float]:
    return {token: log(chance) for token, chance in chances.items()}


@pytest.mark.parametrize(
    ("before", "token", "alternatives"),
    [
        ('{"met":', "true", logs(true=0.6, false=0.2, null=0.1)),
        ('{"met":', " true", {" true": log(0.6), " false": log(0.2)}),
        ('{"met"', ": true", {": true": log(0.6), ": false": log(0.2), ": null": log(0.1)}),
        ('{"met": ', "t", logs(t=0.6, f=0.2)),
        ('{"met": ', "true}", {"true}": log(0.4), "true,": log(0.2), "false}": log(0.2)}),
        ('{"met": ', "true", {"true": log(0.5), " true": log(0.1), "False": log(0.2)}),
    ],
)
def test_the_token_in_which_the_value_begins_counts_however_it_is_cut(
    before: str, token: str, alternatives: dict[str, float]
) -> None:
    rest = {"t": "rue}", "true}": ""}.get(token, "}")
    tokens = spelled(before, (token, alternatives), *([rest] if rest else []))
    assert likelihoods(tokens, [True]) == [pytest.approx(0.75)]


def test_several_verdicts_have_their_own_tokens() -> None:
    tokens = spelled(
        '[{"met":', ("true", logs(true=0.9, false=0.1)), '},{"met":', ("false", logs(true=0.3, false=0.7)), "}]"
    )
    assert likelihoods(tokens, [True, False]) == [pytest.approx(0.9), pytest.approx(0.3)]


def test_a_verdict_inside_a_quote_is_not_one() -> None:
    fake = ('{"quote":"\\"met\\": ', ("true", logs(true=0.99)), ' said he, \\"met\\":true","met":')
    tokens = spelled(*fake, ("false", logs(true=0.2, false=0.8)), "}")
    assert likelihoods(tokens, [False]) == [pytest.approx(0.2)]


def test_a_string_that_reads_met_is_no_key() -> None:
    tokens = spelled('{"reason":"met","other":', ("true", SURE), ',"met":', ("true", logs(true=0.5, false=0.5)), "}")
    assert likelihoods(tokens, [True]) == [pytest.approx(0.5)]


@pytest.mark.parametrize(
    ("tokens", "answers"),
    [
        ([], [True]),
        (spelled('{"met":true}'), [False]),
        (spelled('{"met":true}{"met":true}'), [True]),
        (spelled('{"met":', "true", "}"), [True, True]),
        (spelled('{"met":', ("true", logs(null=0.5)), "}"), [True]),
        (spelled('{"met":', ("true", {"true": float("-inf")}), "}"), [True]),
        (spelled('{"met":', ("true", {"true": float("nan")}), "}"), [True]),
        (spelled('{"met":', ("true", {}), "}"), [True]),
    ],
)
def test_where_it_cannot_be_found_there_is_none(tokens: list[TokenChoice], answers: list[bool]) -> None:
    assert likelihoods(tokens, answers) == [None] * len(answers)


def test_a_token_that_is_almost_certain_is_not_above_one() -> None:
    [chance] = likelihoods(spelled('{"met":', ("true", {"true": 1e-4, "false": -20.0}), "}"), [True])
    assert chance == pytest.approx(1 / (1 + exp(-20.0)))
