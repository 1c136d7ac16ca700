"""GET and POST /preferences, GET /preferences/export and /preferences/manifest: which of two is better."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, AwareDatetime, Field

from reward_server.api import examples
from reward_server.api.body import CONVERSATIONS
from reward_server.api.context import API_PREFIX, Caller, answer, body_as, idempotency_key, services_of
from reward_server.api.operation import Operation, operation
from reward_server.api.paging import PagedQuery, Pager, plain_text
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.ids import IdPrefix
from reward_server.preferences.export import Export
from reward_server.preferences.formats import Format
from reward_server.preferences.pairs import Source
from reward_server.transcripts.weight import weight_of_all
from trainer_client.wire import (
    AgreementResponse,
    ExportedPair,
    ManifestResponse,
    PreferenceList,
    PreferenceRequest,
    PreferenceResponse,
)

JSON_LINES = "application/jsonl"
LEFT_OUT = "X-Labs-Left-Out"
router = Router(prefix=API_PREFIX, tags=["preferences"])
CollectionSlug = Annotated[str, AfterValidator(plain_text)]


def _in_utc(moment: datetime) -> datetime:
    """Refuse what has no place in the calendar of UTC."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be in the years 1 to 9999 of UTC") from None


class PreferenceQuery(PagedQuery):
    """Query of the list."""

    collection_slug: CollectionSlug | None = Field(default=None, max_length=128)
    source: Source | None = Field(default=None, description="`label` or `compare`; `episodes` exist in exports only.")


class ExportQuery(QueryModel):
    """Query of an export and its manifest."""

    format: Format = Format.TRL
    min_margin: float = Field(
        default=0.0, ge=0.0, le=1.0, description="Minimum margin; labels without a margin are always included."
    )
    collection_slug: CollectionSlug | None = Field(default=None, max_length=128)
    source: Source | None = None
    until: Annotated[AwareDatetime, AfterValidator(_in_utc)] | None = Field(
        default=None, description="Leave out pairs stored later."
    )
    provenance: bool = Field(default=True, description="Whether lines include their provenance.")


@router.post("/preferences")
@operation(
    Operation(
        PreferenceResponse,
        PreferenceRequest,
        scopes=(Scope.LABEL,),
        errors=(403, 404),
        request_example=examples.PREFERENCE_REQUEST,
        response_example=examples.PREFERENCE,
        retryable=True,
    )
)
async def add_preference(request: Request, lab: Caller) -> Response:
    """Keep what a person says: which of two conversations is better."""
    wanted = await body_as(PreferenceRequest, request, CONVERSATIONS)
    weight_of_all(side.messages for side in (wanted.response_a, wanted.response_b) if side)
    return answer(request, await services_of(request).preferences.add(lab, wanted, idempotency_key(request)))


@router.get("/preferences")
@operation(
    Operation(
        PreferenceList,
        scopes=(Scope.LABEL, Scope.EXPORT),
        errors=(400, 403, 404),
        response_example=examples.PREFERENCES,
    )
)
async def list_preferences(request: Request, lab: Caller, query: Annotated[PreferenceQuery, Query()]) -> Response:
    """The lab's comparisons and human labels, newest first."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.PREFERENCE, IdPrefix.COMPARISON)
    page = await services.preferences.page(
        lab,
        limit=query.limit,
        after=pager.after(query.cursor),
        collection=query.collection_slug,
        source=query.source,
    )
    return answer(request, {"data": page.bodies, **pager.following(page.next)})


@router.get("/preferences/export")
@operation(
    Operation(
        ExportedPair,
        scopes=(Scope.EXPORT,),
        errors=(400, 403, 404),
        response_example=examples.EXPORTED_PAIR,
        response_media=JSON_LINES,
    )
)
async def export_preferences(request: Request, lab: Caller, query: Annotated[ExportQuery, Query()]) -> Response:
    """Preference pairs for DPO, one JSON object a line: from labels, comparisons and groups of episodes.

    With no pairs the body is empty, and the header `X-Labs-Left-Out` says how many were left out, and why.
    """
    export = _export(request, lab, query)
    parts = export.parts()
    try:
        first = await anext(parts)
    except StopAsyncIteration:
        reasons = export.manifest.to_json()["left_out"]
        told = ", ".join(f"{reason}={count}" for reason, count in reasons.items()) or "none"
        return Response(headers={LEFT_OUT: told}, media_type=JSON_LINES)
    return StreamingResponse(_joined(first, parts), media_type=JSON_LINES)


@router.get("/preferences/manifest")
@operation(
    Operation(ManifestResponse, scopes=(Scope.EXPORT,), errors=(400, 403, 404), response_example=examples.MANIFEST)
)
async def preference_manifest(request: Request, lab: Caller, query: Annotated[ExportQuery, Query()]) -> Response:
    """Describe the export of the same query: counts, what was left out, and a digest of its bytes."""
    export = _export(request, lab, query)
    async for _ in export.parts():
        pass
    return answer(request, export.manifest.to_json())


class AgreementQuery(QueryModel):
    """Query of agreement."""

    collection_slug: CollectionSlug | None = Field(default=None, max_length=128)


@router.get("/preferences/agreement")
@operation(
    Operation(
        AgreementResponse,
        scopes=(Scope.LABEL, Scope.EXPORT),
        errors=(400, 403, 404),
        response_example=examples.AGREEMENT,
    )
)
async def preference_agreement(request: Request, lab: Caller, query: Annotated[AgreementQuery, Query()]) -> Response:
    """Measure how often rewards agree with the lab's human labels of the same comparisons."""
    return answer(request, await services_of(request).preferences.agreement(lab, query.collection_slug))


async def _joined(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in others:
        yield part


def _export(request: Request, lab: Lab, query: ExportQuery) -> Export:
    until: datetime | None = query.until
    return services_of(request).preferences.export(
        lab,
        format=query.format,
        min_margin=query.min_margin,
        collection=query.collection_slug,
        source=query.source,
        until=until,
        provenance=query.provenance,
    )
