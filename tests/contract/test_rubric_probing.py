"""Nobody measures the rubric out through `quality_weights`: not by differences of prefixes, nor of weightings.

The attack of an audit, which read 17 exact points off 98 evaluations: every prefix of a conversation under every family
by itself, and the differences between neighbours. What a usual key is told is held against what is so.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from reward_server.auth.scopes import EVERY
from reward_server.scoring.weighting_disclosure import PROBED, STEP
from scenarios.schema import Family
from tests.contract.house import WHERE, Client, House, Json, assert_error
from tests.contract.test_evaluate import GOOD

LINES = (
    "Good morning. I am sorry to hear that.",
    "How did it happen?",
    "When do you need it back?",
    "How old is the tyre?",
    "Then I will put in a new tube and have it ready on Friday.",
    "You should buy a new bike instead.",
    "Is the frame all right?",
    "So: broken glass, and a race on Saturday.",
)
ORDERS = (LINES, LINES[::-1], LINES[3:] + LINES[:3], LINES[5:] + LINES[:5])
NOTHING = 1e-9


async def told(client: Client, messages: list[Json], family: str | None) -> Json | None:
    config = {} if family is None else {"reward_config": {"quality_weights": {family: 1.0}}}
    response = await client.call("POST", "/evaluate", {**WHERE, "messages": messages, **config})
    return None if response.status_code == 429 else response.json()


async def prefixes(client: Client) -> list[list[list[Json]]]:
    """The conversations of the attack, each as its beginnings."""
    found = []
    for order in ORDERS:
        episode = await client.create(config={"seed": 1})
        own: list[list[Json]] = [[{"role": "user", "content": episode["initial_observation"]["content"]}]]
        for line in order:
            answer = await client.say(episode, line)
            said = [
                {"role": "assistant", "content": line},
                {"role": "user", "content": answer["observation"]["content"]},
            ]
            own.append([*own[-1], *said])
            if answer["episode_complete"]:
                break
        found.append(own[1:])
    return found


async def deltas(client: Client, attack: list[list[list[Json]]]) -> tuple[list[float | None], int]:
    """What neighbours differ by under each family, None where that is not told; and how many evaluations it took."""
    found: list[float | None] = []
    count = 0
    for family in Family:
        for conversation in attack:
            answers = [await told(client, messages, family) for messages in conversation]
            count += len(answers)
            rewards = [None if answer is None else answer["reward"] for answer in answers]
            pairs = pairwise(rewards)
            found += [None if a is None or b is None else round(b - a, 4) for a, b in pairs]
    return found, count


@pytest.mark.slow
async def test_the_rubric_cannot_be_measured_out(house: House) -> None:
    full_key, usual_key = await house.key("owner", full_scores=True), await house.key("prober")
    house.end_development_mode()
    async with house.client(full_key) as full, house.client(usual_key) as usual:
        attack = await prefixes(full)
        truth, _ = await deltas(full, attack)
        seen, evaluations = await deltas(usual, attack)
        moved = [i for i, delta in enumerate(truth) if delta is not None and abs(delta) > NOTHING]
        exact = sum(seen[i] == truth[i] for i in moved)
        shares = Counter(truth[i] for i in moved)
        chance = sum(n * n for n in shares.values()) / len(moved)
        assert 150 <= evaluations <= 500
        assert exact <= chance
        again = await usual.call(
            "POST",
            "/evaluate",
            {**WHERE, "messages": GOOD, "reward_config": {"quality_weights": {"rubrics": 3.3, "discovery": 1}}},
        )
        assert_error(again, 429, "too_many_weightings")
        assert (await usual.ok("POST", "/evaluate", {**WHERE, "messages": GOOD}))["scores"]


async def test_every_api_tells_the_same(house: House) -> None:
    full_key, usual_key = await house.key("owner", full_scores=True), await house.key("prober")
    house.end_development_mode()
    config = {"reward_config": {"quality_weights": {"discovery": 1.0, "rubrics": 0.4}}}
    item = {**WHERE, "messages": GOOD[:3], **config}
    async with house.client(full_key) as full, house.client(usual_key) as usual:
        exact = (await full.ok("POST", "/evaluate", item))["reward"]
        alone = await usual.ok("POST", "/evaluate", item)
        assert alone["reward"] != exact
        assert abs(alone["reward"] - exact) <= STEP / 2 + NOTHING
        assert "scores" not in alone or not alone["scores"]
        [batched] = (await usual.ok("POST", "/batch/evaluate", {"items": [{"id": "a", **item}]}))["results"]
        sides = {"response_a": {"messages": GOOD[:3]}, "response_b": {"messages": GOOD[:1] + GOOD[:3]}}
        compared = await usual.ok("POST", "/compare", {**WHERE, **sides, **config})
        ranked = await usual.ok(
            "POST", "/rank", {**WHERE, "responses": [{"id": k, **v} for k, v in sides.items()], **config}
        )
        assert batched["reward"] == compared["reward_a"] == alone["reward"]
        assert {each["id"]: each["score"] for each in ranked["results"]}["response_a"] == alone["reward"]
        assert "scores_a" not in compared
        episode = await usual.create(config={"seed": 1}, **config)
        turn = await usual.say(episode, GOOD[0]["content"])
        assert round(turn["reward"] / STEP, 6) == round(turn["reward"] / STEP)
        assert not turn.get("scores")


async def test_who_probes_is_in_the_audit_log(house: House) -> None:
    operator_key, usual_key = await house.key("us", scopes=EVERY), await house.key("prober")
    house.end_development_mode()
    async with house.client(operator_key) as operator, house.client(usual_key) as usual:
        for family in Family:
            await told(usual, GOOD[:2], family)
        events = [each for each in (await operator.ok("GET", "/audit"))["data"] if each["action"] == PROBED]
        assert [(each["lab_id"], each["target"]) for each in events] == [("prober", "bike-shop/flat-tyre")]
