"""Preferences of people between pairs of conversations."""

from __future__ import annotations

from reward_server.store.lab_rows import LabRows
from reward_server.store.records import PreferenceRow
from reward_server.store.tables import PreferenceTable, table_of


class PreferenceRepository(LabRows[PreferenceRow]):
    """Human preferences of one lab at a time."""

    _table = table_of(PreferenceTable)
    _id_column = "preference_id"
    _record = PreferenceRow
