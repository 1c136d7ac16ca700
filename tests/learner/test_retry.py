"""A server that is away or asks to wait: what it says is heeded within the retry policy, and nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from learner import loop, retry
from learner.cli import main
from learner.retry import OutageRetryPolicy
from learner.run import open_run
from tests.learner.quick import settings
from tests.learner.stage import StageServer, client_of, listening, refusal
from tests.learner.test_loop import config, digest, records, run
from trainer_client import BudgetExhausted, DeadlineExceeded, LabsError, RateLimited, Unavailable
from trainer_client.errors import error_from_answer


class Busy(Exception):
    """Not of the server."""


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited, without waiting."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(retry.asyncio, "sleep", sleep)  # type: ignore[attr-defined]
    return found


def asked(waiting: OutageRetryPolicy, *errors: Exception) -> list[str]:
    """The idempotency keys of a call that meets these errors, and is answered after them."""
    left, keys = list(errors), []

    async def call(key: str) -> str:
        keys.append(key)
        if left:
            raise left.pop(0)
        return "answer"

    assert asyncio.run(waiting.ask(call)) == "answer"
    return keys


def limited(seconds: float | None) -> RateLimited:
    return RateLimited("Too many.", code="rate_limited", status=429, retry_after_s=seconds)


def test_a_rate_limit_is_waited_for_as_the_server_asks_and_it_is_said(pauses: list[float]) -> None:
    told: list[str] = []
    keys = asked(OutageRetryPolicy(600.0, pause_s=2.0, say=told.append), limited(45.0), limited(None))
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert 45.0 <= pauses[0] <= 47.0
    assert 2.0 <= pauses[1] <= 4.0
    assert told == ["the server limits requests (rate_limited) and asks to wait 45 s; waiting up to 10 min, 0 s so far"]


def test_a_server_that_is_not_ready_is_not_asked_before_it_says(pauses: list[float]) -> None:
    asked(OutageRetryPolicy(600.0, pause_s=0.0), Unavailable("No.", code="unavailable", status=503, retry_after_s=7.0))
    assert pauses == [7.0]


@pytest.mark.parametrize("kind", [RateLimited, BudgetExhausted, Unavailable])
def test_what_takes_longer_than_patience_is_not_waited_for_and_that_is_said_once(
    kind: type[LabsError], pauses: list[float]
) -> None:
    told: list[str] = []
    waiting = OutageRetryPolicy(600.0, say=told.append)
    for _ in range(2):
        with pytest.raises(kind):
            asked(waiting, kind("No.", code="stop", status=429, retry_after_s=30_000.0))
    assert pauses == []
    assert len(told) == 1
    assert "the server asks to wait 30000 s, longer than server.patience_s (600 s) allows" in told[0]


def test_a_gateway_and_a_server_that_hangs_are_waited_for(pauses: list[float]) -> None:
    away = [error_from_answer(status, {}, b"<html>Bad Gateway</html>") for status in (502, 504)]
    late = DeadlineExceeded("Not in time.", code="timeout")
    assert len(asked(OutageRetryPolicy(600.0), *away, late)) == 4
    assert len(pauses) == 3


def test_a_budget_that_no_day_has_room_for_is_not_waited_for(pauses: list[float]) -> None:
    with pytest.raises(BudgetExhausted):
        asked(OutageRetryPolicy(600.0), BudgetExhausted("Too small.", code="budget_too_small", status=429))
    assert pauses == []


def test_another_error_is_no_reason_to_wait(pauses: list[float]) -> None:
    with pytest.raises(Busy):
        asked(OutageRetryPolicy(), Busy())
    assert pauses == []


class Limited(StageServer):
    """Answers so many of the next requests of a rollout with 429."""

    refused = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if self.refused and request.method == "POST":
            self.refused -= 1
            answer = refusal(429, "rate_limited")
            answer.headers["Retry-After"] = "0.001"
            return answer
        return super().__call__(request)


@pytest.mark.slow
def test_a_run_behind_a_rate_limit_is_the_run_without_one(tmp_path: Path) -> None:
    whole = run(config(tmp_path, 2, server={"patience_s": 60.0}), tmp_path / "whole")
    server = Limited(turns=2)
    # More than the client itself tries, which sends each call twice here.
    server.refused = 60
    assert digest(run(config(tmp_path, 2, server={"patience_s": 60.0}), tmp_path / "limited", server)) == digest(whole)
    assert server.refused == 0
    assert sum(record["episodes/errored"] for record in records(tmp_path / "limited", "train")) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("command", "status", "code"), [("demo", 429, "rate_limited"), ("check", 503, "overloaded")])
def test_the_start_waits_for_a_busy_server_too(
    command: str, status: int, code: str, tmp_path: Path, pauses: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    class Busy(StageServer):
        refused = 6

        def __call__(self, request: httpx2.Request) -> httpx2.Response:
            if self.refused:
                self.refused -= 1
                return refusal(status, code)
            return super().__call__(request)

    server = Busy(turns=2)
    # A mixture asks for the catalog, one scenario for its card.
    places = settings("run.updates=1", *(["server.scenarios=['c/s']"] if command == "check" else []))
    more = ["--out", str(tmp_path / "run")] if command == "demo" else []
    with listening(server) as url:
        assert main([command, "--url", url, *more, *places]) == 0
    assert server.refused == 0
    assert f"({code}); waiting up to 10 min" in capsys.readouterr().out


@pytest.mark.parametrize("staleness", [0, 1])
@pytest.mark.slow
def test_what_was_learned_before_an_outage_is_saved(staleness: int, tmp_path: Path) -> None:
    """It ends in the third update, between two checkpoints; the same command then makes the run that it would be."""
    sections: dict[str, Any] = {
        "rollout": {"groups": 2, "group_size": 6, "max_staleness": staleness},
        "run": {"updates": 4, "checkpoint_every": 100},
        "server": {"collection": "c", "scenario": "s", "max_turns": 2, "patience_s": 0.0},
    }
    server = StageServer(turns=2)
    evaluated, each = 8, 12
    server.faults = {number: refusal(502, "judge_failed") for number in range(evaluated + 2 * each + 1, 1000)}
    with pytest.raises(loop.NoEpisodesError, match=r"judge_failed \(No\)\sThe same command continues from update 2$"):
        run(config(tmp_path, 4, **sections), tmp_path / "run", server)
    assert open_run(config(tmp_path, 4, **sections), tmp_path / "run", lambda line: None).step == 2
    finished = run(config(tmp_path, 4, **sections), tmp_path / "run")
    assert finished.step == 4
    if not staleness:
        assert digest(finished) == digest(run(config(tmp_path, 4, **sections), tmp_path / "whole"))


@pytest.mark.slow
def test_the_dialogues_that_are_kept_are_waited_for(tmp_path: Path) -> None:
    class Away(StageServer):
        refused = 5

        def _episode(self, name: str) -> httpx2.Response:
            if self.refused:
                self.refused -= 1
                raise httpx2.ConnectError("refused")
            return super()._episode(name)

    server = Away(turns=2)
    opened = open_run(config(tmp_path, 1), tmp_path / "run", lambda line: None)
    opened.retry_policy = lambda say: OutageRetryPolicy(60.0, pause_s=0.0, say=say)  # type: ignore[method-assign]

    async def go() -> None:
        async with client_of(server) as client:
            await loop.train(opened, client, lambda line: None)

    asyncio.run(go())
    assert server.refused == 0
    assert len(list((tmp_path / "run" / "samples").iterdir())) == 2
