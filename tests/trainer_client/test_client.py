"""Both clients against a real loopback server that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

import trainer_client
from tests.trainer_client.scripted_server import (
    CATALOG,
    Answer,
    Drip,
    Hang,
    Reset,
    ScriptedServer,
    Step,
    Truncate,
    envelope,
    serving,
    turn_answer,
)
from trainer_client import (
    AsyncLabsClient,
    BadRequest,
    BudgetExhausted,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    EpisodeComplete,
    Forbidden,
    HistoryMismatch,
    IdempotencyMismatch,
    LabsClient,
    LabsError,
    MalformedAnswer,
    NotFound,
    PayloadTooLarge,
    ProviderFailed,
    RateLimited,
    RetryPolicy,
    ServerError,
    TurnInProgress,
    Unauthenticated,
    Unavailable,
)
from trainer_client.methods import Method

KEY = "lab_k1_secretsecretsecret"
QUICK = RetryPolicy(attempts=4, attempt_timeout_s=5, deadline_s=30, first_pause_s=0.0)
Driver = Callable[..., Any]


def drive_sync(url: str, name: str, *args: Any, retry: RetryPolicy = QUICK, pauses: list[float] | None = None) -> Any:
    pauses = pauses if pauses is not None else []
    with LabsClient(url, KEY, retry=retry, sleep=pauses.append) as client:
        return getattr(client, name)(*args)


def drive_async(url: str, name: str, *args: Any, retry: RetryPolicy = QUICK, pauses: list[float] | None = None) -> Any:
    async def sleep(seconds: float) -> None:
        if pauses is not None:
            pauses.append(seconds)

    async def run() -> Any:
        async with AsyncLabsClient(url, KEY, retry=retry, sleep=sleep) as client:
            return await getattr(client, name)(*args)

    return asyncio.run(run())


@pytest.fixture(params=[drive_sync, drive_async], ids=["sync", "async"])
def drive(request: pytest.FixtureRequest) -> Driver:
    driver: Driver = request.param
    return driver


def keys(server: ScriptedServer) -> list[str | None]:
    return [seen.headers.get("idempotency-key") for seen in server.seen]


def test_a_call_carries_the_key_and_returns_the_typed_answer(drive: Driver) -> None:
    with serving(Answer(body=CATALOG)) as server:
        assert drive(server.url, "catalog").request_id == "req_ok"
    assert server.seen[0].path == "/api/v1/catalog"
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "step",
    [
        Answer(429, envelope("rate_limited")),
        Answer(502, envelope("judge_failed")),
        Answer(503, envelope("not_ready")),
        Answer(408, envelope("body_too_slow")),
        Answer(500, envelope("internal_error")),
        Answer(409, envelope("turn_in_progress")),
        Reset(),
        Truncate(),
    ],
    ids=["429", "502", "503", "408", "500", "409", "reset", "truncated"],
)
def test_a_passing_fault_is_retried_with_the_same_body_and_key(drive: Driver, step: Step) -> None:
    with serving(step, step, Answer(body=turn_answer())) as server:
        assert drive(server.url, "turn", "ep_1", "hello").turn == 1
    assert len(server.seen) == 3
    assert len(set(keys(server))) == 1
    assert keys(server)[0]
    assert len({seen.body for seen in server.seen}) == 1


def test_two_logical_calls_have_two_keys(drive: Driver) -> None:
    with serving(Answer(body=turn_answer())) as server:
        drive(server.url, "turn", "ep_1", "hello")
        drive(server.url, "turn", "ep_1", "hello")
    assert len(set(keys(server))) == 2


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "bad_request", BadRequest),
        (400, "episode_complete", EpisodeComplete),
        (401, "unauthenticated", Unauthenticated),
        (403, "forbidden", Forbidden),
        (404, "episode_not_found", NotFound),
        (405, "method_not_allowed", BadRequest),
        (409, "something_new", Conflict),
        (409, "history_mismatch", HistoryMismatch),
        (409, "idempotency_mismatch", IdempotencyMismatch),
        (413, "body_too_large", PayloadTooLarge),
    ],
)
def test_a_refusal_is_raised_at_once_as_its_own_class(
    drive: Driver, status: int, code: str, kind: type[LabsError]
) -> None:
    body = envelope(code, "No good.", "req_9", errors=[{"loc": ["body", "x"], "msg": "wrong"}])
    with serving(Answer(status, body)) as server, pytest.raises(kind) as caught:
        drive(server.url, "turn", "ep_1", "hello")
    error = caught.value
    assert type(error) is kind
    assert (error.code, error.status, error.request_id) == (code, status, "req_9")
    assert error.errors[0].loc == ["body", "x"]
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (408, "body_too_slow", DeadlineExceeded),
        (409, "turn_in_progress", TurnInProgress),
        (429, "still", RateLimited),
        (500, "internal_error", ServerError),
        (502, "still", ProviderFailed),
        (503, "still", Unavailable),
    ],
)
def test_a_fault_that_stays_is_raised_after_the_last_attempt(
    drive: Driver, status: int, code: str, kind: type[LabsError]
) -> None:
    with serving(Answer(status, envelope(code))) as server, pytest.raises(kind):
        drive(server.url, "catalog")
    assert len(server.seen) == QUICK.attempts


@pytest.mark.parametrize("code", ["budget_exhausted", "budget_too_small"])
def test_a_budget_that_is_used_up_is_not_asked_for_again(drive: Driver, code: str) -> None:
    answer = Answer(429, envelope(code), {"Retry-After": "1"})
    with serving(answer) as server, pytest.raises(BudgetExhausted) as caught:
        drive(server.url, "catalog")
    assert isinstance(caught.value, RateLimited)
    assert len(server.seen) == 1


def test_retry_after_in_seconds_is_waited_for(drive: Driver) -> None:
    pauses: list[float] = []
    with serving(Answer(429, envelope("rate_limited"), {"Retry-After": "7"}), Answer(body=CATALOG)) as server:
        drive(server.url, "catalog", pauses=pauses)
    assert pauses == [7.0]


def test_a_retry_after_beyond_the_deadline_is_not_waited_for(drive: Driver) -> None:
    pauses: list[float] = []
    answer = Answer(429, envelope("rate_limited"), {"Retry-After": "3600"})
    with serving(answer) as server, pytest.raises(RateLimited) as caught:
        drive(server.url, "catalog", pauses=pauses)
    assert caught.value.retry_after_s == 3600
    assert pauses == []


@pytest.mark.parametrize("step", [Hang(), Drip()], ids=["hang", "drip"])
def test_a_server_that_does_not_finish_costs_the_attempt_not_the_call(drive: Driver, step: Step) -> None:
    retry = RetryPolicy(attempts=2, attempt_timeout_s=0.2, deadline_s=60, first_pause_s=0.0)
    with serving(step, Answer(body=turn_answer())) as server:
        assert drive(server.url, "turn", "ep_1", "hello", retry=retry).turn == 1
    assert len(set(keys(server))) == 1


def test_the_deadline_of_the_whole_call_ends_it(drive: Driver) -> None:
    retry = RetryPolicy(attempts=50, attempt_timeout_s=60, deadline_s=0.2, first_pause_s=0.0)
    with serving(Hang()) as server, pytest.raises(DeadlineExceeded):
        drive(server.url, "catalog", retry=retry)
    assert len(server.seen) == 1


def test_nobody_listening_is_a_failed_connection(drive: Driver) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConnectionFailed) as caught:
            drive(url, "catalog")
    assert caught.value.status is None
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [b"", b"<html>", b'{"turn": 1}', b"[" * 100_000, b"\xff", json.dumps(turn_answer(reward=2.0)).encode()],
    ids=["empty", "html", "missing", "nested", "bytes", "range"],
)
def test_a_success_that_is_not_the_contracts_is_a_server_error(drive: Driver, raw: bytes) -> None:
    with serving(Answer(raw=raw)) as server, pytest.raises(MalformedAnswer) as caught:
        drive(server.url, "turn", "ep_1", "hello")
    assert caught.value.code == "malformed_answer"
    assert len(server.seen) == 1


def test_a_reward_that_is_not_a_number_is_refused(drive: Driver) -> None:
    raw = json.dumps(turn_answer(reward=float("nan"))).encode()
    with serving(Answer(raw=raw)) as server, pytest.raises(ServerError):
        drive(server.url, "turn", "ep_1", "hello")


def test_an_error_body_of_a_proxy_is_not_quoted(drive: Driver) -> None:
    with serving(Answer(404, raw=b"<html>inner secrets</html>")) as server, pytest.raises(NotFound) as caught:
        drive(server.url, "catalog")
    assert caught.value.code == "http_404"
    assert "secrets" not in str(caught.value)


def test_a_request_outside_the_contract_is_not_sent(drive: Driver) -> None:
    with serving(Answer(body=CATALOG)) as server:
        for name, args in [
            ("turn", ("ep_1", "x" * 10_001)),
            ("turn", ("ep_1", [])),
            ("turn", ("", "hello")),
            ("evaluate", ("c", "s", [])),
            ("evaluate", ("c", "s", [{"role": "assistant"}])),
            ("evaluate", ("c", "s", [{"role": "assistant", "content": "\ud800"}])),
        ]:
            with pytest.raises(BadRequest) as caught:
                drive(server.url, name, *args)
            assert caught.value.status is None
    assert server.seen == []


def test_a_refused_request_does_not_repeat_its_input() -> None:
    with LabsClient("http://127.0.0.1:1", KEY) as client, pytest.raises(BadRequest) as caught:
        client.evaluate("c", "s", [{"role": "assistant", "content": 5, "private": "canary-text"}])
    assert "canary" not in f"{caught.value} {caught.value.errors}"
    assert caught.value.errors[0].loc[:1] == ["messages"]


def test_every_method_speaks_its_path() -> None:
    episode = {
        "episode_id": "ep_1",
        "collection_slug": "c",
        "scenario_slug": "s",
        "status": "active",
        "turn": 0,
        "max_turns": 9,
        "messages": [],
        "rewards": [],
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-02T00:00:00Z",
    }
    created = {
        "episode_id": "ep_1",
        "initial_observation": {"role": "user", "content": "hi"},
        "tools": [],
        "max_turns": 9,
        "expires_at": "2026-01-02T00:00:00Z",
        "request_id": "req_1",
    }
    compared = {
        "comparison_id": "cmp_1",
        "winner": "a",
        "reward_a": 0.5,
        "reward_b": 0.25,
        "margin": 0.25,
        "scoring_version": "sv_1",
        "request_id": "req_1",
    }
    ranked = {
        "results": [{"id": "x", "score": 0.5, "rank": 1}, {"id": "y", "score": 0.25, "rank": 2}],
        "relative": True,
        "scoring_version": "sv_1",
        "metadata": {"scenario_name": "S", "evaluation_time_ms": 1.5, "judge": "local"},
        "request_id": "req_1",
    }
    script = [
        Answer(body=created),
        Answer(body=episode),
        Answer(body={"data": [episode], "request_id": "req_1"}),
        Answer(body=episode),
        Answer(body=compared),
        Answer(body=ranked),
    ]
    said = [{"role": "assistant", "content": "hello"}]
    with serving(*script) as server, LabsClient(server.url + "/api/v1/", KEY, retry=QUICK) as client:
        client.create_episode("c", "s", seed=7, max_turns=3, observation_role="user", metadata={"run": 1})
        client.get_episode("ep/1")
        client.list_episodes(limit=2, status="active")
        client.delete_episode("ep_1")
        assert client.compare("c", "s", said, said).winner == "a"
        assert [member.rank for member in client.rank("c", "s", {"x": said, "y": said}).results] == [1, 2]
    assert [(seen.method, seen.path) for seen in server.seen] == [
        ("POST", "/api/v1/episodes"),
        ("GET", "/api/v1/episodes/ep%2F1"),
        ("GET", "/api/v1/episodes?limit=2&status=active"),
        ("DELETE", "/api/v1/episodes/ep_1"),
        ("POST", "/api/v1/compare"),
        ("POST", "/api/v1/rank"),
    ]
    assert [member["id"] for member in server.seen[-1].json()["responses"]] == ["x", "y"]
    assert server.seen[0].json() == {
        "collection_slug": "c",
        "scenario_slug": "s",
        "score_turns": True,
        "config": {"seed": 7, "max_turns": 3, "observation_role": "user", "metadata": {"run": 1}},
    }


def test_the_key_is_in_no_repr() -> None:
    with LabsClient("http://127.0.0.1:1", KEY) as client:
        assert KEY not in f"{client!r} {client.connection!r} {vars(client)!r}"


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Answer(body=CATALOG)) as server:
        monkeypatch.setenv("LABS_URL", server.url + "/")
        monkeypatch.setenv("LABS_API_KEY", "lab_env_key")
        with LabsClient() as client:
            client.catalog()
    assert server.seen[0].headers["authorization"] == "Bearer lab_env_key"


def test_without_a_key_no_authorization_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LABS_API_KEY", raising=False)
    with serving(Answer(body=CATALOG)) as server, LabsClient(server.url) as client:
        client.catalog()
    assert "authorization" not in server.seen[0].headers


@pytest.mark.parametrize("url", ["localhost:8321", "ftp://x", "http://", "http://user:pw@host", "http://h/?a=1"])
def test_an_address_that_cannot_work_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        LabsClient(url)


def test_a_key_with_a_line_break_is_refused_without_being_shown() -> None:
    with pytest.raises(ValueError, match="LABS_API_KEY") as caught:
        LabsClient("http://127.0.0.1:1", "lab_a\r\nX-Evil: canary")
    assert "canary" not in str(caught.value)


def test_options_change_the_limits_of_one_call_and_share_the_pool() -> None:
    with serving(Hang()) as server, LabsClient(server.url, KEY, retry=QUICK) as client:
        impatient = client.with_options(deadline_s=0.1)
        assert impatient.http_client is client.http_client
        with pytest.raises(DeadlineExceeded):
            impatient.catalog()
        assert client.retry == QUICK
    assert len(server.seen) == 1


def test_timeout_and_max_retries_are_taken_as_in_other_clients(drive: Driver) -> None:
    with serving(Hang(), Hang(), Answer(body=CATALOG)) as server:
        options = {"timeout": 0.1, "max_retries": 1, "retry": RetryPolicy(first_pause_s=0.0)}
        client = LabsClient(server.url, KEY, **options)  # type: ignore[arg-type]
        with client, pytest.raises(DeadlineExceeded, match=f"in time by {server.url.removeprefix('http://')}"):
            client.catalog()
        assert len(server.seen) == 2
        assert drive(server.url, "catalog").request_id == "req_ok"


def test_a_longer_timeout_stretches_the_deadline_and_none_ends_both() -> None:
    assert RetryPolicy().changed(timeout=600, max_retries=2).deadline_s == 1800
    assert RetryPolicy().changed(timeout=5) == RetryPolicy(attempt_timeout_s=5, deadline_s=300)
    assert RetryPolicy().changed(timeout=None) == RetryPolicy(attempt_timeout_s=None, deadline_s=None)
    assert RetryPolicy().changed(timeout=5, deadline_s=2) == RetryPolicy(attempt_timeout_s=5, deadline_s=2)
    with pytest.raises(ValueError, match="attempts"):
        LabsClient("http://127.0.0.1:1", max_retries=-1)


def test_headers_of_the_client_and_of_one_call_are_sent() -> None:
    headers = {"X-Run": "a", "X-Team": "t"}
    with serving(Answer(body=CATALOG)) as server, LabsClient(server.url, KEY, default_headers=headers) as client:
        client.with_options(default_headers={"x-run": "b"}, api_key="lab_other").catalog()
        client.catalog()
        assert KEY not in f"{client!r}"
    first, second = (seen.headers for seen in server.seen)
    assert (first["x-run"], first["x-team"], first["authorization"]) == ("b", "t", "Bearer lab_other")
    assert (second["x-run"], second["authorization"]) == ("a", f"Bearer {KEY}")
    assert first["user-agent"] == f"labs-trainer-client/{trainer_client.__version__}"


def test_a_client_of_the_callers_own_carries_the_calls() -> None:
    asked: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, json=CATALOG)

    async def run() -> None:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(handler), headers={"X-Proxy": "p"})
        async with AsyncLabsClient("http://lab", KEY, http_client=http) as client:
            await client.catalog()
        assert http.is_closed

    asyncio.run(run())
    with LabsClient("http://lab", KEY, http_client=httpx2.Client(transport=httpx2.MockTransport(handler))) as sync:
        sync.catalog()
    assert [str(request.url) for request in asked] == ["http://lab/api/v1/catalog"] * 2
    assert (asked[0].headers["x-proxy"], asked[0].headers["authorization"]) == ("p", f"Bearer {KEY}")
    with pytest.raises(ValueError, match="not both"):
        LabsClient("http://lab", http_client=httpx2.Client(), transport=httpx2.MockTransport(handler))


def test_a_raw_response_has_the_http_side_of_an_answer() -> None:
    headers = {"X-Request-ID": "req_h", "X-RateLimit-Remaining": "7"}
    script = [Answer(503, envelope("not_ready")), Answer(body=turn_answer(), headers=headers)]
    with serving(*script) as server, LabsClient(server.url, KEY, retry=QUICK) as client:
        raw = client.with_raw_response.turn("ep_1", "hello")
        assert (raw.status_code, raw.request_id, raw.headers["x-ratelimit-remaining"]) == (200, "req_h", "7")
        assert (raw.retries_taken, raw.parse().turn, raw.json()["turn"]) == (1, 1, 1)
        assert json.loads(raw.text) == json.loads(raw.content)
        with pytest.raises(BadRequest):
            client.with_raw_response.turn("", "hello")

    async def run(url: str) -> int:
        async with AsyncLabsClient(url, KEY) as client:
            return (await client.with_raw_response.catalog()).status_code

    with serving(Answer(body=CATALOG)) as server:
        assert asyncio.run(run(server.url)) == 200


def test_every_single_request_has_a_raw_twin_with_the_same_arguments() -> None:
    client = LabsClient("http://127.0.0.1:1")
    public = {n for kind in LabsClient.__mro__ for n, each in vars(kind).items() if isinstance(each, Method)}
    public |= {"batch_evaluate", "batch_turns"}
    raw = client.with_raw_response
    assert {name for name in dir(raw) if not name.startswith("_")} == public
    assert len(public) >= 36
    for name in public - {"batch_evaluate", "batch_turns"}:  # the client's own take any number of items
        mine = inspect.signature(getattr(client, name))
        twin = inspect.signature(getattr(raw, name))
        assert list(mine.parameters.values()) == list(twin.parameters.values()), name
        assert "self" not in mine.parameters
        assert mine.return_annotation != twin.return_annotation


def pages(kind: str, *sizes: int) -> list[Answer]:
    numbers = iter(range(100))
    found = []
    for place, size in enumerate(sizes, 1):
        data = [{**LISTED[kind], "id": f"{next(numbers)}"} for _ in range(size)]
        body = {"data": data, kind: data, "request_id": f"req_{place}"}
        if place < len(sizes):
            body["next_cursor"] = f"after {place}"
        found.append(Answer(body=body))
    return found


LISTED: dict[str, dict[str, Any]] = {
    "reward_models": {
        "active": False,
        "created_at": "2026-01-01T00:00:00Z",
        "data_hash": "x",
        "labelled": 1,
        "pairs": 0,
        "heads": ["score"],
        "encoder_version": "e",
        "held_out": {},
    },
    "calibrations": {
        "method": "z_score",
        "uses_labels": False,
        "n": 40,
        "data_hash": "x",
        "range": [0.0, 1.0],
        "rewards": [],
        "created_at": "2026-01-01T00:00:00Z",
    },
}


@pytest.mark.parametrize("kind", list(LISTED))
def test_a_list_is_gone_over_page_after_page(kind: str) -> None:
    expected = [str(number) for number in range(5)]
    with serving(*pages(kind, 2, 0, 3)) as server, LabsClient(server.url, KEY) as client:
        page = getattr(client, kind)(limit=2)
        assert [item.id for item in page.data] == expected[:2]
        assert len(server.seen) == 1
        assert [item.id for item in page] == expected
        assert [seen.path.partition("?")[2] for seen in server.seen] == [
            "limit=2",
            "limit=2&cursor=after+1",
            "limit=2&cursor=after+2",
        ]
        with pytest.raises(LookupError, match="last page"):
            page.next_page().next_page().next_page()

    async def run(url: str) -> None:
        async with AsyncLabsClient(url, KEY) as client:
            assert [item.id async for item in getattr(client, kind)()] == expected

    async def by_hand(url: str) -> None:
        async with AsyncLabsClient(url, KEY) as client:
            page = await getattr(client, kind)()
            assert page.has_next_page()
            last = await (await page.next_page()).next_page()
            assert [item.id for item in last.data] == expected[2:]
            assert not last.has_next_page()

    for coroutine in (run, by_hand):
        with serving(*pages(kind, 2, 0, 3)) as server:
            asyncio.run(coroutine(server.url))


def test_a_reward_model_is_activated(drive: Driver) -> None:
    answer = {**LISTED["reward_models"], "id": "rm_1", "active": True, "request_id": "req_1"}
    with serving(Answer(body=answer)) as server:
        assert drive(server.url, "activate_reward_model", "rm_1").active
    assert (server.seen[0].method, server.seen[0].path) == ("POST", "/api/v1/reward-models/rm_1/activate")
