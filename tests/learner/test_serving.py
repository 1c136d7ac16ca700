"""A trained policy behind an OpenAI-compatible endpoint, asked by OpenAI's own client, and measured through it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import openai
import pytest

from learner.cli import main
from learner.conversations import read_conversations
from learner.evaluation import EvaluationOptions, measure_endpoint, measure_stored
from learner.serving import COLDEST, listen
from learner.stored import StoredPolicy
from learner.transcripts import write
from reward_server.agents.telling import told
from tests.learner.quick import settings, stage
from tests.learner.small import policy, tokenizer
from tests.learner.stage import StageServer, listening, refusal
from tests.learner.test_chat_templates import TEMPLATES
from tests.learner.test_chat_templates import tokenizer as bytes_tokenizer
from trainer_client.chat.tokens import Renderer


def stored(spread: float = 3.0) -> StoredPolicy:
    words = tokenizer()
    return StoredPolicy(policy(words, spread=spread).model, words, Renderer(words), "small", max_tokens=6)


@contextmanager
def serving(api_key: str | None = None) -> Iterator[str]:
    server = listen(stored(), "127.0.0.1", 0, api_key)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def client(url: str, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key=key, max_retries=0)


HELLO = [{"role": "system", "content": "tell me"}, {"role": "user", "content": "hello"}]


def test_it_answers_as_openai_does() -> None:
    with serving() as url, client(url) as chat:
        assert [model.id for model in chat.models.list()] == ["small"]
        first, again, other = (
            chat.chat.completions.create(model="small", messages=HELLO, seed=seed, max_tokens=5)  # type: ignore[arg-type]
            for seed in (1, 1, 2)
        )
        streamed = "".join(
            part.choices[0].delta.content or ""
            for part in chat.chat.completions.create(
                model="small",
                messages=HELLO,  # type: ignore[arg-type]
                seed=1,
                max_tokens=5,
                stream=True,
            )
        )
    assert first.choices[0].message.content == again.choices[0].message.content == streamed
    assert first.choices[0].message.content != other.choices[0].message.content
    assert first.usage is not None
    assert 0 < first.usage.completion_tokens <= 5
    assert first.choices[0].finish_reason in ("stop", "length")


def test_a_temperature_of_zero_always_says_the_same() -> None:
    with serving() as url, client(url) as chat:
        said = {
            chat.chat.completions.create(model="small", messages=HELLO, temperature=0.0).choices[0].message.content  # type: ignore[arg-type]
            for _ in range(3)
        }
    assert len(said) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messages": []}, "non-empty"),
        ({"messages": [{"role": "assistant", "content": "hi"}]}, "must alternate"),
        ({"messages": [*HELLO, {"role": "assistant", "content": "hi"}]}, "the last message must be the user's"),
        ({"messages": [{"role": "user", "content": 5}]}, "text"),
        ({"temperature": -1}, "temperature"),
        ({"max_tokens": 9999}, "the model has"),
        ({"seed": "x"}, "seed"),
    ],
)
def test_what_cannot_be_answered_is_a_400_that_says_why(change: dict[str, object], message: str) -> None:
    body = {"model": "small", "messages": HELLO, **change}
    with serving() as url, client(url) as chat, pytest.raises(openai.BadRequestError, match=message):
        chat.post("/chat/completions", body=body, cast_to=object)


def test_a_key_is_asked_for_where_one_is_set() -> None:
    with serving("secret") as url:
        with client(url, "wrong") as chat, pytest.raises(openai.AuthenticationError):
            chat.models.list()
        with client(url, "secret") as chat:
            assert len(list(chat.models.list())) == 1


def test_a_server_for_others_needs_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path), "--host", "0.0.0.0"]) == 2
    assert "LEARNER_API_KEY" in capsys.readouterr().err


def test_any_endpoint_is_measured_on_held_out_seeds() -> None:
    stage = StageServer(turns=2, score=lambda said: 0.25 * len(said))
    with serving() as endpoint, listening(stage) as url:
        found = measure_endpoint(endpoint, "small", EvaluationOptions(["c/s"], 4, url=url))
    assert found.rewards == [0.5] * 4
    assert (found.mean, found.standard_error, found.errored) == (0.5, 0.0, 0)
    assert len({content["config"]["seed"] for content in stage.created}) == 4


class Desk(StageServer):
    """A stage with a tool."""

    def _create(self, content: dict[str, Any]) -> httpx2.Response:
        answer = super()._create(content).json()
        tool = {"id": "plan", "type": "decision", "name": "The plan", "mode": "options", "options": ["tell", "wait"]}
        return httpx2.Response(200, json={**answer, "tools": [tool]})


class Caller(BaseHTTPRequestHandler):
    """An endpoint that calls the tool: as OpenAI's do, or in words where it refuses `tools`."""

    heard: ClassVar[list[dict[str, Any]]] = []
    takes_tools: ClassVar[bool] = True

    def log_message(self, *_: object) -> None:
        return

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "tools" in body and not self.takes_tools:
            self.send_response(400)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.heard.append(body)
        call = {"name": "plan", "arguments": {"value": "tell"}}
        message: dict[str, Any] = {"role": "assistant", "content": f"Done. <tool_call>{json.dumps(call)}</tool_call>"}
        if "tools" in body:
            function = {"name": "plan", "arguments": json.dumps(call["arguments"])}
            calls = [{"id": "c1", "type": "function", "function": function}]
            message = {"role": "assistant", "content": "<think>hm</think>Done.", "tool_calls": calls}
        answer = json.dumps({"choices": [{"message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@contextmanager
def calling(*, takes_tools: bool) -> Iterator[str]:
    Caller.heard, Caller.takes_tools = [], takes_tools
    endpoint = ThreadingHTTPServer(("127.0.0.1", 0), Caller)
    thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{endpoint.server_address[1]}"
    finally:
        endpoint.shutdown()
        thread.join()
        endpoint.server_close()


def test_an_endpoint_is_asked_as_the_server_asks_an_agent() -> None:
    stage = Desk(turns=2)
    with calling(takes_tools=True) as address, listening(stage) as url:
        found = measure_endpoint(address, "any", EvaluationOptions(["c/s"], 1, url=url, system="Be kind."))
    assert found.errored == 0
    given = stage.received[0]["messages"][-1]
    assert (given["content"], given["tool_calls"][0]["input"]) == ("Done.", {"value": "tell"})
    body = Caller.heard[-1]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["plan"]
    log = [{"role": "user", "content": "hello, I am number 6"}, given, stage.logs["ep_1"][2]]
    assert body["messages"] == told("Be kind.", log)
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "call_1_0", "content": "Received."}


def test_an_endpoint_that_refuses_tools_is_told_of_them_in_words_and_its_calls_are_sent() -> None:
    stage = Desk(turns=2)
    with calling(takes_tools=False) as address, listening(stage) as url:
        found = measure_endpoint(address, "any", EvaluationOptions(["c/s"], 1, url=url, system="Be kind."))
    assert found.errored == 0
    assert "takes no tools" in found.played[-1]
    said = stage.received[0]["messages"][-1]
    assert (said["content"], said["tool_calls"][0]["input"]) == ("Done.", {"value": "tell"})
    system, *_, again, _ = Caller.heard[-1]["messages"]
    assert system["content"].startswith("Be kind.\n\nYou may call these tools")
    assert again == {
        "role": "assistant",
        "content": 'Done.\n<tool_call>{"name": "plan", "arguments": {"value": "tell"}}</tool_call>',
    }


@pytest.mark.parametrize(("asked", "is_told"), [([], False), (["--system", "card"], True)])
@pytest.mark.slow
def test_a_run_is_measured_with_the_system_prompt_it_was_trained_with(
    asked: list[str], is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tiny model has never seen a card: with one it would be another policy."""
    seen: list[str | None] = []
    within = Renderer.within

    def spy(self: Renderer, system: str | None, *more: Any) -> Renderer:
        seen.append(system)
        return within(self, system, *more)

    with listening(stage()) as url:
        assert main(["train", "demo", "--url", url, "--out", str(tmp_path), *settings("run.updates=1")]) == 0
        monkeypatch.setattr(Renderer, "within", spy)
        command = ["evaluate", str(tmp_path), "--scenario", "c/s", "--episodes", "2", "--url", url]
        assert main([*command, *asked]) == 0
    assert bool(seen) == is_told


@pytest.mark.slow
def test_a_run_is_measured_as_it_was_trained_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    temperatures: list[float] = []
    collection = "clinical-intake"  # of the demo
    act = StoredPolicy.policy

    def spy(self: StoredPolicy, temperature: float = 1.0) -> Any:
        temperatures.append(temperature)
        return act(self, temperature)

    monkeypatch.setattr(StoredPolicy, "policy", spy)
    reward = "server.reward_config={composite={combine='min',parts=[{judge='rubric'},{judge='reward_model'}]}}"
    changes = settings("run.updates=1", "model.temperature=0.7", "server.scenario=other", "server.max_turns=3", reward)
    server = stage()
    with listening(server) as url:
        assert main(["train", "demo", "--url", url, "--out", str(tmp_path / "run"), *changes]) == 0
        played = len(server.created)
        capsys.readouterr()
        command = ["evaluate", str(tmp_path / "run"), "--which", "last", "--episodes", "2", "--url", url]
        server.collection, server.catalog = collection, ["s", "other"]
        assert main(command) == 0
        own = capsys.readouterr().out.splitlines()
        more = ["--scenario", f"{collection}/s", "--temperature", "0", "--max-turns", "none", "--max-tokens", "3"]
        assert main([*command, *more]) == 0
        other = capsys.readouterr().out.splitlines()
    first, second = server.created[played : played + 2], server.created[played + 2 :]
    assert {content["scenario_slug"] for content in first} == {"other"}
    assert {content["scenario_slug"] for content in second} == {"s"}
    assert all("composite" in json.dumps(content) for content in (*first, *second))
    assert temperatures == [0.7, COLDEST]
    assert own[0] == (
        f"run, update 1: {collection}/other: temperature 0.7, at most 3 turns of at most 4 tokens, system prompt: none;"
        " the run's reward_config; variants: train"
    )
    assert own[1] == "as the run was trained"
    assert "temperature 0, as many turns as the scenario allows of at most 3 tokens" in other[0]
    assert other[1].startswith(f"not as the run was trained: {collection}/other: temperature 0.7")


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["--max-turns", "0"], "must be a number above 0, or none"),
        (["--max-turns", "few"], "must be a number above 0, or none"),
        (["--device", "nowhere"], "--device: 'nowhere' cannot be used on this machine"),
    ],
)
def test_what_cannot_be_played_is_one_line(
    option: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = tokenizer()
    policy(words).model.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    capsys.readouterr()  # the progress of writing
    assert main(["evaluate", str(tmp_path), *option]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_an_endpoint_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(StageServer(turns=2)) as url:
        assert main(["evaluate", "http://127.0.0.1:9/v1", "--scenario", "c/s", "--episodes", "2", "--url", url]) == 2
    error = capsys.readouterr().err
    assert "none of 2 episodes has a reward" in error
    assert "no answer from http://127.0.0.1:9: " in error
    assert error.count("\n") == 1


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_transcripts_of_an_evaluation_are_written_and_can_be_learned_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage, path = Desk(turns=2, score=lambda said: 0.25 * len(said)), tmp_path / "some" / "episodes.jsonl"
    with calling(takes_tools=True) as address, listening(stage) as url:
        command = ["evaluate", address, "--scenario", "c/s", "--episodes", "2", "--url", url, "--save", str(path)]
        assert main(command) == 0
    assert f"transcripts: {path}" in capsys.readouterr().out
    first, _ = lines_of(path)
    assert (first["scenario"], first["rewards"], first["reward"]) == ("c/s", [0.25, 0.5], 0.5)
    roles = [message["role"] for message in first["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user", "assistant", "tool", "user"]
    words = bytes_tokenizer(TEMPLATES["qwen2_5"])
    assert len(read_conversations(path, Renderer(words), words)) == 2


def test_transcripts_of_a_stored_policy_are_those_of_the_server(tmp_path: Path) -> None:
    words, path = tokenizer(), tmp_path / "episodes.jsonl"
    policy(words).model.save_pretrained(tmp_path / "model")
    words.save_pretrained(tmp_path / "model")
    server = stage()
    server.faults[2] = refusal(400, "bad_request")
    with listening(server) as url:
        asked = EvaluationOptions(["c/s"], 2, url=url, max_tokens=4, system="Be kind.", transcripts=True)
        found = measure_stored(str(tmp_path / "model"), "best", asked)
        write(found.transcripts, path)
    played, failed = sorted(lines_of(path), key=lambda row: "error" in row)
    assert played["messages"] == [{"role": "system", "content": "Be kind."}, *server.logs["ep_1"]]
    assert played["reward"] == server.rewards["ep_1"][-1]
    assert failed["error"]["code"] == "bad_request"
    assert "reward" not in failed
