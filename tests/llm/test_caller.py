"""Around a call: retries, waiting, the deadline, places, single flight, and what each of them lets through."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.scripted_provider import Fail, Held, Mode, ScriptedProvider
from reward_server.llm import caller as module
from reward_server.llm.anthropic_provider import AnthropicProvider
from reward_server.llm.base import TRANSIENT, Answer, FailureKind, LlmFailed, Question, TokenUsage
from reward_server.llm.caller import MOST_LEFT_OUT, CallLimits, LanguageModelCaller, digest_of
from reward_server.llm.openai_provider import OpenAIProvider
from tests.llm.asking import (
    GOOD,
    PRIVATE,
    SECRET_KEY,
    Desk,
    FakeProvider,
    Found,
    a_desk,
    a_question,
    an_answer,
    turns_of_the_loop,
)

K = FailureKind
FINAL = sorted(set(K) - TRANSIENT)


async def failure(caller: LanguageModelCaller, question: Question | None = None) -> LlmFailed:
    with pytest.raises(LlmFailed) as caught:
        await caller.ask(question or a_question(), lab_id="acme")
    return caught.value


async def test_an_answer_is_asked_for_once() -> None:
    desk = a_desk(an_answer())
    answer = await desk.caller().ask(a_question(), lab_id="acme")
    assert answer.usage == TokenUsage(10, 5)
    assert len(desk.provider.asked) == 1
    assert desk.heard.attempts == ["answered"]
    assert desk.heard.usage == TokenUsage(10, 5)
    assert desk.heard.failures == []


@pytest.mark.parametrize("kind", sorted(TRANSIENT))
async def test_what_may_pass_is_tried_again_and_may_work(kind: FailureKind) -> None:
    desk = a_desk(LlmFailed(kind), LlmFailed(kind), an_answer())
    assert isinstance(await desk.caller().ask(a_question(), lab_id="acme"), Answer)
    assert desk.heard.attempts == [kind, kind, "answered"]
    assert desk.heard.failures == []


@pytest.mark.parametrize("kind", sorted(TRANSIENT))
@pytest.mark.parametrize("retries", [0, 2])
async def test_what_does_not_pass_fails_as_what_it_is(kind: FailureKind, retries: int) -> None:
    desk = a_desk(LlmFailed(kind))
    assert (await failure(desk.caller(retries=retries))).kind is kind
    assert len(desk.provider.asked) == retries + 1
    assert desk.heard.failures == [kind]


@pytest.mark.parametrize("kind", FINAL)
async def test_what_another_attempt_cannot_help_is_not_tried_again(kind: FailureKind) -> None:
    desk = a_desk(LlmFailed(kind))
    assert (await failure(desk.caller())).kind is kind
    assert len(desk.provider.asked) == 1


async def test_a_model_that_refuses_several_settings_is_asked_without_them() -> None:
    refused = LlmFailed(K.REJECTED, retry_after_s=0.0)
    desk = a_desk(refused, refused, refused, an_answer())
    assert isinstance(await desk.caller(retries=0).ask(a_question(), lab_id="acme"), Answer)
    assert desk.time.slept == [0.0] * 3


async def test_a_model_that_refuses_everything_is_not_asked_for_ever() -> None:
    desk = a_desk(LlmFailed(K.REJECTED, retry_after_s=0.0))
    assert (await failure(desk.caller())).kind is K.REJECTED
    assert len(desk.provider.asked) == 1 + MOST_LEFT_OUT


async def test_a_provider_that_asks_for_no_wait_gets_no_attempt_more() -> None:
    desk = a_desk(LlmFailed(K.RATE_LIMITED, retry_after_s=0.0))
    await failure(desk.caller(retries=2))
    assert len(desk.provider.asked) == 3


async def test_waiting_doubles_up_to_a_limit() -> None:
    desk = a_desk(LlmFailed(K.OVERLOADED))
    await failure(desk.caller(retries=7, deadline_s=1000.0))
    assert desk.time.slept == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


async def test_waiting_is_spread_over_the_whole_time() -> None:
    desk = a_desk(LlmFailed(K.OVERLOADED))
    await failure(desk.caller(jitter=0.25))
    assert desk.time.slept == [0.125, 0.25]


async def test_the_provider_is_given_the_time_it_asks_for() -> None:
    desk = a_desk(LlmFailed(K.RATE_LIMITED, retry_after_s=7.0), an_answer())
    await desk.caller().ask(a_question(), lab_id="acme")
    assert desk.time.slept == [7.0]


async def test_time_that_does_not_fit_the_deadline_is_not_waited_for() -> None:
    desk = a_desk(LlmFailed(K.RATE_LIMITED, retry_after_s=31.0))
    failed = await failure(desk.caller(deadline_s=30.0))
    assert (failed.kind, failed.retry_after_s) == (K.RATE_LIMITED, 31.0)
    assert desk.time.slept == []
    assert len(desk.provider.asked) == 1


async def test_all_attempts_share_one_deadline_and_the_last_gets_what_is_left() -> None:
    desk = a_desk()

    async def late() -> Answer:
        desk.time.now += desk.provider.given_s[-1]
        raise LlmFailed(K.TIMEOUT)

    desk.provider.script = [late]
    began = desk.time.now
    assert (await failure(desk.caller(deadline_s=40.0))).kind is K.TIMEOUT
    assert desk.provider.given_s == [20.0, 9.75, 8.75]
    assert desk.time.now - began == 40.0


async def test_waiting_for_a_place_does_not_count_against_the_deadline() -> None:
    gate = asyncio.Event()

    async def held() -> Answer:
        await gate.wait()
        return an_answer()

    desk = a_desk(held)
    caller = desk.caller(concurrency=1, deadline_s=40.0)
    first = asyncio.create_task(caller.ask(a_question(), lab_id="acme"))
    await turns_of_the_loop()
    second = asyncio.create_task(caller.ask(a_question(user="another"), lab_id="acme"))
    await turns_of_the_loop()
    desk.time.now += 1000.0
    gate.set()
    assert isinstance(await first, Answer)
    assert isinstance(await second, Answer)
    assert desk.provider.given_s == [20.0, 20.0]


async def test_no_more_are_on_their_way_than_there_are_places() -> None:
    desk = a_desk()

    async def slow() -> Answer:
        await turns_of_the_loop(3)
        return an_answer()

    desk.provider.script = [slow]
    caller = desk.caller(concurrency=4)
    questions = [a_question(user=str(number)) for number in range(20)]
    await asyncio.gather(*(caller.ask(question, lab_id="acme") for question in questions))
    assert desk.provider.most_at_once == 4
    assert len(desk.provider.asked) == 20


async def test_a_place_is_given_back_whatever_happens() -> None:
    desk = a_desk(LlmFailed(K.REFUSED), LlmFailed(K.TOO_LARGE), an_answer())
    caller = desk.caller(concurrency=1)
    await failure(caller)
    await failure(caller)
    assert isinstance(await caller.ask(a_question(), lab_id="acme"), Answer)


def a_held_desk() -> tuple[Desk, asyncio.Event]:
    gate = asyncio.Event()

    async def held() -> Answer:
        await gate.wait()
        return an_answer()

    return a_desk(held), gate


async def test_what_many_ask_at_once_is_asked_once() -> None:
    desk, gate = a_held_desk()
    caller = desk.caller()
    asking = [asyncio.create_task(caller.ask(a_question(), lab_id="acme")) for _ in range(20)]
    await turns_of_the_loop()
    gate.set()
    answers = await asyncio.gather(*asking)
    assert len(desk.provider.asked) == 1
    assert len({id(answer) for answer in answers}) == 1
    assert desk.heard.shares == 19


async def test_two_labs_two_samples_and_two_questions_are_asked_for_themselves() -> None:
    desk, gate = a_held_desk()
    caller = desk.caller()
    asking = [
        asyncio.create_task(asked)
        for asked in (
            caller.ask(a_question(), lab_id="acme"),
            caller.ask(a_question(), lab_id="other"),
            caller.ask(a_question(), lab_id="acme", sample=1),
            caller.ask(a_question(user="Bye."), lab_id="acme"),
        )
    ]
    await turns_of_the_loop()
    gate.set()
    await asyncio.gather(*asking)
    assert len(desk.provider.asked) == 4
    assert desk.heard.shares == 0


async def test_a_failure_reaches_all_who_asked_each_with_its_own_exception() -> None:
    gate = asyncio.Event()

    async def held() -> Answer:
        await gate.wait()
        raise LlmFailed(K.REFUSED)

    desk = a_desk(held)
    caller = desk.caller()
    asking = [asyncio.create_task(failure(caller)) for _ in range(3)]
    await turns_of_the_loop()
    gate.set()
    failures = await asyncio.gather(*asking)
    assert [failed.kind for failed in failures] == [K.REFUSED] * 3
    assert len({id(failed) for failed in failures}) == 3
    assert len(desk.provider.asked) == 1
    assert desk.heard.failures == [K.REFUSED]


async def test_nothing_is_remembered() -> None:
    desk = a_desk(an_answer())
    caller = desk.caller()
    await caller.ask(a_question(), lab_id="acme")
    await caller.ask(a_question(), lab_id="acme")
    assert len(desk.provider.asked) == 2


async def test_one_who_leaves_does_not_take_the_answer_from_the_others() -> None:
    desk, gate = a_held_desk()
    caller = desk.caller()
    first = asyncio.create_task(caller.ask(a_question(), lab_id="acme"))
    second = asyncio.create_task(caller.ask(a_question(), lab_id="acme"))
    await turns_of_the_loop()
    first.cancel()
    await turns_of_the_loop()
    assert desk.provider.cancelled == 0
    gate.set()
    assert isinstance(await second, Answer)


async def test_the_last_who_leaves_ends_the_call_and_the_next_begins_another() -> None:
    desk, gate = a_held_desk()
    caller = desk.caller(concurrency=1)
    asking = [asyncio.create_task(caller.ask(a_question(), lab_id="acme")) for _ in range(2)]
    await turns_of_the_loop()
    for task in asking:
        task.cancel()
    again = asyncio.create_task(caller.ask(a_question(), lab_id="acme"))
    await turns_of_the_loop()
    assert desk.provider.cancelled == 1
    gate.set()
    assert isinstance(await again, Answer)
    assert desk.heard.attempts == ["cancelled", "answered"]


@pytest.mark.parametrize("provider", [AnthropicProvider, OpenAIProvider])
async def test_over_the_wire_cancelling_closes_the_connection(
    provider: type[AnthropicProvider] | type[OpenAIProvider],
) -> None:
    with ScriptedProvider(Held(GOOD)) as server:
        caller = LanguageModelCaller(provider("m", SECRET_KEY, base_url=server.url), CallLimits())
        asking = [asyncio.create_task(caller.ask(a_question(), lab_id="acme")) for _ in range(5)]
        await server.until(lambda: len(server.asked) == 1)
        for task in asking:
            task.cancel()
        await server.until(lambda: server.left == 1)
        await caller.close()
    assert len(server.asked) == 1


@pytest.mark.parametrize("provider", [AnthropicProvider, OpenAIProvider])
async def test_over_the_wire_attempts_are_counted_and_bounded(
    provider: type[AnthropicProvider] | type[OpenAIProvider],
) -> None:
    script = [Fail(Mode.OVERLOADED), Fail(Mode.RESET), GOOD]
    with ScriptedProvider(script) as server:
        desk = a_desk()
        caller = LanguageModelCaller(
            provider("m", SECRET_KEY, base_url=server.url), CallLimits(), timing=desk.time.timing()
        )
        await caller.ask(a_question(), lab_id="acme")
        assert [sent.headers["x-stainless-retry-count"] for sent in server.asked] == ["0", "0", "0"]
        questions = [a_question(user=str(number)) for number in range(40)]
        await asyncio.gather(*(caller.ask(question, lab_id="acme") for question in questions))
        await caller.close()
    assert len(server.asked) == 43
    assert server.most_at_once <= CallLimits().concurrency


CHANGES = [
    {"system": "Rubric"},
    {"user": "Hello"},
    {"schema": Found},
    {"max_tokens": 99},
    {"temperature": 0.0},
    {"seed": 0},
    {"logprobs": True},
]


def test_everything_that_may_change_an_answer_changes_the_digest() -> None:
    digests = {digest_of(a_question(**change)) for change in [{}, *CHANGES]}
    assert len(digests) == len(CHANGES) + 1
    assert digest_of(a_question()) == digest_of(a_question())


def test_text_that_moves_from_one_part_to_the_other_is_another_question() -> None:
    assert digest_of(a_question(system="ab", user="c")) != digest_of(a_question(system="a", user="bc"))
    assert digest_of(a_question(user="\ud800")) != digest_of(a_question(user="?"))


def test_the_version_names_provider_model_and_endpoint() -> None:
    def version(**changes: str) -> str:
        return LanguageModelCaller(FakeProvider([an_answer()], **changes), CallLimits()).version

    versions = {version(), version(name="openai"), version(model="n"), version(endpoint="http://elsewhere")}
    assert len(versions) == 4
    assert version() == version()


def test_the_version_follows_the_program_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    versions, every = set(), module.ASKING
    for left_out in (None, *every):
        monkeypatch.setattr(module, "ASKING", [name for name in every if name != left_out])
        module._program.cache_clear()
        versions.add(LanguageModelCaller(FakeProvider([an_answer()]), CallLimits()).version)
    monkeypatch.undo()
    module._program.cache_clear()
    assert len(versions) == 5


async def test_what_operators_see_holds_no_secret() -> None:
    provider = OpenAIProvider("some-model", SECRET_KEY, base_url="https://user:hunter2@host/v1?k=hunter2")
    caller = LanguageModelCaller(provider, CallLimits())
    assert caller.name == "openai/some-model"
    shown = f"{caller.describe()} {caller!r} {provider!r} {vars(provider)} {a_question()}"
    await caller.close()
    assert "https://host/v1" in shown
    for secret in (SECRET_KEY, "hunter2", PRIVATE):
        assert secret not in shown
