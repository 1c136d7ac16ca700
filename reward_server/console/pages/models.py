"""Reward models with their held-out figures, which one serves, and calibrations."""

from __future__ import annotations

import asyncio

from fastapi import Response

from reward_server.api.routes import reward_models as api
from reward_server.auth.scopes import Scope
from reward_server.console import view
from reward_server.console.routing import ROOT, Pages
from reward_server.console.visit import Visit
from reward_server.reward_models.summary import calibration_summary, model_summary

pages = Pages()


@pages.read("/models", like=api.list_reward_models)
async def models(visit: Visit) -> Response:
    """All that this lab may use."""
    found = [{**model_summary(card), "active": active} for card, active in await visit.services.reward_models.all()]
    calibrations = [calibration_summary(each) for each in await asyncio.to_thread(visit.services.calibrations.all)]
    return view.page(visit, "models.html", models=found, calibrations=calibrations)


@pages.change("/models/{model_id}/activate", like=api.activate_reward_model)
async def activate(visit: Visit, model_id: str) -> Response:
    """Let a model serve."""
    is_shared = Scope.OPERATE in visit.lab.scopes
    await visit.services.reward_models.activate(model_id, force=bool(visit.form.line("force")), shared=is_shared)
    return view.sent(visit.request, f"{ROOT}/models")


@pages.change("/models/{model_id}/deactivate", like=api.deactivate_reward_model)
async def deactivate(visit: Visit, model_id: str) -> Response:
    """Let it serve no longer."""
    await visit.services.reward_models.deactivate(model_id)
    return view.sent(visit.request, f"{ROOT}/models")
