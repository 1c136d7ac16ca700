"""A bare FastAPI endpoint: the same wire types validated and serialised, no auth, no store, no scoring.

What a request costs before anything of the product happens; figures of the server are given as ratios to it.
"""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from trainer_client.wire import (
    BatchItem,
    BatchResponse,
    BatchSuccess,
    EvaluationMetadata,
    Observation,
    RequestModel,
    TurnRequest,
    TurnResponse,
)

app = FastAPI()


class Batch(RequestModel):
    """A batch body, validated as a whole."""

    items: list[BatchItem]


@app.get("/ping")
async def ping() -> dict[str, str]:
    """Ready."""
    return {"status": "ok"}


@app.post("/batch/evaluate")
async def batch(request: Request) -> Response:
    """Validate every item, answer each with a constant."""
    items = Batch.model_validate_json(await request.body()).items
    metadata = EvaluationMetadata(scenario_name="floor", evaluation_time_ms=0.0, judge="floor")
    results = [
        BatchSuccess(id=i.id, status="success", evaluation_id="ev_floor", reward=0.5, scores={}, metadata=metadata)
        for i in items
    ]
    answer = BatchResponse(results=list(results), scoring_version="floor", total_time_ms=0.0, request_id="req_floor")
    return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")


@app.post("/turns")
async def turn(request: Request) -> Response:
    """Validate a turn, answer with a constant."""
    TurnRequest.model_validate_json(await request.body())
    answer = TurnResponse(
        turn=1,
        observation=Observation(role="assistant", content="Yes, since the weekend."),
        reward=0.5,
        reward_delta=0.5,
        scores={"D1_InformationGathering": 0.5},
        episode_complete=False,
        request_id="req_floor",
    )
    return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")
