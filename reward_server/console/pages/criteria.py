"""Label: whether a conversation meets a criterion, as a person sees it, with the words that show it."""

from __future__ import annotations

from fastapi import Response

from reward_server.api.body import validate
from reward_server.api.routes import criterion_labels as api
from reward_server.console import view
from reward_server.console.criterion_labels import labelling_of
from reward_server.console.labeller import person_of, remember
from reward_server.console.routing import ROOT, Pages
from reward_server.console.visit import Visit
from reward_server.ids import IdPrefix, is_id
from trainer_client.wire import CriterionLabelRequest

pages = Pages()


@pages.change("/criteria", like=api.add_criterion_label)
async def label(visit: Visit) -> Response:
    """Keep a label of a criterion."""
    form = visit.form
    given = {
        "conversation_id": form.line("conversation"),
        "criterion": form.line("criterion"),
        "met": form.line("met") == "true",
        "quote": form.line("quote") or None,
        "labeller": form.line("labeller") or None,
    }
    wanted = validate(CriterionLabelRequest, given)
    await visit.services.criterion_labels.add(visit.lab, wanted, None)
    if not visit.is_partial:
        kind = "evaluations" if is_id(wanted.conversation_id, IdPrefix.EVALUATION) else "episodes"
        return view.sent(visit.request, f"{ROOT}/{kind}/{wanted.conversation_id}")
    labelling = await labelling_of(visit, wanted.conversation_id)
    said = labelling.said(wanted.criterion) if labelling else []
    response = view.page(
        visit, "_criterion_label.html", name=wanted.criterion, said=said, labelling=labelling, just_said=True
    )
    if wanted.labeller and wanted.labeller != person_of(visit):
        remember(visit, response, wanted.labeller)
    return response
