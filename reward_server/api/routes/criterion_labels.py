"""GET and POST /criterion-labels, /criterion-labels/criteria and /criterion-labels/export."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import AfterValidator, Field

from reward_server.api import examples
from reward_server.api.access import for_keys
from reward_server.api.answers import JsonLines, answers, lines
from reward_server.api.body import JsonBody
from reward_server.api.context import API_PREFIX, Body, IdempotencyKey, answer, services_of
from reward_server.api.paging import PagedQuery, Pager, plain_text
from reward_server.api.query import QueryModel
from reward_server.api.router import Router
from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.ids import IdPrefix
from reward_server.preferences.criteria import document
from trainer_client.wire import (
    CalibrationRow,
    CriteriaResponse,
    CriterionLabelList,
    CriterionLabelRequest,
    CriterionLabelResponse,
)

router = Router(prefix=API_PREFIX, tags=["preferences"])
ConversationId = Annotated[str, AfterValidator(plain_text)]


class CriteriaQuery(QueryModel):
    """Query of the criteria."""

    conversation_id: ConversationId = Field(max_length=64, description="`ep_…` or `ev_…`.")


class CriterionLabelQuery(PagedQuery):
    """Query of the list."""

    conversation_id: ConversationId | None = Field(default=None, max_length=64)


class CriterionLabelExportQuery(QueryModel):
    """Query of the export."""

    scoring_version: ConversationId | None = Field(
        default=None, max_length=64, description="A calibration is fitted on rewards of one version."
    )


@router.post(
    "/criterion-labels",
    response_model=CriterionLabelResponse,
    responses=answers(examples.CRITERION_LABEL, 403, 404, 502),
)
async def add_criterion_label(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.LABEL)],
    wanted: Annotated[CriterionLabelRequest, JsonBody(example=examples.CRITERION_LABEL_REQUEST)],
    key: IdempotencyKey = None,
) -> Body:
    """Keep what a person says of a criterion in a stored conversation; needs full scores."""
    return answer(request, await services_of(request).criterion_labels.add(lab, wanted, key))


@router.get(
    "/criterion-labels",
    response_model=CriterionLabelList,
    responses=answers(examples.CRITERION_LABELS, 400, 403),
)
async def list_criterion_labels(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.LABEL, Scope.EXPORT)],
    query: Annotated[CriterionLabelQuery, Query()],
) -> Body:
    """The lab's labels of criteria, newest first; needs full scores."""
    services = services_of(request)
    pager = Pager(services.cursors, lab.lab_id, IdPrefix.LABEL)
    page = await services.criterion_labels.page(
        lab, limit=query.limit, after=pager.after(query.cursor), conversation_id=query.conversation_id
    )
    return answer(request, {"data": [document(row) for row in page.rows], **pager.following(page.next)})


@router.get(
    "/criterion-labels/criteria",
    response_model=CriteriaResponse,
    responses=answers(examples.CRITERIA, 400, 403, 404, 502),
)
async def list_criteria(
    request: Request, lab: Annotated[Lab, for_keys(Scope.LABEL)], query: Annotated[CriteriaQuery, Query()]
) -> Body:
    """What can be labelled in a stored conversation, with the judges' verdicts; needs full scores."""
    return answer(request, await services_of(request).criterion_labels.criteria(lab, query.conversation_id))


@router.get(
    "/criterion-labels/export",
    response_model=CalibrationRow,
    response_class=JsonLines,
    responses=lines(CalibrationRow, examples.CALIBRATION_ROW, 400, 403),
)
async def export_criterion_labels(
    request: Request,
    lab: Annotated[Lab, for_keys(Scope.EXPORT)],
    query: Annotated[CriterionLabelExportQuery, Query()],
) -> Response:
    """Labels of criteria as rows for `./labs calibrate`, one JSON object a line; needs full scores."""
    return JsonLines(services_of(request).criterion_labels.export(lab, scoring_version=query.scoring_version))
