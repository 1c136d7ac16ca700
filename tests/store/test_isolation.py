"""A statement that forgets the lab does not run."""

from __future__ import annotations

import pytest
from sqlalchemy import bindparam, delete, func, or_, select, update

from reward_server.store.disposal import KEPT, of_conversations
from reward_server.store.engine import open_writing
from reward_server.store.isolation import OWNED, across_labs, require_lab
from reward_server.store.tables import EpisodeTable, EvaluationTable, TurnTable, metadata, table_of

EPISODE, TURN, EVALUATION = table_of(EpisodeTable), table_of(TurnTable), table_of(EvaluationTable)
OF_ALL = {"alembic_version", "llm_verdicts", "server"}
"""Tables whose rows are nobody's: what language models decided is kept under hashes, for whoever asks the same."""


WITH_THEIR_PARENTS = {"file_chunk", "job_item", "training_metric"}
"""What has no age of its own; the database deletes it with the file, the job or the run."""


def test_every_table_is_a_labs_or_known_to_be_everybodys() -> None:
    assert {table.name for table in metadata.tables.values()} - OWNED <= OF_ALL


def test_every_table_of_a_lab_is_deleted_with_its_data_or_kept_by_name() -> None:
    """Turns go with their episodes."""
    assert {table.name for table in of_conversations()} | KEPT | {"turn"} == OWNED
    undated = {table.name for table in of_conversations() if "created_at" not in table.c}
    assert undated == WITH_THEIR_PARENTS


FORGETFUL = {
    "all rows": select(EPISODE),
    "by id": select(EPISODE).where(EPISODE.c.episode_id == "x"),
    "or": select(EPISODE).where(or_(EPISODE.c.lab_id == "a", EPISODE.c.turn == 0)),
    "not equal": select(EPISODE).where(EPISODE.c.lab_id != "a"),
    "turns without their episode": select(TURN).where(TURN.c.episode_id == "x"),
    "joined to a column": select(TURN).join(EPISODE).where(EPISODE.c.lab_id == EVALUATION.c.lab_id),
    "in a subquery": select(func.count()).select_from(select(EPISODE.c.turn).subquery()),
    "update": update(EPISODE).where(EPISODE.c.episode_id == "x").values(turn=1),
    "delete": delete(EVALUATION),
}


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_statement_that_forgets_the_lab_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="names no lab"):
        require_lab(FORGETFUL[name])  # type: ignore[arg-type]


CAREFUL = {
    "a value": select(EPISODE).where(EPISODE.c.lab_id == "a"),
    "a parameter": update(EPISODE).where(EPISODE.c.turn == 1, EPISODE.c.lab_id == bindparam("b")).values(turn=2),
    "turns of an episode": select(TURN).join(EPISODE).where(EPISODE.c.lab_id == "a"),
    "in a subquery": select(func.count()).select_from(select(EPISODE.c.turn).where(EPISODE.c.lab_id == "a").subquery()),
}


@pytest.mark.parametrize("name", CAREFUL)
def test_a_statement_with_a_lab_passes(name: str) -> None:
    require_lab(CAREFUL[name])  # type: ignore[arg-type]


def test_every_engine_of_the_store_looks(url: str) -> None:
    with open_writing(url, busy_timeout_s=0.05).connect() as connection:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="names no lab"):
                connection.execute(select(EPISODE))
        assert connection.execute(across_labs(select(EPISODE))).all() == []
