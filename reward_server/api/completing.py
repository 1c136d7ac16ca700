"""Answers a chat completion with the lab's agent or trained policy that it names: for `POST /chat` and `/v1`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from fastapi import Request, Response

from reward_server.agents.endpoint import ChatQuestion
from reward_server.agents.openai_shapes import completion
from reward_server.agents.streaming import AnswerPart
from reward_server.api.chat_stream import ChatStream, head_of
from reward_server.api.context import Body, Services, answer, services_of
from reward_server.auth.lab import Lab
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.ids import IdPrefix, is_id
from reward_server.transcripts.weight import weight_of
from trainer_client.wire import ChatCompletionRequest

HOW = "Must be `agent_…` or `run_…`: an agent, or a training run that is complete."


def names_policy(model: str) -> bool:
    """Whether a model is an agent or a run, by its form."""
    return model.startswith((f"{IdPrefix.AGENT}_", f"{IdPrefix.TRAINING_RUN}_"))


async def completed(request: Request, lab: Lab, wanted: ChatCompletionRequest) -> Body | Response:
    """The completion, or the stream of its chunks.

    Raises:
        AgentFailed: the agent, or the process of the policy, gave none.
        LabsError: there is no such agent or run, or the run has no policy that answers.
    """
    services = services_of(request)
    if wanted.stream:
        parts = _parts(services, lab, wanted)
        return await ChatStream.begun(request, lab, wanted.model, parts, with_usage=wanted.with_usage)
    async with _asked(services, lab, wanted) as question:
        turn = await services.agents.endpoints.ask(question)
    return answer(request, completion(head_of(request, wanted.model), turn))


async def _parts(services: Services, lab: Lab, wanted: ChatCompletionRequest) -> AsyncGenerator[AnswerPart, None]:
    async with (
        _asked(services, lab, wanted) as question,
        aclosing(services.agents.endpoints.stream(question)) as parts,
    ):
        async for part in parts:
            yield part


@asynccontextmanager
async def _asked(services: Services, lab: Lab, wanted: ChatCompletionRequest) -> AsyncIterator[ChatQuestion]:
    """The question to whom the model names, who is there meanwhile."""
    if is_id(wanted.model, IdPrefix.AGENT):
        yield await services.agents.question(lab, wanted.model, wanted)
    elif is_id(wanted.model, IdPrefix.TRAINING_RUN):
        # It is this machine that computes the answer.
        await services.compute.charge(lab, weight_of(wanted.messages))
        async with services.served_runs.question(lab, wanted) as question:
            yield question
    else:
        raise InvalidRequest(errors=[FieldProblem(("model",), HOW)])
