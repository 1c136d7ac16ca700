"""The episode as a state machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reward_server.episodes.history import HistoryLine
from reward_server.episodes.machine import (
    after_turn,
    log_of,
    require_alive,
    reward_delta,
    terminated,
    turns_left,
)
from reward_server.errors import EpisodeNotFound
from reward_server.store.records import EpisodeRow, EpisodeStatus, TurnRow

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(hours=24)
EPISODE = EpisodeRow(
    episode_id="ep_x",
    lab_id="lab",
    collection="c",
    scenario="s",
    seed=1,
    persona_slug="plainspoken",
    observation_role="assistant",
    score_turns=True,
    reward_config=None,
    metadata=None,
    max_turns=3,
    turn=0,
    persona_state={},
    status=EpisodeStatus.ACTIVE,
    terminal_reason=None,
    opening="Hello.",
    created_at=START,
    active_at=START,
)
COMPLETE = replace(EPISODE, status=EpisodeStatus.COMPLETE, terminal_reason="completed")


def turn_row(turn: int, tool_calls: list[dict[str, object]] | None = None) -> TurnRow:
    return TurnRow(
        episode_id="ep_x",
        turn=turn,
        agent_content=f"a{turn}",
        tool_calls=tool_calls,
        observation=f"p{turn}",
        reward=0.0,
        scores=None,
        answer={},
        fingerprint="f",
        created_at=START,
    )


def step(episode: EpisodeRow = EPISODE, *, done: bool = False, terminate: bool = False) -> EpisodeRow:
    return after_turn(episode, persona_state={"turn": 9}, persona_done=done, terminate=terminate, now=START + DAY / 2)


def test_a_turn_moves_the_episode_on_and_renews_its_life() -> None:
    after = step()
    assert (after.turn, after.status, after.terminal_reason) == (1, EpisodeStatus.ACTIVE, None)
    assert after.persona_state == {"turn": 9}
    assert after.expires_at == START + DAY / 2 + DAY


@pytest.mark.parametrize(
    ("turn", "done", "terminate", "reason"),
    [
        (0, False, False, None),
        (1, False, False, None),
        (2, False, False, "max_turns_reached"),
        (0, True, False, "completed"),
        (2, True, False, "completed"),
        (0, False, True, "client_terminated"),
        (0, True, True, "client_terminated"),
        (2, False, True, "client_terminated"),
    ],
)
def test_why_an_episode_ends(turn: int, done: bool, terminate: bool, reason: str | None) -> None:
    after = step(replace(EPISODE, turn=turn), done=done, terminate=terminate)
    assert after.terminal_reason == reason
    assert after.status is (EpisodeStatus.COMPLETE if reason else EpisodeStatus.ACTIVE)


def test_turns_left_are_those_until_the_cap_and_none_once_it_is_complete() -> None:
    assert [turns_left(replace(EPISODE, turn=turn)) for turn in (0, 1, 2)] == [3, 2, 1]
    assert turns_left(step(replace(EPISODE, turn=2))) == 0
    assert turns_left(step(done=True)) == turns_left(step(terminate=True)) == turns_left(COMPLETE) == 0


def test_an_episode_of_one_turn_ends_with_it() -> None:
    assert step(replace(EPISODE, max_turns=1)).terminal_reason == "max_turns_reached"


def test_a_day_without_activity_is_the_end() -> None:
    require_alive(EPISODE, START + DAY - timedelta(milliseconds=1))
    with pytest.raises(EpisodeNotFound):
        require_alive(EPISODE, START + DAY)
    with pytest.raises(EpisodeNotFound):
        terminated(EPISODE, START + DAY)


def test_a_complete_episode_never_expires() -> None:
    require_alive(COMPLETE, START + 100 * DAY)


def test_the_client_may_end_it_once() -> None:
    ended = terminated(EPISODE, START + DAY / 2)
    assert (ended.status, ended.terminal_reason, ended.turn) == (EpisodeStatus.COMPLETE, "client_terminated", 0)
    assert terminated(COMPLETE, START + DAY / 2) is COMPLETE


@pytest.mark.parametrize(("observation_role", "other"), [("assistant", "user"), ("user", "assistant")])
def test_the_log_has_the_persona_in_the_observation_role(observation_role: str, other: str) -> None:
    call = {"name": "advise", "input": {"value": "rest"}}
    log = log_of(replace(EPISODE, observation_role=observation_role), [turn_row(1), turn_row(2, [call])])
    assert log == [
        HistoryLine(observation_role, "Hello."),
        HistoryLine(other, "a1"),
        HistoryLine(observation_role, "p1"),
        HistoryLine(other, "a2", (call,)),
        HistoryLine(observation_role, "p2"),
    ]


def test_deltas_of_four_decimals_add_up_exactly() -> None:
    rewards = [0.0, 0.1, 0.3333, 0.1, 0.7, 0.7, 0.2999, 1.0]
    deltas = [reward_delta(b, a) for a, b in zip([0.0, *rewards], rewards, strict=False)]
    assert round(sum(deltas), 4) == rewards[-1]
    assert all(delta == round(delta, 4) for delta in deltas)
    assert str(reward_delta(0.2, 0.2)) == "0.0"
