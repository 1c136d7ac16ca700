"""Scores finished conversations: one, a batch, or two side by side; keeps them; answers.

Every door ends in one `Scorer.score` call, so a conversation gets the same reward alone and in a
batch. What could not be scored is an error, never a number. Stored and answered in one transaction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from reward_server.access import for_key
from reward_server.auth.idempotency import Body, Idempotency, Keep
from reward_server.auth.lab import Lab
from reward_server.clock import Clock
from reward_server.errors import EvaluationNotFound, FieldProblem, Forbidden, LabsError, NothingToScore
from reward_server.evaluations import documents
from reward_server.evaluations.calibrated import Calibrator
from reward_server.evaluations.places import Place, Places, may_read
from reward_server.evaluations.windows import Standing, WindowReader
from reward_server.ids import IdPrefix, is_id, new_comparison_id, new_evaluation_id
from reward_server.scoring.compare import compare
from reward_server.scoring.config import read_config, without_calibration
from reward_server.scoring.given import GivenRubrics
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored, or_raise
from reward_server.scoring.scorer import Scorer
from reward_server.scoring.tie_breaker import TieBreaker
from reward_server.store.records import ComparisonRow, EvaluationRow, EvaluationSource
from reward_server.store.store import Store
from reward_server.store.unit_of_work import UnitOfWork
from reward_server.telemetry.metrics import Metrics
from reward_server.webhooks.events import WebhookEvent, announce
from scenarios.library import Catalog
from trainer_client.wire import BatchItem, CompareRequest, EvaluateRequest, Message


@dataclass(frozen=True)
class InvalidEntry:
    """A batch item that is not even a request."""

    id: str
    error: LabsError


BatchEntry = BatchItem | InvalidEntry


@dataclass(frozen=True)
class _Evaluated:
    """A scored request and the row that keeps it."""

    request: EvaluateRequest
    scored: Scored
    row: EvaluationRow
    place: Place
    calibrated: Body


_Outcome = _Evaluated | LabsError


class EvaluationService:
    """All that can be done with finished conversations."""

    def __init__(
        self,
        *,
        store: Store,
        catalog: Catalog,
        scorer: Scorer,
        idempotency: Idempotency,
        clock: Clock,
        metrics: Metrics,
        calibrator: Calibrator,
        rubrics: GivenRubrics,
        tie_breaker: TieBreaker | None = None,
    ) -> None:
        self._store = store
        self._scorer = scorer
        self._idempotency = idempotency
        self._clock = clock
        self._metrics = metrics
        self._calibrator = calibrator
        self._tie_breaker = tie_breaker
        self._places = Places(catalog, rubrics)
        self._windows = WindowReader(store, clock)

    async def evaluate(self, lab: Lab, request: EvaluateRequest, key: str | None) -> Body:
        """Score one conversation."""
        await self._calibrator.fetch([request.reward_config])
        prepared = await self._prepare(lab, request)
        work = partial(self._evaluate, lab, request, prepared)
        body = await self._idempotency.answer(
            lab, key, lambda: ("evaluate", request.model_dump()), work, outlives=False
        )
        return for_key(lab, body)

    async def get(self, lab: Lab, evaluation_id: str) -> Body:
        """An evaluation of this lab, as it was answered."""
        if not is_id(evaluation_id, IdPrefix.EVALUATION):
            raise EvaluationNotFound
        async with self._store.reading() as unit:
            row = await unit.evaluations.get(lab.lab_id, evaluation_id)
        if row is None:
            raise EvaluationNotFound
        if not may_read(lab, row.collection):
            raise Forbidden("This API key has no access to the collection of this evaluation.")
        return for_key(lab, documents.stored(row))

    async def batch(self, lab: Lab, entries: Sequence[BatchEntry], content: object, key: str | None) -> Body:
        """Score many; `content` is the body they were read from."""
        work = partial(self._batch, lab, entries)
        body = await self._idempotency.answer(lab, key, lambda: ("batch", content), work, outlives=False)
        return {**body, "results": [for_key(lab, result) for result in body["results"]]}

    async def compare_for_a_job(self, lab: Lab, request: CompareRequest, keep: Keep) -> Body:
        """Two conversations of an item of a job, which records it with `keep`."""
        return await self._compare(lab, request, await self._sides(lab, request), keep)

    async def _sides(self, lab: Lab, request: CompareRequest) -> list[ScoreRequest]:
        place = self._places.of(lab, request)
        without_calibration(read_config(request.reward_config))
        sides = []
        for name, side in (("response_a", request.response_a), ("response_b", request.response_b)):
            try:
                sides.append(await self._score_request(lab, request, place, side.messages))
            except NothingToScore as error:
                raise NothingToScore(errors=[FieldProblem((name, "messages"), error.message)]) from None
        return sides

    async def batch_for_a_job(self, lab: Lab, entries: Sequence[BatchEntry], keep: Keep) -> Body:
        """The same for a slice of a job, which records its items with `keep`; for every key of the lab as it is."""
        return await self._batch(lab, entries, keep, EvaluationSource.JOB)

    async def compare(self, lab: Lab, request: CompareRequest, key: str | None) -> Body:
        """Score two conversations of one scenario."""
        work = partial(self._compare, lab, request, await self._sides(lab, request))
        body = await self._idempotency.answer(lab, key, lambda: ("compare", request.model_dump()), work, outlives=False)
        return for_key(lab, body)

    # --- one and many ---------------------------------------------------------------------------

    async def _evaluate(self, lab: Lab, request: EvaluateRequest, prepared: ScoreRequest, keep: Keep) -> Body:
        started = time.perf_counter()
        standing = await self._windows.read(lab.lab_id, [request])
        [outcome] = await self._score_all(lab, [request], [prepared], EvaluationSource.EVALUATE)
        if isinstance(outcome, LabsError):
            raise outcome
        body = self._body(outcome, standing, _ms(started))

        async def store(unit: UnitOfWork) -> None:
            await unit.evaluations.add_many([replace(outcome.row, answer=body)])
            await keep(unit, body)

        await self._store.write(store)
        return body

    async def _batch(
        self, lab: Lab, entries: Sequence[BatchEntry], keep: Keep, source: EvaluationSource = EvaluationSource.BATCH
    ) -> Body:
        started = time.perf_counter()
        requests = [entry for entry in entries if isinstance(entry, BatchItem)]
        await self._calibrator.fetch(request.reward_config for request in requests)
        standing = await self._windows.read(lab.lab_id, requests)
        prepared = [await self._attempt(lab, request) for request in requests]
        scored = await self._score_all(lab, requests, prepared, source)
        outcomes = dict(zip((request.id for request in requests), scored, strict=True))
        elapsed = _ms(started)
        results: list[Body] = []
        rows: list[EvaluationRow] = []
        for entry in entries:
            outcome = entry.error if isinstance(entry, InvalidEntry) else outcomes[entry.id]
            if isinstance(outcome, LabsError):
                results.append(documents.failed_item(entry.id, outcome))
            else:
                # One call scored them all: an equal share each is the honest time of one.
                item = self._body(outcome, standing, round(elapsed / len(requests), 3))
                results.append({"id": entry.id, "status": "success", **item})
                rows.append(replace(outcome.row, answer=item))
        # One call scored them all, with one version; where it scored none, the present one is as good as any.
        versions = [outcome.scored.scoring_version for outcome in outcomes.values() if isinstance(outcome, _Evaluated)]
        version = versions[0] if versions else self._scorer.scoring_version
        body: Body = {"results": results, "scoring_version": version, "total_time_ms": elapsed}
        told = {
            "items": len(entries),
            "scored": len(rows),
            "failed": len(entries) - len(rows),
            "scoring_version": version,
        }

        async def store(unit: UnitOfWork) -> None:
            await unit.evaluations.add_many(rows)
            if source is EvaluationSource.BATCH:
                await announce(unit, lab.lab_id, WebhookEvent.BATCH_FINISHED, told, self._clock.now())
            await keep(unit, body)

        await self._store.write(store)
        return body

    async def _score_all(
        self,
        lab: Lab,
        requests: Sequence[EvaluateRequest],
        prepared: Sequence[ScoreRequest | LabsError],
        source: EvaluationSource,
    ) -> list[_Outcome]:
        scored = iter(await self._scorer.score([each for each in prepared if isinstance(each, ScoreRequest)]))
        # A microsecond apart: "the last n" has to know which item of a batch came last.
        now = self._clock.now()
        moments = (now + timedelta(microseconds=index) for index in range(len(requests)))
        return [
            each if isinstance(each, LabsError) else self._evaluated(lab, request, each, next(scored), source, moment)
            for request, each, moment in zip(requests, prepared, moments, strict=True)
        ]

    async def _attempt(self, lab: Lab, request: EvaluateRequest) -> ScoreRequest | LabsError:
        await asyncio.sleep(0)  # a batch is long to prepare: others may have the loop in between
        try:
            return await self._prepare(lab, request)
        except LabsError as error:
            return error

    async def _prepare(self, lab: Lab, request: EvaluateRequest) -> ScoreRequest:
        """All that can be wrong with a request is found here."""
        place = self._places.of(lab, request)
        self._windows.check(request)
        return await self._score_request(lab, request, place, request.messages)

    async def _score_request(
        self, lab: Lab, request: EvaluateRequest | CompareRequest, place: Place, messages: Sequence[Message]
    ) -> ScoreRequest:
        config = read_config(request.reward_config)
        if config.calibration is not None:
            self._calibrator.check(*place.names, config, self._scorer.version_for(*place.names))
        self._scorer.check(config)
        transcript = await self._scorer.read_off_the_loop(*place.names, messages, request.agent_role)
        return ScoreRequest(*place.names, transcript, config, lab.lab_id, place.lent)

    def _evaluated(  # noqa: PLR0917 (what a stored evaluation is made of)
        self,
        lab: Lab,
        request: EvaluateRequest,
        prepared: ScoreRequest,
        outcome: Scored | Unscored,
        source: EvaluationSource,
        moment: datetime,
    ) -> _Outcome:
        if isinstance(outcome, Unscored):
            return outcome.error
        try:
            calibrated = self._calibrator.shown(request.reward_config, outcome)
        except LabsError as error:  # another model was activated, or the file went, while this was scored
            return error
        self._metrics.evaluations.labels(source.value).inc()
        place = self._places.scored(lab, prepared)
        row = EvaluationRow(
            evaluation_id=new_evaluation_id(),
            lab_id=lab.lab_id,
            collection=place.collection,
            scenario=place.scenario,
            reward=outcome.reward,
            scores=dict(outcome.scores),
            scoring_version=outcome.scoring_version,
            normalization_key=request.normalization_key,
            messages=documents.messages(request.messages),
            agent_role=request.agent_role,
            reward_config=documents.reward_config(request.reward_config),
            verdicts=documents.verdicts(outcome),
            source=source,
            created_at=moment,
        )
        return _Evaluated(request, outcome, row, place, calibrated)

    def _body(self, outcome: _Evaluated, standing: Standing, elapsed_ms: float) -> Body:
        metadata: Body = {
            "scenario_name": outcome.place.title,
            "evaluation_time_ms": elapsed_ms,
            "judge": "+".join(outcome.scored.judges) or self._scorer.judge,
        }
        if outcome.scored.uncertainty is not None:
            metadata["uncertainty"] = outcome.scored.uncertainty
        metadata |= outcome.calibrated
        if outcome.place.lent is not None:
            metadata["undecided"] = list(outcome.scored.abstained)
        return documents.evaluation(outcome.row.evaluation_id, outcome.request, outcome.scored, standing, metadata)

    # --- two side by side -----------------------------------------------------------------------

    async def _compare(self, lab: Lab, request: CompareRequest, sides: Sequence[ScoreRequest], keep: Keep) -> Body:
        a, b = (or_raise(outcome) for outcome in await self._scorer.score(sides))
        verdict = compare(a.reward, b.reward)
        winner = verdict.winner
        if winner == "tie" and self._tie_breaker is not None:
            winner = await self._tie_breaker.winner(*sides)
        row = ComparisonRow(
            comparison_id=new_comparison_id(),
            lab_id=lab.lab_id,
            collection=sides[0].collection,
            scenario=sides[0].scenario,
            winner=winner,
            reward_a=a.reward,
            reward_b=b.reward,
            margin=verdict.margin,
            scores_a=dict(a.scores),
            scores_b=dict(b.scores),
            scoring_version=a.scoring_version,
            agent_role=request.agent_role,
            reward_config=documents.reward_config(request.reward_config),
            messages_a=documents.messages(request.response_a.messages),
            messages_b=documents.messages(request.response_b.messages),
            verdicts_a=documents.verdicts(a),
            verdicts_b=documents.verdicts(b),
            created_at=self._clock.now(),
        )
        body = documents.comparison(row) | {"capped_by_a": list(a.capped_by), "capped_by_b": list(b.capped_by)}
        if sides[0].lent is not None:
            body["undecided"] = list(dict.fromkeys((*a.abstained, *b.abstained)))
        async with self._store.transaction() as unit:
            await unit.comparisons.add(row)
            await keep(unit, body)
        self._metrics.evaluations.labels(EvaluationSource.COMPARE.value).inc()
        return body


def _ms(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
