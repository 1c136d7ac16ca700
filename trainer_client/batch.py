"""Results of the batch calls: one outcome for the whole list, however many requests it took.

An item that was not scored is a `FailedItem`: it has a reason and no reward, and asking it for one
raises. Nothing here averages over failures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from trainer_client.calls import ItemLike, TurnLike
from trainer_client.errors import LabsError, MalformedAnswer, Unscored
from trainer_client.wire import (
    MAX_BATCH_ITEMS,
    BatchError,
    BatchItem,
    BatchResponse,
    BatchTurnsResponse,
    EvaluationMetadata,
    FailedTurn,
    PlayedTurn,
    TurnItem,
    Window,
)

T = TypeVar("T")


@dataclass(frozen=True)
class ScoredItem:
    """An item with a reward."""

    id: str
    evaluation_id: str
    reward: float
    scoring_version: str
    metadata: EvaluationMetadata
    scores: dict[str, float] | None = None
    score_breakdown: dict[str, str] | None = None
    normalized: dict[str, Window] | None = None


@dataclass(frozen=True)
class FailedItem:
    """An item without a reward, and why."""

    id: str
    code: str
    message: str

    @property
    def reward(self) -> NoReturn:
        """Raises: there is none."""
        raise Unscored(f"Item {self.id!r} was not scored: {self.message}", code=self.code)


@dataclass(frozen=True)
class BatchOutcome:
    """Results in the order of the items."""

    results: tuple[ScoredItem | FailedItem, ...]
    total_time_ms: float
    scoring_versions: frozenset[str] = field(default_factory=frozenset)

    def __iter__(self) -> Iterator[ScoredItem | FailedItem]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> ScoredItem | FailedItem:
        return self.results[index]

    @property
    def scored(self) -> tuple[ScoredItem, ...]:
        """Those with a reward."""
        return tuple(item for item in self.results if isinstance(item, ScoredItem))

    @property
    def failed(self) -> tuple[FailedItem, ...]:
        """Those without."""
        return tuple(item for item in self.results if isinstance(item, FailedItem))

    @property
    def scoring_version(self) -> str:
        """The version all rewards share; raises if the server changed its scoring half-way."""
        if len(self.scoring_versions) != 1:
            found = ", ".join(sorted(self.scoring_versions)) or "none"
            raise Unscored(f"The rewards share no scoring version (found: {found}).", code="mixed_scoring_versions")
        return next(iter(self.scoring_versions))


@dataclass(frozen=True)
class BatchPart:
    """One request's share of a batch: its items, and what came of them."""

    items: Sequence[ItemLike]
    answer: BatchResponse | LabsError


def split(items: Sequence[T], size: int = MAX_BATCH_ITEMS) -> list[Sequence[T]]:
    """Cut into requests the server accepts."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def halves(items: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """For a request that was too large although its items were few."""
    middle = len(items) // 2
    return items[:middle], items[middle:]


def join(parts: Sequence[BatchPart]) -> BatchOutcome:
    """Put the parts together. A part that failed for good yields failed items, unless none succeeded."""
    failures = [part.answer for part in parts if isinstance(part.answer, LabsError)]
    if failures and len(failures) == len(parts):
        raise failures[0]
    results = [result for part in parts for result in _results(part)]
    answers = [part.answer for part in parts if isinstance(part.answer, BatchResponse)]
    return BatchOutcome(
        results=tuple(results),
        total_time_ms=sum(answer.total_time_ms for answer in answers),
        scoring_versions=frozenset(answer.scoring_version for answer in answers),
    )


@dataclass(frozen=True)
class TurnsPart:
    """One request's share of many turns, and what came of them."""

    items: Sequence[TurnLike]
    answer: BatchTurnsResponse | LabsError


def join_turns(parts: Sequence[TurnsPart]) -> list[PlayedTurn | FailedTurn]:
    """Put the parts together. A part that failed for good yields failed turns, unless none succeeded."""
    failures = [part.answer for part in parts if isinstance(part.answer, LabsError)]
    if failures and len(failures) == len(parts):
        raise failures[0]
    return [result for part in parts for result in _turns(part)]


def _turns(part: TurnsPart) -> Iterator[PlayedTurn | FailedTurn]:
    answer = part.answer
    names = [item.episode_id if isinstance(item, TurnItem) else str(item["episode_id"]) for item in part.items]
    if isinstance(answer, LabsError):
        yield from (FailedTurn(episode_id=name, message=answer.message, code=answer.code) for name in names)
        return
    if [result.episode_id for result in answer.results] != names:
        raise MalformedAnswer("The server answered other episodes than were sent.", code="malformed_answer")
    yield from answer.results


def _results(part: BatchPart) -> Iterator[ScoredItem | FailedItem]:
    if isinstance(part.answer, LabsError):
        for item in part.items:
            yield FailedItem(id=_id_of(item), code=part.answer.code, message=part.answer.message)
        return
    if len(part.answer.results) != len(part.items):
        raise MalformedAnswer("The server answered another number of items than were sent.", code="malformed_answer")
    for result in part.answer.results:
        if isinstance(result, BatchError):
            yield FailedItem(id=result.id, code=result.code, message=result.message)
        else:
            yield ScoredItem(
                id=result.id,
                evaluation_id=result.evaluation_id,
                reward=result.reward,
                scoring_version=part.answer.scoring_version,
                metadata=result.metadata,
                scores=result.scores,
                score_breakdown=result.score_breakdown,
                normalized=result.normalized,
            )


def _id_of(item: ItemLike) -> str:
    return item.id if isinstance(item, BatchItem) else str(item.get("id", ""))
