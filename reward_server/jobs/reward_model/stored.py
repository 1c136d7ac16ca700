"""The server's own evaluations and comparisons as training data.

Rows are grouped by scenario, so that what is held out are whole scenarios: how a model does there says whether it has
learned what rewards are for, or only which scenario pays. Only rewards that were made as the scenario says are taken,
of the newest scoring version in the store unless another is named: numbers of two versions do not mix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reward_server.errors import InvalidRequest, LabsError
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import (
    MIN_GROUPS,
    OVERALL,
    Dataset,
    Labelled,
    Preferred,
    grouped,
    without_constant_dimensions,
)
from reward_server.reward_models.recorded import conversation_from, scenario_text
from reward_server.store.records import ComparisonRow, EvaluationRow, EvaluationSource
from reward_server.store.store import Store
from scenarios.library import Catalog
from trainer_client.wire import Role


@dataclass(frozen=True)
class StoredRows:
    """What the store holds for training."""

    evaluations: Sequence[EvaluationRow]
    comparisons: Sequence[ComparisonRow]


async def read_stored(url: str, lab_id: str | None = None) -> StoredRows:
    """All evaluations and comparisons of a migrated database, of one lab or of all."""
    store = await Store.open(url)
    try:
        async with store.reading() as unit:
            return StoredRows(await unit.evaluations.of(lab_id), await unit.comparisons.of(lab_id))
    finally:
        await store.close()


def stored_dataset(rows: StoredRows, catalog: Catalog, scoring_version: str | None = None) -> Dataset:
    """The rows of one scoring version as training data.

    Raises:
        InvalidRequest: there is none.
    """
    version = scoring_version or _newest(rows)
    evaluations = [row for row in rows.evaluations if row.scoring_version == version and not row.reward_config]
    comparisons = [row for row in rows.comparisons if row.scoring_version == version and not row.reward_config]
    # A compared side is an evaluation, too, where the server keeps it as one; once is enough.
    labelled = [_labelled(row, catalog) for row in evaluations if row.source is not EvaluationSource.COMPARE]
    for comparison in comparisons:
        labelled += _sides(comparison, catalog)
    pairs = [_pair(row, catalog) for row in comparisons if row.winner != "tie"]
    distinct = {(row.conversation.digest, row.group): row for row in labelled if row is not None}
    if not distinct:
        raise InvalidRequest(
            f"the store holds no evaluations of scoring version {version} with its own scenarios: play episodes and "
            "send them to /evaluate first, or name another --version"
        )
    dropped = len(rows.evaluations) + len(rows.comparisons) - len(evaluations) - len(comparisons)
    notes: tuple[str, ...] = (f"scoring version {version}",)
    if dropped:
        notes = (*notes, f"{dropped} stored rows of other versions or with a reward_config left out")
    dataset = grouped(Dataset(tuple(distinct.values()), tuple(p for p in pairs if p is not None), notes=notes))
    scenarios = len(dataset.groups)
    dataset = _by_conversation(dataset) if scenarios < MIN_GROUPS else replace(dataset, grouped_by="scenario")
    return without_constant_dimensions(dataset)


def _by_conversation(dataset: Dataset) -> Dataset:
    """With too few scenarios to hold one out, single conversations are: that says less, and the notes say so."""
    note = f"{len(dataset.groups)} scenarios are too few to hold one out: held out are conversations of the same ones"
    return replace(
        dataset,
        labelled=tuple(replace(row, group=row.conversation.digest[:16]) for row in dataset.labelled),
        preferred=tuple(replace(pair, group=pair.chosen.digest[:16]) for pair in dataset.preferred),
        grouped_by="conversation",
        notes=(*dataset.notes, note),
    )


def _newest(rows: StoredRows) -> str:
    everything: Iterable[EvaluationRow | ComparisonRow] = (*rows.evaluations, *rows.comparisons)
    newest = max(everything, key=lambda row: row.created_at, default=None)
    if newest is None:
        raise InvalidRequest("the store holds no evaluations yet: play episodes and send them to /evaluate first")
    return newest.scoring_version


def _labelled(row: EvaluationRow, catalog: Catalog) -> Labelled | None:
    conversation = _conversation(row.collection, row.scenario, row.messages, row.agent_role, catalog)
    if conversation is None:
        return None
    scores = {**(row.scores or {}), OVERALL: row.reward}
    return Labelled(conversation, scores, f"{row.collection}/{row.scenario}")


def _sides(row: ComparisonRow, catalog: Catalog) -> list[Labelled | None]:
    group = f"{row.collection}/{row.scenario}"
    found: list[Labelled | None] = []
    for messages, scores, reward in (
        (row.messages_a, row.scores_a, row.reward_a),
        (row.messages_b, row.scores_b, row.reward_b),
    ):
        conversation = _conversation(row.collection, row.scenario, messages, row.agent_role, catalog)
        if conversation is not None:
            found.append(Labelled(conversation, {**(scores or {}), OVERALL: reward}, group))
    return found


def _pair(row: ComparisonRow, catalog: Catalog) -> Preferred | None:
    a = _conversation(row.collection, row.scenario, row.messages_a, row.agent_role, catalog)
    b = _conversation(row.collection, row.scenario, row.messages_b, row.agent_role, catalog)
    if a is None or b is None or a.digest == b.digest:
        return None
    chosen, rejected = (a, b) if row.winner == "a" else (b, a)
    return Preferred(chosen, rejected, f"{row.collection}/{row.scenario}")


def _conversation(
    collection: str, scenario: str, messages: Sequence[dict[str, object]], agent_role: str, catalog: Catalog
) -> Conversation | None:
    """What was scored; None where the scenario is gone."""
    found = catalog.find(collection, scenario)
    if found is None:
        return None
    role: Role = "user" if agent_role == "user" else "assistant"
    try:
        return conversation_from(messages, role, scenario_text(found.card))
    except LabsError:
        return None
