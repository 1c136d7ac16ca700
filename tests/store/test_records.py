"""Records tell nothing private about themselves."""

from __future__ import annotations

import pytest

from tests.store.builders import a_comparison, a_key, a_turn, an_answer, an_episode, an_evaluation

SECRET = [{"criterion_id": "canary"}]


@pytest.mark.parametrize(
    "record",
    [
        an_episode(opening="canary", persona_state={"said": "canary"}, metadata={"m": "canary"}),
        a_turn(
            an_episode(), agent_content="canary", tool_calls=SECRET, observation="canary", answer={"content": "canary"}
        ),
        an_evaluation(messages=SECRET, verdicts=SECRET),
        a_comparison(messages_a=SECRET, messages_b=SECRET, verdicts_a=SECRET, verdicts_b=SECRET),
        an_answer(body={"content": "canary"}),
        a_key(digest=b"canary"),
    ],
)
def test_a_repr_holds_no_text_and_no_secret(record: object) -> None:
    assert "canary" not in repr(record)
