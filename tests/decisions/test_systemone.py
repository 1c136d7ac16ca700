"""The System One adapter against the reference server of the protocol, which can break each requirement on purpose."""

from __future__ import annotations

import time
from typing import Any

import pytest
from jevcompat.mock import MockConfig, Running

from reward_server.decisions.model import DecisionModel
from reward_server.decisions.questions import (
    AnswerProbabilities,
    ChoiceQuestion,
    LevelQuestion,
    Request,
    Typed,
    Undecided,
    YesNoQuestion,
)
from reward_server.decisions.systemone import SystemOneProvider
from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.llm.caller import CallLimits
from tests.decisions.servers import Served

K = FailureKind
STATE = {"conversation": [{"agent": "When did it crack?"}]}
ASKED: dict[str, Typed] = {
    "asks": YesNoQuestion("Does the agent ask for something?", "it does", "it does not"),
    "about": ChoiceQuestion("What is it about?", (("Noise", "the crack"), ("Pain", None), ("none", None))),
    "care": LevelQuestion("How caring is it?", ("cold", "neutral", "warm")),
}


async def outcomes(url: str, asked: dict[str, Typed] | None = None, **limits: Any) -> dict[str, Any]:
    model = DecisionModel(SystemOneProvider("mock", "a-key", base_url=url), CallLimits(**({"retries": 0} | limits)))
    try:
        return await model.outcomes(STATE, asked or ASKED, lab_id="acme")
    finally:
        await model.close()


async def test_every_type_is_decided_with_probabilities_that_come_to_one() -> None:
    with Running(MockConfig(key="a-key")) as server:
        found = await outcomes(server.url)
    assert list(found) == list(ASKED)
    for name, question in ASKED.items():
        assert isinstance(found[name], AnswerProbabilities)
        assert tuple(found[name].probabilities) == question.labels
        assert sum(found[name].probabilities.values()) == pytest.approx(1)
    assert 0 <= found["care"].expectation <= 2


@pytest.mark.parametrize(
    ("fault", "wrong"),
    [
        ("boolean-type", {"asks": K.WRONG_TYPE}),
        ("noul-range", {"asks": K.OUT_OF_RANGE}),
        ("choice-key-case", {"about": K.UNKNOWN_LABEL}),
        ("choice-sum", {"about": K.NO_DISTRIBUTION}),
        ("score-sum", {"care": K.NO_DISTRIBUTION}),
        ("score-keys-1-based", {"care": K.UNKNOWN_LABEL}),
        ("xssi-200", dict.fromkeys(ASKED, K.MALFORMED)),
        ("wrong-route", dict.fromkeys(ASKED, K.NOT_FOUND)),
        ("auth-rejects-header", dict.fromkeys(ASKED, K.UNAUTHORISED)),
        # These break a rule of the protocol that no decision rests on.
        ("choice-second", {}),
        ("choice-no-confidence", {}),
        ("confidence-margin", {}),
        ("score-argmax", {}),
        ("no-usage", {}),
        ("extra-answer", {}),
        ("plain-content-type", {}),
    ],
)
async def test_each_way_to_be_wrong_is_a_failure_of_its_kind_and_of_its_question(
    fault: str, wrong: dict[str, FailureKind]
) -> None:
    with Running(MockConfig(faults=frozenset({fault}))) as server:
        found = await outcomes(server.url)
    assert {name: each.kind for name, each in found.items() if isinstance(each, Undecided)} == wrong


async def test_what_is_missing_is_asked_for_again_and_then_a_failure() -> None:
    with Running(MockConfig(faults=frozenset({"first-question-only"}))) as server:
        found = await outcomes(server.url)
        assert server.server.RequestHandlerClass.cfg.requests == 2
    kinds = {name: each.kind if isinstance(each, Undecided) else "decided" for name, each in found.items()}
    assert kinds == {"asks": "decided", "about": "decided", "care": K.MISSING}


async def test_a_choice_with_more_options_than_a_server_takes_is_played_off_and_nothing_is_dropped() -> None:
    many = ChoiceQuestion("Which?", tuple((f"o{number}", f"option {number}") for number in range(100)))
    with Running(MockConfig()) as server:
        whole = (await outcomes(server.url, {"which": many}))["which"]
    with Running(MockConfig(faults=frozenset({"cap-64"}))) as server:
        found = await outcomes(server.url, {"which": many, **ASKED})
    assert all(isinstance(each, AnswerProbabilities) for each in found.values())
    parts = found["which"]
    # The reference model scores each option by itself, so the parts come to what the whole says.
    assert parts.best == whole.best
    for label, p in whole.probabilities.items():
        assert parts.probabilities[label] == pytest.approx(p, abs=0.01)


async def test_a_request_that_is_too_large_is_split_down_to_single_questions() -> None:
    sizes: list[int] = []

    def answer(body: dict[str, Any]) -> Any:
        sizes.append(len(body["questions"]))
        if len(body["questions"]) > 1:
            return 413
        return {"answers": {name: {"type": "noul", "noul": 0.25} for name in body["questions"]}}

    asked: dict[str, Typed] = {f"q{number}": YesNoQuestion(f"Is it {number}?") for number in range(5)}
    with Served(answer) as server:
        found = await outcomes(server.url, asked)
    assert [found[name].yes for name in asked] == [0.25] * 5
    assert sorted(sizes)[:5] == [1] * 5


async def test_one_question_that_a_server_refuses_does_not_cost_the_others() -> None:
    def answer(body: dict[str, Any]) -> Any:
        if "bad" in body["questions"]:
            return 422
        return {"answers": {name: {"type": "noul", "noul": 0.9} for name in body["questions"]}}

    asked: dict[str, Typed] = {
        "a": YesNoQuestion("A?"),
        "bad": YesNoQuestion("B?"),
        "c": YesNoQuestion("C?"),
        "d": YesNoQuestion("D?"),
    }
    with Served(answer) as server:
        found = await outcomes(server.url, asked)
    assert found["bad"] == Undecided(K.REJECTED)
    assert [found[name].yes for name in ("a", "c", "d")] == pytest.approx([0.9] * 3)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("cut", K.RESET),
        ("hang", K.HANG),
        (b"<html>busy</html>", K.MALFORMED),
        (b"", K.EMPTY),
        ({"answers": []}, K.MALFORMED),
        ({"answers": {"asks": {"type": "noul", "noul": float("nan")}}}, K.NOT_FINITE),
        ({"answers": {"asks": {"type": "noul", "noul": True}}}, K.MALFORMED),
        ({"answers": {"asks": {"type": "noul", "noul": "0.9"}}}, K.MALFORMED),
        ({"answers": {"asks": {"type": "refusal"}}}, K.REFUSED),
        ({"answers": {"asks": {"type": "unsupported"}}}, K.REJECTED),
        ({"answers": {"asks": 0.5}}, K.MALFORMED),
        ({"answers": {}}, K.MISSING),
        (503, K.OVERLOADED),
        (429, K.RATE_LIMITED),
    ],
)
async def test_a_server_that_is_cut_slow_or_talks_garbage_gives_no_number(answer: Any, kind: FailureKind) -> None:
    with Served(lambda _: answer) as server:
        found = await outcomes(server.url, {"asks": ASKED["asks"]}, deadline_s=1.0)
    assert found == {"asks": Undecided(kind)}


async def test_a_server_that_was_killed_is_a_failure_that_may_pass_and_another_attempt_helps() -> None:
    with Served(lambda _: 200) as server:
        gone = server.url
    assert (await outcomes(gone, {"asks": ASKED["asks"]}))["asks"] == Undecided(K.RESET)
    with Running(MockConfig(busy_every=2)) as again:
        for _ in range(2):
            assert isinstance((await outcomes(again.url, retries=2))["asks"], AnswerProbabilities)


async def test_the_address_may_be_given_with_its_route_its_version_or_neither() -> None:
    with Served(lambda _: {"answers": {}}) as server:
        for base in ("", "/", "/v1", "/v1/systemone", "/inference/v1/systemone"):
            await outcomes(server.url + base, {"asks": ASKED["asks"]})
    assert list(dict.fromkeys(server.paths)) == ["/v1/systemone", "/inference/v1/systemone"]


async def test_a_failure_quotes_nothing_of_what_was_asked() -> None:
    provider = SystemOneProvider("mock", "a-key", base_url="http://127.0.0.1:9")
    with pytest.raises(LlmFailed) as caught:
        await provider.complete(Request(STATE, ASKED), 1.0)
    assert caught.value.__cause__ is None
    assert "crack" not in repr([caught.value, Request(STATE, ASKED), ASKED["asks"], time])
    await provider.close()
