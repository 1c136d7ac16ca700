"""Reader, judge, voice and comparison over a real language model that answers as it likes."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import httpx2
import pytest

from reward_server.decisions.chat import ChatDecisions
from reward_server.decisions.model import DecisionModel
from reward_server.decisions.questions import (
    AnswerProbabilities,
    ChoiceQuestion,
    LevelQuestion,
    Typed,
    Undecided,
    YesNoQuestion,
)
from reward_server.llm.base import FailureKind
from reward_server.llm.caller import CallLimits
from tests.faults.server_process import WHERE, ServerProcess
from tests.models.model_server import ModelServer

SAYS = ["Hello! What happened to your bike?", "How did it happen?", "When do you need it back?"]
STATE = {"conversation": [{"customer": "My bike has a flat tyre."}], "agent_turn": "How did it happen?"}
ASKED: dict[str, Typed] = {
    "asks": YesNoQuestion("Does the agent's turn ask for something?", "it does", "it does not"),
    "about": ChoiceQuestion(
        "What does the agent ask about?", (("cause", "how it happened"), ("price", "what it costs"), ("none", None))
    ),
    "care": LevelQuestion("How caring is the agent?", ("cold", "neutral", "warm")),
}
RUBRIC = {
    "name": "Repair desk",
    "situation": "A customer pushes a bike with a flat tyre into a shop. The agent works at the counter.",
    "criteria": [
        {"id": "asks", "check": {"judge": {"question": "Does the agent ask how the tyre went flat?"}}},
        {"id": "names", "check": {"judge": {"question": "Does the agent name a price?"}}},
    ],
}
MESSAGES = [
    {"role": "user", "content": "Hello, my bike has a flat tyre."},
    {"role": "assistant", "content": "I am sorry to hear that. How did it go flat?"},
    {"role": "user", "content": "I rode over glass."},
    {"role": "assistant", "content": "Then you need a new tube. That is 15 euros."},
]


def said_by_agent(text: str) -> dict[str, Any]:
    """The body of a turn."""
    return {"messages": [{"role": "user", "content": text}]}


async def counted(server: ServerProcess, name: str) -> dict[str, float]:
    """A counter by its labels, as the metrics show it."""
    async with server.client("acme") as client:
        text = (await client.get(server.url + "/metrics")).raise_for_status().text
    return {labels: float(value) for labels, value in re.findall(rf"^{name}\{{(.*)\}} (\S+)$", text, re.MULTILINE)}


async def plays(server: ServerProcess) -> list[str]:
    """What a persona says in a game of three turns."""
    async with server.client("acme", timeout_s=280.0) as client:
        started = (await client.post("/episodes", json=WHERE | {"config": {"seed": 1}})).raise_for_status().json()
        path = f"/episodes/{started['episode_id']}/turns"
        answers = [(await client.post(path, json=said_by_agent(text))).raise_for_status().json() for text in SAYS]
        return [answer["observation"]["content"] for answer in answers]


def is_a_number_or_an_error(answer: httpx2.Response) -> bool:
    """A verdict within bounds, or no verdict and a word about the judge."""
    if answer.status_code == HTTPStatus.OK:
        return True
    return answer.status_code == HTTPStatus.BAD_GATEWAY and answer.json()["data"]["code"] == "judge_failed"


async def test_each_type_of_question_gets_a_distribution_or_none(model: ModelServer) -> None:
    asked = DecisionModel(ChatDecisions(model.name, "none", base_url=model.url), CallLimits(deadline_s=60.0))
    try:
        answers = await asked.outcomes(STATE, ASKED, lab_id="acme")
    finally:
        await asked.close()
    assert set(answers) == set(ASKED)
    for answer in answers.values():
        if isinstance(answer, AnswerProbabilities):
            assert sum(answer.probabilities.values()) == pytest.approx(1.0)
        else:
            # A model that is too small to answer with a label has not answered.
            assert answer == Undecided(FailureKind.UNKNOWN_LABEL)


async def test_a_game_is_read_and_worded(stage: ServerProcess) -> None:
    said = await plays(stage)
    assert all(line.strip() for line in said)
    assert not [line for line in said if "<" in line or "\n" in line.strip()]
    assert set(await counted(stage, "labs_reader_fallbacks_total")) <= {'kind="unknown_label"'}
    lines = await counted(stage, "labs_persona_lines_total")
    assert sum(lines.values()) == len(SAYS)
    assert set(lines) <= {f'source="{source}"' for source in ("model", "rejected", "not_asked")}


async def test_a_rubric_is_judged_or_an_error(bench: ServerProcess) -> None:
    async with bench.client("acme", timeout_s=280.0) as client:
        answer = await client.post("/evaluate", json={"rubric": RUBRIC, "messages": MESSAGES})
    assert is_a_number_or_an_error(answer), answer.text
    if answer.status_code == HTTPStatus.OK:
        assert 0.0 <= answer.json()["reward"] <= 1.0


async def test_a_comparison_has_the_same_winner_both_ways_or_none(bench: ServerProcess) -> None:
    a, b = MESSAGES[:2], [MESSAGES[0], {"role": "assistant", "content": "Tell me, how did it go flat?"}]
    winners = []
    async with bench.client("acme", timeout_s=280.0) as client:
        for first, second in ((a, b), (b, a)):
            body = {"rubric": RUBRIC, "response_a": {"messages": first}, "response_b": {"messages": second}}
            answer = await client.post("/compare", json=body)
            assert is_a_number_or_an_error(answer), answer.text
            winners.append(answer.json().get("winner"))
    assert None in winners or winners in (["a", "b"], ["b", "a"], ["tie", "tie"])
