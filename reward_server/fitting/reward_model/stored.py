"""The server's own evaluations and comparisons as training data.

Rows are grouped by scenario, so that what is held out are whole scenarios: how a model does there says whether it has
learned what rewards are for, or only which scenario pays. Only rewards that were made as the scenario says are taken,
and numbers of two scoring versions do not mix. Rewards of the rubric alone rest on the first part of a version,
whichever reward model was active: all that share it are taken. Where a scenario has a composite of its own, a reward
may rest on the model as well; it is taken only for a whole version that is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reward_server.errors import InvalidRequest, LabsError
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import (
    MIN_EXAMPLES,
    MIN_GROUPS,
    OVERALL,
    Dataset,
    Labelled,
    PreferredPair,
    grouped,
    without_constant_dimensions,
)
from reward_server.reward_models.recorded import conversation_from, scenario_text
from reward_server.scoring.compose import RUBRIC_ALONE
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.lineage import Lineage
from reward_server.scoring.version import rubric_version
from reward_server.store.records import ComparisonRow, EvaluationRow, EvaluationSource
from reward_server.store.store import Store
from scenarios.library import Catalog, Vault
from scenarios.spelling import counted
from trainer_client.wire import Role

AnyRow = EvaluationRow | ComparisonRow
_NAMED = 10
"""So many versions or labs are named in a message; it stays one line that can be read."""
_FIRST = "play episodes and send them to /evaluate first (examples/play_into_store.py does both)"


@dataclass(frozen=True)
class StoredRows:
    """The rows that the store holds for training."""

    evaluations: Sequence[EvaluationRow]
    comparisons: Sequence[ComparisonRow]


async def read_stored(url: str, lab_id: str | None = None, *, all_labs: bool = False) -> StoredRows:
    """All evaluations and comparisons of a migrated database, of one lab or, where that is asked for, of all.

    Raises:
        InvalidRequest: there are none; or several labs have some, and nobody said which one's or that all are meant.
    """
    store = await Store.open(url)
    try:
        async with store.reading() as unit:
            everything = StoredRows(await unit.evaluations.of(None), await unit.comparisons.of(None))
    finally:
        await store.close()
    if lab_id is not None:
        return of_lab(everything, lab_id)
    return everything if all_labs else of_the_only_lab(everything)


def of_the_only_lab(rows: StoredRows) -> StoredRows:
    """The rows, which are one lab's: others' belong in its model only where somebody says so.

    Raises:
        InvalidRequest: several labs have some; the message names them.
    """
    labs = Counter(row.lab_id for row in _each_once(rows))
    if len(labs) > 1:
        raise InvalidRequest(f"several labs have rows in the store: give --lab or --all-labs: {_listed(labs)}")
    return rows


def of_lab(rows: StoredRows, lab_id: str) -> StoredRows:
    """The rows of one lab.

    Raises:
        InvalidRequest: it has none; the message says which labs have some.
    """
    own = StoredRows(
        [row for row in rows.evaluations if row.lab_id == lab_id],
        [row for row in rows.comparisons if row.lab_id == lab_id],
    )
    labs = Counter(row.lab_id for row in _each_once(rows))
    if labs and lab_id not in labs:
        raise InvalidRequest(f"lab {lab_id} has no evaluations in the store; --lab takes one of these: {_listed(labs)}")
    return own


def composed_scenarios(vault: Vault) -> frozenset[tuple[str, str]]:
    """Collection and name of the scenarios whose own reward is not the rubric's alone."""
    lineage = Lineage(vault, dict)
    return frozenset(names for names in vault.names() if lineage.heard(*names, RewardConfig()) != RUBRIC_ALONE.judges)


def stored_dataset(
    rows: StoredRows,
    catalog: Catalog,
    scoring_version: str | None = None,
    composed: frozenset[tuple[str, str]] = frozenset(),
) -> Dataset:
    """The rows of one scoring version as training data: the newest one's that has rewards of the rubric alone.

    A version without the digits that name judges of whole conversations means all rewards of the rubric alone that
    share it; a longer one means itself. `composed` are the scenarios with a composite of their own.

    Raises:
        InvalidRequest: there are too few; the message says which versions have how many.
    """
    version = scoring_version or _newest(rows, catalog, composed)

    def wanted(row: AnyRow) -> bool:
        return not row.reward_config and version in _versions_of(row, composed)

    evaluations = [row for row in rows.evaluations if wanted(row)]
    comparisons = [row for row in rows.comparisons if wanted(row)]
    # A compared side is an evaluation, too, where the server keeps it as one; once is enough.
    labelled = [_labelled(row, catalog) for row in evaluations if row.source is not EvaluationSource.COMPARE]
    for comparison in comparisons:
        labelled += _sides(comparison, catalog)
    pairs = [_pair(row, catalog) for row in comparisons if row.winner != "tie"]
    distinct = {(row.conversation.digest, row.group): row for row in labelled if row is not None}
    usable = len(distinct) + sum(pair is not None for pair in pairs)
    if usable < MIN_EXAMPLES:
        raise InvalidRequest(_too_few(usable, version, _by_version(rows, catalog, composed)))
    dropped = len(rows.evaluations) + len(rows.comparisons) - len(evaluations) - len(comparisons)
    notes: tuple[str, ...] = (f"scoring version {version}",)
    if dropped:
        notes = (
            *notes,
            f"{counted(dropped, 'stored row')} left out: of another scoring version, with a reward_config, or of a "
            "scenario with its own composite",
        )
    dataset = grouped(Dataset(tuple(distinct.values()), tuple(pair for pair in pairs if pair is not None), notes=notes))
    scenarios = len(dataset.groups)
    dataset = _by_conversation(dataset) if scenarios < MIN_GROUPS else replace(dataset, grouped_by="scenario")
    return without_constant_dimensions(dataset)


def _by_conversation(dataset: Dataset) -> Dataset:
    """With too few scenarios to hold one out, single conversations are: that says less, and the notes say so."""
    note = (
        f"{counted(len(dataset.groups), 'scenario')}: too few to hold whole scenarios out. Single conversations are "
        "held out, in scenarios that the model has seen"
    )
    return replace(
        dataset,
        labelled=tuple(replace(row, group=row.conversation.digest[:16]) for row in dataset.labelled),
        preferred=tuple(replace(pair, group=pair.chosen.digest[:16]) for pair in dataset.preferred),
        grouped_by="conversation",
        notes=(*dataset.notes, note),
    )


def _newest(rows: StoredRows, catalog: Catalog, composed: frozenset[tuple[str, str]]) -> str:
    """The maker of the newest reward of the rubric alone; other rewards do not decide."""
    everything = list(_each_once(rows))
    if not everything:
        raise InvalidRequest(f"the store holds no evaluations yet: {_FIRST}")
    usable = [row for row in everything if _usable(row, catalog) and (row.collection, row.scenario) not in composed]
    newest = max(usable, key=lambda row: row.created_at, default=None)
    if newest is None:
        others = _by_version(rows, catalog, composed)
        told = f"; --version takes one of these: {_listed(others)}" if others else f": {_FIRST}"
        raise InvalidRequest(
            f"none of the {len(everything)} stored rows has a reward of the rubric alone in a scenario that is "
            f"on this server{told}"
        )
    return rubric_version(newest.scoring_version)


def _versions_of(row: AnyRow, composed: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    """The versions that stand for a row that was made as its scenario says."""
    if (row.collection, row.scenario) in composed:
        return (row.scoring_version,)
    return (rubric_version(row.scoring_version), row.scoring_version)


def _by_version(rows: StoredRows, catalog: Catalog, composed: frozenset[tuple[str, str]]) -> Counter[str]:
    """The number of rows of each version that could be named."""
    return Counter(_versions_of(row, composed)[0] for row in _each_once(rows) if _usable(row, catalog))


def _usable(row: AnyRow, catalog: Catalog) -> bool:
    return not row.reward_config and catalog.find(row.collection, row.scenario) is not None


def _each_once(rows: StoredRows) -> Iterable[AnyRow]:
    """Each evaluation and comparison once; a compared side that was kept as an evaluation goes with its comparison."""
    yield from (row for row in rows.evaluations if row.source is not EvaluationSource.COMPARE)
    yield from rows.comparisons


def _too_few(usable: int, version: str, versions: Counter[str]) -> str:
    told = (
        f"too little data: {usable or 'no'} usable rows of scoring version {version} in scenarios of this server, at "
    )
    told += f"least {MIN_EXAMPLES} are needed: "
    others = Counter({name: count for name, count in versions.items() if name != version})
    return told + _FIRST + (f", or name another --version: {_listed(others)}" if others else "")


def _listed(counts: Counter[str]) -> str:
    """Names with their counts, the largest first."""
    order = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = ", ".join(f"{name} ({count})" for name, count in order[:_NAMED])
    return shown if len(counts) <= _NAMED else f"{shown} and {len(counts) - _NAMED} more"


def _labelled(row: EvaluationRow, catalog: Catalog) -> Labelled | None:
    conversation = _conversation(row.collection, row.scenario, row.messages, row.agent_role, catalog)
    if conversation is None:
        return None
    scores = {**(row.scores or {}), OVERALL: row.reward}
    return Labelled(conversation, scores, f"{row.collection}/{row.scenario}")


def _sides(row: ComparisonRow, catalog: Catalog) -> list[Labelled | None]:
    group = f"{row.collection}/{row.scenario}"
    sides: list[Labelled | None] = []
    for messages, scores, reward in (
        (row.messages_a, row.scores_a, row.reward_a),
        (row.messages_b, row.scores_b, row.reward_b),
    ):
        conversation = _conversation(row.collection, row.scenario, messages, row.agent_role, catalog)
        if conversation is not None:
            sides.append(Labelled(conversation, {**(scores or {}), OVERALL: reward}, group))
    return sides


def _pair(row: ComparisonRow, catalog: Catalog) -> PreferredPair | None:
    a = _conversation(row.collection, row.scenario, row.messages_a, row.agent_role, catalog)
    b = _conversation(row.collection, row.scenario, row.messages_b, row.agent_role, catalog)
    if a is None or b is None or a.digest == b.digest:
        return None
    chosen, rejected = (a, b) if row.winner == "a" else (b, a)
    return PreferredPair(chosen, rejected, f"{row.collection}/{row.scenario}")


def _conversation(
    collection: str, scenario: str, messages: Sequence[dict[str, object]], agent_role: str, catalog: Catalog
) -> Conversation | None:
    """The conversation that was scored; None where the scenario is gone."""
    entry = catalog.find(collection, scenario)
    if entry is None:
        return None
    role: Role = "user" if agent_role == "user" else "assistant"
    try:
        return conversation_from(messages, role, scenario_text(entry.card))
    except LabsError:
        return None
