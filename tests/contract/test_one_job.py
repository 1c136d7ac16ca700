"""The score of a turn is begun in the thread job of the persona's answer, or in one of its own where that is worded.

The one job saves a hand-over and must change nothing else: not the answer, not the reward, and not what a failure is
called.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from personas.reading.matcher import Matcher
from reward_server.errors import LabsError, ScenarioNotFound
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scorer import Scorer
from scenarios.library import Library
from tests.contract.house import Client, House, Json, assert_error
from tests.contract.test_voiced_personas import ASKS, GLASS, RACE, voiced_house, well

ASK_CAUSE = "Good morning. I'm sorry to hear that. How did it happen?"
ASK_DEADLINE = "I understand. When do you need it back?"
FAILURE = RuntimeError("the scorer said: quokka-scorer-text")


def failing_reads(monkeypatch: pytest.MonkeyPatch, error: Exception = FAILURE) -> None:
    """Scoring cannot read conversations."""

    def reading(self: Scorer, *_: Any) -> Any:
        raise error

    monkeypatch.setattr(Scorer, "read", reading)


def without_names(turn: Json) -> Json:
    """A turn without what is new in every episode and response."""
    return {name: value for name, value in turn.items() if name not in ("request_id", "episode_id")}


async def scorings(client: Client) -> str:
    """How many scorings were measured, as Prometheus reads it."""
    page = (await client.http.get("/metrics")).text
    return next(line.split()[1] for line in page.splitlines() if line.startswith("labs_scoring_seconds_count "))


async def test_each_turn_is_scored_and_measured_once(labs: Client, house: House, episode: Json) -> None:
    for text in (ASK_CAUSE, ASK_DEADLINE):
        await labs.say(episode, text)
    assert house.scored == [1, 1]
    assert await scorings(labs) == "2.0"


@pytest.mark.parametrize(
    ("error", "status", "code"), [(FAILURE, 500, "internal_error"), (ScenarioNotFound(), 404, "scenario_not_found")]
)
async def test_what_keeps_a_score_from_being_made_is_not_the_personas_failure(
    labs: Client, house: House, episode: Json, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    with monkeypatch.context() as patched:
        failing_reads(patched, error)
        assert_error(await labs.turn(episode, ASK_CAUSE, key="once"), status, code)
    assert "persona_failed" not in house.logs.getvalue()
    assert "quokka" not in house.logs.getvalue()
    assert (await labs.read(episode))["turn"] == 0
    again = await labs.say(episode, ASK_CAUSE, key="once")
    assert without_names(again) == without_names(await labs.say(await labs.create(), ASK_CAUSE))


async def test_a_worded_line_is_scored_as_it_was_said(data: Path, matcher: Matcher, library: Library) -> None:
    heard: list[str | None] = []

    def failure(request: ScoreRequest) -> LabsError | None:
        heard.append(request.transcript.turns[-1].persona)
        return None

    async with voiced_house(data, matcher, library, well) as (house, _), house.client() as client:
        house.failure = failure
        episode = await client.create()
        said = [(await client.say(episode, text))["observation"]["content"] for text in ASKS]
        # What is not said is not scored, either: a template's words are in no transcript.
        assert heard == said == [GLASS, RACE]


async def test_a_check_of_words_that_fails_is_the_personas_failure_and_records_nothing(
    data: Path, matcher: Matcher, library: Library
) -> None:
    house: House

    def breaking(say: list[str]) -> Any:
        house.matcher.broken = True
        return well(say)

    async with voiced_house(data, matcher, library, breaking) as (house, _), house.client() as client:
        episode = await client.create()
        assert_error(await client.turn(episode, ASKS[0]), 502, "persona_failed")
        house.matcher.broken = False
        assert (await client.read(episode))["turn"] == 0
        assert house.scored == []
        assert len(await client.log(episode)) == 1
