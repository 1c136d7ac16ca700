"""Requests about many episodes, and the answers to them: pure."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

from reward_server.auth.idempotency import Body
from reward_server.episodes.turns import TurnStep
from reward_server.errors import FieldProblem, InvalidRequest, LabsError, in_a_line
from trainer_client.wire import BatchEpisodesRequest, CreateEpisodeRequest, TurnItem

TWICE = "Is the episode of an earlier item; a batch takes one turn of each."
EITHER = "Give either items, or collection_slug and scenario_slug with a count."


@dataclass(frozen=True)
class InvalidTurn:
    """An item that names its episode and is no turn."""

    episode_id: str
    sent: object
    """The item as it came, for telling equal requests."""
    error: LabsError


TurnEntry = TurnItem | InvalidTurn


def content_of(items: Sequence[TurnEntry]) -> object:
    """The part of a request that makes it equal to another."""
    return "batch/turns", [item.model_dump() if isinstance(item, TurnItem) else item.sent for item in items]


def entries_of(items: Sequence[TurnEntry]) -> list[TurnStep | InvalidTurn]:
    """The items as steps; a second turn of one episode is refused."""
    entries: list[TurnStep | InvalidTurn] = []
    seen: set[str] = set()
    for item in items:
        if isinstance(item, InvalidTurn):
            entries.append(item)
            continue
        step = TurnStep(item.episode_id, item)
        if item.episode_id in seen:
            step.outcome = InvalidRequest(errors=[FieldProblem(("episode_id",), TWICE)])
        seen.add(item.episode_id)
        entries.append(step)
    return entries


def results_of(entries: Sequence[TurnStep | InvalidTurn]) -> Body:
    """The answer to a batch: results in the order of the items."""
    return {"results": [_result(entry) for entry in entries]}


def _result(entry: TurnStep | InvalidTurn) -> Body:
    if isinstance(entry, InvalidTurn):
        return _failed(entry.episode_id, entry.error)
    if isinstance(entry.outcome, dict):
        return {"episode_id": entry.episode_id, "status": "success", **entry.outcome}
    return _failed(entry.episode_id, entry.outcome or LabsError())


def _failed(episode_id: str, error: LabsError) -> Body:
    return {"episode_id": episode_id, "status": "error", "message": in_a_line(error), "code": error.code}


def of_item(error: LabsError, index: int) -> LabsError:
    """The same error, which says the item it is of."""
    told = copy(error)
    if isinstance(told, InvalidRequest) and told.errors:
        told.errors = tuple(FieldProblem(("items", index, *each.loc), each.msg) for each in told.errors)
    else:
        told.message = f"items.{index}: {error.message}"
    return told


def episodes_of(request: BatchEpisodesRequest) -> list[CreateEpisodeRequest]:
    """The episodes that are asked for, one by one."""
    if request.items is not None:
        if request.count is not None or request.collection_slug is not None or request.scenario_slug is not None:
            raise InvalidRequest(errors=[FieldProblem(("items",), EITHER)])
        return request.items
    if request.count is None or request.collection_slug is None or request.scenario_slug is None:
        raise InvalidRequest(errors=[FieldProblem((), EITHER)])
    one = CreateEpisodeRequest(
        collection_slug=request.collection_slug,
        scenario_slug=request.scenario_slug,
        score_turns=request.score_turns,
        config=request.config,
        reward_config=request.reward_config,
    )
    return [one] * request.count
