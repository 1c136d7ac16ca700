"""Response bodies of the preference calls, without their `request_id`."""

from __future__ import annotations

from typing import Any

from reward_server.clock import to_iso
from reward_server.preferences.pairs import Source, judges_of
from reward_server.store.records import ComparisonRow, PreferenceRow

Body = dict[str, Any]


def label(row: PreferenceRow) -> Body:
    """The document of a label."""
    told = {"margin": row.margin, "labeller": row.labeller, "note": row.note, "comparison_id": row.comparison_id}
    return _preference(row.preference_id, Source.LABEL, row, told)


def comparison(row: ComparisonRow) -> Body:
    """The document of a comparison."""
    told = {"margin": row.margin, "comparison_id": row.comparison_id, "judge": judges_of(row.verdicts_a)}
    return _preference(row.comparison_id, Source.COMPARE, row, told)


def _preference(own_id: str, source: Source, row: ComparisonRow | PreferenceRow, told: Body) -> Body:
    body = {
        "id": own_id,
        "source": source.value,
        "collection_slug": row.collection,
        "scenario_slug": row.scenario,
        "winner": row.winner,
        **told,
        "reward_a": row.reward_a,
        "reward_b": row.reward_b,
        "scoring_version": row.scoring_version,
        "agent_role": row.agent_role,
        "response_a": {"messages": row.messages_a},
        "response_b": {"messages": row.messages_b},
        "created_at": to_iso(row.created_at),
    }
    return {name: value for name, value in body.items() if value is not None}
