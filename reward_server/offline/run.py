"""Scores the conversations of rows, through the same scorer as the API.

A bad row is a result with an error and no reward; it never stops the run. Results do not depend on batches,
on order, or on how often the run was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from reward_server.errors import InvalidRequest, JudgeFailed, LabsError
from reward_server.offline.formats import ANYONE, BadRow, NoAgent, RowConversation, Speakers, convert
from reward_server.offline.recast import RecordedAgentPlayer
from reward_server.offline.results import Result, result_key
from reward_server.offline.rows import InputRow
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.scorer import Scorer
from scenarios.library import SealedScenario
from trainer_client.wire import Message

BATCH = 48

SAY_WHO = "say who the agent is: --agent-role or --agent-speaker"


@dataclass(frozen=True)
class ScoringTask:
    """The way in which the rows of a file are to be read and scored."""

    collection: str | None
    scenario: str | None
    format: str = "auto"
    speakers: Speakers = ANYONE
    rubric: SealedScenario | None = None
    """What all rows are judged by, whatever scenario they name."""


@dataclass(frozen=True)
class RowItem:
    """One conversation on its way: what names it, and a request or the reason why there is none."""

    base: Result
    request: ScoreRequest | None = None
    code: str = ""
    message: str = ""


class RowScoring:
    """From rows to results; knows of no file."""

    def __init__(self, scorer: Scorer, task: ScoringTask, recast: RecordedAgentPlayer | None = None) -> None:
        self._scorer = scorer
        self._recast = recast
        self._task = task
        if task.rubric is not None:
            self._task = replace(task, rubric=scorer.lend(task.rubric))

    @property
    def scoring_version(self) -> str:
        """The version that the rewards rest on."""
        rubric = self._task.rubric
        return self._scorer.version_for(rubric.collection, rubric.card.slug) if rubric else self._scorer.scoring_version

    async def score(self, batch: Sequence[RowItem]) -> list[Result]:
        """A result for each, in order."""
        requests = [item.request for item in batch if item.request is not None]
        outcomes = iter(await self._scorer.score(requests) if requests else [])
        return [self._result(item, next(outcomes) if item.request else None) for item in batch]

    def items(self, row: InputRow) -> Iterator[RowItem]:
        """The conversations of a row."""
        collection, scenario = self._scenario(row.data)
        try:
            conversations = self._read(row)
        except BadRow as error:
            base = {"key": result_key(row.number, "", collection, scenario, []), "row": row.number, **own_id(row.data)}
            yield RowItem(base, code="bad_row", message=str(error))
            return
        for conversation in conversations:
            yield self._item(row, conversation, collection, scenario)

    def _read(self, row: InputRow) -> list[RowConversation]:
        if row.problem:
            raise BadRow(row.problem)
        try:
            return list(convert(row.data, self._task.format, self._task.speakers))
        except NoAgent as error:
            raise BadRow(f"{error} ({SAY_WHO})") from None

    def _scenario(self, data: Any) -> tuple[str | None, str | None]:
        """The scenario of a row: its own, or the one of the command; a rubric of the command comes before both."""
        if self._task.rubric is not None:
            return self._task.rubric.collection, self._task.rubric.card.slug
        own: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        collection, scenario = own.get("collection_slug"), own.get("scenario_slug")
        if isinstance(collection, str) and isinstance(scenario, str):
            return collection, scenario
        return self._task.collection, self._task.scenario

    def _item(self, row: InputRow, talk: RowConversation, collection: str | None, scenario: str | None) -> RowItem:
        part = f"{talk.part}, answered by the persona" if self._recast else talk.part
        base: Result = {"key": result_key(row.number, part, collection, scenario, talk.messages)}
        base |= {"row": row.number, "collection_slug": collection, "scenario_slug": scenario}
        if talk.part:
            base["part"] = talk.part
        base |= own_id(row.data)
        if collection is None or scenario is None:
            return RowItem(
                base, code="no_scenario", message="give --collection and --scenario, or name them in the row"
            )
        try:
            transcript = self._scorer.read(collection, scenario, _messages(talk), "assistant")
            if self._recast is not None:
                transcript = self._recast.answered(collection, scenario, transcript)
        except LabsError as error:
            return RowItem(base, code=error.code, message=error.message)
        return RowItem({**base, "turns": len(transcript.turns)}, ScoreRequest(collection, scenario, transcript))

    def _result(self, item: RowItem, outcome: Scored | Unscored | None) -> Result:
        if isinstance(outcome, Scored):
            return {
                **item.base,
                "status": "success",
                "reward": outcome.reward,
                "scores": dict(outcome.scores),
                "flags": list(outcome.flags),
                "capped_by": list(outcome.capped_by),
                "scoring_version": outcome.scoring_version,
                **({} if self._task.rubric is None else _undecided(outcome)),
            }
        if outcome is None:
            return {**item.base, "status": "error", "code": item.code, "message": item.message}
        cause = {"cause": outcome.error.kind} if isinstance(outcome.error, JudgeFailed) else {}
        return {**item.base, "status": "error", "code": outcome.code, **cause, "message": outcome.message}


def _undecided(outcome: Scored) -> Result:
    """What of a rubric that came with the command nobody could decide, and what came of that."""
    return {
        "undecided": list(outcome.abstained),
        "undecided_caps": list(outcome.undecided_caps),
        "left_out": list(outcome.left_out),
    }


def own_id(data: Any) -> Result:
    """The id that a row brings along, if it brings one."""
    if isinstance(data, Mapping) and isinstance(data.get("id"), str | int):
        return {"id": data["id"]}
    return {}


def _messages(talk: RowConversation) -> list[Message]:
    """The messages as the API would accept them, or `InvalidRequest`."""
    if any("\x00" in message["content"] for message in talk.messages):
        raise InvalidRequest("Text must not contain NUL characters.")
    try:
        return [Message.model_validate(message) for message in talk.messages]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidRequest(f"message field {where}: {first['msg']}") from None
