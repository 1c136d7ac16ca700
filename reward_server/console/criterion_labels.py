"""What people said of the criteria of a conversation, for those who may add to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward_server.auth.scopes import Scope
from reward_server.console.labeller import person_of
from reward_server.console.visit import Visit
from reward_server.store.records import CriterionLabelRow

MOST = 200
"""Labels of one conversation that are shown, of the newest."""


@dataclass(frozen=True, slots=True)
class Labelling:
    """The labels of a conversation, and who is about to add one."""

    conversation_id: str
    person: str
    rows: Sequence[CriterionLabelRow]

    def said(self, criterion: str) -> list[CriterionLabelRow]:
        """The labels of one criterion, the newest first."""
        return [row for row in self.rows if row.criterion == criterion]


async def labelling_of(visit: Visit, conversation_id: str) -> Labelling | None:
    """The labels of a conversation; None for who may not label: that takes the scope `label` and full scores."""
    if not visit.sees_why or Scope.LABEL not in visit.lab.scopes:
        return None
    page = await visit.services.criterion_labels.page(
        visit.lab, limit=MOST, after=None, conversation_id=conversation_id
    )
    return Labelling(conversation_id, person_of(visit), page.rows)
