"""The classifier as a judge: values, composites, what is asked once, and failures that are never numbers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reward_server.classifier.chat import Chat
from reward_server.classifier.judge import ClassifierJudge
from reward_server.errors import JudgeFailed
from reward_server.scoring.config import read_config
from reward_server.scoring.disclosure import FULL_DISCLOSURE
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import Scorer
from reward_server.server.app import Ports, create_app
from reward_server.settings import Settings
from tests.classifier.endpoint import Endpoint, classified
from tests.scoring.builders import (
    COLLECTION,
    GOOD,
    SCENARIO,
    WordMatcher,
    WordReader,
    a_case,
    a_library,
    a_panel,
    a_transcript,
)


class Lengths:
    """The words of the last message, or what it is told to raise."""

    version = "lengths"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[Chat] = []

    def output(self, chat: Chat) -> float:
        self.asked.append(chat)
        if self.error is not None:
            raise self.error
        return float(len(chat[-1]["content"].split()))


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_outputs_become_values_by_centre_and_scale(threads: ThreadPoolExecutor) -> None:
    judge = ClassifierJudge(Lengths(), threads, centre=3.0, scale=2.0)
    [found] = judge.estimate([a_case("one two three four five")])
    assert found.value == pytest.approx(1 / (1 + math.exp(-1.0)))
    assert judge.value(1e9) == 1.0
    assert judge.value(-1e9) == pytest.approx(0.0)


@pytest.mark.parametrize("setting", [{"centre": 1.0}, {"scale": 2.0}])
def test_centre_and_scale_are_part_of_the_version(threads: ThreadPoolExecutor, setting: dict[str, float]) -> None:
    assert ClassifierJudge(Lengths(), threads).version != ClassifierJudge(Lengths(), threads, **setting).version


async def test_what_was_prepared_is_not_asked_again(threads: ThreadPoolExecutor) -> None:
    classifier = Lengths()
    judge = ClassifierJudge(classifier, threads)
    cases = [a_case("hello there"), a_case("hello"), a_case("hello there")]
    await judge.prepare(cases)
    assert len(classifier.asked) == 2
    found = await asyncio.to_thread(judge.estimate, cases)
    assert len(classifier.asked) == 2
    assert [each.value for each in found] == [judge.value(2.0), judge.value(1.0), judge.value(2.0)]


async def test_a_composite_hears_it_and_a_failure_is_no_reward(threads: ThreadPoolExecutor) -> None:
    async def scored(classifier: Lengths) -> Any:
        judge = ClassifierJudge(classifier, threads)
        scorer = Scorer(
            a_library(None),
            WordMatcher(),
            a_panel(),
            threads,
            disclosure=FULL_DISCLOSURE,
            reader=WordReader(),
            conversation_judges=lambda: {judge.name: judge},
        )
        config = read_config({"composite": {"combine": "weighted_sum", "parts": [{"judge": "classifier"}]}})
        [outcome] = await scorer.score([ScoreRequest(COLLECTION, SCENARIO, a_transcript(*GOOD), config)])
        return or_raise(outcome)

    assert set((await scored(Lengths())).parts) == {"classifier"}
    with pytest.raises(JudgeFailed):
        await scored(Lengths(JudgeFailed(kind="timeout")))


async def test_a_server_asks_the_classifier_of_its_settings(tmp_path: Path) -> None:
    asked: dict[str, Any] = {
        "collection_slug": COLLECTION,
        "scenario_slug": SCENARIO,
        "messages": [{"role": "user", "content": "Hi!"}, {"role": "assistant", "content": "What is the matter?"}],
        "reward_config": {"composite": {"combine": "weighted_sum", "parts": [{"judge": "classifier"}]}},
    }

    def script(body: dict[str, Any]) -> tuple[int, Any]:
        return (400, {}) if "roof" in body["messages"][-1]["content"] else classified(2.0)

    with Endpoint(script) as server:
        settings = Settings(data=tmp_path / "data", classifier=f"{server.url}/classify", classifier_model="rm")
        ports = Ports(own_process=False, matcher=WordMatcher(), reader=WordReader(), library=a_library(None))
        made = create_app(settings, ports=ports)
        async with (
            made.router.lifespan_context(made),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app=made), base_url="http://localhost") as client,
        ):
            good = await client.post("/api/v1/evaluate", json=asked)
            asked["messages"][1]["content"] = "Which roof is it?"
            failed = await client.post("/api/v1/evaluate", json=asked)
    assert good.json()["reward"] == pytest.approx(1 / (1 + math.exp(-2.0)), abs=1e-4)
    assert failed.status_code == 502
    assert "judge_failed" in failed.text
