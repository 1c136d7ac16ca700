"""Scores what a door has translated, by the service and under the limits of /evaluate and /batch/evaluate."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request

from reward_server.api.charged import evaluated
from reward_server.api.context import Body, services_of, while_connected, within
from reward_server.auth.lab import Lab
from reward_server.errors import FieldProblem, InvalidRequest, JudgeFailed, ProviderFailed
from reward_server.transcripts.weight import weight_of_all
from trainer_client.wire import BatchItem, EvaluateRequest

_FAILED = {kind.code for kind in (ProviderFailed, JudgeFailed)}


async def all_scored(
    request: Request, lab: Lab, wanted: Sequence[EvaluateRequest], field: str, key: str | None
) -> list[Body]:
    """The same for several, all or none: these clients have no word for an item that failed.

    Args:
        field: the list of the request that the conversations came in; errors name its items.
        key: its `Idempotency-Key`.

    Raises:
        JudgeFailed: a judge failed on one of them; the client may send the request again.
        InvalidRequest: one of them cannot be scored.
    """
    if len(wanted) == 1:
        return [await evaluated(request, lab, wanted[0], key)]
    if not wanted:
        return []
    services = services_of(request)
    await services.compute.charge(lab, weight_of_all(each.messages for each in wanted), evaluations=len(wanted))
    items = [
        BatchItem.model_construct(id=str(i), **{name: getattr(each, name) for name in EvaluateRequest.model_fields})
        for i, each in enumerate(wanted)
    ]
    content = [item.model_dump() for item in items]
    work = services.evaluations.batch(lab, items, content, key)
    body = await within(services.settings.batch_deadline_s, while_connected(request, work))
    problems = []
    for i, result in enumerate(body["results"]):
        if result["status"] == "error":
            if result["code"] in _FAILED:
                raise JudgeFailed
            problems.append(FieldProblem((field, i), result["message"]))
    if problems:
        raise InvalidRequest(errors=problems)
    results: list[Body] = body["results"]
    return results
