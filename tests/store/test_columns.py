"""JSON columns: one text for one value, and nothing that is no JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reward_server.store.columns import dump_json


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [0.1, -0.0, 1e-7, 1e22, 10**30, None, True]},
        {"text": 'naïve 😀 \u2028 \x00 \x7f "quoted" \\'},
        "half a pair: \ud83d",
        "NaN and Infinity, in prose",
    ],
)
def test_what_is_written_is_ascii_and_reads_back_the_same(value: Any) -> None:
    text = dump_json(value)
    assert text.isascii()
    assert json.dumps(json.loads(text)) == json.dumps(value)


def test_keys_keep_their_order_and_nothing_is_padded() -> None:
    assert dump_json({"b": [1, 2], "a": 0.5}) == '{"b":[1,2],"a":0.5}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        dump_json({"reward": number})
