"""A classifier behind a URL: what is sent, what is read, and every failure is a `JudgeFailed` without content."""

from __future__ import annotations

from typing import Any

import pytest

from reward_server.classifier.build import classifier_at
from reward_server.classifier.chat import chat_of
from reward_server.classifier.remote import PAUSE_S, RemoteClassifier
from reward_server.errors import ConfigurationError, JudgeFailed
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from tests.classifier.endpoint import Endpoint, classified, pooled

TALK = chat_of(
    Conversation((ConversationMessage("persona", "My roof leaks."), ConversationMessage("agent", "Since when?")))
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_chat_key_and_model_are_sent_and_logits_asked_for() -> None:
    with Endpoint(lambda _: classified(1.5)) as server:
        assert RemoteClassifier(f"{server.url}/classify", "rm", key="k1").output(TALK) == 1.5
    [body] = server.asked
    assert body["messages"] == [
        {"role": "user", "content": "My roof leaks."},
        {"role": "assistant", "content": "Since when?"},
    ]
    assert (body["model"], body["use_activation"], body["add_generation_prompt"]) == ("rm", False, False)
    assert server.headers[0]["authorization"] == "Bearer k1"


@pytest.mark.parametrize(
    ("path", "answer", "output"),
    [
        ("classify", classified(-2.0), -2.0),
        ("classify", classified(1.0, 4.0), 3.0),
        ("pooling", pooled([0.25]), 0.25),
        ("pooling", pooled([[9.0], [8.0], [0.5]]), 0.5),
        ("pooling", pooled([[[9.0, 9.0], [1.0, 2.0]]]), 1.0),
    ],
)
def test_one_number_is_read_from_the_answers_of_both_paths(path: str, answer: Any, output: float) -> None:
    with Endpoint(lambda _: answer) as server:
        assert RemoteClassifier(f"{server.url}/{path}", "rm").output(TALK) == output


@pytest.mark.parametrize(
    ("answer", "kind", "asked"),
    [
        ((200, {"data": []}), "malformed", 1),
        ((200, {"data": [{"probs": [True]}]}), "malformed", 1),
        ((200, {"data": [{"probs": "0.5"}]}), "malformed", 1),
        ((200, [1.0]), "malformed", 1),
        ((200, b"not json"), "malformed", 1),
        ((200, b'{"data": [{"probs": [NaN]}]}'), "not_finite", 1),
        (classified(0.1, 0.2, 0.7), "malformed", 1),
        ((200, b" " * 9_000_000), "too_large", 1),
        ((404, {}), "not_found", 1),
        ((401, {}), "unauthorised", 1),
        ((400, {}), "rejected", 1),
        ((307, {}), "rejected", 1),
        ((503, {}), "overloaded", 2),
        ((429, {}), "overloaded", 2),
    ],
)
def test_what_is_no_number_fails_and_what_may_pass_is_asked_once_more(answer: Any, kind: str, asked: int) -> None:
    with Endpoint(lambda _: answer) as server, pytest.raises(JudgeFailed) as failed:
        RemoteClassifier(f"{server.url}/classify", "rm").output(TALK)
    assert (failed.value.kind, len(server.asked)) == (kind, asked)
    assert "roof" not in str(failed.value)


def test_a_server_that_failed_is_left_alone_for_a_while() -> None:
    clock, answers = Clock(), [(503, {}), (503, {}), classified(1.0)]
    with Endpoint(lambda _: answers.pop(0)) as server:
        asked = RemoteClassifier(f"{server.url}/classify", "rm", clock=clock)
        with pytest.raises(JudgeFailed):
            asked.output(TALK)
        with pytest.raises(JudgeFailed) as held:
            asked.output(TALK)
        assert (held.value.kind, len(server.asked)) == ("breaker_open", 2)
        clock.now = PAUSE_S
        assert asked.output(TALK) == 1.0


def test_a_server_that_is_not_there_fails() -> None:
    with Endpoint(lambda _: classified(1.0)) as server:
        url = f"{server.url}/classify"
    with pytest.raises(JudgeFailed) as failed:
        RemoteClassifier(url, "rm").output(TALK)
    assert failed.value.kind == "reset"


@pytest.mark.parametrize(
    ("place", "model", "words"),
    [
        ("http://127.0.0.1:8000/v1", "rm", "has to end in /classify or /pooling"),
        ("http://127.0.0.1:8000/classify", None, "LABS_CLASSIFIER_MODEL"),
        ("/nowhere", None, "there is no folder /nowhere"),
    ],
)
def test_a_wrong_setting_is_one_line(place: str, model: str | None, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        classifier_at(place, model)
