"""The agents of a lab: add, list, delete, talk to one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from reward_server.agents.completion import EndpointTurn
from reward_server.agents.conversation import conversation_of, sampled_as
from reward_server.agents.endpoint import ALLOWING, ChatQuestion, EndpointAddress, Endpoints
from reward_server.agents.sealing import Sealer, Unsealable
from reward_server.agents.telling import system_prompt, told, tools_of
from reward_server.auth.idempotency import Body, Idempotency, Keep
from reward_server.auth.lab import Lab
from reward_server.clock import Clock, to_iso
from reward_server.errors import AgentFailed, AgentNotFound, Conflict, FieldProblem, InvalidRequest
from reward_server.ids import IdPrefix, is_id, new_id
from reward_server.store.agent_records import AgentRow
from reward_server.store.records import JsonObject
from reward_server.store.store import Store
from reward_server.webhooks.addresses import PrivateAddress, RefusedAddress, UnresolvedName, resolve
from reward_server.webhooks.names import NameLookups
from scenarios.library import Catalog, PublicScenario
from trainer_client.wire import AgentChatRequest, AgentRequest, ChangeAgentRequest, ChatCompletionRequest, Message

MOST = 100
"""Agents of a lab."""
ENDPOINT = "endpoint"


class AgentService:
    """All that labs can do with agents, but for having them evaluated, which is a job."""

    def __init__(
        self,
        *,
        store: Store,
        catalog: Catalog,
        idempotency: Idempotency,
        clock: Clock,
        sealer: Sealer,
        endpoints: Endpoints,
        private: bool,
        names: NameLookups,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._idempotency = idempotency
        self._clock = clock
        self._sealer = sealer
        self.endpoints = endpoints
        self._private = private
        self._names = names

    async def add(self, lab: Lab, request: AgentRequest, key: str | None) -> Body:
        """Add an endpoint.

        Raises:
            InvalidRequest: the URL is not one that anything is sent to.
            Conflict: the lab has as many agents as it may have.
        """
        await self._check(request.base_url)
        work = partial(self._add, lab, request)
        return await self._idempotency.answer(lab, key, lambda: ("agent", request.model_dump()), work, outlives=False)

    async def all(self, lab: Lab) -> list[AgentRow]:
        """The lab's agents, the newest first."""
        async with self._store.reading() as unit:
            return await unit.agents.of(lab.lab_id)

    async def get(self, lab: Lab, agent_id: str) -> AgentRow:
        """One of them; `AgentNotFound`."""
        row = None
        if is_id(agent_id, IdPrefix.AGENT):
            async with self._store.reading() as unit:
                row = await unit.agents.get(lab.lab_id, agent_id)
        if row is None:
            raise AgentNotFound
        return row

    async def change(self, lab: Lab, agent_id: str, request: ChangeAgentRequest) -> Body:
        """Change what a request names; what the agent played before stays on the leaderboard.

        Raises:
            AgentNotFound: as `get`.
            InvalidRequest: as `add`.
        """
        row = await self.get(lab, agent_id)
        named = request.model_dump(exclude_unset=True)
        if "base_url" in named:
            await self._check(named["base_url"])
        sealed = row.sealed_key
        if "api_key" in named or named.get("base_url", row.settings["base_url"]) != row.settings["base_url"]:
            key = named.pop("api_key", None)
            sealed = None if key is None else self._sealer.seal(key, lab.lab_id, agent_id)
        name = named.pop("name", row.name)
        settings = {key: value for key, value in {**row.settings, **named}.items() if value is not None}
        changed = replace(row, name=name, settings=settings, sealed_key=sealed)
        async with self._store.transaction() as unit:
            if not await unit.agents.change(changed):
                raise AgentNotFound
        return document(changed)

    async def delete(self, lab: Lab, agent_id: str) -> Body:
        """Forget one, its key and its place on the leaderboard; raises as `get`."""
        row = await self.get(lab, agent_id)
        async with self._store.transaction() as unit:
            if not await unit.agents.delete(lab.lab_id, agent_id):
                raise AgentNotFound
        return document(row)

    async def chat(self, lab: Lab, agent_id: str, request: AgentChatRequest) -> Body:
        """The agent's answer to a conversation, told what it is told in an evaluation.

        Raises as `question` and `turn`.
        """
        turn = await self.endpoints.ask(await self.question(lab, agent_id, request))
        body: Body = {"agent_id": agent_id, "message": said(turn.message)}
        if turn.input_tokens or turn.output_tokens:
            body["usage"] = {"input_tokens": turn.input_tokens, "output_tokens": turn.output_tokens}
        return body

    async def question(
        self, lab: Lab, agent_id: str, request: AgentChatRequest | ChatCompletionRequest
    ) -> ChatQuestion:
        """The conversation of a request, for the agent; raises as `get`, and `InvalidRequest`."""
        row = await self.get(lab, agent_id)
        messages, scenario = conversation_of(lab, self._catalog, request)
        return self._question(row, sampled_as(self._place(row), request), messages, scenario)

    async def turn(self, row: AgentRow, messages: list[JsonObject], scenario: PublicScenario | None) -> EndpointTurn:
        """The agent's next turn; `AgentFailed`."""
        return await self.endpoints.ask(self._question(row, self._place(row), messages, scenario))

    def _question(
        self, row: AgentRow, place: EndpointAddress, messages: list[JsonObject], scenario: PublicScenario | None
    ) -> ChatQuestion:
        system = "" if messages[0]["role"] == "system" else system_prompt(row.settings.get("system_prompt"), scenario)
        return ChatQuestion(place, told(system, messages), tools_of(scenario))

    def _place(self, row: AgentRow) -> EndpointAddress:
        options = {name: row.settings.get(name) for name in ("temperature", "max_tokens")}
        try:
            key = None if row.sealed_key is None else self._sealer.open(row.sealed_key, row.lab_id, row.agent_id)
        except Unsealable:
            raise AgentFailed.because("the server cannot read its key any more; add the agent again") from None
        return EndpointAddress(row.settings["base_url"], row.settings["model"], key, **options)

    async def _check(self, url: str) -> None:
        try:
            target = await resolve(url, private=self._private, names=self._names)
        except UnresolvedName:
            return  # it may have one by the time there is something to ask
        except PrivateAddress as inner:
            raise InvalidRequest(errors=[FieldProblem(("base_url",), inner.allowed_by(ALLOWING))]) from None
        except RefusedAddress as refused:
            raise InvalidRequest(errors=[FieldProblem(("base_url",), str(refused))]) from None
        if target.url.query:
            raise InvalidRequest(errors=[FieldProblem(("base_url",), "Must have no query; a key goes in `api_key`.")])

    async def _add(self, lab: Lab, request: AgentRequest, keep: Keep) -> Body:
        agent_id = new_id(IdPrefix.AGENT)
        key = request.api_key
        row = AgentRow(
            agent_id=agent_id,
            lab_id=lab.lab_id,
            kind=ENDPOINT,
            name=request.name,
            settings=request.model_dump(exclude={"name", "api_key"}, exclude_none=True),
            sealed_key=None if key is None else self._sealer.seal(key, lab.lab_id, agent_id),
            created_at=self._clock.now(),
        )
        body = document(row)
        async with self._store.transaction() as unit:
            if len(await unit.agents.of(lab.lab_id)) >= MOST:
                raise Conflict(f"A lab has at most {MOST} agents: delete one first.")
            await unit.agents.add(row)
            await keep(unit, body)
        return body


def document(row: AgentRow) -> Body:
    """An agent as its lab sees it: never its key."""
    known = {"agent_id": row.agent_id, "kind": row.kind, "name": row.name, "has_api_key": row.sealed_key is not None}
    return {**known, **row.settings, "created_at": to_iso(row.created_at)}


def said(message: Message) -> Body:
    """An agent's turn as episodes and answers have it."""
    body: Body = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [call.model_dump(exclude_none=True) for call in message.tool_calls]
    return body
