"""Data that a reward model is trained on: labelled conversations and preference pairs, split by dialogue.

A split never separates rows of one dialogue, and a conversation that occurs on both sides is taken out of the
training side, so held-out figures are about conversations nobody has seen. Splits depend on the groups' names
and the seed alone, not on the order of the rows.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reward_server.errors import InvalidRequest
from reward_server.reward_models.conversation import Conversation, Reads
from reward_server.reward_models.segments import by_answers, is_answered, read
from scenarios.spelling import counted

OVERALL = "score"
"""The name of the head for the conversation as a whole."""
MIN_EXAMPLES = 30
MIN_GROUPS = 5
MIN_SCENARIOS = 5
"""With fewer scenarios than this, rows without a group are grouped by how the conversation begins."""
NOT_FOR_SCENARIOS = "in a scenario, as the server always scores,"
"""In the note on rows without one, so that it is known again on a card."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A conversation with labels in [0, 1], by head."""

    conversation: Conversation
    scores: Mapping[str, float]
    group: str = ""
    row: int = 0
    ratings: tuple[float, ...] = ()
    """What several raters gave it as a whole, in [0, 1]."""
    system: str = ""
    """Who wrote the agent's words, where the data says so: heads learn to know authors."""


@dataclass(frozen=True, slots=True)
class PreferredPair:
    """Two conversations of which one is preferred, or that tie."""

    chosen: Conversation
    rejected: Conversation
    group: str = ""
    row: int = 0
    weight: float = 1.0
    tie: bool = False
    systems: tuple[str, str] = ("", "")
    """Who wrote the better and the worse side, where the data says so."""


@dataclass(frozen=True)
class Dataset:
    """Rows of both kinds."""

    labelled: tuple[Labelled, ...] = ()
    preferred: tuple[PreferredPair, ...] = ()
    grouped_by: str = "group"
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What was left out on the way, and why."""

    @property
    def heads(self) -> tuple[str, ...]:
        """The overall head, then the dimensions by name."""
        names = {name for row in self.labelled for name in row.scores}
        return (OVERALL, *sorted(names - {OVERALL}))

    @property
    def groups(self) -> frozenset[str]:
        """The groups of all rows."""
        return frozenset(row.group for row in self.rows())

    @property
    def digest(self) -> str:
        """A hash of all rows with their labels and groups, whatever their order."""
        lines = sorted([_line(row) for row in self.labelled] + [_pair_line(pair) for pair in self.preferred])
        found = hashlib.sha256()
        # One after the other: all of them in one text would be as large as the lines once more.
        for number, line in enumerate(lines):
            found.update(f"\n{line}".encode() if number else line.encode())
        return found.hexdigest()

    def rows(self) -> Iterator[Labelled | PreferredPair]:
        """All rows, labelled ones first."""
        yield from self.labelled
        yield from self.preferred

    def conversations(self) -> Iterator[Conversation]:
        """Every conversation, once for each time it occurs."""
        for row in self.labelled:
            yield row.conversation
        for pair in self.preferred:
            yield pair.chosen
            yield pair.rejected

    def only(self, groups: frozenset[str]) -> Dataset:
        """The rows of these groups."""
        return replace(
            self,
            labelled=tuple(row for row in self.labelled if row.group in groups),
            preferred=tuple(pair for pair in self.preferred if pair.group in groups),
        )

    def without(self, known: frozenset[str]) -> Dataset:
        """The rows that hold none of these conversations (by digest)."""
        return replace(
            self,
            labelled=tuple(row for row in self.labelled if row.conversation.digest not in known),
            preferred=tuple(pair for pair in self.preferred if not {pair.chosen.digest, pair.rejected.digest} & known),
        )


@dataclass(frozen=True)
class DatasetSplit:
    """Disjoint parts: weights are learned on one, settings chosen on the second, figures reported on the third."""

    train: Dataset
    validation: Dataset
    held_out: Dataset
    duplicates: int
    """Rows taken out because their conversation also stands in a later part."""


def split(dataset: Dataset, seed: int, held_out: float = 0.2, validation: float = 0.15) -> DatasetSplit:
    """Whole groups into held-out, validation and training parts; `validation` is a share of what is not held out.

    Raises:
        InvalidRequest: there are too few rows or groups to learn and to measure.
    """
    check_enough(dataset)
    outer, _ = _parted(dataset, dataset.groups, held_out, f"held-out/{seed}")
    return hold_out(dataset, outer, seed, validation)


def hold_out(dataset: Dataset, groups: frozenset[str], seed: int, validation: float = 0.15) -> DatasetSplit:
    """The same with the held-out groups named.

    Raises:
        InvalidRequest: a part is empty.
    """
    inner, train = _parted(dataset, dataset.groups - groups, validation, f"validation/{seed}")
    last, middle = dataset.only(groups), dataset.only(inner)
    first = dataset.only(train)
    kept_middle = middle.without(_digests(last))
    kept_first = first.without(_digests(last) | _digests(middle))
    removed = _count(middle) - _count(kept_middle) + _count(first) - _count(kept_first)
    for part, name in ((kept_first, "training"), (kept_middle, "validation"), (last, "held-out")):
        if not _count(part):
            raise InvalidRequest(
                f"the {name} part is empty once conversations that occur twice are taken out: more different "
                "conversations are needed"
            )
    return DatasetSplit(kept_first, kept_middle, last, removed)


def check_enough(dataset: Dataset) -> None:
    """Refuse data where there is too little to learn from and to measure on, or nothing to tell apart."""
    found = _count(dataset)
    if found < MIN_EXAMPLES:
        raise InvalidRequest(f"too little data: {found} usable rows, at least {MIN_EXAMPLES} are needed")
    groups = len(dataset.groups)
    if groups < MIN_GROUPS:
        raise InvalidRequest(
            f"too few dialogues: the rows fall into {counted(groups, 'group')} by {dataset.grouped_by}, at least "
            f"{MIN_GROUPS} are needed to hold some out; name them in a field `group`"
        )
    check_labels_differ(dataset, dataset.heads)


def check_labels_differ(dataset: Dataset, names: Sequence[str] = (OVERALL,)) -> None:
    """Refuse labels that tell nothing apart: `InvalidRequest` where all of one of these heads are the same."""
    for name in names:
        labels = [row.scores[name] for row in dataset.labelled if name in row.scores]
        if labels and min(labels) == max(labels):
            raise InvalidRequest(
                f"all {len(labels)} labels of `{name}` are {labels[0]:g}: there is nothing to tell apart"
            )


def without_constant_dimensions(dataset: Dataset) -> Dataset:
    """Without dimensions that cannot be learned, constant or labelled in too few rows; says so in the notes."""
    labels: dict[str, list[float]] = {}
    for row in dataset.labelled:
        for name, value in row.scores.items():
            labels.setdefault(name, []).append(value)
    dropped = {
        name
        for name, values in labels.items()
        if name != OVERALL and (len(values) < MIN_EXAMPLES or min(values) == max(values))
    }
    if not dropped:
        return dataset
    rows = tuple(
        replace(row, scores={k: v for k, v in row.scores.items() if k not in dropped}) for row in dataset.labelled
    )
    note = f"no head for {', '.join(sorted(dropped))}: fewer than {MIN_EXAMPLES} labels, or all of them equal"
    return replace(dataset, labelled=tuple(row for row in rows if row.scores), notes=(*dataset.notes, note))


def grouped(dataset: Dataset) -> Dataset:
    """Every row in a group: its own, or its scenario, or the conversations that begin alike."""
    given = any(row.group for row in dataset.rows())
    scenarios = Counter(conversation.scenario for conversation in dataset.conversations())
    by_scenario = not given and "" not in scenarios and len(scenarios) >= MIN_SCENARIOS
    kind = "scenario" if by_scenario else "group" if all(row.group for row in dataset.rows()) else "beginning"

    def name(row: Labelled | PreferredPair) -> str:
        conversation = row.conversation if isinstance(row, Labelled) else row.chosen
        return row.group or (conversation.scenario if by_scenario else beginning(conversation))

    return replace(
        dataset,
        labelled=tuple(replace(row, group=name(row)) for row in dataset.labelled),
        preferred=tuple(replace(pair, group=name(pair)) for pair in dataset.preferred),
        grouped_by=kind,
    )


def notes_on_reading(dataset: Dataset, reads: Reads) -> Iterator[str]:
    """Notes where rows cannot be told apart by what is read of them (`segments`)."""
    unanswered = sum(
        by_answers(row.conversation, reads) and not is_answered(row.conversation) for row in dataset.labelled
    )
    if unanswered:
        yield (
            f"{unanswered} of {len(dataset.labelled)} labelled conversations have a scenario and no answer to the "
            "agent, so nothing in them can earn; with --reads words the agent's own words count, too"
        )
    alike = sum(bool(pair.chosen.scenario) and _read_alike(pair, reads) for pair in dataset.preferred)
    if alike:
        yield (
            f"{alike} of {len(dataset.preferred)} pairs teach "
            + (
                "little: in a scenario an agent earns by the answers it gets, and both sides have the same; its own "
                "words can only cost (with --reads words they can earn, too)"
                if reads == "answers"
                else "nothing: what is read of both sides is the same"
            )
        )


def notes_on_scenarios(dataset: Dataset, reads: Reads) -> Iterator[str]:
    """A note where rows come without a scenario, and so teach little or nothing for conversations in one."""
    rows = list(dataset.rows())
    without = sum(not (row.conversation if isinstance(row, Labelled) else row.chosen).scenario for row in rows)
    if not without:
        return
    every = without == len(rows)
    which = "no row has a `scenario`" if every else f"{without} of {len(rows)} rows have no `scenario`"
    lacking = "this model knows" if every else "they teach"
    answers = " and of the answers that agents earn by" if reads == "answers" else ""
    yield f"{which}: {NOT_FOR_SCENARIOS} {lacking} nothing of the task{answers}; give rows their `scenario`"


def _read_alike(pair: PreferredPair, reads: Reads) -> bool:
    return read(pair.chosen, reads) == read(pair.rejected, reads)


def beginning(conversation: Conversation) -> str:
    """The text that conversations of one dialogue share: before the agent first speaks, else the agent's first."""
    texts: list[str] = []
    for said in conversation.turns:
        if said.party == "agent" and texts:
            break
        texts.append(said.text)
        if said.party == "agent":
            break
    return hashlib.sha256("\0".join([conversation.scenario, *texts]).encode("utf-8", "replace")).hexdigest()[:16]


def fair_label(value: object, low: float, high: float) -> float:
    """A label as a number in [0, 1], from the scale low..high.

    Raises:
        ValueError: it is no finite number, or lies outside the scale.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("is not a number")  # noqa: TRY004 (one outcome for all that is wrong with a label)
    if not math.isfinite(value):
        raise ValueError("is not a finite number")
    if not low <= value <= high:
        hint = "; give the scale as --scale LOW HIGH" if (low, high) == (0.0, 1.0) else ""
        raise ValueError(f"is outside {low:g} to {high:g}{hint}")
    return (value - low) / (high - low)


def _parted(dataset: Dataset, groups: Iterable[str], share: float, salt: str) -> tuple[frozenset[str], frozenset[str]]:
    """Groups drawn until they hold the share of the rows, and the others; neither is empty."""
    order = sorted(groups, key=lambda group: hashlib.sha256(f"{salt}/{group}".encode()).digest())
    sizes = Counter(row.group for row in dataset.rows())
    wanted = share * sum(sizes[group] for group in order)
    drawn: list[str] = []
    held = 0
    for group in order[:-1]:
        # A group far larger than what is still wanted would leave too little to learn from.
        if drawn and held + sizes[group] / 2 > wanted:
            continue
        drawn.append(group)
        held += sizes[group]
        if held >= wanted:
            break
    return frozenset(drawn), frozenset(order) - frozenset(drawn)


def _digests(dataset: Dataset) -> frozenset[str]:
    return frozenset(conversation.digest for conversation in dataset.conversations())


def _count(dataset: Dataset) -> int:
    return len(dataset.labelled) + len(dataset.preferred)


def _line(row: Labelled) -> str:
    return json.dumps([row.conversation.digest, sorted(row.scores.items()), row.group, row.ratings])


def _pair_line(pair: PreferredPair) -> str:
    return json.dumps([pair.chosen.digest, pair.rejected.digest, pair.weight, pair.tie, pair.group])


def groups_of(rows: Sequence[Labelled | PreferredPair]) -> list[str]:
    """The group of each row, for intervals that resample whole groups."""
    return [row.group for row in rows]
