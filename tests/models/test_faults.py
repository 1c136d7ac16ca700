"""A real model whose server is killed, frozen, talks nonsense, or has no room: an error of a kind, never a number."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reward_server.auth.scopes import EVERY
from reward_server.decisions.chat import ChatDecisions
from reward_server.decisions.model import DecisionModel
from reward_server.decisions.questions import AnswerProbabilities, Undecided
from reward_server.llm.base import FailureKind
from reward_server.llm.caller import CallLimits
from tests.faults.server_process import ServerProcess, server_process
from tests.models.conftest import judges_with, plays_with
from tests.models.model_server import ModelServer
from tests.models.test_answers import ASKED, MESSAGES, RUBRIC, STATE, plays

JUDGED = {"rubric": RUBRIC, "messages": MESSAGES}
ANSWERED = 'labs_llm_attempts_total{outcome="answered",provider="chat"}'
LONG = [MESSAGES[0], {"role": "assistant", "content": "I am sorry about your tyre, and I shall look at it. " * 60}]


async def failed(client: httpx2.AsyncClient, body: dict[str, Any] = JUDGED) -> dict[str, Any]:
    """The error of an evaluation that gets no number."""
    answer = await client.post("/evaluate", json=body)
    assert answer.status_code == HTTPStatus.BAD_GATEWAY, answer.text
    error: dict[str, Any] = answer.json()
    assert "reward" not in error
    return error


def labs_over(folder: Path, settings: dict[str, str]) -> AbstractContextManager[ServerProcess]:
    return server_process(folder, keys=("acme",), scopes=EVERY, **settings)


async def test_a_killed_model_is_an_error_and_a_new_one_is_asked(mortal: ModelServer, tmp_path: Path) -> None:
    with labs_over(tmp_path, judges_with(mortal, "decisions") | {"LABS_LLM_RETRIES": "0"}) as server:
        async with server.client("acme", timeout_s=280.0) as client:
            mortal.kill()
            error = await failed(client)
            assert error["data"]["code"] == "judge_failed"
            metrics = (await client.get(server.url + "/metrics")).text
            assert 'labs_judge_failures_total{kind="reset"}' in metrics
            assert ANSWERED not in metrics
            mortal.start()
            for _ in range(60):
                answer = await client.post("/evaluate", json=JUDGED)
                if ANSWERED in (await client.get(server.url + "/metrics")).text:
                    return
                await asyncio.sleep(float(answer.headers.get("retry-after", 1)))
    pytest.fail("the model that was started again was not asked")


async def test_a_model_killed_at_work_is_an_error(mortal: ModelServer, tmp_path: Path) -> None:
    with labs_over(tmp_path, judges_with(mortal)) as server:
        async with server.client("acme", timeout_s=280.0) as client:
            asked = asyncio.create_task(failed(client))
            await asyncio.sleep(0.5)
            mortal.kill()
            await asked


async def test_a_game_goes_on_without_its_model(mortal: ModelServer, tmp_path: Path) -> None:
    with labs_over(tmp_path, plays_with(mortal)) as server:
        mortal.kill()
        assert all(await plays(server))


async def test_a_frozen_model_costs_its_deadline_and_no_more(mortal: ModelServer, tmp_path: Path) -> None:
    with labs_over(tmp_path, judges_with(mortal) | {"LABS_LLM_DEADLINE_S": "2"}) as server:
        async with server.client("acme", timeout_s=280.0) as client:
            mortal.freeze()
            try:
                began = time.monotonic()
                await failed(client)
                assert time.monotonic() - began < 30.0
            finally:
                mortal.thaw()


@pytest.mark.parametrize("judges", ["llm", "decisions"])
async def test_a_conversation_beyond_the_context_is_an_error(weights: Path, tmp_path: Path, judges: str) -> None:
    with (
        ModelServer(weights, tmp_path / "llama.log", context=512) as small,
        labs_over(tmp_path, judges_with(small, judges)) as server,
    ):
        async with server.client("acme", timeout_s=280.0) as client:
            await failed(client, JUDGED | {"messages": LONG})
            metrics = (await client.get(server.url + "/metrics")).text
            assert 'kind="too_large"' in metrics


async def test_decisions_beyond_the_context_have_their_kind(weights: Path, tmp_path: Path) -> None:
    with ModelServer(weights, tmp_path / "llama.log", context=512) as small:
        asked = DecisionModel(ChatDecisions(small.name, "none", base_url=small.url), CallLimits(deadline_s=60.0))
        try:
            answers = await asked.outcomes(STATE | {"before": LONG}, ASKED, lab_id="acme")
        finally:
            await asked.close()
    assert set(answers.values()) == {Undecided(FailureKind.TOO_LARGE)}


async def test_nonsense_tells_nothing_and_stays_within_bounds(weights: Path, tmp_path: Path) -> None:
    # With a wrong base of its rotary positions the same weights speak word salad.
    nonsense = ModelServer(weights, tmp_path / "llama.log", more=("--rope-freq-base", "1"))
    with nonsense, labs_over(tmp_path, plays_with(nonsense)) as server:
        said = await plays(server)
        assert all(said)
        assert not [line for line in said if "quokka" in line.lower()]
        asked = DecisionModel(ChatDecisions(nonsense.name, "none", base_url=nonsense.url), CallLimits(deadline_s=60.0))
        try:
            answers = await asked.outcomes(STATE, ASKED, lab_id="acme")
        finally:
            await asked.close()
    for answer in answers.values():
        assert not isinstance(answer, AnswerProbabilities) or all(0 <= p <= 1 for p in answer.probabilities.values())
