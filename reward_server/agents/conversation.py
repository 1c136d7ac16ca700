"""The conversation of a chat request: who may speak in it, its scenario, and how the answer is sampled."""

from __future__ import annotations

from dataclasses import replace

from reward_server.access import scenario_for
from reward_server.agents.endpoint import EndpointAddress
from reward_server.auth.lab import Lab
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.store.records import JsonObject
from scenarios.library import Catalog, PublicScenario
from trainer_client.wire import AgentChatRequest, ChatCompletionRequest, Message

PARTIES = frozenset(("system", "user", "assistant"))


def conversation_of(
    lab: Lab, catalog: Catalog, request: AgentChatRequest | ChatCompletionRequest
) -> tuple[list[JsonObject], PublicScenario | None]:
    """The messages, and the scenario where one is named.

    Raises:
        InvalidRequest: somebody speaks who has no part in it.
        LabsError: there is no such scenario for this key.
    """
    scenario = None
    if request.collection_slug is not None and request.scenario_slug is not None:
        scenario = scenario_for(lab, catalog, request.collection_slug, request.scenario_slug)
    return [_plain(each, place) for place, each in enumerate(request.messages)], scenario


def sampled_as(place: EndpointAddress, request: AgentChatRequest | ChatCompletionRequest) -> EndpointAddress:
    """The same endpoint, asked as this request wants it."""
    if isinstance(request, AgentChatRequest):
        return place
    wanted = {"temperature": request.temperature, "max_tokens": request.max_tokens}
    named = {name: value for name, value in wanted.items() if value is not None}
    return replace(place, **named)  # type: ignore[arg-type]


def _plain(message: Message, place: int) -> JsonObject:
    if message.role not in PARTIES or (message.role == "system" and place):
        problem = FieldProblem(("messages", place, "role"), "Must be user or assistant; system in front alone.")
        raise InvalidRequest(errors=[problem])
    return message.model_dump(exclude_none=True)
