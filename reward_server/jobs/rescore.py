"""Jobs of type `rescore`: stored evaluations and episodes are scored again by the version that scores now.

What is stored stays as it is: a result says what the reward was, what it would be, and by which versions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from pydantic_core import to_json

from reward_server.access import collections_asked_for, scenario_for
from reward_server.auth.lab import Lab
from reward_server.episodes import machine
from reward_server.episodes.scores import request_of
from reward_server.errors import EpisodeNotFound, EvaluationNotFound, InvalidRequest, LabsError, NothingToScore
from reward_server.jobs.evaluate import check_scenario
from reward_server.jobs.kinds import JobItem, LineReader, Record, Work, failed_by, record_alone, succeeded
from reward_server.scoring.config import read_config
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import Scorer
from reward_server.store.job_records import ItemOutcome
from reward_server.store.records import EvaluationRow, JsonObject
from reward_server.store.store import Store
from reward_server.transcripts.weight import MESSAGE, weight
from scenarios.library import Catalog
from trainer_client.wire import Message, RewardConfig, Role, normalised_length

MOST = 100_000
SOURCE = "Say what to score again: `source` (episodes or evaluations), items, or a file."


@dataclass(frozen=True)
class _Pair:
    """A reward as it was given, and as it would be."""

    where: JsonObject
    before: JsonObject
    after: JsonObject

    def shown(self) -> JsonObject:
        was, now = self.before["reward"], self.after["reward"]
        return {**self.where, "before": self.before, "after": self.after, "delta": round(now - was, 4) + 0.0}


class RescoreItems:
    """Scores what is stored again."""

    slice_size = 16
    whole = None

    def __init__(self, scorer: Scorer, catalog: Catalog, lines: LineReader, store: Store) -> None:
        self._scorer = scorer
        self._catalog = catalog
        self._lines = lines
        self._store = store

    async def check(self, lab: Lab, params: JsonObject) -> None:
        """Refuse a scenario that is not there."""
        check_scenario(lab, self._catalog, params)

    def check_input(self, _params: JsonObject) -> None:
        """Items may come beside a source, which is ignored then."""

    async def collect(self, lab: Lab, params: JsonObject) -> AsyncIterator[bytes]:
        """The evaluations to score again that the key may use, as lines; `InvalidRequest` without a source."""
        source = params.get("source")
        if source is None:
            raise InvalidRequest(SOURCE)
        collections = collections_asked_for(lab, params.get("collection_slug"))
        async with self._store.reading() as unit:
            repository = unit.episodes if source == "episodes" else unit.evaluations
            scenario = params.get("scenario_slug")
            found = await repository.ids(lab.lab_id, MOST, collections=collections, scenario=scenario)
        name = "episode_id" if source == "episodes" else "evaluation_id"
        for each in found:
            yield to_json({name: each}) + b"\n"

    async def run(self, work: Work, items: Sequence[JobItem], record: Record) -> None:
        """Score these again, and record what changed."""
        outcomes: list[ItemOutcome] = []
        for item in items:
            try:
                outcomes.append(succeeded(item.index, (await self._again(work, item)).shown()))
            except LabsError as error:
                outcomes.append(failed_by(item.index, error))
        await record_alone(self._store, record, outcomes)

    async def _again(self, work: Work, item: JobItem) -> _Pair:
        _, content = await self._lines.named(item)
        if isinstance(content.get("episode_id"), str):
            return await self._episode(work, content["episode_id"])
        if isinstance(content.get("evaluation_id"), str):
            return await self._evaluation(work, content["evaluation_id"])
        raise InvalidRequest("An item needs an episode_id or an evaluation_id.")

    async def _evaluation(self, work: Work, evaluation_id: str) -> _Pair:
        lab = work.lab
        async with self._store.reading() as unit:
            row = await unit.evaluations.get(lab.lab_id, evaluation_id)
        if row is None:
            raise EvaluationNotFound
        scenario_for(lab, self._catalog, row.collection, row.scenario)
        messages = [Message.model_validate(message) for message in row.messages]
        [outcome] = await self._scorer.score([await self._request(row, messages)])
        scored = or_raise(outcome)
        work.read(sum(map(weight, messages)))
        where = {"evaluation_id": evaluation_id, **_where(row.collection, row.scenario)}
        before = _reward(row.reward, row.scores, row.scoring_version)
        return _Pair(where, before, _reward(scored.reward, dict(scored.scores), scored.scoring_version))

    async def _request(self, row: EvaluationRow, messages: Sequence[Message]) -> ScoreRequest:
        role: Role = "user" if row.agent_role == "user" else "assistant"
        transcript = await self._scorer.read_off_the_loop(row.collection, row.scenario, messages, role)
        # A calibration only shows a reward on another scale.
        given = {name: value for name, value in (row.reward_config or {}).items() if name != "calibration"}
        config = read_config(RewardConfig.model_validate(given) if given else None)
        return ScoreRequest(row.collection, row.scenario, transcript, config, row.lab_id)

    async def _episode(self, work: Work, episode_id: str) -> _Pair:
        lab = work.lab
        async with self._store.reading() as unit:
            row = await unit.episodes.get(lab.lab_id, episode_id)
            turns = await unit.episodes.turns(lab.lab_id, episode_id)
        if row is None:
            raise EpisodeNotFound
        scenario_for(lab, self._catalog, row.collection, row.scenario)
        if not turns or not row.score_turns:
            raise NothingToScore("No turn of this episode was scored.")
        last = turns[-1]
        log = machine.log_of(row, turns)
        request = await asyncio.to_thread(request_of, self._scorer, row, log, None)
        [outcome] = await self._scorer.score([request])
        scored = or_raise(outcome)
        work.read(sum(MESSAGE + normalised_length(line.content) for line in log))
        where = {"episode_id": episode_id, **_where(row.collection, row.scenario)}
        before = _reward(last.reward, last.scores, last.answer.get("scoring_version", ""))
        return _Pair(where, before, _reward(scored.reward, dict(scored.scores), scored.scoring_version))


def _where(collection: str, scenario: str) -> JsonObject:
    return {"collection_slug": collection, "scenario_slug": scenario}


def _reward(reward: float, scores: dict[str, float] | None, version: str) -> JsonObject:
    return {"reward": reward, **({"scores": scores} if scores else {}), "scoring_version": version}
