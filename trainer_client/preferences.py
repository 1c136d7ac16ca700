"""The calls about preferences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from trainer_client.calls import Call, MessageLike, checked, conversation, post, query_of
from trainer_client.methods import method, pages_of
from trainer_client.wire import (
    AgreementResponse,
    CalibrationRows,
    CriteriaResponse,
    CriterionLabel,
    CriterionLabelList,
    CriterionLabelRequest,
    CriterionLabelResponse,
    ExportFormat,
    ManifestResponse,
    PreferenceExport,
    PreferenceList,
    PreferenceRequest,
    PreferenceResponse,
    PreferenceSource,
    PreferenceSummary,
    Role,
    Winner,
)


class PreferenceCalls:
    """Calls about preferences: which of two conversations is better, as people and judges say."""

    @method
    def prefer(
        self,
        winner: Winner,
        *,
        comparison_id: str | None = None,
        collection_slug: str | None = None,
        scenario_slug: str | None = None,
        messages_a: Sequence[MessageLike] | None = None,
        messages_b: Sequence[MessageLike] | None = None,
        agent_role: Role = "assistant",
        margin: float | None = None,
        labeller: str | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[PreferenceResponse]:
        """Keep what a person says: of a stored comparison, or of two conversations that come along."""
        sides = [None if each is None else {"messages": conversation(each)} for each in (messages_a, messages_b)]
        request = checked(
            PreferenceRequest,
            winner=winner,
            comparison_id=comparison_id,
            collection_slug=collection_slug,
            scenario_slug=scenario_slug,
            response_a=sides[0],
            response_b=sides[1],
            agent_role=agent_role,
            margin=margin,
            labeller=labeller,
            note=note,
        )
        return post("/preferences", request, PreferenceResponse, idempotency_key)

    @pages_of(PreferenceSummary)
    def preferences(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        collection_slug: str | None = None,
        source: PreferenceSource | None = None,
    ) -> Call[PreferenceList]:
        """Stored comparisons and human labels, newest first."""
        query = query_of(limit=limit, cursor=cursor, collection_slug=collection_slug, source=source)
        return Call("GET", "/preferences", PreferenceList, query=query)

    @method
    def preference_agreement(self, *, collection_slug: str | None = None) -> Call[AgreementResponse]:
        """Measure how often rewards agree with the lab's human labels of the same comparisons."""
        return Call("GET", "/preferences/agreement", AgreementResponse, query=query_of(collection_slug=collection_slug))

    @method
    def export_preferences(
        self,
        format: ExportFormat = "trl",
        *,
        min_margin: float | None = None,
        collection_slug: str | None = None,
        source: PreferenceSource | None = None,
        until: datetime | str | None = None,
        provenance: bool = True,
    ) -> Call[PreferenceExport]:
        """Preference pairs for training: `rows`, and `text` for a file."""
        query = _wanted(format, min_margin, collection_slug, source, until, provenance=provenance)
        return Call("GET", "/preferences/export", PreferenceExport, query=query, in_lines=True)

    @method
    def preference_manifest(
        self,
        format: ExportFormat = "trl",
        *,
        min_margin: float | None = None,
        collection_slug: str | None = None,
        source: PreferenceSource | None = None,
        until: datetime | str | None = None,
        provenance: bool = True,
    ) -> Call[ManifestResponse]:
        """Describe such an export: counts, what was left out, and its digest."""
        query = _wanted(format, min_margin, collection_slug, source, until, provenance=provenance)
        return Call("GET", "/preferences/manifest", ManifestResponse, query=query)

    @method
    def criteria(self, conversation_id: str) -> Call[CriteriaResponse]:
        """What can be labelled in a stored conversation, and what the judges decided; needs full scores."""
        query = query_of(conversation_id=conversation_id)
        return Call("GET", "/criterion-labels/criteria", CriteriaResponse, query=query)

    @method
    def label_criterion(
        self,
        conversation_id: str,
        criterion: str,
        *,
        met: bool,
        quote: str | None = None,
        labeller: str | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[CriterionLabelResponse]:
        """Keep what a person says of one criterion in a stored conversation."""
        request = checked(
            CriterionLabelRequest,
            conversation_id=conversation_id,
            criterion=criterion,
            met=met,
            quote=quote,
            labeller=labeller,
            note=note,
        )
        return post("/criterion-labels", request, CriterionLabelResponse, idempotency_key)

    @pages_of(CriterionLabel)
    def criterion_labels(
        self, *, limit: int | None = None, cursor: str | None = None, conversation_id: str | None = None
    ) -> Call[CriterionLabelList]:
        """Labels of criteria, newest first."""
        query = query_of(limit=limit, cursor=cursor, conversation_id=conversation_id)
        return Call("GET", "/criterion-labels", CriterionLabelList, query=query)

    @method
    def export_criterion_labels(self, *, scoring_version: str | None = None) -> Call[CalibrationRows]:
        """Labels of criteria as rows for `labs calibrate`: `rows`, and `text` for a file."""
        query = query_of(scoring_version=scoring_version)
        return Call("GET", "/criterion-labels/export", CalibrationRows, query=query, in_lines=True)


def _wanted(
    format: ExportFormat,
    min_margin: float | None,
    collection_slug: str | None,
    source: PreferenceSource | None,
    until: datetime | str | None,
    *,
    provenance: bool,
) -> dict[str, str]:
    return query_of(
        format=format,
        min_margin=min_margin,
        collection_slug=collection_slug,
        source=source,
        until=until.isoformat() if isinstance(until, datetime) else until,
        provenance=None if provenance else "false",
    )
