"""A trained policy behind an OpenAI-compatible endpoint, asked by OpenAI's own client, and measured through it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest

from learner.cli import main
from learner.evaluation import Asked, measure_endpoint
from learner.serving import listen
from learner.stored import Stored
from learner.tokens import Renderer
from tests.learner.small import policy, tokenizer
from tests.learner.stage import StageServer, listening


def stored(spread: float = 3.0) -> Stored:
    words = tokenizer()
    return Stored(policy(words, spread=spread).model, words, Renderer(words), "small", max_tokens=6)


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
        found = measure_endpoint(endpoint, "small", Asked(["c/s"], 4, url=url))
    assert found.rewards == [0.5] * 4
    assert (found.mean, found.standard_error, found.errored) == (0.5, 0.0, 0)
    assert len({content["config"]["seed"] for content in stage.created}) == 4


def test_an_endpoint_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(StageServer(turns=2)) as url:
        assert main(["evaluate", "http://127.0.0.1:9/v1", "--scenario", "c/s", "--episodes", "2", "--url", url]) == 2
    error = capsys.readouterr().err
    assert "none of 2 episodes has a reward" in error
    assert error.count("\n") == 1
