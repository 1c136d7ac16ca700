"""GET and POST /preferences, GET /preferences/export and /preferences/manifest: which of two is better."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import AfterValidator, AwareDatetime, Field

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import JsonLines, answers, lines
from reward_server.api.body import CONVERSATIONS, JsonBody
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer, services_of
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


@router.post("/preferences", response_model=PreferenceResponse, responses=answers(examples.PREFERENCE, 403, 404))
async def add_preference(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.LABEL)],
    wanted: Annotated[PreferenceRequest, JsonBody(CONVERSATIONS, example=examples.PREFERENCE_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Keep what a person says: which of two conversations is better."""
    weight_of_all(side.messages for side in (wanted.response_a, wanted.response_b) if side)
    return answer(request, await services_of(request).preferences.add(lab, wanted, key))


@router.get("/preferences", response_model=PreferenceList, responses=answers(examples.PREFERENCES, 400, 403, 404))
async def list_preferences(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.LABEL, Scope.EXPORT)],
    query: Annotated[PreferenceQuery, Query()],
) -> Body:
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


@router.get(
    "/preferences/export",
    response_model=ExportedPair,
    response_class=JsonLines,
    responses=lines(ExportedPair, examples.EXPORTED_PAIR, 400, 403, 404),
)
async def export_preferences(
    request: Request, lab: Annotated[Lab, for_keys(Scope.EXPORT)], query: Annotated[ExportQuery, Query()]
) -> Response:
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
    return JsonLines(_joined(first, parts))


@router.get(
    "/preferences/manifest", response_model=ManifestResponse, responses=answers(examples.MANIFEST, 400, 403, 404)
)
async def preference_manifest(
    request: Request, lab: Annotated[Lab, for_keys(Scope.EXPORT)], query: Annotated[ExportQuery, Query()]
) -> Body:
    """Describe the export of the same query: counts, what was left out, and a digest of its bytes."""
    export = _export(request, lab, query)
    async for _ in export.parts():
        pass
    return answer(request, export.manifest.to_json())


class AgreementQuery(QueryModel):
    """Query of agreement."""

    collection_slug: CollectionSlug | None = Field(default=None, max_length=128)


@router.get(
    "/preferences/agreement", response_model=AgreementResponse, responses=answers(examples.AGREEMENT, 400, 403, 404)
)
async def preference_agreement(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.LABEL, Scope.EXPORT)],
    query: Annotated[AgreementQuery, Query()],
) -> Body:
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
