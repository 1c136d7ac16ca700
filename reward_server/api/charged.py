"""Plays a turn or scores a conversation on the lab's budget: what every door for one of them calls.

A door that charges by itself says why; batches, comparisons and rankings are charged in their routes.
"""

from __future__ import annotations

from fastapi import Request

from reward_server.api.context import Body, Services, services_of, while_connected, within
from reward_server.auth.lab import Lab
from reward_server.transcripts.weight import weight, weight_of
from trainer_client.wire import EvaluateRequest, TurnRequest


async def played(services: Services, lab: Lab, episode_id: str, turn: TurnRequest, key: str | None) -> Body:
    """Play a turn in time; `key` is an `Idempotency-Key`."""
    await services.compute.charge(lab, weight(turn.messages[-1]), turns=1)
    work = services.episodes.turn(lab, episode_id, turn, key)
    return await within(services.settings.request_deadline_s, work)


async def evaluated(request: Request, lab: Lab, wanted: EvaluateRequest, key: str | None) -> Body:
    """Score a conversation in time, while the client waits for it."""
    services = services_of(request)
    await services.compute.charge(lab, weight_of(wanted.messages), evaluations=1)
    work = services.evaluations.evaluate(lab, wanted, key)
    return await within(services.settings.request_deadline_s, while_connected(request, work))
