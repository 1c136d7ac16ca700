"""Generated hostile bodies: whatever is sent, the answer is a 200 or a 4xx in the envelope, never a 5xx.

`LABS_HOSTILE_BODIES=10000 pytest tests/contract/test_hostile.py` sends more.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.house import WHERE, Client, Json, agent

pytestmark = pytest.mark.one_house

COUNT = int(os.environ.get("LABS_HOSTILE_BODIES", "1000"))
SEED = int(os.environ.get("LABS_HOSTILE_SEED", "1"))
CALL = {"name": "repair", "type": "decision", "input": {"value": "new_tube"}}
MESSAGES = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "How?", "tool_calls": [CALL]}]
WEIGHTS = {"quality_weights": {"discovery": 1, "rubrics": 0.5}, "skip_safety_gate": False}
EVALUATION = {
    **WHERE,
    "messages": MESSAGES,
    "agent_role": "assistant",
    "reward_config": WEIGHTS,
    "normalization_key": "k",
    "normalization_windows": ["7d", "3n"],
}
CONFIG = {"seed": 1, "max_turns": 3, "observation_role": "user", "persona_slug": "guarded", "metadata": {"a": [1]}}

BODIES: dict[str, Json] = {
    "/episodes": {**WHERE, "score_turns": True, "config": CONFIG, "reward_config": WEIGHTS},
    "/evaluate": EVALUATION,
    "/batch/evaluate": {"items": [{"id": "a", **EVALUATION}, {"id": "b", **EVALUATION}]},
    "/compare": {**WHERE, "response_a": {"messages": MESSAGES}, "response_b": {"messages": MESSAGES}},
    "/rank": {**WHERE, "responses": [{"id": i, "messages": MESSAGES} for i in "ab"], "reward_config": WEIGHTS},
    "turn": {"messages": [agent("How did it happen?", CALL)], "reward_config": WEIGHTS, "terminate": False},
}

ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63 - 1,
    -(2**63),
    2**64,
    10**40,
    0.5,
    -0.0,
    1e308,
    1e-320,
    "",
    " ",
    "x",
    "7d",
    "assistant",
    "system",
    "\u0001",
    "\u202e\u200b\ufeff",
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "{{7*7}}",
    "%s%n%x",
    "😀" * 50,
    "a" * 10_001,
    "Ä" * 300,
    [],
    [[]],
    [None],
    [{}],
    ["x"] * 200,
    {},
    {"": ""},
    {"a": {"b": {"c": {}}}},
    {"$ref": "#"},
    {"__proto__": {"admin": True}},
    {f"k{i}": i for i in range(200)},
]
RAW = [
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"1" * 5000,
    b'"\\ud800"',
    b'"\\u0000"',
    b'"\\udead\\ubeef"',
    b"[" * 500 + b"]" * 500,
    b'{"a":' * 300 + b"1" + b"}" * 300,
    b'"\xff\xfe"',
    b"//",
    b"undefined",
    b"'x'",
    b'{"a":1,"a":2}',
]
MARK = "@raw@"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def mutate(rng: random.Random, body: Json) -> Any:
    """One or more changes at random places."""
    changed: Any = copy.deepcopy(body)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        path = rng.choice(list(places(changed)))
        if not path:
            if rng.random() < 0.1:
                return copy.deepcopy(rng.choice(ODD))
            continue
        parent = changed
        for step in path[:-1]:
            parent = parent[step]
        _change(rng, parent, path[-1])
    return changed


def _change(rng: random.Random, parent: Any, key: Any) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[rng.choice(("extra", "", "id", "ünï", "a" * 300, "__class__"))] = copy.deepcopy(rng.choice(ODD))
    elif kind == 2 and isinstance(parent, list):
        parent += [copy.deepcopy(parent[key])] * rng.choice((1, 40))
    elif kind == 3:
        parent[key] = MARK
    else:
        parent[key] = copy.deepcopy(rng.choice(ODD))


def encode(rng: random.Random, value: Any) -> bytes:
    body = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode()
    body = body.replace(f'"{MARK}"'.encode(), rng.choice(RAW))
    damage = rng.random()
    if damage < 0.05:
        return body[: rng.randrange(len(body) + 1)]
    if damage < 0.10:
        cut = rng.randrange(len(body) + 1)
        return body[:cut] + rng.randbytes(3) + body[cut:]
    return body


@pytest.mark.slow
async def test_no_body_makes_the_server_fail(labs: Client) -> None:
    rng = random.Random(SEED)
    episode = await labs.create()
    counts: dict[int, int] = {}
    for _ in range(COUNT):
        name = rng.choice(list(BODIES))
        body = encode(rng, mutate(rng, BODIES[name]))
        if name == "turn" and (await labs.read(episode))["status"] == "complete":
            episode = await labs.create()
        path = f"/episodes/{episode['episode_id']}/turns" if name == "turn" else name
        headers = {"Content-Type": "application/json"}
        if rng.random() < 0.1:
            headers["Idempotency-Key"] = rng.choice(("k1", "k2", "x" * 300, ""))
        response = await labs.call("POST", path, content=body, headers=headers)
        content = response.json()
        assert response.status_code in (200, 400, 404, 409, 413), (response.text, path, body[:2000])
        if response.status_code != 200:
            assert set(content) == {"message", "data"}
            assert content["data"]["request_id"] == response.headers["x-request-id"]
        counts[response.status_code] = counts.get(response.status_code, 0) + 1
    assert counts[400] > COUNT / 3, counts
    assert counts[200] > COUNT / 50, counts


async def test_no_query_makes_the_server_fail(labs: Client) -> None:
    rng = random.Random(SEED)
    odd = ["", "x", "-1", "0", "1e5", "null", "%00", "%ff", "%F0%9F%98%80", "' OR 1=1", "a" * 500, "..", "[]", "&&&"]
    for _ in range(max(100, COUNT // 10)):
        names = rng.sample(("limit", "cursor", "collection_slug", "status", "limit[]", "x"), 3)
        query = "&".join(f"{name}={rng.choice(odd)}" for name in names)
        response = await labs.call("GET", f"/episodes?{query}")
        assert response.status_code in (200, 400), (response.text, query)
