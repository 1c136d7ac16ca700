"""Labels of single criteria by people."""

from __future__ import annotations

from reward_server.store.lab_rows import LabRows
from reward_server.store.records import CriterionLabelRow
from reward_server.store.tables import CriterionLabelTable, table_of


class CriterionLabelRepository(LabRows[CriterionLabelRow]):
    """Labels of criteria, of one lab at a time."""

    _table = table_of(CriterionLabelTable)
    _id_column = "label_id"
    _record = CriterionLabelRow
