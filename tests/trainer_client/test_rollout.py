"""`play`: many episodes at once, every kind of agent, and failures that stay failures."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import json
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.trainer_client.scripted_server import Answer, envelope, serving, turn_answer
from trainer_client import (
    AgentReply,
    AsyncLabsClient,
    BadRequest,
    BatchAgent,
    ChatMessage,
    ConnectionFailed,
    DeadlineExceeded,
    Forbidden,
    LabsClient,
    LabsError,
    NotFound,
    RetryPolicy,
    Rollouts,
    Unauthenticated,
    Unscored,
    play,
    play_async,
)
from trainer_client.wire import ToolCall

Handler = Callable[[httpx2.Request], httpx2.Response]


class House:
    """A tiny Labs server: an episode takes `turns` turns, each worth one more share of the reward."""

    def __init__(self, turns: int = 3, role: str = "assistant") -> None:
        self.turns = turns
        self.role = role
        self.created: list[dict[str, Any]] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.deleted: list[str] = []
        self.logs: dict[str, list[str]] = {}
        self.failing: dict[str, httpx2.Response] = {}
        self.live = 0
        self.most_live = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        parts = request.url.path.removeprefix("/api/v1/").split("/")
        if request.method == "DELETE":
            self.deleted.append(parts[1])
            return httpx2.Response(404, json=envelope("episode_not_found"))
        body = json.loads(request.content)
        return self.create(body) if len(parts) == 1 else self.turn(parts[1], body)

    def create(self, body: dict[str, Any]) -> httpx2.Response:
        self.created.append(body)
        name = f"ep_{len(self.created)}"
        self.logs[name] = [f"{name} opens"]
        self.live += 1
        self.most_live = max(self.most_live, self.live)
        tool = {"id": "order", "type": "decision", "name": "Order", "mode": "options", "options": ["a", "b"]}
        answer = {
            "episode_id": name,
            "initial_observation": {"role": self.role, "content": self.logs[name][0]},
            "tools": [tool],
            "max_turns": self.turns,
            "expires_at": "2026-01-01T00:00:00Z",
            "request_id": "req_1",
        }
        return httpx2.Response(200, json=answer)

    def turn(self, name: str, body: dict[str, Any]) -> httpx2.Response:
        self.sent.append((name, body))
        if name in self.failing:
            return self.failing[name]
        log = self.logs[name]
        messages = body["messages"]
        if len(messages) != 2 or messages[0]["content"] != log[-1]:
            return httpx2.Response(409, json=envelope("history_mismatch"))
        number = (len(log) + 1) // 2
        log += [messages[1]["content"], f"{name} reply {number}"]
        complete = number == self.turns
        self.live -= complete
        answer = turn_answer(number, number / self.turns, complete=complete)
        answer["observation"] = {"role": self.role, "content": log[-1]}
        answer["scores"] = {"D1_Facts": number / self.turns}
        return httpx2.Response(200, json=answer)


def run(house: Handler, agent: Any, **options: Any) -> Rollouts:
    async def go() -> Rollouts:
        transport = httpx2.MockTransport(house)
        retry = RetryPolicy(attempts=2, first_pause_s=0.0)
        async with AsyncLabsClient("http://lab", "k", retry=retry, transport=transport) as client:
            return await play_async(client, agent, "c", "s", **options)

    return asyncio.run(go())


def echo(messages: list[ChatMessage]) -> str:
    return f"agent {len(messages)}"


async def echo_async(messages: list[ChatMessage]) -> str:
    return echo(messages)


class EchoObject:
    async def __call__(self, messages: list[ChatMessage]) -> str:
        return echo(messages)


def echo_all(conversations: list[list[ChatMessage]]) -> list[str]:
    return [echo(messages) for messages in conversations]


@pytest.mark.parametrize(
    "agent",
    [echo, echo_async, EchoObject(), functools.partial(echo_async), BatchAgent(echo_all)],
    ids=["function", "coroutine", "object", "partial", "batch"],
)
@pytest.mark.parametrize("role", ["assistant", "user"])
def test_any_agent_sees_itself_as_assistant_and_the_persona_as_user(agent: Any, role: str) -> None:
    rollouts = run(House(role=role), agent, seeds=[5])
    assert rollouts[0].messages == (
        {"role": "user", "content": "ep_1 opens"},
        {"role": "assistant", "content": "agent 1"},
        {"role": "user", "content": "ep_1 reply 1"},
        {"role": "assistant", "content": "agent 3"},
        {"role": "user", "content": "ep_1 reply 2"},
        {"role": "assistant", "content": "agent 5"},
        {"role": "user", "content": "ep_1 reply 3"},
    )
    assert rollouts[0].rewards == pytest.approx((1 / 3, 2 / 3, 1.0))
    assert (rollouts[0].reward, rollouts[0].turns, rollouts[0].seed) == (1.0, 3, 5)
    assert rollouts[0].terminal_reason == "completed"
    assert rollouts[0].scores == {"D1_Facts": 1.0}


def test_episodes_run_at_once_up_to_the_limit_and_come_back_in_order() -> None:
    house = House()
    seen: list[tuple[int, int]] = []

    async def slow(messages: list[ChatMessage]) -> str:
        await asyncio.sleep(0)  # lets the other episodes go on
        return echo(messages)

    rollouts = run(
        house,
        slow,
        seeds=list(range(20)),
        concurrency=4,
        progress=lambda done, total, _: seen.append((done, total)),
    )
    assert [rollout.seed for rollout in rollouts] == list(range(20))
    assert house.most_live == 4
    assert seen == [(number, 20) for number in range(1, 21)]
    assert rollouts.mean_reward == 1.0


def test_a_batch_agent_answers_all_who_wait_in_one_call() -> None:
    sizes: list[int] = []

    def answer(conversations: list[list[ChatMessage]]) -> list[str]:
        sizes.append(len(conversations))
        return echo_all(conversations)

    rollouts = run(House(), BatchAgent(answer, max_batch=5), episodes=16, concurrency=16)
    assert len(rollouts.completed) == 16
    assert sum(sizes) == 16 * 3
    assert max(sizes) <= 5
    assert len(sizes) < 16 * 3


def test_an_errored_episode_is_counted_and_has_no_reward() -> None:
    house = House()
    house.failing["ep_2"] = httpx2.Response(502, json=envelope("judge_failed", "The judge failed."))
    rollouts = run(house, echo_async, episodes=3, concurrency=1)
    assert [rollout.ok for rollout in rollouts] == [True, False, True]
    bad = rollouts.errored[0]
    assert bad.error is not None
    assert (bad.error.code, bad.rewards) == ("judge_failed", ())
    with pytest.raises(Unscored, match="judge failed"):
        _ = bad.reward
    assert rollouts.mean_reward == 1.0
    assert house.deleted == ["ep_2"]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "invalid_request", BadRequest),
        (401, "unauthenticated", Unauthenticated),
        (403, "forbidden", Forbidden),
        (404, "scenario_not_found", NotFound),
    ],
)
def test_a_refusal_of_every_episode_is_raised(status: int, code: str, kind: type[LabsError]) -> None:
    with pytest.raises(kind, match="Refused") as caught:
        run(lambda request: httpx2.Response(status, json=envelope(code, "Refused.")), echo, episodes=3)
    assert (caught.value.code, caught.value.status) == (code, status)
    assert caught.value.__notes__ == ["None of the 3 episodes could be started at http://lab/api/v1."]


def test_what_could_not_be_started_has_a_short_traceback() -> None:
    def dead(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("dead", request=request)

    once = RetryPolicy(attempts=2, first_pause_s=0.0)
    client = LabsClient("http://lab", transport=httpx2.MockTransport(dead), retry=once)
    with client, pytest.raises(ConnectionFailed) as caught:
        play(client, echo, "intake", "cough", episodes=2)
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert len(lines) < 10
    assert lines[-1] == "None of the 2 episodes could be started at http://lab/api/v1."


@pytest.mark.parametrize("kinds", [[httpx2.ConnectError], [httpx2.ConnectError, httpx2.ReadTimeout]])
def test_a_server_that_never_answers_is_raised(kinds: list[type[httpx2.TransportError]]) -> None:
    turns = itertools.cycle(kinds)

    def dead(request: httpx2.Request) -> httpx2.Response:
        raise next(turns)("dead", request=request)

    with pytest.raises((ConnectionFailed, DeadlineExceeded)):
        run(dead, echo, episodes=3)


def test_a_refusal_of_some_episodes_is_theirs_alone() -> None:
    house = House(turns=1)

    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/episodes") and json.loads(request.content)["config"]["seed"] != 2:
            return httpx2.Response(404, json=envelope("scenario_not_found"))
        return house(request)

    rollouts = run(handler, echo, seeds=[1, 2, 3])
    assert [rollout.ok for rollout in rollouts] == [False, True, False]
    assert rollouts.mean_reward == 1.0


def test_a_server_that_is_busy_may_be_free_next_time_so_its_refusals_are_errored_episodes() -> None:
    rollouts = run(lambda request: httpx2.Response(503, json=envelope("not_ready", "Not now.")), echo, episodes=2)
    assert [rollout.error.code for rollout in rollouts if rollout.error] == ["not_ready"] * 2
    with pytest.raises(Unscored, match="None of the 2 episodes has a reward; the first failed with: Not now") as caught:
        _ = rollouts.mean_reward
    assert caught.value.code == "not_ready"


def test_of_no_episodes_there_is_no_mean() -> None:
    with pytest.raises(Unscored, match="No episode was played"):
        _ = run(House(), echo, episodes=0).mean_reward


def test_an_episode_the_server_ended_with_an_error_has_no_reward() -> None:
    house = House(turns=1)

    def handler(request: httpx2.Request) -> httpx2.Response:
        response = house(request)
        if request.url.path.endswith("/turns"):
            return httpx2.Response(200, json={**response.json(), "terminal_reason": "error", "reward": 0.0})
        return response

    rollouts = run(handler, echo, episodes=1)
    with pytest.raises(Unscored, match="The server ended the episode"):
        _ = rollouts.mean_reward
    assert rollouts[0].terminal_reason == "error"


@pytest.mark.parametrize("agent_kind", ["single", "batch"])
def test_an_agent_that_fails_loses_its_episode_only(agent_kind: str) -> None:
    def fail_third(messages: list[ChatMessage]) -> str:
        if messages[0]["content"] == "ep_3 opens":
            raise RuntimeError("out of memory")
        return echo(messages)

    agent = fail_third if agent_kind == "single" else BatchAgent(lambda many: [fail_third(one) for one in many])
    house = House()
    rollouts = run(house, agent, episodes=4, concurrency=1)
    assert [rollout.ok for rollout in rollouts] == [True, True, False, True]
    error = rollouts[2].error
    assert error is not None
    assert error.code == "agent_failed"
    assert "out of memory" in error.message
    assert house.deleted == ["ep_3"]


@pytest.mark.parametrize("reply", [None, 7, {"text": "hi"}, ["hi"]])
def test_what_is_no_reply_is_the_agents_failure(reply: Any) -> None:
    rollouts = run(House(), lambda messages: reply, episodes=1)
    assert rollouts[0].error is not None
    assert rollouts[0].error.code == "agent_failed"


def test_a_reply_the_contract_forbids_is_an_errored_episode() -> None:
    rollouts = run(House(), lambda messages: "x" * 10_001, episodes=1)
    assert rollouts[0].error is not None
    assert rollouts[0].error.code == "invalid_request"


@pytest.mark.parametrize(
    "reply",
    [
        AgentReply("I order it.", (ToolCall(name="Order", type="decision", input={"value": "a"}),)),
        {"content": "I order it.", "tool_calls": [{"name": "Order", "type": "decision", "input": {"value": "a"}}]},
    ],
    ids=["reply", "mapping"],
)
def test_tool_calls_are_sent_and_kept(reply: Any) -> None:
    house = House(turns=1)
    rollouts = run(house, lambda messages: reply, episodes=1)
    call = {"name": "Order", "type": "decision", "input": {"value": "a"}}
    assert house.sent[0][1]["messages"][1] == {"role": "assistant", "content": "I order it.", "tool_calls": [call]}
    assert rollouts[0].messages[1]["tool_calls"] == [call]
    assert rollouts[0].tools[0].id == "order"


def test_the_system_prompt_is_for_the_agent_alone_and_may_use_the_tools() -> None:
    house = House(turns=1)
    heard: list[list[ChatMessage]] = []

    def agent(messages: list[ChatMessage]) -> str:
        heard.append(messages)
        return "hello"

    run(house, agent, episodes=1, system=lambda episode: f"You have {episode.tools[0].name}.")
    assert heard[0][0] == {"role": "system", "content": "You have Order."}
    assert [message["role"] for message in house.sent[0][1]["messages"]] == ["user", "assistant"]


def test_an_agent_cannot_change_the_history() -> None:
    def agent(messages: list[ChatMessage]) -> str:
        messages[0]["content"] = "rewritten"
        messages.clear()
        return "hello"

    rollouts = run(House(turns=2), agent, episodes=1)
    assert rollouts[0].ok
    assert rollouts[0].messages[0]["content"] == "ep_1 opens"


def test_options_reach_the_server() -> None:
    house = House(turns=1)
    weights = {"quality_weights": {"discovery": 1.0}}
    run(house, echo, seeds=[3], max_turns=4, persona="guarded", metadata={"run": 1}, reward_config=weights)
    config = {"seed": 3, "max_turns": 4, "observation_role": "user", "persona_slug": "guarded", "metadata": {"run": 1}}
    assert house.created[0]["config"] == config
    assert house.created[0]["reward_config"]["quality_weights"]["discovery"] == 1.0


@pytest.mark.parametrize(
    "options", [{}, {"episodes": 2, "seeds": [1]}, {"episodes": -1}, {"episodes": 1, "concurrency": 0}]
)
def test_a_plan_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"seeds|concurrency"):
        run(House(), echo, **options)


def test_play_without_an_event_loop_uses_the_clients_server() -> None:
    created = House().create({}).json()
    script = [Answer(body=created), Answer(body=turn_answer(1, 0.75, complete=True))]
    with serving(*script) as server, LabsClient(server.url, "lab_key") as client:
        rollouts = play(client, echo, "c", "s", seeds=[1])
    assert rollouts[0].reward == 0.75
    assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer lab_key"}


def test_a_plain_function_is_asked_as_often_at_once_as_was_said() -> None:
    together = threading.Barrier(40)

    def waits_for_the_others(messages: list[ChatMessage]) -> str:
        together.wait(timeout=30)
        return "hello"

    rollouts = run(House(turns=2), waits_for_the_others, episodes=40, concurrency=40)
    assert len(rollouts.completed) == 40


def test_a_functions_thread_sees_the_context_of_the_caller() -> None:
    run_name: contextvars.ContextVar[str] = contextvars.ContextVar("run_name", default="nobody's")
    run_name.set("mine")
    rollouts = run(House(turns=1), lambda messages: run_name.get(), episodes=1)
    assert rollouts[0].messages[1]["content"] == "mine"


class Cancelled:
    """Plays until all episodes wait for their agent, then cancels."""

    def __init__(self, house: House, episodes: int) -> None:
        self.house, self.episodes = house, episodes
        self.waiting = 0
        self.all_wait = asyncio.Event()

    async def agent(self, messages: list[ChatMessage]) -> str:
        if len(messages) == 1:
            return "hello"
        self.waiting += 1
        if self.waiting == self.episodes:
            self.all_wait.set()
        await asyncio.sleep(3600)
        return "never"

    async def run(self) -> None:
        async with AsyncLabsClient("http://lab", "k", transport=httpx2.MockTransport(self.house)) as client:
            playing = asyncio.create_task(play_async(client, self.agent, "c", "s", episodes=self.episodes))
            await self.all_wait.wait()
            playing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await playing


def test_cancelled_it_ends_its_episodes_on_the_server() -> None:
    house = House()
    asyncio.run(Cancelled(house, 5).run())
    assert sorted(house.deleted) == sorted(house.logs) == [f"ep_{number}" for number in range(1, 6)]


def test_an_episode_that_begins_while_all_is_cancelled_is_ended_too() -> None:
    house = House()

    async def go() -> None:
        asked, may_answer = asyncio.Event(), asyncio.Event()

        async def slow(request: httpx2.Request) -> httpx2.Response:
            response = house(request)
            if request.method == "POST":
                asked.set()
                await may_answer.wait()
            return response

        async with AsyncLabsClient("http://lab", "k", transport=httpx2.MockTransport(slow)) as client:
            playing = asyncio.create_task(play_async(client, echo, "c", "s", episodes=1))
            await asked.wait()
            playing.cancel()
            await asyncio.sleep(0)
            may_answer.set()
            with pytest.raises(asyncio.CancelledError):
                await playing

    asyncio.run(go())
    assert house.deleted == ["ep_1"]


@pytest.mark.parametrize("agent", [echo, echo_async], ids=["function", "coroutine"])
async def test_play_works_where_a_loop_runs_as_in_a_notebook(agent: Any) -> None:
    house = House()
    with LabsClient("http://lab", "k", transport=httpx2.MockTransport(house)) as client:
        assert play(client, agent, "c", "s", seeds=[1, 2]).mean_reward == 1.0


class SlowToReturn(ThreadPoolExecutor):
    """The thread it starts is far before `submit` returns."""

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        future = super().submit(*args, **kwargs)
        if threading.current_thread() is threading.main_thread():
            time.sleep(20)
        return future


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, SlowToReturn], ids=["at work", "while it starts"])
def test_stopped_in_a_notebook_it_ends_its_episodes(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    house, ended = House(), threading.Event()
    monkeypatch.setattr("trainer_client.bridge.ThreadPoolExecutor", pool)

    def agent(messages: list[ChatMessage]) -> str:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        ended.wait(20)
        return "hello"

    async def cell() -> None:
        with LabsClient("http://lab", "k", transport=httpx2.MockTransport(house)) as client:
            play(client, agent, "c", "s", episodes=1)

    # Not `asyncio.run`: like a notebook's, this loop leaves Ctrl-C to Python.
    loop = asyncio.new_event_loop()
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(cell())
    loop.close()
    ended.set()
    assert house.deleted == ["ep_1"]
    assert house.sent == []


def test_play_sends_through_the_callers_own_client_with_the_callers_headers() -> None:
    house = House()
    asked: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return house(request)

    http = httpx2.Client(transport=httpx2.MockTransport(handler), headers={"X-Proxy": "p"})
    with LabsClient("http://lab", "k", http_client=http, default_headers={"X-Run": "r"}) as client:
        assert play(client, echo, "c", "s", episodes=6, concurrency=3).mean_reward == 1.0
        assert not http.is_closed
    assert {(each.headers["x-proxy"], each.headers["x-run"]) for each in asked} == {("p", "r")}


@pytest.mark.parametrize("agent_kind", ["single", "batch"])
@pytest.mark.parametrize("calls", [({"name": "look", "input": "door"},), (7,), 7])
def test_calls_that_are_none_lose_their_episode_only(calls: Any, agent_kind: str) -> None:
    def call_in_the_third(messages: list[ChatMessage]) -> AgentReply:
        return AgentReply("hi", tool_calls=calls if messages[0]["content"] == "ep_3 opens" else ())

    many = BatchAgent(lambda batch: [call_in_the_third(one) for one in batch], max_batch=1)
    house = House()
    rollouts = run(house, call_in_the_third if agent_kind == "single" else many, episodes=4, concurrency=1)
    assert [rollout.ok for rollout in rollouts] == [True, True, False, True]
    error = rollouts[2].error
    assert error is not None
    assert error.code == "agent_failed"
    assert "the tool_calls of an AgentReply must be a tuple of ToolCall" in error.message
    assert house.deleted == ["ep_3"]


def test_content_that_is_no_text_is_the_agents_failure() -> None:
    rollouts = run(House(), lambda messages: AgentReply(None), episodes=1)  # type: ignore[arg-type]
    assert rollouts[0].error is not None
    assert "the content of an AgentReply must be text, not NoneType" in rollouts[0].error.message


def test_calls_may_be_plain() -> None:
    call: Any = {"name": "look", "input": {"at": "door"}}
    rollouts = run(House(turns=1), lambda messages: AgentReply("hi", tool_calls=(call,)), episodes=1)
    assert rollouts[0].ok
    assert [each for each in rollouts[0].messages if each["role"] == "assistant"] == [
        {"role": "assistant", "content": "hi", "tool_calls": [call]}
    ]


@pytest.mark.parametrize("where", ["system", "progress"])
def test_what_the_callers_own_function_raises_arrives_as_it_is(where: str) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("no such scenario here")

    with pytest.raises(KeyError, match="no such scenario here"):
        run(House(), echo, episodes=3, concurrency=3, **{where: fail})
