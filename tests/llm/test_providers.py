"""Both adapters through their real SDKs: what is sent, what is read, and how everything that fails is called."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from benchmarks.scripted_provider import NO_LOGPROBS, Fail, Held, Mode, Say, Script, ScriptedProvider
from reward_server.llm.anthropic_provider import AnthropicProvider
from reward_server.llm.base import NO_LOGPROBS_HINT, Answer, ChatProvider, FailureKind, LlmFailed, Question, TokenUsage
from reward_server.llm.openai_provider import OpenAIProvider
from tests.llm.asking import GOOD, PRIVATE, SECRET_KEY, a_question

K = FailureKind
Make = Callable[[str], ChatProvider]

PROVIDERS: dict[str, Make] = {
    "anthropic": lambda url: AnthropicProvider("some-model", SECRET_KEY, base_url=url),
    "openai": lambda url: OpenAIProvider("some-model", SECRET_KEY, base_url=url),
    "vllm": lambda url: OpenAIProvider("some-model", SECRET_KEY, base_url=url, name="vllm"),
}
SHORT_S = 0.3
LONG_ENOUGH_TO_BEGIN_S = 1.5

each = pytest.mark.parametrize("name", PROVIDERS)
each_openai = pytest.mark.parametrize("name", ["openai", "vllm"])


async def asked(
    name: str, server: ScriptedProvider, question: Question | None = None, within_s: float = 10.0
) -> Answer:
    provider = PROVIDERS[name](server.url)
    try:
        return await provider.complete(question or a_question(), within_s)
    finally:
        await provider.close()


async def failure(name: str, script: Script, question: Question | None = None, within_s: float = 10.0) -> LlmFailed:
    with ScriptedProvider(script) as server, pytest.raises(LlmFailed) as caught:
        await asked(name, server, question, within_s)
    assert len(server.asked) == 1, "an adapter makes one attempt"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value


@each
async def test_an_answer_has_its_text_its_model_and_what_it_used(name: str) -> None:
    with ScriptedProvider(Say(GOOD, input_tokens=30, output_tokens=7, cached_tokens=100)) as server:
        answer = await asked(name, server)
    assert answer.parsed.model_dump() == GOOD
    assert json.loads(answer.text) == GOOD
    assert answer.model == "some-model"
    assert answer.usage == TokenUsage(input_tokens=130, output_tokens=7, cached_tokens=100)
    assert answer.tokens == ()


FAILURES = {
    Mode.RATE_LIMITED: K.RATE_LIMITED,
    Mode.OVERLOADED: K.OVERLOADED,
    Mode.TIMEOUT: K.TIMEOUT,
    Mode.RESET: K.RESET,
    Mode.HANG: K.HANG,
    Mode.REFUSAL: K.REFUSED,
    Mode.TRUNCATION: K.TRUNCATED,
    Mode.MALFORMED: K.MALFORMED,
    Mode.OUT_OF_RANGE: K.OUT_OF_RANGE,
    Mode.NAN: K.NOT_FINITE,
    Mode.HUGE: K.TOO_LARGE,
    Mode.EMPTY: K.EMPTY,
}


@each
@pytest.mark.parametrize("mode", FAILURES)
async def test_every_way_to_fail_has_a_kind(name: str, mode: Mode) -> None:
    within_s = {Mode.TIMEOUT: SHORT_S, Mode.HANG: LONG_ENOUGH_TO_BEGIN_S}.get(mode, 10.0)
    failed = await failure(name, Fail(mode, GOOD), within_s=within_s)
    assert failed.kind is FAILURES[mode]
    # The model answered: whoever asked pays for it, though it is of no use.
    answered = mode in {Mode.REFUSAL, Mode.TRUNCATION, Mode.MALFORMED, Mode.OUT_OF_RANGE, Mode.NAN, Mode.EMPTY}
    assert (failed.usage is not None and failed.usage.output_tokens > 0) is answered


@each
@pytest.mark.parametrize("mode", [Mode.WRONG_IDS, Mode.FOREIGN_QUOTE])
async def test_what_only_the_judge_can_see_comes_through_as_it_was_said(name: str, mode: Mode) -> None:
    with ScriptedProvider(Fail(mode, GOOD)) as server:
        answer = await asked(name, server)
    assert answer.parsed.model_dump() != GOOD


@each
@pytest.mark.parametrize("mode", [Mode.RATE_LIMITED, Mode.OVERLOADED])
async def test_what_the_provider_asks_for_is_passed_on(name: str, mode: Mode) -> None:
    assert (await failure(name, Fail(mode, retry_after_s=2.5))).retry_after_s == 2.5
    assert (await failure(name, Fail(mode))).retry_after_s is None


@each
@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (Say(status=401, raw=b"{}"), K.UNAUTHORISED),
        (Say(status=403, raw=b"no json at all"), K.UNAUTHORISED),
        (Say(status=404, raw=b'{"error": {"type": "not_found_error"}}'), K.NOT_FOUND),
        (Say(status=400, raw=b'{"error": {"message": "no"}}'), K.REJECTED),
        (Say(status=413, raw=b""), K.TOO_LARGE),
        (Say(status=500, raw=b"<html>"), K.OVERLOADED),
        (Say(status=307, raw=b"", headers={"location": "http://127.0.0.1:9/elsewhere"}), K.REJECTED),
        (Say(status=500, raw=b" " * 5_000_000), K.OVERLOADED),
        (Say(raw=b""), K.EMPTY),
        (Say(raw=b"<html>busy</html>"), K.MALFORMED),
        (Say(raw=b"[]"), K.MALFORMED),
        (Say(raw=b'{"a": 1'), K.MALFORMED),
        (Say(raw=b"[" * 200_000), K.MALFORMED),
        (Say(raw=b"\xff\xfe{}"), K.MALFORMED),
        (Say(raw=b"{" + b" " * 2_000_000 + b"}"), K.TOO_LARGE),
        (Say(raw=gzip.compress(b" " * 5_000_000), headers={"content-encoding": "gzip"}), K.TOO_LARGE),
        (Say(raw=b"no gzip", headers={"content-encoding": "gzip"}), K.MALFORMED),
        (Say(raw=b"{}"), None),
        (Say(GOOD, stop="tool_use"), K.MALFORMED),
        (Say(GOOD, stop="something new"), K.MALFORMED),
    ],
)
async def test_a_strange_response_is_no_answer(name: str, say: Say, kind: FailureKind | None) -> None:
    failed = await failure(name, say)
    assert failed.kind is (kind or (K.MALFORMED if name == "anthropic" else K.EMPTY))


@pytest.mark.parametrize(
    ("name", "stop", "kind"),
    [
        ("anthropic", "model_context_window_exceeded", K.TRUNCATED),
        ("anthropic", "max_tokens", K.TRUNCATED),
        ("anthropic", "refusal", K.REFUSED),
        ("openai", "length", K.TRUNCATED),
        ("openai", "content_filter", K.REFUSED),
    ],
)
async def test_a_stop_that_is_no_end_is_no_answer_however_good_the_text(name: str, stop: str, kind: K) -> None:
    assert (await failure(name, Say(GOOD, stop=stop))).kind is kind


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("anthropic", {"error": {"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens"}}),
        ("openai", {"error": {"code": "context_length_exceeded", "message": "too long"}}),
        ("vllm", {"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long"}}),
        ("vllm", {"error": {"code": 400, "type": "BadRequestError", "param": "input_tokens", "message": "too long"}}),
    ],
)
async def test_a_question_beyond_the_model_is_too_large(name: str, body: Any) -> None:
    assert (await failure(name, Say(status=400, raw=json.dumps(body).encode()))).kind is K.TOO_LARGE


async def test_a_server_that_is_not_there_is_a_reset() -> None:
    with ScriptedProvider(GOOD) as server:
        pass
    for make in PROVIDERS.values():
        provider = make(server.url)
        with pytest.raises(LlmFailed) as caught:
            await provider.complete(a_question(), 5.0)
        assert caught.value.kind is K.RESET
        await provider.close()


@each
async def test_whoever_is_cancelled_closes_the_connection(name: str) -> None:
    with ScriptedProvider(Held(GOOD)) as server:
        task = asyncio.create_task(asked(name, server))
        await server.until(lambda: len(server.asked) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.until(lambda: server.left == 1)


@each
async def test_a_huge_answer_is_left_long_before_its_end(name: str) -> None:
    with ScriptedProvider(Fail(Mode.HUGE)) as server:
        with pytest.raises(LlmFailed):
            await asked(name, server)
        await server.until(lambda: server.left == 1)


async def test_anthropic_is_sent_what_it_takes_and_nothing_else() -> None:
    question = a_question(temperature=0.0, seed=7, logprobs=True, user="half \ud800")
    with ScriptedProvider(GOOD) as server:
        await asked("anthropic", server, question)
    sent = server.asked[0]
    assert set(sent.body) == {"model", "max_tokens", "system", "messages", "output_config"}
    assert sent.body["system"] == [
        {"type": "text", "text": f"Rubric: {PRIVATE}", "cache_control": {"type": "ephemeral"}}
    ]
    assert sent.body["output_config"]["format"]["type"] == "json_schema"
    assert sent.schema["additionalProperties"] is False
    assert sent.user == "half ?"
    assert sent.headers["authorization"] == f"Bearer {SECRET_KEY}"


@pytest.mark.parametrize(("name", "limit"), [("openai", "max_completion_tokens"), ("vllm", "max_tokens")])
async def test_chat_completions_are_sent_as_the_server_knows_them(name: str, limit: str) -> None:
    with ScriptedProvider(GOOD) as server:
        await asked(name, server, a_question(temperature=0.0, seed=7, logprobs=True))
        await asked(name, server)
    full, plain = (sent.body for sent in server.asked)
    cached = {"prompt_cache_key"} if name == "openai" else set()
    assert set(plain) == {"model", "messages", "response_format", limit} | cached
    assert set(full) == set(plain) | {"temperature", "seed", "logprobs", "top_logprobs"}
    assert (full["temperature"], full["seed"], full["logprobs"], full["top_logprobs"]) == (0.0, 7, True, 20)
    assert full["response_format"]["json_schema"]["strict"] is True
    assert server.asked[0].system == f"Rubric: {PRIVATE}"
    assert PRIVATE not in full.get("prompt_cache_key", "")


async def test_questions_with_the_same_fixed_part_share_the_provider_s_cache_and_others_do_not() -> None:
    with ScriptedProvider(GOOD) as server:
        for system, user in (("The rules.", "One."), ("The rules.", "Another."), ("Other rules.", "One.")):
            await asked("openai", server, a_question(system=system, user=user))
    one, same, other = (sent.body["prompt_cache_key"] for sent in server.asked)
    assert one == same != other


@each
async def test_without_instructions_none_are_sent(name: str) -> None:
    with ScriptedProvider(GOOD) as server:
        await asked(name, server, a_question(system=""))
    assert server.asked[0].system == ""
    assert "system" not in server.asked[0].body


@each_openai
async def test_log_probabilities_are_read_and_what_is_none_is_left_out(name: str) -> None:
    logprobs = [("{", {"{": -0.1, "[": -2.5}), (" 5", {" 5": 1e-9, " 4": -math.inf, " 3": math.nan, " 2": 3.0})]
    with ScriptedProvider(Say(GOOD, logprobs=logprobs)) as server:
        answer = await asked(name, server, a_question(logprobs=True))
    assert [token.token for token in answer.tokens] == ["{", " 5"]
    assert answer.tokens[0].alternatives == {"{": -0.1, "[": -2.5}
    assert answer.tokens[1].alternatives == {" 5": 0.0}


@pytest.mark.parametrize(
    ("setting", "gone"),
    [("temperature", {"temperature"}), ("seed", {"seed"}), ("prompt_cache_key", {"prompt_cache_key"})],
)
async def test_a_setting_that_a_model_refuses_is_left_out_from_then_on(setting: str, gone: set[str]) -> None:
    error = {"error": {"code": "unsupported_value", "param": setting, "message": "This model does not take it."}}
    question = a_question(temperature=0.0, seed=7, logprobs=True)
    with ScriptedProvider([Say(status=400, raw=json.dumps(error).encode()), GOOD]) as server:
        provider = OpenAIProvider("some-model", SECRET_KEY, base_url=server.url)
        with pytest.raises(LlmFailed) as caught:
            await provider.complete(question, 5.0)
        answer = await provider.complete(question, 5.0)
        await provider.close()
    assert (caught.value.kind, caught.value.retry_after_s) == (K.REJECTED, 0.0)
    assert answer.parsed.model_dump() == GOOD
    assert set(server.asked[0].body) - set(server.asked[1].body) == gone


@each_openai
@pytest.mark.parametrize("setting", ["logprobs", "top_logprobs"])
async def test_a_model_that_refuses_log_probabilities_is_for_the_operator_to_name(name: str, setting: str) -> None:
    error = {"error": {"code": "unsupported_value", "param": setting, "message": "This model does not give them."}}
    question = a_question(logprobs=True)
    with ScriptedProvider([Say(status=400, raw=json.dumps(error).encode()), GOOD]) as server:
        provider = PROVIDERS[name](server.url)
        with capture_logs() as logs, pytest.raises(LlmFailed) as caught:
            await provider.complete(question, 5.0)
        assert provider.has_logprobs
        await provider.complete(question, 5.0)
        await provider.close()
    assert (caught.value.kind, caught.value.retry_after_s) == (K.NO_LOGPROBS, None)
    assert [line["hint"] for line in logs if line["event"] == "llm_gives_no_logprobs"] == [NO_LOGPROBS_HINT]
    assert server.asked[0].body == server.asked[1].body


WORDED = "You are not allowed to request logprobs from this model"
REFUSED = {
    "400 without a field": (400, {"error": {"message": "top_logprobs is not supported", "param": None}}),
    "422 of FastAPI": (422, {"detail": [{"loc": ["body", "logprobs"], "msg": "Extra inputs are not permitted"}]}),
    "422 in one line": (422, {"detail": "This model takes no logprobs."}),
    "403": (403, {"error": {"message": WORDED, "code": "forbidden"}}),
    "404": (404, {"error": WORDED}),
    "400, no JSON": (400, WORDED),
}


@each_openai
@pytest.mark.parametrize(("status", "said"), REFUSED.values(), ids=list(REFUSED))
async def test_a_refusal_that_names_log_probabilities_in_words_is_one_of_them(
    name: str, status: int, said: object
) -> None:
    raw = said.encode() if isinstance(said, str) else json.dumps(said).encode()
    with capture_logs() as logs:
        failed = await failure(name, Say(status=status, raw=raw), a_question(logprobs=True))
    assert (failed.kind, failed.retry_after_s) == (K.NO_LOGPROBS, None)
    assert [line["hint"] for line in logs if "hint" in line] == [NO_LOGPROBS_HINT]
    plain = await failure(name, Say(status=status, raw=raw))
    assert plain.kind is not K.NO_LOGPROBS


@each_openai
@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (422, {"detail": [{"loc": ["body", "seed"], "msg": "not an integer", "input": "logprobs"}]}, K.REJECTED),
        (422, {"error": {"message": "the schema has mylogprobsfield"}}, K.REJECTED),
        (429, {"error": {"message": "too many requests with logprobs"}}, K.RATE_LIMITED),
        (503, {"error": {"message": "logprobs are down"}}, K.OVERLOADED),
    ],
)
async def test_what_only_quotes_the_word_or_will_pass_is_no_refusal_of_them(
    name: str, status: int, said: object, kind: FailureKind
) -> None:
    failed = await failure(name, Say(status=status, raw=json.dumps(said).encode()), a_question(logprobs=True))
    assert failed.kind is kind


@each_openai
async def test_an_answer_without_the_log_probabilities_that_were_asked_for_is_none(name: str) -> None:
    failed = await failure(name, Say(GOOD, logprobs=NO_LOGPROBS), a_question(logprobs=True))
    assert failed.kind is K.NO_LOGPROBS
    assert failed.usage is not None
    assert failed.usage.output_tokens > 0
    with ScriptedProvider(Say(GOOD, logprobs=NO_LOGPROBS)) as server:
        assert (await asked(name, server)).tokens == ()


async def test_a_setting_that_was_not_sent_is_not_worth_another_attempt() -> None:
    error = {"error": {"code": "unsupported_value", "param": "temperature", "message": "no"}}
    failed = await failure("openai", Say(status=400, raw=json.dumps(error).encode()))
    assert (failed.kind, failed.retry_after_s) == (K.REJECTED, None)


@each
@pytest.mark.parametrize("usage", [True, False])
async def test_usage_that_is_missing_or_makes_no_sense_is_none(name: str, usage: bool) -> None:
    odd = Say(GOOD, usage=usage, input_tokens=-5, output_tokens=-5)
    with ScriptedProvider(odd) as server:
        assert (await asked(name, server)).usage == TokenUsage()


@each
@pytest.mark.parametrize(
    "step",
    [Say(status=401, raw=json.dumps({"error": {"message": PRIVATE, "type": PRIVATE}}).encode()), Fail(Mode.RESET)],
)
async def test_no_secret_and_no_content_is_logged_raised_or_shown(
    name: str, step: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedProvider(step) as server:
        provider = PROVIDERS[name](server.url)
        with caplog.at_level(logging.DEBUG), capture_logs() as logs, pytest.raises(LlmFailed) as caught:
            await provider.complete(a_question(), 5.0)
        await provider.close()
    shown = " ".join(
        [caplog.text, str(logs), repr(caught.value), str(caught.value), repr(provider), repr(a_question())]
    )
    assert PRIVATE not in shown
    assert SECRET_KEY not in shown


@each
async def test_the_sdk_stays_silent_even_where_its_own_variable_asks_for_everything(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for logger in ("anthropic", "openai"):
        monkeypatch.setattr(logging.getLogger(logger), "level", logging.DEBUG)
    with ScriptedProvider(GOOD) as server, caplog.at_level(logging.DEBUG):
        await asked(name, server)
    assert PRIVATE not in caplog.text
    assert "Request options" not in caplog.text


@each
async def test_an_operator_is_told_what_to_check(name: str) -> None:
    with capture_logs() as logs:
        await failure(name, Say(status=401, raw=b'{"error": {"type": "authentication_error"}}'))
    (line,) = logs
    assert (line["event"], line["status"], line["code"]) == ("llm_provider_refuses_us", 401, "authentication_error")
    assert "LABS_LLM_API_KEY" in line["hint"]
    assert line["model"] == "some-model"


async def test_the_environment_does_not_say_where_transcripts_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    anthropic, openai = AnthropicProvider("m", SECRET_KEY), OpenAIProvider("m", SECRET_KEY)
    assert str(anthropic._client.base_url).startswith(anthropic.endpoint)
    assert str(openai._client.base_url).startswith(openai.endpoint)
    await anthropic.close()
    await openai.close()
