"""The page of the API lists what responses have beyond the fields of the Labs API."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LABS_API = {
    "POST /episodes": "episode_id initial_observation tools max_turns expires_at request_id",
    "POST /episodes/{id}/turns": "turn observation reward reward_delta scores score_breakdown episode_complete "
    "terminal_reason request_id scoring_version",
    "GET /episodes/{id}": "episode_id collection_slug scenario_slug status turn max_turns messages rewards "
    "terminal_reason metadata created_at expires_at request_id",
    "POST /evaluate": "evaluation_id reward scores score_breakdown scoring_version normalized metadata request_id "
    "scenario_name evaluation_time_ms judge uncertainty",
    "POST /compare": "comparison_id winner reward_a reward_b margin scores_a scores_b scoring_version request_id",
    "GET /evaluations/{id}": "evaluation_id reward scores score_breakdown scoring_version normalized metadata "
    "request_id",
    "GET /collections/{slug}/scenarios/{slug}": "slug name description dimensions max_turns tools request_id",
    "a tool": "id type name mode description json_schema options",
    "an error": "request_id code errors",
}
SCHEMAS = {
    "POST /episodes": ("CreateEpisodeResponse",),
    "POST /episodes/{id}/turns": ("TurnResponse",),
    "GET /episodes/{id}": ("EpisodeResponse",),
    "POST /evaluate": ("EvaluateResponse", "EvaluationMetadata"),
    "POST /compare": ("CompareResponse",),
    "GET /evaluations/{id}": ("StoredEvaluation",),
    "GET /collections/{slug}/scenarios/{slug}": ("ScenarioResponse",),
    "a tool": ("ToolDefinition",),
    "an error": ("ErrorData",),
}


def listed() -> dict[str, set[str]]:
    """The rows of the table: the first call of each, and its fields."""
    page = (ROOT / "docs" / "api.md").read_text().split("## Fields beyond the Labs API")[1].split("## ")[0]
    rows = [row.strip("|").split("|") for row in page.splitlines() if row.startswith("| ")][1:]
    return {
        re.split(r",", call.replace("`", "").strip())[0]: {
            name.removeprefix("data.") for name in re.findall(r"`([\w.]+)`", fields) if name != "metadata"
        }
        for call, fields in rows
    }


@pytest.mark.parametrize("call", LABS_API)
def test_every_field_is_one_of_the_labs_api_or_is_listed(call: str) -> None:
    schemas = json.loads((ROOT / "docs" / "openapi.json").read_text())["components"]["schemas"]
    fields = {name for schema in SCHEMAS[call] for name in schemas[schema]["properties"]}
    assert listed()[call] == fields - set(LABS_API[call].split())


def test_no_other_call_is_listed() -> None:
    assert set(listed()) == set(LABS_API)
