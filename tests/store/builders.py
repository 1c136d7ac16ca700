"""Records with sensible values; a test names what it is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reward_server.ids import IdPrefix, new_comparison_id, new_episode_id, new_evaluation_id, new_id
from reward_server.store.records import (
    ComparisonRow,
    DeliveryRow,
    DeliveryState,
    EpisodeRow,
    EpisodeStatus,
    EvaluationRow,
    EvaluationSource,
    KeyRow,
    StoredAnswer,
    TurnRow,
    WebhookRow,
)

NOW = datetime(2026, 11, 21, 9, 30, 15, 123456, tzinfo=UTC)


def an_episode(**changes: Any) -> EpisodeRow:
    row = EpisodeRow(
        episode_id=new_episode_id(),
        lab_id="acme",
        collection="clinical-intake",
        scenario="cough",
        seed=-(2**63),
        persona_slug="plainspoken",
        observation_role="assistant",
        score_turns=True,
        reward_config={"skip_safety_gate": True},
        metadata={"z": 1, "a": [None, "ü"]},
        max_turns=20,
        turn=0,
        persona_state={"turn": 0, "said": {}},
        status=EpisodeStatus.ACTIVE,
        terminal_reason=None,
        opening="Good morning.",
        created_at=NOW,
        active_at=NOW,
    )
    return replace(row, **changes)


def after_a_turn(episode: EpisodeRow, **changes: Any) -> EpisodeRow:
    turn = episode.turn + 1
    return replace(episode, turn=turn, persona_state={"turn": turn}, **changes)


def a_turn(episode: EpisodeRow, **changes: Any) -> TurnRow:
    """The turn that led to this state of the episode."""
    row = TurnRow(
        episode_id=episode.episode_id,
        turn=episode.turn,
        agent_content="How long have you had it?",
        tool_calls=[{"name": "note", "input": {"text": "cough"}}],
        observation="About three weeks.",
        reward=0.25,
        scores={"D1_History": 0.5},
        answer={"turn": episode.turn, "reward": 0.25, "observation": {"role": "assistant", "content": "Since May."}},
        fingerprint="f" * 64,
        created_at=NOW,
    )
    return replace(row, **changes)


def an_evaluation(**changes: Any) -> EvaluationRow:
    row = EvaluationRow(
        evaluation_id=new_evaluation_id(),
        lab_id="acme",
        collection="clinical-intake",
        scenario="cough",
        reward=0.5,
        scores={"D1_History": 0.5},
        scoring_version="sv_0123456789ab",
        normalization_key="run-1",
        messages=[{"role": "assistant", "content": "Hello."}],
        agent_role="assistant",
        reward_config=None,
        verdicts=[{"criterion_id": "asks_duration", "status": "met"}],
        source=EvaluationSource.EVALUATE,
        created_at=NOW,
    )
    return replace(row, **changes)


def a_comparison(**changes: Any) -> ComparisonRow:
    row = ComparisonRow(
        comparison_id=new_comparison_id(),
        lab_id="acme",
        collection="clinical-intake",
        scenario="cough",
        winner="a",
        reward_a=0.75,
        reward_b=0.5,
        margin=0.25,
        scores_a={"D1_History": 0.75},
        scores_b=None,
        scoring_version="sv_0123456789ab",
        agent_role="assistant",
        reward_config=None,
        messages_a=[{"role": "assistant", "content": "Hello."}],
        messages_b=[{"role": "assistant", "content": "Go away."}],
        verdicts_a=[],
        verdicts_b=[],
        created_at=NOW,
    )
    return replace(row, **changes)


def an_answer(**changes: Any) -> StoredAnswer:
    row = StoredAnswer(
        lab_id="acme", key="key-1", fingerprint="f" * 64, status=200, body={"z": 1, "a": 2}, created_at=NOW
    )
    return replace(row, **changes)


def a_key(**changes: Any) -> KeyRow:
    row = KeyRow(
        key_id="abcdefghijklmnop",
        lab_id="acme",
        name="trainer",
        digest=bytes(range(32)),
        plan="standard",
        rate_per_minute=None,
        collections=None,
        full_scores=False,
        created_at=NOW,
    )
    return replace(row, **changes)


def a_webhook(**changes: Any) -> WebhookRow:
    row = WebhookRow(
        webhook_id=new_id(IdPrefix.WEBHOOK),
        lab_id="acme",
        url="https://example.com/events",
        events=("job.finished",),
        description=None,
        created_at=NOW,
    )
    return replace(row, **changes)


def a_delivery(hook: WebhookRow, **changes: Any) -> DeliveryRow:
    row = DeliveryRow(
        message_id=new_id(IdPrefix.MESSAGE),
        webhook_id=hook.webhook_id,
        lab_id=hook.lab_id,
        event="job.finished",
        body="{}",
        state=DeliveryState.PENDING,
        attempts=0,
        next_at=NOW,
        last_status=None,
        last_error=None,
        created_at=NOW,
    )
    return replace(row, **changes)
