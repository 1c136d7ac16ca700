"""A parameter that a call does not know is refused: a misspelt filter must not return everything."""

from __future__ import annotations

import re

import pytest

from tests.contract.documented import document
from tests.contract.house import Client, assert_error

pytestmark = pytest.mark.one_house

PREFIX = "/api/v1"
DOORS = f"{PREFIX}/compat/"
"""Other stacks may add parameters of theirs."""
ASKED = sorted(
    path.removeprefix(PREFIX)
    for path, calls in document()["paths"].items()
    if path.startswith(PREFIX) and not path.startswith(DOORS)
    for each in calls.get("get", {}).get("parameters", ())[:1]
    if any(parameter["in"] == "query" for parameter in calls["get"]["parameters"]) and each
)


def test_lists_have_parameters() -> None:
    assert {"/episodes", "/jobs", "/training-runs", "/preferences", "/leaderboard"} <= set(ASKED)


@pytest.mark.parametrize("path", ASKED)
async def test_an_unknown_parameter_is_named(labs: Client, path: str) -> None:
    response = await labs.call("GET", re.sub(r"\{\w+\}", "unknown", path) + "?scenario_slog=flat-tyre")
    problems = assert_error(response, 400, "invalid_request")["errors"]
    assert {"loc": ["query", "scenario_slog"], "msg": "Is not a known parameter."} in problems
