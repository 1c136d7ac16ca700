"""Response bodies of evaluations and comparisons, without their `request_id`, and what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reward_server.auth.idempotency import Body
from reward_server.clock import to_iso
from reward_server.errors import LabsError, in_a_line
from reward_server.evaluations.windows import Standing, standings
from reward_server.scoring.breakdown import breakdown
from reward_server.scoring.scored import Scored
from reward_server.store.records import ComparisonRow, EvaluationRow
from trainer_client.wire import EvaluateRequest, Message, RewardConfig


def evaluation(
    evaluation_id: str, request: EvaluateRequest, scored: Scored, standing: Standing, metadata: Body
) -> Body:
    """The part that `/evaluate` and a successful batch item have in common."""
    body: Body = {"evaluation_id": evaluation_id, "reward": scored.reward}
    if scored.scores:
        body["scores"] = dict(scored.scores)
        body["score_breakdown"] = breakdown(scored)
    body["capped_by"] = list(scored.capped_by)
    body["scoring_version"] = scored.scoring_version
    normalized = standings(request, scored.reward, standing)
    if normalized is not None:
        body["normalized"] = normalized
    body["metadata"] = metadata
    return body


def stored(row: EvaluationRow) -> Body:
    """Answer of GET /evaluations/{id}; of rows older than kept answers what the row itself knows."""
    answer = row.answer
    if answer is None:
        answer = {"reward": row.reward, "scoring_version": row.scoring_version}
        if row.scores:
            answer["scores"] = row.scores
    return {
        "evaluation_id": row.evaluation_id,
        "collection_slug": row.collection,
        "scenario_slug": row.scenario,
        "source": row.source.value,
        "created_at": to_iso(row.created_at),
        **answer,
    }


def failed_item(item_id: str, error: LabsError) -> Body:
    """A batch item without a reward."""
    return {"id": item_id, "status": "error", "message": in_a_line(error), "code": error.code}


def comparison(row: ComparisonRow) -> Body:
    """Answer of POST /compare."""
    body: Body = {
        "comparison_id": row.comparison_id,
        "winner": row.winner,
        "reward_a": row.reward_a,
        "reward_b": row.reward_b,
        "margin": row.margin,
        "scoring_version": row.scoring_version,
    }
    if row.scores_a:
        body["scores_a"] = row.scores_a
    if row.scores_b:
        body["scores_b"] = row.scores_b
    return body


def messages(sent: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as they are stored."""
    return [message.model_dump(exclude_none=True) for message in sent]


def reward_config(given: RewardConfig | None) -> dict[str, Any] | None:
    """A reward config as it is stored: only what was said."""
    return None if given is None else given.model_dump(exclude_unset=True)


def verdicts(scored: Scored) -> list[dict[str, Any]]:
    """The reasons, for the operator alone: verdicts, the parts of a composite, and the gates that closed."""
    parts = [{"part": name, "value": value} for name, value in scored.parts.items()]
    gates = [{"gate": gate.name, "cap": gate.cap} for gate in scored.gates]
    return [verdict.to_json() for verdict in scored.verdicts] + parts + gates
